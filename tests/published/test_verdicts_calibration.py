"""Verdicts on how much noise the papers add: every number from the law of two normals alone."""

import math

import numpy as np
import pytest
from plain_moments import exact_sigma, hockey_stick
from scipy.optimize import brentq


def exact_epsilon(mu, delta):
    return brentq(lambda epsilon: hockey_stick(mu, epsilon) - delta, 0, 50, xtol=1e-12)


def classical_sigma(epsilon, delta):
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def test_hockey_stick_is_the_integral_that_defines_it():
    x = np.linspace(-12, 14, 260_001)
    p, q = (np.exp(-((x - at) ** 2) / 2) / math.sqrt(2 * math.pi) for at in (0.7, 0.0))
    for epsilon in (0.1, 0.5, 2.0):
        integral = np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0])
        assert hockey_stick(0.7, epsilon) == pytest.approx(integral, rel=1e-4)


@pytest.mark.parametrize(("delta", "first"), [(1e-3, 7.5), (1e-5, 8.45), (1e-8, 9.4)])
def test_classical_calibration_first_fails_beyond_seven(delta, first):
    epsilons = np.arange(1, 400) * 0.05
    excess = [hockey_stick(1 / classical_sigma(e, delta), e) > delta for e in epsilons]
    # Enough noise at every epsilon up to there, and at none from there on.
    assert epsilons[np.argmax(excess)] == pytest.approx(first)
    assert all(excess[np.argmax(excess) :])


def test_classical_calibration_is_a_quarter_too_much_at_one():
    assert classical_sigma(1.0, 1e-6) == pytest.approx(5.2988, abs=1e-4)
    assert exact_sigma(1.0, 1e-6) == pytest.approx(4.2247, abs=1e-4)
    # Two releases: classical halves, exact halves, and both at once.
    assert classical_sigma(0.5, 5e-7) == pytest.approx(10.86, abs=0.005)
    assert exact_sigma(0.5, 5e-7) == pytest.approx(8.35, abs=0.005)
    assert math.sqrt(2) * exact_sigma(1.0, 1e-6) == pytest.approx(5.97, abs=0.005)


def printed_sigma(epsilon, delta):
    L = math.log(1 / delta)
    return (math.sqrt(epsilon + L) + math.sqrt(L)) / (2 * epsilon)


@pytest.mark.parametrize(("delta", "times"), [(1e-5, 3.16), (1e-6, 7.91), (1e-8, 54.1)])
def test_tighter_calibration_gives_more_than_its_delta(delta, times):
    actual = hockey_stick(1 / printed_sigma(1.0, delta), 1.0)
    assert actual / delta == pytest.approx(times, rel=0.005)


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-6, 1e-8])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
def test_tighter_calibration_lacks_a_factor_root_two(epsilon, delta):
    mended = math.sqrt(2) * printed_sigma(epsilon, delta)
    assert hockey_stick(1 / mended, epsilon) < delta
    # Without it there is enough noise at small epsilon only, and where delta is large.
    enough = hockey_stick(1 / printed_sigma(epsilon, delta), epsilon) <= delta
    assert enough == ((epsilon, delta) in {(0.1, 1e-3), (0.1, 1e-5), (0.1, 1e-6), (1.0, 1e-3)})


@pytest.mark.parametrize("alpha0", [0.0, 0.5, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_sensitivities_in_l1_make_up_for_it_in_configuration_1(epsilon, alpha0):
    """Three Gaussian releases, each for a third of (epsilon, delta), with what is proved in L2."""
    n, delta = 1000, 1e-6
    a, b, c = alpha0 / (alpha0 + 1), alpha0 / (alpha0 + 2), 0.0
    c = 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2))
    unit = printed_sigma(epsilon / 3, delta / 3)
    printed_pairs = 2 + 4 * a
    printed_triples = 2 + 4 * b + 6 * c * (n - 1) / (n - 2)
    proved_pairs = math.sqrt(2) * (1 + 2 * a)
    proved_triples = math.sqrt(2) * (1 + 6 * b + 3 * c)
    shares = [proved_pairs / printed_pairs] * 2 + [proved_triples / printed_triples]
    mu = math.sqrt(sum(share**2 for share in shares)) / unit
    assert hockey_stick(mu, epsilon) < delta


SIZES = [(k, L, R) for k in (5, 20) for L in (10, 50) for R in (10, 30)]


def printed_multiplier(epsilon, delta, n_queries):
    each = epsilon / math.sqrt(n_queries * (4 + math.log(2 / delta)))
    return math.sqrt(2 * math.log(1.25 * 2 * n_queries / delta)) / each


@pytest.mark.parametrize("delta", [1e-5, 1e-6])
def test_noise_of_algorithm_3_gives_an_eighth_of_epsilon(delta):
    found, excess = [], []
    for k, L, R in SIZES:
        n_queries = k * L * (R + 1)
        mu = math.sqrt(n_queries) / printed_multiplier(1.0, delta, n_queries)
        found.append(exact_epsilon(mu, delta))
        excess.append(1 / exact_sigma(1.0, delta) / mu)
    assert 0.114 < min(found) < max(found) < 0.133
    assert 6.6 < min(excess) < max(excess) < 7.3


@pytest.mark.parametrize("n_queries", [550, 31_000])
def test_advanced_composition_of_algorithm_3_gives_more_than_epsilon(n_queries):
    delta = 1e-5
    each = 1 / math.sqrt(n_queries * (4 + math.log(2 / delta)))
    # Half of delta for the queries, half for composing them.
    composed = math.sqrt(2 * n_queries * math.log(2 / delta)) * each
    composed += n_queries * each * math.expm1(each)
    assert composed == pytest.approx(1.29, abs=0.005)
