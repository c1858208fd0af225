"""Sums over the entries of rows, whose z are read in blocks."""

import numpy as np

from sktensor_dp.statistics import row_frames
from sktensor_dp.statistics.entry_queries import FactorSums
from sktensor_dp.statistics.jacobians import CPJacobian, TuckerJacobian
from sktensor_dp.statistics.observed_entries import EntryChunks, IndexSet
from sktensor_dp.statistics.row_frames import RowFrames, SortedRows

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
    query, totals = FactorSums(frames, HALF), []
    for end in LIMITS:
        y[0] = end
        totals.append(query.total(EntryChunks(X, y, SHAPE, LIMITS)))
    moved = np.linalg.norm(totals[0] - totals[1])
    # The entry is at length 1, and moves by all of the range.
    assert 2 * HALF * (1 - 1e-9) < moved <= query.l2_sensitivity


def test_sums_do_not_depend_on_how_entries_are_cut_into_blocks(seed, monkeypatch):
    rng, X, y = data(seed)
    chunk, z = EntryChunks(X, y, SHAPE, LIMITS), rng.standard_normal((N, 3))
    found = []
    for numbers in (16, 100, 2**17):
        monkeypatch.setattr(row_frames, "BLOCK_NUMBERS", numbers)
        frames = RowFrames(chunk.index_set, 1, z, 0.1)
        found.append((frames.frames, frames.coordinates(chunk.values)))
    for frames, coordinates in found[1:]:
        # Sums of up to 60 terms in another order.
        np.testing.assert_allclose(frames, found[0][0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(coordinates, found[0][1], rtol=1e-9, atol=1e-12)


def test_rows_of_models_are_read_in_the_order_of_a_mode(seed):
    rng, X, y = data(seed)
    places = IndexSet(X, SHAPE)
    for model in (
        CPJacobian(places, [rng.standard_normal((n, 2)) for n in SHAPE]),
        TuckerJacobian(
            places, [rng.standard_normal((n, 2)) for n in SHAPE], rng.standard_normal((2, 2, 2))
        ),
    ):
        for mode in range(3):
            whole, read = model.rows(mode), model.sorted_rows(mode)
            blocks = [z.T for _, z, _, _ in read.blocks()]
            np.testing.assert_array_equal(np.concatenate(blocks), whole[places.order(mode)])
            given = SortedRows.of_array(places, mode, whole)
            np.testing.assert_array_equal(read.grams, given.grams)
            np.testing.assert_allclose(
                read.moments(y), places.sums(mode, y[:, None] * whole), atol=1e-9
            )


def test_of_two_modes_sums_are_products_with_a_table(seed):
    """The same as entry by entry, and refused for the same numbers."""
    rng, X, y = data(seed)
    places = IndexSet(X[:, :2], SHAPE[:2])
    model = CPJacobian(places, [rng.standard_normal((n, 4)) for n in SHAPE[:2]])
    for mode in range(2):
        read = model.sorted_rows(mode)
        given = SortedRows.of_array(places, mode, model.rows(mode))
        np.testing.assert_allclose(read.grams, given.grams, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(read.moments(y), given.moments(y), rtol=1e-9, atol=1e-12)
        frames = [RowFrames(places, mode, rows, 0.3).frames for rows in (read, given)]
        np.testing.assert_allclose(*frames, rtol=1e-9, atol=1e-12)
