"""Parts of whole slices add up to the whole."""

from typing import Any

import numpy as np

from sktensor_dp.statistics.observed_entries import SliceChunks
from sktensor_dp.statistics.slice_parts import SliceReader
from sktensor_dp.statistics.slice_queries import SharedFactorSums, SharedRowSums, UnitLevels
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects

SHAPE, BOUNDS, N = (60, 12, 3), (0.0, 5.0), 900


def entries(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Entries of few units more than of others, some of them twice, of some units none."""
    rng = np.random.default_rng(seed)
    units = np.minimum(rng.geometric(0.08, N) - 1, SHAPE[0] - 1)
    X = np.column_stack([units, *(rng.integers(0, n, N) for n in SHAPE[1:])])
    X[-20:] = X[:20]
    y = 2.5 + np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.3 * rng.standard_normal(N)
    return X, y


def queries(rng: np.random.Generator) -> list[Any]:
    shared = SHAPE[1:]
    effects = tuple(
        SharedEffects(rng.standard_normal(n), rng.random(n), rng.standard_normal(n), 1.0)
        for n in shared
    )
    factors = tuple(rng.standard_normal((n, 2)) for n in shared)
    components = SharedComponents(factors, False)
    return [
        UnitLevels(2.5),
        SharedRowSums(1, SHAPE, 0.1, 1.0, 2.0),
        SharedFactorSums(1, SHAPE, 0.1, effects, components, 1.0, 1.0),
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
