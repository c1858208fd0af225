"""A public affine map of values, by the row of a mode, keeps every bound."""

import numpy as np
import pytest

from sktensor_dp.queries.entries import Entries, EntryChunks
from sktensor_dp.queries.slices import SliceChunks, UnitLevels
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
def test_values_are_mapped_onto_the_scale_whose_width_queries_bound(mode, seed):
    """Contracts test sensitivities within it; every row's own range makes the whole move."""
    rng = np.random.default_rng(seed)
    bounds, X = wild(rng, mode), np.unique(rng.integers(0, SHAPE, (30, 3)), axis=0)
    low, high = bounds.limits(X[:, mode])
    for values, expected in ((low, -1.0), (high, 1.0), (ends(rng, bounds, X), None)):
        chunks = [EntryChunks(X, values, SHAPE, bounds), SliceChunks(X, values, SHAPE, 0, bounds)]
        for chunk in chunks:
            assert (chunk.half, chunk.middle) == (1.0, 0.0)
            assert np.abs(chunk.values).max() <= 1
            if expected is not None:
                np.testing.assert_allclose(chunk.values, expected, rtol=1e-9)


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
