"""Skewness of whitened columns, by shifts of rows that are clipped early."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from sktensor_dp.mixtures.clipping import Clipping, Scales
from sktensor_dp.tensor.arrays import Floats

# Quantile of the length of standard normal rows at which rows are clipped early: skewness shows
# there. It is the probability that one column is within half a deviation: rounding to integers that
# are a deviation apart moves no value out.
EARLY = float(chi2.cdf(0.5**2, 1))
# Probability that a fit of normal groups calls some column skewed.
FALSE_ALARMS = 0.01


def scales_of_shifts(width: int) -> Scales:
    """Squared scales of parts: 1 of shifts; of others as much as leaves the sensitivity."""
    # By the proof, rows of opposite shifts have a squared distance of 4, and rows of two groups
    # twice the sum of all scales.
    return Scales(0.2, 1.0, 0.4, 0.4 * (width - 1) / width)


@cache
def skewness_of_exponential(early: Clipping) -> float:
    """Shift that `early` clips show of rows of mean 0 with one exponential coordinate."""
    parts = (np.arange(500) + 0.5) / 500
    x = np.log1p(-parts) + 1  # quantiles of 1 minus an exponential variate
    others = chi2.ppf(parts, early.width - 1) if early.width > 1 else np.zeros(1)
    lengths = np.sqrt(x[:, None] ** 2 + others)
    clipped = x[:, None] * np.minimum(1, early.limit / lengths)
    return float(clipped.mean() / early.shift_response)


class Tails(NamedTuple):
    """Numbers (m,) of log-normal columns of rising skewness, in deviations by clipped EM steps."""

    skewness: Floats  # minus the shift of early clipped rows about the mean by steps
    cut: Floats  # what clips take off the mean
    spread: Floats  # true deviation


@cache
def log_normal_tails(clip: Clipping, early: Clipping) -> Tails:
    """Tails of log-normal columns in rows of otherwise normal ones, if EM steps clip by `clip`."""
    normal = ndtri((np.arange(300) + 0.5) / 300)
    deviations = np.linspace(1e-3, 1.5, 16)[:, None]  # of logs
    columns = np.exp(deviations * normal)
    columns -= columns.mean(axis=1, keepdims=True)
    columns /= columns.std(axis=1, keepdims=True)
    # Squared lengths of the other, normal columns of a row.
    others = np.zeros(1)
    if clip.width > 1:
        others = chi2.ppf((np.arange(24) + 0.5) / 24, clip.width - 1)
    means, spreads = _fitted_by_clipped_steps(columns, normal, clip, others)
    shifts, _ = _clipped_moments((columns - means) / spreads, early.limit, others)
    tails = [-shifts / early.shift_response, -means / spreads, 1 / spreads]
    rising = np.maximum.accumulate(tails, axis=1)[..., 0]
    places = np.linspace(0, len(deviations) - 1, 151)  # between the deviations of logs
    return Tails(*(np.interp(places, np.arange(len(deviations)), one) for one in rising))


def _fitted_by_clipped_steps(
    columns: Floats, normal: Floats, clip: Clipping, others: Floats
) -> tuple[Floats, Floats]:
    """Means and deviations (m, 1) of columns (m, n) at the fixed point of EM steps that clip rows.

    `normal` are quantiles of a normal column, `others` squared lengths of the rest of a row.
    """
    means, spreads = np.zeros((len(columns), 1)), np.ones((len(columns), 1))
    _, of_normal = _clipped_moments(normal, clip.limit, others)
    for _ in range(30):
        whitened = (columns - means) / spreads
        shifts, _ = _clipped_moments(whitened, clip.far, others)
        _, squares = _clipped_moments(whitened, clip.limit, others)
        means = means + spreads * shifts / clip.shift_response
        spreads = spreads * np.sqrt(squares / of_normal)
    return means, spreads


def _clipped_moments(column: Floats, limit: float, others: Floats) -> tuple[Floats, Floats]:
    """Mean and mean square of values of a column, in rows clipped at `limit`; (..., 1) each.

    The other columns of a row have one of the squared lengths `others`.
    """
    squares = np.square(column)
    factors = np.minimum(1, limit / np.sqrt(squares[..., None] + others))
    mean = (column * factors.mean(axis=-1)).mean(axis=-1, keepdims=True)
    return mean, (squares * np.square(factors).mean(axis=-1)).mean(axis=-1, keepdims=True)


def expected_tails(
    shifts: Floats, noise: Floats, clip: Clipping, early: Clipping
) -> tuple[Floats, Floats]:
    """Root mean squares (k, d) of the `cut` and of the `spread` of `Tails`, given `shifts`.

    `shifts` (k, d) of early clipped rows have normal `noise` (k,); a priori all tails are equally
    likely. All numbers are in fitted deviations.
    """
    tails = log_normal_tails(clip, early)
    differences = np.abs(shifts)[..., None] - np.append(tails.skewness, -tails.skewness)
    log_odds = -np.square(differences / noise[:, None, None]) / 2
    odds = np.exp(log_odds - log_odds.max(axis=-1, keepdims=True))
    odds /= odds.sum(axis=-1, keepdims=True)
    cut, spread = (np.sqrt(odds @ np.square(np.tile(one, 2))) for one in (tails.cut, tails.spread))
    return cut, spread


def seen_skewness(shifts: Floats, noise: Floats, early: Clipping) -> Floats:
    """Largest skewness (d,) of whitened columns in any group, over that of an exponential law.

    It is 0 if it is less than 1 by more than two deviations, or if the `noise` (k,) could explain
    the `shifts` (k, d) of a column, at the level `FALSE_ALARMS` for all columns together.
    """
    exponential = skewness_of_exponential(early)
    k, d = shifts.shape
    sizes = np.abs(shifts)
    is_seen = np.square(shifts / noise[:, None]).sum(axis=0) > chi2.isf(FALSE_ALARMS / d, k)
    is_long = sizes > np.maximum(exponential - 2 * noise, 0)[:, None]
    return np.asarray(np.where(is_seen & is_long, sizes / exponential, 0.0).max(axis=0))
