"""Randomness of algorithms (starting points), as opposed to that of noise."""

import numpy as np

RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Generator from a seed, a generator or scikit-learn's legacy state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
