"""Documents in batches that are drawn at random."""

from collections.abc import Callable, Iterator

import numpy as np


def random_batchings(
    rng: np.random.Generator, n: int, cache_of: Callable[[int], None]
) -> Iterator[np.ndarray]:
    """Some of n documents in a random order, while batches are of random sizes."""
    for _ in range(8):
        cache_of(int(2 ** rng.integers(1, 20)))
        yield rng.permutation(n)[: int(rng.integers(1, n))]
