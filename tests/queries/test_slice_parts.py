"""Parts of whole slices add up to the whole, and no public number carries a level away."""

import math
from typing import Any

import numpy as np
from slice_entries import BOUNDS, SHAPE, N, entries

from sktensor_dp.queries.slices import (
    ReleasedEffects,
    SharedFactorSums,
    SharedRowSums,
    SliceChunks,
    SliceReader,
    UnitLevels,
)
from sktensor_dp.tensor.shared_parameters import SharedEffects


def queries(rng: np.random.Generator) -> list[Any]:
    shared = SHAPE[1:]
    effects = tuple(
        SharedEffects(rng.standard_normal(n), rng.random(n), rng.standard_normal(n), 1.0)
        for n in shared
    )
    components = rng.standard_normal((math.prod(shared), 2))
    return [
        UnitLevels(2.5),
        SharedRowSums(1, SHAPE, 0.1, 1.0, 2.0),
        SharedRowSums(2, SHAPE, 0.1, 1.0, 2.0, about=ReleasedEffects(effects, 0.1, 1.0)),
        SharedFactorSums(SHAPE, 0.1, effects, components, 1.0, 1.0),
    ]


def test_parts_of_whole_units_add_up(seed):
    """What units without entries would add to a sum, parts would leave out."""
    X, y = entries(seed)
    whole, reader = SliceChunks(X, y, SHAPE, 0, BOUNDS), SliceReader(SHAPE, 0, BOUNDS)
    pieces = [reader.split(X[rows], y[rows], 4) for rows in np.array_split(np.arange(N), 4)]
    parts: list[Any] = [reader.gather([piece[place] for piece in pieces]) for place in range(4)]
    assert sum(part.n_units for part in parts) == len(np.unique(X[:, 0])) < SHAPE[0]
    assert sum(len(part.values) for part in parts) == len(whole.values) < N
    for query in queries(np.random.default_rng(seed)):
        total = query.total(whole)
        # Rounding of sums of 900 terms of size one.
        found = np.sum([query.total(part) for part in parts], axis=0)
        np.testing.assert_allclose(found, total, rtol=0, atol=1e-11)
