"""Units one by one: what is said of one does not depend on the types or values of others."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import indexable

from sktensor_dp.estimator.inputs import checked_groups
from sktensor_dp.estimator.parameters import shown
from sktensor_dp.queries.reading import as_numbers, kinds_of, read, taken
from sktensor_dp.queries.scores import HeldOutChunk
from sktensor_dp.queries.units import Units

Floats = NDArray[np.float64]


# Names of scores, and the method of a model that they are made from.
ANSWERED_BY = {
    "accuracy": "predict",
    "log_likelihood": "score_samples",
    "log_likelihood_per_token": "score_samples",
    "neg_mean_absolute_error": "predict",
    "neg_mean_squared_error": "predict",
}


def check_at_hand(X: Any, y: Any, groups: Any) -> None:
    """Refuse what Dask has not computed: rows are taken one by one."""
    for name, given in (("X", X), ("y", y), ("groups", groups)):
        if hasattr(given, "to_delayed"):
            raise TypeError(
                f"{name} must lie in memory, since its rows are taken one by one; got a Dask "
                f"{type(given).__name__}. Pass {name}.compute(), or a part of the rows."
            )


def checked_units(
    X: Any, y: Any, groups: Any, neighbours: str = "replace_one"
) -> tuple[Any, Any, NDArray[Any] | None]:
    """Rows that can be taken by their numbers, and the labels of their groups if there are any."""
    check_at_hand(X, y, groups)
    if groups is None and neighbours != "add_remove":
        given = [one for one in (X, y) if one is not None]
        plain = all(type(one) is np.ndarray and one.ndim for one in given)
        if plain and len({len(one) for one in given}) == 1:
            return X, y, None
        return (*read(partial(indexable, X, y), "X or y"), None)
    # How many rows there are is private then.
    said = "X and y must be tables, arrays or lists with equally many rows."
    X, y = read(partial(indexable, X, y), "X or y", lambda message: said)
    return X, y, checked_groups(groups, n_rows(X), neighbours)


def check_scoring(scoring: Any, name: str) -> None:
    """Refuse what is neither a callable nor the name of a score."""
    if not callable(scoring) and scoring not in ANSWERED_BY:
        raise ValueError(
            f"{name} must be a callable that returns one number per row, or one of "
            f"{sorted(ANSWERED_BY)}; got {shown(scoring)}."
        )


def check_scorable(
    scoring: Any, estimator: Any, y: Any, n_rows: int, name: str, *, private: bool = False
) -> None:
    """Refuse, before anything is charged, what cannot be scored at all."""
    if not isinstance(scoring, str):
        return
    method = ANSWERED_BY[scoring]
    if not hasattr(estimator, method):
        raise ValueError(
            f"{name}={scoring!r} needs an estimator with {method}; "
            f"{type(estimator).__name__} has none."
        )
    if method == "predict":
        if y is None:
            raise ValueError(f"{name}={scoring!r} needs y, which is None.")
        check_targets(y, n_rows, private=private)


def check_targets(y: Any, n_wanted: int, *, private: bool = False) -> None:
    """Refuse targets of another number than there are rows, which may be private."""
    found = read(lambda: n_rows(y), "y")
    if found != n_wanted:
        raise ValueError(
            "y must have a target for each row."
            if private
            else f"y must have a target for each of the {n_wanted} rows, got {found}."
        )


def take(data: Any, rows: Sequence[int] | NDArray[np.intp] | slice) -> Any:
    """Rows of an array, a sparse matrix, a data frame or a list; None of None."""
    if data is None or isinstance(data, np.ndarray) or sp.issparse(data):
        return None if data is None else data[rows]
    return taken(data, rows)


def held_out(X: Any, y: Any, labels: NDArray[Any] | None) -> HeldOutChunk:
    """Rows to be scored, which lie unit by unit where they have labels of groups."""
    if labels is None:
        return HeldOutChunk(X, y, n_rows(X))
    order, groups = Units.gathered(labels)
    if order is not None:
        X, y = take(X, order), take(y, order)
    return HeldOutChunk(X, y, groups.n, groups)


def one_row(data: Any, row: int) -> Any:
    """One row, in a container of the same kind; None of None."""
    return take(data, slice(row, row + 1))


def n_rows(data: Any) -> int:
    """How many rows there are."""
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def entries(y: Any) -> list[Any]:
    """Targets as Python objects, each by itself; one of a column of one is taken for it."""
    y = as_numbers(y, "y")
    whole = read(lambda: np.asarray(y) if hasattr(y, "shape") else None, "y")
    items = list(y) if whole is None else whole.tolist()
    return [_only(item) for item in items]


def numbers(items: Sequence[Any]) -> Floats:
    """Each item as a number, or NaN where it is none."""
    return np.array([_number(item) for item in items], dtype=np.float64)


def answers(
    question: Callable[[Any], Any], X: Any, *, documents: bool = False
) -> tuple[Any, NDArray[np.bool_]]:
    """What a model that treats every row by itself says of rows, and which ones it refuses."""
    # It is asked about all of them at once only where that cannot mix them: where the
    # container gives them one type. A list of documents is asked about together, with an
    # empty one in the place of whatever is no text; rows of other lists and of Python objects
    # are asked about one by one. How a row is asked about thus depends on the model, on the
    # container and on the row itself, and not on other rows: not even rounding does. No error
    # leaves: that there is one would tell of the rows.
    if _has_one_type(X):
        return _together(question, X)
    if not documents:
        return _one_by_one(lambda row: question(one_row(X, row)), n_rows(X))
    texts = np.array([isinstance(item, str | bytes) for item in X], dtype=bool)
    whole = [item if text else "" for item, text in zip(X, texts, strict=True)]
    found, refused = _together(question, whole)
    return found, refused | ~texts


def each_row(question: Callable[[int], Any], n_rows: int) -> NDArray[Any]:
    """Answers of shape (1,) to a question about each row; NaN where there is none."""
    return _one_by_one(question, n_rows)[0]


def _one_by_one(
    question: Callable[[int], Any], n_rows: int
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Answers of shape (1,), as objects, and which rows have none."""
    # Whether none has one is not asked: an error would tell that no row differs.
    found = np.full(n_rows, math.nan, dtype=object)
    failed = np.ones(n_rows, dtype=bool)
    for row in range(n_rows):
        with suppress(Exception):
            answer = np.asarray(question(row))
            if answer.shape == (1,):
                found[row], failed[row] = answer.item(), False
    return found, failed


def _together(question: Callable[[Any], Any], X: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Answers about all rows at once, and which rows are refused by themselves."""
    number = n_rows(X)

    def asked(some: Any) -> NDArray[Any]:
        found = np.asarray(question(some))
        # Pipelines may leave rows out: an answer to another number of them is none.
        if found.ndim and len(found) != n_rows(some):
            raise ValueError("a model has to answer for each row")
        return found

    with suppress(Exception):
        return asked(X), np.zeros(number, dtype=bool)
    rows = X.tocsr() if sp.issparse(X) else X  # of other formats none can be taken
    refused = np.ones(number, dtype=bool)
    for row in range(number):
        with suppress(Exception):
            asked(one_row(rows, row))
            refused[row] = False
    if refused.all():
        return np.full(number, math.nan), refused
    # Another row in the place of each of these: as many are asked about, so that the answers
    # about the others are the same to the last bit.
    places = np.where(refused, np.argmin(refused), np.arange(number))
    with suppress(Exception):
        whole = take(rows, places)
        return asked(whole.asformat(X.format) if sp.issparse(X) else whole), refused
    return _one_by_one(lambda row: question(one_row(rows, row)), number)


def _has_one_type(X: Any) -> bool:
    """Whether a container gives all rows one type, whatever they hold."""
    if sp.issparse(X):
        return True
    if hasattr(X, "columns"):
        return all(called.lower() != "object" for _, called in kinds_of(X, "X"))
    return hasattr(X, "dtype") and getattr(X.dtype, "kind", "O") != "O"


def _only(item: Any) -> Any:
    several = isinstance(item, list | tuple) or (isinstance(item, np.ndarray) and item.ndim == 1)
    return item[0] if several and len(item) == 1 else item


def _number(item: Any) -> float:
    try:
        return float(item)
    except Exception:  # whatever an object of any class does
        return math.nan
