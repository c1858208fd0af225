"""Private names of the library that tests use: no other file of tests has any.

Three kinds: what curators ask and answer, seen or replaced; curators with deliberate mistakes,
which replay has to see; and parts of fitted models, of sources of noise and of searches.
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
from sktensor_dp.model_selection.search import Trials
from sktensor_dp.privacy import sampling
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.sums import units_of
from sktensor_dp.queries.text import DocumentFrequencies
from sktensor_dp.tensor import row_effects

# Curators
data_of = methodcaller("_read")  # raw data that a curator holds


def true_answer(curator: DataCurator, query: Any) -> Any:
    """Mean over units without noise."""
    return curator._mean(query)


@contextmanager
def answering(answer: Callable[..., Any]) -> Iterator[None]:
    """Let `answer(usual, curator, query, ...)` answer every query that was admitted."""
    usual = DataCurator._answer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataCurator, "_answer", lambda *of: answer(usual, *of))
        yield


@contextmanager
def questions(fail_at: int | None = None) -> Iterator[list[tuple[str, Any]]]:
    """List names and queries that curators admit; one of them may fail for lack of memory."""
    asked: list[tuple[str, Any]] = []
    usual = DataCurator._admit

    def admitted(curator: DataCurator, name: str, query: Any, *more: Any) -> Any:
        found = usual(curator, name, query, *more)
        asked.append((name, query))
        if len(asked) - 1 == fail_at:
            raise MemoryError
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataCurator, "_admit", admitted)
        yield asked


@contextmanager
def reads() -> Iterator[list[list[Any]]]:
    """List the chunks of data at every read."""
    found: list[list[Any]] = []
    usual = DataCurator._read

    def read(curator: DataCurator) -> Any:
        found.append(list(usual(curator)))
        return usual(curator)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataCurator, "_read", read)
        yield found


@contextmanager
def gains_of(deviations: float) -> Iterator[None]:
    """Let all held-out gains be so many deviations of their noise."""

    def gained(usual: Any, curator: DataCurator, *of: Any) -> Any:
        last = curator._records[-1]
        is_gain = last.name == "held_out_scores"
        return np.array([deviations * last.sigma]) if is_gain else usual(curator, *of)

    with answering(gained):
        yield


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


def an_answer_more(patch: pytest.MonkeyPatch) -> None:
    """A rule that stops by raw data: some questions are asked twice."""
    answer = DataCurator._answer

    def again(self: DataCurator, *of: Any) -> Any:
        found = answer(self, *of)
        return answer(self, *of) if bit(self) else found

    patch.setattr(DataCurator, "_answer", again)


def an_answer_that_no_report_lists(patch: pytest.MonkeyPatch) -> None:
    """Of any data, so that replay alone would not see it."""
    answer = DataCurator._answer
    patch.setattr(DataCurator, "_answer", lambda *of: (answer(*of) + answer(*of)) / 2)


def an_answer_without_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DataCurator, "_answer", lambda self, query, *more: self._mean(query))


def some_answers_without_noise(patch: pytest.MonkeyPatch) -> None:
    answer = DataCurator._answer

    def exact(self: DataCurator, query: Any, *more: Any) -> Any:
        return answer(self, query, *more) if bit(self) else self._mean(query)

    patch.setattr(DataCurator, "_answer", exact)


def noise_of_another_size_than_reported(patch: pytest.MonkeyPatch) -> None:
    answer = DataCurator._answer

    def smaller(self: DataCurator, *of: Any) -> Any:
        last = self._records[-1]
        self._records[-1] = replace(last, sensitivity=last.sensitivity / 2)
        found = answer(self, *of)
        self._records[-1] = last
        return found

    patch.setattr(DataCurator, "_answer", smaller)


def noise_for_another_cost_than_reported(patch: pytest.MonkeyPatch) -> None:
    answer = DataCurator._answer

    def smaller(self: DataCurator, query: Any, law: Any, cost: PrivacyCost, *of: Any) -> Any:
        cost = replace(cost, mu=cost.mu / 0.95, epsilon=cost.epsilon / 0.95)
        return answer(self, query, law, cost, *of)

    patch.setattr(DataCurator, "_answer", smaller)


def a_sensitivity_of_the_data(patch: pytest.MonkeyPatch) -> None:
    """That of these data in the place of the largest of any."""
    answer = DataCurator._answer

    def local(self: DataCurator, *of: Any) -> Any:
        last = self._records[-1]
        scale = 1 + 1e-9 * bit(self)
        self._records[-1] = replace(last, sensitivity=last.sensitivity * scale)
        return answer(self, *of)

    patch.setattr(DataCurator, "_answer", local)


def a_question_about_the_data(patch: pytest.MonkeyPatch) -> None:
    """A query that was made for these data, as with their largest value for a limit."""
    admit = DataCurator._admit

    def made(self: DataCurator, name: str, query: Any, *more: Any) -> Any:
        if hasattr(query, "__dict__"):
            vars(query)["of_these"] = bit(self)
        return admit(self, name, query, *more)

    patch.setattr(DataCurator, "_admit", made)


def a_cost_of_the_data(patch: pytest.MonkeyPatch) -> None:
    admit = DataCurator._admit

    def paid(self: DataCurator, *of: Any) -> Any:
        law, cost, noiseless = admit(self, *of)
        share = 1.0 if bit(self) else 0.5
        return law, replace(cost, mu=share * cost.mu, epsilon=share * cost.epsilon), noiseless

    patch.setattr(DataCurator, "_admit", paid)


def the_true_count(patch: pytest.MonkeyPatch) -> None:
    """Sums are divided by the number of units that there are, in the place of the released one."""
    counted = DataCurator.count

    def count(self: DataCurator) -> int:
        counted(self)
        self.n_units = max(sum(map(units_of, self._read())), 1)
        return self.n_units

    patch.setattr(DataCurator, "count", count)


def a_number_of_units(patch: pytest.MonkeyPatch) -> None:
    """Of those in the data, which are fewer than are said to be."""
    report = DataCurator.report

    def counted(self: DataCurator, *of: Any) -> Any:
        return replace(report(self, *of), n_units=self.n_units - bit(self))

    patch.setattr(DataCurator, "report", counted)


MISTAKES = (
    an_answer_more, an_answer_that_no_report_lists, an_answer_without_noise,
    some_answers_without_noise, noise_of_another_size_than_reported,
    noise_for_another_cost_than_reported, a_sensitivity_of_the_data,
    a_question_about_the_data, a_cost_of_the_data, a_number_of_units,
)  # fmt: skip


def probed(curator: DataCurator, probe: Any) -> DataCurator:
    """Put a probe in the place of a curator's source of noise."""
    probe.process, curator._noise = curator._noise.process, probe
    return curator


def planned_cost(curator: DataCurator, name: str) -> PrivacyCost:
    """What a use of a planned release costs."""
    return curator._plan.cost_of(name)


reader_of = methodcaller("_reader")  # of chunks: what reads partitions where they lie


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


target_range = methodcaller("_target_range")  # that predictions are scored within


def with_model(completion: Any, **changes: Any) -> Any:
    """Change parts of the model that a fitted completion predicts by."""
    completion._model = replace(completion._model, **changes)
    return completion


stream_of = attrgetter("_stream")  # state by which a stream goes on


def with_stream(estimator: Any, stream: Any) -> Any:
    """Change the state by which a stream goes on."""
    estimator._stream = stream
    return estimator


declared_in = attrgetter("_saved")  # what files of a class hold


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
    fitted, scored = Trials._fitted, Trials._scored

    def fit(self: Trials, template: Any, units: Any, cost: Any) -> Any:
        seen.append(("fit", np.flatnonzero(units).tolist()))
        return fitted(self, template, units, cost)

    def score(self: Trials, model: Any, units: Any) -> Any:
        seen.append(("score", np.flatnonzero(units).tolist()))
        return scored(self, model, units)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trials, "_fitted", fit)
        patch.setattr(Trials, "_scored", score)
        yield seen


@contextmanager
def trials_made() -> Iterator[list[int]]:
    """Count the trials of searches."""
    made: list[int] = []
    run = Trials.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trials, "run", lambda self, bits: made.append(1) or run(self, bits))
        yield made
