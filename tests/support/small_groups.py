"""Small data of groups, and the ways to fit topics and components to them."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replaying import state

from sktensor_dp import PrivateSpectralLDA, PrivateTensorPowerMethod, unsafe_seeded_noise

N, D = 120, 6
TOPICS = {
    "whitened": {}, "one topic": {"doc_topic_prior": 0, "n_refinements": 1},
    "moments": {"perturbation": "moment_tensor"},
    "pure": {"delta": 0}, "exact": {"epsilon": float("inf")},
    "limits": {"clip_norm": {"counts": 4.0, "pairs": 3.0}},
}  # fmt: skip
COMPONENTS = {
    "whitened": {}, "orthonormal": {"whiten": False}, "moments": {"perturbation": "moment_tensor"},
    "iteration": {"perturbation": "iteration", "max_iter": 1},
    "stream": {"perturbation": "stream", "max_iter": 1},
    "exact stream": {"perturbation": "stream", "max_iter": 1, "epsilon": float("inf")},
    "pure": {"delta": 0},
    "mixture": {"moment": "gaussian_mixture"}, "exact": {"epsilon": float("inf")},
}  # fmt: skip
MODES = [("topics", name) for name in TOPICS] + [("components", name) for name in COMPONENTS]
every_mode = pytest.mark.parametrize(("kind", "mode"), MODES)


def model(kind: str, **options: Any) -> Any:
    if kind == "topics":
        return PrivateSpectralLDA(2, **{"random_state": 0, **options})
    start = {"data_norm": 2.0, "n_restarts": 2, "random_state": 0}
    return PrivateTensorPowerMethod(2, **{**start, **options})


def options_of(kind: str, mode: str) -> dict[str, Any]:
    return (TOPICS if kind == "topics" else COMPONENTS)[mode]


def data(rng: np.random.Generator, kind: str, n: int = N) -> np.ndarray:
    if kind == "topics":
        return rng.poisson(1.0, (n, D)).astype(float)
    return rng.standard_normal((n, D))


def seeded(fit: Callable[[], Any], seed: int = 0) -> Any:
    with warnings.catch_warnings(), unsafe_seeded_noise(seed):
        warnings.simplefilter("ignore")
        return fit()


def public_state(fitted: Any) -> Any:
    """All of it, but the name of the unit."""
    attributes = {**vars(fitted)}
    report = {**vars(attributes.pop("privacy_report_"))}
    report.pop("unit")
    return state([attributes, report])


def persons(rng: np.random.Generator, kind: str, busiest: int, n: int = 40) -> Any:
    """Rows and labels of so many persons, in any order; one of them has the most rows."""
    sizes = rng.integers(1, 4, n)
    sizes[int(rng.integers(n))] = busiest
    labels = rng.permutation(np.repeat(np.arange(n), sizes))
    return data(rng, kind, len(labels)), labels


def fit_whole(estimator: Any, of: Any) -> Any:
    X, groups = of
    return estimator.fit(X, groups=groups)


def fit_in_chunks(estimator: Any, of: Any) -> Any:
    X, groups = of
    cuts = np.split(np.arange(len(X)), 3 * [len(X) // 3] + [len(X) - 1])
    source = [(X[part], groups[part]) for part in cuts]
    return estimator.fit_chunks(source, n_samples=len(np.unique(groups)), n_features=X.shape[1])
