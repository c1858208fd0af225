"""The charge is what the report says, and what another library finds it to be."""

import math

from cases import MODELS, Case, covered, observed
from other_accounting import epsilon_elsewhere

from sktensor_dp.privacy.plan import PrivacyCost


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
    told = epsilon_elsewhere(cost, report.delta)
    assert abs(told - report.epsilon) <= 1e-3 * report.epsilon


def other(row):
    exact = row.get("model", "").endswith("exact")
    return row.get("payer") == "none" or exact


test_charges, test_charges_in_triples = covered(holds, ("neighbours", "payer"), (*MODELS,), other)
