"""Streams of groups: in how many batches one may be, and what that costs."""

from typing import Any

import numpy as np
import pytest
from replaying import state
from small_groups import COMPONENTS, model, persons, seeded

from sktensor_dp import (
    BudgetAccountant,
)
from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.report import load_statement

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:noise is seeded"),
]


# Several batches of a group


def stream_of(kind: str, **options: Any) -> Any:
    return model(kind, **({} if kind == "topics" else COMPONENTS["stream"]), **options)


@pytest.mark.parametrize("delta", [1e-6, 0])
@pytest.mark.parametrize("most", [2, 7])
@pytest.mark.parametrize("kind", ["topics", "components"])
def test_all_batches_of_a_group_cost_the_budget(kind, most, delta, tmp_path, seed):
    """What is charged for the first pays for m; every release has the noise of one of m."""
    rng, payer = np.random.default_rng(seed), BudgetAccountant(2.0, delta)
    estimator = stream_of(
        kind, epsilon=2.0, delta=delta, max_batches_per_group=most, accountant=payer
    )
    first, *later = (persons(rng, kind, "stream", 9) for _ in range(4))
    estimator.partial_fit(first[0], groups=first[1])
    charged = len(payer.entries)
    with pytest.raises(BudgetError):  # nothing is left of it
        model(kind, epsilon=0.01, delta=delta, accountant=payer).fit(first[0], groups=first[1])
    estimator.save(tmp_path / "model")
    for X, groups in later:
        estimator.partial_fit(X, groups=groups)
    assert len(payer.entries) == charged
    report = estimator.privacy_report_
    assert report.epsilon == pytest.approx(2.0, rel=1e-9)
    assert load_statement(report.to_json()).epsilon == pytest.approx(2.0, rel=1e-9)
    assert report.n_units == 4 * 40
    assert f"up to {most} batches" in report.notes[-1]
    assert sum("batches" in note for note in report.notes) == 1
    assert not any("disjoint" in note for note in report.notes)
    # The first batch by itself, m times over, and m of the later ones.
    last = report.rows[-1]
    if delta:
        assert last.mu * np.sqrt(most) <= full_mu(2.0, delta) * (1 + 1e-9)
        assert last.mu * np.sqrt(most) >= full_mu(2.0, delta) * 0.999
    else:
        assert last.epsilon * most == pytest.approx(2.0)
    loaded = type(estimator).load(tmp_path / "model")
    loaded.partial_fit(later[0][0], groups=later[0][1])
    assert f"up to {most} batches" in loaded.privacy_report_.notes[-1]
    assert loaded.privacy_report_.epsilon == pytest.approx(2.0, rel=1e-9)
    with pytest.raises(ValueError, match="must be that of the first batch"):
        loaded.set_params(max_batches_per_group=1).partial_fit(later[0][0], groups=later[0][1])


def full_mu(epsilon: float, delta: float) -> float:
    return gaussian_mu(epsilon, delta)


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_a_ledger_with_less_than_all_batches_refuses(kind):
    rng, payer = np.random.default_rng(0), BudgetAccountant(1.99, 1e-6)
    X, groups = persons(rng, kind, "stream", 9)
    estimator = stream_of(kind, epsilon=2.0, max_batches_per_group=4, accountant=payer)
    with pytest.raises(BudgetError):
        estimator.partial_fit(X, groups=groups)
    assert not payer.entries


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_more_batches_than_a_budget_has_room_for_are_refused(kind):
    X, groups = persons(np.random.default_rng(0), kind, "stream", 9)
    estimator = stream_of(kind, epsilon=0.01, delta=0.01, max_batches_per_group=100)
    with pytest.raises(ValueError, match="max_batches_per_group=100 leaves nothing"):
        estimator.partial_fit(X, groups=groups)


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_batches_have_groups_all_or_none(kind):
    X, groups = persons(np.random.default_rng(0), kind, "stream", 9)
    for first, second in ((groups, None), (None, groups)):
        estimator = seeded(lambda g=first: stream_of(kind).partial_fit(X, groups=g))
        before = state(vars(estimator))
        with pytest.raises(ValueError, match="must come with groups, or none"):
            estimator.partial_fit(X, groups=second)
        assert state(vars(estimator)) == before


def test_a_stream_of_chunks_says_in_how_many_batches_a_group_may_be(seed):
    rng = np.random.default_rng(seed)
    source = [persons(rng, "components", "stream", 5) for _ in range(3)]
    estimator = stream_of("components", max_batches_per_group=3, epsilon=2.0)
    report = estimator.fit_chunks(iter(source)).privacy_report_
    assert "up to 3 batches" in report.notes[-1]
    assert report.epsilon == pytest.approx(2.0)
    with pytest.raises(ValueError, match="must come with groups, or none"):
        estimator.fit_chunks([source[0], source[1][0]])


def test_fits_are_disjoint_batches_whatever_streams_may_be(seed):
    """A fit deals every group into one batch, at the whole budget."""
    X, groups = persons(np.random.default_rng(seed), "components", "stream", 5)
    fitted = stream_of("components", max_batches_per_group=5).fit(X, groups=groups)
    report = fitted.privacy_report_
    assert "disjoint" in report.notes[-1]
    assert report.rows[0].mu == pytest.approx(full_mu(1.0, 1e-6))
