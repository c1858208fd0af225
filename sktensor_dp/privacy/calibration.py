"""Calibration of noise: the mu and epsilon of Gaussian noise, and the spread of spherical noise.

For sensitivity ``s``, Gaussian noise of deviation ``s / gaussian_mu(epsilon, delta)`` is
(epsilon, delta)-DP. Budgets are split as fractions of ``mu ** 2``.
"""

import math
import struct
from collections.abc import Callable
from functools import lru_cache

from scipy.special import erf, erfcx, log_ndtr, ndtr, ndtri

# For smaller mu a difference over an interval of length mu is computed as a derivative.
SMALL_MU = 1e-5
# For larger epsilon a sum of epsilon and a logarithm has too few digits.
LARGE_EPSILON = 1e9


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta for which a ``mu``-GDP mechanism is (epsilon, delta)-DP."""
    # Balle & Wang (2018), theorem 8: delta = Phi(-near) - exp(epsilon) Phi(-far), where
    # Phi(-x) = exp(-x**2 / 2) erfcx(x sqrt_half) / 2, by erfcx(x) = exp(x**2) erfc(x).
    mu, epsilon, sqrt_half = float(mu), float(epsilon), math.sqrt(0.5)
    if mu == 0 or math.isinf(epsilon):
        return 0.0
    if math.isinf(mu):
        return 1.0
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if math.isinf(far):
        return 0.0 if near > 0 else 1.0
    if mu < SMALL_MU:
        # The difference `ratios` below, by the derivative -erfcx'(x) = 2 / sqrt(pi) - 2 x erfcx(x)
        # in the middle of an interval of length mu sqrt_half; relative error mu**2.
        middle = epsilon / mu * sqrt_half
        slope = 2 / math.sqrt(math.pi) - 2 * middle * erfcx(middle)
        return float(0.5 * math.exp(-near * near / 2) * mu * sqrt_half * max(slope, 0.0))
    if near > 0:
        # As epsilon = (far**2 - near**2) / 2, both terms have the factor exp(-near**2 / 2).
        # A difference of logarithms would cancel for small epsilon and delta.
        ratios = erfcx(near * sqrt_half) - erfcx(far * sqrt_half)
        return float(0.5 * math.exp(-near * near / 2) * max(ratios, 0.0))
    # (Phi(-near) - Phi(-far)) - (exp(epsilon) - 1) Phi(-far).
    between = 0.5 * (erf(far * sqrt_half) - erf(near * sqrt_half))
    if epsilon > LARGE_EPSILON:
        # exp(epsilon) - 1 is exp(epsilon) here; the sum of logarithms below would cancel.
        beyond = 0.5 * math.exp(-near * near / 2) * erfcx(far * sqrt_half)
    else:
        beyond = -math.expm1(-epsilon) * math.exp(epsilon + log_ndtr(-far))
    return float(max(between - beyond, 0.0))


# Conversions are cached, as plans, splits and forecasts ask alike; arguments are public.
@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu for which ``mu``-GDP implies (epsilon, delta)-DP; noise is sensitivity / mu."""
    epsilon, delta = float(epsilon), float(delta)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be > 0, got {epsilon!r}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1) for Gaussian noise, got {delta!r}.")
    if math.isinf(epsilon):
        return math.inf
    # delta grows with mu, up to 1.
    return math.nextafter(least_double(lambda mu: gaussian_delta(mu, epsilon) > delta), 0.0)


@lru_cache(maxsize=1024)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon for which a ``mu``-GDP mechanism is (epsilon, delta)-DP."""
    mu, delta = float(mu), float(delta)
    if mu == 0 or delta >= gaussian_delta(mu, 0.0):
        return 0.0
    if math.isinf(mu) or delta <= 0:
        return math.inf
    return least_double(lambda epsilon: gaussian_delta(mu, epsilon) <= delta)


def gaussian_misses(mu: float, false_positive_rate: float) -> float:
    """Least false-negative rate of a test between neighbours of a ``mu``-GDP mechanism."""
    # Dong, Roth & Su (2022), equation 5.
    return float(ndtr(-ndtri(false_positive_rate) - mu))


def least_double(holds: Callable[[float], bool]) -> float:
    """Smallest positive double at which `holds` is True, as at all above it; infinity if none."""
    # Bisect over the ranks of all doubles, in 63 steps.
    rank_of_infinity = 0x7FF << 52
    low, high = 0, rank_of_infinity
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(_double(middle)) else (middle, high)
    return _double(high)


def _double(rank: int) -> float:
    """Non-negative double of a `rank` in increasing order, which is its bit pattern."""
    return float(struct.unpack("<d", rank.to_bytes(8, "little"))[0])


def spherical_spread(dimension: int) -> float:
    """Deviation of a coordinate of spherical Laplace noise over its mean norm / dimension."""
    # In d dimensions the norm has a Gamma law of mean d s and mean square d (d + 1) s^2, and each
    # coordinate a mean square of (d + 1) s^2.
    return math.sqrt(dimension + 1)
