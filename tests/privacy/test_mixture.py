"""Gaussian and pure releases together: never below the truth, seldom far above it."""

import builtins
import math
from collections import Counter
from typing import Any

import pytest
from scipy.stats import binom

from sktensor_dp import BudgetAccountant, BudgetError
from sktensor_dp.privacy import mixture
from sktensor_dp.privacy.accountant import LedgerEntry
from sktensor_dp.privacy.calibration import gaussian_delta
from sktensor_dp.privacy.mixture import mixed_epsilon
from sktensor_dp.privacy.plan import PrivacyCost


def exact_epsilon(mu: float, epsilon: float, uses: int, delta: float) -> float:
    """Of a Gaussian and of equal randomised responses: their losses are a binomial walk."""

    def excess(level: float) -> float:
        # gaussian_delta takes no negative epsilon; this is the symmetry of its curve.
        if level >= 0:
            return gaussian_delta(mu, level)
        return 1 - math.exp(level) + math.exp(level) * gaussian_delta(mu, -level)

    heads = binom.pmf(range(uses + 1), uses, 1 / (1 + math.exp(-epsilon)))
    low, high = 0.0, PrivacyCost(mu, epsilon * uses).epsilon_at(delta)
    for _ in range(60):
        middle = (low + high) / 2
        found = math.fsum(
            share * excess(middle - (2 * k - uses) * epsilon) for k, share in enumerate(heads)
        )
        low, high = (middle, high) if found > delta else (low, middle)
    return high


CASES = [
    (0.4, 0.5, 1, 1e-6),
    (0.2, 0.1, 10, 1e-6),
    (1.0, 0.05, 50, 1e-5),
    (0.01, 0.01, 3, 1e-9),
    (5.0, 1.0, 20, 1e-6),
    (0.1, 30.0, 2, 1e-6),
]


@pytest.mark.parametrize(("mu", "epsilon", "uses", "delta"), CASES)
def test_bound_is_valid_and_close(mu: float, epsilon: float, uses: int, delta: float) -> None:
    stated = PrivacyCost(mu, epsilon * uses).epsilon_at(delta)
    found = mixed_epsilon(mu, {epsilon: uses}, delta, stated)
    exact = exact_epsilon(mu, epsilon, uses, delta)
    # Bisection leaves 2**-60; every pure loss is rounded up by at most two bins of
    # stated / 2**13, and a thousandth of delta moves epsilon by less than that.
    assert exact * (1 - 1e-12) <= found <= exact + (uses + 1) * 2 * stated / 2**13


@pytest.mark.parametrize("parts", [(1.0, 1.0), (1.5, 0.5), (1.9, 0.1), (0.5, 0.5, 1.0)])
@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0])
def test_one_pure_release_covers_several_of_the_same_sum(mu: float, parts: Any) -> None:
    """Parts of the values may be asked several questions where one was charged for."""
    stated = PrivacyCost(mu, 2.0).epsilon_at(1e-6)
    several = mixed_epsilon(mu, Counter(parts), 1e-6, stated)
    # Losses are rounded up by at most two bins each.
    assert several <= mixed_epsilon(mu, {2.0: 1}, 1e-6, stated) + 2 * 3 * stated / 2**13
    if len(set(parts)) == 1:
        whole = exact_epsilon(mu, 2.0, 1, 1e-6)
        assert exact_epsilon(mu, parts[0], len(parts), 1e-6) <= whole * (1 + 1e-9)


def mixed_budget(epsilon: float = 10.0) -> BudgetAccountant:
    budget = BudgetAccountant(epsilon, 1e-6)
    budget.charge([LedgerEntry("fit", "moment", 4, PrivacyCost(mu=0.2))])
    return budget


def test_accountant_takes_the_smaller_bound() -> None:
    budget = mixed_budget()
    for _ in range(20):
        budget.spend(0.05, 1e-9)
    cost = budget.cost
    exact = exact_epsilon(0.4, 0.05, 20, 1e-6 - 2e-8)
    assert exact < budget.total()[0] < 1.02 * exact < 0.85 * cost.epsilon_at(1e-6)


def admits(budget: BudgetAccountant, epsilon: float) -> bool:
    try:
        return budget.check(epsilon, 0)
    except BudgetError:
        return False


def test_check_and_total_agree() -> None:
    budget = mixed_budget(2.3)
    totals = [budget.total()[0]]
    while admits(budget, 0.1):
        budget.spend(0.1, 0)
        totals.append(budget.total()[0])
    assert totals == sorted(totals)
    assert totals[-1] <= 2.3 * (1 + 1e-9)
    with pytest.raises(BudgetError):
        budget.spend(0.1, 0)
    # Adding epsilons would have stopped at the fifth.
    admitted = len(totals) - 1
    assert PrivacyCost(0.4, 0.1 * admitted).epsilon_at(1e-6) > 2.3
    assert exact_epsilon(0.4, 0.1, admitted, 1e-6) <= 2.3
    assert exact_epsilon(0.4, 0.1, admitted + 2, 1e-6) > 2.3
    assert 0 <= budget.remaining()[0] < 0.4


def test_pure_and_gaussian_alone_need_no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    # Alone, each kind may be planned in view of earlier results; the grid's claim is weaker.
    monkeypatch.setattr(mixture, "_composed", lambda *_: pytest.fail("composed on a grid"))
    pure, gaussian = BudgetAccountant(1.0, 1e-6), mixed_budget()
    for _ in range(10):
        pure.spend(0.1, 0)
    assert pure.total() == (1.0, 1e-6)
    assert gaussian.total()[0] == PrivacyCost(0.4).epsilon_at(1e-6)


def test_numbers_that_the_grid_cannot_carry_fall_back_to_the_sum() -> None:
    many = {0.01 * (k + 1): 1 for k in range(40)}
    assert mixed_epsilon(0.1, many, 1e-6, 10.0) == math.inf
    assert mixed_epsilon(0.1, {0.1: 1}, 1e-12, 1.0) == math.inf
    assert mixed_epsilon(0.1, {600.0: 1}, 1e-6, 601.0) == math.inf


def test_without_the_extra_epsilons_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    mixture._composed.cache_clear()
    monkeypatch.setattr(builtins, "__import__", missing)
    budget = mixed_budget()
    budget.spend(0.5, 0)
    assert budget.total()[0] == budget.cost.epsilon_at(1e-6)
    mixture._composed.cache_clear()
