"""Norms of the pairs of words that a unit of several documents contributes."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.counts import CountChunk
from sktensor_dp.statistics.units import Units

__all__ = ["norms_of_mean_pairs"]

Floats = NDArray[np.float64]

# Pairs of words that are held at once, and those of one unit beyond which its own norm is not
# worth its cost.
PAIRS_AT_ONCE, PAIRS_OF_A_UNIT = 2**22, 2**26


def norms_of_mean_pairs(part: CountChunk, diagonal_weight: float) -> Floats:
    """Norms of the mean pair masses of units; infinite where a unit is a row, or has too many."""
    # Every number depends on the unit's own rows: they are added up in their order.
    norms = np.full(part.units.n, np.inf)
    several = np.flatnonzero(part.units.sizes > 1)
    if several.size == 0:
        return norms
    squares = np.diff(part.X.indptr).astype(np.float64) ** 2
    costs = _sums(part, squares)
    several = several[costs[several] <= PAIRS_OF_A_UNIT]
    for units in _batches(several, costs[several]):
        norms[units] = _norms(part, units, diagonal_weight)
    return norms


def _sums(part: CountChunk, values: Floats) -> Floats:
    sums = np.bincount(part.units.of_rows, weights=values, minlength=part.units.n)
    return sums.astype(np.float64, copy=False)


def _batches(units: NDArray[np.intp], costs: Floats) -> list[NDArray[np.intp]]:
    """Units by so many pairs at once."""
    places = np.floor(np.cumsum(costs) / PAIRS_AT_ONCE)
    return np.split(units, np.flatnonzero(np.diff(places)) + 1) if units.size else []


def _norms(part: CountChunk, units: NDArray[np.intp], diagonal_weight: float) -> Floats:
    starts, sizes = part.units.starts[units], part.units.sizes[units]
    ends = np.cumsum(sizes)
    rows = np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)
    own = Units(np.concatenate([[0], ends]))
    X = part.X[rows]
    lengths = part.lengths[rows]
    weight = own.spread(np.ones(own.n)) * (lengths >= 2) / np.maximum(lengths - 1, 1)
    # A column for each word of each unit: products of columns stay within a unit.
    per_row = np.diff(X.indptr)
    keys = np.repeat(own.of_rows, per_row) * X.shape[1] + X.indices
    columns, places = np.unique(keys, return_inverse=True)
    shape = (X.shape[0], len(columns))
    counts = sp.csr_matrix((X.data, places, X.indptr), shape=shape)
    weighted = sp.csr_matrix((X.data * np.repeat(weight, per_row), places, X.indptr), shape=shape)
    pairs = (counts.T.tocsr() @ weighted).tocoo()
    repeated = np.bincount(places, weights=weighted.data * (X.data - 1), minlength=len(columns))
    distinct = np.where(pairs.row < pairs.col, 2 * pairs.data, 0.0)
    unit_of = columns // X.shape[1]
    apart = np.bincount(unit_of[pairs.row], weights=distinct**2, minlength=own.n)
    alike = np.bincount(unit_of, weights=repeated**2, minlength=own.n)
    return np.asarray(np.sqrt(apart + diagonal_weight**2 * alike))
