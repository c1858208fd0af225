"""The charge is what the report says, and what another library finds it to be."""

import math

from cases import MODELS, Case, covered, observed
from dp_accounting.pld import privacy_loss_distribution as losses

from sktensor_dp.privacy.plan import PrivacyCost


def found_elsewhere(cost: PrivacyCost, delta: float) -> float:
    """Epsilon of a cost at a delta, by privacy loss distributions of another library."""
    if cost.mu == 0:
        return cost.epsilon
    whole = losses.from_gaussian_mechanism(
        1 / cost.mu, value_discretization_interval=1e-3 * cost.mu
    )
    return cost.epsilon + whole.get_epsilon_for_delta(delta - cost.delta)


def holds(case: Case) -> None:
    model, _ = observed(case, case.draw())
    report, entries = model.privacy_report_, model.accountant.entries
    if case.of.options.get("vocabulary") is not None:
        assert entries == ()
        return
    assert {one.unit for one in entries} == {report.unit}
    if report.composition.kind == "releases" and case["neighbours"] != "add_remove":
        assert {row.name for row in report.rows} <= {one.release for one in entries}
    # The whole plan is charged, whatever of it was made.
    cost = PrivacyCost.total([(one.cost, one.uses) for one in entries])
    assert math.isclose(cost.epsilon_at(report.delta), report.epsilon, rel_tol=1e-9)
    told = found_elsewhere(cost, report.delta)
    assert abs(told - report.epsilon) <= 1e-3 * report.epsilon


def other(row):
    exact = row.get("model", "").endswith("exact")
    return row.get("payer") == "none" or exact


test_charges, test_charges_in_triples = covered(holds, ("neighbours", "payer"), (*MODELS,), other)
