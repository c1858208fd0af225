"""Pipelines are paid step by step: what no later step would take is refused before the first."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import Pipeline

from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, PrivateSpectralLDA

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

TEXTS = ["cats chase mice", "dogs chase cats", "mice eat cheese"] * 400
OWNERS = np.arange(1200) // 2
STEPS = ("words", "topics")


def pipeline(budget, words=None, topics=None):
    """Both fits cost epsilon 9 of the `budget`."""
    paid = {"epsilon": 9.0, "accountant": budget}
    counter = PrivateCountVectorizer(**{"max_words_per_document": 3, **paid, **(words or {})})
    model = PrivateSpectralLDA(**{"n_components": 1, **paid, **(topics or {})})
    return Pipeline([("words", counter), ("topics", model)])


def to_each(*labels):
    return {f"{step}__groups": one for step, one in zip(STEPS, labels, strict=True)}


NAMED = pd.Series(OWNERS, name="author")
REFUSED = {
    "a parameter": ({"topics": {"n_components": 0}}, {}, "'n_components' parameter"),
    "a combination": ({"topics": {"delta": 0, "epsilon": 1e-12}}, {}, "'epsilon' parameter"),
    "another relation": ({"topics": {"neighbours": "add_remove"}}, {}, "'add_remove' of 'topics'"),
    "no labels": ({}, {"words__groups": OWNERS}, "must be the same for all private steps"),
    "labels": ({}, {"topics__groups": OWNERS}, "must be the same for all private steps"),
    "other labels": ({}, to_each(OWNERS, OWNERS[::-1]), "must be the same for all"),
    "another column": ({}, to_each(NAMED, NAMED.rename("film")), "must be the same for all"),
    "too much": ({"topics": {"epsilon": 12.0}}, {}, "cannot be paid together.*Nothing was"),
    "no accountant": ({"topics": {"accountant": None}}, {}, "accountant must be given to all"),
    "delta": ({"topics": {"delta": 1e-5}}, {}, "delta must be 1e-6 or less"),
}


@pytest.mark.parametrize("name", [*REFUSED])
def test_no_step_is_paid_where_a_later_one_would_be_refused(name):
    options, groups, said = REFUSED[name]
    budget = BudgetAccountant(14.0, 1e-6)
    with pytest.raises(ValueError, match=said):
        pipeline(budget, **options).fit(TEXTS, **groups)
    assert budget.total()[0] == 0


def test_under_metadata_routing_too():
    budget = BudgetAccountant(14.0, 1e-6)
    with sklearn.config_context(enable_metadata_routing=True):
        model = pipeline(budget)
        model[0].set_fit_request(groups=True)
        model[1].set_fit_request(groups=False)
        with pytest.raises(ValueError, match="must be the same for all private steps"):
            model.fit(TEXTS, groups=OWNERS)
        assert budget.total()[0] == 0
        model[1].set_fit_request(groups=True)
        assert model.fit(TEXTS, groups=OWNERS)[1].privacy_report_.n_units == 600


TAKEN = {
    "rows": {}, "persons": to_each(OWNERS, OWNERS), "copies": to_each(OWNERS, OWNERS.tolist()),
    "columns": to_each(NAMED, NAMED.copy()),
}  # fmt: skip


@pytest.mark.parametrize("name", [*TAKEN])
@pytest.mark.parametrize("block", [False, True])
def test_both_steps_are_paid_where_the_budget_is_enough(name, block):
    """Exactly that of both fits, which is not their sum; another budget pays for itself."""
    budget = BudgetAccountant(20.0, 1e-6)
    words, topics = budget.split([0.3, 0.7], ["vocabulary", "gaussian"])
    model = pipeline(None if block else budget, words, topics)
    with budget:
        model.fit(TEXTS, **TAKEN[name])
    assert budget.total()[0] == pytest.approx(20.0)
    own = {"accountant": BudgetAccountant(9.0, 1e-6)}
    pipeline(BudgetAccountant(9.0, 1e-6), topics=own).fit(TEXTS, **TAKEN[name])


def test_steps_that_release_nothing_ask_for_nothing():
    budget = BudgetAccountant(9.0, 1e-6)
    given = {"vocabulary": ["cats", "dogs", "mice"]}
    pipeline(budget, given).fit(TEXTS, **to_each(OWNERS, OWNERS))
    assert len({entry.spender for entry in budget.entries}) == 1
