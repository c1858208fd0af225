"""Documents of any number of words, in batches that are drawn at random."""

from collections.abc import Callable, Iterator

import numpy as np


def documents_of_any_length(rng: np.random.Generator, n: int, d: int, longest: int) -> np.ndarray:
    """Counts of documents, some of them empty and some of one word."""
    density = rng.uniform(0, longest / d, (n, 1))
    X = (rng.random((n, d)) < density) * rng.integers(1, 4, (n, d))
    X[:2], X[2, 1:] = 0, 0
    return X.astype(float)


def random_batchings(
    rng: np.random.Generator, n: int, cache_of: Callable[[int], None]
) -> Iterator[np.ndarray]:
    """Some of n documents in a random order, while batches are of random sizes."""
    for _ in range(5):
        cache_of(int(2 ** rng.integers(1, 20)))
        yield rng.permutation(n)[: int(rng.integers(1, n))]
