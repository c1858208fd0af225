"""Selection of the best of a secret number of trials: the theorem, and the law of the number.

Exact laws of selections follow from the law of the best of k: with u the probability of an
output no better than y, and v that of worse ones, P(best of k is y) = u^k - v^k.
"""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import chisquare, geom

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.calibration import gaussian_delta, gaussian_mu
from sktensor_dp.privacy.selection_cost import (
    secret_trials,
    selection_delta,
    selection_epsilon,
    stop_probability,
    trial_cost,
)

BUDGETS = [(0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-9), (10.0, 1e-3)]


def excess(p, q, epsilon):
    """Smallest delta between two discrete laws, the larger of both directions."""
    growth = math.exp(epsilon)
    return max(np.maximum(p - growth * q, 0).sum(), np.maximum(q - growth * p, 0).sum())


def selected(law, stop):
    """Law of the best outcome, summed over numbers of trials; later outcomes are better."""
    upto = np.cumsum(law)
    number = np.arange(1, int(60 / stop))
    weight = geom.pmf(number, stop)
    best = np.array([(weight * x**number).sum() for x in np.concatenate([[0.0], upto])])
    return np.diff(best)


def rho_of(p, q, stop, failure=0.0):
    """The proof's rho for the exact profile of a discrete trial, by bisection."""
    low, high = 0.0, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        enough = stop * math.expm1(middle) >= (1 - stop) * (failure + excess(p, q, middle))
        low, high = (low, middle) if enough else (middle, high)
    return high


@pytest.mark.parametrize("stop", [0.9, 0.3, 0.05])
@pytest.mark.parametrize("failure", [0.0, 0.2, 0.01, 1e-4])
def test_theorem_holds_for_discrete_trials_by_enumeration(seed, stop, failure):
    """Where they fail, an outcome of one side alone, and another of the other, in any order."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        p, q = rng.dirichlet(np.full(5, rng.choice([0.2, 1.0, 5.0])), 2) * 0.999 + 0.0002
        order = np.append(np.roll(np.argsort(p / q), 1), [5, 6])
        order = rng.permutation(order) if rng.random() < 0.3 else order
        sides = zip((p, q), np.eye(2), strict=True)
        laws = [np.append((1 - failure) * law, failure * alone)[order] for law, alone in sides]
        a, b = (selected(law, stop) for law in laws)
        # The profile of the corollary, not the smaller one of these two laws.
        rho = rho_of(p, q, stop, failure)
        for inner in (0.0, 0.1, 0.5, 1.5):
            claimed = (failure + excess(p, q, inner)) / stop
            assert excess(a, b, inner + 2 * rho) <= claimed + 1e-12


@pytest.mark.parametrize("stop", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("failure", [1e-3, 1e-6])
def test_what_trials_set_aside_is_paid_for_as_often_as_there_are_trials(stop, failure):
    """Outcomes of one side alone that win: no epsilon helps, and nine tenths would not do."""
    p, q = np.array([1 - failure, 0, failure]), np.array([1.0, 0, 0])
    found = excess(selected(p, stop), selected(q, stop), 30.0)
    assert found == pytest.approx(failure / (stop + (1 - stop) * failure), rel=1e-6)
    assert 0.9 * failure / stop < found <= failure / stop


def adversarial(mu, stop, epsilon, cut):
    """Excess of selection from N(0, 1) against N(mu, 1), best z > cut, then the smallest z."""
    z = np.linspace(-12, cut, 100_001)

    def law(mean):
        better = np.minimum(ndtr(mean - cut) + ndtr(z - mean), 1)
        best = stop * (1 - better) / (1 - (1 - stop) * (1 - better))
        return -np.diff(best)

    return np.maximum(law(0.0) - math.exp(epsilon) * law(mu), 0).sum()


@pytest.mark.parametrize("n_trials", [2, 10, 50])
def test_gaussian_trials_attain_most_of_epsilon_and_never_more(n_trials):
    stop, delta = stop_probability(n_trials), 1e-6
    mu = trial_cost(1.0, delta, stop).mu
    cuts = np.linspace(0, 3, 13)
    assert max(adversarial(mu, stop, 1.0, cut) for cut in cuts) <= delta
    # The page's table: .976, .946, .934.
    assert max(adversarial(mu, stop, 0.92, cut) for cut in cuts) > delta


def theorem(mu, stop, epsilon):
    """Delta by the theorem, with its rho for Gaussian trials."""
    rho = brentq(lambda r: stop * math.expm1(r) - (1 - stop) * gaussian_delta(mu, r), 0, 50)
    return gaussian_delta(mu, epsilon - 2 * rho) / stop


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("n_trials", [1, 3.3, 1000])
def test_calibration_uses_the_budget_up_and_no_more(epsilon, delta, n_trials):
    stop = stop_probability(n_trials)
    mu, pure = trial_cost(epsilon, delta, stop).mu, trial_cost(epsilon, 0.0, stop).epsilon
    assert selection_delta(mu, stop, epsilon) == pytest.approx(theorem(mu, stop, epsilon), rel=1e-6)
    assert selection_delta(mu, stop, epsilon) <= delta < selection_delta(1.0001 * mu, stop, epsilon)
    assert selection_epsilon(pure, stop) <= epsilon < selection_epsilon(1.0001 * pure, stop)
    assert pure > epsilon / 3
    assert math.isinf(trial_cost(math.inf, delta, stop).mu)
    assert math.isinf(trial_cost(math.inf, 0.0, stop).epsilon)
    if n_trials == 1:
        assert mu == pytest.approx(gaussian_mu(epsilon, delta), rel=1e-6)
        assert pure == pytest.approx(epsilon, rel=1e-6)


# The law of the number of trials


def p_value(found, law):
    """Of a chi-square test on cells 1, 2, ..., with the tail as one."""
    edges = np.array([1, 2, 3, 4, 6, 9, 13, 10**9])
    observed = np.histogram(found, edges)[0]
    expected = np.histogram(np.arange(1, 4000), edges, weights=law / law.sum())[0]
    return chisquare(observed, expected * len(found)).pvalue


def test_number_of_trials_is_geometric(seed):
    """Chi-square, 7 cells, n = 3000, alpha 1e-6; three other laws: power 1 at every seed."""
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        found = np.array([sum(1 for _ in secret_trials(stop_probability(5))) for _ in range(3000)])
    k = np.arange(1, 4000)
    assert p_value(found, geom.pmf(k, 0.2)) > 1e-6
    # Of the same mean, logarithmic (eta = 0) and eta = 2; and geometric of another mean.
    one = brentq(lambda g: (1 / g - 1) / math.log(1 / g) - 5, 1e-6, 0.9)
    two = brentq(lambda g: 2 * (1 - g) / (g * (1 - g**2)) - 5, 1e-6, 0.9)
    for wrong in ((1 - one) ** k / k, (k + 1) * (1 - two) ** k, geom.pmf(k, 0.25)):
        assert p_value(found, wrong) < 1e-12


def test_trials_have_bits_of_their_own_that_nothing_seeds():
    bits = []
    for _ in range(20):
        np.random.seed(0)  # noqa: NPY002 (what people do)
        bits += [tuple(trial) for trial in secret_trials(0.2)]
    assert len(set(bits)) == len(bits)
    assert all(len(trial) == 4 and max(trial) < 2**64 for trial in bits)
