"""Private names of the library that tests use: no other file of tests has any.

Three kinds: what curators ask and answer, seen or replaced; curators with deliberate mistakes,
which replay has to see; and parts of fitted models, of sources of noise and of searches.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import wraps
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np
import pytest

import sktensor_dp
from sktensor_dp.estimator.base import FittedStateMixin
from sktensor_dp.model_selection.search import Trials
from sktensor_dp.privacy import sampling
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.sums import units_of
from sktensor_dp.queries.text import DocumentFrequencies
from sktensor_dp.tensor import row_effects

# Curators
data_of = methodcaller("_read")  # raw data that a curator holds


def put(patch: pytest.MonkeyPatch, owner: type, method: str, function: Callable[..., Any]) -> None:
    """Let a function of the usual method and its arguments take the method's place."""
    usual = getattr(owner, method)
    patch.setattr(owner, method, lambda *of: function(usual, *of))


@contextmanager
def answering(answer: Callable[..., Any]) -> Iterator[None]:
    """Let `answer(usual, curator, query, ...)` answer every query that was admitted."""
    with pytest.MonkeyPatch.context() as patch:
        put(patch, DataCurator, "_answer", answer)
        yield


@contextmanager
def questions(fail_at: int | None = None) -> Iterator[list[tuple[str, Any]]]:
    """List names and queries that curators admit; one of them may fail for lack of memory."""
    asked: list[tuple[str, Any]] = []

    def admitted(usual: Any, curator: DataCurator, name: str, query: Any, *more: Any) -> Any:
        found = usual(curator, name, query, *more)
        asked.append((name, query))
        if len(asked) - 1 == fail_at:
            raise MemoryError
        return found

    with pytest.MonkeyPatch.context() as patch:
        put(patch, DataCurator, "_admit", admitted)
        yield asked


@contextmanager
def reads() -> Iterator[list[list[Any]]]:
    """List the chunks of data at every read."""
    found: list[list[Any]] = []

    def read(usual: Any, curator: DataCurator) -> Any:
        found.append(list(usual(curator)))
        return usual(curator)

    with pytest.MonkeyPatch.context() as patch:
        put(patch, DataCurator, "_read", read)
        yield found


def gains_of(deviations: float) -> AbstractContextManager[None]:
    """Let all held-out gains be so many deviations of their noise."""

    def gained(usual: Any, curator: DataCurator, *of: Any) -> Any:
        last = curator._records[-1]
        is_gain = last.name == "held_out_scores"
        return np.array([deviations * last.sigma]) if is_gain else usual(curator, *of)

    return answering(gained)


def true_answer(curator: DataCurator, query: Any) -> Any:
    """Mean over units without noise."""
    return curator._mean(query)


def planned_cost(curator: DataCurator, name: str) -> PrivacyCost:
    """What a use of a planned release costs."""
    return curator._plan.cost_of(name)


def probed(curator: DataCurator, probe: Any) -> DataCurator:
    """Put a probe in the place of a curator's source of noise."""
    probe.process, curator._noise = curator._noise.process, probe
    return curator


reader_of = methodcaller("_reader")  # of chunks: what reads partitions where they lie


# Curators with deliberate mistakes


def bit(curator: DataCurator) -> bool:
    """One bit of the raw data that a curator holds."""
    data = curator._read()
    if hasattr(data, "values"):
        return bool(np.ptp(data.values[:9]) > 0)
    first = next(iter(data))
    if not hasattr(first, "X"):
        return len(DocumentFrequencies(9).total(first)) > 1
    X = first.X.toarray() if hasattr(first.X, "toarray") else first.X
    return bool(np.ptp(np.ravel(X)[:9]) > 0)


Change = Callable[[pytest.MonkeyPatch], None]


def mistake_in(method: str) -> Callable[[Callable[..., Any]], Change]:
    """Let a function of the usual method, a curator and arguments take the method's place."""

    def named(function: Callable[..., Any]) -> Change:
        return wraps(function)(lambda patch: put(patch, DataCurator, method, function))

    return named


@mistake_in("_answer")
def an_answer_more(usual: Any, curator: DataCurator, *of: Any) -> Any:
    """A rule that stops by raw data: some questions are asked twice."""
    found = usual(curator, *of)
    return usual(curator, *of) if bit(curator) else found


@mistake_in("_answer")
def an_answer_that_no_report_lists(usual: Any, *of: Any) -> Any:
    """Of any data, so that replay alone would not see it."""
    return (usual(*of) + usual(*of)) / 2


@mistake_in("_answer")
def an_answer_without_noise(_: Any, curator: DataCurator, query: Any, *of: Any) -> Any:
    return curator._mean(query)


@mistake_in("_answer")
def some_answers_without_noise(usual: Any, curator: DataCurator, query: Any, *of: Any) -> Any:
    return usual(curator, query, *of) if bit(curator) else curator._mean(query)


@mistake_in("_answer")
def noise_of_another_size_than_reported(usual: Any, curator: DataCurator, *of: Any) -> Any:
    last = curator._records[-1]
    curator._records[-1] = replace(last, sensitivity=last.sensitivity / 2)
    found = usual(curator, *of)
    curator._records[-1] = last
    return found


def at_cost(cost: PrivacyCost, factor: float) -> PrivacyCost:
    return replace(cost, mu=factor * cost.mu, epsilon=factor * cost.epsilon)


@mistake_in("_answer")
def noise_for_another_cost_than_reported(
    usual: Any, curator: DataCurator, query: Any, law: Any, cost: PrivacyCost, *of: Any
) -> Any:
    return usual(curator, query, law, at_cost(cost, 1 / 0.95), *of)


@mistake_in("_answer")
def a_sensitivity_of_the_data(usual: Any, curator: DataCurator, *of: Any) -> Any:
    """That of these data in the place of the largest of any."""
    last, scale = curator._records[-1], 1 + 1e-9 * bit(curator)
    curator._records[-1] = replace(last, sensitivity=last.sensitivity * scale)
    return usual(curator, *of)


@mistake_in("_admit")
def a_question_about_the_data(
    usual: Any, curator: DataCurator, name: str, query: Any, *of: Any
) -> Any:
    """A query that was made for these data, as with their largest value for a limit."""
    if hasattr(query, "__dict__"):
        vars(query)["of_these"] = bit(curator)
    return usual(curator, name, query, *of)


@mistake_in("_admit")
def a_cost_of_the_data(usual: Any, curator: DataCurator, *of: Any) -> Any:
    law, cost, noiseless = usual(curator, *of)
    return law, at_cost(cost, 1.0 if bit(curator) else 0.5), noiseless


@mistake_in("report")
def a_number_of_units(usual: Any, curator: DataCurator, *of: Any) -> Any:
    """Of those in the data, which are fewer than are said to be."""
    return replace(usual(curator, *of), n_units=curator.n_units - bit(curator))


@mistake_in("count")
def the_true_count(usual: Any, curator: DataCurator) -> int:
    """Sums are divided by the number of units that there are, in the place of the released one."""
    usual(curator)
    curator.n_units = max(sum(map(units_of, curator._read())), 1)
    return curator.n_units


MISTAKES = (
    an_answer_more, an_answer_that_no_report_lists, an_answer_without_noise,
    some_answers_without_noise, noise_of_another_size_than_reported,
    noise_for_another_cost_than_reported, a_sensitivity_of_the_data,
    a_question_about_the_data, a_cost_of_the_data, a_number_of_units,
)  # fmt: skip


# Noise

second_look, settle = sampling._second_look, sampling._settle
generator_of = attrgetter("_generator")  # of a source of noise
words_of = attrgetter("_words")  # draws 64 random bits at a time


# Kernels

leading_pairs = row_effects._both_sides


def unit_norms(query: Any, chunk: Any) -> np.ndarray:
    """Norms that a query clips by."""
    return query._norms(chunk, *query._projections(chunk))


def sums_and_covariance(search: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sums that a search for directions has kept, and what it takes for their covariance."""
    return search._sums, search._covariance


# Fitted models and searches

# The function that writes fitted state, as profilers name it.
PUBLISH = FittedStateMixin._publish.__qualname__
model_of = attrgetter("_model")  # that a fitted completion predicts by


def multilinear_of(completion: Any, coordinates: np.ndarray) -> np.ndarray:
    """Values of a fitted completion without mean and biases."""
    return completion._model._multilinear(coordinates)


def with_model(completion: Any, **changes: Any) -> Any:
    """Change parts of the model that a fitted completion predicts by."""
    completion._model = replace(completion._model, **changes)
    return completion


stream_of = attrgetter("_stream")  # state by which a stream goes on


def with_stream(estimator: Any, stream: Any) -> Any:
    """Change the state by which a stream goes on."""
    estimator._stream = stream
    return estimator


def validated_rows(estimator: Any, X: Any) -> Any:
    """Rows as a fitted estimator reads them."""
    return estimator._validated(X, reset=False)


def columns_out(estimator: Any, number: int) -> None:
    """Set how many columns a fitted estimator has put out."""
    estimator._n_features_out = number


check_own_parameters = methodcaller("_check_parameters")  # as a fit does first
unit_score_of = methodcaller("_unit_score")  # name of an estimator's default score


def planned_by(step: Any, X: Any, n_units: int) -> Any:
    """Fit that a step of a pipeline plans, before data is read."""
    return step._fit_of(X, n_units)


delta_set_aside = attrgetter("_delta_set_aside")  # share that thresholds take
table_of = methodcaller("_table")  # shown of a report, a statement or a forecast
page_of = attrgetter("_page")  # of the site, that what is shown links to


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

    def fit(usual: Any, trials: Trials, template: Any, units: Any, cost: Any) -> Any:
        seen.append(("fit", np.flatnonzero(units).tolist()))
        return usual(trials, template, units, cost)

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
