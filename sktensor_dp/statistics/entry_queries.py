"""Queries on values at public coordinates; the unit of privacy is one value.

Values are clamped to a public range of width R and centred on its middle, so that
replacing one moves it by R at most, and nothing else. Whatever is computed from
coordinates and from released parameters alone is public.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sktensor_dp.statistics.jacobians import Jacobian
from sktensor_dp.statistics.observed_entries import SUM_SLACK, EntryChunks, IndexSet
from sktensor_dp.statistics.public_numbers import HALF, check_number
from sktensor_dp.statistics.row_frames import RowFrames
from sktensor_dp.tensor.arrays import Floats

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
        """The same moves, added."""
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
        """The same in the L1 norm."""
        return self._largest_move(self.jacobian.absolute_norms())

    def _largest_move(self, norms: Floats) -> float:
        # Where nothing can move, any noise is enough.
        return SUM_SLACK * (float((2 * self.half * norms).max()) or 2 * self.half)

    def total(self, chunk: EntryChunks) -> Floats:
        """``sum_e x_e J_e``, of shape (n_parameters,)."""
        return self.jacobian.scatter(np.clip(chunk.values, -self.half, self.half))
