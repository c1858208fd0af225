"""Which units a search fits and holds out, and folds of units for scikit-learn's own searches."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, KFold, ShuffleSplit, check_cv

from sktensor_dp.estimator.parameters import Number, shown
from sktensor_dp.model_selection.unit_rows import n_rows
from sktensor_dp.privacy.parts import (
    Coins,
    coins_under,
    own_halves,
    own_parts,
    secret_key,
)
from sktensor_dp.queries.units import as_labels

Integers = NDArray[np.intp]
Split = tuple[Integers, Integers]

MOST_FOLDS = 10_000


GENERATED = (
    "cv must be None, an int, a splitter such as KFold(5), or a list of (train, test) of "
    "public positions. A generator, such as split(X, y) of a splitter returns, is refused: "
    "positions that were chosen by labels would tell of these."
)


@dataclass(frozen=True, eq=False)
class Splits:
    """Training and held-out units of every split of a search."""

    pairs: tuple[Split, ...]  # by their places
    # In how many fits and in how many scores a unit may be; public.
    uses: tuple[tuple[int, int], ...]
    n_units: int  # of which `neighbours` may make the number private
    units: Integers | None = None  # place of the unit of each row; None where rows are units

    def dealt(self, places: Integers) -> "Splits":
        """Splits of rows whose units are dealt to places, one side of a split after the other."""
        sides = [np.isin(np.arange(self.n_units), side) for pair in self.pairs for side in pair]
        return replace(self, units=np.lexsort(sides)[places])

    def rows(self, places: Integers) -> Integers:
        """Rows of the units at some places."""
        return places if self.units is None else np.flatnonzero(np.isin(self.units, places))

    @property
    def several(self) -> bool:
        """Whether the model of none is kept."""
        return len(self.pairs) > 1

    @property
    def memberships(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """In how many fits and scores a unit may be, largest numbers only."""
        found = set(self.uses)
        largest = [
            (a, b) for a, b in found if not any(c >= a and d >= b for c, d in found - {(a, b)})
        ]
        return tuple(
            tuple((role, count) for role, count in (("fit", a), ("score", b)) if count)
            for a, b in sorted(largest, reverse=True)
        )


def public_splits(cv: Any, test_size: float, n_units: int, random_state: Any) -> Splits:
    """Split by places, which are chosen without looking at any unit."""
    if hasattr(cv, "__next__"):
        raise ValueError(GENERATED)
    if cv is None:
        cv = ShuffleSplit(1, test_size=test_size, random_state=random_state)
    elif isinstance(cv, int):
        cv = KFold(cv, shuffle=True, random_state=random_state)
    # A splitter is shown the number of units and nothing else.
    parts = check_cv(cv).split(np.zeros((n_units, 1)))
    pairs = [(_positions(train, n_units), _positions(test, n_units)) for train, test in parts]
    if not pairs or any(train.size == 0 or test.size == 0 for train, test in pairs):
        raise ValueError(f"cv must leave rows on both sides of every split of {n_units}.")
    fits, scores = np.zeros(n_units, dtype=int), np.zeros(n_units, dtype=int)
    for train, test in pairs:
        np.add.at(fits, train, 1)
        np.add.at(scores, test, 1)
    uses = np.unique(np.stack([fits, scores], axis=1), axis=0)
    return Splits(tuple(pairs), tuple((int(a), int(b)) for a, b in uses), n_units)


def check_parts(cv: Any) -> None:
    """Refuse splits by positions where units come and go."""
    if cv is not None and not Number(2, MOST_FOLDS, integer=True).accepts(cv):
        raise ValueError(
            f"cv must be None or an int from 2 to {MOST_FOLDS} where neighbours='add_remove': a "
            "unit that is added or removed would move others to other positions, so each goes to "
            f"a part by a secret coin of its own. Got {shown(cv)}. Nothing was charged."
        )


def secret_splits(cv: int | None, test_size: float, coins: Coins) -> Splits:
    """Split by a secret coin for each unit; parts may be empty, and their sizes are private."""
    if cv is None:
        held_out = own_halves(coins, test_size)
        return Splits((_apart(held_out, 1),), ((1, 0), (0, 1)), len(coins))
    folds = own_parts(coins, int(cv))
    pairs = tuple(_apart(folds, fold) for fold in range(int(cv)))
    return Splits(pairs, ((int(cv) - 1, 1),), len(coins))


def _apart(parts: Integers, held_out: int) -> Split:
    return np.flatnonzero(parts != held_out), np.flatnonzero(parts == held_out)


def _positions(rows: Any, n_units: int) -> Integers:
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp)
    # A row that is there twice would count twice.
    return np.unique(np.arange(n_units)[rows])


class PrivateKFold(BaseCrossValidator):
    """K-fold splitter that deals each row, or each group of rows, by a secret coin of its own.

    For private estimators and scorers in scikit-learn's ``GridSearchCV`` or ``cross_val_score``.
    ``GroupKFold`` deals groups by their sizes, so that one more row of one person moves others
    between folds, and every fit and score then differs by more than the person that it protects.
    Here a group's fold follows from its label and a secret key of the splitter alone.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, from 2 to 10,000.

    See Also
    --------
    make_private_scorer : Scores with noise for scikit-learn's own tools.
    PrivateSearchCV : A search that is private as a whole and deals units by itself.

    Notes
    -----
    The key is drawn with the splitter, from the source of noise: the same splitter, or a clone of
    it, gives the same folds for the same labels, however often it is asked. A copy that was pickled
    draws another key, which is never written. Folds have about equally many groups, each a
    binomial number of them; with few groups a fold may be empty, which a private scorer
    refuses unless its model was fitted with ``neighbours="add_remove"``.

    **Privacy.** *Unit*: a row, by its position, or with `groups` all rows of a group. In a k-fold
    cross-validation a unit is in one score and k - 1 fits of each candidate. What these cost
    together is what they cost the unit (``docs/proofs/parts.md``), since no unit decides where
    another one goes. *Not covered*: a total over folds of any other splitter whose folds
    depend on other units, their labels, targets or sizes, as those of ``GroupKFold`` and
    ``StratifiedKFold``.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateKFold
    >>> X, person = np.zeros((3000, 2)), np.arange(3000) // 3
    >>> splits = list(PrivateKFold(2).split(X, groups=person))
    >>> len(splits)
    2
    >>> train, test = splits[0]
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

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        int
            Number of folds.
        """
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Iterator[Split]:
        """Yield training and test rows of each fold, of which any may be empty.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of n_rows units
            Of which the number of rows alone is read.
        y : object
            Ignored.
        groups : array-like of shape (n_rows,), optional
            Whose each row is: integers or strings. All rows of a group are in one fold.

        Yields
        ------
        train, test : ndarray of int
            Positions of rows.

        Raises
        ------
        ValueError
            If `groups` is not one label per row.
        """
        n_given = n_rows(X)
        labels = np.arange(n_given) if groups is None else as_labels(groups, n_given)
        names, places = np.unique(labels, return_inverse=True)
        folds = own_parts(coins_under(self._key, names), self.n_splits)[places]
        for fold in range(self.n_splits):
            yield _apart(folds, fold)

    def __deepcopy__(self, memo: dict[int, Any]) -> "PrivateKFold":
        """Return the splitter itself, which does not change: clones of a search share folds."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.n_splits,)
