"""Searches and scores where one unit more or less is hidden: parts by coins, and counts of them."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from contracts.leaks import the_true_count
from counted_models import documents
from internals import parts_of_trials
from replaying import replay, watch
from scipy.stats import randint

from sktensor_dp import (
    BudgetAccountant,
    PrivateSearchCV,
    PrivateSpectralLDA,
    load_statement,
    make_private_scorer,
)
from sktensor_dp.privacy.plan import COUNT_FRACTION

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
]

N = 120
BOUNDS = (-5.0, 0.0)


topics = partial(PrivateSpectralLDA, 2, neighbours="add_remove", random_state=0)
scorer = partial(make_private_scorer, "log_likelihood_per_token", epsilon=2.0, bounds=BOUNDS)


def search(model: Any = None, values: Any = None, **options: Any) -> PrivateSearchCV:
    model = topics() if model is None else model
    given = {"n_trials": 2, "epsilon": 4.0, "random_state": 0}
    values = {"n_components": [1, 2, 3]} if values is None else values
    return PrivateSearchCV(model, values, **{"anyway": True, **given, **options})


def corpus(n: int = N, seed: int = 0) -> np.ndarray:
    return documents(np.random.default_rng(seed), n)


def test_a_search_that_scores_by_the_true_number_is_seen():
    """A deliberate mistake: replays of counted searches in tests/contracts have power."""
    X = corpus(N + 30)
    with pytest.raises(AssertionError):
        replay(search, lambda model, X: model.fit(X), X[:N], X, mistake=the_true_count)


def test_trials_of_a_search_have_the_same_parts():
    """Coins are thrown once: candidates are compared on the same units."""
    X = corpus()
    parts = []
    for _ in range(2):
        with parts_of_trials() as seen:
            search(random_state=7).fit(X)
        assert all(part in seen[:2] for part in seen)
        parts.append(seen[:2])
    assert parts[0] != parts[1]  # two equal ones: .68**120


@pytest.mark.parametrize(("delta", "grouped"), [(1e-6, False), (0.0, True)])
def test_the_statement_adds_up_and_every_part_has_a_count(delta, grouped, seed):
    payer = BudgetAccountant(4.0, delta)
    X = corpus(seed=seed)
    fitted = search(delta=delta, accountant=payer).fit(
        X, groups=np.arange(N) // 2 if grouped else None
    )
    report = fitted.privacy_report_
    unit = "person" if grouped else "document"
    assert (report.epsilon, report.delta, report.unit) == (4.0, delta, unit)
    assert report.neighbours == "add_remove"
    read = load_statement(report.to_json())
    assert read.n_units == report.n_units == fitted.best_estimator_.privacy_report_.n_units
    assert '"number_is": "released"' in report.to_json()
    (trial,) = report.composition.parts
    node = trial.composition
    for part in node.parts:
        assert part.composition.rows[0].name == "unit_count"
    assert sum(part.n_units for part in node.parts) == report.n_units
    assert node.kind == "parallel"
    (entry,) = payer.entries
    assert (entry.neighbours, entry.unit) == ("add_remove", unit)


def test_a_score_moves_by_half_the_width_and_is_divided_by_its_count():
    report = search(score_bounds=(-4.0, 0.0)).fit(corpus(400)).privacy_report_
    (trial,) = report.composition.parts
    count, score = trial.composition.parts[1].composition.rows
    assert (count.name, score.name) == ("unit_count", "held_out_scores")
    n_held_out = trial.composition.parts[1].n_units
    assert score.sensitivity == pytest.approx(2.0 / n_held_out, rel=1e-5)
    assert count.mu**2 / (count.mu**2 + score.mu**2) == pytest.approx(COUNT_FRACTION)


def test_neighbours_are_those_of_the_estimator():
    found = search(topics(neighbours="replace_one")).fit(corpus())
    assert found.privacy_report_.neighbours == "replace_one"
    assert found.privacy_report_.n_units == N
    drawn = search(values={"n_components": randint(1, 4)}).fit(corpus())
    assert drawn.best_estimator_.neighbours == "add_remove"


# Scores for scikit-learn's own tools


def test_a_score_is_for_the_neighbours_of_the_model(seed):
    X, payer = corpus(400, seed), BudgetAccountant(9.0, 1e-6)
    model = topics(accountant=payer).fit(X)
    found = scorer(accountant=payer)(model, X)
    count, score = payer.entries[2:]
    assert count.release == "unit_count"
    for entry in (count, score):
        assert (entry.unit, entry.neighbours) == ("document", "add_remove")
    assert payer.total()[0] > 2.0
    assert math.isfinite(found)
    assert scorer()(model, X) != found


def test_a_score_by_a_count_is_near_the_exact_one(seed):
    """At epsilon 60 the count of 4000 is off by less than 5, scores of width 5 by .005."""
    X = corpus(4000, seed)
    model = topics(epsilon=math.inf).fit(X)
    exact = scorer(epsilon=math.inf)(model, X)
    assert scorer(epsilon=60.0)(model, X) == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("size", [None, 2])
def test_scores_of_another_number_of_rows_that_are_told_the_same_are_the_same(size, delta):
    X = corpus(300)
    model = topics().fit(X)

    def fit(one: Any, part: np.ndarray) -> Any:
        labels = None if size is None else np.arange(len(part)) // size
        one.told = one(model, part, groups=labels)
        return one

    first = watch(lambda: scorer(delta=delta), fit, X)
    assert first.error is None
    for n in (299, 0):
        assert first.shown == watch(lambda: scorer(delta=delta), fit, X[:n], first).shown
