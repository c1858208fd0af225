"""A row that cannot be scored counts as the lower bound, whatever the others do."""

import math
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from small_searches import counts

from sktensor_dp import (
    BudgetAccountant,
    PrivateSearchCV,
    PrivateSpectralLDA,
    make_private_scorer,
)

INF = math.inf
ROWS = np.zeros((100, 1))

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:.*lower bound:UserWarning"),
]


def failing(true, found):
    if true[0] < 0:
        raise ArithmeticError
    return np.zeros(1)


def misshapen(true, found):
    return np.zeros(1) if true[0] >= 0 else 0.0


def root(true, found):
    """Imaginary of what is negative."""
    return np.array([float(true[0]) ** 0.5 * 0])


def texts(true, found):
    return np.array([0.0]) if true[0] >= 0 else np.array(["secret"])


def at_half():
    return DummyRegressor(strategy="constant", constant=0.5).fit(ROWS, ROWS[:, 0])


@pytest.mark.parametrize("metric", [failing, misshapen, root, texts])
@pytest.mark.parametrize("n_bad", [1, 99, 100])
def test_however_many_rows_a_metric_fails_on(metric, n_bad):
    y = [-1.0] * n_bad + [1.0] * (100 - n_bad)
    scorer = make_private_scorer(metric, bounds=(-1, 0), epsilon=INF)
    assert scorer(at_half(), ROWS, y) == pytest.approx(-n_bad / 100)


@pytest.mark.parametrize(
    ("neighbours", "n_rows"), [("replace_one", 1), ("add_remove", 1), ("add_remove", 0)]
)
def test_a_single_row_that_fails(neighbours, n_rows):
    scorer = make_private_scorer(failing, bounds=(-1, 0), neighbours=neighbours)
    assert math.isfinite(scorer(at_half(), ROWS[:n_rows], np.full(n_rows, -1.0)))


@pytest.mark.parametrize("metric", ["neg_mean_squared_error", "neg_mean_absolute_error"])
def test_targets_of_which_none_is_a_number(metric):
    scorer = make_private_scorer(metric, bounds=(-1, 0), epsilon=INF)
    assert scorer(at_half(), ROWS, ["a"] * 100) == -1
    assert scorer(at_half(), ROWS, [0.5] + ["a"] * 99) == pytest.approx(-0.99)


class Picky(BaseEstimator):
    """A model that refuses all rows where one is negative."""

    def predict(self, X):
        if (np.asarray(X) < 0).any():
            raise ValueError("negative")
        return np.asarray(X)[:, 0]

    score_samples = predict


@pytest.mark.parametrize(
    "metric", ["accuracy", "log_likelihood", "neg_mean_squared_error", failing]
)
@pytest.mark.parametrize("n_bad", [1, 99, 100])
def test_rows_that_the_model_refuses(metric, n_bad):
    X = np.full((100, 1), 0.0)
    X[:n_bad] = -1
    low, high = (-1, 0) if metric != "accuracy" else (-1, 1)
    scorer = make_private_scorer(metric, bounds=(low, high), epsilon=INF)
    wanted = (low * n_bad + high * (100 - n_bad)) / 100
    assert scorer(Picky(), X, np.zeros(100)) == pytest.approx(wanted)


class PickyOfTexts(BaseEstimator):
    """A model of texts that refuses all where one says no."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    def score_samples(self, X):
        if any("no" in text for text in X):
            raise ValueError("no")
        return np.zeros(len(X))


@pytest.mark.parametrize("n_bad", [1, 99, 100])
def test_documents_that_the_model_refuses(n_bad):
    scorer = make_private_scorer("log_likelihood", bounds=(-1, 0), epsilon=INF)
    documents = ["no"] * n_bad + ["yes"] * (100 - n_bad)
    assert scorer(PickyOfTexts(), documents) == pytest.approx(-n_bad / 100)


def per_token(model, X):
    if not X.sum():
        raise ZeroDivisionError
    return model.score_samples(X) / X.sum()


@pytest.mark.parametrize("n_tokens", [0, 3])
def test_a_search_whose_held_out_rows_all_fail(n_tokens):
    X = np.zeros((40, 8))
    X[0, 0] = n_tokens
    held_out = [(np.arange(20, 40), np.arange(20))]
    search = PrivateSearchCV(
        PrivateSpectralLDA(1), {"n_refinements": [0]}, n_trials=1, scoring=per_token,
        score_bounds=(-5, 0), cv=held_out, random_state=0,
    )  # fmt: skip
    assert math.isfinite(search.fit(X).best_score_)


def test_what_is_public_is_refused_before_the_charge():
    budget = BudgetAccountant(9.0)
    names = DummyClassifier().fit(ROWS, ["a", "b"] * 50)
    model = PrivateSpectralLDA(1, epsilon=INF, random_state=0).fit(counts())
    for metric, estimator, X, y, match in (
        (failing, BaseEstimator(), ROWS, ROWS[:, 0], "needs an estimator with predict"),
        ("neg_mean_squared_error", names, ROWS, ROWS[:, 0], "must return numbers"),
        ("log_likelihood", model, counts()[:, 1:], None, "features"),
    ):
        scorer = make_private_scorer(metric, bounds=(-1, 0), accountant=budget)
        with pytest.raises(ValueError, match=match):
            scorer(estimator, X, y)
    assert budget.entries == ()


@pytest.mark.filterwarnings("default:.*lower bound:UserWarning")
def test_a_score_at_the_lower_bound_warns_by_what_was_released():
    scorer = make_private_scorer(failing, bounds=(-1, 0), epsilon=INF)
    with pytest.warns(UserWarning, match="at the lower bound"):
        scorer(at_half(), ROWS, [-1.0] * 100)
    noisy = make_private_scorer(failing, bounds=(-1, 0), epsilon=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer(at_half(), ROWS, [-1.0] * 50 + [1.0] * 50)
        # Noise far larger than the bounds are wide: a low score says nothing.
        for _ in range(5):
            noisy(at_half(), ROWS, [-1.0] * 100)


@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "accuracy"])
def test_a_held_out_row_that_a_step_leaves_out_is_one_that_cannot_be_scored(scoring):
    """An error would tell that there is one, as would the number of answers."""
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0) % 2
    leaving = FunctionTransformer(lambda rows: rows[(np.asarray(rows) < 30).all(axis=1)])
    fitted = make_pipeline(leaving, DummyClassifier()).fit(X[:15], y[:15])
    score = make_private_scorer(scoring, epsilon=INF, bounds=(-1.0, 1.0))
    # Fifteen rows score as they do alone, and five at the lower bound.
    alone = score(fitted, X[:15], y[:15])
    assert score(fitted, X, y) == pytest.approx((15 * alone - 5) / 20, rel=1e-9)
