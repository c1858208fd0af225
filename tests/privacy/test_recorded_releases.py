"""Exact values of releases, which tests and auditors may record."""

import multiprocessing
import os
from contextlib import ExitStack

import numpy as np
import pytest
from cases import plain, report_of
from internals import answering

from sktensor_dp import BudgetAccountant, PrivacyLeakWarning, unsafe_recorded_releases
from sktensor_dp.privacy.catalogue import CATALOGUE


def fit(name, **options):
    case = plain(name, payer="none")
    return case.fit(case.build(**options), case.draw())


@pytest.fixture
def recorded():
    with ExitStack() as stack:
        with pytest.warns(PrivacyLeakWarning, match="exact values"):
            releases = stack.enter_context(unsafe_recorded_releases())
        yield releases


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("name", ["topics", "words", "components", "CP, persons"])
def test_a_record_is_what_the_report_lists_and_noise_was_added_to(name, recorded):
    known = []

    def noted(usual, law, value, *of):
        known.append(np.array(value))
        return usual(law, value, *of)

    with answering(noted):
        fitted = fit(name)
    report = fitted.privacy_report_
    assert report.guarantee.startswith("NOT PRIVATE")
    rows = {(row.name, row.mechanism, row.sensitivity, row.sigma) for row in report.rows}
    assert {(one.name, one.law, one.sensitivity, one.sigma) for one in recorded} == rows
    assert len(recorded) == sum(row.uses for row in report.rows)
    assert all(isinstance(one.query, CATALOGUE[one.name].query) for one in recorded)
    of_laws = [one.exact for one in recorded if not isinstance(one.exact, dict)]
    assert all(np.array_equal(*pair) for pair in zip(of_laws, known, strict=True))


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_nothing_of_it_stays(recorded):
    with pytest.warns(PrivacyLeakWarning), unsafe_recorded_releases() as inner:
        fit("components")
    number = len(inner)
    fit("components")
    assert len(inner) == number < len(recorded)
    assert report_of("components").guarantee.startswith("(epsilon")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_searches_and_other_processes_are_refused_before_the_charge(recorded, tmp_path):
    budget = BudgetAccountant(9.0, 1e-3, path=tmp_path / "budget.sqlite")
    with pytest.raises(RuntimeError, match=r"Search.*Nothing was charged"):
        fit("search", accountant=budget)
    child = os.fork()
    if child == 0:
        try:
            fit("components", accountant=budget)
        except RuntimeError as error:
            os._exit(0 if "Nothing was charged" in str(error) else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(enter) == "refused"
    assert budget.entries == ()
    assert recorded == []


def enter():
    try:
        with unsafe_recorded_releases():
            return "entered"
    except RuntimeError:
        return "refused"
