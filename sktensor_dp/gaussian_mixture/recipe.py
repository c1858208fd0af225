"""Recipe of a mixture: a start, EM steps, how many groups, and whether the steps helped."""

from dataclasses import replace

import numpy as np

from sktensor_dp.estimator.base import FitResult
from sktensor_dp.estimator.data_norm import chosen_ball, warnings_of_norm, with_norm
from sktensor_dp.gaussian_mixture import defaults
from sktensor_dp.gaussian_mixture.fitted import (
    Errors,
    FittedMixture,
    attributes_of,
    warnings_of_noise,
)
from sktensor_dp.gaussian_mixture.plan import MixturePlan
from sktensor_dp.mixtures.clipping import clipping_at
from sktensor_dp.mixtures.gaussians import Gaussians, merged_levels
from sktensor_dp.mixtures.shrinkage import clip_eigenvalues
from sktensor_dp.mixtures.start import (
    SPHERE_SCALES,
    scaled_to_radius,
    small_spheres,
    spheres_after_step,
)
from sktensor_dp.mixtures.steps import (
    LEAST_VARIANCE,
    WhitenedStatistics,
    average_with_step,
    gaussians_after_step,
)
from sktensor_dp.mixtures.uncertainty import lost_shifts, n_scores, observed_shares, way_from
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.mixtures import MixtureGains, MixtureStatistics
from sktensor_dp.queries.samples import LiftedBall, SecondMoments
from sktensor_dp.tensor.arrays import Floats, as_generator
from sktensor_dp.tensor.symmetric import n_unique

# Rows are scaled down to this many radii: numbers stay far from overflow, and few rows change.
MOST_RADII = 8.0
# Released statistics are clipped here, in units of their scales: without noise none is far above 1.
MOST = 4.0
# A gain must exceed its noise by this many standard deviations, beside `LEAST_GAIN`.
SEEN = 2.5
# Steps are dropped if they are worse than their start by this many standard deviations.
WORSE = 2.0


def fit_mixture(ask: Session, plan: MixturePlan) -> FitResult:
    """Fit a mixture to released values; return fitted attributes and warnings."""
    # A constant coordinate shows the mean among the second moments.
    ball, norms_stand_out = LiftedBall(plan.radius, defaults.OFFSET * plan.radius), True
    if plan.chooses_norm:
        ball, norms_stand_out = chosen_ball(ask, ball)
    second = ask(SecondMoments(ball))
    found = release_mixture(ask, ball, plan, second)
    warnings = warnings_of_norm(second, ball, found.square) or warnings_of_noise(found, plan)
    fitted = FitResult(attributes_of(found, plan), warnings)
    return with_norm(fitted, ball, seen=norms_stand_out) if plan.chooses_norm else fitted


def release_mixture(
    ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer
) -> FittedMixture:
    """Release a start by `second` moments, EM steps from it, and gains.

    Gains choose the number of groups, and the start where the steps are worse.
    """
    start = release_start(ask, ball, plan, second)
    model, average = start, None
    for _ in range(plan.n_steps):
        statistics = release_statistics(ask, ball, plan, model)
        average = average_with_step(average, model, statistics)
        noise = average.noise_of(statistics)
        model = gaussians_after_step(model, average, statistics, ball.radius, ask.n_units)
    *squares, constant = np.diagonal(second.value)
    share = 2 * constant / ball.offset**2 - 1  # as `SecondMoments.total` has it
    observed = observed_shares(model, np.array(squares), second.sigma, float(np.clip(share, 0, 1)))
    square = float(model.weights @ np.square(model.means).sum(axis=1))
    # Mixtures of 1, 2, ... groups, of the steps and of their start.
    levels, starts = (merged_mixtures(one, plan, ball.radius) for one in (model, start))
    most = len(levels)
    # over[i] is the mixture that mixture i + 1 is compared with: levels with the level before, and
    # starts with the level of as many groups.
    over = [*range(most - 1), *range(most)]
    answer = ask(MixtureGains((*levels, *starts), over, MOST_RADII * ball.radius))
    # gains[i]: of the steps' i + 2 groups over their i + 1; leads[i]: of the start's i + 1 groups
    # over the steps' i + 1.
    gains, leads = np.split(answer.value, [most - 1])
    gains_of_start = gains + np.diff(leads)  # of the start's i + 2 groups over its i + 1
    k = n_supported(gains, answer.sigma)
    # A gain of the start is the sum of a gain and of the difference of two leads.
    k_start = n_supported(gains_of_start, answer.sigma, n_more=2)
    gain = gain_over_start(gains, leads, k, k_start)
    # As many answers are added up in it: a lead, and a gain for each group more or less.
    n_answers = abs(k - k_start) + 1
    if gain < -WORSE * answer.sigma * np.sqrt(n_answers):
        return FittedMixture(starts[k_start - 1], gains_of_start, gain, square)
    found = levels[k - 1]
    # The parts' ways do not describe a joined group, which may have the noise of all its parts.
    errors = Errors(
        noise=noise.times((most - k + 1) ** 0.5), observed=observed,
        way=way_from(start, model) if k == most else np.zeros((k, n_scores(1, plan.n_features))),
        lost=np.zeros_like(found.means),
    )  # fmt: skip
    # Moments are of complete rows unless they show that cells are missing. Without noise next to
    # nothing is clipped.
    if second.sigma > 0 and share + 2 * second.sigma / ball.offset**2 >= 1:
        of_second = second.value, second.sigma, ball.offset
        lost = lost_shifts(found, *of_second, plan.clip.far, ask.n_units)
        errors = replace(errors, lost=lost)
    return FittedMixture(found, gains, gain, square, errors)


def gain_over_start(gains: Floats, leads: Floats, k: int, k_start: int) -> float:
    """Gain of `k` groups of the steps over `k_start` groups of the start."""
    return float(gains[: k - 1].sum() - gains[: k_start - 1].sum() - leads[k_start - 1])


def release_start(ask: Session, ball: LiftedBall, plan: MixturePlan, second: Answer) -> Gaussians:
    """Start of k Gaussians: spread small spheres in the leading directions of `second` moments,
    move these by EM steps of their own, and merge them.
    """
    rng = as_generator(plan.random_state)
    d, offset, radius = plan.n_features, ball.offset, ball.radius
    # Missing cells make the constant less, by half of its square at most: its mean square shows by
    # how much.
    constant = np.sqrt(np.clip(second.value[-1, -1], offset**2 / 2, offset**2))
    mean = scaled_to_radius(second.value[-1:, :-1] / constant, radius)[0]
    covariance = second.value[:-1, :-1] - np.outer(mean, mean)
    if plan.n_components == 1:
        one = Gaussians(np.ones(1), mean[None], covariance[None])
        return of_type(one, plan, radius)
    n_spheres = defaults.SPHERES * plan.n_components
    n_directions = min(d, plan.n_components)
    noise = max(second.sigma, LEAST_VARIANCE * radius**2)
    spheres = small_spheres(mean, covariance, noise, radius, n_directions, n_spheres, rng)
    clip = clipping_at(n_directions, defaults.QUANTILE)
    for step in range(defaults.SPHERE_STEPS):
        # Spheres share one density at their means, which cancels in `log_scales`.
        answer = ask(MixtureStatistics(
            means=spheres.means, whiteners=spheres.whitener, log_scales=np.log(spheres.weights),
            limit=clip.limit, centre=0.0, scales=SPHERE_SCALES, radius=MOST_RADII * radius,
            shape_part="spherical", pooled=True, fill=mean,
        ))  # fmt: skip
        # A sphere that is moved needs steps to settle in: the last two leave it out instead.
        drops = step >= defaults.SPHERE_STEPS - 2
        spheres = spheres_after_step(
            spheres, clipped_statistics(answer), answer.sigma, clip, radius, rng, drops=drops
        )
    return merged_mixtures(spheres.gaussians, plan, radius)[-1]


def clipped_statistics(answer: Answer) -> Floats:
    """Released statistics, clipped to a range that holds all values without noise."""
    return np.clip(answer.value, -MOST, MOST)


def merged_mixtures(model: Gaussians, plan: MixturePlan, radius: float) -> list[Gaussians]:
    """Mixtures of 1 to k Gaussians of the plan's type, by merging."""
    return [of_type(one, plan, radius) for one in merged_levels(model, plan.n_components)]


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
    return Gaussians(model.weights, scaled_to_radius(model.means, radius), covariances)


def release_statistics(
    ask: Session, ball: LiftedBall, plan: MixturePlan, model: Gaussians
) -> WhitenedStatistics:
    """Release an EM step's statistics, clipped and centred in each group's own frame."""
    d = model.means.shape[1]
    clip, pooled = plan.clip, plan.covariance_type == "tied"
    shape_part = "full" if pooled else plan.covariance_type
    scales = clip.scales(shapes=shape_part != "spherical")
    # Clip and mean square of rows with 1, ..., d - 1 observed columns.
    below = (clipping_at(n_seen, clip.quantile) for n_seen in range(1, d))
    partial = [(one.limit, one.mean) for one in below]
    whiteners = model.whiteners[:1] if pooled else model.whiteners
    query = MixtureStatistics(
        model.means, whiteners, model.log_scales, limit=clip.limit, centre=clip.centre,
        scales=scales, radius=MOST_RADII * ball.radius, shape_part=shape_part, pooled=pooled,
        partial=partial, reach=clip.far / clip.limit,  # shifts: clipped farther out than squares
    )  # fmt: skip
    answer = ask(query)
    # Coordinates of a shape, less the one of its trace.
    n_shape = {"spherical": 1, "diag": d}.get(shape_part, n_unique(d, 2)) - 1
    weights, shifts, sizes, shapes = query.decoded(clipped_statistics(answer))
    return WhitenedStatistics(
        weights=weights, shifts=shifts, sizes=sizes, shapes=shapes, n_shape=n_shape,
        sigma=answer.sigma, scales=scales, clipping=clip,
    )  # fmt: skip


def n_supported(gains: Floats, sigma: float, n_more: int = 0) -> int:
    """Least number k of groups over which no larger number gains enough.

    ``gains[i]`` is what i + 2 groups gain over i + 1. The m gains from k to k + m groups have to
    exceed `LEAST_GAIN` each, and `SEEN` deviations of the noise of m and `n_more` answers together.
    """
    for k in range(1, len(gains) + 1):
        m = np.arange(1, len(gains) - k + 2)
        enough = defaults.LEAST_GAIN * m + SEEN * sigma * np.sqrt(m + n_more)
        if (np.cumsum(gains[k - 1 :]) <= enough).all():
            return k
    return len(gains) + 1
