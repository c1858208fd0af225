"""Data and searches that the tests of `PrivateSearchCV` share."""

from typing import Any

import numpy as np

from sktensor_dp import (
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)

INF = float("inf")


def counts(n: int = 300, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(7, 0.3), 2)
    return rng.poisson(12 * topics[rng.integers(2, size=n)]).astype(float)


def samples(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 4 * np.eye(3, 4)[rng.integers(3, size=n)] + rng.standard_normal((n, 4))


def topics(**options: Any) -> PrivateSearchCV:
    candidates = options.pop("param_distributions", {"n_components": [1, 2, 3]})
    return PrivateSearchCV(PrivateSpectralLDA(), candidates, **{"anyway": True, **options})


def components(candidates: Any, **options: Any) -> PrivateSearchCV:
    model = PrivateTensorPowerMethod(3, data_norm=8.0, n_restarts=3)
    return PrivateSearchCV(
        model, candidates, **{"score_bounds": (-16.0, -4.0), "anyway": True, **options}
    )


def completions(**options: Any) -> PrivateSearchCV:
    candidates = options.pop("param_distributions", {"rank": [1, 2]})
    model = PrivateCPCompletion(bounds=(0.0, 3.0), perturbation=options.pop("perturbation", "auto"))
    return PrivateSearchCV(model, candidates, **{"anyway": True, **options})


def raters(n: int = 15, **options: Any) -> PrivateSearchCV:
    candidates = options.pop("param_distributions", {"rank": [0, 1]})
    model = PrivateCPCompletion(bounds=(0.0, 3.0), unit_mode=0, shape=(n, 15))
    return PrivateSearchCV(model, candidates, **{"anyway": True, **options})


def cells(n: int = 15) -> tuple[np.ndarray, np.ndarray]:
    X = np.argwhere(np.ones((n, n)))
    return X, X.sum(axis=1) / 10.0
