"""Pipelines of several private steps in a search: their costs, scores of texts, hostile texts."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from internals import facts_of, planned_by
from sklearn.base import clone
from small_texts import pipeline, search, texts

from sktensor_dp import BudgetAccountant, BudgetError, NotEnoughDataError, make_private_scorer
from sktensor_dp.model_selection.costs import as_parameters, divided_among
from sktensor_dp.model_selection.scores import UNKNOWN_WORD, RowScores, word_counter
from sktensor_dp.privacy.composition import unit_costs
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.selection_cost import (
    failure_of_trials,
    selection_delta,
    stop_probability,
    trial_cost,
)
from sktensor_dp.privacy.statement import load_statement

INF = float("inf")
PER_TOKEN = "log_likelihood_per_token"
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


# What a trial costs


def test_both_steps_are_charged_in_each_trial():
    budget = BudgetAccountant(epsilon=20.0, delta=1e-6)
    found = search(accountant=budget).fit(texts(), groups=np.repeat(np.arange(300), 2))
    (entry,) = budget.entries
    assert (entry.release, entry.cost) == (
        "private_selection", PrivacyCost(epsilon=20.0, delta=1e-6),
    )  # fmt: skip
    report = found.privacy_report_
    names = {row.name for row in report.rows}
    assert names >= {"word_buckets", "word_votes", "word_frequencies", "held_out_scores"}
    # What the statement lists adds up to what the theorem allows a trial, and to no less.
    stop = stop_probability(3.0)
    allowed = trial_cost(20.0, 1e-6, stop, failure_of_trials(1e-6, stop))
    (part,) = report.composition.parts
    costs = unit_costs(part.composition)
    assert max(cost.mu for cost in costs) == pytest.approx(allowed.mu, rel=1e-6)
    set_aside = max(cost.delta for cost in costs)
    assert set_aside <= allowed.delta * (1 + 1e-9)
    assert set_aside == pytest.approx(stop * 1e-6 / 2, rel=1e-6)
    load_statement(report.to_json())
    assert (report.n_units, report.unit) == (300, "person")
    for step in found.best_estimator_.named_steps.values():
        assert step.privacy_report_ == report


def test_the_report_states_the_delta_of_the_formula_and_fewer_trials_would_not_do():
    """What is set aside costs as many times that as there are trials on average."""
    for n_trials, epsilon, delta in product((1, 3, 10, 200), (0.1, 1, 8), (1e-9, 1e-6, 1e-3)):
        stop = stop_probability(n_trials)
        failure = failure_of_trials(delta, stop)
        assert failure == pytest.approx(delta / 2 / n_trials, rel=1e-9)
        mu = trial_cost(epsilon, delta, stop, failure).mu
        assert 0.999 * delta < selection_delta(mu, stop, epsilon, failure) <= delta
        # The same trials with all that was set aside taken for one trial's, or none.
        assert selection_delta(mu, stop, epsilon, 0.0) < 0.51 * delta


def test_a_statement_with_more_set_aside_than_its_trials_may_is_refused():
    report = search().fit(texts()).privacy_report_
    stated = report.to_json()
    row = next(row for row in report.rows if row.delta > 0)
    with pytest.raises(ValueError, match="the selection allows"):
        load_statement(stated.replace(f"{row.delta!r}", f"{1e-6!r}"))


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_steps_spend_what_they_are_given_and_no_more(share):
    trial = trial_cost(1.0, 1e-6, stop_probability(10), failure_of_trials(1e-6, 0.1))
    steps = dict(pipeline().steps)
    parts = divided_among(trial, steps, {"counts": share, "topics": 1 - share})
    assert parts["counts"].mu ** 2 == pytest.approx(share * trial.mu**2)
    assert PrivacyCost.total((part, 1) for part in parts.values()).mu == pytest.approx(trial.mu)
    assert (parts["counts"].delta, parts["topics"].delta) == (trial.delta, 0.0)
    for name, step in steps.items():
        epsilon, delta = as_parameters(parts[name], 1e-6, facts_of(step).delta_set_aside)
        assert facts_of(step).delta_set_aside * delta <= parts[name].delta * (1 + 1e-12)
        if name == "counts":
            plan = planned_by(clone(step).set_params(epsilon=epsilon, delta=delta), _Few(), 4000)
            assert plan.releases.cost.mu == pytest.approx(parts[name].mu, rel=1e-9)
            assert plan.releases.cost.delta == pytest.approx(trial.delta, rel=1e-9)


class _Few:
    grouped = False


def test_a_public_vocabulary_needs_nothing():
    model = pipeline(vocabulary=["worda", "wordb", "wordg", "wordh"])
    found = search(model, delta=0).fit(texts())
    assert {row.delta for row in found.privacy_report_.rows} == {0.0}
    parts = divided_among(PrivacyCost(mu=1.0), dict(model.steps), None)
    assert [part.mu for part in parts.values()] == [0.0, 1.0]


class Drawn:
    def rvs(self, random_state):
        return None


def test_a_step_that_sets_aside_what_was_not_planned_is_refused():
    """Found when a candidate brings a vocabulary that the estimator and lists did not show."""
    model = pipeline(vocabulary=["worda", "wordb"])
    with pytest.raises(BudgetError, match="that set a part of delta aside"):
        search(model, {"counts__vocabulary": Drawn()}).fit(texts())
    found = search(model, {"counts__vocabulary": [None]}).fit(texts())
    assert len(found.best_estimator_["counts"].vocabulary_) == 12


# Scores of texts


def fitted(vocabulary, documents, **options):
    model = pipeline(vocabulary=vocabulary, **options)
    return model.set_params(topics__epsilon=INF, topics__n_components=1).fit(documents)


def per_token(model, words, documents):
    return np.asarray(RowScores(PER_TOKEN, model, words)(documents, None), dtype=float)


def test_a_word_that_the_vocabulary_lacks_counts_at_the_floor():
    model = fitted(["worda", "wordb"], ["worda worda wordb"] * 5)
    found = per_token(model, word_counter(model), ["worda worda wordb other", "strange words", ""])
    known, low = 2 * math.log(2 / 3) + math.log(1 / 3), math.log(UNKNOWN_WORD)
    assert found == pytest.approx([(known + low) / 4, low, 0.0], abs=1e-6)


def test_a_tiny_vocabulary_does_not_win(n_trials_are):
    """Per known word it would: one word alone is always likely."""
    documents, words = texts(), ["worda", "wordg"]
    every = sorted({word for text in documents for word in text.split()})
    models = [fitted(chosen, documents) for chosen in (words, every)]
    for count, better in ((word_counter(models[0]), 1), (None, 0)):
        means = [per_token(model, count, documents).mean() for model in models]
        assert means[better] > means[1 - better] + 1
    n_trials_are(8)  # each of two candidates is in some
    candidates = {"counts__vocabulary": [words, every]}
    found = search(pipeline(vocabulary=every), candidates, epsilon=INF).fit(documents[:60])
    assert found.best_params_["counts__vocabulary"] == every


def test_words_are_those_of_the_estimator_that_was_given():
    """A candidate that leaves words out pays for them."""
    model = fitted(["worda"], ["worda wordb"] * 5, stop_words=["wordb"])
    for of, score in ((model, 0.0), (pipeline(), math.log(UNKNOWN_WORD) / 2)):
        assert per_token(model, word_counter(of), ["worda wordb"]) == pytest.approx([score])


HOSTILE = [
    "", " ", "worda " * 5000, "unheard " * 5000, "\x00\ud800 wordb", "9" * 5000,
    "worda", "wordb wordc", 3, None, math.nan, b"worda wordb", b"\xff\xfe", ["worda"],
]  # fmt: skip


def test_a_hostile_document_moves_the_score_by_its_bounds_at_most_and_no_other_document(seed):
    rng, rows = np.random.default_rng(seed), texts(6, seed)
    model = fitted(["worda", "wordb", "wordc"], texts(60))
    count, low = word_counter(model), math.log(UNKNOWN_WORD)
    before = per_token(model, count, rows)
    for odd in HOSTILE:
        place = rng.integers(6)
        after = per_token(model, count, [*rows[:place], odd, *rows[place + 1 :]])
        # Bit by bit: what is said of a document depends on it alone.
        assert (np.delete(after, place) == np.delete(before, place)).all()
    found = np.nan_to_num(per_token(model, count, HOSTILE), nan=low)
    assert found.max() <= 0.0
    assert found.min() >= low - 1e-9  # a word that is known may be less likely than the floor


def test_columns_and_arrays_of_documents_score_as_lists_do():
    model, rows = fitted(["worda", "wordb", "wordc"], texts(60)), texts(8, 1)
    held = [rows, tuple(rows), np.array(rows), np.array(rows, dtype=object), pd.Series(rows)]
    assert len({per_token(model, word_counter(model), of).tobytes() for of in held}) == 1


def test_scorers_count_unknown_words_as_searches_do():
    model, documents = fitted(["worda"], texts(60)), ["worda zz", "zz zz"]
    scorer = make_private_scorer(PER_TOKEN, epsilon=INF)
    expected = 0.75 * math.log(UNKNOWN_WORD)
    assert scorer(model, documents) == pytest.approx(expected, abs=1e-6)


def test_a_trial_without_words_loses_to_all_others(n_trials_are):
    """No word is in all documents: one candidate of two never has any."""
    n_trials_are(8)  # each of two candidates is in some
    found = search(candidates={"counts__min_df": [0.99, 1]}).fit(texts(300))
    assert found.best_params_["counts__min_df"] == 1
    assert math.isfinite(found.best_score_)


def test_a_search_of_which_no_trial_has_words_says_so_and_keeps_its_charge():
    budget = BudgetAccountant()
    one = search(candidates={"counts__min_df": [0.999]}, accountant=budget)
    found_none = r"No trial of the search .* No word remains"
    with pytest.raises(NotEnoughDataError, match=found_none) as raised:
        one.fit(texts())
    with pytest.raises(NotEnoughDataError, match="must come from about"):
        search(epsilon=0.01, accountant=budget).fit(texts())  # known before the charge
    (entry,) = budget.entries
    assert entry.cost.epsilon == raised.value.privacy_report_.epsilon
    assert not hasattr(one, "best_estimator_")
