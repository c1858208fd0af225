"""Calibration against independent computations: quadrature, and many digits."""

import itertools
import math
from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sktensor_dp import BudgetAccountant
from sktensor_dp.privacy.calibration import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    least_double,
)

EPSILONS = (1e-3, 0.01, 0.1, 1.0, 3.0, 10.0, 100.0, 700.0)
DELTAS = (1e-300, 1e-100, 1e-30, 1e-10, 1e-6, 1e-3, 0.1, 0.5, 0.9)
BUDGETS = list(itertools.product(EPSILONS, DELTAS))

# Differences of erfcx lose up to a factor epsilon / mu**2 of the double precision 1.1e-16;
# over BUDGETS that is 1e-3 / (2.7e-5)**2 = 1.4e6, so 1.5e-10 at worst.
RELATIVE = 3e-10


def exact_delta(mu: float, epsilon: float, digits: int = 80) -> mpmath.mpf:
    """Balle & Wang's formula with so many digits that nothing cancels."""
    with mpmath.workdps(digits):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        near = mpmath.ncdf(mu / 2 - epsilon / mu)
        return near - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def hockey_stick(mu: float, epsilon: float) -> float:
    """Integral of (p - exp(epsilon) q)+ for p = N(mu, 1), q = N(0, 1), by quadrature."""
    start = epsilon / mu + mu / 2
    excess = lambda x: norm.pdf(x - mu) - math.exp(epsilon + norm.logpdf(x))  # noqa: E731
    value, error = quad(excess, start, max(start, mu) + 12, epsabs=0, epsrel=1e-10, limit=200)
    assert error < 1e-8 * value
    return value


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_mu_is_the_root_of_the_exact_formula_on_the_safe_side(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert abs(float(exact_delta(mu, epsilon) / delta) - 1) < RELATIVE
    found = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_delta(mu, found) <= delta
    # Where delta alone nearly pays for mu, epsilon is ill-conditioned: by d ln(mu) / d ln(epsilon),
    # at most 1e4 here (epsilon 1e-3, delta 0.9).
    assert found == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("mu", [1e-17, 1e-10, 9.9e-6, 1.01e-5, 1e-3, 0.1, 1.0, 10.0, 60.0])
@pytest.mark.parametrize("ratio", [0.0, 0.01, 0.5, 2.0, 8.0, 36.0])
def test_delta_agrees_with_many_digits(mu, ratio):
    epsilon = ratio * mu
    relative = float(gaussian_delta(mu, epsilon) / exact_delta(mu, epsilon)) - 1
    # On both sides of mu = 1e-5, where the formula changes, it is worst.
    assert abs(relative) < 3e-9


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.1, 0.3), (0.3, 1.0), (1.0, 0.5), (2.0, 6.0), (5, 30)]
)
def test_delta_is_the_hockey_stick_divergence(mu, epsilon):
    assert gaussian_delta(mu, epsilon) == pytest.approx(hockey_stick(mu, epsilon), rel=1e-7)


def test_limits():
    assert (gaussian_delta(0.0, 1.0), gaussian_delta(math.inf, 1.0)) == (0, 1)
    assert (gaussian_delta(1.0, math.inf), gaussian_mu(math.inf, 1e-6)) == (0, math.inf)
    assert (gaussian_epsilon(0.0, 0.0), gaussian_epsilon(1.0, 0.0)) == (0, math.inf)
    assert gaussian_epsilon(math.inf, 0.5) == math.inf


@pytest.mark.parametrize("mu", [1e-17, 1e-12, 1e-6, 0.1, 5.0])
def test_epsilon_is_zero_only_where_delta_pays_for_everything(mu):
    whole = math.erf(mu / math.sqrt(8))  # total variation distance of N(0, 1) and N(mu, 1)
    assert gaussian_epsilon(mu, whole * (1 + 1e-9)) == 0
    # 2 Phi(mu / 2) - 1 in floating point is 0 here for the smallest mu.
    assert gaussian_epsilon(mu, whole * (1 - 1e-6)) > 0
    assert gaussian_epsilon(mu, 1e-300) > 0


@pytest.mark.parametrize("wrong", [0.0, -1.0, -1e-6, math.nan])
def test_numbers_outside_their_range_are_refused(wrong):
    for name, amounts in (("epsilon", (wrong, 1e-6)), ("delta", (1.0, wrong)), ("delta", (1, 1))):
        with pytest.raises(ValueError, match=f"{name} must"):
            gaussian_mu(*amounts)


def extremes(seed: int, n: int) -> Iterator[tuple[float, float]]:
    """Pairs of epsilon and delta of every size that a double can have."""
    rng = np.random.default_rng(seed)
    yield from itertools.product((5e-324, 2.2e-308, 1e-9, 1.79e308), (5e-324, 1e-300, 1 - 1e-16))
    mantissas = rng.uniform(0.5, 1, (n, 2))
    exponents = np.column_stack([rng.integers(-1073, 1025, n), rng.integers(-1073, 1, n)])
    yield from np.ldexp(mantissas, exponents).tolist()


def test_every_pair_of_doubles_has_a_mu(seed):
    """Quadratic interpolation stopped short where products of small numbers underflow."""
    pairs = [(3.0162003341237307e-215, 6.945306034360683e-226), *extremes(seed, 300)]
    for number, (epsilon, delta) in enumerate(pairs):
        mu = gaussian_mu(epsilon, delta)
        assert 0 < mu < math.inf
        assert gaussian_delta(mu, epsilon) <= delta < gaussian_delta(2 * mu, epsilon)
        # Where delta all but suffices, epsilon is a small difference of numbers like mu.
        assert 0 <= gaussian_epsilon(mu, delta) <= epsilon * (1 + 1e-9) + 1e-12 * mu
        if epsilon >= 1e9:
            # |mu - sqrt(2 epsilon)| is a quantile of a normal law, 40 at most, and rounding.
            assert abs(mu - math.sqrt(2) * math.sqrt(epsilon)) <= 40 + 1e-12 * mu
        # Beyond, digits of epsilon cancel; below, doubles have few digits themselves.
        if number < 38 and epsilon < 1e8 and delta > 1e-305:
            with mpmath.workdps(800):
                attained = exact_delta(mu, epsilon, 800)
            # It is worst where the formula changes, at mu = 1e-5.
            assert abs(float(attained / delta) - 1) < 3e-9


def test_least_double_finds_any_number():
    for wanted in (5e-324, 1e-310, 1e-9, 1.0, math.nextafter(1.0, 2), 1.79e308, math.inf):
        assert least_double(lambda value, wanted=wanted: value >= wanted) == wanted  # type: ignore[misc]


@pytest.mark.parametrize("epsilon", [5e-324, 4.5e-194, 1e-9, 1.7e308, math.inf])
@pytest.mark.parametrize("delta", [0.0, 5e-324, 2.3e-230, 1 - 1e-16])
def test_budgets_of_any_size_can_be_asked_and_shown(epsilon, delta):
    budget = BudgetAccountant(epsilon, delta)
    assert 0 <= budget.remaining(3)["epsilon"] <= epsilon
    assert all(
        part["epsilon"] >= 0 for part in budget.split([0.3, 0.7], ["vocabulary", "gaussian"])
    )
    assert f"epsilon={epsilon!r}" in repr(budget)
    assert str(budget)
