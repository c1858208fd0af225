r"""Between (epsilon, delta) and the parameter mu of Gaussian differential privacy.

A query of L2 sensitivity ``D`` answered with Gaussian noise of standard
deviation ``sigma`` is ``mu``-GDP with ``mu = D / sigma``; adaptive queries with
``mu_i`` fixed in advance compose to exactly ``mu = sqrt(sum mu_i ** 2)`` (Dong,
Roth & Su, 2019, corollary 2). Budgets are therefore split as shares of
``mu ** 2``, and converted once.
"""

import math
from collections.abc import Callable
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import erf, erfcx, log_ndtr

SQRT_HALF = math.sqrt(0.5)
# Below this mu, differences over an interval of length mu are taken as derivatives.
SMALL = 1e-5
# Above this epsilon its last digit is no small part of a logarithm of a probability.
LARGE = 1e9


def gaussian_delta(mu: float, epsilon: float) -> float:
    r"""Smallest delta for which a ``mu``-GDP mechanism is (epsilon, delta)-DP."""
    # Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu): Balle & Wang (2018), theorem 8.
    mu, epsilon = float(mu), float(epsilon)
    if mu == 0 or math.isinf(epsilon):
        return 0.0
    if math.isinf(mu):
        return 1.0
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if mu < SMALL:
        # The difference below, to a relative mu**2, by the slope at its middle.
        middle = epsilon / mu * SQRT_HALF
        slope = 2 / math.sqrt(math.pi) - 2 * middle * erfcx(middle)
        return float(0.5 * math.exp(-near * near / 2) * mu * SQRT_HALF * max(slope, 0.0))
    if near > 0:
        # exp(epsilon) = exp((far**2 - near**2) / 2) leaves a difference of Mills ratios,
        # where a difference of logarithms would cancel at small epsilon and delta.
        ratios = erfcx(near * SQRT_HALF) - erfcx(far * SQRT_HALF)
        return float(0.5 * math.exp(-near * near / 2) * max(ratios, 0.0))
    between = 0.5 * (erf(far * SQRT_HALF) - erf(near * SQRT_HALF))
    if epsilon > LARGE:
        # The sum below would be of two numbers whose rounding alone is more than it.
        beyond = 0.5 * math.exp(-near * near / 2) * erfcx(far * SQRT_HALF)
    else:
        beyond = -math.expm1(-epsilon) * math.exp(epsilon + log_ndtr(-far))
    return float(max(between - beyond, 0.0))


# Of public numbers alone; a plan and what splits it ask for the same ones.
@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu for which ``mu``-GDP implies (epsilon, delta)-DP."""
    epsilon, delta = float(epsilon), float(delta)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be > 0, got {epsilon!r}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1) for Gaussian noise, got {delta!r}.")
    if math.isinf(epsilon):
        return math.inf
    # delta grows with mu, and to 1.
    return _root(lambda mu: gaussian_delta(mu, epsilon) - delta, below=True)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon for which a ``mu``-GDP mechanism is (epsilon, delta)-DP."""
    mu, delta = float(mu), float(delta)
    if mu == 0 or delta >= gaussian_delta(mu, 0.0):
        return 0.0
    if math.isinf(mu) or delta <= 0:
        return math.inf
    return _root(lambda epsilon: delta - gaussian_delta(mu, epsilon))


def _root(rising: Callable[[float], float], *, below: bool = False) -> float:
    """Where a rising function of positive numbers is 0: at or above there, or at or `below`."""
    high = 1.0
    while rising(high) < 0:
        high *= 2
    low = high
    while rising(low) > 0 if below else rising(low) >= 0:
        low /= 2
    if low == high:
        return high
    root = float(brentq(rising, low, high, xtol=1e-300, maxiter=1000))
    # brentq may end on either side; the guarantee needs this one.
    while rising(root) > 0 if below else rising(root) < 0:
        root *= 1 - 1e-14 if below else 1 + 1e-14
    return root
