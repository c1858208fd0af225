"""Types, checks and blocks of arrays, largest entries of tables, and random generators."""

import math
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.intp]


Matrix = TypeVar("Matrix", sp.csr_matrix, sp.csr_array)
# Number of doubles in a cache of 4 MB.
CACHE_NUMBERS = 2**19
# Products of six numbers of sizes in this range neither overflow nor underflow.
LEAST_SIZE, LARGEST_SIZE = 2.0**-160, 2.0**160


def of_same_shape(X: Matrix, values: object) -> Matrix:
    """Sparse matrix with the pattern of `X` and these `values`; nothing is copied or checked."""
    # A shallow copy keeps the class and its flag of sorted columns.
    matrix = copy(X)
    matrix.data = values
    return matrix


def read_only(X: Any) -> Any:
    """Read-only view of an array or a CSR matrix; other values unchanged."""
    if isinstance(X, np.ndarray):
        view = X.view()
        view.flags.writeable = False
        return view
    if not sp.issparse(X):
        return X
    matrix = copy(X)
    matrix.data, matrix.indices, matrix.indptr = map(read_only, (X.data, X.indices, X.indptr))
    return matrix


def rows_at_once(numbers_each: int, caches: float = 1.0) -> int:
    """Number of rows of `numbers_each` doubles that fill `caches` caches; at least one."""
    # More than one cache saves calls; less than one leaves room for temporary arrays.
    return max(1, int(caches * CACHE_NUMBERS) // max(1, numbers_each))


def blocks(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover ``range(n)``; one empty slice for n = 0."""
    for start in range(0, max(n, 1), size):
        yield slice(start, min(start + size, n))


def spans(n_rows: int, numbers_each: int, caches: float = 1.0) -> Iterator[slice]:
    """Slices that cover `n_rows` rows in order, each of `rows_at_once` rows."""
    return blocks(n_rows, rows_at_once(numbers_each, caches))


def product_by_rows(X: Floats | sp.csr_matrix, basis: Floats) -> Floats:
    """``X @ basis`` in which a row's digits do not depend on the other rows, as BLAS's do."""
    # BLAS uses other instructions for the last rows of a block and for small blocks, so that digits
    # would depend on the number of rows before, which is private if units have several. One digit
    # may move a norm into the next bin or past a limit. Sparse products add row by row.
    if not sp.issparse(X):
        n_rows, n_features = X.shape
        columns = np.tile(np.arange(n_features), n_rows)
        starts = np.arange(n_rows + 1) * n_features
        X = sp.csr_matrix((np.ascontiguousarray(X).ravel(), columns, starts), X.shape)
    return np.asarray(X @ basis)


class TopRows(NamedTuple):
    """Rows from best to worst, and their values.

    Attributes
    ----------
    rows : ndarray of shape (n_units, n)
        Numbers of rows, or their names; -1 or None where fewer than n are left.
    values : ndarray of the same shape
        Their values; NaN where fewer than n are left.
    """

    rows: NDArray[np.generic]
    values: Floats


def top_rows(
    values: Floats, n: int, excluded: NDArray[np.bool_] | None = None, by: Floats | None = None
) -> TopRows:
    """The `n` largest of `values` in each row, without NaN and `excluded`; ties by column.

    They are ranked by the table `by` if it is given.
    """
    left_out = np.isnan(values) if excluded is None else np.isnan(values) | excluded
    keys = np.where(left_out, np.inf, -(values if by is None else by))
    order = np.argsort(keys, axis=1, kind="stable")[:, :n]
    best = np.take_along_axis(values, order, axis=1)
    missing = np.take_along_axis(left_out, order, axis=1)
    return TopRows(np.where(missing, -1, order), np.where(missing, np.nan, best))


def top_rows_by_parts(
    n_units: int,
    n_rows: int,
    n: int,
    values: Callable[[slice], Floats],
    excluded: Callable[[slice], NDArray[np.bool_] | None],
    *,
    block: int,
    order: Callable[[Floats], Floats] | None = None,
) -> TopRows:
    """`top_rows` of a table (n_units, n_rows), of which about `block` values are computed at once.

    `values` and `excluded` are functions of a slice of units; `order` maps values to the table that
    they are ranked by, by default themselves.
    """
    best = []
    for part in blocks(n_units, max(block // n_rows, 1)):
        table = values(part)
        best.append(top_rows(table, n, excluded(part), table if order is None else order(table)))
    return TopRows(*(np.concatenate(arrays) for arrays in zip(*best, strict=True)))


def check_at_least(least: float, **numbers: float) -> None:
    """Raise ValueError for a number below `least`, or NaN; keywords name the parameters."""
    for name, number in numbers.items():
        if not number >= least:
            raise ValueError(f"{name} must be at least {least}; got {number}.")


def check_components(n_components: int, most: int) -> None:
    """Raise ValueError unless `n_components` is from 1 to `most`."""
    if not 1 <= n_components <= most:
        raise ValueError(f"n_components must be between 1 and {most}; got {n_components}.")


def check_shape(name: str, array: Any, *shape: int) -> None:
    """Raise ValueError unless the array `name` has the given shape."""
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got shape {array.shape}.")


def check_finite(name: str, *arrays: Any) -> None:
    """Raise ValueError if an array holds NaN or infinity; `name` is that of the parameter."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError(f"{name} must be finite, without NaN or infinity.")


def extreme_scale(*arrays: Any) -> float:
    """Power of two near the largest size of the numbers if it is out of range; else 1.

    The largest of the numbers, divided by it, is between `LEAST_SIZE` and `LARGEST_SIZE`, if it is
    finite and not 0.
    """
    largest = max(float(np.abs(array).max(initial=0.0)) for array in arrays)
    if largest == 0 or LEAST_SIZE <= largest <= LARGEST_SIZE or not math.isfinite(largest):
        return 1.0
    # frexp: largest = m 2^e with 1/2 <= m < 1.
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """NumPy generator from a seed, a generator or scikit-learn's legacy state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
