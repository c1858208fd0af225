"""The charge is what the report says, and what another library finds it to be."""

import math

import numpy as np
import pytest
from cases import EXACT, MODELS, STREAMED, Case, covered, observed, observed_once
from other_accounting import epsilon_elsewhere

from sktensor_dp import load_statement
from sktensor_dp.privacy.plan import BY_COUNT, PrivacyCost


def holds(case: Case) -> None:
    data = case.draw()
    model, releases = observed_once(case)
    if releases and case.model not in STREAMED:
        # What is recorded as exact has no noise.
        known = observed(case, data, seed=1)[1][0]
        np.testing.assert_equal(releases[0].exact, known.exact)
    report = model.privacy_report_
    entries = tuple(one for one in model.accountant.entries if not one.gives_back)
    given_back = [(one.release, one.uses) for one in model.accountant.entries if one.gives_back]
    assert set(given_back) <= {(one.name, one.uses) for one in report.composition.unused}
    if case.of.options.get("vocabulary") is not None:
        assert entries == ()
        return
    assert {one.unit for one in entries} == {report.unit}
    if report.composition.kind == "releases" and case["neighbours"] != "add_remove":
        assert {row.name for row in report.rows} <= {one.release for one in entries}
    if report.composition.kind == "releases" and case["neighbours"] == "add_remove":
        count, rest = entries
        assert (count.release, rest.release) == ("unit_count", BY_COUNT)
        assert {count.neighbours, rest.neighbours} == {"add_remove"}
        assert (report.rows[0].name, report.rows[0].sensitivity) == ("unit_count", 1)
        assert load_statement(report.to_json()).n_units == report.n_units
    # The whole plan is charged, whatever of it was made.
    cost = PrivacyCost.total([(one.cost, one.uses) for one in entries])
    assert math.isclose(cost.epsilon_at(report.delta), report.epsilon, rel_tol=1e-9)
    assert math.isclose(report.epsilon, model.epsilon, rel_tol=1e-6)  # all that was asked for
    if report.composition.kind == "releases":  # no batches, nor a search
        assert model.accountant.earlier_fit(entries) == entries[0]
        if "output" not in case.model:  # which divides epsilon between two kinds of noise
            assert model._plan_by_parameters().cost.amounts == pytest.approx(cost.amounts)
    told = epsilon_elsewhere(cost, report.delta)
    assert abs(told - report.epsilon) <= 1e-3 * report.epsilon


def other(row):
    """Batches are disjoint, and charged once; where units are counted, each counts its own."""
    exact, batches = row.get("model") in EXACT, row.get("container") == "batches"
    return (
        row.get("payer") == "none" or exact
        or row.get("container", "batches") not in ("array", "list", "batches")
        or (batches and row.get("neighbours") == "add_remove")
        or (row.get("container") == "list" and row.get("model") not in LISTS)
    )  # fmt: skip


LISTS = {name for name, model in MODELS.items() if model.family == "texts"}
AXES = ("container", "neighbours", "payer")
test_charges, test_charges_in_triples = covered(holds, AXES, leave_out=other)
