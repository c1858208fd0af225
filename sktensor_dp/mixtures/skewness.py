"""Skewness of whitened columns, by shifts of rows that are clipped early."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import chi2

from sktensor_dp.mixtures import defaults
from sktensor_dp.mixtures.clipping import Clipping, Scales
from sktensor_dp.tensor.arrays import Floats, Integers

# Quantile of the length of standard normal rows at which rows are clipped early: skewness shows
# there. It is the probability that one column is within half a deviation: values that round to the
# nearest integer, where integers are a deviation apart, stay within the clip.
EARLY = float(chi2.cdf(0.5**2, 1))
# Largest deviation of logs of a tail that groups share: a skewness of 6.
LONGEST = 1.0


def scales_of_shifts(width: int) -> Scales:
    """Squared scales of parts: 1 of shifts, and of others as much as adds no sensitivity."""
    # By the proof, rows of opposite shifts have a squared distance of 4, and rows of two groups
    # twice the sum of all scales.
    return Scales(0.2, 1.0, 0.4, 0.4 * (width - 1) / width)


class Tails(NamedTuple):
    """Numbers (m,) of log-normal columns of rising skewness.

    Their unit is the deviation that clipped EM steps find.
    """

    logs: Floats  # deviation of logs
    early_shift: Floats  # of rows clipped early about the mean by steps, downwards
    cut: Floats  # what clips take off the mean
    spread: Floats  # true deviation


@cache
def log_normal_tails(clip: Clipping, early: Clipping) -> Tails:
    """Tails of a log-normal column beside normal ones, if EM steps clip rows by `clip`."""
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
    # Interpolate between the deviations of logs.
    known = np.arange(len(deviations))
    places = np.linspace(0, len(deviations) - 1, 151)
    return Tails(*[np.interp(places, known, one) for one in (deviations[:, 0], *rising)])


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
    mean_square = (squares * np.square(factors).mean(axis=-1)).mean(axis=-1, keepdims=True)
    return mean, mean_square


def are_long(logs: Floats) -> NDArray[np.bool_]:
    """Mask of tails so long, by expected deviations of `logs`, that fits find other groups."""
    return np.asarray(logs > defaults.LIKELY)


class SharedTails(NamedTuple):
    """Expected tails (d,) that groups share in each column, by released shifts."""

    logs: Floats  # mean deviation of logs
    square: Floats  # root mean square of the squared deviation, as moves of means grow with it
    cut: Floats  # root mean square of the `cut` of `Tails`
    spread: Floats  # root mean square of the `spread` of `Tails`
    normal: Floats  # probability that there is none

    def without(self, places: Integers, *, keeps_cut: NDArray[np.bool_]) -> "SharedTails":
        """Copy with no tails in the columns at `places`, of which some (a mask) keep their cut."""
        logs, cut, spread, normal = map(np.copy, (self.logs, self.cut, self.spread, self.normal))
        logs[places], spread[places], normal[places] = 0.0, 1.0, 1.0
        cut[places] *= keeps_cut
        return SharedTails(logs, self.square, cut, spread, normal)


def shared_tails(shifts: Floats, noise: Floats, parts: Floats, tails: Tails) -> SharedTails:
    """Posterior of the tails that groups share, given measured early `shifts` (k, d) of each.

    They have normal `noise` (k,), and show `parts` (k, d) of the early shifts of `tails`.
    """
    is_short = tails.logs <= LONGEST
    logs, expected, cut, spread = (np.tile(one[is_short], 2) for one in tails)
    expected[len(expected) // 2 :] *= -1  # the second time to the other side
    squares = np.square((shifts[..., None] - parts[..., None] * expected) / noise[:, None, None])
    # Half a square is minus a log-likelihood.
    log_odds = -squares.sum(axis=0) / 2
    odds = np.exp(log_odds - log_odds.max(axis=-1, keepdims=True))
    prior = 1 - logs / LONGEST  # shorter tails are likelier
    prior *= (1 - defaults.NORMAL) / prior.sum()
    prior[0] += defaults.NORMAL
    odds *= prior
    odds /= odds.sum(axis=-1, keepdims=True)
    is_normal = logs == logs[0]
    square, cut, spread = (np.sqrt(odds @ np.square(one)) for one in (logs**2, cut, spread))
    return SharedTails(odds @ logs, square, cut, spread, odds @ is_normal)
