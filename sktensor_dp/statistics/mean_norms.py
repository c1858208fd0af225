"""Norms of what units of several documents contribute: of the mean, not the mean of the norms.

Every number depends on the unit's own rows, which are added up in their order. Units of one row
have a norm of their own elsewhere: infinity stands here.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.counts import CountChunk
from sktensor_dp.statistics.row_chunks import rows_of
from sktensor_dp.statistics.unit_words import UnitWords
from sktensor_dp.tensor.arrays import Floats

# Pairs of words that are held at once, and those of one unit beyond which its own norm is not
# worth its cost.
PAIRS_AT_ONCE, PAIRS_OF_A_UNIT = 2**22, 2**26


def norms_of_mean_counts(
    at: UnitWords,
    ratios: NDArray[np.floating],
    expected: NDArray[np.floating],
    topics: Floats | None,
) -> Floats:
    """Euclidean norms of the mean of ``ratios expected``, times their topics if there are any."""
    data, squares = ratios[at.stored].astype(np.float64), np.zeros(len(at.words))
    for topic, share in enumerate(expected[at.rows].T):
        sums = np.bincount(at.places, data * np.repeat(share, at.per_row), len(at.words))
        if topics is not None:
            sums = sums * topics[topic, at.words]
        squares += np.square(sums)
    norms = np.sqrt(np.bincount(at.owners, squares, len(at.sizes))) / np.maximum(at.sizes, 1)
    return np.where(at.sizes > 0, norms, np.inf)


def norms_of_mean_pairs(part: CountChunk, diagonal_weight: float) -> Floats:
    """Norms of the mean pair masses; infinite where a unit has too many pairs, too."""
    norms, units = np.full(part.units.n, np.inf), part.units
    squares = np.diff(part.X.indptr).astype(np.float64) ** 2
    costs = np.bincount(units.of_rows, squares, units.n)
    several = np.flatnonzero((units.sizes > 1) & (costs <= PAIRS_OF_A_UNIT))
    batch = np.floor(np.cumsum(costs[several]) / PAIRS_AT_ONCE)
    for number in np.unique(batch):
        chosen = several[batch == number]
        rows = slice(units.starts[chosen[0]], units.starts[chosen[-1] + 1])
        norms[chosen] = _pair_norms(part, rows, chosen, diagonal_weight)
    return norms


def _pair_norms(
    part: CountChunk, rows: slice, chosen: NDArray[np.intp], diagonal_weight: float
) -> Floats:
    """The same of chosen units, which lie in some rows."""
    X, of_rows = rows_of(part.X, rows), part.units.of_rows[rows] - chosen[0]
    wanted = np.zeros(int(chosen[-1] - chosen[0]) + 1, dtype=bool)
    wanted[chosen - chosen[0]] = True
    at = UnitWords.of(X, of_rows, wanted)
    lengths, data = part.lengths[rows][at.rows], X.data[at.stored]
    weight = (lengths >= 2) / np.maximum(lengths - 1, 1) / at.sizes[of_rows[at.rows]]
    weighted = data * np.repeat(weight, at.per_row)
    # A column for each word of each unit: products of columns stay within a unit.
    layout = (at.places, np.append(0, np.cumsum(at.per_row)))
    shape = (len(at.rows), len(at.words))
    counts = sp.csr_matrix((data, *layout), shape=shape)
    pairs = (counts.T.tocsr() @ sp.csr_matrix((weighted, *layout), shape=shape)).tocoo()
    distinct = np.where(pairs.row < pairs.col, 2 * pairs.data, 0.0)
    repeated = np.bincount(at.places, weighted * (data - 1), len(at.words))
    apart = np.bincount(at.owners[pairs.row], np.square(distinct), len(wanted))
    alike = np.bincount(at.owners, np.square(repeated), len(wanted))
    return np.asarray(np.sqrt(apart + diagonal_weight**2 * alike))[wanted]
