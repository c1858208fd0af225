"""Sums of products of two values of a row; the unit of privacy is one value.

Coordinates are public, and so is which values a row has.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sktensor_dp.statistics.observed_entries import SUM_SLACK, EntryChunks
from sktensor_dp.statistics.row_cells import CellResiduals
from sktensor_dp.tensor.arrays import Floats

# Residuals are rounded to so many binary digits at most, so that all sums are exact: of
# integers below 2 to this power.
DIGITS, EXACT = 12, 52
# Numbers of a block of rows that are held at once.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True, eq=False)
class EntryPairs(CellResiduals):
    """Sum over the rows of one mode of products of their residuals in two columns.

    A residual is what a public prediction leaves of a value, clipped to [-1, 1]. Those of a row
    are multiplied by the root of a public weight and rounded to a public grid. A row's
    residuals in the same column are added; products are those of two different columns.
    """

    @cached_property
    def l2_sensitivity(self) -> float:
        """One value moves its row's products with all other columns."""
        return self._largest_move(np.sqrt(self.cells.beside(self.cells.repeats**2)))

    @cached_property
    def l1_sensitivity(self) -> float:
        """The same moves, added."""
        return self._largest_move(self.cells.beside(self.cells.repeats))

    def _largest_move(self, others: Floats) -> float:
        # Where nothing can move any number is right.
        moves = 2 * self._limits[self.cells.rows] ** 2 * others
        return SUM_SLACK * (float(moves.max()) or 1.0)

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums of the products of columns i < j, of shape (n_columns (n_columns - 1) / 2,)."""
        residuals = np.rint(self._limits[self.rows] * self._grid * self.clipped(chunk))
        return self._pairs(residuals) / self._grid**2

    def counts(self) -> Floats:
        """What the total would be if all residuals were 1; public."""
        return self._pairs(self._limits[self.rows] * self._grid) / self._grid**2

    def _pairs(self, residuals: Floats) -> Floats:
        """Products of integers, which add up without rounding."""
        cells, (n_rows, n_columns) = self.cells, self.cells.shape
        places, mode = cells.index_set, cells.unit_mode
        matrix = places.matrix(places.sort(residuals, mode), mode, 1 - mode)
        sums = np.zeros((n_columns, n_columns))
        step = max(1, BLOCK_NUMBERS // n_columns)
        for first in range(0, n_rows, step):
            block = matrix[first : first + step].toarray()
            sums += block.T @ block
        return np.asarray(sums[np.triu_indices(n_columns, 1)], dtype=np.float64)

    @cached_property
    def _grid(self) -> float:
        """Steps of the grid to 1: few enough that no sum exceeds what doubles count to."""
        largest = self.cells.index_set.n_entries * float(self.cells.repeats.max())
        digits = (EXACT - math.ceil(math.log2(largest))) // 2
        return 2.0 ** max(0, min(DIGITS, digits))

    @cached_property
    def _limits(self) -> Floats:
        """Largest residual of each row on the grid, in [0, 1]."""
        return np.asarray(np.floor(np.sqrt(self.weights) * self._grid) / self._grid)
