"""Search, scorer and audit take estimators that they have never heard of, by their hooks."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from internals import facts_of
from sklearn.base import BaseEstimator
from small_searches import components
from toy_regressor import NoisyMean, targets

from sktensor_dp import PrivateSearchCV, make_private_scorer
from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.privacy.audit import audit, worst_case

INF = float("inf")


pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")


class Stranger(NoisyMean):
    """Its parameters are called as others of this package, and mean something else."""

    _estimator_type = None

    def __init__(
        self, shift=0.0, *, limits=(0.0, 10.0), unit_mode=0, perturbation="input",
        epsilon=1.0, delta=1e-6, accountant=None, random_state=None,
        verbose=0,
    ):  # fmt: skip
        super().__init__(
            shift, epsilon=epsilon, delta=delta, accountant=accountant, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip
        del self.factor, self.fail, self.bounds
        self.limits, self.unit_mode = limits, unit_mode
        self.perturbation = perturbation

    factor, fail = 1.0, False
    bounds = property(lambda self: self.limits, lambda self, _: None, lambda self: None)


class Pure(NoisyMean):
    def _public_facts(self):
        return replace(super()._public_facts(), has_pure_noise=True)


class Silent(PrivateEstimatorMixin, BaseEstimator):
    def __init__(self, epsilon=1.0, accountant=None):
        self.epsilon, self.accountant = epsilon, accountant


class Density(Silent):
    def score_samples(self, X):
        return np.zeros(len(X))


def test_a_third_party_estimator_is_searched_whatever_its_parameters_are_called(n_trials_are):
    X, y = targets(200)
    n_trials_are(8)  # each of two candidates is in some
    search = PrivateSearchCV(Stranger(), {"shift": [-2.0, 0.0]}, epsilon=INF, n_trials=20.0)
    assert search.fit(X, y).best_params_ == {"shift": 0.0}
    fitted = search.best_estimator_
    scorer = make_private_scorer("neg_mean_squared_error", epsilon=INF, bounds=(-1, 0))
    assert -1 < scorer(fitted, X, y) <= 0


@pytest.mark.parametrize(
    ("build", "delta", "pure"), [(NoisyMean, 1e-6, False), (Pure, 1e-6, True), (NoisyMean, 0, True)]
)
def test_the_kind_of_noise_is_asked_for(build, delta, pure):
    search = PrivateSearchCV(build(), {"shift": [0.0]}, delta=delta, epsilon=1e3)
    found = search.fit(*targets(200))
    assert {row.epsilon > 0 for row in found.privacy_report_.rows} == {pure}


def test_a_default_score_follows_from_what_an_estimator_offers():
    X = np.zeros((10, 1))
    for call, message in (
        (lambda: PrivateSearchCV(Silent(), {}).fit(X), "Silent has no default"),
        (lambda: make_private_scorer("log_likelihood"), "bounds must be given"),
        (lambda: components({}, score_bounds=None).fit(np.ones((50, 3))), "score_bounds must be"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert (facts_of(Silent()).score, facts_of(Density()).score) == (None, "log_likelihood")


def test_a_third_party_estimator_is_audited_at_its_worst():
    """Exact test of rates, one-sided, n = 40 without noise: epsilon >= 1 is shown every time.

    Rates are off by .1 at most, and log(.9 / .1) = 2.2. With noise the claim stands, n = 100,
    unless by a chance of 1e-6.
    """
    case = worst_case(NoisyMean(), 10)
    audited = partial(audit, data=case.data, neighbour=case.neighbour, statistic=case.statistic)
    assert audited(NoisyMean(epsilon=INF), n_runs=40).epsilon_lower > 1
    result = audited(NoisyMean(), n_runs=100, confidence=1 - 1e-6)
    assert result.epsilon_claim == pytest.approx(1.0)
    assert not result.refutes_claim
    with pytest.raises(ValueError, match=r"worst_case in _public_facts .* got a Silent"):
        worst_case(Silent())
