"""What each release takes of a budget is shown, and no release looks free."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import table_of

from sktensor_dp import BudgetAccountant
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.plan import PrivacyCost, ReleasePlan, budget_fractions
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.spending import LedgerEntry


def costs_of(plan: ReleasePlan) -> list[tuple[PrivacyCost, int]]:
    return [(planned.cost, planned.uses) for planned in plan.releases]


def report_of(plan: ReleasePlan) -> PrivacyReport:
    rows = tuple(
        ReleaseRecord(
            one.name, "a sum", 1.0, 2.0, one.cost.mu, one.cost.epsilon, one.cost.delta, one.uses, ""
        )
        for one in plan.releases
    )
    return PrivacyReport(
        plan.epsilon, plan.delta, "document", "replace_one", 9, False, Composition("releases", rows)
    )


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 40.0])
def test_fractions_are_those_of_the_plan(epsilon: float, delta: float) -> None:
    reserved = {"a": delta / 20}
    plan = ReleasePlan.split(epsilon, delta, {"a": 1, "b": 3, "c": 4}, {"b": 6, "c": 2}, reserved)
    # gaussian_mu is rounded down by less than 1e-9 of itself.
    assert budget_fractions(costs_of(plan), epsilon, delta) == pytest.approx([1 / 8, 3 / 8, 1 / 2])
    report = report_of(plan)
    assert report.fractions_of == ("epsilon" if delta == 0 else "mu^2")
    for shown in (str(report), report._repr_html_()):
        assert f"fraction of {report.fractions_of}" in shown
        assert all(part in shown for part in ("12.5%", "37.5%", "50.0%"))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_cost_reads_as_nothing(delta: float) -> None:
    plan = ReleasePlan.split(1.0, delta, {"a": 1, "b": 3})
    report = report_of(plan)
    budget = BudgetAccountant(1.0, delta)
    budget.charge([LedgerEntry("Model", one.name, one.uses, one.cost) for one in plan.releases])
    for table in (table_of(report), table_of(budget)):
        head, rows = table.head, table.rows
        paid, unpaid = ("mu", "epsilon") if delta else ("epsilon", "mu")
        for row in rows:
            assert row[head.index(unpaid)] == ""
            assert float(row[head.index(paid)]) > 0
    assert budget.to_frame()["fraction"].tolist() == pytest.approx([0.25, 0.75])
    assert list(report.to_frame()["fraction"]) == pytest.approx([0.25, 0.75])


def test_a_mixture_says_what_each_share_is_of() -> None:
    rows = (
        ReleaseRecord("choice", "", 1.0, 2.0, 0.0, 0.5, 0.0, 1, "laplace"),
        ReleaseRecord("mean", "", 1.0, 9.0, gaussian_mu(2.0, 1e-6) / 2, 0.0, 0.0, 1, "gaussian"),
    )
    whole = Composition("releases", rows)
    report = PrivacyReport(2.0, 1e-6, "document", "replace_one", 9, False, whole)
    assert report.fractions == pytest.approx((0.25, 0.25))
    assert report.fractions_of == "budget"


def test_fractions_of_a_ledger_are_of_its_budget_and_add_up_to_all_of_it() -> None:
    budget = BudgetAccountant(4.0, 1e-6)
    first, second = budget.split([0.3, 0.7], thresholds=1)
    reserved = first["delta"] / 2
    mu = gaussian_mu(first["epsilon"], first["delta"] - reserved)
    budget.charge([LedgerEntry("Words", "counts", 1, PrivacyCost(mu=mu, delta=reserved))])
    rest = gaussian_mu(second["epsilon"], second["delta"])
    budget.charge([LedgerEntry("Topics", "pairs", 4, PrivacyCost(mu=rest / 2))])
    assert [row["fraction"] for row in budget.to_dict()["entries"]] == pytest.approx([0.3, 0.7])
    for shown in (str(budget), budget._repr_html_()):
        assert "30.0%" in shown
        assert "70.0%" in shown
        assert "fraction: of the budget" in shown


@pytest.mark.parametrize(
    ("cost", "epsilon", "delta"),
    [
        (PrivacyCost(mu=math.inf), 1.0, 1e-6),
        (PrivacyCost(mu=1.0), math.inf, 1e-6),
        (PrivacyCost(mu=1.0), 1.0, 0.0),
        (PrivacyCost(mu=1.0, delta=1e-6), 1.0, 1e-6),
    ],
)
def test_what_has_no_bound_has_no_share(cost: PrivacyCost, epsilon: float, delta: float) -> None:
    assert budget_fractions([(cost, 1)], epsilon, delta) == [None]


numbers = st.floats(0, allow_nan=False, allow_infinity=True)


@settings(deadline=None)  # a loaded machine is slow at times
@given(
    mu=numbers,
    cost=numbers,
    reserved=numbers,
    uses=st.integers(0, 2**62),
    epsilon=numbers,
    delta=st.floats(0, 1, exclude_max=True),
)
def test_any_report_of_a_file_can_be_shown(
    mu: float, cost: float, reserved: float, uses: int, epsilon: float, delta: float
) -> None:
    """What a file may hold must not break what shows it."""
    (fraction,) = budget_fractions([(PrivacyCost(mu, cost, reserved), uses)], epsilon, delta)
    assert fraction is None or 0 <= fraction <= 1
