"""Whatever kind of number or process a charge comes from, it counts in full."""

import multiprocessing
import os
import shutil
from fractions import Fraction

import numpy as np
import pytest

from sktensor_dp import BudgetAccountant, PrivateCPCompletion
from sktensor_dp.exceptions import BudgetError, LedgerError
from sktensor_dp.privacy.accountant import LedgerEntry
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.spending import UNIT, Spending

CELLS = np.array([(i, j) for i in range(60) for j in range(8)])
VALUES = np.random.default_rng(0).uniform(0, 1, len(CELLS))


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.float32])
def test_a_file_keeps_numpys_numbers_as_numbers(kind, tmp_path):
    budgets = [BudgetAccountant(9.0, 1e-6), BudgetAccountant(9.0, 1e-6, path=tmp_path / "b")]
    for budget in budgets:
        budget.charge([LedgerEntry("a", "g", 1, PrivacyCost(mu=0.1))])
        uses = 3 if kind is np.float32 else kind(3)
        budget.charge([LedgerEntry("a", "p", uses, PrivacyCost(epsilon=kind(1)))])
        budget.charge([LedgerEntry("a", "g", 1, PrivacyCost(mu=0.1))])
    memory, file = budgets
    # 3 from the pure uses alone, and less than a tenth of it from the others.
    assert file.total() == memory.total()
    assert 3 < file.total()[0] < 4
    assert file.entries == memory.entries
    assert type(file.entries[1].uses) is int


def test_numpys_number_of_sweeps_buys_nothing(tmp_path):
    admitted = []
    for sweeps in (3, np.int64(3)):
        budget = BudgetAccountant(3.0, 1e-6, path=tmp_path / str(type(sweeps)))
        for _ in range(4):
            PrivateCPCompletion(
                2, bounds=(0, 1), perturbation="gradient", max_iter=sweeps,
                epsilon=0.5, delta=0, accountant=budget,
            ).fit(CELLS, VALUES)  # fmt: skip
        cost = PrivacyCost(mu=gaussian_mu(1.0, 5e-7))
        for _ in range(40):
            try:
                budget.charge([LedgerEntry("a", "g", 1, cost)])
            except BudgetError:
                break
        else:
            pytest.fail("forty fits fit into a budget for a few")
        admitted.append(len(budget.entries))
    assert admitted[0] == admitted[1]


@pytest.mark.parametrize("value", [1 / 3, 0.1, 1e-9, 7.7, 1e-25])
def test_every_charge_is_rounded_up_by_less_than_a_unit(value):
    costs = [PrivacyCost(value, value, value)] * 3
    sums = Spending().plus([LedgerEntry("a", "g", 1, cost) for cost in costs])
    exact = {
        sums.mu_squared: Fraction(value) ** 2,
        # As people write them: a tenth is one.
        sums.epsilon: Fraction(repr(value)),
        sums.delta: Fraction(repr(value)),
    }
    for units, one in exact.items():
        assert 3 * one * UNIT <= units < 3 * (one * UNIT + 1)


def test_charges_hand_nothing_back():
    with pytest.raises(ValueError, match="uses"):
        LedgerEntry("a", "p", -1, PrivacyCost(epsilon=1.0))


def _spend(budget, answers):
    try:
        budget.spend(0.9, 0)
        answers.put("spent")
    except LedgerError:
        answers.put("refused")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork processes")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_copy_of_a_ledger_in_memory_is_refused():
    context = multiprocessing.get_context("fork")
    budget, answers = BudgetAccountant(1.0, 0.0), context.Queue()
    child = context.Process(target=_spend, args=(budget, answers))
    child.start()
    assert answers.get(timeout=60) == "refused"
    child.join()
    budget.spend(0.9, 0)


def test_nothing_is_released_whose_charge_is_not_in_the_file(tmp_path):
    path = tmp_path / "b"
    budget = BudgetAccountant(5.0, 1e-6, path=path)
    shutil.copy(path, tmp_path / "older")
    receipt = budget.charge([LedgerEntry("a", "x", 1, PrivacyCost(mu=0.1))])
    os.replace(tmp_path / "older", path)
    with pytest.raises(LedgerError, match="fewer charges"):
        receipt.released("x", 1.0, 10.0)
