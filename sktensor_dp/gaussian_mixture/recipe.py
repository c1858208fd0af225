"""Fit of a mixture: its releases, a start, EM steps, and the number of groups."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sktensor_dp.estimator.base import FitResult
from sktensor_dp.estimator.data_norm import release_ball, warnings_of_norm
from sktensor_dp.exceptions import DoubtfulParameterWarning
from sktensor_dp.gaussian_mixture import defaults
from sktensor_dp.gaussian_mixture.fitted import (
    FittedMixture,
    attributes_of,
    warnings_of_fewer_groups,
)
from sktensor_dp.gaussian_mixture.observed_cells import (
    FEW_MISSING,
    Cells,
    observed_as_released,
    observed_by_column,
    observed_overall,
    release_cells,
    release_cells_of_groups,
)
from sktensor_dp.gaussian_mixture.one_group import release_filled, unfinished
from sktensor_dp.gaussian_mixture.plan import MixturePlan, parameters_of_group
from sktensor_dp.gaussian_mixture.step_release import (
    MOST_RADII,
    clipped_statistics,
    of_type,
    release_statistics,
)
from sktensor_dp.gaussian_mixture.tails import one_valued, release_tails
from sktensor_dp.mixtures.clipping import bounded_rows, clip_for_rows, clipping_at
from sktensor_dp.mixtures.fixed_point import fixed_point, given_mixture
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
    MeanScores,
    StepMoments,
    WhitenedStatistics,
    average_with_step,
    carried_variances,
    gaussians_after_step,
)
from sktensor_dp.mixtures.observed_information import observed_information
from sktensor_dp.mixtures.shrinkage import clip_eigenvalues
from sktensor_dp.mixtures.skewness import are_long
from sktensor_dp.mixtures.start import (
    SPHERE_SCALES,
    in_all_columns,
    scaled_down_to_radius,
    small_spheres,
    spheres_after_step,
)
from sktensor_dp.mixtures.uncertainty import MeanErrors, NoiseOfScores, moved_by, moved_from
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.mixtures import MixtureGains, MixtureStatistics
from sktensor_dp.queries.samples import LiftedBall, SecondMoments
from sktensor_dp.tensor.arrays import Floats, as_generator

# Steps to the nearest mixture of fewer groups stop at this gain, in nats a row. Where groups
# overlap, hundreds of steps that gain little more each may together gain as much as a group.
NEAREST_GAIN = 1e-6

# For fits to persons, unless released numbers show that no cell is missing.
UNEVEN = (
    "Unless all cells have values or each person has one row, averages and intervals of a column "
    "count each person by the part of their rows that have it. For averages over persons give one "
    "row of averages for each."
)


class ReleasedSteps(NamedTuple):
    """Mixture after some EM steps, averaged moments, and what the last step released."""

    model: Gaussians
    average: StepMoments
    statistics: WhitenedStatistics


def fit_mixture(ask: Session, plan: MixturePlan, *, grouped: bool) -> FitResult:
    """Release a norm, if it is "auto", and second moments; then fit a mixture.

    `grouped` says that units are persons with several rows.
    """
    ball = LiftedBall(plan.radius, defaults.OFFSET * plan.radius)
    unseen: tuple[Warning, ...] = ()
    if plan.chooses_norm:
        ball, unseen = release_ball(ask, ball)
    second = ask(SecondMoments(ball))
    share, error = observed_as_released(ball, second)
    # To count cells takes the place of a step, in vain if none is missing; not to count missing
    # ones costs far more.
    may_miss = share < 1 - error - 1e-9 or share - 2 * error < 1 - FEW_MISSING
    counts_cells = plan.n_components > 1 and may_miss
    if plan.nonnormal is not None:
        # Likelihoods of these columns need their means over observed cells from the start.
        observed = np.ones(plan.n_features)
        if counts_cells:
            observed = release_cells(ask, ball, plan).observed
        means, squares = released_mean(ball, second), np.diagonal(second.value)[:-1]
        columns = plan.nonnormal.in_ball(ball.radius)
        columns = columns.of_moments(means / observed, squares / observed, second.sigma)
        plan = replace(plan, nonnormal=columns, n_steps=plan.n_steps - counts_cells)
    # The release of cells by group, too, takes the place of a step.
    plan = replace(plan, n_steps=plan.n_steps - counts_cells)
    found = release_mixture(ask, ball, plan, second, counts_cells=counts_cells)
    warnings = warnings_of_norm(second, ball, found.mean_square)
    warnings = warnings or warnings_of_fewer_groups(found, plan)
    # Any noise may hide some missing cells; only large noise hides so many that averages move.
    notes = (UNEVEN,) if grouped and (error > 0 or share < 1 - 1e-9) else ()
    if notes and ((found.errors.most_observed < 1).any() or share - 2 * error < 1 - FEW_MISSING):
        warnings += (DoubtfulParameterWarning(UNEVEN),)
    attributes = attributes_of(found, plan)
    if plan.chooses_norm:
        attributes["data_norm_"] = ball.radius
    return FitResult(attributes, (*unseen, *warnings), notes)


def release_mixture(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, *, counts_cells: bool
) -> FittedMixture:
    """Release a start, half of the EM steps, gains that choose the number of groups, and the rest.

    After a quarter of the steps spare groups are merged or left out. For one group releases of
    means that clip no complete row below `data_norm` take the place of the second half. `second`
    are released moments; with `counts_cells` observed cells of each chosen group are counted before
    that half.
    """
    start = release_start(ask, ball, plan, second)
    n_first = plan.n_steps // 2
    early, average, _ = release_steps(ask, ball, plan, second, start, n_first // 2)
    rest = n_first - n_first // 2
    model, average, statistics = release_steps(ask, ball, plan, second, early, rest, average)
    gains, chosen, k = release_number(ask, ball, plan, model)
    mean_square = float(chosen.weights @ np.square(chosen.means).sum(axis=1))
    most = len(model.weights)
    cells = release_cells_of_groups(ask, ball, plan, chosen) if counts_cells else None
    if k == 1:
        # One group merged from several may have the noise of all of them.
        noise = average.noise_of(statistics).times(most**0.5)
        observed = cells.observed if cells else observed_by_column(ball, second, chosen)
        tails = release_tails(ask, ball, plan, second, chosen, noise, observed, n_full_steps=0)
        left = np.zeros_like(chosen.means)
        if observed_overall(ball, second, of_one=True) < 1:
            left = unfinished(early, chosen, noise, observed)
        found, errors = release_filled(ask, ball, plan, second, chosen, noise, left)
        skewness = tails.skewness
    else:
        # If groups were joined, steps before were of other groups.
        has_joined = k < most
        before = None if has_joined else replace(average, scores=None)
        earlier = None if has_joined else average.scores
        n_last = plan.n_steps - n_first
        last = release_steps(ask, ball, plan, second, chosen, n_last, before, cells)
        if cells is None:  # none is missing, or noise hides it
            cells = Cells(*np.ones((3, k, plan.n_features)))
        found, errors, skewness = release_settled(ask, ball, plan, second, last, earlier, cells)
    return FittedMixture(found, gains, mean_square, skewness, errors)


def release_settled(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, last: ReleasedSteps,
    earlier: MeanScores | None, cells: Cells,
) -> tuple[Gaussians, MeanErrors, Floats]:  # fmt: skip
    """Release tails of several groups, and move these towards where last and earlier steps lead.

    `earlier` are scores of those steps of the first half that no merge of groups followed; None if
    groups were joined after them.
    Returns the groups, errors of their means, and the skewness of columns.
    """
    found, average, statistics = last
    noise, scores = average.noise_of(statistics), average.scores
    # Full steps that tails may have moved groups by: those of the average, as many again from the
    # far start, and twice as many if groups were joined, since tails moved these before.
    n_full_steps = round((4 if earlier is None else 2) * average.n_full_steps)
    tails = release_tails(ask, ball, plan, second, found, noise, cells.observed, n_full_steps)
    # Where a group has one value, clips may take all rows with another one. A long tail in any
    # column makes steps lead to other groups.
    unknown = one_valued(found, ball.radius) | are_long(tails.skewness).any()
    spread, unsure = np.where(unknown, 0.0, tails.spread), np.zeros_like(tails.missed)
    assert scores is not None  # no merge comes after these steps
    given, noise_of_scores = given_mixture(scores, found), NoiseOfScores(noise, 0.0, 0.0)
    if plan.has_intervals:
        settled, given, noise_of_scores = fixed_point(
            scores, earlier, statistics.noise, found, cells.observed, ask.n_units,
            plan.covariance_type,
        )  # fmt: skip
        # With a tail steps lead to other groups than there are: go the part of the way that is the
        # probability of no tail.
        way = np.column_stack([settled.weights - found.weights, settled.means - found.means])
        unsure = math.sqrt(tails.normal * (1 - tails.normal)) * np.abs(way)
        moved = moved_by(found, -tails.normal * moved_from(settled, found))
        found = gaussians_after_step(found, average.of(moved), statistics, ball.radius, ask.n_units)
    errors = MeanErrors(
        *noise_of_scores, moved_from(given, found), tails.missed, unsure, spread,
        cells.observed, cells.most_observed,
    )  # fmt: skip
    return found, errors, tails.skewness


def release_start(ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer) -> Gaussians:
    """Start of all groups: small spheres that EM steps of their own move, merged.

    Spheres are spread over the leading directions of the covariance of `second`, released moments.
    The start of a single group is the Gaussian of these moments.
    """
    rng = as_generator(plan.random_state)
    d, radius = plan.n_features, ball.radius
    mean = scaled_down_to_radius(released_mean(ball, second)[None], radius)[0]
    covariance = second.value[:-1, :-1] - np.outer(mean, mean)
    noise = max(second.sigma, LEAST_VARIANCE * radius**2)
    if plan.n_components == 1:
        # Missing cells, which are 0 here, lower mean squares: raise them. EM steps correct a
        # variance that is too large, but not one that is far too small.
        squares = np.diagonal(second.value)[:-1]
        covariance += np.diag(squares / observed_overall(ball, second, of_one=True) - squares)
        covariance = clip_eigenvalues(covariance, noise, radius**2)
        one = Gaussians(np.ones(1), mean[None], covariance[None])
        return of_type(one, plan, radius)
    # Rows lie at the ends of nonnormal columns, not in clouds: spread spheres in the others.
    chosen = np.arange(d)
    if plan.nonnormal is not None and len(plan.nonnormal.others):
        chosen = plan.nonnormal.others
    n_spheres, n_directions = defaults.SPHERES * plan.n_at_start, min(len(chosen), plan.n_at_start)
    spheres = small_spheres(
        mean[chosen], covariance[np.ix_(chosen, chosen)], noise, radius, n_directions, n_spheres,
        rng,
    )  # fmt: skip
    variances = np.maximum(np.diagonal(covariance), noise)
    spheres = in_all_columns(spheres, chosen, mean, variances)
    clip = clipping_at(n_directions, defaults.QUANTILE)
    fill = Gaussians(np.ones(1), mean[None], np.eye(d)[None])  # missing cells with `mean`
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


def released_mean(ball: LiftedBall, second: Answer) -> Floats:
    """Mean (d,) of rows by `second` moments, in which missing cells are 0."""
    # The last entry is the mean square of the constant coordinate: `offset` squared, or down to
    # half of it if rows have missing cells.
    squares = np.clip(second.value[-1, -1], ball.offset**2 / 2, ball.offset**2)
    return np.asarray(second.value[-1, :-1] / math.sqrt(squares))


def after_spare(
    plan: MixturePlan, model: Gaussians, average: StepMoments, statistics: WhitenedStatistics,
    radius: float,
) -> tuple[Gaussians, StepMoments]:  # fmt: skip
    """Merge spare groups of a start, or leave them out, in the model and in averaged moments."""
    merged = without_spare(model, plan.n_components)
    # `into`: the group of `found` that took each group of the model, 0 for one left out.
    found, into = of_type(merged, plan, radius), merged.members.argmax(axis=0)
    means, covariances = found.means[into], found.covariances[into]
    frames = Gaussians(model.weights, means, covariances, nonnormal=plan.nonnormal)
    variances = carried_variances(average, frames, statistics)
    return found, average.merged(merged.members, found, variances)


def release_steps(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer, model: Gaussians,
    n_steps: int, average: StepMoments | None = None, cells: Cells | None = None,
) -> ReleasedSteps:  # fmt: skip
    """Release one or more EM steps; then merge spare groups of a start, or leave them out.

    The average is over these steps and those of an earlier `average`. Where cells are missing, one
    step goes only a part of the way: with `cells`, if the plan has intervals, the next model is the
    one to which such steps would lead.
    """
    share = observed_overall(ball, second, of_one=plan.n_components == 1)
    # The share of rows with both cells of a pair is about the square of the share of cells.
    added = (share**-2 - 1) * plan.n_steps / ask.n_units
    # A covariance of one group fills missing cells.
    fills = plan.n_components == 1 and plan.n_shape > 0 and share < 1
    for _ in range(n_steps):
        wider = with_wider_clip(plan, model, ball.radius) if fills else plan
        statistics = release_statistics(ask, ball, wider, model)
        information = None
        if cells is not None and plan.has_intervals:
            information = observed_information(
                model, cells.observed, pooled=plan.covariance_type == "tied"
            )
        average = average_with_step(average, model, statistics, added, information)
        lead = average if information is None else average.converged(model, information)
        model = gaussians_after_step(
            model, lead, statistics, ball.radius, ask.n_units, filled=1 - share if fills else None
        )
    assert average is not None  # there is a step
    if len(model.weights) > plan.n_components:  # groups to spare, of a start
        model, average = after_spare(plan, model, average, statistics, ball.radius)
        model = gaussians_after_step(model, average, statistics, ball.radius, ask.n_units)
    return ReleasedSteps(model, average, statistics)


def with_wider_clip(plan: MixturePlan, model: Gaussians, radius: float) -> MixturePlan:
    """Plan that clips fewer rows of one group, whose covariance fills missing cells.

    If rows with values at both ends of a range were clipped, the covariance would fill cells of all
    columns wrongly. The ends are taken to be those that `scale_by_ranges` gives columns.
    """
    half = radius / math.sqrt(plan.n_features)
    rows = bounded_rows(model.means[0] / half, model.covariances[0] / half**2)
    return replace(plan, clip=clip_for_rows(plan.clip, rows, plan.noise, plan.n_shape))


def release_number(
    ask: Session, ball: LiftedBall, plan: MixturePlan, model: Gaussians
) -> tuple[Floats, Gaussians, int]:
    """Release gains of 2, 3, ... groups over one less, and the number k of groups they support.

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
