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
    missed: Floats  # (k, 1 + d): errors of weights and means by clips and rows that groups trade
    spread: Floats  # (k, d): true over fitted deviation
    normal: float  # probability that no column has a tail


def release_tails(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians,
    noise: StepNoise, observed: Floats, n_full_steps: int,
) -> TailErrors:  # fmt: skip
    """Release shifts of rows clipped early, and estimate tails by them.

    `observed` (k, d) are shares of cells; `n_full_steps` those by which tails moved several groups.
    """
    early = clipping_at(plan.n_features, EARLY)
    totals, sigma = _release_shifts(ask, ball, model, early)
    weights = np.maximum(model.weights, LEAST_WEIGHT)
    shifts = totals / weights[:, None]
    # Sampling variance of shifts from the mean: at most that of a median less the mean. Where cells
    # are missing noise of means counts for more.
    by_chance = (math.pi / 2 - 1) / (ask.n_units * weights)
    of_means = noise.shift / observed.mean(axis=1)
    deviations = np.sqrt((sigma**2 + of_means**2) / weights**2 + by_chance)
    far_out = missed_far_out(ball, plan, second, model, observed, shifts, deviations)
    shared, traded = skew_of_groups(ball, plan, model, shifts, deviations, early, n_full_steps)
    if plan.nonnormal is not None:  # tails of these columns are in their likelihood
        places = plan.nonnormal.places
        is_clipped = plan.nonnormal.longest(model.means[:, places]).max(axis=0) > plan.clip.far
        shared = shared.without(places, keeps_cut=is_clipped)
        far_out[:, places] = 0.0
    cut = np.square(model.factors) @ np.square(shared.cut)
    missed_means = np.sqrt(cut + far_out**2 + traded[:, 1:] ** 2)
    missed = np.column_stack([traded[:, 0], missed_means])
    spread = np.tile(shared.spread, (len(weights), 1))
    return TailErrors(shared.logs, missed, spread, float(shared.normal.prod()))


def skew_of_groups(
    ball: LiftedBall, plan: MixturePlan, model: Gaussians, shifts: Floats, deviations: Floats,
    early: Clipping, n_full_steps: int,
) -> tuple[SharedTails, Floats]:  # fmt: skip
    """Tails that groups share, and moves (k, 1 + d) by rows that groups trade because of these.

    `shifts` (k, d) of rows clipped early have noise of these `deviations` (k,).
    """
    k, d = shifts.shape
    tails = log_normal_tails(plan.clip, early)
    if k == 1 or not plan.has_intervals:
        return shared_tails(-shifts, deviations, np.ones((k, d)), tails), np.zeros((k, 1 + d))
    # A tail to one side shifts rows clipped early to the other.
    signs = np.where(deviations**-2.0 @ shifts > 0, -1.0, 1.0)
    bias = simulated_bias(
        model, ball.radius, signs, plan.clip, early, n_full_steps, plan.covariance_type
    )
    # Groups that trade rows show only a part of the shift that the tail gives a group by itself.
    alone = float(np.interp(SIMULATED, tails.logs, tails.early_shift))
    parts = np.clip(-signs * bias.shifts.T / alone, LEAST_SHOWN, 1.0)
    shared = shared_tails(-signs * shifts, deviations, parts, tails)
    return shared, bias.moves_by(shared.square)


def _release_shifts(
    ask: Session, ball: LiftedBall, model: Gaussians, clip: Clipping
) -> tuple[Floats, float]:
    """Release whitened shifts (k, d) times weights; return them and the deviation of noise."""
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
    """Errors (k, d) of means by values far beyond clips, which raise mean squares of columns.

    Steps clip such values, which still move means; `shifts` (k, d) of rows clipped early, with
    noise of these `deviations` (k,), show how far. Without such values noise in `second` moments
    and shifts shows some, in any column, in `FALSE_ALARMS` of fits.
    """
    k, d = model.means.shape
    far = plan.clip.far
    variances = np.diagonal(model.covariances, axis1=1, axis2=2)
    spreads, shares = np.sqrt(variances), np.maximum(model.weights, LEAST_WEIGHT)[:, None]
    expected = model.weights @ (observed * (np.square(model.means) + variances))
    excess = np.diagonal(second.value)[:-1] - expected  # of mean squares
    # Shifts of columns, in their deviations; whitened ones are given the columns before.
    shifts = np.einsum("jab,jb->ja", model.factors, shifts) / spreads
    noise = deviations[:, None]
    # A column has far values if its excess is above 0, and its square and those of k shifts, in
    # deviations of noise, add up to more than chi squared does by chance.
    left = chi2.isf(2 * FALSE_ALARMS / d, k + 1) - np.square(shifts / noise).sum(axis=0)
    is_seen = excess > second.sigma * np.sqrt(np.maximum(left, 0.0))
    # Two bounds. Values t deviations out add (t - far) / t^2 <= 1 / (4 far) of their mean square to
    # the mean beyond the clip; they may be in any group.
    by_squares = np.hypot(excess, second.sigma) / observed / (4 * far * shares * spreads)
    # They add (t - far) / far times what shifts show; all are within the ball.
    most_beyond = np.maximum(ball.radius + np.abs(model.means) - far * spreads, 0.0) / far
    by_shifts = np.hypot(shifts, noise) * most_beyond
    return np.where(is_seen, np.minimum(by_squares, by_shifts), 0.0)


def one_valued(model: Gaussians, radius: float) -> NDArray[np.bool_]:
    """Mask (d,) of columns in which a group has hardly more than the least variance of steps."""
    variances = np.diagonal(model.covariances, axis1=1, axis2=2)
    largest = np.linalg.norm(model.covariances, 2, axis=(1, 2))
    least = np.maximum(LEAST_OF_LARGEST * largest, LEAST_VARIANCE * radius**2)
    return np.asarray((variances < 2 * least[:, None]).any(axis=0))
