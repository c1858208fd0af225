"""Tails of columns within groups, by released shifts, and what clips take of them."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sktensor_dp.gaussian_mixture.plan import MixturePlan
from sktensor_dp.gaussian_mixture.step_release import MOST_RADII, clipped_statistics
from sktensor_dp.mixtures.clipping import Clipping, clipping_at, limits_of_fewer
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.m_step import LEAST_VARIANCE, LEAST_WEIGHT, StepNoise
from sktensor_dp.mixtures.shrinkage import LEAST_OF_LARGEST
from sktensor_dp.mixtures.skew_bias import SIMULATED, simulated_bias
from sktensor_dp.mixtures.skewness import (
    EARLY,
    SharedTails,
    log_normal_tails,
    scales_of_shifts,
    shared_tails,
)
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.mixtures import MixtureStatistics
from sktensor_dp.queries.samples import LiftedBall
from sktensor_dp.tensor.arrays import Floats

# Least part of the skewness of a tail that groups are taken to show.
LEAST_SHOWN = 0.1
# Share of fits of normal groups in which noise shows values far out in some column.
FALSE_ALARMS = 0.01


class TailErrors(NamedTuple):
    """Skewness of whitened columns, and what it takes from means and deviations."""

    skewness: Floats  # (d,): expected deviation of logs of `shared_tails`
    missed: Floats  # (k, 1 + d): errors of weights and means by clips and traded rows
    spread: Floats  # (k, d): true over fitted deviation
    normal: float  # probability that no column has a tail


def release_tails(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians,
    noise: StepNoise, observed: Floats,
) -> TailErrors:  # fmt: skip
    """Release shifts of rows clipped early, and estimate tails by them."""
    early = clipping_at(plan.n_features, EARLY)
    shifts, of_shifts = _release_shifts(ask, ball, model, early)
    weights = np.maximum(model.weights, LEAST_WEIGHT)
    shifts = shifts / weights[:, None]
    # Sampling variance of shifts from the mean: at most that of a median less the mean. Where cells
    # are missing noise of means counts for more.
    by_chance = (math.pi / 2 - 1) / (ask.n_units * weights)
    of_means = noise.shift / observed.mean(axis=1)
    deviations = np.sqrt((of_shifts**2 + of_means**2) / weights**2 + by_chance)
    far_out = missed_far_out(ball, plan, second, model, observed, shifts, deviations)
    shared, traded = skew_of_groups(ball, plan, model, shifts, deviations, noise.rates, early)
    if plan.nonnormal is not None:  # tails of these columns are in their likelihood
        places = plan.nonnormal.places
        is_cut = plan.nonnormal.longest(model.means[:, places]).max(axis=0) > plan.clip.far
        shared.logs[places], shared.spread[places], far_out[:, places] = 0.0, 1.0, 0.0
        shared.cut[places] *= is_cut
        shared.normal[places] = 1.0
    cut = np.square(model.factors) @ np.square(shared.cut)
    missed = traded
    missed[:, 1:] = np.sqrt(cut + far_out**2 + traded[:, 1:] ** 2)
    spread = np.tile(shared.spread, (len(weights), 1))
    return TailErrors(shared.logs, missed, spread, float(shared.normal.prod()))


def skew_of_groups(
    ball: LiftedBall, plan: MixturePlan, model: Gaussians, shifts: Floats, deviations: Floats,
    rates: Floats, early: Clipping,
) -> tuple[SharedTails, Floats]:  # fmt: skip
    """Tails that groups share, and errors (k, 1 + d) by rows that they trade.

    `shifts` (k, d) of rows clipped early have noise of these `deviations` (k,).
    """
    k, d = shifts.shape
    tails = log_normal_tails(plan.clip, early)
    if k == 1 or not plan.has_intervals:
        return shared_tails(-shifts, deviations, np.ones((k, d)), tails), np.zeros((k, 1 + d))
    signs = np.where(deviations**-2.0 @ shifts > 0, -1.0, 1.0)
    # The sum of `rates` is a number of full steps. Steps before these, which start far away, are
    # taken for as many: twice in all. If groups were merged, rates of steps before that are 0, and
    # the groups before were fitted to all tails, too: take all for four times as many.
    n_steps = round((2 if rates[0] > 0 else 4) * float(rates.sum()))
    bias = simulated_bias(
        model, ball.radius, signs, plan.clip, early, n_steps, plan.covariance_type
    )
    whole = float(np.interp(SIMULATED, tails.logs, tails.early_shift))
    parts = np.clip(-signs * bias.shifts.T / whole, LEAST_SHOWN, 1.0)
    shared = shared_tails(-signs * shifts, deviations, parts, tails)
    return shared, bias.moves_by(shared.square)


def _release_shifts(
    ask: Session, ball: LiftedBall, model: Gaussians, clip: Clipping
) -> tuple[Floats, float]:
    """Release shifts (k, d) of whitened rows, times weights; return them and sigma of noise."""
    query = MixtureStatistics(
        model.means, model.whiteners, model.log_scales, limit=clip.limit, centre=0.0,
        scales=scales_of_shifts(1), guard_radius=MOST_RADII * ball.radius, shape_part="spherical",
        partial=[(limit, 0.0) for limit in limits_of_fewer(clip)],
        slopes=model.slopes, offsets=model.offsets,
    )  # fmt: skip
    answer = ask(query)
    shifts = query.decoded(clipped_statistics(answer)).shifts / clip.shift_response
    return shifts, answer.sigma * clip.limit / clip.shift_response


def missed_far_out(
    ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians, observed: Floats,
    shifts: Floats, deviations: Floats,
) -> Floats:  # fmt: skip
    """Errors (k, d) of means by values far beyond clips, which `second` moments show.

    Such values raise mean squares. They also move the means by clipped steps, and `shifts` (k, d)
    of rows clipped early, with noise of these `deviations` (k,), show these moves. If there are no
    such values, noise shows some in a column in `FALSE_ALARMS` of fits.
    """
    k, d = model.means.shape
    far = plan.clip.far
    variances = np.diagonal(model.covariances, axis1=1, axis2=2)
    spreads, shares = np.sqrt(variances), np.maximum(model.weights, LEAST_WEIGHT)[:, None]
    expected = model.weights @ (observed * (np.square(model.means) + variances))
    squares = np.diagonal(second.value)[:-1] - expected
    # Shifts of columns, in their deviations; whitened ones are given the columns before.
    shifts = np.einsum("jab,jb->ja", model.factors, shifts) / spreads
    noise = deviations[:, None]
    most = chi2.isf(2 * FALSE_ALARMS / d, k + 1) - np.square(shifts / noise).sum(axis=0)
    is_seen = squares > second.sigma * np.sqrt(np.maximum(most, 0.0))
    # Values t deviations out add (t - far) / t^2 <= 1 / (4 far) of their mean square to the mean
    # beyond the clip. They may be in any group.
    of_squares = np.hypot(squares, second.sigma) / observed / (4 * far * shares * spreads)
    # They add (t - far) / far times what shifts show; all are within the ball.
    beyond = np.maximum(ball.radius + np.abs(model.means) - far * spreads, 0.0) / far
    of_shifts = np.hypot(shifts, noise) * beyond
    return np.where(is_seen, np.minimum(of_squares, of_shifts), 0.0)


def one_valued(model: Gaussians, radius: float) -> NDArray[np.bool_]:
    """Mask (d,) of columns in which a group has hardly more than the least variance of steps."""
    variances = np.diagonal(model.covariances, axis1=1, axis2=2)
    largest = np.linalg.norm(model.covariances, 2, axis=(1, 2))
    least = np.maximum(LEAST_OF_LARGEST * largest, LEAST_VARIANCE * radius**2)
    return np.asarray((variances < 2 * least[:, None]).any(axis=0))
