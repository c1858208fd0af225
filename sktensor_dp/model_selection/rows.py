"""Rows that are taken and asked about so that no other row changes what is said of one."""

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
from sktensor_dp.queries.reading import as_numbers, kinds_of, read, taken
from sktensor_dp.queries.scores import HeldOutChunk
from sktensor_dp.queries.units import Units

Floats = NDArray[np.float64]


def checked_units(
    X: Any, y: Any, groups: Any, neighbours: str
) -> tuple[Any, Any, NDArray[Any] | None]:
    """Rows that can be taken by their numbers, and the labels of their groups if there are any."""
    for name, given in (("X", X), ("y", y), ("groups", groups)):
        if hasattr(given, "to_delayed"):
            raise TypeError(
                f"{name} must lie in memory, since its rows are taken one by one; got a Dask "
                f"{type(given).__name__}. Pass {name}.compute(), or a part of the rows."
            )
    if groups is None and neighbours != "add_remove":
        return (*read(partial(indexable, X, y), "X or y"), None)
    # How many rows there are is private then.
    said = "X and y must be tables, arrays or lists with equally many rows."
    X, y = read(partial(indexable, X, y), "X or y", lambda message: said)
    return X, y, checked_groups(groups, n_rows(X), neighbours)


def take(data: Any, rows: NDArray[np.intp] | slice) -> Any:
    """Rows of an array, a sparse matrix, a data frame or a list; None of None."""
    if data is None or isinstance(data, np.ndarray) or sp.issparse(data):
        return None if data is None else data[rows]
    return taken(data, rows)


def one_row(data: Any, row: int) -> Any:
    """One row, in a container of the same kind."""
    return take(data, slice(row, row + 1))


def n_rows(data: Any) -> int:
    """Number of rows."""
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def held_out(X: Any, y: Any, labels: NDArray[Any] | None) -> HeldOutChunk:
    """Rows to be scored, which lie unit by unit where they have labels of groups."""
    if labels is None:
        return HeldOutChunk(X, y, n_rows(X))
    order, groups = Units.gathered(labels)
    if order is not None:
        X, y = take(X, order), take(y, order)
    return HeldOutChunk(X, y, groups.n, groups)


def numbers(y: Any) -> Floats:
    """Targets as numbers, each converted by itself; NaN where one is none."""
    y = as_numbers(y, "y")
    items = read(lambda: np.asarray(y).tolist() if hasattr(y, "shape") else list(y), "y")
    return np.array([_number(item) for item in items], dtype=np.float64)


def answers(question: Callable[[Any], Any], X: Any, *, documents: bool = False) -> Floats:
    """Numbers that a model says of rows, each treated by itself; NaN where it refuses one."""
    # The model is asked about all rows at once only where the container gives them one type. How a
    # row is asked about depends on the model, the container and the row: not even the rounding of
    # other answers does. No error leaves, as it would tell of a row.
    if documents and isinstance(X, list | tuple):
        texts = [isinstance(item, str | bytes) for item in X]
        whole = [item if text else "" for item, text in zip(X, texts, strict=True)]
        return np.where(texts, _asked(question, whole, together=True), math.nan)
    return _asked(question, X, together=_has_one_type(X))


def _asked(question: Callable[[Any], Any], X: Any, *, together: bool) -> Floats:
    def ask(rows: Any) -> Floats:
        found = np.asarray(question(rows), dtype=np.float64)
        if found.shape != (n_rows(rows),):
            raise ValueError("a model must say one number of each row")
        return found

    if together:
        with suppress(Exception):
            return ask(X)
    rows = X.tocsr() if sp.issparse(X) else X  # of other formats none can be taken
    found = np.full(n_rows(X), math.nan)
    refused = np.ones(n_rows(X), dtype=bool)
    for row in range(n_rows(X)):
        with suppress(Exception):
            found[row], refused[row] = ask(one_row(rows, row))[0], False
    if together and not refused.all():
        # Another row in the place of each of these: as many are asked about, so that the answers
        # about the others are the same to the last bit.
        whole = take(rows, np.where(refused, np.argmin(refused), np.arange(len(refused))))
        with suppress(Exception):
            return np.where(
                refused, math.nan, ask(whole.asformat(X.format) if sp.issparse(X) else whole)
            )
    return found


def _has_one_type(X: Any) -> bool:
    """Whether a container gives all rows one type, whatever they hold."""
    if sp.issparse(X):
        return True
    if hasattr(X, "columns"):
        return all(called.lower() != "object" for _, called in kinds_of(X, "X"))
    return hasattr(X, "dtype") and getattr(X.dtype, "kind", "O") != "O"


def _number(item: Any) -> float:
    if isinstance(item, Sequence) and not isinstance(item, str | bytes) and len(item) == 1:
        item = item[0]  # of a column
    try:
        return float(item)
    except Exception:  # whatever an object of any class does
        return math.nan
