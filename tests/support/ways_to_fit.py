"""Every way to fit every estimator, on data so small that a fit takes milliseconds."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from small_completions import table

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    unsafe_seeded_noise,
)
from sktensor_dp.privacy.accountant import BudgetAccountant

COUNTS = np.random.default_rng(0).poisson(1.0, size=(120, 7)).astype(float)
SAMPLES = np.random.default_rng(1).standard_normal((120, 4))
PARTS = np.array_split(SAMPLES, 6)
TENSOR = np.einsum("i,j,k->ijk", *[np.arange(1.0, 5.0)] * 3)
DOCUMENTS = ["cats chase mice", "dogs chase cats", "mice nap"] * 60
X, Y, DENSE = table(shape=(4, 3, 2))
SLICE = {"privacy_unit": "slice", "shape": DENSE.shape}
GAPS = np.where(np.random.default_rng(2).random(DENSE.shape) < 0.5, DENSE, np.nan)


@dataclass(frozen=True)
class Way:
    """Parameters, and what is called with them."""

    kind: type
    options: dict[str, Any]
    call: Callable[[Any], Any]
    begin: Callable[[Any], Any] | None = None

    def build(self) -> Any:
        """An estimator of this way, in the state that the call finds it in."""
        estimator = self.configured(self.kind(**start_of(self.kind)))
        if self.begin is not None:
            with quiet():
                self.begin(estimator)
        return estimator

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
    return {"n_components": 2, "n_refinements": 1, "random_state": 0}


def data_of(name: str) -> tuple[Any, ...]:
    """What `fit_transform` takes, for the estimator of a way."""
    if "words" in name:
        return (DOCUMENTS,)
    if "Completion" in name:
        return X, Y
    of_counts = name.startswith("topics") or "counts" in name
    return (COUNTS,) if of_counts or name == "search" else (SAMPLES,)


def _in_chunks(data: Any) -> Callable[[Any], Any]:
    return lambda estimator: estimator.fit_chunks(
        [data[:50], data[50:]], n_samples=len(data), n_features=data.shape[1]
    )


def _power(options: dict[str, Any], call: Callable[[Any], Any], *more: Any) -> Way:
    return Way(PrivateTensorPowerMethod, options, call, *more)


def _search(options: dict[str, Any], call: Callable[[Any], Any], **more: Any) -> Way:
    model = PrivateTensorPowerMethod(1, data_norm=2.0, n_restarts=2, max_iter=1, **more)
    candidates = {"param_distributions": {"n_restarts": [1, 2]}, "score_bounds": (-1.0, 1.0)}
    return Way(PrivateSearchCV, {"estimator": model, **candidates, **options}, call)


LDA, VOCABULARY = PrivateSpectralLDA, PrivateCountVectorizer
WAYS: dict[str, Way] = {
    "topics": Way(LDA, {}, lambda e: e.fit(COUNTS)),
    "topics, pure": Way(LDA, {"delta": 0}, lambda e: e.fit(COUNTS)),
    "topics, moment tensor": Way(
        LDA, {"perturbation": "moment_tensor"}, lambda e: e.fit_transform(COUNTS)
    ),
    "topics, too many": Way(LDA, {"n_components": 9}, lambda e: e.fit(COUNTS)),
    "topics, chunks": Way(LDA, {}, _in_chunks(COUNTS)),
    "topics, first batch": Way(LDA, {}, lambda e: e.partial_fit(COUNTS)),
    "topics, next batch": Way(
        LDA, {}, lambda e: e.partial_fit(COUNTS), lambda e: e.partial_fit(COUNTS[:60])
    ),
    "components": _power({}, lambda e: e.fit(SAMPLES)),
    "components, moment tensor": _power(
        {"perturbation": "moment_tensor"}, lambda e: e.fit_transform(SAMPLES)
    ),
    "components, too many": _power({"n_components": 9}, lambda e: e.fit(SAMPLES)),
    "components, mixture": _power({"moment": "gaussian_mixture"}, lambda e: e.fit(SAMPLES)),
    "components, counts": _power({"moment": "single_topic"}, lambda e: e.fit(COUNTS)),
    "components, iteration": _power({"perturbation": "iteration"}, _in_chunks(SAMPLES)),
    "components, stream": _power({"perturbation": "stream"}, lambda e: e.fit(SAMPLES)),
    "components, source": _power({}, lambda e: e.fit_chunks(part for part in PARTS)),
    "components, tensor": _power({}, lambda e: e.fit_tensor(TENSOR)),
    "components, first batch": _power({}, lambda e: e.partial_fit(PARTS[0])),
    "components, next batch": _power(
        {}, lambda e: e.partial_fit(PARTS[1]), lambda e: e.partial_fit(PARTS[0])
    ),
    "components, polishing": _power(
        {}, lambda e: e.partial_fit(PARTS[5]), lambda e: e.fit_chunks(PARTS[:5])
    ),
    "words": Way(VOCABULARY, {}, lambda e: e.fit(DOCUMENTS)),
    "words, counted": Way(VOCABULARY, {}, lambda e: e.fit_transform(DOCUMENTS)),
    "words, given": Way(VOCABULARY, {"vocabulary": ["cats", "mice"]}, lambda e: e.fit(DOCUMENTS)),
    "search": Way(PrivateSearchCV, {}, lambda e: e.fit(COUNTS)),
    "search, transformed": _search({"cv": 2}, lambda e: e.fit_transform(SAMPLES)),
    "search, stream": _search({}, lambda e: e.fit(SAMPLES), perturbation="stream"),
}  # fmt: skip
for _kind in (PrivateCPCompletion, PrivateTuckerCompletion):
    _name = _kind.__name__.removeprefix("Private")
    for _way in ("input", "sufficient_statistics", "gradient", "output"):
        WAYS[f"{_name}, {_way}"] = Way(
            _kind, {"perturbation": _way, "max_iter": 1}, lambda e: e.fit(X, Y)
        )
    WAYS[f"{_name}, few"] = Way(_kind, {"epsilon": 0.1}, lambda e: e.fit_transform(X, Y))
    WAYS[f"{_name}, tensor"] = Way(_kind, {"max_iter": 0}, lambda e: e.fit_tensor(GAPS))
    WAYS[f"{_name}, slices"] = Way(_kind, {**SLICE, "max_iter": 0}, lambda e: e.fit(X, Y))
    WAYS[f"{_name}, slices with components"] = Way(
        _kind, {**SLICE, "max_iter": 1, "epsilon": 50.0}, lambda e: e.fit(X, Y)
    )


def snapshot(item: Any) -> Any:
    """All there is to an object, bit by bit; an accountant is who it is."""
    if isinstance(item, BudgetAccountant):
        return ("accountant", id(item))
    if isinstance(item, np.ndarray) and item.dtype == object:
        return ("objects", item.shape, [snapshot(part) for part in item.ravel()])
    if isinstance(item, np.ndarray):
        return ("array", str(item.dtype), item.shape, item.tobytes())
    if isinstance(item, dict):
        return ("dict", [(snapshot(key), snapshot(value)) for key, value in item.items()])
    if isinstance(item, list | tuple):
        return (type(item).__name__, [snapshot(part) for part in item])
    if isinstance(item, set | frozenset):
        return (type(item).__name__, sorted(map(repr, item)))
    if isinstance(item, np.random.RandomState):
        return ("RandomState", snapshot(item.get_state()))
    if isinstance(item, np.random.Generator):
        return ("Generator", snapshot(item.bit_generator.state))
    if item is None or isinstance(item, str | int | float | complex | np.generic | type | slice):
        return (type(item).__name__, repr(item))
    return (type(item).__name__, snapshot(vars(item)))
