"""A public affine map of values, by the row of a mode, keeps every bound."""

import numpy as np
import pytest

from sktensor_dp.queries.entries import Entries, EntryChunks, RowSums
from sktensor_dp.queries.query import SUM_SLACK
from sktensor_dp.queries.slices import SharedRowSums, SliceChunks, UnitLevels
from sktensor_dp.tensor.row_bounds import RowBounds

SHAPE = (6, 5, 4)


def wild(rng, mode):
    """Ranges from 1e-40 to 1e40 wide, some far from 0."""
    width = 10 ** rng.uniform(-40, 40, SHAPE[mode])
    low = rng.choice([0.0, -1, 1e3], SHAPE[mode]) * width
    return RowBounds(mode, low, low + width)


def ends(rng, bounds, X):
    """Values at both ends, beyond them, and between."""
    low, high = bounds.limits(X[:, bounds.mode])
    kinds = np.stack(
        [low, high, np.full(len(X), -1e308), np.full(len(X), 1e308), low / 2 + high / 2]
    )
    return kinds[rng.integers(len(kinds), size=len(X)), np.arange(len(X))]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_one_value_moves_no_query_of_entries_beyond_its_sensitivity(mode, seed):
    rng = np.random.default_rng(seed)
    bounds, X = wild(rng, mode), rng.integers(0, SHAPE, (30, 3))
    values = ends(rng, bounds, X)
    chunks = EntryChunks(X, values, SHAPE, bounds)
    assert (chunks.half, chunks.middle) == (1.0, 0.0)
    assert np.abs(chunks.values).max() <= 1
    weights = chunks.index_set.balanced_weights()
    for query in (Entries(1.0), RowSums(chunks.index_set, weights, 1.0)):
        moved = []
        for e in range(len(X)):
            totals = []
            for end in (*bounds.limits(X[e, mode]), *rng.choice([-1e308, 1e308], 2)):
                changed = values.copy()
                changed[e] = end
                totals.append(query.total(EntryChunks(X, changed, SHAPE, bounds)))
            moved.append(max(np.linalg.norm(a - b) for a in totals for b in totals))
        # Every row's own range makes the whole move, however narrow it is.
        assert max(moved) <= query.l2_sensitivity
        assert max(moved) >= query.l2_sensitivity / SUM_SLACK * (1 - 1e-9)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_unit_moves_no_query_of_slices_beyond_its_sensitivity(mode, seed):
    rng = np.random.default_rng(seed)
    bounds = wild(rng, mode)
    queries = [UnitLevels(1.0), *(SharedRowSums(m, SHAPE, 0.2, 0.3, 2.0) for m in (1, 2))]
    most = np.zeros(len(queries))
    for trial in range(12):
        totals = []
        for kind in range(2):
            X = rng.integers(0, SHAPE, (rng.integers(0, 9), 3))
            # Everything that unit 0 holds is replaced; the others stay.
            X[:, 0] = 0
            low, high = bounds.limits(X[:, mode])
            y = (low, high)[kind] if trial % 2 else ends(rng, bounds, X)
            rest = np.random.default_rng(trial).integers(0, SHAPE, (10, 3))
            rest[:, 0] = 1 + rest[:, 0] % 5
            others = ends(np.random.default_rng(trial), bounds, rest)
            chunk = SliceChunks(np.vstack([X, rest]), np.concatenate([y, others]), SHAPE, 0, bounds)
            assert np.abs(chunk.values).max() <= 1
            totals.append([query.total(chunk) for query in queries])
        for place, (one, other) in enumerate(zip(*totals, strict=True)):
            moved = np.linalg.norm(one - other) / queries[place].l2_sensitivity
            most[place] = max(most[place], moved)
    assert (most <= 1).all()
    # All at one end against all at the other: a unit with entries on both sides occurs.
    assert most[0] > 0.99


def test_values_in_their_own_units_would_move_a_query_further():
    """What the map is for: a range of 10 beside one of 1 in a scale of half width 1."""
    bounds = RowBounds(1, np.zeros(5), np.array([1.0, 10, 1, 1, 1]))
    X = np.array([[0, 1, 0]])
    raw = [EntryChunks(X, np.array([v]), SHAPE, (-1e9, 1e9)).values[0] for v in (0.0, 10.0)]
    mapped = [EntryChunks(X, np.array([v]), SHAPE, bounds).values[0] for v in (0.0, 10.0)]
    assert abs(raw[1] - raw[0]) > Entries(1.0).l2_sensitivity
    assert mapped == [-1.0, 1.0]


def test_parts_of_a_table_are_mapped_as_the_whole():
    rng = np.random.default_rng(0)
    bounds, X = wild(rng, 2), np.unique(rng.integers(0, SHAPE, (40, 3)), axis=0)
    values = ends(rng, bounds, X)
    whole = SliceChunks(X, values, SHAPE, 0, bounds)
    parts = [
        SliceChunks(X[chosen], values[chosen], SHAPE, 0, bounds, part=True)
        for chosen in (X[:, 0] < 3, X[:, 0] >= 3)
    ]
    found = sum(UnitLevels(1.0).total(part) for part in parts)
    np.testing.assert_allclose(found, UnitLevels(1.0).total(whole), rtol=1e-12)


def test_bounds_of_other_rows_are_refused():
    for bounds in (RowBounds(1, np.zeros(4), np.ones(4)), RowBounds(3, np.zeros(5), np.ones(5))):
        with pytest.raises(ValueError, match="bounds"):
            EntryChunks(np.zeros((1, 3), dtype=np.intp), np.ones(1), SHAPE, bounds)
    for low, high in (
        ([0.0], [0.0]),
        ([0.0], [np.nan]),
        ([0.0], [1e-60]),
        ([-1e60], [0.0]),
        ([], []),
    ):
        with pytest.raises(ValueError, match="bounds"):
            RowBounds(0, np.array(low), np.array(high))
