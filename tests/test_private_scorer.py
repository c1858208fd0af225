"""Private scorers: each call is one clipped, noisy, charged release."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_searches import INF, cells, counts, topics
from toy_regressor import NoisyMean, targets

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
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
    model = DummyRegressor().fit(X, y)
    scorer = make_private_scorer("neg_mean_absolute_error", bounds=(-2, 0), delta=delta)
    with unsafe_seeded_noise(seed):
        scores = np.array([scorer(model, X, y) for _ in range(3000)])
    sigma = 2 / 100 * (2**0.5 if delta == 0 else 1 / gaussian_mu(1.0, 1e-6))
    exact = -np.abs(y - y.mean()).mean()
    # Five standard errors of a mean, and of a deviation (kurtosis up to 6, of Laplace noise).
    assert abs(scores.mean() - exact) < 5 * sigma / 3000**0.5
    assert abs(scores.std() / sigma - 1) < 5 * (5 / 4 / 3000) ** 0.5


def test_scores_are_clipped():
    X, y = targets(50)
    model = DummyRegressor().fit(X, y)
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

    scores = cross_val_score(
        PrivateSpectralLDA(1, epsilon=INF), counts(), cv=[([*range(200)], [*range(200, 300)])],
        scoring=scorer, error_score="raise",
    )  # fmt: skip
    assert scores.shape == (1,)
    with pytest.raises(BudgetError):
        scorer(PrivateSpectralLDA(1), Unread())
    with BudgetAccountant(epsilon=0.5, delta=1e-6), pytest.raises(BudgetError):
        make_private_scorer("log_likelihood", bounds=(-99, 0))(PrivateSpectralLDA(1), Unread())


def test_metric_may_be_a_function_of_targets():
    X, y = targets(1000)
    scorer = make_private_scorer(
        lambda true, found: -1.0 * (np.abs(true - found) > 0.5), bounds=(-1, 0), epsilon=INF
    )
    model = DummyRegressor().fit(X, y)
    assert scorer(model, X, y) == pytest.approx(-np.mean(np.abs(y - y.mean()) > 0.5))


def test_bounds_that_public_parameters_imply():
    X, y = cells()
    fitted = NoisyMean(bounds=(0.0, 3.0), epsilon=INF).fit(X, y)
    scorer = make_private_scorer("neg_mean_squared_error", accountant=(b := BudgetAccountant()))
    scorer(fitted, X, y)
    (entry,) = b.entries
    assert entry.release == "held_out_scores"
    assert entry.cost == PrivacyCost(mu=gaussian_mu(1.0, 1e-6))
    with pytest.raises(ValueError, match="bounds must be given"):
        scorer(DummyRegressor().fit(X, y), X, y)
    assert len(b.entries) == 1


def test_pickles_without_an_accountant():
    scorer = make_private_scorer("accuracy", epsilon=2.0)
    copy = pickle.loads(pickle.dumps(scorer))
    assert repr(copy) == repr(scorer)
    assert "epsilon=2.0" in repr(scorer)


def test_refuses_wrong_parameters():
    with pytest.raises(ValueError, match="metric must be a callable"):
        make_private_scorer("r2")
    for name, value in (
        ("epsilon", 0),
        ("delta", 1),
        ("bounds", (1, 0)),
        ("bounds", "ab"),
        ("bounds", (0, 1e-320)),
        ("bounds", (0, 1e308)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be"):
            make_private_scorer("accuracy", **{name: value})
    users = PrivateTuckerCompletion(bounds=(0, 3), privacy_unit="slice")
    with pytest.raises(ValueError, match="slice"):
        make_private_scorer("neg_mean_squared_error")(users, *cells())


# The checks fit a few dozen rows; a search of one trial fits four fifths of them.
@parametrize_with_checks([topics(param_distributions={"doc_topic_prior": [0.5]}, n_trials=1)])
@pytest.mark.filterwarnings("ignore:n_components=.* exceeds:UserWarning")
def test_scikit_learn_checks_of_a_search(estimator, check):
    with unsafe_seeded_noise(0):
        check(estimator)
