"""Splits of units for searches; those of scikit-learn are checked in privacy/sklearn_folds.py."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import indexable

from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import is_dask, taken
from sktensor_dp.checks.parameters import Number, shown
from sktensor_dp.data.labels import distinct
from sktensor_dp.estimator.inputs import checked_groups
from sktensor_dp.privacy.accountant import OPENED
from sktensor_dp.privacy.sklearn_folds import FoldRows
from sktensor_dp.privacy.unit_assignment import assigned, coin_parts, keyed_coins, secret_key
from sktensor_dp.tensor.arrays import Integers

MOST_FOLDS = 10_000


def checked_units(
    X: object, y: object, groups: object, neighbours: str
) -> tuple[Any, Any, NDArray[np.generic] | None]:
    """Rows and targets that can be indexed, and labels of groups or None; else an error."""
    for name, given in (("X", X), ("y", y), ("groups", groups)):
        if is_dask(given):
            raise TypeError(
                f"{name} must lie in memory, since its rows are taken one by one; got a Dask "
                f"{type(given).__name__}. Pass {name}.compute(), or a part of the rows."
            )
    if groups is None and neighbours != "add_remove":
        return (*call_unquoted(partial(indexable, X, y), "X or y"), None)
    # The number of rows is private in this case.
    said = "X and y must be tables, arrays or lists with equally many rows."
    X, y = call_unquoted(partial(indexable, X, y), "X or y", lambda message: said)
    return X, y, checked_groups(groups, X, n_rows(X), neighbours)


def take(data: object, rows: NDArray[np.intp] | slice) -> Any:
    """Rows of an array, sparse matrix, data frame or list, by indices or a slice; None for None."""
    return None if data is None else taken(data, rows)


def n_rows(data: Any) -> int:
    """Number of rows of an array, a sparse matrix, a data frame or a list."""
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Split:
    """Deal of units (rows, or groups of rows) into training and held-out ones."""

    held_out: Mask  # (n_units,)
    unit_of_row: Integers | None  # index of the unit; None where rows are units

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.held_out)

    def rows(self, chosen: Mask) -> Integers:
        """Indices of the rows of the units that the mask `chosen` holds."""
        return np.flatnonzero(chosen if self.unit_of_row is None else chosen[self.unit_of_row])


def split_units(
    test_size: float,
    n_rows: int,
    labels: NDArray[np.generic] | None,
    *,
    number_is_private: bool,
    random_state: object,
    n_units: int | None = None,
) -> Split:
    """Split units in two: rows at positions drawn by `random_state`, groups by secret coins.

    Rows whose number is private are dealt by coins, too. `n_units` is a public number of groups,
    if some may have no rows.
    """
    part_of_unit, unit_of_row = assigned(
        n_rows, labels, n_parts=None, fraction=test_size, number_is_private=number_is_private,
        random_state=random_state, n_units=n_units,
    )  # fmt: skip
    split = Split(part_of_unit == 1, unit_of_row)
    if number_is_private:
        return split
    units, least = ("rows", 1) if labels is None else ("groups", 2)  # one group has no other
    if (~split.held_out).sum() < least or not split.held_out.any():
        raise ValueError(
            f"test_size must leave {least} or more {units} to train on, and one to score on; got "
            f"n_samples={split.n_units}."
        )
    return split


class PrivateKFold(BaseCrossValidator):
    """K-fold splitter that deals each row, or each group of rows, by a secret coin of its own.

    For private estimators and scorers in scikit-learn's ``GridSearchCV`` or ``cross_val_score``.
    ``GroupKFold`` deals groups by their sizes, so that one more row of one person moves others.
    Here a group's fold follows from its label and a secret key of the splitter alone.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, from 2 to 10,000.

    See Also
    --------
    make_private_scorer : Scores with noise for scikit-learn's own tools.

    Notes
    -----
    The same splitter, or a clone of it, gives the same folds for the same labels; a pickled copy
    draws another key. A fold has a binomial number of groups; an empty one is refused by a private
    scorer unless its model was fitted with ``neighbours="add_remove"``. `groups` of
    another column than that of the persons who pay are refused, as are none: in a ``with`` block
    by the splitter, else by the first fit. Rows of persons' folds cannot be cut, as by
    ``learning_curve``: who is in a part of them would depend on how many rows each person has.

    **Privacy.** *Unit*: a row, by its position, or with `groups` all rows of a group. A unit pays
    for one score and k - 1 fits of each candidate (``docs/proofs/parts.md``), since no unit
    decides where another one goes. *Not covered*: a total over folds of any other splitter whose
    folds depend on other units, as ``GroupKFold`` and ``StratifiedKFold``.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateKFold
    >>> X, person = np.zeros((3000, 2)), np.arange(3000) // 3
    >>> train, test = next(PrivateKFold(2).split(X, groups=person))
    >>> set(person[train]) & set(person[test])
    set()
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(self, n_splits: int = 5) -> None:
        if not Number(2, MOST_FOLDS, integer=True).accepts(n_splits):
            raise ValueError(
                f"n_splits must be an int from 2 to {MOST_FOLDS}, got {shown(n_splits)}."
            )
        self.n_splits = int(n_splits)
        self._key = secret_key()

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds, an int; the arguments are ignored."""
        return self.n_splits

    def split(
        self, X: object, y: object = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[FoldRows, FoldRows]]:
        """Yield training and test rows of each fold; either may be empty.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of n_rows units
            Rows; only their number is read, and with `groups` the index of a table.
        y : object
            Ignored.
        groups : array-like of shape (n_rows,), optional
            Label of the group of each row: integers or strings. A group is in one fold.

        Yields
        ------
        train, test : ndarray of int
            Positions of rows.

        Raises
        ------
        ValueError
            If `groups` is not one label per row, or its index has the rows in another order.
        BudgetError
            In the ``with`` block of a budget of persons, if `groups` is not what names them.
        """
        if (block := OPENED.get()[-1]) is not None:
            block._check_groups(groups)
        n_given = n_rows(X)
        labels = checked_groups(groups, X, n_given, "add_remove")  # one group is allowed
        labels = np.arange(n_given) if labels is None else labels
        names, places = distinct(labels)
        folds = coin_parts(keyed_coins(self._key, names), self.n_splits)[places]
        for fold in range(self.n_splits):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            place = fold, self.n_splits
            yield FoldRows.dealt(train, groups, place), FoldRows.dealt(test, groups, place)

    def __deepcopy__(self, memo: dict[int, Any]) -> "PrivateKFold":
        """Return the splitter itself, which does not change: clones of a search share folds."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.n_splits,)
