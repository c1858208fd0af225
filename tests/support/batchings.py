"""Documents in batches that are drawn at random."""

from collections.abc import Iterator

import numpy as np
import pytest

from sktensor_dp.queries import counts


def random_batchings(
    rng: np.random.Generator, n: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[np.ndarray]:
    """Some of n documents in a random order, while batches and threads are of random sizes."""
    for _ in range(8):
        rows = rng.permutation(n)[: int(rng.integers(1, n))]
        monkeypatch.setattr(counts, "BATCH_NUMBERS", int(2 ** rng.integers(0, 20)))
        monkeypatch.setattr(counts, "SPARE_NUMBERS", int(2 ** rng.integers(0, 20)))
        monkeypatch.setattr(counts, "N_THREADS", int(rng.integers(1, 4)))
        monkeypatch.setattr(counts, "FEWEST_BATCHES", 2)
        yield rows
