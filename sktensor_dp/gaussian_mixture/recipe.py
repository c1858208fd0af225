"""Fit of a mixture: its releases, a start, EM steps, and the number of groups."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2, truncnorm

from sktensor_dp.estimator.base import FitResult
from sktensor_dp.estimator.data_norm import release_ball, warnings_of_norm
from sktensor_dp.exceptions import DoubtfulParameterWarning
from sktensor_dp.gaussian_mixture import defaults
from sktensor_dp.gaussian_mixture.fitted import (
    FittedMixture,
    attributes_of,
    warnings_of_fewer_groups,
)
from sktensor_dp.gaussian_mixture.plan import MixturePlan, parameters_of_group
from sktensor_dp.mixtures.clipping import (
    Clipping,
    bounded_rows,
    clip_for_rows,
    clipping_at,
    limits_of_fewer,
)
from sktensor_dp.mixtures.gaussians import (
    Gaussians,
    fitted_to,
    log_density,
    merged_levels,
    responsibilities,
    without_spare,
)
from sktensor_dp.mixtures.m_step import (
    LEAST_VARIANCE,
    LEAST_WEIGHT,
    StepMoments,
    StepNoise,
    WhitenedStatistics,
    average_with_step,
    carried_variances,
    gaussians_after_step,
)
from sktensor_dp.mixtures.shrinkage import LEAST_OF_LARGEST, clip_eigenvalues
from sktensor_dp.mixtures.skew_bias import SIMULATED, simulated_bias
from sktensor_dp.mixtures.skewness import (
    EARLY,
    SharedTails,
    are_long,
    log_normal_tails,
    scales_of_shifts,
    shared_tails,
)
from sktensor_dp.mixtures.start import (
    SPHERE_SCALES,
    scaled_down_to_radius,
    small_spheres,
    spheres_after_step,
)
from sktensor_dp.mixtures.uncertainty import MeanErrors, moved_from, observed_shares
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.mixtures import MixtureGains, MixtureStatistics
from sktensor_dp.queries.samples import LiftedBall, SecondMoments
from sktensor_dp.tensor.arrays import Floats, as_generator

# Rows are scaled down to this many radii of the ball: far from overflow, and few rows change.
MOST_RADII = 8.0
# Released statistics are clipped to this size; without noise none is far above 1.
LARGEST_STATISTIC = 4.0
# Least part of the skewness of a tail that groups are taken to show.
LEAST_SHOWN = 0.1
# Least share of cells that is taken as observed.
LEAST_SHARE = 1e-4
# Radii by which a release fills missing cells to count them.
FAR_OUT = 1000.0
# Steps to the nearest mixture of fewer groups stop at this gain, in nats a row. Where groups
# overlap, hundreds of steps that gain little more each may together gain as much as a group.
NEAREST_GAIN = 1e-6
# Deviations of noise beyond which warnings say that cells are missing: one in 700 by chance.
SURE = 3.0

# Share of fits of normal groups in which noise shows values far out in some column.
FALSE_ALARMS = 0.01

# Share of missing cells that hardly moves averages: a fit warns where noise may hide more, or where
# a column surely lacks some.
FEW_MISSING = 0.05

# For fits to persons, unless released numbers show that no cell is missing.
UNEVEN = (
    "Unless all cells have values, averages and intervals of a column count each person by the "
    "part of their rows that have it. For averages over persons give one row of averages for each."
)


def fit_mixture(ask: Session, plan: MixturePlan, *, grouped: bool) -> FitResult:
    """Release a norm, if it is "auto", and second moments; then fit a mixture.

    `grouped` says that units are persons with several rows.
    """
    ball = LiftedBall(plan.radius, defaults.OFFSET * plan.radius)
    unseen: tuple[Warning, ...] = ()
    if plan.chooses_norm:
        ball, unseen = release_ball(ask, ball)
    second = ask(SecondMoments(ball))
    cells = None
    if plan.n_components > 1 and observed_overall(ball, second) < 1:
        plan, cells = replace(plan, n_steps=plan.n_steps - 1), release_cells(ask, ball, plan)
    found = release_mixture(ask, ball, plan, second, cells)
    warnings = warnings_of_norm(second, ball, found.mean_square)
    warnings = warnings or warnings_of_fewer_groups(found, plan)
    share, error = observed_as_released(ball, second)
    # Any noise may hide some missing cells; only large noise hides so many that averages move.
    notes = (UNEVEN,) if grouped and (error > 0 or share < 1 - 1e-9) else ()
    if notes and ((found.errors.most_observed < 1).any() or share - 2 * error < 1 - FEW_MISSING):
        warnings += (DoubtfulParameterWarning(UNEVEN),)
    attributes = attributes_of(found, plan)
    if plan.chooses_norm:
        attributes["data_norm_"] = ball.radius
    return FitResult(attributes, (*unseen, *warnings), notes)


def release_mixture(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, cells: "Cells | None"
) -> FittedMixture:
    """Release a start, half of the EM steps, gains that choose the number of groups, and the rest.

    After a quarter of the steps spare groups are merged or left out. For one group the second half
    of the steps are means that clip no complete row. `second` are released moments, and `cells` if
    several groups are asked for and some cells are missing.
    """
    start = release_start(ask, ball, plan, second)
    n_first = plan.n_steps // 2
    earlier, average, _ = release_steps(ask, ball, plan, second, start, n_first // 2)
    rest = n_first - n_first // 2
    model, average, noise = release_steps(ask, ball, plan, second, earlier, rest, average)
    gains, chosen, k = release_number(ask, ball, plan, model)
    mean_square = float(chosen.weights @ np.square(chosen.means).sum(axis=1))
    most = len(model.weights)
    if k == 1:
        noise = noise.times(most**0.5)  # a merged group may have the noise of all its parts
        observed = cells.observed if cells else observed_by_column(ball, second, chosen)
        tails = release_tails(ask, ball, plan, second, chosen, noise, observed)
        left = np.zeros_like(chosen.means)
        if observed_overall(ball, second) < 1:
            left = unfinished(earlier, chosen, noise, observed)
        found, errors = release_filled(ask, ball, plan, second, chosen, noise, left)
    else:
        n_last = plan.n_steps - n_first
        of_these = average if k == most else None  # earlier steps were of other groups otherwise
        found, _, noise = release_steps(ask, ball, plan, second, chosen, n_last, of_these)
        n_without = plan.n_steps - len(noise.rates)
        noise = replace(noise, rates=np.append(np.zeros(n_without), noise.rates))
        if cells is None:  # none is missing, or noise hides it
            cells = Cells(*np.ones((3, plan.n_features)))
        tails = release_tails(ask, ball, plan, second, found, noise, cells.observed)
        # Where a group has one value, clips may take all rows with another one. A long tail in any
        # column makes steps lead to other groups.
        unknown = one_valued(found, ball.radius) | are_long(tails.skewness).any()
        spread = np.where(unknown, 0.0, tails.spread)
        moved = moved_from(chosen, found)
        errors = MeanErrors(noise, moved, tails.missed, spread, cells.observed, cells.most_observed)
    return FittedMixture(found, gains, mean_square, tails.skewness, errors)


def release_start(ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer) -> Gaussians:
    """Start of all groups: small spheres that EM steps of their own move, merged.

    Spheres are spread over the leading directions of `second`, released moments. The start of a
    single group is the Gaussian of these moments.
    """
    rng = as_generator(plan.random_state)
    d, offset, radius = plan.n_features, ball.offset, ball.radius
    # The last entry is the mean square of the constant coordinate: `offset` squared, or down to
    # half of it if rows have missing cells.
    constant = np.sqrt(np.clip(second.value[-1, -1], offset**2 / 2, offset**2))
    mean = scaled_down_to_radius(second.value[-1:, :-1] / constant, radius)[0]
    covariance = second.value[:-1, :-1] - np.outer(mean, mean)
    noise = max(second.sigma, LEAST_VARIANCE * radius**2)
    if plan.n_components == 1:
        # Missing cells, which are 0 here, lower mean squares: raise them. EM steps correct a
        # variance that is too large, but not one that is far too small.
        squares = np.diagonal(second.value)[:-1]
        covariance += np.diag(squares / observed_overall(ball, second) - squares)
        covariance = clip_eigenvalues(covariance, noise, radius**2)
        one = Gaussians(np.ones(1), mean[None], covariance[None])
        return of_type(one, plan, radius)
    n_spheres, n_directions = defaults.SPHERES * plan.n_at_start, min(d, plan.n_at_start)
    spheres = small_spheres(mean, covariance, noise, radius, n_directions, n_spheres, rng)
    clip = clipping_at(n_directions, defaults.QUANTILE)
    fill = Gaussians(np.ones(1), mean[None], np.eye(d)[None])  # missing cells with their mean
    for step in range(defaults.SPHERE_STEPS):
        # Spheres have the same density at their means: leave it out of `log_scales`.
        answer = ask(MixtureStatistics(
            means=spheres.means, whiteners=spheres.whitener, log_scales=np.log(spheres.weights),
            limit=clip.limit, centre=0.0, scales=SPHERE_SCALES, guard_radius=MOST_RADII * radius,
            shape_part="spherical", pooled=True, fill=fill,
        ))  # fmt: skip
        # Empty spheres are moved, but would need steps to settle: the last two steps drop them.
        drops = step >= defaults.SPHERE_STEPS - 2
        spheres = spheres_after_step(
            spheres, clipped_statistics(answer), answer.sigma, clip, radius, rng, drops=drops
        )
    *_, merged = merged_levels(spheres.gaussians, plan.n_at_start)
    return of_type(merged, plan, radius)


def after_spare(
    plan: MixturePlan, model: Gaussians, average: StepMoments, statistics: WhitenedStatistics,
    radius: float,
) -> tuple[Gaussians, StepMoments]:  # fmt: skip
    """Merge spare groups of a start, or leave them out, in the model and in averaged moments."""
    merged = without_spare(model, plan.n_components)
    # The group of `found` that took each group of the model: `frames` are theirs.
    found, into = of_type(merged, plan, radius), merged.members.argmax(axis=0)
    frames = Gaussians(model.weights, found.means[into], found.covariances[into])
    variances = carried_variances(average, frames, statistics)
    return found, average.merged(merged.members, found, variances)


def release_steps(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians,
    n_steps: int, average: StepMoments | None = None,
) -> tuple[Gaussians, StepMoments, StepNoise]:  # fmt: skip
    """Release one or more EM steps; return the mixture after them, averaged moments, their noise.

    The average is over these steps and those of an earlier `average`.
    """
    # As `average_with_step` has it: the share of rows with both cells of a pair is about the square
    # of the share of cells.
    added = (observed_overall(ball, second) ** -2 - 1) * plan.n_steps / ask.n_units
    fills = plan.n_components == 1 and plan.n_shape > 0 and observed_overall(ball, second) < 1
    for _ in range(n_steps):
        wider = with_wider_clip(plan, model, ball.radius) if fills else plan
        statistics = release_statistics(ask, ball, wider, model)
        average = average_with_step(average, model, statistics, added)
        model = gaussians_after_step(
            model, average, statistics, ball.radius, ask.n_units, shrinks=not fills
        )
    assert average is not None  # there is a step
    if len(model.weights) > plan.n_components:  # groups to spare, of a start
        model, average = after_spare(plan, model, average, statistics, ball.radius)
        model = gaussians_after_step(model, average, statistics, ball.radius, ask.n_units)
    return model, average, average.noise_of(statistics)


def with_wider_clip(plan: MixturePlan, model: Gaussians, radius: float) -> MixturePlan:
    """Plan that clips fewer rows of one group, whose covariance fills missing cells.

    If rows with values at both ends of a range were clipped, the covariance would fill cells of all
    columns wrongly. The ends are taken to be those that `scale_by_ranges` gives columns.
    """
    half = radius / math.sqrt(plan.n_features)
    rows = bounded_rows(model.means[0] / half, model.covariances[0] / half**2)
    return replace(plan, clip=clip_for_rows(plan.clip, rows, plan.noise, plan.n_shape))


def release_statistics(
    ask: Session, ball: LiftedBall, plan: MixturePlan, model: Gaussians
) -> WhitenedStatistics:
    """Release the statistics of an EM step, in the frame of each group (of all if "tied")."""
    d = model.means.shape[1]
    clip, pooled = plan.clip, plan.covariance_type == "tied"
    shape_part = "full" if pooled else plan.covariance_type
    # Limits and clipped mean squares of rows with 1, ..., d - 1 observed columns.
    below = (clipping_at(n_seen, clip.quantile) for n_seen in range(1, d))
    partial = [(one.limit, one.mean) for one in below]
    whiteners = model.whiteners[:1] if pooled else model.whiteners
    query = MixtureStatistics(
        model.means, whiteners, model.log_scales, limit=clip.limit, centre=clip.centre,
        scales=plan.scales, guard_radius=MOST_RADII * ball.radius, shape_part=shape_part,
        pooled=pooled, partial=partial,
        reach=clip.far / clip.limit,  # shifts are clipped farther out than squares
    )  # fmt: skip
    answer = ask(query)
    return WhitenedStatistics(
        **query.decoded(clipped_statistics(answer))._asdict(), n_shape=plan.n_shape,
        sigma=answer.sigma, scales=plan.scales, clipping=clip,
    )  # fmt: skip


def clipped_statistics(answer: Answer) -> Floats:
    """Released statistics, clipped to a range that holds all values without noise."""
    return np.clip(answer.value, -LARGEST_STATISTIC, LARGEST_STATISTIC)


def of_type(model: Gaussians, plan: MixturePlan, radius: float) -> Gaussians:
    """Gaussians with means in the ball, and bounded covariances of the plan's type."""
    d, least = model.means.shape[1], LEAST_VARIANCE * radius**2
    covariances = np.array([clip_eigenvalues(one, least, radius**2) for one in model.covariances])
    if plan.covariance_type == "tied":
        pooled = np.einsum("j,jab->ab", model.weights, covariances)
        covariances = np.tile(pooled, (len(model.weights), 1, 1))
    if plan.covariance_type == "diag":
        covariances = covariances * np.eye(d)  # entry by entry
    if plan.covariance_type == "spherical":
        sizes = np.trace(covariances, axis1=1, axis2=2) / d
        covariances = sizes[:, None, None] * np.eye(d)
    return Gaussians(model.weights, scaled_down_to_radius(model.means, radius), covariances)


def release_number(
    ask: Session, ball: LiftedBall, plan: MixturePlan, model: Gaussians
) -> tuple[Floats, Gaussians, int]:
    """Release gains of 2, 3, ... groups over one less, which support a number k of groups.

    Returns the gains, the mixture of k groups, and k.
    """
    most = len(model.weights)  # fewer than asked for if spheres were dropped
    if most == 1:
        return np.zeros(0), model, 1
    merged = merged_levels(model, most)
    levels = [nearest(of_type(one, plan, ball.radius), model, plan, ball.radius) for one in merged]
    answer = ask(MixtureGains(levels, MOST_RADII * ball.radius))
    # Akaike's criterion: twice what the parameters of a group gain by chance.
    least = parameters_of_group(plan.covariance_type, plan.n_features) / ask.n_units
    k = n_supported(answer.value, answer.sigma, least)
    return answer.value, levels[k - 1], k


def nearest(fewer: Gaussians, model: Gaussians, plan: MixturePlan, radius: float) -> Gaussians:
    """Mixture of as many groups as `fewer` nearest to `model`, by EM steps on points of that.

    `fewer` are groups of `model`, merged and not fitted again: any further group would seem to gain
    much over such a mixture.
    """
    if len(fewer.weights) == len(model.weights):
        return fewer
    points, weights = model.points(as_generator(0))
    joint, gain = fewer.log_joint(points), math.inf
    while gain > NEAREST_GAIN:
        fewer = of_type(fitted_to(points, responsibilities(joint) * weights[:, None]), plan, radius)
        last, joint = joint, fewer.log_joint(points)
        gain = float(weights @ (log_density(joint) - log_density(last)))
    return fewer


def n_supported(gains: Floats, sigma: float, least: float) -> int:
    """Least number k of groups over which no larger number gains enough.

    ``gains[i]`` is the gain of i + 2 groups over i + 1. To be enough, the m gains from k to k + m
    groups have to exceed together m times `least`, and two deviations of their noise beyond that.
    """
    for k in range(1, len(gains) + 1):
        m = np.arange(1, len(gains) - k + 2)
        if (np.cumsum(gains[k - 1 :]) <= least * m + 2 * sigma * np.sqrt(m)).all():
            return k
    return len(gains) + 1


class TailErrors(NamedTuple):
    """Skewness of whitened columns, and what it takes from means and deviations."""

    skewness: Floats  # (d,): expected deviation of logs of `shared_tails`
    missed: Floats  # (k, 1 + d): errors of weights and means by clips and traded rows
    spread: Floats  # (k, d): true over fitted deviation


def release_tails(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians,
    noise: StepNoise, observed: Floats,
) -> TailErrors:  # fmt: skip
    """Release shifts of early clipped rows, and estimate tails by them."""
    early = clipping_at(plan.n_features, EARLY)
    shifts, of_shifts = _release_shifts(ask, ball, model, early)
    weights = np.maximum(model.weights, LEAST_WEIGHT)
    shifts = shifts / weights[:, None]
    # Sampling variance of shifts from the mean: at most that of a median less the mean. Where cells
    # are missing noise of means counts for more.
    by_chance = (math.pi / 2 - 1) / (ask.n_units * weights)
    of_means = noise.shift / float(observed.mean())
    deviations = np.sqrt((of_shifts**2 + of_means**2) / weights**2 + by_chance)
    far_out = missed_far_out(ball, plan, second, model, observed, shifts, deviations)
    shared, traded = skew_of_groups(ball, plan, model, shifts, deviations, noise.rates, early)
    cut = np.square(model.factors) @ np.square(shared.cut)
    missed = traded
    missed[:, 1:] = np.sqrt(cut + far_out**2 + traded[:, 1:] ** 2)
    return TailErrors(shared.logs, missed, np.tile(shared.spread, (len(weights), 1)))


def skew_of_groups(
    ball: LiftedBall, plan: MixturePlan, model: Gaussians, shifts: Floats, deviations: Floats,
    rates: Floats, early: Clipping,
) -> tuple[SharedTails, Floats]:  # fmt: skip
    """Tails that groups share, and errors (k, 1 + d) by rows that they trade.

    `shifts` (k, d) of early clipped rows have noise of these `deviations` (k,).
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
    of early clipped rows, with noise of these `deviations` (k,), show these moves. If there are no
    such values, noise shows some in a column in `FALSE_ALARMS` of fits.
    """
    k, d = model.means.shape
    far = plan.clip.far
    variances = np.diagonal(model.covariances, axis1=1, axis2=2)
    spreads, shares = np.sqrt(variances), np.maximum(model.weights, LEAST_WEIGHT)[:, None]
    expected = model.weights @ (np.square(model.means) + variances)
    squares = np.diagonal(second.value)[:-1] - observed * expected
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


def unfinished(earlier: Gaussians, found: Gaussians, noise: StepNoise, observed: Floats) -> Floats:
    """Distances (1, d) of the mean of one group to convergence where cells are missing.

    They are taken to be what the later half of the EM steps, those after `earlier`, moved the mean
    beyond noise: t steps leave about 1 / t of an error, if few cells are missing.
    """
    squares = np.diagonal(found.covariances, axis1=1, axis2=2)
    squares = squares * np.square(noise.shift / observed)
    moves = found.means - earlier.weights @ earlier.means  # from the mean over all groups
    return np.sqrt(np.maximum(np.square(moves) - squares, 0.0))


def release_filled(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians,
    noise: StepNoise, left: Floats,
) -> tuple[Gaussians, MeanErrors]:  # fmt: skip
    """Release means and mean squares, clipped in hardly any row, and move one group there.

    Variances grow if mean squares show more beyond noise. `left` (1, d) are distances of `model`'s
    means to convergence, and `noise` is that of its steps.
    """
    radius, at = ball.radius, model.means[0]
    rows = _release_filled_rows(ask, ball, plan, second, model)
    shares, noise_of_means = rows.cells.observed, rows.sigma / rows.cells.observed
    moves = (rows.means - at) / shares
    covariance = model.covariances[0].copy()
    before = np.diagonal(covariance)
    # Cells are filled with conditional means, which lack this part of the variance.
    unexplained = 1 / np.diagonal(np.linalg.inv(covariance)) / before
    variances = rows.squares - 2 * at * rows.means + at**2
    variances = variances / (1 - (1 - shares) * unexplained) - np.square(moves)
    noise_of_size = rows.limit / math.sqrt(scales_of_shifts(plan.n_features).size)
    noise_of_variances = noise_of_means * np.hypot(noise_of_size, 2 * (at + moves))
    beyond = variances - before
    covariance = covariance + np.diag(np.where(beyond > 2 * noise_of_variances, beyond, 0.0))
    means = projected(at + moves, noise_of_means**2, radius)
    moved = of_type(Gaussians(model.weights, means[None], covariance[None]), plan, radius)
    # Means of rows that lack a cell differ by (s / (1 - s))^(1/2) deviations at most, s the share
    # that has it. So this bounds how far noise of covariances moves a mean by filled cells.
    of_filling = np.sqrt(before * (1 - shares) / shares / 2) * noise.shape
    # True over fitted deviation, with what noise may hide of the true one.
    largest_variances = before + np.hypot(np.maximum(beyond, 0.0), noise_of_variances)
    spread = np.sqrt(largest_variances / np.diagonal(moved.covariances[0]))
    # In a complete column no cells are filled: its mean has converged.
    left = rows.cells.kept_fractions * left
    missed = np.insert(np.sqrt(noise_of_means**2 + of_filling**2 + left**2), 0, 0.0, axis=1)
    # All other errors are by sampling: no noise of steps, and no moves.
    none = replace(noise.times(0.0), rates=np.ones(1))
    no_moves = np.zeros_like(moved_from(model, moved))
    return moved, MeanErrors(none, no_moves, missed, spread[None], shares, rows.cells.most_observed)


def projected(means: Floats, variances: Floats, radius: float) -> Floats:
    """Likeliest means (d,) within `radius`, given noisy `means` of these `variances`.

    To scale all alike would move complete columns for one that is nearly empty. Without noise these
    are the `means` as they are.
    """
    if np.linalg.norm(means) <= radius or not variances.any():
        return means
    ratios = variances / variances.max()

    def excess(log_price: float) -> float:
        return float(np.linalg.norm(means / (1 + math.exp(log_price) * ratios))) - radius

    return means / (1 + math.exp(brentq(excess, -50.0, 100.0)) * ratios)


class _FilledRows(NamedTuple):
    """Released means over rows with missing cells filled by a model, few of which are clipped."""

    means: Floats  # (d,): of rows
    squares: Floats  # (d,): of squares
    sigma: float  # deviation of noise on `means`
    limit: float  # length at which filled rows are clipped
    cells: "Cells"


def _release_filled_rows(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians
) -> _FilledRows:
    """Release means and mean squares of rows several times, with filled cells lifted or lowered.

    Lifts cancel in the mean of releases, and differences show how many cells were filled.
    """
    radius, d = ball.radius, plan.n_features
    n_releases, lift = plan.n_steps - plan.n_steps // 2, radius / (4 * math.sqrt(d))
    signs = (-1.0) ** np.arange(n_releases)
    signs = (signs - signs.mean()) / signs.std()  # of mean 0 and mean square 1
    # Rows may be as long as the radius where columns have two values each; lifts add to that.
    n_filled = d * (1 - observed_overall(ball, second))  # filled cells of a row
    limit = 1 + math.sqrt(n_filled) * lift * float(np.abs(signs).max()) / radius
    query = MixtureStatistics(  # about the middle of the ball, where its rows are shortest
        np.zeros_like(model.means), np.eye(d)[None] / radius, np.zeros(1),
        limit=limit, centre=0.0, scales=scales_of_shifts(d), guard_radius=radius,
        shape_part="diag" if d > 1 else "spherical", fill=model,
    )  # fmt: skip
    answers = [ask(replace(query, lift=sign * lift)) for sign in signs]
    values = np.array([clipped_statistics(answer) for answer in answers])
    sigma = answers[0].sigma * limit * radius / math.sqrt(n_releases)
    _, shifts, sizes, shapes = query.decoded(values.mean(axis=0))
    lifted = query.decoded(signs @ values / n_releases).shifts[0]
    cells = Cells.by_missing(radius * lifted / lift, sigma / lift)
    squares = radius**2 * (np.diagonal(shapes[0]) + sizes[0] / d) - (1 - cells.observed) * lift**2
    return _FilledRows(radius * shifts[0], squares, sigma, limit * radius, cells)


class Cells(NamedTuple):
    """Shares (d,) of the cells of each column that are observed."""

    observed: Floats  # estimated
    most_observed: Floats  # the largest that noise allows
    kept_fractions: Floats  # part of released shares of missing cells that is no noise

    @classmethod
    def by_missing(cls, missing: Floats, noise: float) -> "Cells":
        """Shares by released ones of cells that are `missing`, with `noise` of this deviation."""
        missing = np.clip(missing, 1e-9, 1.0)  # sums are rounded
        most_observed = 1 - np.maximum(missing - SURE * noise - 1e-9, 0.0)
        # Shrink by two deviations of noise: complete columns nearly always count as complete.
        by_noise = np.minimum(np.maximum(2 * noise, 1e-9) / missing, 1.0)
        observed = np.maximum(1 - (1 - by_noise**2) * missing, LEAST_SHARE)
        return cls(observed, most_observed, 1 - by_noise**2)


def release_cells(ask: Session, ball: LiftedBall, plan: MixturePlan) -> Cells:
    """Release the shares of cells that are observed.

    Missing cells are filled so far out that all others, within the ball, count for next to nothing.
    """
    d, lift = plan.n_features, FAR_OUT * ball.radius
    limit = FAR_OUT * math.sqrt(d) + 1  # no row within the ball is clipped
    query = MixtureStatistics(
        np.zeros((1, d)), np.eye(d)[None] / ball.radius, np.zeros(1), limit=limit, centre=0.0,
        scales=scales_of_shifts(1), guard_radius=lift, shape_part="spherical", lift=lift,
        fill=Gaussians(np.ones(1), np.zeros((1, d)), np.eye(d)[None]),
    )  # fmt: skip
    answer = ask(query)
    missing = query.decoded(clipped_statistics(answer)).shifts[0] / FAR_OUT
    return Cells.by_missing(missing, answer.sigma * limit / FAR_OUT)


def observed_overall(ball: LiftedBall, second: Answer) -> float:
    """Expected share of cells that are observed; 1 if noise may explain the missing ones."""
    share, error = observed_as_released(ball, second)
    if share >= 1 - 2 * error - 1e-9:  # sums are rounded
        return 1.0
    if error > 0:
        share = truncnorm.mean(-share / error, (1 - share) / error, share, error)
    return max(float(share), LEAST_SHARE)


def observed_as_released(ball: LiftedBall, second: Answer) -> tuple[float, float]:
    """Share of cells that are observed, by `second` moments as released, and sigma of its noise."""
    # The constant coordinate has the mean square (1 + share) / 2, in squares of the offset.
    share = 2 * second.value[-1, -1] / ball.offset**2 - 1
    return float(share), 2 * second.sigma / ball.offset**2


def observed_by_column(ball: LiftedBall, second: Answer, model: Gaussians) -> Floats:
    """Shares (d,) of cells that are observed, by `second` moments."""
    squares, share = np.diagonal(second.value)[:-1], observed_overall(ball, second)
    found = observed_shares(model, squares, second.sigma, share)
    return np.maximum(found, LEAST_SHARE) if share < 1 else np.ones(len(found))
