"""The checklists of CONTRIBUTING.md as checks of a draft: one function for each step.

A step's function has the name that the list gives it, and fails where the step is missing.
"""

import dataclasses
import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from contracts.rows_of_laws import N, fits
from proof_pages import check_page
from replaying import replay
from sklearn.base import clone
from ways_to_fit import snapshot

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivacyLeakWarning,
    unsafe_seeded_noise,
)
from sktensor_dp.privacy import curator as curators
from sktensor_dp.privacy.audit import audit_samples
from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.releases import Family, Release

Floats = np.ndarray
RARE = 1e-6  # the chance that an audit refuses what is right


@dataclasses.dataclass
class ReleaseDraft:
    """A release with what shows that its steps were taken.

    The first pair of neighbours is as far apart as the sensitivity of the first query.
    """

    entry: Release
    catalogue: dict[str, Release]
    queries: list[Any]
    chunk_of: Callable[[Floats], Any]
    neighbours: list[tuple[Floats, Floats]]
    proofs: Path


def query_is_frozen_and_bounded(draft: ReleaseDraft) -> None:
    for query in draft.queries:
        assert type(query) is draft.entry.query
        assert dataclasses.is_dataclass(query)
        assert type(query).__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert 0 < query.l2_sensitivity < math.inf
        assert query.l2_sensitivity <= query.l1_sensitivity


def chunks_add_up(draft: ReleaseDraft) -> None:
    rows = np.concatenate([one for one, _ in draft.neighbours])
    for query in draft.queries:
        parts = [query.total(draft.chunk_of(part)) for part in (rows[:1], rows[1:])]
        np.testing.assert_allclose(query.total(draft.chunk_of(rows)), sum(parts), rtol=1e-12)


def neighbours_stay_within_the_sensitivity(draft: ReleaseDraft) -> None:
    for query in draft.queries:
        for pair in draft.neighbours:
            one, other = (query.total(draft.chunk_of(rows)) for rows in pair)
            assert np.linalg.norm(one - other) <= query.l2_sensitivity
            assert np.abs(one - other).sum() <= query.l1_sensitivity
    one, other = (draft.queries[0].total(draft.chunk_of(rows)) for rows in draft.neighbours[0])
    assert np.linalg.norm(one - other) >= 0.99 * draft.queries[0].l2_sensitivity


def entry_has_laws_that_the_query_bounds(draft: ReleaseDraft) -> None:
    entry = draft.entry
    assert entry.family in get_args(Family)
    assert entry.description
    for law in (entry.gaussian, entry.pure):
        if law is not None and law.norm == "l1":
            assert any(math.isfinite(query.l1_sensitivity) for query in draft.queries)


def catalogue_lists_it(draft: ReleaseDraft) -> None:
    assert draft.catalogue[draft.entry.name] is draft.entry


def page_states_what_the_code_computes(draft: ReleaseDraft) -> None:
    page = (draft.proofs / draft.entry.proof).read_text(encoding="utf-8")
    check_page(draft.entry, page, draft.queries)


class _Data(list[Any]):
    n_units: int


def audit_finds_what_is_claimed(draft: ReleaseDraft) -> None:
    """Through the curator. 640 runs a side find .6 of mu, and no more than mu, but for RARE."""
    query, name, cost = draft.queries[0], draft.entry.name, PrivacyCost(mu=3.0)
    pair = draft.neighbours[0]
    exact = [query.total(draft.chunk_of(rows)) / len(rows) for rows in pair]
    gap = exact[1] - exact[0]
    values = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curators, "CATALOGUE", draft.catalogue)
        for rows in pair:
            plan = ReleasePlan(1.0, 1e-6, (PlannedRelease(name, cost, 640),))
            data = _Data([draft.chunk_of(rows)])
            data.n_units = len(rows)
            with DataCurator(data, plan, spender="", unit="unit", accountant=None) as curator:
                released = [curator.release(name, query) for _ in range(640)]
            values.append(
                [np.vdot(value - exact[0], gap) / np.vdot(gap, gap) for value in released]
            )
    claim = {"delta": 1e-6, "epsilon_claim": gaussian_epsilon(3.0, 1e-6), "mu_claim": 3.0}
    found = audit_samples(*values, threshold=0.5, confidence=1 - RARE / 2, **claim)
    assert 0.6 * 3.0 <= found.mu_lower <= 3.0


@dataclasses.dataclass
class MechanismDraft:
    """A law of noise on a vector, and what it is said to be.

    `law` is that of a coordinate at sensitivity and strength 1; `spends` names the part of a
    cost; `proved` says that the program draws from the law itself, on a grid.
    """

    mechanism: Mechanism
    law: Any
    spends: str
    seed: int
    proved: bool = True
    query: Any = None

    def noisy(self, value: Floats, sensitivity: float, strength: float) -> Floats:
        with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(self.seed):
            source = NoiseSource()
        return self.mechanism.apply(value, sensitivity, strength, source, self.query)


SCALES = [(0.3, 1.7), (40.0, 0.2)]


def spends_its_part_of_a_cost(draft: MechanismDraft) -> None:
    parts = {"mu": 0.5, "epsilon": 0.25}
    assert draft.mechanism.strength(PrivacyCost(**parts)) == parts[draft.spends]


def reports_the_deviation_of_its_law(draft: MechanismDraft) -> None:
    for sensitivity, strength in SCALES:
        deviation = draft.mechanism.sigma(sensitivity, PrivacyCost(**{draft.spends: strength}))
        assert deviation == pytest.approx(draft.law.std() * sensitivity / strength)


def keeps_the_value_where_no_noise_is_asked(draft: MechanismDraft) -> None:
    value = np.arange(3.0)
    assert np.allclose(draft.noisy(value, 0.3, math.inf), np.arange(3.0), rtol=1e-12)
    draft.noisy(value, 0.3, 1.7)
    assert np.array_equal(value, np.arange(3.0))


def follows_its_law_at_every_scale(draft: MechanismDraft) -> None:
    for sensitivity, strength in SCALES:
        noise = draft.noisy(np.zeros(N), sensitivity, strength) * strength / sensitivity
        assert fits(noise, draft.law)


def shows_no_digit_below_its_step(draft: MechanismDraft) -> None:
    """Halves of steps move no statistic that lies on the grid, as zero does."""
    base = np.zeros(20)
    one, other = (draft.noisy(value, 0.3, 1.7) for value in (base, base + 1e-9))
    assert np.array_equal(one, other)


def says_how_far_the_program_is_from_its_law(draft: MechanismDraft) -> None:
    if not draft.proved:
        assert draft.mechanism.residual is not None
        assert "docs/proofs/" in draft.mechanism.residual(draft.query)


@dataclasses.dataclass
class EstimatorDraft:
    """How to build an estimator, data sets of one public shape, and parameters it refuses.

    Of a new parameter also its name and another good value.
    """

    build: Callable[..., Any]
    X: Any
    other: Any
    wrong: dict[str, Any]
    folder: Path
    parameter: str = ""
    value: Any = None


def parameter_is_declared(draft: EstimatorDraft) -> None:
    estimator = draft.build(**{draft.parameter: draft.value})
    assert estimator.get_params()[draft.parameter] is draft.value
    assert draft.parameter in estimator._own_constraints


def parameter_is_documented(draft: EstimatorDraft) -> None:
    text = inspect.getdoc(type(draft.build())) or ""
    assert re.search(rf"^{draft.parameter} : .+, default=", text, re.MULTILINE)


def parameter_is_validated(draft: EstimatorDraft) -> None:
    refuses_wrong_parameters_unspent(draft)


def parameter_is_used(draft: EstimatorDraft) -> None:
    """Fits without noise differ by the parameter alone."""
    fits = [
        draft.build(epsilon=math.inf, **more).fit(draft.X)
        for more in ({}, {draft.parameter: draft.value})
    ]
    one, other = ({**vars(fit), draft.parameter: None} for fit in fits)
    assert snapshot(one) != snapshot(other)


def parameter_is_saved(draft: EstimatorDraft) -> None:
    fitted = draft.build(**{draft.parameter: draft.value}).fit(draft.X)
    fitted.save(draft.folder / "a.model")
    again = type(fitted).load(draft.folder / "a.model")
    assert again.get_params()[draft.parameter] == draft.value


def clones_with_its_parameters(draft: EstimatorDraft) -> None:
    estimator = draft.build()
    assert snapshot(clone(estimator).get_params()) == snapshot(estimator.get_params())
    assert {"epsilon", "delta", "accountant", "random_state"} <= set(estimator.get_params())


def refuses_wrong_parameters_unspent(draft: EstimatorDraft) -> None:
    for name, value in {"epsilon": -1.0, "delta": 2.0, **draft.wrong}.items():
        payer = BudgetAccountant(10.0, 1e-3)
        with pytest.raises(ValueError, match=f"'{name}'"):
            draft.build(**{"accountant": payer, name: value}).fit(draft.X)
        assert payer.entries == ()


def charges_its_plan_once(draft: EstimatorDraft) -> None:
    payer = BudgetAccountant(10.0, draft.build().delta)
    fitted = draft.build(accountant=payer).fit(draft.X)
    report = fitted.privacy_report_
    assert report.epsilon <= fitted.epsilon * (1 + 1e-9)
    assert payer.total()[0] == pytest.approx(report.epsilon)
    assert sum(entry.uses for entry in payer.entries) == sum(row.uses for row in report.rows)


def changes_nothing_where_it_is_refused(draft: EstimatorDraft) -> None:
    estimator = draft.build(accountant=BudgetAccountant(1e-6, 0.0))
    before = snapshot(vars(estimator))
    with pytest.raises(BudgetError):
        estimator.fit(draft.X)
    assert snapshot(vars(estimator)) == before


def changes_nothing_where_it_fails(draft: EstimatorDraft) -> None:
    """At its last step before it is published: the report."""
    estimator = draft.build().fit(draft.X)
    before = snapshot(vars(estimator))

    def fail(*_: Any) -> Any:
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataCurator, "report", fail)
        with pytest.raises(MemoryError):
            estimator.fit(draft.X)
    assert snapshot(vars(estimator)) == before


def shows_nothing_but_releases(draft: EstimatorDraft) -> None:
    replay(draft.build, lambda estimator, X: estimator.fit(X), draft.X, draft.other)


def draws_fresh_noise(draft: EstimatorDraft) -> None:
    one, other = (draft.build(random_state=0).fit(draft.X) for _ in range(2))
    assert snapshot(vars(one)) != snapshot(vars(other))
    assert not one.privacy_report_.seeded


def saves_and_loads(draft: EstimatorDraft) -> None:
    fitted = draft.build().fit(draft.X)
    fitted.save(draft.folder / "a.model")
    again = type(fitted).load(draft.folder / "a.model")
    one, other = (snapshot(dict(sorted(vars(model).items()))) for model in (fitted, again))
    assert one == other


CHECKLISTS: dict[str, tuple[Callable[[Any], None], ...]] = {
    "A new parameter": (
        parameter_is_declared,
        parameter_is_documented,
        parameter_is_validated,
        parameter_is_used,
        parameter_is_saved,
    ),
    "A new release": (
        query_is_frozen_and_bounded,
        chunks_add_up,
        neighbours_stay_within_the_sensitivity,
        entry_has_laws_that_the_query_bounds,
        catalogue_lists_it,
        page_states_what_the_code_computes,
        audit_finds_what_is_claimed,
    ),
    "A new mechanism": (
        spends_its_part_of_a_cost,
        reports_the_deviation_of_its_law,
        keeps_the_value_where_no_noise_is_asked,
        follows_its_law_at_every_scale,
        shows_no_digit_below_its_step,
        says_how_far_the_program_is_from_its_law,
    ),
    "A new estimator": (
        clones_with_its_parameters,
        refuses_wrong_parameters_unspent,
        charges_its_plan_once,
        changes_nothing_where_it_is_refused,
        changes_nothing_where_it_fails,
        shows_nothing_but_releases,
        draws_fresh_noise,
        saves_and_loads,
    ),
}


def first_missing(title: str, draft: Any) -> str | None:
    """Name of the first step of a list that a draft has not taken."""
    for check in CHECKLISTS[title]:
        try:
            check(draft)
        except (Exception, pytest.fail.Exception):
            return check.__name__
    return None
