"""Searches and scores of scikit-learn: what they cannot pay or keep is refused at the first fit."""

import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from small_searches import counts

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    DoubtfulParameterWarning,
    PrivateCountVectorizer,
    PrivateKFold,
    PrivateSearchCV,
    PrivateSpectralLDA,
    UnprotectedScoreWarning,
    make_private_scorer,
)
from sktensor_dp.estimator import scoring

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning"),
    pytest.mark.filterwarnings("ignore:The score lies at an end"),  # by noise
    pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite"),
]
X = counts(300)
GRID = {"random_state": [0, 1]}


def by_rows(*_):
    return 0.0


def searched(model, scorer, **options):
    return GridSearchCV(model, GRID, cv=KFold(2), scoring=scorer, **options).fit(X)


def kept(model, scorer, **options):
    return GridSearchCV(model, GRID, cv=KFold(2), scoring=scorer, refit=False, **options).fit(X)


def scored(model, scorer, **options):
    return cross_val_score(model, X, cv=PrivateKFold(3), scoring=scorer, **options)


def by_values(model, scorer, **options):
    grid = {"param_name": "random_state", "param_range": np.array([0, 1])}
    return validation_curve(model, X, None, cv=PrivateKFold(2), scoring=scorer, **grid, **options)


def by_sizes(model, scorer, **options):
    sizes = {"cv": KFold(2), "train_sizes": [0.5, 1.0]}
    return learning_curve(model, X, None, scoring=scorer, **sizes, **options)


# Tools, each with its number of fits, and of scores: curves score both parts of a fold.
TOOLS = {
    "search": (searched, 5, 4), "without the last": (kept, 4, 4), "scores": (scored, 3, 3),
    "both parts": (partial(searched, return_train_score=True), 5, 8),
    "values": (by_values, 4, 8), "sizes": (by_sizes, 4, 8),
}  # fmt: skip


@pytest.mark.parametrize("name", [*TOOLS])
@pytest.mark.parametrize("error_score", ["raise", np.nan])
@pytest.mark.parametrize("noisy", [False, True])
def test_a_tool_that_cannot_pay_all_of_its_fits_pays_none(name, error_score, noisy):
    """Nor where scikit-learn goes on after an error; what is just enough is taken."""
    tool, n_fits, n_scores = TOOLS[name]
    n_parts = n_fits + n_scores * noisy
    for enough in (False, True):
        budget = BudgetAccountant(20.0, 1e-6)
        (part,) = budget.split([1.0], times=[n_parts])
        for _ in range(not enough):
            PrivateSpectralLDA(1, accountant=budget, **part).fit(X)
        before = budget.total()
        scorer = make_private_scorer("log_likelihood_per_token", accountant=budget, **part)
        call = partial(
            tool, PrivateSpectralLDA(1, accountant=budget, **part),
            scorer if noisy else by_rows, error_score=error_score,
        )  # fmt: skip
        if enough:
            call()
            assert budget.total()[0] == pytest.approx(20.0)
            continue
        refused = pytest.raises(ValueError, match=f"begins {n_fits} such fits here, which must all")
        # scikit-learn's validation_curve gives NaN where all fits fail.
        with nullcontext() if name == "values" and error_score != "raise" else refused:
            call()
        assert budget.total() == before


def test_a_search_over_epsilon_is_paid_fit_by_fit():
    budget = BudgetAccountant(20.0, 1e-6)
    grid = {"epsilon": [8.0, 1.0]}
    GridSearchCV(
        PrivateSpectralLDA(1, accountant=budget), grid, cv=KFold(2), scoring=by_rows, refit=False,
    ).fit(X)  # fmt: skip
    assert 12 < budget.total()[0] < 20


@pytest.mark.parametrize("cv", [PrivateKFold(2), GroupKFold(2)], ids=["ours", "sizes"])
@pytest.mark.parametrize("tool", ["search", "scores"])
@pytest.mark.parametrize("units", ["one", "any"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_groups_that_a_tool_keeps_to_itself_are_refused(cv, tool, units, n_jobs):
    """Folds of persons, and fits that protect one row of theirs, also where workers fit."""
    budget, owners = BudgetAccountant(units=units), np.arange(300) // 2
    model = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget)
    more = {"cv": cv, "scoring": by_rows, "error_score": "raise"}
    kept = units == "any"
    refused = pytest.raises(BudgetError, match="is given groups, and this")
    with parallel_config("threading", n_jobs=n_jobs), nullcontext() if kept else refused:
        if tool == "search":
            GridSearchCV(model, GRID, **more).fit(X, groups=owners)
        else:
            cross_val_score(model, X, groups=owners, **more)
    assert (budget.total()[0] > 0) == kept


@pytest.mark.parametrize("scorer", [None, "neg_mean_squared_error"])
def test_a_score_without_noise_is_warned_of_before_a_fit_is_paid(scorer):
    budget = BudgetAccountant()
    model = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget)
    scoring.warn_once.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnprotectedScoreWarning)
        with pytest.raises(UnprotectedScoreWarning):
            cross_val_score(model, X, cv=2, scoring=scorer, error_score="raise")
    assert budget.total()[0] == 0


def test_a_score_that_scikit_learn_fails_at_is_refused_before_a_fit_is_paid():
    budget = BudgetAccountant()
    model = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget)
    steps = make_pipeline(FunctionTransformer(), model)
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(groups=True)
        with pytest.raises(ValueError, match="scoring must be given for a pipeline"):
            cross_val_score(steps, X, cv=2, params={}, error_score="raise")
    assert budget.total()[0] == 0
    assert cross_val_score(steps, X, cv=2, error_score="raise").shape == (2,)


@pytest.mark.parametrize("tool", ["search", "scores"])
def test_a_scorer_that_is_not_given_the_persons_is_refused_before_a_fit_is_paid(tool):
    budget, owners = BudgetAccountant(), np.arange(300) // 2
    scorer = make_private_scorer("log_likelihood_per_token", epsilon=9.0, accountant=budget)
    model = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget)
    more = {"cv": PrivateKFold(2), "scoring": scorer, "error_score": "raise"}
    call = partial(cross_val_score, model, X, groups=owners, params={"groups": owners}, **more)
    if tool == "search":
        steps = make_pipeline(FunctionTransformer(), model)
        fit = GridSearchCV(steps, {}, **more).fit
        call = partial(fit, X, groups=owners, privatespectrallda__groups=owners)
    with pytest.raises(ValueError, match="scorer must be given the groups, too"):
        call()
    assert budget.total()[0] == 0


REPEATED = "This budget paid for the same releases of a Private"


@pytest.mark.parametrize("kind", ["fit", "search", "pipeline"])
def test_a_fit_that_is_run_again_warns_before_it_pays(kind):
    """Not a fit of other costs or of another unit, nor one that split() provided for."""
    budget = BudgetAccountant(units="any")

    def run(groups=None, **options):
        model = PrivateSpectralLDA(1, **{"epsilon": 9.0, "accountant": budget, **options})
        if kind == "search":
            options = {"epsilon": 9.0, "accountant": budget, "n_trials": 1.0, **options}
            model = PrivateSearchCV(PrivateSpectralLDA(1), {}, anyway=True, **options)
        if kind == "pipeline":
            more = {} if groups is None else {"privatespectrallda__groups": groups}
            return make_pipeline(FunctionTransformer(), model).fit(X, **more)
        return model.fit(X, groups=groups)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", REPEATED)
        run()
        run(epsilon=8.0)
        run(groups=np.arange(300) // 2)
        before = budget.total()
        with pytest.raises(UserWarning, match=REPEATED):
            run()
        assert budget.total() == before
        run(accountant=BudgetAccountant())  # which knows of none
        kinds = ["search" if kind == "search" else "gaussian"]
        (part,) = (planned := BudgetAccountant(9.0)).split([1.0], kinds, times=[2])
        for _ in range(2):
            run(accountant=planned, **part)
        searched(PrivateSpectralLDA(1, epsilon=9.0, accountant=budget), by_rows)


@pytest.mark.parametrize("given", [None, ["alpha", "beta"]])
def test_scores_by_a_vocabulary_of_each_fit_are_warned_of_before_the_charge(given):
    budget = BudgetAccountant(1e4, 1e-2)
    words = PrivateCountVectorizer(vocabulary=given, epsilon=50.0, accountant=budget)
    steps = make_pipeline(words, PrivateSpectralLDA(1, epsilon=50.0, accountant=budget))
    scorer = make_private_scorer("log_likelihood_per_token", epsilon=50.0, accountant=budget)
    grid, texts = {"privatespectrallda__doc_topic_prior": [0, "auto"]}, ["alpha beta"] * 300
    search = GridSearchCV(steps, grid, cv=KFold(2), scoring=scorer, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtfulParameterWarning)
        if given is None:
            with pytest.raises(DoubtfulParameterWarning, match="learns a vocabulary of its"):
                search.fit(texts)
            assert not budget.entries
        else:
            search.fit(texts)


WORDS = ["alpha", "beta", "gamma"]
ONE = {"privatespectrallda__doc_topic_prior": [0]}
# Public words or None, a grid, a score or None for that of words, and the reason of the refusal.
UNSCORED = {
    "other words": (WORDS, {"countvectorizer__vocabulary": [WORDS, WORDS[:2]]}, None, "decides"),
    "other counts": (WORDS, {"countvectorizer__binary": [False, True]}, None, "decides"),
    "learned words": (None, ONE, None, "may learn"),
    "learned words later": (WORDS, {"countvectorizer__vocabulary": [WORDS, None]}, None, "may lea"),
    "another score": (WORDS, ONE, "neg_mean_squared_error", "needs an estimator with predict"),
}


@pytest.mark.parametrize("name", [*UNSCORED])
def test_models_that_cannot_be_scored_or_compared_are_refused_before_a_fit_is_paid(name):
    words, grid, metric, reason = UNSCORED[name]
    budget = BudgetAccountant(1e4, 1e-2)
    bounds = None if metric is None else (-1, 0)
    scorer = make_private_scorer(
        metric or "log_likelihood_per_token", epsilon=50.0, bounds=bounds, accountant=budget
    )
    topics = PrivateSpectralLDA(1, epsilon=50.0, accountant=budget)
    steps, texts = make_pipeline(CountVectorizer(vocabulary=words), topics), ["alpha beta"] * 300
    folds = {"cv": PrivateKFold(2), "scoring": scorer, "error_score": "raise"}
    with pytest.raises(ValueError, match=reason):
        GridSearchCV(steps, grid, **folds).fit(texts)
    assert not budget.entries
