"""Quantiles of normal distributions that are cut off at bounds."""

from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from sktensor_dp.tensor.arrays import Floats

# A mean that is more deviations beyond a bound is moved to there, where rounding hides it.
FARTHEST = 1e4


def quantiles_within(mean: Any, deviation: Any, low: Any, high: Any, n: int) -> Floats:
    """Quantiles (n, ...) at the middles of n equal parts; exact however far the mean is outside."""
    mean = np.clip(mean, low - FARTHEST * deviation, high + FARTHEST * deviation)
    # By the tail nearer to the mean, the other way round where that is the upper one.
    side = np.where(2 * mean < low + high, -1.0, 1.0)
    nearer, further = np.where(side > 0, low, high), np.where(side > 0, high, low)
    below, above = (log_ndtr(side * (end - mean) / deviation) for end in (nearer, further))
    levels = ((np.arange(n) + 0.5) / n).reshape(-1, *[1] * mean.ndim)
    levels = np.where(side > 0, levels, 1 - levels)
    ratio = np.exp(below - above)
    normal = ndtri_exp(above + np.log(ratio + levels * (1 - ratio)))
    return np.clip(mean + side * deviation * normal, low, high)
