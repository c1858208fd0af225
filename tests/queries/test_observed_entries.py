"""Entries as chunks hold them."""

import numpy as np
import pytest

from sktensor_dp.queries.entries import EntryChunks, as_entries
from sktensor_dp.queries.slices import SliceChunks

LIMITS = (1.0, 5.0)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_chunks_share_no_memory_with_what_was_passed(kind, order):
    """Whoever passed an array may change it while it is fitted, or after."""
    X, y = np.array([[0, 2], [4, 1]], dtype=kind, order=order), np.array([1.0, 2.0])
    coordinates, values, shape = as_entries(X, y)
    entries = EntryChunks(coordinates, values, shape, LIMITS)
    slices = SliceChunks(coordinates, values, shape, 0, LIMITS)
    for held in (entries.index_set.coordinates, entries.values, slices.coordinates, slices.values):
        assert not np.shares_memory(held, X)
        assert not np.shares_memory(held, y)
