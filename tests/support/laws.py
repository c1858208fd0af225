"""Whether numbers follow a law: one sound sample in a million does not pass."""

import math

import numpy as np
from scipy import stats
from scipy.special import kolmogi

__all__ = ["Z", "assert_law"]

Z = 4.9  # two-sided 1e-6 point of the normal


def assert_law(samples: np.ndarray, law: stats.rv_continuous) -> None:
    """Mean, mean modulus and Kolmogorov-Smirnov distance of a law symmetric about 0."""
    root = math.sqrt(samples.size)
    assert abs(samples.mean()) < Z * law.std() / root
    modulus = 2 * law.expect(lambda x: x, lb=0)
    spread = math.sqrt(law.var() - modulus**2)
    assert abs(np.abs(samples).mean() - modulus) < Z * spread / root
    # Shapes are told apart by fewer, in odd steps, which pass all places of an array in turn.
    some = samples if samples.size < 200_000 else samples[:: samples.size // 100_000 // 2 * 2 + 1]
    distance = stats.kstest(some, law.cdf, method="asymp").statistic
    assert distance * math.sqrt(some.size) < kolmogi(1e-6)
