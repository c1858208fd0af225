"""Reports say what holds, in text, JSON, tables and HTML."""

import json
import math
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sktensor_dp import BudgetAccountant
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.plan import PrivacyCost, ReleasePlan, budget_fractions
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.statement import load_statement

NASTY = "<script>alert(\"x\")</script> & 'co'"


MEAN = ReleaseRecord("mean", "a mean", 0.1, 0.5, 0.2, 0.0, 0.0, 1, "gaussian")
PAIRS = replace(MEAN, name="pairs", sigma=0.0, mu=math.inf)


def report(rows: tuple[ReleaseRecord, ...] = (MEAN, PAIRS), **changes: Any) -> PrivacyReport:
    whole = Composition("releases", rows)
    usual = PrivacyReport(1.0, 1e-6, "document", "replace_one", 20, False, whole, ("a note",))
    return replace(usual, **changes)


def test_text_states_guarantee_rows_and_notes():
    title, head, mean, pairs, test, note = str(report()).splitlines()
    assert title == (
        "(epsilon = 1, delta = 1e-6)-differential privacy for replacing one document of 20"
    )
    columns = "release mechanism sensitivity sigma mu epsilon uses fraction of mu^2"
    assert head.split() == columns.split()
    assert mean.split() == ["mean", "gaussian", "0.1", "0.5", "0.2", "1", "71.4%"]
    assert pairs.split()[4] == "inf"
    assert test.startswith("mu = inf: a test of what one document holds")
    assert note == "a note"
    assert len(head) == len(mean)
    assert mean.index("0.2") + 3 == head.index("mu") + 2


def test_seeded_or_no_noise_is_called_not_private_everywhere():
    seeded, bare = report(seeded=True), report(epsilon=math.inf)
    for text in (seeded.guarantee, str(seeded)):
        assert "NOT PRIVATE" in text
        assert "differential privacy" not in text
    stated = json.loads(seeded.to_json())
    assert (stated["noise"]["seeded"], stated["guarantee"]["protects"]) == (True, False)
    assert bare.guarantee == "epsilon: inf (no noise, not private)"
    assert "NOT PRIVATE" in report(epsilon=math.inf, seeded=True).guarantee
    assert seeded.false_negative_rate(0.05) == bare.false_negative_rate(0.05) == 0
    for rate in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="false_positive_rate must lie in"):
            report().false_negative_rate(rate)


def test_json_is_strict_and_complete():
    full = report(epsilon=math.inf, notes=(NASTY,))
    # None of NaN and infinity, which Python alone reads.
    parsed = json.loads(full.to_json(), parse_constant=pytest.fail)
    assert parsed["guarantee"]["epsilon"] == "inf"
    rows = parsed["composition"]["releases"]
    assert rows[1]["mu"] == "inf"
    assert parsed["notes"] == [NASTY]
    assert asdict(full.rows[0]).items() <= rows[0].items()


def test_reports_of_nothing_can_be_shown():
    empty = report(rows=(), notes=())
    assert str(empty).count("\n") == 2


def test_disjoint_batches_cost_what_the_dearest_costs():
    first = report((MEAN, replace(MEAN, name="pairs")))
    joined = first.joined(report((MEAN,), epsilon=0.5, delta=1e-5, n_units=7, seeded=True))
    dearest = first.composition.epsilon_at(1e-5)
    assert (joined.epsilon, joined.delta, joined.n_units) == (dearest, 1e-5, 27)
    assert joined.seeded
    assert [row.name for row in joined.rows] == ["mean", "pairs", "mean"]
    assert "disjoint" in str(joined)


@pytest.mark.parametrize(("name", "value"), [("neighbours", "add_remove"), ("unit", "person")])
def test_reports_of_other_units_are_not_joined_and_say_why(name, value):
    with pytest.raises(ValueError, match=f"its {name}={value!r}, where this report has"):
        report().followed_by(report(**{name: value}))


def test_fits_to_several_data_sets_add_up_for_whoever_is_in_all_of_them():
    """Whatever comes first: each number of units is named, the largest is that of the whole."""
    several = [report((MEAN,), n_units=n) for n in (20, 7, 20)]
    for first, *others in (several, several[::-1], several[1:]):
        whole = first
        for later in others:
            whole = whole.followed_by(later)
        assert whole.n_units == 20
        assert "replacing one document of 20 (7 in other fits)\n" in str(whole)
        assert whole.in_brief.startswith("20 documents (7 in other fits), epsilon")
        assert whole.mu == pytest.approx(0.2 * len([first, *others]) ** 0.5)
        assert load_statement(whole.to_json()) == whole


# Costs: mu, pure epsilon, delta that fails; and delta of the report.
@pytest.mark.parametrize(
    ("cost", "delta"),
    [((0.8, 0, 0), 1e-6), ((0.8, 0, 1e-3), 2e-3), ((0, 1.2, 0), 0.0), ((0.5, 0.7, 0), 1e-6)],
)
def test_missed_units_are_no_fewer_than_any_epsilon_and_delta_of_the_cost_say(cost, delta):
    mu, epsilon, fails = cost
    rows = (replace(MEAN, mu=mu, epsilon=epsilon, delta=fails),)
    whole = Composition("releases", rows)
    found = report(epsilon=whole.epsilon_at(delta), delta=delta, rows=rows)
    assert found.mu == (mu if (epsilon, fails) == (0, 0) else None)
    rates = np.linspace(0, 1, 21)
    missed = np.array([found.false_negative_rate(rate) for rate in rates])
    deltas = np.append(fails + np.geomspace(1e-9, 0.5, 400), delta)
    epsilons = np.array([whole.epsilon_at(one) for one in deltas])
    lines = [1 - deltas - np.exp(epsilons) * rates[:, None],
             np.exp(-epsilons) * (1 - deltas - rates[:, None])]  # fmt: skip
    lower = np.maximum(0, lines).max(axis=(0, 2))
    assert (missed <= 1 - rates + 1e-12).all()
    if epsilon == 0:
        # Gaussian noise: the curve is the envelope of all its lines.
        assert missed == pytest.approx(lower, abs=0.003)
        assert (missed >= lower - 1e-9).all()
    elif mu == 0:
        assert missed == pytest.approx(lower, abs=1e-9)
    else:
        assert (missed <= lower + 1e-9).all()


def test_tests_on_the_page_about_epsilon_are_those_of_reports():
    page = (Path(__file__).parents[2] / "docs" / "privacy" / "epsilon.md").read_text("utf-8")
    table = page.split("## As tests")[1].split("##")[0]
    lines = [re.findall(r"\d+\.?\d*", line) for line in table.splitlines() if line[:1] == "|"]
    lines = [line for line in lines if len(line) == 5]
    assert len(lines) == 5
    for epsilon, mu, *missed in lines:
        strength = gaussian_mu(float(epsilon), 1e-6)
        found = report(epsilon=float(epsilon), rows=(replace(MEAN, mu=strength),))
        assert f"{strength:.3f}" == mu
        assert ", ".join(f"{one}%" for one in missed) in str(found)


def report_of(plan: ReleasePlan) -> PrivacyReport:
    rows = [replace(MEAN, name=r.name, uses=r.uses, **asdict(r.cost)) for r in plan.planned]
    return report(tuple(rows), epsilon=plan.epsilon, delta=plan.delta)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 40.0])
def test_fractions_are_those_of_the_plan(epsilon, delta):
    reserved = {"a": delta / 20}
    plan = ReleasePlan.split(epsilon, delta, {"a": 1, "b": 3, "c": 4}, {"b": 6, "c": 2}, reserved)
    found = report_of(plan)
    # gaussian_mu is rounded down by less than 1e-9 of itself.
    assert found.fractions == pytest.approx((1 / 8, 3 / 8, 1 / 2))
    assert found.fractions_of == ("epsilon" if delta == 0 else "mu^2")
    for said in (f"fraction of {found.fractions_of}", "12.5%", "37.5%", "50.0%"):
        assert said in str(found)


def test_a_unit_of_a_stream_bears_the_fractions_of_its_batch():
    plan = ReleasePlan.split(1.0, 1e-6, {"a": 1, "b": 3}, {"b": 2}, {"a": 1e-7})
    stream = report_of(plan)
    for _ in range(2):
        stream = stream.joined(report_of(plan))
    assert [row.uses for row in stream.rows] == [3, 6]
    assert stream.fractions == pytest.approx((1 / 4, 3 / 4))


def test_a_mixture_says_what_each_fraction_is_of():
    choice = replace(MEAN, name="choice", mu=0.0, epsilon=0.5, mechanism="laplace")
    found = report((choice, replace(MEAN, mu=gaussian_mu(2.0, 1e-6) / 2)), epsilon=2.0)
    assert found.fractions == pytest.approx((0.25, 0.25))
    assert found.fractions_of == "budget"


def test_fractions_of_a_ledger_are_of_its_budget_and_add_up_to_all_of_it():
    budget = BudgetAccountant(4.0, 1e-6)
    first, second = budget.split([0.3, 0.7], ["vocabulary", "gaussian"])
    reserved = first["delta"] / 2
    mu = gaussian_mu(first["epsilon"], first["delta"] - reserved)
    rest = gaussian_mu(second["epsilon"], second["delta"])
    budget.charge([LedgerEntry("Words", "counts", 1, PrivacyCost(mu=mu, delta=reserved))])
    budget.charge([LedgerEntry("Topics", "pairs", 4, PrivacyCost(mu=rest / 2))])
    assert [row["fraction"] for row in json.loads(budget.to_json())["entries"]] == pytest.approx(
        [0.3, 0.7]
    )
    for said in (
        "30.0%",
        "70.0%",
        "fraction: of the budget",
        "planned release ",
        "without sigma was not",
    ):
        assert said in str(budget)


@pytest.mark.parametrize(
    ("cost", "epsilon", "delta"),
    [
        (PrivacyCost(mu=math.inf), 1.0, 1e-6), (PrivacyCost(mu=1.0), math.inf, 1e-6),
        (PrivacyCost(mu=1.0), 1.0, 0.0), (PrivacyCost(mu=1.0, delta=1e-6), 1.0, 1e-6),
    ],
)  # fmt: skip
def test_what_has_no_bound_has_no_fraction(cost, epsilon, delta):
    assert budget_fractions([(cost, 1)], epsilon, delta) == [None]


numbers = st.floats(0, allow_nan=False, allow_infinity=True)


amounts = st.tuples(numbers, numbers, numbers, st.integers(0, 2**62))


@settings(deadline=None)  # a loaded machine is slow at times
@example(spent=(0.0, 4.5e307, 0.0, 0), epsilon=0.25, delta=0.0)
@given(spent=amounts, epsilon=numbers, delta=st.floats(0, 1, exclude_max=True))
def test_any_report_of_a_file_can_be_shown(spent, epsilon, delta):
    """What a file may hold must not break what shows it."""
    (fraction,) = budget_fractions([(PrivacyCost(*spent[:3]), spent[3])], epsilon, delta)
    assert fraction is None or 0 <= fraction < math.inf
