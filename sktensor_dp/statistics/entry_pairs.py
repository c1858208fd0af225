"""Sums of products of two values of a row; the unit of privacy is one value.

Coordinates are public, and so is which values a row has.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from sktensor_dp.statistics.observed_entries import SUM_SLACK, EntryChunks, IndexSet
from sktensor_dp.statistics.public_numbers import HALF, check_array, check_number
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.oracle import check_shape

# Residuals are rounded to so many binary digits at most, so that all sums are exact: of
# integers below 2 to this power.
DIGITS, EXACT = 12, 52
# Public numbers within these leave residuals finite before they are clipped.
SCALE, LARGEST = (1e-100, 1e100), 1e100
# Numbers of a block of rows that are held at once.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True, eq=False)
class EntryPairs:
    """Sum over the rows of one mode of products of their residuals in two columns.

    A residual is what a public prediction leaves of a value, clipped to [-1, 1]. Those of a row
    are multiplied by the root of a public weight and rounded to a public grid. A row's
    residuals in the same column are added; products are those of two different columns.
    """

    index_set: IndexSet  # where values of a matrix were observed; public
    unit_mode: int  # 0 or 1: mode of the rows; the other one is of columns
    # (n_observed,): subtracted from values, which are centred; public.
    predictions: Floats = field(repr=False)
    # (n_rows,): of the products of each row, from 0 to 1; public.
    weights: Floats = field(repr=False)
    scale: float  # residual that is clipped to 1; public
    half: float  # half of the width of the range of values; public

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        check_number("the scale", self.scale, SCALE)
        places = self.index_set
        if places.n_modes != 2 or self.unit_mode not in (0, 1):
            raise ValueError("pairs are of the values in a row of a matrix, mode 0 or 1.")
        check_shape("predictions", self.predictions, places.n_entries)
        check_shape("weights", self.weights, places.shape[self.unit_mode])
        check_array("predictions", self.predictions, LARGEST)
        check_array("weights", self.weights, 1.0, least=0.0)

    @cached_property
    def l2_sensitivity(self) -> float:
        """One value moves its row's products with all other columns."""
        repeats, limits = self._repeats, self._limits_of_repeats
        squares = self._by_row(repeats.data**2) - repeats.data**2
        # Where nothing can move any number is right.
        return SUM_SLACK * (float((2 * limits**2 * np.sqrt(squares)).max()) or 1.0)

    @cached_property
    def l1_sensitivity(self) -> float:
        """The same moves, added."""
        repeats, limits = self._repeats, self._limits_of_repeats
        others = self._by_row(repeats.data) - repeats.data
        return SUM_SLACK * (float((2 * limits**2 * others).max()) or 1.0)

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums of the products of columns i < j, of shape (n_columns (n_columns - 1) / 2,)."""
        clipped = np.clip((chunk.values - self.predictions) / self.scale, -1.0, 1.0)
        limits = self._limits[self.index_set.rows(self.unit_mode)]
        residuals = np.rint(limits * self._grid * clipped)
        return self._pairs(residuals) / self._grid**2

    def counts(self) -> Floats:
        """What the total would be if all residuals were 1; public."""
        limits = self._limits[self.index_set.rows(self.unit_mode)]
        return self._pairs(limits * self._grid) / self._grid**2

    def _pairs(self, residuals: Floats) -> Floats:
        """Products of integers, which add up without rounding."""
        places, other = self.index_set, 1 - self.unit_mode
        matrix = places.matrix(places.sort(residuals, self.unit_mode), self.unit_mode, other)
        n_columns = places.shape[other]
        sums = np.zeros((n_columns, n_columns))
        step = max(1, BLOCK_NUMBERS // n_columns)
        for first in range(0, places.shape[self.unit_mode], step):
            block = matrix[first : first + step].toarray()
            sums += block.T @ block
        return np.asarray(sums[np.triu_indices(n_columns, 1)], dtype=np.float64)

    @cached_property
    def _repeats(self) -> sp.csr_matrix:
        """Number of values at each pair of a row and a column."""
        ones, other = np.ones(self.index_set.n_entries), 1 - self.unit_mode
        found = self.index_set.matrix(ones, self.unit_mode, other).copy()
        found.sum_duplicates()
        return found

    @property
    def _limits_of_repeats(self) -> Floats:
        return np.repeat(self._limits, np.diff(self._repeats.indptr))

    def _by_row(self, terms: Floats) -> Floats:
        """Sums over a row, at each of its columns."""
        repeats = self._repeats
        lengths = np.diff(repeats.indptr)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        return np.asarray(np.bincount(rows, terms, minlength=len(lengths))[rows], dtype=np.float64)

    @cached_property
    def _grid(self) -> float:
        """Steps of the grid to 1: few enough that no sum exceeds what doubles count to."""
        largest = self.index_set.n_entries * float(self._repeats.data.max())
        digits = (EXACT - math.ceil(math.log2(largest))) // 2
        return 2.0 ** max(0, min(DIGITS, digits))

    @cached_property
    def _limits(self) -> Floats:
        """Largest residual of each row on the grid, in [0, 1]."""
        return np.asarray(np.floor(np.sqrt(self.weights) * self._grid) / self._grid)
