"""Replay sees every leak of one list, in every small way to fit."""

from dataclasses import replace
from typing import Any

import pytest
from contracts.leaks import FEW, LEAKS, MISTAKES, ROWS, an_answer_that_no_report_lists
from contracts.replay_rows import check
from replaying import raw_numbers

every_way = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


@every_way
def test_without_a_leak_a_way_passes(row):
    check(row)


@pytest.mark.parametrize("row", FEW, ids=lambda row: row.name)
@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_of_a_fitted_model_is_seen(leak, row):
    def leaking(estimator: Any, data: Any) -> Any:
        row.fit(estimator, data)
        LEAKS[leak](estimator, raw_numbers(data))
        return estimator

    with pytest.raises(AssertionError):
        check(replace(row, fit=leaking))


@every_way
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_of_a_session_is_seen(mistake, row):
    if row.name == "search" and mistake is an_answer_that_no_report_lists:
        return  # its report lists one trial
    with pytest.raises(AssertionError):
        check(row, mistake=mistake)
