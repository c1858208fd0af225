"""Plans cost what was asked for, neither more nor less."""

import itertools
import math

import pytest

from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan

EPSILONS = (1e-3, 0.1, 1.0, 7.0, 100.0, 700.0)
DELTAS = (1e-12, 1e-6, 1e-2, 0.5)
FRACTIONS = {"mean": 0.1, "pairs": 1 / 3, "triples": 7.0, "steps": 2.0}
USES = {"steps": 7, "pairs": 3}
# Squares of mu add up to within 1e-15; epsilon moves by d ln(epsilon) / d ln(mu) times that,
# at most 1e4 in these budgets.
RELATIVE = 1e-10
BUDGETS = list(itertools.product(EPSILONS, DELTAS))


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_gaussian_plan_composes_to_the_budget(epsilon, delta):
    plan, whole = ReleasePlan.split(epsilon, delta, FRACTIONS, USES), gaussian_mu(epsilon, delta)
    assert plan.cost.epsilon_at(delta) == pytest.approx(epsilon, rel=RELATIVE)
    assert (plan.cost.epsilon, plan.cost.delta) == (0, 0)
    squares = {one.name: one.uses * one.cost.mu**2 / whole**2 for one in plan.planned}
    assert squares == pytest.approx(
        {name: part / sum(FRACTIONS.values()) for name, part in FRACTIONS.items()}
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pure_plan_composes_to_the_budget(epsilon):
    plan = ReleasePlan.split(epsilon, 0.0, FRACTIONS, USES)
    assert plan.cost.epsilon_at(0.0) == pytest.approx(epsilon, rel=1e-12)
    assert plan.cost.mu == 0
    assert plan.cost_of("steps").epsilon == pytest.approx(epsilon * 2 / sum(FRACTIONS.values()) / 7)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("times", [1, 4])
def test_reserved_delta_is_part_of_the_budget(epsilon, delta, times):
    plan = ReleasePlan.split(
        epsilon, delta, {"words": 1, "mean": 3}, {"words": times}, {"words": delta / 10}
    )
    assert plan.cost.epsilon_at(delta) == pytest.approx(epsilon, rel=RELATIVE)
    assert plan.cost.delta == pytest.approx(times * delta / 10)
    # Each use has what it was promised.
    assert plan.cost_of("words").delta == delta / 10


def test_special_plans():
    # What is reserved for a release without a fraction is given back; all of it cannot be.
    reserved = {"words": 5e-7}
    plan = ReleasePlan.split(1.0, 1e-6, {"words": 0, "mean": 1}, reserved_delta=reserved)
    assert [release.name for release in plan.planned] == ["mean"]
    assert plan.cost.mu == gaussian_mu(1.0, 1e-6)
    with pytest.raises(ValueError, match="delta"):
        ReleasePlan.split(1.0, 1e-6, {"words": 1}, reserved_delta={"words": 1e-6})
    for delta in (1e-6, 0.0):
        plan = ReleasePlan.split(math.inf, delta, FRACTIONS, USES)
        assert (plan.cost.epsilon_at(delta), plan.planned[0].uses) == (math.inf, 1)
    for plan in (ReleasePlan(1.0, 1e-6, ()), ReleasePlan.split(1.0, 1e-6, {"mean": 0.0})):
        assert (plan.cost, plan.cost.epsilon_at(0.0)) == (PrivacyCost(), 0)


def test_uses_and_kinds_add_up():
    often = ReleasePlan(1.0, 1e-6, (PlannedRelease("a", PrivacyCost(mu=0.1), 9),))
    assert often.cost.mu == pytest.approx(0.3)
    parts = [PrivacyCost(0.3, 0.5, 1e-7), PrivacyCost(0.4, 0.25, 2e-7), PrivacyCost()]
    total = PrivacyCost.total((part, 1) for part in parts)
    assert total.amounts == pytest.approx((0.5, 0.75, 3e-7))
    gaussian = PrivacyCost(mu=0.5).epsilon_at(1e-6 - 3e-7)
    assert total.epsilon_at(1e-6) == pytest.approx(0.75 + gaussian)


def test_delta_that_is_spent_leaves_no_epsilon():
    assert PrivacyCost(delta=1e-6).epsilon_at(1e-6) == 0
    assert PrivacyCost(delta=1.01e-6).epsilon_at(1e-6) == math.inf
    assert PrivacyCost(mu=0.1, delta=1e-6).epsilon_at(1e-6) == math.inf
    assert PrivacyCost(mu=0.1).epsilon_at(0.0) == math.inf
    # Shares of delta add up again, whichever way they round.
    for count in range(2, 200):
        assert PrivacyCost.total([(PrivacyCost(delta=1e-6 / count), count)]).epsilon_at(1e-6) == 0


@pytest.mark.parametrize("field", ["mu", "epsilon", "delta"])
@pytest.mark.parametrize("wrong", [-1e-9, math.nan, -math.inf])
def test_costs_cannot_be_negative(field, wrong):
    with pytest.raises(ValueError, match=field):
        PrivacyCost(**{field: wrong})
