"""Conversions of zero-concentrated differential privacy: epsilon to rho, and back.

Where pure releases are many, the ledger counts all costs as ``rho`` (docs/proofs/composition.md).
"""

import math
from collections.abc import Callable
from functools import lru_cache

from scipy.optimize import minimize_scalar

from sktensor_dp.privacy.calibration import least_double


def pure_rho(epsilon: float) -> float:
    """Smallest rho for which every epsilon-DP mechanism is rho-zCDP."""
    # Harrison & Manurangsi (2025); docs/proofs/composition.md.
    return epsilon * math.tanh(epsilon / 2)


def epsilon_of_rho(rho: float) -> float:
    """Largest epsilon for which every epsilon-DP mechanism is rho-zCDP."""
    if rho <= 0 or math.isinf(rho):
        return max(rho, 0.0)
    return math.nextafter(least_double(lambda epsilon: pure_rho(epsilon) > rho), 0.0)


@lru_cache(maxsize=1024)
def zcdp_epsilon_at_delta(rho: float, delta: float) -> float:
    """Smallest known epsilon for which rho-zCDP implies (epsilon, delta)-DP."""
    if rho == 0:
        return 0.0
    if math.isinf(rho) or delta <= 0:
        return math.inf
    # The Rényi divergence of order 1 + m is at most (1 + m) rho.
    epsilon = _minimum(lambda m: (1 + m) * rho + _conversion(m, delta), math.sqrt(rho), delta)
    return max(epsilon, 0.0)


@lru_cache(maxsize=1024)
def zcdp_rho_at_delta(epsilon: float, delta: float) -> float:
    """Largest known rho for which rho-zCDP implies (epsilon, delta)-DP."""
    if math.isinf(epsilon):
        return math.inf
    if delta <= 0:
        return 0.0
    # Start from the rho of a simpler bound, epsilon = rho + 2 sqrt(rho) tail.
    tail = math.sqrt(-math.log(delta))
    root = epsilon / (math.hypot(tail, math.sqrt(epsilon)) + tail)
    if root == 0:
        return 0.0
    # rho is the largest (epsilon - conversion) / (1 + m) over m: find the least of its negative.
    negative_rho = _minimum(lambda m: (_conversion(m, delta) - epsilon) / (1 + m), root, delta)
    return max(-negative_rho, 0.0)


def _conversion(more: float, delta: float) -> float:
    """Epsilon at `delta` minus the Rényi divergence of order ``1 + more``."""
    # Canonne, Kamath & Steinke (2020), proposition 12.
    return (-math.log(delta) - math.log1p(more)) / more - math.log1p(1 / more)


def _minimum(value: Callable[[float], float], root: float, delta: float) -> float:
    """Minimum of `value` over Rényi orders ``1 + m`` near the best for ``rho = root ** 2``."""
    # The leading terms, m rho - log(delta) / m, are least at the first guess. Search within a
    # factor of e^5 around it: any order gives a valid bound.
    guess = math.log(min(max(math.sqrt(-math.log(delta)) / root, 1e-3), 1e150))
    best = minimize_scalar(
        lambda log: value(math.exp(log)),
        bounds=(guess - 5, guess + 5), method="bounded", options={"xatol": 1e-9, "maxiter": 200},
    )  # fmt: skip
    return float(best.fun)
