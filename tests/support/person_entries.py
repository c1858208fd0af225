"""Entries of persons, small enough for every test."""

import numpy as np

SHAPE, BOUNDS, N = (60, 12, 3), (0.0, 5.0), 900


def entries(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Entries of few units more than of others, some of them twice, of some units none."""
    rng = np.random.default_rng(seed)
    units = np.minimum(rng.geometric(0.08, N) - 1, SHAPE[0] - 1)
    X = np.column_stack([units, *(rng.integers(0, n, N) for n in SHAPE[1:])])
    X[-20:] = X[:20]
    y = 2.5 + np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.3 * rng.standard_normal(N)
    return X, y
