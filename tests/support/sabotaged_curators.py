"""Curators with deliberate mistakes, which replay has to see."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.queries.text import DocumentFrequencies


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


def a_number_of_units(patch: pytest.MonkeyPatch) -> None:
    """Of those in the data, which are fewer than are said to be."""
    report = DataCurator.report

    def counted(self: DataCurator, *of: Any) -> Any:
        return replace(report(self, *of), n_units=self.n_units - bit(self))

    patch.setattr(DataCurator, "report", counted)


MISTAKES = (
    an_answer_more, an_answer_that_no_report_lists, an_answer_without_noise,
    some_answers_without_noise, noise_of_another_size_than_reported, a_sensitivity_of_the_data,
    a_question_about_the_data, a_cost_of_the_data, a_number_of_units,
)  # fmt: skip
