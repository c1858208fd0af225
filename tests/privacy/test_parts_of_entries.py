"""Parts of the values that have none in common: what each may be asked, and what that costs."""

import math

import numpy as np
import pytest
from following import Follower

from sktensor_dp import BudgetAccountant, PrivateCPCompletion, unsafe_seeded_noise
from sktensor_dp.completion import plan as plans
from sktensor_dp.exceptions import LedgerError
from sktensor_dp.privacy.curators.entries import EntryCurator
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.statement_check import load_statement
from sktensor_dp.statistics.observed_entries import EntryChunks

pytestmark = pytest.mark.filterwarnings(
    "ignore::sktensor_dp.PrivacyLeakWarning", "ignore::sktensor_dp.NotEnoughDataWarning"
)

SHAPE, N, EPSILON = (12, 5), 40, 1.5


def planned(name="entries", epsilon=EPSILON, mu=0.0, delta=1e-6, uses=1):
    costs = PrivacyCost(mu=mu, epsilon=epsilon)
    return ReleasePlan(EPSILON, delta, (PlannedRelease(name, costs, uses),))


def opened(rng, plan=None, accountant=None, values=None):
    X = np.column_stack([rng.integers(0, n, N) for n in SHAPE])
    y = rng.uniform(0, 1, N) if values is None else values
    chunks = EntryChunks(X, y, SHAPE, (0.0, 1.0))
    return EntryCurator(
        chunks, plan or planned(), spender="test", unit="entry", accountant=accountant
    )  # fmt: skip


def test_parts_cost_what_one_of_them_does_and_are_charged_once(seed):
    rng = np.random.default_rng(seed)
    accountant = BudgetAccountant(epsilon=EPSILON, delta=1e-6)
    first = rng.random(N) < 0.3
    first[:2] = True, False
    with unsafe_seeded_noise(seed), opened(rng, accountant=accountant) as whole:
        shown = whole.part(first, planned()).entries()
        rest = whole.part(~first, planned("row_sums")).row_sums()
        report = whole.report()
    assert len(shown.value) == first.sum()
    assert [len(one) for one in rest.sums] == list(SHAPE)
    assert accountant.total()[0] == pytest.approx(EPSILON)
    assert report.epsilon == pytest.approx(EPSILON)
    assert report.n_units == N
    assert [(row.name, row.epsilon) for row in report.rows] == [
        ("entries", EPSILON), ("row_sums", EPSILON),
    ]  # fmt: skip
    assert report.composition.kind == "parallel"
    assert not any("caller" in note for note in report.notes)
    assert load_statement(report.to_json()).epsilon == pytest.approx(EPSILON)


def test_the_ledger_knows_the_noise_of_parts_before_it_is_drawn():
    """By the charge that paid for all, and the largest sensitivity: that of the fewest values."""
    rng, first = np.random.default_rng(0), np.arange(N) < 10
    accountant = BudgetAccountant(epsilon=EPSILON, delta=1e-6)
    with opened(rng, accountant=accountant) as whole:
        shown = whole.part(first, planned()).entries()
        whole.part(~first, planned()).entries()
        report = whole.report()
    (entry,) = accountant.entries
    assert entry.sensitivity == max(row.sensitivity for row in report.rows) == 1 / 10
    assert entry.sigma == pytest.approx(shown.sigma / 10)


def test_no_part_releases_what_cannot_be_recorded(monkeypatch):
    rng, first = np.random.default_rng(0), np.arange(N) < 10
    accountant = BudgetAccountant(epsilon=EPSILON, delta=1e-6)
    with opened(rng, accountant=accountant) as whole:

        def full(*_):
            raise LedgerError("the disk is full.")

        part = whole.part(first, planned())
        monkeypatch.setattr(accountant._ledger, "describe", full)
        monkeypatch.setattr(EntryCurator, "_answer", lambda *_: pytest.fail("data was read"))
        with pytest.raises(LedgerError):
            part.entries()


def test_a_value_moves_the_answer_of_its_own_part_alone(seed):
    """To the last bit, with the noise of both parts the same."""
    rng = np.random.default_rng(seed)
    first, values = rng.random(N) < 0.5, rng.uniform(0, 1, N)
    first[:2] = True, False
    other = values.copy()
    moved = rng.integers(N)
    other[moved] = 1 - np.rint(values[moved])

    def answers(y):
        with unsafe_seeded_noise(seed), opened(np.random.default_rng(seed), values=y) as whole:
            shown = whole.part(first, planned()).entries().value
            sums = np.concatenate(whole.part(~first, planned("row_sums")).row_sums().sums)
        return shown, sums

    (shown, sums), (shown_of_other, sums_of_other) = answers(values), answers(other)
    # A value with noise may be the same of two values; sums with noise are not.
    assert first[moved] or np.array_equal(shown, shown_of_other)
    assert np.array_equal(sums, sums_of_other) == first[moved]


def test_no_value_is_in_two_parts_and_the_whole_is_asked_nothing_more():
    rng, first = np.random.default_rng(0), np.arange(N) < 10
    with opened(rng) as whole:
        part = whole.part(first, planned())
        overlapping = ~first
        overlapping[3] = True
        for chosen in (first, overlapping, np.ones(N, dtype=bool)):
            with pytest.raises(RuntimeError, match="one part"):
                whole.part(chosen, planned())
        with pytest.raises(RuntimeError, match="used up"):
            whole.entries()
        part.entries()
        with pytest.raises(RuntimeError, match="used up"):
            part.entries()
        third = whole.part(~first, planned())
        for chosen in np.eye(N, dtype=bool)[[0, 9, 10, N - 1]]:
            # Of every part before, not the last one alone.
            with pytest.raises(RuntimeError, match="one part"):
                whole.part(chosen, planned())
    for curator in (whole, part, third):
        with pytest.raises(RuntimeError, match=r"used up|closed"):
            curator.entries()
    with opened(rng) as whole:
        whole.entries()
        with pytest.raises(RuntimeError, match="one part"):
            whole.part(first, planned())


@pytest.mark.parametrize(
    "dearer",
    [
        planned(epsilon=EPSILON * 1.01), planned("row_sums", uses=2), planned(epsilon=0.1, mu=0.1),
        planned(epsilon=math.inf), planned(delta=1e-5),
    ],
)  # fmt: skip
def test_no_part_costs_more_than_was_charged(dearer):
    with opened(np.random.default_rng(0)) as whole, pytest.raises(RuntimeError, match="cost more"):
        whole.part(np.arange(N) < 10, dearer)


def test_a_fit_in_parts_spends_its_epsilon_once(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(plans, "detectability", lambda *_: 2.0)
    monkeypatch.setattr(plans, "values_pay", lambda *_: True)
    monkeypatch.setattr(plans, "_tried", lambda *_: 4)
    accountant = BudgetAccountant(epsilon=2.0, delta=1e-6)
    X = np.argwhere(rng.random((40, 8)) < 0.8)
    model = PrivateCPCompletion(
        2, bounds=(0, 1), shape=(40, 8), epsilon=2.0, accountant=accountant
    ).fit(X, rng.random(len(X)))  # fmt: skip
    assert accountant.total()[0] == pytest.approx(2.0)
    assert model.privacy_report_.epsilon == pytest.approx(2.0)
    assert len(model.privacy_report_.rows) >= 1
    assert load_statement(model.privacy_report_.to_json()).epsilon == pytest.approx(2.0)


def test_callbacks_are_told_of_every_part(monkeypatch):
    """How many releases there are is not known when they begin."""
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    monkeypatch.setattr(plans, "detectability", lambda *_: 2.0)
    monkeypatch.setattr(plans, "values_pay", lambda *_: True)
    monkeypatch.setattr(plans, "_tried", lambda *_: 4)
    callback = Follower()
    X = np.argwhere(np.random.default_rng(0).random((40, 8)) < 0.8)
    model = PrivateCPCompletion(2, bounds=(0, 1), shape=(40, 8)).set_callbacks(callback)
    model.fit(X, np.random.default_rng(1).random(len(X)))
    made = [row.name for row in model.privacy_report_.rows for _ in range(row.uses)]
    assert made[0] == "entries"
    assert len(made) >= 2
    assert [name for what, name in callback.told if what == "begin"] == ["fit", *made]
    ended = [name for what, name in callback.told if what == "end"]
    assert sorted(ended) == sorted([*made, "fit"])
