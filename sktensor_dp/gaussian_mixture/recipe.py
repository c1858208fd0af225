"""Recipe of a mixture: a start, EM steps, how many groups, and whether the steps helped."""

import numpy as np

from sktensor_dp.estimator.ball import chosen_ball, with_norm
from sktensor_dp.estimator.base import Fitted
from sktensor_dp.gaussian_mixture import defaults
from sktensor_dp.gaussian_mixture.fitted import FittedMixture, fitted_attributes
from sktensor_dp.gaussian_mixture.plan import MixturePlan
from sktensor_dp.mixtures.clipping import clipping_at
from sktensor_dp.mixtures.gaussians import Gaussians, merged_levels
from sktensor_dp.mixtures.shrinkage import bounded
from sktensor_dp.mixtures.start import SPHERE_SCALES, moved, small_spheres, within
from sktensor_dp.mixtures.steps import (
    LEAST_VARIANCE,
    WhitenedStatistics,
    averaged,
    stepped,
)
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.mixtures import MixtureGains, MixtureStatistics
from sktensor_dp.queries.samples import LiftedBall, SecondMoments
from sktensor_dp.tensor.arrays import Floats, as_generator
from sktensor_dp.tensor.symmetric import coordinates_to_symmetric, n_unique

# Rows are scaled down to this many radii: numbers stay far from overflow, and few rows change.
REACH = 8.0
# Largest part of a statistic, in units of its scale, in which it is a mean of numbers up to 1.
MOST = 4.0
# A gain must exceed its noise by this many standard deviations, beside `LEAST_GAIN`.
SEEN = 2.5
# Steps are dropped if they are worse than their start by this many standard deviations.
WORSE = 2.0


def fit_groups(ask: Session, plan: MixturePlan) -> Fitted:
    """Fit a mixture to released values; return fitted attributes and warnings."""
    ball, seen = LiftedBall(plan.radius, plan.offset), True
    if plan.chooses_norm:
        ball, seen = chosen_ball(ask, ball)
    fitted = fitted_attributes(fit_mixture(ask, ball, plan), plan)
    return with_norm(fitted, ball, seen=seen) if plan.chooses_norm else fitted


def fit_mixture(ask: Session, ball: LiftedBall, plan: MixturePlan) -> FittedMixture:
    """Fit Gaussians: each step asks for statistics whitened by the groups' own shapes."""
    start = released_start(ask, ball, plan)
    model, average = start, None
    for _ in range(plan.n_steps):
        found = released_statistics(ask, ball, plan, model)
        average = averaged(average, model, found)
        noise = average.noise_of(found)
        model = stepped(model, average, found, ball.radius, ask.n_units)
    levels = merged(model, plan, ball.radius)
    chain = *(levels[k] for k in sorted(levels)), start
    answer = ask(MixtureGains(chain, REACH * ball.radius))
    gains, lost = answer.value[:-1], answer.value[-1]
    k = n_supported(gains, answer.sigma)
    gain = -float(lost + gains[k - 1 :].sum())
    if gain < -WORSE * answer.sigma * np.sqrt(len(gains) - k + 2):
        return FittedMixture(start, gains, gain, None, np.zeros_like(start.means))
    model, n_joined = levels[k], len(start.weights) - k
    if n_joined:  # a group may have the noise of all joined; how far they moved says nothing of it
        return FittedMixture(
            model, gains, gain, noise.times((n_joined + 1) ** 0.5), 0 * model.means
        )
    return FittedMixture(model, gains, gain, noise, model.means - start.means)


def released_start(ask: Session, ball: LiftedBall, plan: MixturePlan) -> Gaussians:
    """Start of k Gaussians: small spheres moved by steps of their own, then merged."""
    second, rng = ask(SecondMoments(ball)), as_generator(plan.random_state)
    d, offset, radius = plan.n_features, ball.offset, ball.radius
    mean = second.value[-1, :-1] / offset
    mean = within(mean[None], radius)[0]
    covariance = second.value[:-1, :-1] - np.outer(mean, mean)
    if plan.n_components == 1:
        return shaped(Gaussians(np.ones(1), mean[None], covariance[None]), plan, radius)
    n_spheres = defaults.SPHERES * plan.n_components
    n_directions = min(d, plan.n_components)
    noise = max(second.sigma, LEAST_VARIANCE * radius**2)
    spheres = small_spheres(mean, covariance, noise, radius, n_directions, n_spheres, rng)
    clip = clipping_at(n_directions, defaults.QUANTILE)
    for step in range(defaults.SPHERE_STEPS):
        query = MixtureStatistics(
            spheres.means, spheres.whitener, np.log(spheres.weights), clip.limit, 0.0,
            SPHERE_SCALES, REACH * radius, "spherical", pooled=True, fill=mean,
        )  # fmt: skip
        answer = ask(query)
        k = len(spheres.weights)
        weights, shifts, size = np.split(possible(answer), [k, k + k * n_directions])
        spheres = moved(
            spheres, weights, shifts.reshape(k, -1), float(size[0]), answer.sigma, clip, radius,
            rng, last=step >= defaults.SPHERE_STEPS - 2,
        )  # fmt: skip
    levels = merged(spheres.gaussians, plan, radius)
    return levels[max(levels)]


def possible(answer: Answer) -> Floats:
    """Released statistics, clipped to a range that holds all values without noise."""
    return np.clip(answer.value, -MOST, MOST)


def merged(model: Gaussians, plan: MixturePlan, radius: float) -> dict[int, Gaussians]:
    """Mixtures of 1 to k Gaussians of the plan's type, by merging."""
    levels = merged_levels(model, plan.n_components)
    return {k: shaped(one, plan, radius) for k, one in levels.items()}


def shaped(model: Gaussians, plan: MixturePlan, radius: float) -> Gaussians:
    """Gaussians with means in the ball, and bounded covariances of the plan's type."""
    d, least = model.means.shape[1], LEAST_VARIANCE * radius**2
    covariances = np.array([bounded(one, least, radius**2) for one in model.covariances])
    if plan.covariance_type == "tied":
        pooled = np.einsum("j,jab->ab", model.weights, covariances)
        covariances = np.tile(pooled, (len(model.weights), 1, 1))
    if plan.covariance_type == "diag":
        covariances = covariances * np.eye(d)
    if plan.covariance_type == "spherical":
        sizes = np.exp(np.linalg.slogdet(covariances)[1] / d)
        covariances = sizes[:, None, None] * np.eye(d)
    return Gaussians(model.weights, within(model.means, radius), covariances)


def released_statistics(
    ask: Session, ball: LiftedBall, plan: MixturePlan, model: Gaussians
) -> WhitenedStatistics:
    """Release an EM step's statistics, clipped and centred in each group's own frame."""
    k, d = model.means.shape
    clip, shape = clipping_at(d, plan.quantile), plan.shape
    scales = clip.scales(shapes=shape != "spherical")
    pooled = plan.covariance_type == "tied"
    whiteners = model.whiteners[:1] if pooled else model.whiteners
    query = MixtureStatistics(
        model.means, whiteners, model.log_scales, clip.limit, clip.centre, scales,
        REACH * ball.radius, shape, pooled, partial_clips(d, plan.quantile),
    )  # fmt: skip
    answer = ask(query)
    weights, shifts, rest = np.split(possible(answer), [k, k + k * d])
    weights, shifts = weights / scales.weight**0.5, shifts.reshape(k, d)
    square, n_shared = clip.limit**2, 1 if pooled else k
    shapes, n_shape = np.zeros((n_shared, d, d)), 0
    if shape == "spherical":
        sizes = rest * square / scales.size**0.5
    else:
        rows = rest.reshape(n_shared, -1)
        matrices = np.array(
            [
                np.diag(row) if shape == "diag" else coordinates_to_symmetric(row, d, 2)
                for row in rows
            ]
        )
        traces = np.trace(matrices, axis1=1, axis2=2)
        sizes = traces / d**0.5 * square / scales.size**0.5
        if d > 1:
            shapes = matrices - (traces / d)[:, None, None] * np.eye(d)
            shapes *= square * ((1 - 1 / d) / scales.shape) ** 0.5
            n_shape = d - 1 if shape == "diag" else n_unique(d, 2) - 1
    return WhitenedStatistics(
        weights, shifts * clip.limit / scales.shift**0.5, sizes, shapes, n_shape, answer.sigma,
        scales, clip,
    )  # fmt: skip


def partial_clips(d: int, quantile: float) -> tuple[tuple[float, float], ...]:
    """Clips of rows with 1, ..., d - 1 observed columns, and their mean squares."""
    clips = (clipping_at(n_seen, quantile) for n_seen in range(1, d))
    return tuple((clip.limit, clip.mean) for clip in clips)


def n_supported(gains: Floats, sigma: float) -> int:
    """Least number of groups over which more gain too little for each, or for the noise."""
    for k in range(len(gains)):
        further = np.arange(1, len(gains) - k + 1)
        noise = SEEN * sigma * np.sqrt(further)
        if (np.cumsum(gains[k:]) <= defaults.LEAST_GAIN * further + noise).all():
            return k + 1
    return len(gains) + 1
