"""Queries on the entries of a tensor whose unit of privacy is one value; and one for any unit."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.data.entries import EntryChunks, IndexSet
from sktensor_dp.data.sums import SUM_SLACK, sums_by_row
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE, PIECEWISE
from sktensor_dp.queries.query import HALF, Query, bins_of, check_array, check_number
from sktensor_dp.tensor.arrays import Floats, Integers, check_shape, rows_at_once

# Range for the largest of some numbers whose squares are taken: no overflow, and few digits are
# lost.
WEIGHT_SIZES = (1e-100, 1e120)
# Residuals are rounded to at most so many binary digits; sums of integers below 2**52 are exact.
MOST_DIGITS, EXACT = 12, 52
# Ranges of public numbers for which residuals are finite before they are clipped.
SCALE, LARGEST = (1e-100, 1e100), 1e100


@dataclass(frozen=True, eq=False)
class ValueHistogram(Query):
    """Sum over units of the share of a unit's values in each bin, to choose a range from.

    A unit is one value, or all values of a person.
    """

    # It reads chunks of entries as well as of persons: any `ValueRange` with `shares`.
    name, family = "value_histogram", "persons"
    description = "mean over units of the share of values in each bin, from which a range is chosen"
    laws = (GAUSSIAN, LAPLACE)

    edges: Floats  # increasing; public

    # Contributions lie in the probability simplex, or are 0 for units without values.
    l2_sensitivity = math.sqrt(2) * SUM_SLACK
    l1_sensitivity = 2 * SUM_SLACK

    def total(self, chunk: Any) -> Floats:
        """Sum of shares in each bin of values in units of the data, of shape (n_edges - 1,)."""
        bins = bins_of(chunk.values + chunk.middle, self.edges)
        return sums_by_row(bins, chunk.shares, len(self.edges) - 1)


@dataclass(frozen=True)
class Entries(Query):
    """All values themselves, released one by one.

    It is the sum over units, which are single values, of vectors that have a unit's value at its
    place and 0 elsewhere.
    """

    name, family = "entries", "entries"
    description = "the value of every entry"
    laws = (GAUSSIAN, PIECEWISE)

    # Half of the width R of the range; public. Other queries limit R, as they multiply values; this
    # one takes any that noise can be scaled by.
    half: float

    @property
    def l2_sensitivity(self) -> float:
        """Width of the range: replacing one value moves it by no more."""
        return 2 * self.half

    l1_sensitivity = l2_sensitivity

    def total(self, chunk: EntryChunks) -> Floats:
        """Centred values of `chunk`, each at its place; shape (n_observed,)."""
        return chunk.values.copy()


@dataclass(frozen=True, eq=False)
class RowSums(Query):
    """Weighted sums of the values in each row of every mode, and a weighted sum of their squares.

    The unit of privacy is one value.
    """

    name, family = "row_sums", "entries"
    description = "weighted sums of the values in each row of each mode, and of all squares"
    laws = (GAUSSIAN, LAPLACE)

    index_set: IndexSet  # where values were observed; public
    weights: Floats  # (n_observed, n_modes): in the sum of the row of each mode; public
    half: float  # half of R; public

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        shape = self.index_set.coordinates.shape
        if self.weights.shape != shape or not np.isfinite(self.weights).all():
            raise ValueError(
                f"weights must be finite, of shape {shape}; got shape {self.weights.shape}."
            )
        if not self.weights.any():
            raise ValueError("weights must not all be 0: nothing would be released.")
        check_number("the largest weight", np.abs(self.weights).max(), WEIGHT_SIZES)

    @cached_property
    def l2_sensitivity(self) -> float:
        """Width of the range times the largest L2 norm of an entry's weights over the modes.

        The sum of squares adds nothing: the farther apart two values are, the less their squares
        can differ (`square_weight`).
        """
        return 2 * self.half * SUM_SLACK * self._largest_norm

    @cached_property
    def l1_sensitivity(self) -> float:
        """Width of the range times the largest L1 norm of an entry's weights over the modes."""
        return 2 * self.half * SUM_SLACK * float(np.abs(self.weights).sum(axis=1).max())

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums for the rows of mode 0, then of mode 1, and so on, and that of squares, at last."""
        modes = range(len(self.index_set.shape))
        sums = [self.index_set.sums(m, self.weights[:, m] * chunk.values) for m in modes]
        return np.append(np.concatenate(sums), self.square_weight * np.square(chunk.values).sum())

    @property
    def square_weight(self) -> float:
        """Weight of squares of values about the middle of the range, at which they cost nothing."""
        return self._largest_norm / 2 / self.half

    @cached_property
    def _largest_norm(self) -> float:
        """Largest L2 norm of an entry's weights over the modes."""
        return float(np.sqrt(np.square(self.weights).sum(axis=1)).max())


@dataclass(frozen=True, eq=False)
class EntryPairs(Query):
    """For each pair of columns of a matrix: sum over rows of the product of the two residuals."""

    name, family = "entry_pairs", "entries"
    description = "sums over rows of products of their clipped residuals in two columns"
    laws = (GAUSSIAN, LAPLACE)

    # A residual is (value - public prediction) / `scale`, clipped to [-1, 1], times the root of its
    # row's weight, rounded to a public grid. Residuals in one cell are added.

    index_set: IndexSet  # where values of a matrix were observed; public
    # (n_observed,): public predictions, which are subtracted from centred values.
    predictions: Floats = field(repr=False)
    # (n_rows,): public weight of the products of each row, from 0 to 1.
    weights: Floats = field(repr=False)
    scale: float  # residual that is clipped to 1; public
    half: float  # half of the width of the range of values; public

    def __post_init__(self) -> None:
        if self.index_set.n_modes != 2:
            raise ValueError(f"index_set must have the 2 modes of a matrix: {self.index_set.shape}")
        check_number("half the range", self.half, HALF)
        check_number("the scale", self.scale, SCALE)
        check_shape("predictions", self.predictions, self.index_set.n_entries)
        check_shape("weights", self.weights, self.index_set.shape[0])
        check_array("predictions", self.predictions, LARGEST)
        check_array("weights", self.weights, 1.0, least=0.0)

    @cached_property
    def l2_sensitivity(self) -> float:
        """Largest L2 change between neighbours."""
        return self._largest_move(np.sqrt(self._sum_of_others(self._repeats.data**2)))

    @cached_property
    def l1_sensitivity(self) -> float:
        """Largest L1 change between neighbours."""
        return self._largest_move(self._sum_of_others(self._repeats.data))

    def _largest_move(self, others: Floats) -> float:
        """Bound on the change by one value, above 0: where nothing changes, 1 is a bound too.

        `others` (n_cells,) are norms of the numbers of values in the other cells of a row.
        """
        # One value moves its residual by twice the row's limit, and the product with each residual
        # in another column by that times a limit.
        moves = 2 * self._limits[self._rows] ** 2 * others
        return SUM_SLACK * (float(moves.max()) or 1.0)

    @cached_property
    def _repeats(self) -> sp.csr_matrix:
        """Number of observed values in each cell, (n_rows, n_columns)."""
        matrix = self.index_set.matrix(np.ones(self.index_set.n_entries), mode=0, other=1).copy()
        matrix.sum_duplicates()
        return matrix

    @property
    def _rows(self) -> Integers:
        """Row of each cell that holds values, in order."""
        return np.repeat(np.arange(self.index_set.shape[0]), np.diff(self._repeats.indptr))

    def _sum_of_others(self, terms: Floats) -> Floats:
        """Sum of `terms` (n_cells,) over the other cells in the row of each cell; (n_cells,)."""
        return np.asarray(np.bincount(self._rows, terms)[self._rows] - terms)

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums of the products of columns i < j, of shape (n_columns (n_columns - 1) / 2,)."""
        residuals = np.rint(
            self._steps * np.clip((chunk.values - self.predictions) / self.scale, -1.0, 1.0)
        )
        return self._pairs(residuals) / self._grid**2

    def counts(self) -> Floats:
        """Largest possible sums, with all residuals at 1: public, to turn sums into means."""
        return self._pairs(self._steps) / self._grid**2

    def _pairs(self, residuals: Floats) -> Floats:
        """Sums over rows of products of two columns, i < j, of integer residuals: exact."""
        n_rows, n_columns = self.index_set.shape
        matrix = self.index_set.matrix(self.index_set.sort(residuals, mode=0), mode=0, other=1)
        sums = np.zeros((n_columns, n_columns))
        step = rows_at_once(n_columns, caches=2)
        for first in range(0, n_rows, step):
            block = matrix[first : first + step].toarray()
            sums += block.T @ block
        return np.asarray(sums[np.triu_indices(n_columns, 1)], dtype=np.float64)

    @property
    def _steps(self) -> Floats:
        """Largest residual of each value, in steps of the grid; (n_entries,)."""
        return np.asarray(self._limits[self.index_set.rows(0)] * self._grid)

    @cached_property
    def _grid(self) -> float:
        """Steps of the grid to 1: a power of 2, small enough that sums of products are exact."""
        largest = self.index_set.n_entries * float(self._repeats.max())
        digits = (EXACT - math.ceil(math.log2(largest))) // 2
        return 2.0 ** max(0, min(MOST_DIGITS, digits))

    @cached_property
    def _limits(self) -> Floats:
        """Largest residual of each row: the root of its weight, rounded down to the grid."""
        return np.asarray(np.floor(np.sqrt(self.weights) * self._grid) / self._grid)
