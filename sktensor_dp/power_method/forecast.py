"""What the power method can be expected to find, from public numbers only."""

import math

from sktensor_dp.estimator.forecast import Forecast, ReleaseForecast, counted_releases
from sktensor_dp.power_method.gaussian_mixture import RESOLVED
from sktensor_dp.power_method.recipe import MomentPlan, noise_edge
from sktensor_dp.privacy.calibration import spherical_spread
from sktensor_dp.privacy.plan import COUNT
from sktensor_dp.queries.samples import LiftedBall, ProjectedThirdMoments, SecondMoments
from sktensor_dp.tensor.symmetric import n_unique

# Norm of equally likely, orthogonal components, in radii.
COMPONENT = 0.5
# Standard deviations that a norm of a hundred exceeds by.
FARTHEST = 2.0
# A clip that few samples reach, over the norm of an average third moment.
CLIP = 3.0


class MixtureLaw:
    """Equally likely Gaussians of equal variance, all means as far from each other.

    Means are `separation` standard deviations apart, and the ball of `radius` is so large that
    about one sample in a hundred lies outside.
    """

    def __init__(self, plan: MomentPlan, radius: float, separation: float) -> None:
        k, d = plan.n_components, plan.n_features
        between = separation**2 / 2 * (1 - 1 / k)
        self.variance = (radius / (math.sqrt(d + between) + FARTHEST)) ** 2
        # Of the second moment: k - 1 that are lifted by the means, and that of the constant.
        self.eigenvalue = separation**2 / (2 * k) * self.variance if k > 1 else plan.offset**2
        # Mean squared norm of a whitened sample.
        self.square = k + 2 * k * (k - 1) / separation**2


def forecast_moments(
    plan: MomentPlan,
    n_samples: int,
    radius: float,
    neighbours: str = "replace_one",
    separation: float = 4.0,
) -> Forecast:
    """Forecast a plan for samples of a ball with components well inside."""
    embedding, pure = LiftedBall(radius, plan.offset), plan.releases.delta == 0
    releases, count_sigma = counted_releases(plan.releases, pure, neighbours)
    law = MixtureLaw(plan, radius, separation) if plan.offset > 0 else None
    k = plan.n_components
    per_release = n_samples
    if plan.perturbation == "stream":
        n_batches = k * (plan.max_iter + 1)
        per_release = max(n_samples // n_batches, 1)
        if count_sigma is not None:
            count_sigma *= math.sqrt(n_batches)  # each batch has a count of its own
    rows, needed = [], [float(k)]
    for planned in releases.releases:
        if planned.name in (COUNT, "third_moment_histogram"):
            continue
        strength = planned.cost.epsilon if pure else planned.cost.mu
        spread = spherical_spread(_dimension(planned.name, plan)) if pure else 1.0
        moved = _moved(planned.name, k, embedding, neighbours, law)
        sigma = moved * spread / (per_release * strength)
        if law is None:
            noise, signal = _against(planned.name, sigma, plan, COMPONENT * embedding.norm)
            sampling = 0.0
        else:
            noise, signal, sampling = _against_gaussians(planned.name, sigma, plan, law)
        least = _least_number(n_samples * noise / signal, (sampling / signal) ** 2)
        needed.append(least)
        noise = math.hypot(noise, sampling / math.sqrt(n_samples))
        rows.append(ReleaseForecast(planned.name, sigma, noise, signal))
    return Forecast(tuple(rows), n_samples, math.ceil(max(needed)), k, count_sigma=count_sigma)


def _least_number(noise: float, sampling: float) -> float:
    """Number n at which ``(noise / n)^2 + sampling / n`` is 1."""
    return (sampling + math.hypot(sampling, 2 * noise)) / 2


def _dimension(name: str, plan: MomentPlan) -> int:
    """Dimension of the space in which noise is drawn."""
    size, k = plan.n_features + (plan.offset > 0), plan.n_components
    if name == "second_moments":
        return n_unique(size, 2)
    if name == "projected_third_moments":
        return n_unique(k, 3) + k * (plan.offset > 0)
    if name == "power_iterations":
        seen = min(plan.n_restarts, size)
        return (size + seen) * min(plan.n_restarts, n_unique(seen, 2))
    return n_unique(size, 3)


def _moved(
    name: str, k: int, embedding: LiftedBall, neighbours: str, law: MixtureLaw | None
) -> float:
    """L2 sensitivity of the sum over samples."""
    leaves = neighbours == "add_remove"
    if name == "second_moments":
        query = SecondMoments(embedding)
        return query.l2_contribution if leaves else query.l2_sensitivity
    if name == "projected_third_moments":
        average = k if law is None else law.square
        return ProjectedThirdMoments.sensitivity_of(CLIP * average**1.5, neighbours)
    return embedding.norm**3 if leaves else embedding.farthest_cubes


def _against_gaussians(
    name: str, sigma: float, plan: MomentPlan, law: MixtureLaw
) -> tuple[float, float, float]:
    """Noise and signal of a release, and what sampling adds to the noise."""
    k, size = plan.n_components, plan.n_features + 1
    if name == "second_moments":
        edge = noise_edge(1.0, size)
        return edge * sigma, law.eigenvalue, edge * law.variance * math.sqrt(2)
    sixth = law.square * (law.square + 2) * (law.square + 4)
    sampling = math.sqrt(sixth / n_unique(k, 3))
    if name == "third_moments":
        sigma /= law.eigenvalue**1.5
    return RESOLVED * sigma, math.sqrt(k), RESOLVED * sampling


def _against(name: str, sigma: float, plan: MomentPlan, length: float) -> tuple[float, float]:
    """Noise and signal of a release in the norm in which they compete."""
    k, n_features = plan.n_components, plan.n_features
    eigenvalue = length**3 / k
    if name == "second_moments":
        return noise_edge(sigma, n_features), length**2 / k
    if name == "projected_third_moments":
        return sigma * math.sqrt(n_unique(k, 3)), k
    if name == "power_iterations":
        # The best start's squared overlap with a component.
        overlap = min(2 * math.log(1 + plan.n_restarts) / n_features, 1.0)
        return sigma, eigenvalue * overlap
    seen = k if plan.whiten else n_features
    return sigma * math.sqrt(n_unique(seen, 3)), eigenvalue * math.sqrt(k)
