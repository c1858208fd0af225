"""Skewness of whitened columns, which shows in shifts of rows that are clipped early."""

from functools import cache

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from sktensor_dp.mixtures.clipping import Clipping, Scales
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.tensor.arrays import Floats, Integers

# Quantile of the length of standard normal rows at which rows are clipped early: low, as skewness
# shows there, but so high that integers of a deviation of 1 or more are no lumps.
EARLY = 0.3


def scales_of_shifts(width: int) -> Scales:
    """Largest squared scales of parts that leave sensitivity to the shifts, of scale 1."""
    # By the proof opposite shifts are apart by 4, and rows of two groups by twice the sum.
    return Scales(0.2, 1.0, 0.4, 0.4 * (width - 1) / width)


@cache
def skewness_of_exponential(early: Clipping) -> float:
    """Shift of early clipped rows about their mean, if one coordinate is exponential."""
    parts = (np.arange(500) + 0.5) / 500
    x = np.log1p(-parts) + 1  # quantiles of minus a coordinate, about its mean
    others = chi2.ppf(parts, early.width - 1) if early.width > 1 else np.zeros(1)
    lengths = np.sqrt(x[:, None] ** 2 + others)
    clipped = x[:, None] * np.minimum(1, early.limit / lengths)
    return float(clipped.mean() / early.shift_response)


def seen_skewness(shifts: Floats, noise: Floats, early: Clipping) -> Floats:
    """Largest skewness of whitened columns in any group, over that of an exponential law.

    It is 0 where it is less by two deviations, or one in a hundred sets of shifts has it by chance.
    """
    exponential, found = skewness_of_exponential(early), np.abs(shifts)
    by_chance = -float(ndtri(0.005 / shifts.size))  # deviations
    least = np.maximum(exponential - 2 * noise, by_chance * noise)
    return np.asarray(np.where(found > least[:, None], found / exponential, 0.0).max(axis=0))


def moved_along(
    model: Gaussians, columns: Integers, means: Floats, squares: Floats, noise: Floats
) -> Gaussians:
    """One Gaussian moved along whitened columns by their means, with variances by `squares`.

    A variance grows by what it has beyond the fitted one, shrunk by its noise.
    """
    beyond = np.maximum(squares - np.square(means) - 1, 0)
    stretches = np.ones(len(model.means[0]))
    stretches[columns] += np.maximum(beyond**2 - noise**2, 0) / np.maximum(beyond, 1e-300)
    factor = model.factors[0]
    covariance = (factor * stretches) @ factor.T
    return Gaussians(model.weights, model.means + factor[:, columns] @ means, covariance[None])
