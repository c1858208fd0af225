"""Sums of values times what else their row says of released directions; the unit is one value.

Coordinates are public, and so is which values a row has.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sktensor_dp.statistics.observed_entries import SUM_SLACK, EntryChunks
from sktensor_dp.statistics.public_numbers import check_array
from sktensor_dp.statistics.row_cells import CellResiduals
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.oracle import check_shape

# Sums are of integers below 2 to this power, over a power of 2: nothing is rounded in them.
EXACT = 52
# Public numbers within it leave squares of sums of directions finite.
LARGEST_AXIS = 1e60
# Rounding in a row's sums over the sensitivity, for each square of its number of values.
ROW_ROUNDING = 2.0**-50
# Squared lengths below it are taken for it: nothing that short is clipped.
LEAST_SQUARE = 1e-250


@dataclass(frozen=True, eq=False)
class EntryDirections(CellResiduals):
    """Sums over rows of their residuals, times what their other residuals say of directions.

    A residual is what a public prediction leaves of a value, clipped to [-1, 1] and multiplied
    by the root of its row's public weight. A row's residuals in the same column are added. What
    a row says of directions is the sum of its residuals times public axes of their columns. Each
    residual is multiplied by that sum over all other columns, clipped to a public length.
    """

    axes: Floats = field(repr=False)  # (n_columns, r): directions; public
    # (n_rows,): that the sums of each row are clipped to; public.
    lengths: Floats = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        n_rows, n_columns = self.cells.shape
        check_shape("lengths", self.lengths, n_rows)
        if self.axes.ndim != 2 or len(self.axes) != n_columns or self.axes.shape[1] == 0:
            raise ValueError(f"axes must have shape ({n_columns}, r); got {self.axes.shape}.")
        check_array("axes", self.axes, LARGEST_AXIS)
        check_array("lengths", self.lengths, LARGEST_AXIS, least=0.0)

    @cached_property
    def l2_sensitivity(self) -> float:
        """One value moves its column by a length, and the row's others by its own axis."""
        cells, limits = self.cells, self._limits
        squares = cells.beside(cells.repeats**2)
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
        others = cells.beside(cells.repeats)
        axes = np.sqrt(np.square(self.axes).sum(axis=1))[cells.columns]
        reach = np.where(others > 0, self.lengths[cells.rows], 0.0)
        moves = 2 * limits * math.sqrt(r) * (reach + limits * axes * others)
        numbers = cells.by_row(np.ones(cells.n_cells))[cells.rows] * r
        return self._slack * (float((moves + numbers / self._grid).max()) or 1.0)

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums in each column, of shape (n_columns, r)."""
        cells = self.cells
        residuals = cells.sums(np.sqrt(self.weights)[self.rows] * self.clipped(chunk))
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
