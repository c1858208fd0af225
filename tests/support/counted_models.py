"""Models whose number of units is private, small data for them, and ways to fit."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA, PrivateTensorPowerMethod

Rng = np.random.Generator
N, D, DELTA = 300, 12, 1e-6


def documents(rng: Rng, n: int) -> np.ndarray:
    topics = rng.dirichlet(np.full(D, 0.1), 3)
    shares = rng.dirichlet(np.full(3, 0.3), n) @ topics
    lengths = rng.integers(0, 60, n)
    counts = [rng.multinomial(m, p) for m, p in zip(lengths, shares, strict=True)]
    return np.array(counts, dtype=float).reshape(n, D)


def samples(rng: Rng, n: int) -> np.ndarray:
    return rng.standard_normal((n, D)) * 10 ** rng.uniform(-1, 2, (n, 1))


def topics(**options: Any) -> Callable[[], PrivateSpectralLDA]:
    return lambda: PrivateSpectralLDA(
        **{"n_components": 3, "random_state": 0, "neighbours": "add_remove", **options}
    )


def components(**options: Any) -> Callable[[], PrivateTensorPowerMethod]:
    return lambda: PrivateTensorPowerMethod(
        **{"n_components": 2, "random_state": 0, "neighbours": "add_remove", "data_norm": 3.0}
        | options
    )


def whole(model: Any, X: np.ndarray) -> Any:
    return model.fit(X)


TEXTS = ["cats chase mice", "dogs chase cats", "mice and men"]


def words(**options: Any) -> Callable[[], PrivateCountVectorizer]:
    given = {"epsilon": 8.0, "max_words_per_document": 3, "neighbours": "add_remove"}
    return lambda: PrivateCountVectorizer(**{**given, **options})
