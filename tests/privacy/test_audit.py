"""Lower bounds hold with their confidence, and come close to what is true.

Confidence 1 - 1e-6 wherever a bound must not exceed the truth: one chance in a million per
assertion, any seed.
"""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
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
from sktensor_dp.privacy.audit import (
    AuditResult,
    _gaussian_bound,
    audit,
    audit_in_one_run,
    audit_samples,
    guesses_from_scores,
    one_run_audit,
    p_value_of_guesses,
    worst_case,
)
from sktensor_dp.privacy.conversions import gaussian_delta, gaussian_epsilon

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


# In one run


def most_correct(m: int, v: int, *promises: tuple[float, float]) -> float:
    """Largest chance of v right guesses by any mechanism that is (epsilon, delta)-DP for all pairs.

    A linear programme over all mechanisms from m bits to m guesses: unknown are their laws, one
    for each data set, and the excess of each law over e^epsilon times that of a neighbour.
    """
    n = 2**m
    pairs = [(s, s ^ (1 << i), *one) for s in range(n) for i in range(m) for one in promises]
    law = np.arange(n * n).reshape(n, n)
    slack = n * n + np.arange(len(pairs) * n).reshape(-1, n)
    size = n * n + slack.size
    gain, above, sums = np.zeros(size), np.zeros((len(pairs), n + 1, size)), np.zeros((n, size))
    limits = np.zeros((len(pairs), n + 1))
    for s in range(n):
        sums[s, law[s]] = 1
        gain[law[s]] = [(m - (s ^ t).bit_count() >= v) / n for t in range(n)]
    for p, (s, other, epsilon, delta) in enumerate(pairs):
        for t in range(n):
            above[p, t, [law[s, t], law[other, t], slack[p, t]]] = 1, -math.exp(epsilon), -1
        above[p, n, slack[p]], limits[p, n] = 1, delta
    found = linprog(-gain, above.reshape(-1, size), limits.ravel(), sums, np.ones(n))
    assert found.status == 0
    return -float(found.fun)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1])
def test_no_mechanism_at_all_beats_the_p_value(m, epsilon, delta):
    for v in range(m + 1):
        best = most_correct(m, v, (epsilon, delta))
        bound = p_value_of_guesses(m, m, v, epsilon, delta)
        assert best <= bound + 1e-8
        # With one canary the bound is that of hypothesis testing.
        if delta == 0 or m == v == 1:
            assert best == pytest.approx(bound, abs=1e-8)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("mu", [0.4, 1.0, 2.0])
def test_no_mechanism_at_all_beats_the_gaussian_bound(m, mu):
    """mu-GDP is (epsilon, delta)-DP for all epsilons; a grid of them allows a little more."""
    promises = [(e, gaussian_delta(mu, e)) for e in np.linspace(0, 2 * mu + 1, 40)]
    for v in range(1, m + 1):
        bound = _gaussian_bound(m, m, v, most_correct(m, v, *promises))
        assert bound <= mu + 0.02
        # One canary: the bound is that of hypothesis testing.
        assert m > 1 or bound == pytest.approx(mu, abs=0.02)


def test_p_value_of_many_canaries():
    assert p_value_of_guesses(100, 100, 75, math.log(3), 0.0) == pytest.approx(0.5535, abs=1e-3)
    found = p_value_of_guesses(1000, 900, 600, 0.3, 1e-4)
    plain = p_value_of_guesses(1000, 900, 600, 0.3, 0.0)
    assert found == pytest.approx(plain + 0.1 / (1 + math.exp(0.3)))
    assert p_value_of_guesses(10, 10, 0, 1.0, 0.0) == 1


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response_in_one_run(epsilon, seed):
    rng = np.random.default_rng(seed)
    m = 5000
    coins = rng.random(m) < 0.5
    lies = rng.random(m) > 1 / (1 + math.exp(-epsilon))
    guesses = np.where(coins ^ lies, 1, -1)
    result = one_run_audit(guesses, coins, confidence=SURE, epsilon_claim=epsilon)
    assert not result.refutes_claim
    # Five standard errors of the rate for the bound and five for chance, over its slope q (1 - q).
    q = 1 / (1 + math.exp(-epsilon))
    assert result.epsilon_lower >= epsilon - 10 / math.sqrt(m * q * (1 - q))
    # Twenty failures of the whole mechanism explain nothing, and exclude nothing, at 1e-6.
    assert one_run_audit(guesses, coins, delta=1e-3, confidence=SURE).epsilon_lower <= epsilon
    assert one_run_audit(-guesses, coins).epsilon_lower == 0


def test_gaussian_noise_in_one_run(seed):
    """m orthogonal canaries of one release: a replaced one moves it by its sensitivity."""
    rng = np.random.default_rng(seed)
    m, mu, delta = 4000, 3.0, 1e-9
    coins = rng.random(m) < 0.5
    scores = coins * mu + rng.standard_normal(m)
    guesses = guesses_from_scores(scores, 400)
    result = one_run_audit(guesses, coins, delta=delta, confidence=SURE, mu_claim=mu)
    assert not result.refutes_claim
    assert one_run_audit(guesses, coins, confidence=SURE, mu_claim=0.4).refutes_claim
    # The law of the noise is known for mu: more is seen than of epsilon.
    assert gaussian_epsilon(result.mu_lower, delta) > 1.2 * result.epsilon_lower
    # Of the 200 highest scores one in 10^4 is of noise alone, and as many of the lowest. With
    # 5 wrong of 400 (a chance of 1e-9) q = .93 still has a p-value of 1e-6.
    assert 2.5 < result.epsilon_lower < gaussian_epsilon(mu, delta)


def test_no_better_than_coins_in_one_run(seed):
    """At confidence .8 at most a fifth of 100 audits finds something: 20, +- 5 x 4."""
    rng = np.random.default_rng(seed)
    guesses = guesses_from_scores(rng.random(200))
    found = [one_run_audit(guesses, rng.random(200) < 0.5, confidence=0.8) for _ in range(100)]
    assert sum(r.epsilon_lower > 0 or r.mu_lower > 0 for r in found) <= 40
    # Half of the guesses are of either kind.
    assert guesses_from_scores(np.arange(9.0), 5).tolist() == [-1, -1, 0, 0, 0, 0, 1, 1, 1]
    assert set(guesses_from_scores(np.zeros(4))) == {-1, 1}


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


class Keep(Echo):
    def fit(self, X, y=None):
        self.rows_ = [str(row) for row in X]
        return self


def test_rows_of_any_kind_in_one_run():
    """Arrays, lists and tuples; `rest` is behind the canaries."""

    def score(fitted):
        assert fitted.rows_[-1] == "z"
        return [row == "b" for row in fitted.rows_[:40]]

    result = audit_in_one_run(Keep(), ["b"] * 40, ["a"] * 40, rest=["z"], score=score, delta=0.0)
    # All guesses but those forced on the other half are right.
    assert result.n_correct >= 20
    assert result.n_guesses == 40


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
    "of booleans": lambda: one_run_audit([1], [1]),
    r"\(2,\) and \(1,\)": lambda: one_run_audit([1, 1], [True]),
    "-1, 0 or 1": lambda: one_run_audit([2], [True]),
    "delta must": lambda: one_run_audit([1], [True], delta=1.0),
    "confidence must": lambda: one_run_audit([1], [True], confidence=0.0),
    "scores must be": lambda: guesses_from_scores([math.nan]),
    r"n_guesses must be an int from 1 to 1, got 2\.$": lambda: guesses_from_scores([1.0], 2),
    "n_guesses must be an int from 1 to 1, got 2.5": lambda: guesses_from_scores([1.0], 2.5),
    "n_guesses must be an int from 1 to 1, got 0": lambda: guesses_from_scores([1.0], 0),
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
