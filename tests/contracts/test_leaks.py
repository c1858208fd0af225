"""Replay sees every leak of one list, in every small way to fit: in some ways daily."""

from dataclasses import replace
from typing import Any

import pytest
from cases import SEARCHES
from contracts.leaks import LEAKS, MISTAKES, OFTEN, ROWS, an_answer_that_no_report_lists
from contracts.replay_rows import Row, check
from replaying import raw_numbers


def ways(by_day: tuple[str, ...]) -> pytest.MarkDecorator:
    at_night = (
        pytest.param(name, marks=pytest.mark.nightly) for name in ROWS if name not in by_day
    )
    return pytest.mark.parametrize("name", [*by_day, *at_night])


@ways(OFTEN)
def test_without_a_leak_a_way_passes(name):
    check(ROWS[name])


def check_that_it_is_seen(leak: str, row: Row) -> None:
    def leaking(estimator: Any, data: Any) -> Any:
        row.fit(estimator, data)
        LEAKS[leak](estimator, raw_numbers(data))
        return estimator

    with pytest.raises(AssertionError):
        check(replace(row, fit=leaking))


@pytest.mark.parametrize("name", OFTEN[:2])
@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_of_a_fitted_model_is_seen(leak, name):
    check_that_it_is_seen(leak, ROWS[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", ROWS)
def test_leaks_of_every_model_are_seen(name):
    for leak in LEAKS:
        check_that_it_is_seen(leak, ROWS[name])


@ways(OFTEN[:4])
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_of_a_session_is_seen(mistake, name):
    if name in SEARCHES and mistake is an_answer_that_no_report_lists:
        return  # its report lists one trial
    if name == "words, given":
        return  # it releases nothing
    with pytest.raises(AssertionError):
        check(ROWS[name], mistake=mistake)
