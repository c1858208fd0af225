"""A private regressor that takes no time: the noisy mean of y, and a shift that hurts."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from sktensor_dp.data.units import Units
from sktensor_dp.estimator.base import FitResult, PrivateEstimatorMixin
from sktensor_dp.estimator.facts import PublicFacts
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.held_out import HeldOutChunk, HeldOutScores

NAME = "held_out_scores"


def target(X, y):
    return y


class NoisyMean(RegressorMixin, PrivateEstimatorMixin, BaseEstimator):
    """Predicts the mean plus `shift`; `factor` times the budget is what it asks for."""

    def __init__(
        self, shift=0.0, factor=1.0, fail=False, *, bounds=(0.0, 10.0), epsilon=1.0, delta=1e-6,
        accountant=None, random_state=None, verbose=0,
    ):  # fmt: skip
        self.shift = shift
        self.factor = factor
        self.fail = fail
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y):
        chunks = HeldOutChunk(X, y, Units.single(len(y)))
        plan = ReleasePlan.split(self.factor * self.epsilon, self.delta, {NAME: 1.0})
        query = HeldOutScores(target, *self.bounds)

        with self._session(chunks, plan) as ask:
            if self.fail:
                raise RuntimeError("this candidate fails")
            found = float(ask(query).value[0]) + query.middle
        fitted = FitResult({"mean_": found, "seed_": self.random_state})
        columns = {"n_features_in_": X.shape[1]}
        return self._publish_result(self._with_report(ask, fitted, columns))

    def predict(self, X):
        return np.full(len(X), self.mean_ + self.shift)

    def _public_facts(self):
        return PublicFacts("sample", target_range=self.bounds, worst_case=self._worst_case)

    def _worst_case(self, n_units):
        X, y = np.zeros((n_units or 10, 1)), np.full(n_units or 10, np.mean(self.bounds))
        low, high = (np.concatenate([[end], y[1:]]) for end in self.bounds)
        return (X, low), (X, high), lambda fitted: fitted.mean_


def answering(answer, *, texts=False):
    """A fitted private model that says of rows what a function does."""

    class Answering(NoisyMean):
        def predict(self, X):
            return answer(X)

        score_samples = predict

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.string = texts
            return tags

    fitted = Answering(epsilon=np.inf).fit(np.zeros((4, 1)), np.zeros(4))
    del fitted.n_features_in_
    return fitted


def constant(value=0.0):
    """A fitted private model that says the same of every row."""
    return answering(lambda X: np.full(X.shape[0] if hasattr(X, "shape") else len(X), value))


def targets(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    return np.zeros((n, 1)), rng.normal(5.0, 0.5, n)
