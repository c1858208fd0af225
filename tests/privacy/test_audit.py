"""Lower bounds hold with their confidence, and come close to what is true.

Confidence 1 - 1e-6 wherever a bound must not exceed the truth: one chance in a million per
assertion, any seed.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.privacy.audit import AuditResult, audit, audit_samples, worst_case
from sktensor_dp.privacy.calibration import gaussian_epsilon

SURE = 1 - 1e-6


# From samples


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("mu", [0.0, 1.0, 3.0])
def test_gaussians(mu, sign, seed):
    noise = np.random.default_rng(seed).standard_normal((2, 200_000))
    result = audit_samples(noise[0], noise[1] + sign * mu, delta=1e-5, confidence=SURE)
    assert result.mu_lower <= mu
    assert result.epsilon_lower <= gaussian_epsilon(mu, 1e-5)
    # At the middle: rates Phi(mu / 2), of which 1e5 runs leave two errors of the bounds and
    # two of the rates, 5 standard errors each, in units of the density there.
    rate = norm.cdf(mu / 2)
    error = math.sqrt(rate * (1 - rate) / 1e5) / norm.pdf(mu / 2)
    assert result.mu_lower >= mu - 20 * error
    assert not AuditResult(**{**vars(result), "mu_claim": mu}).refutes_claim


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_laplace(epsilon, seed):
    """Beyond its end the likelihood ratio is e^epsilon: half and half e^-epsilon of the runs."""
    noise = np.random.default_rng(seed).laplace(scale=1 / epsilon, size=(2, 200_000))
    result = audit_samples(noise[0], noise[1] + 1, confidence=SURE)
    # Relative errors of the two rates, 10 standard errors each.
    errors = 10 * (1e5**-0.5 + math.sqrt(2 * math.exp(epsilon) / 1e5))
    assert epsilon - errors <= result.epsilon_lower <= epsilon


def test_a_failure_probability_is_taken_off(seed):
    """A mechanism that gives all away in 2 % of its runs is (0, .02)-private."""
    rng = np.random.default_rng(seed)
    one, other = np.zeros(50_000), (rng.random(50_000) < 0.02).astype(float)
    assert audit_samples(one, other, delta=0.02, confidence=SURE).epsilon_lower == 0
    assert audit_samples(one, other, delta=0.0, confidence=SURE).epsilon_lower > 1
    # The other way round the event is what is not seen.
    assert audit_samples(other, one, delta=0.0, confidence=SURE).epsilon_lower > 1


def test_equal_laws_are_told_apart_as_often_as_the_confidence_allows(seed):
    """At confidence .8, among 100 audits of equal laws: 20 at most are expected, 43 by 2e-7."""
    rng = np.random.default_rng(seed)
    found = [audit_samples(*rng.standard_normal((2, 100)), confidence=0.8) for _ in range(100)]
    assert sum(r.mu_lower > 0 or r.epsilon_lower > 0 for r in found) <= 42


def test_threshold_fixed_beforehand_uses_all_runs():
    one, other = np.zeros(100), np.ones(100)
    result = audit_samples(one, other, threshold=0.5, confidence=0.95)
    # All of n on one side: the Clopper-Pearson bound is error^(1/n), here at .025.
    rate = 0.025 ** (1 / 100)
    assert result.n_runs == 100
    assert result.epsilon_lower == pytest.approx(math.log(rate / (1 - rate)))
    assert result.mu_lower == pytest.approx(2 * norm.ppf(rate))
    assert audit_samples(other, one, threshold=0.5).epsilon_lower == 0
    assert audit_samples(other, one).epsilon_lower > 1


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        # The first half is told apart without exception, the second not at all.
        (np.zeros(200), np.repeat([1.0, 0.0], 100), 0, 0),
        (np.full(200, -np.inf), np.full(200, np.inf), 2, math.inf),
        (np.zeros(50), np.zeros(50), 0, 0),
    ],
    ids=["told apart by runs that choose", "infinite", "tied"],
)
def test_runs_that_choose_the_threshold_do_not_count(one, other, least, most):
    result = audit_samples(one, other)
    assert least <= result.epsilon_lower <= most
    assert result.n_runs == len(one) // 2


@pytest.mark.parametrize(
    ("epsilon", "mu", "claims", "refuted"),
    [
        (1.2, 0.4, (1.0, 0.5), True), (0.9, 0.6, (1.0, 0.5), True),
        (0.9, 0.4, (1.0, 0.5), False), (0.9, 0.6, (None, None), False),
    ],
)  # fmt: skip
def test_either_bound_refutes_its_claim(epsilon, mu, claims, refuted):
    result = AuditResult(
        epsilon_lower=epsilon, mu_lower=mu, delta=1e-6, confidence=0.95, threshold=0.0,
        true_positive_rate=0.5, false_positive_rate=0.1, n_runs=10,
        epsilon_claim=claims[0], mu_claim=claims[1],
    )  # fmt: skip
    assert result.refutes_claim == refuted
    start = "CLAIM REFUTED: epsilon" if refuted else "epsilon"
    assert str(result).startswith(f"{start} >= {epsilon}{' (claim 1)' if claims[0] else ''} at")


# Fits


class Echo(BaseEstimator):
    """Shows its data, and no report."""

    def fit(self, X, y=None):
        self.mean_ = float(np.mean(X))
        return self


def mean(fitted):
    return fitted.mean_


def test_an_estimator_without_report_is_audited_at_a_delta():
    for other, n_runs in ((np.eye(3, 2), 100), (np.zeros((3, 2)), 50)):
        result = audit(Echo(), np.zeros((3, 2)), other, n_runs=n_runs, statistic=mean, delta=0.0)
        assert (result.epsilon_lower > 1) == other.any()
        assert result.epsilon_claim is None
        assert not result.refutes_claim


def completion(**options):
    return PrivateCPCompletion(1, bounds=(0, 1), shape=(1, 1), random_state=0, **options)


def test_audits_charge_nobody():
    accountant = BudgetAccountant()
    model = completion(delta=0, accountant=accountant)
    case = worst_case(model)
    sides = {"data": case.data, "neighbour": case.neighbour, "n_runs": 8}
    audit(model, **sides, statistic=case.statistic)
    with accountant, pytest.raises(RuntimeError, match="not charged"):
        audit(model, **sides, statistic=case.statistic)
    pipeline = make_pipeline(FunctionTransformer(), PrivateSpectralLDA(1, accountant=accountant))
    audit(pipeline, np.ones((5, 3)), np.ones((5, 3)), n_runs=8, statistic=len, delta=1e-6)
    assert accountant.entries == ()


def test_no_noise_claims_nothing():
    model = PrivateTensorPowerMethod(1, data_norm=1.0, max_iter=1, epsilon=math.inf)
    case = worst_case(model)
    result = audit(model, case.data, case.neighbour, n_runs=30, statistic=case.statistic)
    assert (result.epsilon_claim, result.mu_claim) == (math.inf, math.inf)
    assert result.epsilon_lower > 1


def fits(n_runs: int) -> AuditResult:
    return audit(Echo(), [[1.0]], [[2.0]], n_runs=n_runs, statistic=mean)


TWO = [1.0, 2.0]
REFUSED = {
    r"one must be .* shape \(1, 1\)": lambda: audit_samples([[1.0]], TWO),
    "other must be": lambda: audit_samples(TWO, []),
    "without NaN": lambda: audit_samples(TWO, [1.0, math.nan]),
    "two values or more": lambda: audit_samples([1.0], TWO),
    r"delta must lie in \[0, 1\)": lambda: audit_samples(TWO, TWO, delta=1.0),
    "confidence must lie": lambda: audit_samples(TWO, TWO, confidence=1.0),
    "n_runs must be an int >= 8": lambda: fits(7),
    "delta must be given": lambda: fits(8),
    "worst_case in _public_facts .* got a Echo": lambda: worst_case(Echo()),
    "data_norm must be given": lambda: worst_case(PrivateTensorPowerMethod(1)),
    "bounds must be given": lambda: worst_case(PrivateCPCompletion(1)),
    "two rows or more in mode 1; got None": lambda: worst_case(
        PrivateCPCompletion(1, bounds=(0, 1), unit_mode=0)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_audited_is_refused(message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()
