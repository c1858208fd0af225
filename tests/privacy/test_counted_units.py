"""Where one unit more or less is hidden, a noisy count comes first, in plans, ledgers and fits."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from contracts.leaks import the_true_count
from counted_models import DELTA, TEXTS, D, N, components, documents, topics, whole, words
from internals import answering
from replaying import replay, state

from sktensor_dp import BudgetAccountant, BudgetError, PrivateSpectralLDA
from sktensor_dp.data.counts import CountChunks
from sktensor_dp.data.sums import COVERED_UNITS, excess
from sktensor_dp.privacy.audit import worst_case
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.plan import BY_COUNT, PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.clips import Clip, CountNorm
from sktensor_dp.queries.count_moments import WordFrequencies

# Fits on so little say so, and some that their samples are longer than the public norm.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:Nearly all samples are as long as data_norm:UserWarning"),
]


STREAM, TOPICS = components(perturbation="stream", max_iter=2, epsilon=3.0), topics(epsilon=5.0)
X0 = documents(np.random.default_rng(0), N)


def test_a_fit_that_divides_by_the_true_number_is_seen():
    """A deliberate mistake: replays of the contract have power."""
    X = documents(np.random.default_rng(0), N + 1)
    with pytest.raises(AssertionError):
        replay(TOPICS, whole, X[:N], X, mistake=the_true_count)


@pytest.mark.parametrize("build", [STREAM, TOPICS])
def test_all_batches_have_the_neighbours_of_the_first(build):
    for first, then in (("add_remove", "replace_one"), ("replace_one", "add_remove")):
        model = build().set_params(neighbours=first).partial_fit(X0)
        before = state(model.privacy_report_)
        with pytest.raises(ValueError, match="neighbours must be as in the first batch"):
            model.set_params(neighbours=then).partial_fit(X0)
        assert state(model.privacy_report_) == before


def test_the_forecast_knows_that_every_batch_has_a_count():
    one = STREAM().set_params(perturbation="iteration").forecast(10**6, D)
    many = STREAM().forecast(10**6, D)
    assert many.count_sigma == pytest.approx(one.count_sigma * math.sqrt((2 + 1) * 3))


def test_the_released_count_is_a_count_with_noise(seed):
    """Within eight deviations, beyond which one in 1e15 lies."""
    X = documents(np.random.default_rng(seed), 2000)
    report = topics(n_refinements=0)().fit(X).privacy_report_
    assert isinstance(report.n_units, int)
    assert abs(report.n_units - 2000) <= 8 * report.rows[0].sigma + 1


def test_a_vocabulary_of_no_texts_is_one_of_few():
    for texts in ([], ["cats"]):
        budget = BudgetAccountant(10.0, DELTA)
        none = r"No word remains: .* Epsilon 8 and .* are spent"
        with pytest.raises(ValueError, match=none) as raised:
            words(accountant=budget)().fit(texts)
        assert len(budget.entries) == 2
        report = raised.value.privacy_report_
        assert report.epsilon == pytest.approx(8)
        assert [row.name for row in report.rows] == ["unit_count", "word_buckets", "word_votes"]
    report = words(vocabulary=["cats"])().fit([]).privacy_report_
    assert (report.n_units, report.epsilon, report.rows) == (0, 0.0, ())
    assert report.units == "an unknown number of documents"
    assert report.guarantee.endswith("for adding or removing one document")
    assert words(vocabulary=["cats"])().fit(TEXTS).privacy_report_ == report


FREQUENCIES = WordFrequencies(Clip(CountNorm(1), 5.0))


# The session


def plan_of(epsilon: float = 1.0, delta: float = DELTA, **shares: float) -> ReleasePlan:
    return ReleasePlan.split(epsilon, delta, shares or {"word_frequencies": 1.0})


def opened(plan: ReleasePlan, n: int = N) -> Session:
    chunks = CountChunks(sp.csr_matrix(documents(np.random.default_rng(0), n)), n or None, D)
    return Session(chunks, plan, unit="document", neighbours="add_remove")


def test_nothing_is_released_before_the_count():
    with opened(plan_of().before_count()) as ask:
        with pytest.raises(RuntimeError, match="not in the plan"):
            ask(FREQUENCIES)
        with pytest.raises(RuntimeError, match="after the count"):
            ask.divide(plan_of())
        ask.count_units(plan_of(norm_histogram=1.0))
        ask.divide(plan_of())
        ask(FREQUENCIES)
        with pytest.raises(RuntimeError, match="before other releases"):
            ask.divide(plan_of())
        with pytest.raises(RuntimeError, match="used up"):
            ask.count_units(plan_of())
        # Sums are divided by the released number and move by a contribution.
        row = ask.report().rows[1]
    assert row.sensitivity == pytest.approx(5.0 / ask.n_units, rel=1e-12)


def test_what_was_given_back_is_not_divided_again():
    with opened(plan_of().before_count()) as ask:
        ask.count_units(plan_of())
        ask.give_back(WordFrequencies)
        with pytest.raises(RuntimeError, match="before other releases"):
            ask.divide(plan_of())


SET_ASIDE = {"word_frequencies": 1e-8}
OTHER_PLANS = {
    "more": (plan_of(1.01), DELTA),
    "pure": (plan_of(1.0, 0.0), DELTA),
    "another delta": (plan_of(1.0, 1e-3), DELTA),
    "Gaussian": (plan_of(1.0, DELTA), 0.0),
    "delta set aside": (
        ReleasePlan.split(1.0, DELTA, {"word_frequencies": 1.0}, None, SET_ASIDE), DELTA,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_PLANS)
def test_a_plan_by_the_count_keeps_to_what_was_charged(name):
    changed, delta = OTHER_PLANS[name]
    ask = opened(plan_of(1.0, delta).before_count())
    with ask, pytest.raises(RuntimeError, match="not covered"):
        ask.count_units(changed)


@pytest.mark.parametrize("delta", [DELTA, 0.0])
def test_the_split_may_follow_from_the_count(delta):
    charged, usual = plan_of(1.0, delta).before_count(), plan_of(1.0, delta).cost
    whole = charged.after_count(plan_of(1.0, delta, word_frequencies=0.3, norm_histogram=0.7))
    assert (charged.planned[1].name, whole.planned[0].name) == (BY_COUNT, "unit_count")
    for plan in (charged, whole):
        assert plan.cost.amounts == pytest.approx(usual.amounts, rel=1e-12)


def test_rounding_is_paid_for_by_more_units_than_there_can_be():
    """Of a count that fell short by forty deviations, and for a sum that moves by half as much."""
    with answering(lambda usual, *of: np.array([3e6])), opened(plan_of().before_count()) as one:
        one.count_units(plan_of())
        one(FREQUENCIES)
        count, row = one.report().rows
    most = 3e6 + math.ceil(40 * count.sigma) + 1
    assert row.sensitivity == pytest.approx(5.0 / 3e6 * excess(2 * most), rel=1e-14)
    assert 2 * most > COVERED_UNITS


@pytest.mark.parametrize(("value", "taken"), [(-5.0, 1), (0.4, 1), (2.6, 3), (1e15, 10**15)])
def test_a_released_count_is_a_number_to_divide_by(value, taken):
    with answering(lambda *_: np.array([value])), opened(plan_of().before_count(), 0) as ask:
        ask.count_units(plan_of())
    assert ask.n_units == taken


def test_the_plan_is_made_for_the_released_count_and_may_not_cost_more():
    """Before the charge it is made for the largest number there is."""
    asked: list[int] = []

    class Counted(PrivateSpectralLDA):
        def _plan(self, n_units, *sizes, **options):
            asked.append(n_units)
            return super()._plan(n_units, *sizes, **options)

    fitted = Counted(2, neighbours="add_remove", random_state=0).fit(X0)
    assert asked == [2**53, fitted.privacy_report_.n_units]


# Ledgers


def charge(budget: BudgetAccountant, unit: str, neighbours: str) -> None:
    cost = PrivacyCost(mu=0.01)
    budget.charge([LedgerEntry("fit", "one", 1, cost, unit, neighbours=neighbours)])


@pytest.mark.parametrize("first", ["replace_one", "add_remove"])
def test_one_ledger_has_neighbours_of_one_kind(first, tmp_path):
    budget = BudgetAccountant(10.0, DELTA, path=(path := tmp_path / "budget.sqlite"))
    for unit in ("document", "sample"):  # samples are rows, too
        charge(budget, unit, first)
    spent = budget.total()
    (other,) = {"replace_one", "add_remove"} - {first}
    with pytest.raises(BudgetError, match=r"'document.*, but other fits .* one 'document"):
        charge(budget, "document", other)
    assert budget.total() == spent
    mixed = BudgetAccountant(path=path, units="any")
    charge(mixed, "document", other)
    assert "added or removed" in str(mixed)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "n_samples must not be given": ({}, {"source": [X0], "n_samples": N, "n_features": D}),
    "n_features must be an int": ({}, {"source": [X0]}),
    "must yield a chunk": ({}, {"source": [], "n_features": D}),
    "n_samples must be an int": (
        {"neighbours": "replace_one"}, {"source": [X0], "n_features": D},
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_sizes_that_are_private_must_not_be_given_and_others_must(message):
    options, sizes = REFUSED[message]
    for build in (topics(), components(perturbation="iteration")):
        with pytest.raises(ValueError, match=message):
            build().set_params(**options).fit_chunks(**sizes)


@pytest.mark.parametrize(
    ("n", "labels", "n_groups"),
    [
        (6, ["b"] * 3 + ["a"] * 3, 2), (6, [1] * 3 + [2] * 3, 2), (0, [], 1),
        (0, np.zeros(0, int), 1),
    ],
)  # fmt: skip
def test_groups_in_chunks_may_be_none_and_chunks_empty(n, labels, n_groups):
    X = documents(np.random.default_rng(0), n)
    source = [(X[:0], []), (X[: n // 2], labels[: n // 2]), (X[n // 2 :], labels[n // 2 :])]
    for model in (
        topics(epsilon=math.inf)().fit(X, groups=labels),
        topics(epsilon=math.inf)().fit_chunks(source, n_features=D),
    ):
        report = model.privacy_report_
        assert (report.n_units, report.unit) == (n_groups, "person")


def test_costs_without_noise_are_infinite_before_the_count_too_and_the_number_is_told():
    for delta in (DELTA, 0.0):
        before = plan_of(math.inf, delta).before_count()
        assert math.isinf(before.cost.mu + before.cost.epsilon)
        before.after_count(plan_of(math.inf, delta))
    reserved = ReleasePlan(1.0, DELTA, (PlannedRelease("a", PrivacyCost(0.1, delta=1e-9)),))
    assert [one.cost.delta for one in reserved.before_count().planned] == [0.0, 1e-9]
    report = topics(epsilon=math.inf)().fit(X0).privacy_report_
    assert (report.n_units, report.epsilon) == (N, math.inf)


@pytest.mark.parametrize("build", [topics(), components(), words()])
def test_the_worst_neighbours_differ_by_one_unit(build):
    case = worst_case(build(), n_units=10)
    assert len(case.data[0]) == len(case.neighbour[0]) + 1
    replaced = worst_case(build().set_params(neighbours="replace_one"), n_units=10)
    assert len(replaced.data[0]) == len(replaced.neighbour[0]) == 10
