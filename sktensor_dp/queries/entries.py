"""Queries whose unit of privacy is one value at public coordinates."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sktensor_dp.queries.gradients import Jacobian, RowFrames
from sktensor_dp.queries.observed_entries import SUM_SLACK, CellResiduals, EntryChunks, IndexSet
from sktensor_dp.queries.query import HALF, check_number
from sktensor_dp.tensor.arrays import Floats, rows_at_once

# Of the largest of numbers of which squares are taken: few digits are lost, none overflows.
SIZES = (1e-100, 1e120)


@dataclass(frozen=True)
class Entries:
    """The values themselves.

    Parameters
    ----------
    half : float
        Half of R; public.
    """

    # Nothing is multiplied with it: the bound holds for any R that noise can be scaled by.
    half: float

    @property
    def l2_sensitivity(self) -> float:
        """One value moves, by R at most."""
        return 2 * self.half

    l1_sensitivity = l2_sensitivity

    def total(self, chunk: EntryChunks) -> Floats:
        """Values, of shape (n_observed,)."""
        return chunk.values.copy()


@dataclass(frozen=True, eq=False)
class RowSums:
    """Weighted sums of the values in each row of each mode.

    Parameters
    ----------
    index_set : IndexSet
        Where values were observed; public.
    weights : ndarray of shape (n_observed, n_modes)
        Weight of an entry in the sum of its row of each mode; public.
    half : float
        Half of R; public.
    """

    index_set: IndexSet
    weights: Floats
    half: float

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        shape = self.index_set.coordinates.shape
        if self.weights.shape != shape or not np.isfinite(self.weights).all():
            raise ValueError(
                f"weights must be finite, of shape {shape}; got shape {self.weights.shape}."
            )
        if not self.weights.any():
            raise ValueError("weights must not all be 0: nothing would be released.")
        check_number("the largest weight", np.abs(self.weights).max(), SIZES)

    @cached_property
    def l2_sensitivity(self) -> float:
        """One value moves a sum of each mode by its weight there."""
        norms = np.sqrt(np.square(self.weights).sum(axis=1))
        return 2 * self.half * SUM_SLACK * float(norms.max())

    @cached_property
    def l1_sensitivity(self) -> float:
        """Largest sum of absolute changes between neighbours."""
        return 2 * self.half * SUM_SLACK * float(np.abs(self.weights).sum(axis=1).max())

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums of the first mode's rows, then of the second's, and so on."""
        modes = range(len(self.index_set.shape))
        sums = [self.index_set.sums(m, self.weights[:, m] * chunk.values) for m in modes]
        return np.concatenate(sums)


@dataclass(frozen=True, eq=False)
class RidgeBlock:
    """Rows ``A^-1 sum_e x_e z_e`` of one factor by ridge regression, ``A = sum z z' + ridge``.

    The sums run over the entries of a row, with public z. Each row is divided by the largest
    ``|A^-1 z|`` of its entries.

    Parameters
    ----------
    frames : RowFrames
        Holds the index set, the mode and z.
    half : float
        Half of R; public.
    """

    frames: RowFrames
    half: float

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)

    l1_sensitivity = math.inf

    @property
    def l2_sensitivity(self) -> float:
        """One value moves one row, by ``R |A^-1 z|`` over the largest such norm."""
        return 2 * self.half * SUM_SLACK

    @property
    def scales(self) -> Floats:
        """Divisors of the rows, of shape (n_rows,)."""
        return self.frames.largest

    def total(self, chunk: EntryChunks) -> Floats:
        """Rows over their scales, of shape (n_rows, r)."""
        return self.frames.coordinates(chunk.values)


@dataclass(frozen=True, eq=False)
class EntryGradients:
    """Sum over entries of ``x_e J_e``, J_e the Jacobian of the model's value in all parameters.

    Up to public terms it is minus the gradient of half the squared error.

    Parameters
    ----------
    jacobian : Jacobian
        Of the model at released parameters; public.
    half : float
        Half of R; public.
    """

    jacobian: Jacobian
    half: float

    def __post_init__(self) -> None:
        largest = self._norms.max()
        check_number("half the range", self.half, HALF)
        # Where nothing can move there is nothing to multiply with; NaN is not 0.
        if largest != 0:
            check_number("the largest norm of the Jacobian", largest, SIZES)

    @cached_property
    def _norms(self) -> Floats:
        return self.jacobian.norms()

    @property
    def l2_sensitivity(self) -> float:
        """One value moves by R at most, and its ``J_e`` times as far."""
        return self._largest_move(self._norms)

    @cached_property
    def l1_sensitivity(self) -> float:
        """L1 sensitivity."""
        return self._largest_move(self.jacobian.absolute_norms())

    def _largest_move(self, norms: Floats) -> float:
        # Where nothing can move, any noise is enough.
        return SUM_SLACK * (float((2 * self.half * norms).max()) or 2 * self.half)

    def total(self, chunk: EntryChunks) -> Floats:
        """``sum_e x_e J_e``, of shape (n_parameters,)."""
        return self.jacobian.scatter(np.clip(chunk.values, -self.half, self.half))


# Residuals are rounded to so many binary digits at most, so that all sums are exact: of
# integers below 2 to this power.
MOST_DIGITS, EXACT = 12, 52


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
        """Largest sum of absolute changes between neighbours."""
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
        """Total of residuals that are all 1; public."""
        return self._pairs(self._limits[self.rows] * self._grid) / self._grid**2

    def _pairs(self, residuals: Floats) -> Floats:
        """Products of integers, which add up without rounding."""
        cells, (n_rows, n_columns) = self.cells, self.cells.shape
        places, mode = cells.index_set, cells.unit_mode
        matrix = places.matrix(places.sort(residuals, mode), mode, 1 - mode)
        sums = np.zeros((n_columns, n_columns))
        step = rows_at_once(n_columns, caches=2)
        for first in range(0, n_rows, step):
            block = matrix[first : first + step].toarray()
            sums += block.T @ block
        return np.asarray(sums[np.triu_indices(n_columns, 1)], dtype=np.float64)

    @cached_property
    def _grid(self) -> float:
        """Steps of the grid to 1: few enough that no sum exceeds what doubles count to."""
        largest = self.cells.index_set.n_entries * float(self.cells.repeats.max())
        digits = (EXACT - math.ceil(math.log2(largest))) // 2
        return 2.0 ** max(0, min(MOST_DIGITS, digits))

    @cached_property
    def _limits(self) -> Floats:
        """Largest residual of each row on the grid, in [0, 1]."""
        return np.asarray(np.floor(np.sqrt(self.weights) * self._grid) / self._grid)
