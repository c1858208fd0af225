"""Sums over the units of a matrix for its shared factor, a block of units at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.observed_entries import SliceChunks
from sktensor_dp.statistics.sums import AccurateSum, blocks
from sktensor_dp.tensor.cell_units import CellUnits
from sktensor_dp.tensor.small_systems import positive_pivots
from sktensor_dp.tensor.unit_parameters import N_PLAIN

__all__ = ["UnitSums", "sum_of_moments"]

Floats = NDArray[np.float64]

# Units of a block: their systems, side by side, stay in a cache. No power of 2, by which
# rows of them would share lines of it. As many are added one after the other.
UNITS_AT_ONCE = 750
# Raises the eigenvalues of a moment, relative to their sum: far above rounding in a test for
# negative ones, and far below what is released.
LEAST_EIGENVALUE = 1e-12
# Lengths below it are taken for 0: squares of what is above are far from underflow.
LEAST_LENGTH = 1e-100


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums of residuals times weights in each cell, and of second moments of weights.

    Parameters
    ----------
    units : CellUnits
        Posteriors of units from their entries.
    scale : float
        Residual that is clipped to 1.
    slope_scale : float
        Length of weights that is clipped to 1.
    moment_weight : float
        Of a moment of norm 1.
    whole : bool, default=False
        Whether a unit's residuals and weights are each divided by their own length.
    """

    units: CellUnits
    scale: float
    slope_scale: float
    moment_weight: float
    whole: bool = False

    def total(self, chunk: SliceChunks) -> Floats:
        """Rows of sums, then those of the weighted moment: (n_cells + r, r) numbers."""
        by_cells, result = chunk.by_cells, AccurateSum()
        for span in blocks(chunk.n_units, UNITS_AT_ONCE):
            pointers = by_cells.indptr[span.start : span.stop + 1]
            inside = slice(pointers[0], pointers[-1])
            columns = by_cells.indices[inside]
            left = by_cells.data[inside] - self.units.offsets.take(columns)
            shape = (len(pointers) - 1, by_cells.shape[1])
            layout = (left, columns, pointers - pointers[0])
            result.add(self._of_units(sp.csr_matrix(layout, shape)))
        return result.value()

    def _of_units(self, left: sp.csr_matrix) -> Floats:
        counts = np.diff(left.indptr)
        means, second = self.units.posteriors(left)
        weights = means[N_PLAIN:]
        residuals = left.data - self.units.plain_terms(means, left.indices, counts)
        residuals /= self.scale
        np.clip(residuals, -1.0, 1.0, out=residuals)
        slopes = weights / self.slope_scale
        squares = slopes[0] ** 2
        for row in slopes[1:]:
            squares += row**2
        lengths = np.sqrt(squares)
        # Cells are rows of the factor, and a unit has one entry in each at most.
        if self.whole:
            slopes *= _inverses(lengths) * _inverses(_lengths(residuals, left.indptr))
        else:
            slopes /= np.maximum(lengths, 1.0) * np.sqrt(np.maximum(counts, 1))
        of = sp.csr_matrix((residuals, left.indices, left.indptr), left.shape)
        second += weights[:, None] * weights
        second *= (counts > 0) / self.slope_scale**2
        moment = sum_of_moments(second, self.moment_weight)
        return np.concatenate([of.T @ np.ascontiguousarray(slopes.T), moment])


def _lengths(values: Floats, pointers: NDArray[Any]) -> Floats:
    """Of each unit's values, added in the order of its entries."""
    layout = (values**2, np.zeros(len(values), dtype=np.int32), pointers)
    squares = sp.csr_matrix(layout, (len(pointers) - 1, 1)) @ np.ones(1)
    return np.sqrt(squares)


def _inverses(lengths: Floats) -> Floats:
    """One over each length; 0 where it is none, or not finite."""
    usable = (lengths > LEAST_LENGTH) & np.isfinite(lengths)
    return np.where(usable, 1 / np.where(usable, lengths, 1.0), 0.0)


def sum_of_moments(moments: Floats, weight: float) -> Floats:
    """Sum of (r, r, n) moments, made symmetric and positive, and shortened to a length."""
    # Products that cancel may leave a moment indefinite, and with it an obtuse angle.
    diagonal = np.arange(len(moments))
    with np.errstate(all="ignore"):
        # Pivots say nothing of matrices that are not symmetric to the last bit.
        moments = moments / 2 + moments.transpose(1, 0, 2) / 2
        ridge = moments[0, 0].copy()
        for k in diagonal[1:]:
            ridge += moments[k, k]
        moments[diagonal, diagonal] += LEAST_EIGENVALUE * ridge
        unsafe = np.flatnonzero(~positive_pivots(moments.copy()))
        if len(unsafe):
            moments[diagonal[:, None], diagonal, unsafe[:, None, None]] = _projected(
                moments[:, :, unsafe].transpose(2, 0, 1)
            )
        squares = np.zeros(moments.shape[2])
        for row in moments:
            for entry in row:
                squares += entry**2
        lengths = np.sqrt(squares)
    moments *= weight / np.maximum(lengths, 1.0)
    return np.asarray(moments.sum(axis=2), dtype=np.float64)


def _projected(moments: Floats) -> Floats:
    """Nearest positive semidefinite matrices."""
    values, vectors = np.linalg.eigh(moments)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
