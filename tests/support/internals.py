"""Private names of the library that tests use: no other file of tests has any.

Releases, seen or replaced; and parts of fitted models, of sources of noise and of searches.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np
import pytest

import sktensor_dp
from sktensor_dp.estimator.base import FittedStateMixin
from sktensor_dp.model_selection.costs import TrialAccountant
from sktensor_dp.model_selection.trials import Trials
from sktensor_dp.privacy import noise_sampler
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.partition_selection import PartitionSelection
from sktensor_dp.privacy.session import Session
from sktensor_dp.tensor import entry_biases

# Sessions
data_of = methodcaller("_open_chunks")  # raw data that a session holds


def put(patch: pytest.MonkeyPatch, owner: type, method: str, function: Callable[..., Any]) -> None:
    """Let a function of the usual method and its arguments take the method's place."""
    usual = getattr(owner, method)
    patch.setattr(owner, method, lambda *of: function(usual, *of))


@contextmanager
def answering(answer: Callable[..., Any]) -> Iterator[None]:
    """Let `answer(usual, law, value, sensitivity, cost, noise, query)` make every release."""
    with pytest.MonkeyPatch.context() as patch:
        put(patch, Mechanism, "release", answer)
        yield


@contextmanager
def questions(fail_at: int | None = None) -> Iterator[list[Any]]:
    """List queries that are answered; one of them may fail for lack of memory."""
    asked: list[Any] = []

    def answered(usual: Any, *of: Any) -> Any:
        asked.append(of[-1])
        if len(asked) - 1 == fail_at:
            raise MemoryError
        return usual(*of)

    with pytest.MonkeyPatch.context() as patch:
        for law in (Mechanism, PartitionSelection):
            put(patch, law, "release", answered)
        yield asked


@contextmanager
def chunks_of(query: type) -> Iterator[list[Any]]:
    """List the chunks of data that queries of a type are computed on, in turn."""
    found: list[Any] = []

    def total(usual: Any, one: Any, chunk: Any) -> Any:
        found.append(chunk)
        return usual(one, chunk)

    with pytest.MonkeyPatch.context() as patch:
        put(patch, query, "total", total)
        yield found


def probed(ask: Session, probe: Any) -> Session:
    """Put a probe in the place of a session's source of noise."""
    probe.process, ask._noise = ask._noise.process, probe
    return ask


reader_of = methodcaller("_reader")  # of chunks: what reads partitions where they lie


# Noise

second_look, settle = noise_sampler._second_look, noise_sampler._settle
Revealed = noise_sampler._Revealed  # uniform number of which some bits are known
generator_of = attrgetter("_generator")  # of a source of noise
words_of = attrgetter("_words")  # draws 64 random bits at a time


# Kernels

leading_pairs = entry_biases._singular_vectors


def unit_norms(query: Any, chunk: Any) -> np.ndarray:
    """Norms that a query clips by."""
    return query._norms(chunk, query._projections(chunk))


def sums_and_covariance(search: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sums that a search for directions has kept, and what it takes for their covariance."""
    return search._sums, search._covariance


# Fitted models and searches

# The function that writes fitted state, as profilers name it.
PUBLISH = FittedStateMixin._publish.__qualname__
shared_model = attrgetter("_shared")  # of a fitted completion, that all units share


def multilinear_of(completion: Any, coordinates: np.ndarray) -> np.ndarray:
    """Values of a fitted completion without mean and biases."""
    return completion._model._multilinear(coordinates)


def with_model(completion: Any, **changes: Any) -> Any:
    """Change parts of the model that units of a fitted completion share."""
    completion._shared = replace(completion._shared, **changes)
    return completion


stream_of = attrgetter("_stream")  # state by which a stream goes on


def validated_rows(estimator: Any, X: Any) -> Any:
    """Rows as a fitted estimator reads them."""
    return estimator._validated_rows(X, reset=False)


facts_of = methodcaller("_public_facts")  # what search, scorer and audit go by


def planned_by(step: Any, X: Any, n_units: int) -> Any:
    """Fit that a step of a pipeline plans, before data is read."""
    return step._plan(X, n_units)


table_of = methodcaller("_table")  # shown of a report, a statement or a forecast


def homes() -> dict[str, str]:
    """Modules that public names of the package are imported from on first use."""
    return sktensor_dp._HOMES


def plan_of(estimator: Any, *sizes: Any) -> Any:
    """Plan of a fit on data of a public size."""
    return estimator._plan(*sizes)


def constraints_of(kind: Any) -> dict[str, Any]:
    """Allowed values of all parameters."""
    return {**getattr(kind, "_privacy_constraints", {}), **kind._own_constraints}


@contextmanager
def parts_of_trials() -> Iterator[list[tuple[str, list[int]]]]:
    """List which units the trials of a search fit and score, in turn."""
    seen: list[tuple[str, list[int]]] = []

    def fit(usual: Any, trials: Trials, template: Any, units: Any, payer: Any) -> Any:
        if type(payer) is TrialAccountant:  # not one that lets fits begin alone
            seen.append(("fit", np.flatnonzero(units).tolist()))
        return usual(trials, template, units, payer)

    def score(usual: Any, trials: Trials, model: Any, units: Any) -> Any:
        seen.append(("score", np.flatnonzero(units).tolist()))
        return usual(trials, model, units)

    with pytest.MonkeyPatch.context() as patch:
        put(patch, Trials, "_fitted", fit)
        put(patch, Trials, "_scored", score)
        yield seen


@contextmanager
def trials_made() -> Iterator[list[int]]:
    """Count the trials of searches."""
    made: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        put(patch, Trials, "run", lambda usual, *of: made.append(1) or usual(*of))
        yield made
