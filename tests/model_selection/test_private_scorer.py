"""Private scorers: each call is one clipped, noisy, charged release."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import (
    check_positive_only_tag_during_fit,
    parametrize_with_checks,
)
from small_searches import INF, cells, counts, topics
from toy_regressor import NoisyMean, answering, constant, targets

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTuckerCompletion,
    make_private_scorer,
    unsafe_seeded_noise,
)
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
]


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_noise_is_as_large_as_promised(seed, delta):
    X, y = targets(100)
    model, n_draws = constant(y.mean()), 800
    scorer = make_private_scorer("neg_mean_absolute_error", bounds=(-2, 0), delta=delta)
    with unsafe_seeded_noise(seed):
        scores = np.array([scorer(model, X, y) for _ in range(n_draws)])
    sigma = 2 / 100 * (2**0.5 if delta == 0 else 1 / gaussian_mu(1.0, 1e-6))
    exact = -np.abs(y - y.mean()).mean()
    # Five standard errors of a mean, and of a deviation (kurtosis up to 6, of Laplace noise). A
    # deviation wrong by the root of 2 is .29 too small: 7.4 of them, and those of what is then
    # drawn are smaller still, so that chance hides it with a probability of 1e-3.
    assert abs(scores.mean() - exact) < 5 * sigma / n_draws**0.5
    assert abs(scores.std() / sigma - 1) < 5 * (5 / 4 / n_draws) ** 0.5


def test_scores_are_clipped():
    X, y = targets(50)
    model = constant(y.mean())
    y[0] = -1e30
    scorer = make_private_scorer("neg_mean_squared_error", bounds=(-100, 0), epsilon=INF)
    assert -100 / 50 - 2 < scorer(model, X, y) < -100 / 50


def test_grid_search_is_charged_for_every_fit_and_score():
    budget = BudgetAccountant(epsilon=100.0, delta=1e-6)
    scorer = make_private_scorer("neg_mean_squared_error", epsilon=0.5, accountant=budget)
    grid = GridSearchCV(
        NoisyMean(epsilon=0.5, accountant=budget), {"shift": [0.0, 2.0]}, cv=3, scoring=scorer
    )
    clone(grid).fit(*targets())
    spenders = [entry.spender for entry in budget.entries]
    assert spenders.count("PrivateScorer") == 6
    assert spenders.count("NoisyMean") == 7
    mu = gaussian_mu(0.5, 1e-6)
    assert budget.cost.mu == pytest.approx(mu * 13**0.5)
    assert budget.cost.epsilon == budget.cost.delta == 0


def test_refuses_before_reading_when_the_budget_is_spent():
    budget = BudgetAccountant(epsilon=1.0, delta=1e-6)
    scorer = make_private_scorer("log_likelihood", bounds=(-99, 0), accountant=budget)

    class Unread:
        shape = (10, 7)

        def __getitem__(self, rows):
            raise AssertionError("read")

    scores = cross_val_score(
        PrivateSpectralLDA(1, epsilon=INF), counts(), cv=[([*range(200)], [*range(200, 300)])],
        scoring=scorer, error_score="raise",
    )  # fmt: skip
    assert scores.shape == (1,)
    fitted = PrivateSpectralLDA(1, epsilon=INF).fit(counts())
    with pytest.raises(BudgetError):
        scorer(fitted, Unread())
    with BudgetAccountant(epsilon=0.5, delta=1e-6), pytest.raises(BudgetError):
        make_private_scorer("log_likelihood", bounds=(-99, 0))(fitted, Unread())


def test_bounds_that_public_parameters_imply():
    X, y = cells()
    fitted = NoisyMean(bounds=(0.0, 3.0), epsilon=INF).fit(X, y)
    scorer = make_private_scorer("neg_mean_squared_error", accountant=(b := BudgetAccountant()))
    scorer(fitted, X, y)
    (entry,) = b.entries
    assert entry.release == "held_out_scores"
    assert entry.cost == PrivacyCost(mu=gaussian_mu(1.0, 1e-6))
    with pytest.raises(ValueError, match="bounds must be given"):
        scorer(constant().set_params(bounds=None), X, y)
    assert len(b.entries) == 1


# Row by row


METRICS = {
    "neg_mean_squared_error": (-1, 0),
    "neg_mean_absolute_error": (-1, 0),
}
ODD = ["x", "1", b"1", None, 1j, 2**70, 10**400, float("nan"), "nan", [1, 2], [[1]], {}, object(),
       np.datetime64("2020-01-01"), 1e308, "9" * 5000, np.array(3), np.ones(2)]  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("place", [0, 500, 999])
def test_no_label_changes_the_scores_of_other_rows(metric, place):
    """By a thousandth of their range at most; what is no number is refused unspent."""
    low, high = METRICS[metric]
    budget = BudgetAccountant()
    scorer = make_private_scorer(metric, bounds=(low, high), epsilon=INF, accountant=budget)
    X, y = np.zeros((1000, 1)), [1] * 1000
    before = scorer(constant(1), X, y)
    assert before == high
    for odd in ODD:
        changed, spent = [*y[:place], odd, *y[place + 1 :]], budget.entries
        found, said = before, "y "
        try:
            found = scorer(constant(1), X, changed)
        except (TypeError, ValueError) as error:
            said = str(error)
            assert budget.entries == spent
        assert said.startswith("y ")
        assert abs(found - before) <= (high - low) / 1000 * (1 + 1e-9)


def test_rows_of_objects_are_asked_about_one_by_one():
    """Of a list with one text in it numpy would make texts of all: it is refused."""
    total = answering(lambda X: np.asarray(X).sum(axis=1))
    X, y = [[i, 1.0] for i in range(200)], [i + 1.0 for i in range(200)]
    scorer = make_private_scorer("neg_mean_squared_error", bounds=(-1, 0), epsilon=INF)
    for odd in (["x", 1.0], "x", None, [1.0], [[1], 2], [2**70, 1.0], [1j, 0]):
        rows = [*X[:7], odd, *X[8:]]
        tables = [rows]
        if isinstance(odd, list) and len(odd) == 2 and np.ndim(odd[0]) == 0:
            array = np.empty((200, 2), dtype=object)
            array[:] = rows
            tables += [array, pd.DataFrame(array)]
        for table in tables[1:]:
            assert scorer(total, table, y) == pytest.approx(-1 / 200)
        if odd != [2**70, 1.0]:
            with pytest.raises((TypeError, ValueError), match=r"^X "):
                scorer(total, rows, y)


def test_documents_of_a_list_are_asked_about_together():
    """An empty one takes the place of what is none, so that others are asked about as before."""
    asked = []

    def lengths(X):
        asked.append(len(X))
        return np.array([-len(text.split()) for text in X], dtype=float)

    model = answering(lengths, texts=True)
    texts = ["to be or not"] * 300
    scorer = make_private_scorer("log_likelihood", bounds=(-5, 0), epsilon=INF)
    assert scorer(model, texts) == -4
    assert asked == [300]
    for odd in (None, 3, ["a"], {}):
        asked.clear()
        assert scorer(model, [*texts[1:], odd]) == pytest.approx(-4 - 1 / 300)
        assert asked[0] == 300
    assert scorer(model, [*texts[1:], "a\0 b"]) == pytest.approx(-4 + 2 / 300)


def test_refuses_what_cannot_be_scored_before_charging():
    budget = BudgetAccountant(epsilon=100.0)
    X, y = targets(100)
    toy = NoisyMean(epsilon=INF).fit(X, y)
    wide, fitted = np.zeros((100, 2)), PrivateSpectralLDA(1, epsilon=INF).fit(counts())
    for metric, estimator, X_, given, match in (
        ("neg_mean_squared_error", toy, X, None, "needs y, which is None"),
        ("neg_mean_squared_error", toy, X, y[:50], "inconsistent numbers of samples"),
        ("neg_mean_squared_error", toy, wide, y, "has 2 features"),
        ("log_likelihood", toy, X, None, "needs an estimator with score_samples"),
        ("log_likelihood", fitted, counts()[:, 1:], None, "has 6 features"),
        ("log_likelihood", fitted, counts()[:0], None, "at least one row"),
        ("log_likelihood", PrivateSpectralLDA(1), X, None, "not fitted"),
    ):
        scorer = make_private_scorer(metric, bounds=(-1, 0), accountant=budget)
        with pytest.raises(ValueError, match=match):
            scorer(estimator, X_, given)
    assert budget.entries == ()


@pytest.mark.parametrize("kind", [DummyRegressor, TransformedTargetRegressor])
def test_refuses_models_of_which_it_is_not_known_what_they_protect(kind):
    X, y = targets(100)
    held = {"regressor": NoisyMean()} if kind is TransformedTargetRegressor else {}
    for model in (kind(**held), make_pipeline(NoisyMean(), kind(**held))):
        scorer = make_private_scorer("neg_mean_squared_error", accountant=(b := BudgetAccountant()))
        with pytest.raises(ValueError, match="which may learn from the data"):
            scorer(model, X, y)
        assert b.entries == ()


def test_scores_the_best_model_of_a_search():
    X, y = targets(100)
    grid = GridSearchCV(NoisyMean(), {"shift": [0.0]}, cv=2, scoring=lambda *_: 0.0).fit(X, y)
    private = PrivateSearchCV(NoisyMean(), {"shift": [0.0]}, n_trials=1.0).fit(X, y)
    scorer = make_private_scorer("neg_mean_squared_error", epsilon=INF)
    for search in (grid, private):
        assert scorer(search, X, y) == scorer(search.best_estimator_, X, y)


def test_columns_of_targets_are_one_number_each():
    X, y = targets(100)
    scorer = make_private_scorer("neg_mean_squared_error", bounds=(-9, 0), epsilon=INF)
    wanted = -np.mean((y - 5.0) ** 2)
    for given in (y, y[:, None], y.tolist(), y[:, None].tolist(), pd.Series(y)):
        assert scorer(constant(5.0), X, given) == pytest.approx(wanted)


def test_pickles_without_an_accountant():
    scorer = make_private_scorer("log_likelihood", epsilon=2.0)
    copy = pickle.loads(pickle.dumps(scorer))
    assert repr(copy) == repr(scorer)
    assert "epsilon=2.0" in repr(scorer)


def test_refuses_wrong_parameters():
    for metric in ("r2", "accuracy", len, None):
        with pytest.raises(ValueError, match="metric must be one of"):
            make_private_scorer(metric)
    for name, value in (
        ("epsilon", 0),
        ("delta", 1),
        ("bounds", (1, 0)),
        ("bounds", "ab"),
        ("bounds", (0, 1e-320)),
        ("bounds", (0, 1e308)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be"):
            make_private_scorer("log_likelihood", **{name: value})
    users = PrivateTuckerCompletion(bounds=(0, 3), unit_mode=0)
    with pytest.raises(ValueError, match="units of several rows"):
        make_private_scorer("neg_mean_squared_error")(users, *cells())


# In scikit-learn 1.6 this check takes the mean off whole numbers in place, which numpy refuses.
FAULTY = (
    {"check_positive_only_tag_during_fit": "The check fails before it comes to the search."}
    if "X -= X.mean()\n" in inspect.getsource(check_positive_only_tag_during_fit)
    else {}
)


# The checks fit a few dozen rows; a search of one trial fits four fifths of them.
@parametrize_with_checks(
    [topics(param_distributions={"doc_topic_prior": [0.5]}, n_trials=1, random_state=0)],
    expected_failed_checks=lambda estimator: FAULTY,
)
@pytest.mark.filterwarnings("ignore:n_components=.* exceeds:UserWarning")
def test_scikit_learn_checks_of_a_search(estimator, check):
    with unsafe_seeded_noise(0):
        check(estimator)
