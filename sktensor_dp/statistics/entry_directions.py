"""Sums of values times what else their row says of released directions; the unit is one value.

Coordinates are public, and so is which values a row has.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from sktensor_dp.statistics.observed_entries import SUM_SLACK, EntryChunks, IndexSet
from sktensor_dp.statistics.public_numbers import HALF, check_array, check_number
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.tensor.oracle import check_shape

# Sums are of integers below 2 to this power, over a power of 2: nothing is rounded in them.
EXACT = 52
# Public numbers within these leave residuals finite before they are clipped, and squares of
# sums of directions.
SCALE, LARGEST, LARGEST_AXIS = (1e-100, 1e100), 1e100, 1e60
# Rounding in a row's sums over the sensitivity, for each square of its number of values.
ROW_ROUNDING = 2.0**-50
# Squared lengths below it are taken for it: nothing that short is clipped.
LEAST_SQUARE = 1e-250


@dataclass(frozen=True, eq=False)
class RowCells:
    """Pairs of a row and a column of a matrix that have values; public."""

    index_set: IndexSet  # where values of a matrix were observed
    unit_mode: int  # 0 or 1: mode of the rows; the other one is of columns

    def __post_init__(self) -> None:
        if self.index_set.n_modes != 2 or self.unit_mode not in (0, 1):
            raise ValueError("directions are of the values in a row of a matrix, mode 0 or 1.")

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
        order = np.argsort(keys, kind="stable")
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

    def products(self, cells: Floats, columns: Floats) -> Floats:
        """The matrix with these numbers in its cells, times a table with a line per column."""
        pointers = np.zeros(self.shape[0] + 1, dtype=np.intp)
        np.cumsum(np.bincount(self.rows, minlength=self.shape[0]), out=pointers[1:])
        matrix = sp.csr_matrix((cells, self.columns, pointers), self.shape)
        return np.asarray(matrix @ columns)


@dataclass(frozen=True, eq=False)
class EntryDirections:
    """Sums over rows of their residuals, times what their other residuals say of directions.

    A residual is what a public prediction leaves of a value, clipped to [-1, 1] and multiplied
    by the root of its row's public weight. A row's residuals in the same column are added. What
    a row says of directions is the sum of its residuals times public axes of their columns. Each
    residual is multiplied by that sum over all other columns, clipped to a public length.
    """

    cells: RowCells  # where values of a matrix were observed, and mode of the rows; public
    # (n_observed,): subtracted from values, which are centred; public.
    predictions: Floats = field(repr=False)
    # (n_rows,): of the products of each row, from 0 to 1; public.
    weights: Floats = field(repr=False)
    scale: float  # residual that is clipped to 1; public
    axes: Floats = field(repr=False)  # (n_columns, r): directions; public
    # (n_rows,): that the sums of each row are clipped to; public.
    lengths: Floats = field(repr=False)
    half: float  # half of the width of the range of values; public

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        check_number("the scale", self.scale, SCALE)
        n_rows, n_columns = self.cells.shape
        check_shape("predictions", self.predictions, self.cells.index_set.n_entries)
        check_shape("weights", self.weights, n_rows)
        check_shape("lengths", self.lengths, n_rows)
        if self.axes.ndim != 2 or len(self.axes) != n_columns or self.axes.shape[1] == 0:
            raise ValueError(f"axes must have shape ({n_columns}, r); got {self.axes.shape}.")
        check_array("predictions", self.predictions, LARGEST)
        check_array("weights", self.weights, 1.0, least=0.0)
        check_array("axes", self.axes, LARGEST_AXIS)
        check_array("lengths", self.lengths, LARGEST_AXIS, least=0.0)

    @cached_property
    def l2_sensitivity(self) -> float:
        """One value moves its column by a length, and the row's others by its own axis."""
        cells, limits = self.cells, self._limits
        squares = cells.by_row(cells.repeats**2)[cells.rows] - cells.repeats**2
        axes = np.square(self.axes).sum(axis=1)[cells.columns]
        reach = np.where(squares > 0, self.lengths[cells.rows], 0.0)
        moves = 2 * limits * np.hypot(reach, limits * np.sqrt(axes * squares))
        numbers = cells.by_row(np.ones(cells.n_cells))[cells.rows] * self.axes.shape[1]
        # Where nothing can move any number is right.
        return self._slack * (float((moves + np.sqrt(numbers) / self._grid).max()) or 1.0)

    @cached_property
    def l1_sensitivity(self) -> float:
        """The same moves, added; each of r numbers that are no longer than their length."""
        cells, limits, r = self.cells, self._limits, self.axes.shape[1]
        others = cells.by_row(cells.repeats)[cells.rows] - cells.repeats
        axes = np.sqrt(np.square(self.axes).sum(axis=1))[cells.columns]
        reach = np.where(others > 0, self.lengths[cells.rows], 0.0)
        moves = 2 * limits * math.sqrt(r) * (reach + limits * axes * others)
        numbers = cells.by_row(np.ones(cells.n_cells))[cells.rows] * r
        return self._slack * (float((moves + numbers / self._grid).max()) or 1.0)

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums in each column, of shape (n_columns, r)."""
        cells = self.cells
        roots = np.sqrt(self.weights)[cells.index_set.rows(cells.unit_mode)]
        clipped = np.clip((chunk.values - self.predictions) / self.scale, -1.0, 1.0)
        residuals = cells.sums(roots * clipped)
        sums = cells.products(residuals, self.axes)
        squares = np.zeros(cells.n_cells)
        for axis in range(self.axes.shape[1]):
            squares += self._others(residuals, sums, axis) ** 2
        lengths = np.sqrt(np.maximum(squares, LEAST_SQUARE))
        scaled = residuals * np.minimum(self.lengths[cells.rows] / lengths, 1.0)
        found = np.empty_like(self.axes, dtype=np.float64)
        for axis in range(self.axes.shape[1]):
            terms = np.rint(self._grid * scaled * self._others(residuals, sums, axis))
            found[:, axis] = np.bincount(cells.columns, terms, minlength=len(found))
        return found / self._grid

    def _others(self, residuals: Floats, sums: Floats, axis: int) -> Floats:
        """What the other columns of each cell's row say of one direction."""
        cells, axes = self.cells, self.axes[:, axis]
        return np.asarray(sums[cells.rows, axis] - residuals * axes[cells.columns])

    @property
    def _limits(self) -> Floats:
        """Largest residual of each cell's row."""
        return np.asarray(np.sqrt(self.weights)[self.cells.rows])

    @property
    def _slack(self) -> float:
        """Pays for rounding in sums over a row, which grows with its number of values."""
        most = float(self.cells.by_row(self.cells.repeats).max())
        return SUM_SLACK * (1 + ROW_ROUNDING * most**2 * float(self.cells.repeats.max()))

    @cached_property
    def _grid(self) -> float:
        """Steps of the grid to 1: few enough that no sum exceeds what doubles count to."""
        largest = 2 * self.cells.index_set.n_entries * float(self.lengths.max(initial=0.0))
        return 2.0 ** min(EXACT - math.ceil(math.log2(largest)), EXACT) if largest > 0 else 1.0
