"""Every way to fit every estimator, on data so small that a fit takes milliseconds."""

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from replaying import state
from small_completions import table

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    unsafe_seeded_noise,
)
from sktensor_dp.privacy.report import PrivacyReport

COUNTS = np.random.default_rng(0).poisson(1.0, size=(120, 7)).astype(float)
SAMPLES = np.random.default_rng(1).standard_normal((120, 4))
PARTS = np.array_split(SAMPLES, 6)
TENSOR = np.einsum("i,j,k->ijk", *[np.arange(1.0, 5.0)] * 3)
DOCUMENTS = ["cats chase mice", "dogs chase cats", "mice nap"] * 60
X, Y, DENSE = table(shape=(4, 3, 2))
SLICE = {"unit_mode": 0, "shape": DENSE.shape}
# Enough persons for components to pay.
PERSONS = {"unit_mode": 0, "shape": (200, 4, 3), "epsilon": 1e6}
GAPS = np.where(np.random.default_rng(2).random(DENSE.shape) < 0.5, DENSE, np.nan)


@dataclass(frozen=True)
class Way:
    """Parameters, data, and what is called with them."""

    kind: type
    options: dict[str, Any]
    data: Any
    fit: Callable[[Any, Any], Any]
    begin: Callable[[Any], Any] | None = None

    def build(self) -> Any:
        """An estimator of this way, in the state that the call finds it in."""
        estimator = self.configured(self.kind(**start_of(self.kind)))
        if self.begin is not None:
            with quiet():
                self.begin(estimator)
        return estimator

    def call(self, estimator: Any) -> Any:
        """Fit to the data of this way."""
        return self.fit(estimator, self.data)

    def configured(self, estimator: Any) -> Any:
        """The estimator with the parameters of this way, whatever it had before."""
        plain = self.kind(**start_of(self.kind)).get_params(deep=False)
        return estimator.set_params(**{**plain, **self.options})


@contextmanager
def quiet() -> Iterator[None]:
    """A block without warnings, whose noise is seeded: every run makes the same calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with unsafe_seeded_noise(0):
            yield


def start_of(kind: type) -> dict[str, Any]:
    """Parameters without which a fit of this kind is refused, or slow."""
    if kind is PrivateSearchCV:
        model = PrivateSpectralLDA(2, n_refinements=1)
        return {
            "estimator": model, "param_distributions": {"n_components": [1, 2]}, "n_trials": 1,
            "random_state": 0, "epsilon": 4.0,
        }  # fmt: skip
    if kind is PrivateCountVectorizer:
        return {"max_words_per_document": 3, "epsilon": 2.0}
    if kind in (PrivateCPCompletion, PrivateTuckerCompletion):
        return {"rank": 1, "bounds": (-4.0, 4.0), "random_state": 0}
    if kind is PrivateTensorPowerMethod:
        return {
            "n_components": 2, "data_norm": 2.0, "n_restarts": 2, "max_iter": 1, "random_state": 0
        }  # fmt: skip
    if kind is PrivateGaussianMixture:
        return {"n_components": 2, "data_norm": 2.0, "random_state": 0}
    return {"n_components": 2, "n_refinements": 1, "random_state": 0}


def data_of(name: str) -> tuple[Any, ...]:
    """What `fit_transform` takes, for the estimator of a way."""
    if "words" in name:
        return (DOCUMENTS,)
    if "Completion" in name:
        return X, Y
    of_counts = name.startswith("topics") or "counts" in name
    return (COUNTS,) if of_counts or name == "search" else (SAMPLES,)


def elsewhere(data: Any, rng: np.random.Generator, fixed: bool = True) -> Any:
    """Unrelated data of the same public shape; coordinates of entries are public if `fixed`."""
    if isinstance(data, tuple):
        X = data[0]
        X = X if fixed else rng.integers(0, X.max(axis=0) + 1, (len(X) // 2, X.shape[1]))
        return X, rng.uniform(-9, 9, len(X))
    if isinstance(data, np.ndarray):
        if data.ndim == 3 and np.isnan(data).any():
            return np.where(np.isnan(data), np.nan, rng.uniform(-9, 9, data.shape))
        if data.ndim == 3:
            return np.zeros_like(data)
        counts = (np.floor(data) == data).all() and data.min() >= 0
        scale = 10 ** rng.uniform(0, 6, data.shape)
        return np.floor(scale) if counts else scale * rng.standard_normal(data.shape)
    if isinstance(data[0], str):
        return [f"strange x{i % 9} " * rng.integers(9) for i in range(len(data))]
    return [elsewhere(part, rng) for part in data]


def _fit(estimator: Any, data: Any) -> Any:
    return estimator.fit(*data) if isinstance(data, tuple) else estimator.fit(data)


def _fit_transform(estimator: Any, data: Any) -> Any:
    estimator.fit_transform(*data) if isinstance(data, tuple) else estimator.fit_transform(data)
    return estimator


def _in_chunks(estimator: Any, data: Any) -> Any:
    return estimator.fit_chunks(
        [data[:50], data[50:]], n_samples=len(data), n_features=data.shape[1]
    )


def _of_source(estimator: Any, data: Any) -> Any:
    return estimator.fit_chunks(part for part in data)


def _batch(estimator: Any, data: Any) -> Any:
    return estimator.partial_fit(data)


def _tensor(estimator: Any, data: Any) -> Any:
    return estimator.fit_tensor(data)


def _topics(options: dict[str, Any], fit: Any = _fit, *more: Any) -> Way:
    return Way(PrivateSpectralLDA, options, COUNTS, fit, *more)


def _power(options: dict[str, Any], data: Any = SAMPLES, fit: Any = _fit, *more: Any) -> Way:
    return Way(PrivateTensorPowerMethod, options, data, fit, *more)


def _mixture(options: dict[str, Any], data: Any = SAMPLES, fit: Any = _fit) -> Way:
    return Way(PrivateGaussianMixture, options, data, fit)


def _words(options: dict[str, Any], fit: Any = _fit) -> Way:
    return Way(PrivateCountVectorizer, options, DOCUMENTS, fit)


def _search(options: dict[str, Any], fit: Any = _fit, **more: Any) -> Way:
    model = PrivateTensorPowerMethod(1, data_norm=2.0, n_restarts=2, max_iter=1, **more)
    candidates = {"param_distributions": {"n_restarts": [1, 2]}, "score_bounds": (-1.0, 1.0)}
    return Way(PrivateSearchCV, {"estimator": model, **candidates, **options}, SAMPLES, fit)


WAYS: dict[str, Way] = {
    "topics": _topics({}),
    "topics, pure": _topics({"delta": 0}),
    "topics, moment tensor": _topics({"perturbation": "moment_tensor"}, _fit_transform),
    "topics, too many": _topics({"n_components": 9}),
    "topics, chunks": _topics({}, _in_chunks),
    "topics, first batch": _topics({}, _batch),
    "topics, next batch": _topics({}, _batch, lambda e: e.partial_fit(COUNTS[:60])),
    "components": _power({}),
    "components, moment tensor": _power({"perturbation": "moment_tensor"}, SAMPLES, _fit_transform),
    "components, too many": _power({"n_components": 9}),
    "components, mixture": _power({"moment": "gaussian_mixture"}),
    "components, norm chosen": _power({"data_norm": "auto"}),
    "components, iteration, norm chosen": _power(
        {"data_norm": "auto", "perturbation": "iteration"}, SAMPLES, _in_chunks
    ),
    "components, mixture, norm chosen": _power({"data_norm": "auto", "moment": "gaussian_mixture"}),
    "components, iteration": _power({"perturbation": "iteration"}, SAMPLES, _in_chunks),
    "components, stream": _power({"perturbation": "stream"}),
    "components, source": _power({}, PARTS, _of_source),
    "components, tensor": _power({}, TENSOR, _tensor),
    "components, first batch": _power({}, PARTS[0], _batch),
    "components, next batch": _power({}, PARTS[1], _batch, lambda e: e.partial_fit(PARTS[0])),
    "components, polishing": _power({}, PARTS[5], _batch, lambda e: e.fit_chunks(PARTS[:5])),
    "mixture": _mixture({}),
    "mixture, pure": _mixture({"delta": 0, "covariance_type": "diag"}),
    "mixture, norm chosen": _mixture({"data_norm": "auto", "covariance_type": "tied"}),
    "mixture, one group": _mixture({"n_components": 1}, SAMPLES, _in_chunks),
    "words": _words({"min_df": 0}),
    "words, counted": _words({}, _fit_transform),
    "words, given": _words({"vocabulary": ["cats", "mice"]}),
    "search": Way(PrivateSearchCV, {}, COUNTS, _fit),
    "search, transformed": _search({"cv": 2}, _fit_transform),
    "search, stream": _search({}, perturbation="stream"),
}
_STEPS = {"gradient": {"max_iter": 1}}
for _kind in (PrivateCPCompletion, PrivateTuckerCompletion):
    _name = _kind.__name__.removeprefix("Private")
    for _way in ("input", "sufficient_statistics", "gradient", "output"):
        WAYS[f"{_name}, {_way}"] = Way(
            _kind, {"perturbation": _way, **_STEPS.get(_way, {})}, (X, Y), _fit
        )
    WAYS[f"{_name}, few"] = Way(_kind, {"epsilon": 0.1}, (X, Y), _fit_transform)
    WAYS[f"{_name}, tensor"] = Way(_kind, {}, GAPS, _tensor)
    WAYS[f"{_name}, slices"] = Way(_kind, SLICE, (X, Y), _fit)
    WAYS[f"{_name}, range chosen"] = Way(_kind, {"bounds": "auto", "epsilon": 50.0}, (X, Y), _fit)
    WAYS[f"{_name}, slices, range chosen"] = Way(_kind, {**SLICE, "bounds": "auto"}, (X, Y), _fit)
    WAYS[f"{_name}, slices with components"] = Way(
        _kind, PERSONS, table(PERSONS["shape"])[:2], _fit
    )


# All there is to an object, bit by bit; an accountant is who it is.
snapshot = partial(state, whole=False)


@functools.cache
def report_of(name: str, epsilon: float | None = None) -> PrivacyReport:
    """Report of a way to fit, as if its noise had been secret."""
    way = WAYS[name]
    with quiet():
        estimator = way.build()
        if epsilon is not None:
            estimator.set_params(epsilon=epsilon)
        way.call(estimator)
    return replace(estimator.privacy_report_, seeded=False)
