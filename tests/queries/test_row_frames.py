"""Sums over the entries of rows, whose z are read in blocks."""

import numpy as np

from sktensor_dp.queries.entries import EntryChunks, IndexSet
from sktensor_dp.queries.gradients import RidgeBlock, RowFrames

SHAPE, N, LIMITS, HALF = (5, 7, 3), 60, (1.0, 5.0), 2.0


def data(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n, N) for n in SHAPE])
    X[X == 2] = 1  # a row of every mode stays empty
    return rng, X, rng.uniform(0, 6, N)


def test_whatever_a_frame_is_no_value_moves_further_than_the_sensitivity(seed):
    """What values are multiplied with is shortened to length 1, so that F need not be right."""
    rng, X, y = data(seed)
    frames = RowFrames(IndexSet(X, SHAPE), 0, rng.standard_normal((N, 3)), 0.1)
    frames.inverses *= rng.uniform(2, 1e6)
    query, totals = RidgeBlock(frames, HALF), []
    for end in LIMITS:
        y[0] = end
        totals.append(query.total(EntryChunks(X, y, SHAPE, LIMITS)))
    moved = np.linalg.norm(totals[0] - totals[1])
    # The entry is at length 1, and moves by all of the range.
    assert 2 * HALF * (1 - 1e-9) < moved <= query.l2_sensitivity


def test_sums_do_not_depend_on_how_entries_are_cut_into_blocks(seed, cache_of):
    rng, X, y = data(seed)
    chunk, z = EntryChunks(X, y, SHAPE, LIMITS), rng.standard_normal((N, 3))
    found = []
    for numbers in (32, 200, 2**18):
        cache_of(numbers)
        frames = RowFrames(chunk.index_set, 1, z, 0.1)
        found.append((frames.inverses, frames.coordinates(chunk.values)))
    for frames, coordinates in found[1:]:
        # Sums of up to 60 terms in another order.
        np.testing.assert_allclose(frames, found[0][0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(coordinates, found[0][1], rtol=1e-9, atol=1e-12)
