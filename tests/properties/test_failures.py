"""A refused call charges nothing; a failed one changes the ledger alone; a paid model is kept."""

import warnings

import numpy as np
import pytest
from cases import Case, covered
from internals import questions
from replaying import state

from sktensor_dp import BudgetAccountant, BudgetError, unsafe_seeded_noise


def fitted_before(case: Case):
    """An estimator that has a model of other data, and what there is to it."""
    model = case.build()
    case.fit(model, case.draw(seed=1))
    return model, state({**vars(model), "accountant": None}, whole=False)


def unchanged(model, before) -> bool:
    return state({**vars(model), "accountant": None}, whole=False) == before


def refused(case: Case) -> None:
    """For too small a budget, and for data of a wrong kind; nothing was charged for either."""
    model, before = fitted_before(case)
    budget = BudgetAccountant(1e-3, 1e-9)
    model.set_params(accountant=budget)
    with pytest.raises(BudgetError, match=r"[Nn]othing was charged"):
        case.fit(model, case.draw())
    budget = BudgetAccountant(1e9, 0.5)
    model.set_params(accountant=budget)
    data, wrong = case.draw(), None
    if case.of.family != "texts":
        wrong = np.array(data.X, float)
        wrong[..., 0] = np.inf
    with pytest.raises((ValueError, TypeError)):
        model.fit(wrong) if data.y is None else model.fit(wrong, data.y)
    assert budget.entries == ()
    assert unchanged(model, before)


def failed(case: Case) -> None:
    """At any of its releases: the charge stays, and nothing else."""
    model, before = fitted_before(case)
    for place in range(99):
        budget = BudgetAccountant(1e9, 0.5)
        model.set_params(accountant=budget)
        with warnings.catch_warnings(), questions(fail_at=place) as asked:
            warnings.simplefilter("ignore")
            seeds = unsafe_seeded_noise(0)
            try:
                with seeds:
                    case.fit(model, case.draw())
            except MemoryError:
                assert budget.entries
                assert unchanged(model, before)
                continue
        assert len(asked) == place
        return
    raise AssertionError("it makes releases without an end")


def holds(case: Case) -> None:
    refused(case)
    failed(case)


def other(row):
    return row.get("model") == "words, given" or row.get("model", "").endswith("exact")


test_failures, test_failures_in_triples = covered(holds, ("neighbours",), leave_out=other)
