"""Observed entries of a tensor, coordinates and values, as the custodian holds them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.queries.query import HALF, check_array, check_number
from sktensor_dp.queries.sums import split_sum
from sktensor_dp.tensor.arrays import Floats, Integers, check_shape, of_same_shape
from sktensor_dp.tensor.row_bounds import Bounds, RowBounds, in_scale
from sktensor_dp.tensor.sorted_entries import SortedEntries

# Rows of a mode are arrays' lengths; far beyond memory, and exact in double precision.
LARGEST_COORDINATE = 2**52
# Cells of a slice up to which sums over its entries are products with a table of all cells.
MOST_CELLS = 2**14
# Share of cells with a value from which on units keep them in a table as well.
DENSE_SHARE = 0.25
# Bits of a digit by which places are sorted, and digits up to which that is faster.
DIGIT_BITS, DIGITS = 16, 3
# Sensitivities of sums are this much larger than proved: it pays for rounding in them.
SUM_SLACK = 1 + 1e-6


def as_entries(
    coordinates: Any, values: Any, shape: Sequence[int] | None = None
) -> tuple[Integers, Floats, tuple[int, ...]]:
    """Validated coordinates and values of the observed entries of a tensor."""
    # How many entries there are may be private.
    X = np.asarray(coordinates)
    if X.ndim != 2 or X.shape[1] < 2:
        has = f"{X.ndim} axes" if X.ndim != 2 else f"{X.shape[1]} columns"
        raise ValueError(
            f"X must hold the coordinates of entries, of shape (n_observed, n_modes) with "
            f"n_modes >= 2; it has {has}."
        )
    y = np.asarray(values)
    if y.dtype.kind not in "iufb" or y.ndim != 1:
        raise ValueError(
            f"y must hold one number for each row of X, in an array of as many; got an array of "
            f"type {y.dtype} with {y.ndim} axes."
        )
    if len(y) != len(X):
        raise ValueError(
            "y must hold one number for each row of X; its length is not the number of rows."
        )
    with np.errstate(all="ignore"):  # whether a longer type overflows is told by the error alone
        y = y.astype(np.float64, copy=False)
    if not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity; leave out what was not observed.")
    rows = None if shape is None else checked_shape(shape, X.shape[1])
    _check_coordinates(X, rows)
    X = X.astype(np.intp, copy=False)
    if rows is None:
        rows = tuple(int(largest) + 1 for largest in X.max(axis=0, initial=-1))
    return X, y, rows


def checked_shape(shape: Sequence[int], n_modes: int) -> tuple[int, ...]:
    """Lengths of a tensor's modes, one for each column of coordinates."""
    rows = tuple(shape)
    # Of a bool nobody would say that it counts rows.
    counts = [isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in rows]
    if len(rows) != n_modes or not all(counts):
        raise ValueError(
            f"shape must hold one int >= 1 for each of the {n_modes} columns of X; got {shape!r}."
        )
    return tuple(int(n) for n in rows)


def _check_coordinates(X: NDArray[Any], shape: tuple[int, ...] | None) -> None:
    if X.dtype.kind not in "iuf":
        raise ValueError(
            f"X must have integer coordinates, got type {X.dtype}; encode categories first, for "
            "example with sklearn.preprocessing.OrdinalEncoder."
        )
    if X.dtype.kind == "f" and not (np.isfinite(X) & (np.rint(X) == X)).all():
        raise ValueError("X must have integer coordinates; some are fractional, NaN or infinite.")
    if (X < 0).any():
        raise ValueError("X must have coordinates >= 0; some are negative.")
    limits = (LARGEST_COORDINATE,) * X.shape[1] if shape is None else shape
    if (np.array(limits) <= X).any():
        beyond = "too large" if shape is None else f"beyond shape {shape}"
        raise ValueError(f"X has coordinates {beyond}; they count from 0.")


def check_unit_mode(unit_mode: int, shape: tuple[int, ...]) -> None:
    """Refuse a mode that a tensor does not have."""
    if not 0 <= unit_mode < len(shape):
        raise ValueError(f"unit_mode must be one of 0..{len(shape) - 1}, got {unit_mode!r}.")


class ValueRange:
    """The public range that values are clamped to, and centred on the middle of."""

    shape: tuple[int, ...]

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        low, high = RowBounds.SCALE if isinstance(bounds, RowBounds) else bounds
        # Written so that NaN fails; halves first, as the width of all floats would overflow.
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"bounds must be two finite numbers, low < high; got {bounds!r}.")
        self.half = high / 2 - low / 2
        self.middle = low / 2 + high / 2
        if not 0 < 2 * self.half < math.inf:
            raise ValueError(f"bounds must differ by a finite number; got {bounds!r}.")

    def centred(self, values: Floats, coordinates: Integers) -> Floats:
        """Numbers in ``[-half, half]``, exactly."""
        if isinstance(self._bounds, RowBounds):
            self._bounds.check_shape(self.shape)
            values = in_scale(self._bounds, values, coordinates)
        # Values beyond are clamped before the difference: it might overflow, and warn.
        reach = abs(self.middle) + self.half
        centred = np.clip(values, -reach, reach)
        centred -= self.middle
        return np.clip(centred, -self.half, self.half, out=centred)


class IndexSet(SortedEntries):
    """Coordinates of observed values, with sums over rows of bounded rounding.

    Public, wherever the unit of privacy is a value; parameters as of
    :class:`~sktensor_dp.tensor.SortedEntries`.
    """

    def sums(self, mode: int, terms: Floats) -> Floats:
        """Sums over the entries of each row of a mode."""
        columns = terms.reshape(len(terms), -1).T
        found = np.empty((self.shape[mode], len(columns)))
        squares = float(np.square(self.counts[mode].astype(np.float64)).sum())
        rows = self.rows(mode)

        def add(part: Floats) -> Floats:
            sums = np.bincount(rows, part, minlength=self.shape[mode])
            return sums.astype(np.float64, copy=False)

        for place, column in enumerate(columns):
            found[:, place] = split_sum(add, column, squares)
        return found.reshape(self.shape[mode], *terms.shape[1:])

    def grams(self, mode: int, rows: Floats) -> Floats:
        """Sums of ``z z'`` over the entries of each row."""
        r = rows.shape[1]
        result = np.empty((self.shape[mode], r, r))
        for a in range(r):
            part = self.sums(mode, rows[:, a, None] * rows[:, a:])
            result[:, a, a:] = result[:, a:, a] = part
        return result

    def balanced_weights(self, power: float = 0.5) -> Floats:
        """Weights of each entry over modes, that sum to 1 and favour rows with few entries."""
        weights = np.empty((self.n_entries, len(self.shape)), order="F")
        for m, counts in enumerate(self.counts):
            # Rows without entries are never looked up.
            weights[:, m] = (np.maximum(counts, 1) ** -power)[self.rows(m)]
        weights /= weights.sum(axis=1, keepdims=True)
        return weights


class EntryChunks(ValueRange):
    """Values at public coordinates; the unit of privacy is one value.

    Parameters
    ----------
    coordinates : ndarray of intp of shape (n_observed, n_modes)
        Public. Equal coordinates are values of their own.
    values : ndarray of shape (n_observed,)
        Private.
    shape : tuple of n_modes int
        Public.
    bounds : tuple of (low, high), or RowBounds
        Public; values are clamped to it, and mapped to a common scale if rows differ.

    Attributes
    ----------
    values : ndarray of shape (n_observed,)
        Clamped, minus the middle of the bounds.
    shape : tuple of n_modes int
        Public.
    half, middle : float
        Half of the width R of the bounds, and their middle; public.
    n_units : int
        Number of values.
    """

    def __init__(
        self,
        coordinates: Integers,
        values: Floats,
        shape: tuple[int, ...],
        bounds: Bounds,
    ) -> None:
        super().__init__(bounds)
        if len(values) == 0:
            raise ValueError("X and y hold no entries; at least one has to be observed.")
        self.shape, self.n_units = shape, len(values)
        self.values, self._coordinates = self.centred(values, coordinates), coordinates

    @cached_property
    def index_set(self) -> IndexSet:
        """Coordinates of observed values; public."""
        # Handed over, not held: it has coordinates of its own.
        return IndexSet(vars(self).pop("_coordinates"), self.shape)

    def __iter__(self) -> Iterator["EntryChunks"]:
        return iter([self])


class SliceChunks(ValueRange):
    """Entries grouped by the index of one mode; the unit is all that an index holds.

    Entries observed more than once are merged into one, with the mean of their clamped
    values. They belong to the same unit, so that units stay apart.

    Parameters
    ----------
    coordinates : ndarray of intp of shape (n_observed, n_modes)
        Private, with the values.
    values : ndarray of shape (n_observed,)
        Private.
    shape : tuple of n_modes int
        Public.
    unit_mode : int
        Mode whose indices are the units.
    bounds : tuple of (low, high), or RowBounds
        Public; values are clamped to it, and mapped to a common scale if rows differ.
    part : bool, default=False
        Whether other units lie elsewhere. Units are then numbered among those that have
        entries here; those without entries add nothing to any sum.

    Attributes
    ----------
    coordinates : ndarray of intp of shape (n_distinct, n_modes)
        Sorted by unit.
    values : ndarray of shape (n_distinct,)
        Clamped, minus the middle of the bounds.
    units : ndarray of shape (n_distinct,)
        Unit of each entry.
    half, middle : float
        Half of the width R of the bounds, and their middle; public.
    n_units : int
        ``shape[unit_mode]``, of which any may be without entries; private for a part.
    """

    def __init__(
        self,
        coordinates: Integers,
        values: Floats,
        shape: tuple[int, ...],
        unit_mode: int,
        bounds: Bounds,
        part: bool = False,
    ) -> None:
        super().__init__(bounds)
        check_unit_mode(unit_mode, shape)
        self.shape, self.unit_mode = shape, unit_mode
        self.n_units = shape[unit_mode]
        order = by_unit(coordinates, values, shape, unit_mode)
        coordinates = coordinates.take(order, axis=0)
        values = self.centred(values.take(order), coordinates)
        first = np.zeros(len(values), dtype=bool)
        first[:1] = True
        for column in coordinates.T:
            first[1:] |= column[1:] != column[:-1]
        if not first.all():
            group = np.cumsum(first) - 1
            coordinates = coordinates[first]
            values = np.bincount(group, weights=values) / np.bincount(group)
            np.clip(values, -self.half, self.half, out=values)
        self.coordinates, self.values = coordinates, values
        self.units = coordinates[:, unit_mode]
        if part:
            present, self.units = np.unique(self.units, return_inverse=True)
            self.n_units = len(present)
        self._count_norms: dict[int, Floats] = {}

    @cached_property
    def cells(self) -> Integers | None:
        """Coordinates of all cells of a slice, (n_cells, n_modes - 1); None if they are many."""
        # By the shape alone, which is public.
        shared = [n for m, n in enumerate(self.shape) if m != self.unit_mode]
        if math.prod(shared) > MOST_CELLS:
            return None
        return np.stack([c.ravel() for c in np.indices(shared)], axis=1)

    @property
    def shared(self) -> Integers:
        """Coordinates of the entries in all modes but the units', (n_distinct, n_modes - 1)."""
        return np.delete(self.coordinates, self.unit_mode, axis=1)

    @property
    def places(self) -> Integers:
        """Cells in which units may have entries: all, or those with entries where many."""
        return self.shared if self.cells is None else self.cells

    @cached_property
    def by_cells(self) -> sp.csr_matrix:
        """Values as a matrix of units by cells."""
        shared = [n for m, n in enumerate(self.shape) if m != self.unit_mode]
        columns = np.ravel_multi_index(tuple(self.shared.T), shared).astype(np.int32)
        pointers = np.zeros(self.n_units + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.units, minlength=self.n_units), out=pointers[1:])
        size = (self.n_units, math.prod(shared))
        return sp.csr_matrix((self.values, columns, pointers), size)

    @cached_property
    def cell_table(self) -> tuple[Floats, NDArray[np.bool_]] | None:
        """Values of cells by units, and which there are; None where few are."""
        # Either way all sums are the same, but for the order of units in them.
        matrix = self.by_cells
        if matrix.nnz < DENSE_SHARE * math.prod(matrix.shape):
            return None
        taken = of_same_shape(matrix, np.ones(matrix.nnz, dtype=bool))
        return matrix.toarray(order="F").T, taken.toarray(order="F").T

    def count_norms(self, mode: int) -> Floats:
        """Norm of each unit's numbers of entries in the rows of a mode; 1 without entries."""
        if mode not in self._count_norms:
            self._count_norms[mode] = self._norms_of_counts(self.coordinates[:, mode])
        return self._count_norms[mode]

    def _norms_of_counts(self, rows: Integers) -> Floats:
        if len(self.shape) == 2:
            # No row twice: entries are distinct.
            return np.sqrt(np.maximum(np.bincount(self.units, minlength=self.n_units), 1.0))
        # Runs of equal (unit, row) pairs are the numbers that are not 0.
        order = np.lexsort([rows, self.units])
        units, rows = self.units[order], rows[order]
        first = np.ones(len(units), dtype=bool)
        first[1:] = (units[1:] != units[:-1]) | (rows[1:] != rows[:-1])
        counts = np.bincount(np.cumsum(first) - 1).astype(float)
        squares = np.bincount(units[first], weights=counts**2, minlength=self.n_units)
        return np.sqrt(np.maximum(squares, 1.0))

    def __iter__(self) -> Iterator["SliceChunks"]:
        return iter([self])


def by_unit(
    coordinates: Integers, values: Floats, shape: tuple[int, ...], unit_mode: int
) -> Integers:
    """Order by unit, then by the other modes."""
    # Sorted by value last, so that a mean does not depend on the order of the rows.
    columns = [coordinates[:, unit_mode]]
    columns += [coordinates[:, m] for m in reversed(range(len(shape))) if m != unit_mode]
    if math.prod(shape) >= 2**63:
        return np.lexsort([values, *columns[::-1]])
    # One number for each place, of which few occur twice.
    lengths = [shape[unit_mode], *[n for m, n in enumerate(shape) if m != unit_mode][::-1]]
    keys = np.ravel_multi_index(tuple(columns), lengths)
    order = order_by(keys, math.prod(shape))
    keys = keys[order]
    again = np.zeros(len(keys), dtype=bool)
    again[1:] = keys[1:] == keys[:-1]
    again[:-1] |= again[1:]
    if again.any():
        among = order[again]
        order[again] = among[np.lexsort([values[among], keys[again]])]
    return order


def order_by(keys: Integers, n_keys: int) -> Integers:
    """Order by keys below a number; of few digits by one after the other, the last one first."""
    if n_keys > 2 ** (DIGITS * DIGIT_BITS):
        return np.argsort(keys)
    # Numbers of two bytes are sorted in linear time.
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for place in range(1, DIGITS):
        if n_keys > 2 ** (place * DIGIT_BITS):
            digit = (keys >> (place * DIGIT_BITS)).astype(np.uint16)
            order = order[np.argsort(digit[order], kind="stable")]
    return order


# Public numbers within these leave residuals finite before they are clipped.
SCALE, LARGEST = (1e-100, 1e100), 1e100


@dataclass(frozen=True, eq=False)
class RowCells:
    """Pairs of a row and a column of a matrix that have values; public."""

    index_set: IndexSet  # where values of a matrix were observed
    unit_mode: int  # 0 or 1: mode of the rows; the other one is of columns

    def __post_init__(self) -> None:
        if self.index_set.n_modes != 2 or self.unit_mode not in (0, 1):
            raise ValueError("sums are of the values in a row of a matrix, mode 0 or 1.")

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        shape = self.index_set.shape
        return shape[self.unit_mode], shape[1 - self.unit_mode]

    @cached_property
    def _found(self) -> tuple[Integers, Integers]:
        """Number of each cell, row by row, and which one each entry is in."""
        places = self.index_set
        keys = places.rows(self.unit_mode).astype(np.int64) * self.shape[1]
        keys += places.rows(1 - self.unit_mode)
        order = order_by(keys, math.prod(self.shape))
        keys = keys[order]
        first = np.append(True, keys[1:] != keys[:-1])
        of_entries = np.empty(len(keys), dtype=np.intp)
        of_entries[order] = np.cumsum(first) - 1
        return keys[first], of_entries

    @cached_property
    def rows(self) -> Integers:
        """Row of each cell, in order."""
        return np.asarray(self._found[0] // self.shape[1], dtype=np.intp)

    @cached_property
    def columns(self) -> Integers:
        """Column of each cell."""
        return np.asarray(self._found[0] % self.shape[1], dtype=np.intp)

    @cached_property
    def repeats(self) -> Floats:
        """Number of values in each cell."""
        return self.sums(np.ones(self.index_set.n_entries))

    @property
    def n_cells(self) -> int:
        """How many there are."""
        return len(self._found[0])

    def sums(self, terms: Floats) -> Floats:
        """Sums over the entries of each cell."""
        found = np.bincount(self._found[1], terms, minlength=self.n_cells)
        return np.asarray(found, dtype=np.float64)

    def by_row(self, terms: Floats) -> Floats:
        """Sums over the cells of each row."""
        found = np.bincount(self.rows, terms, minlength=self.shape[0])
        return np.asarray(found, dtype=np.float64)

    def beside(self, terms: Floats) -> Floats:
        """Sums over the other cells of each one's row."""
        return np.asarray(self.by_row(terms)[self.rows] - terms)

    def products(self, cells: Floats, columns: Floats) -> Floats:
        """The matrix with these numbers in its cells, times a table with a line per column."""
        pointers = np.zeros(self.shape[0] + 1, dtype=np.intp)
        np.cumsum(np.bincount(self.rows, minlength=self.shape[0]), out=pointers[1:])
        matrix = sp.csr_matrix((cells, self.columns, pointers), self.shape)
        return np.asarray(matrix @ columns)


@dataclass(frozen=True, eq=False)
class CellResiduals:
    """Residuals of values about a public prediction, clipped to [-1, 1]; the unit is one value."""

    cells: RowCells  # where values of a matrix were observed, and mode of the rows; public
    # (n_observed,): subtracted from values, which are centred; public.
    predictions: Floats = field(repr=False)
    # (n_rows,): of the products of each row, from 0 to 1; public.
    weights: Floats = field(repr=False)
    scale: float  # residual that is clipped to 1; public
    half: float  # half of the width of the range of values; public

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        check_number("the scale", self.scale, SCALE)
        check_shape("predictions", self.predictions, self.cells.index_set.n_entries)
        check_shape("weights", self.weights, self.cells.shape[0])
        check_array("predictions", self.predictions, LARGEST)
        check_array("weights", self.weights, 1.0, least=0.0)

    def clipped(self, chunk: EntryChunks) -> Floats:
        """Residual of each value."""
        return np.clip((chunk.values - self.predictions) / self.scale, -1.0, 1.0)

    @property
    def rows(self) -> Integers:
        """Row of each value."""
        return self.cells.index_set.rows(self.cells.unit_mode)
