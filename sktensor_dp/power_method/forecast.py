"""What the power method can be expected to find, from public numbers only."""

import math

from sktensor_dp.estimator.forecast import Forecast, ReleaseForecast, counted_releases
from sktensor_dp.power_method.recipe import MomentPlan, noise_edge
from sktensor_dp.privacy.plan import COUNT
from sktensor_dp.statistics.sample_moments import LiftedBall, ProjectedThirdMoments, SecondMoments
from sktensor_dp.tensor.coordinates import n_unique

# Norm of equally likely, orthogonal components, in radii.
COMPONENT = 0.5
# A clip that few samples reach, over the norm of an average third moment.
CLIP = 3.0


def forecast_moments(
    plan: MomentPlan, n_samples: int, radius: float, neighbours: str = "replace_one"
) -> Forecast:
    """Forecast a plan for samples of a ball with orthogonal components well inside."""
    embedding, pure = LiftedBall(radius, plan.offset), plan.releases.delta == 0
    releases, count_sigma = counted_releases(plan.releases, pure, neighbours)
    k = plan.n_components
    per_release = n_samples
    if plan.perturbation == "stream":
        n_batches = k * (plan.max_iter + 1)
        per_release = max(n_samples // n_batches, 1)
        if count_sigma is not None:
            count_sigma *= math.sqrt(n_batches)  # each batch has a count of its own
    rows = []
    for planned in releases.releases:
        if planned.name in (COUNT, "third_moment_histogram"):
            continue
        strength = planned.cost.epsilon if pure else planned.cost.mu
        sigma = _moved(planned.name, k, embedding, neighbours) / (per_release * strength)
        noise, signal = _against(planned.name, sigma, plan, COMPONENT * embedding.norm)
        rows.append(ReleaseForecast(planned.name, sigma, noise, signal))
    worst = min(row.ratio for row in rows)
    needed = k if math.isinf(worst) else max(k, math.ceil(n_samples / worst))
    return Forecast(tuple(rows), n_samples, needed, k, count_sigma=count_sigma)


def _moved(name: str, k: int, embedding: LiftedBall, neighbours: str) -> float:
    """L2 sensitivity of the sum over samples."""
    leaves = neighbours == "add_remove"
    if name == "second_moments":
        query = SecondMoments(embedding)
        return query.l2_contribution if leaves else query.l2_sensitivity
    if name == "projected_third_moments":
        return ProjectedThirdMoments.sensitivity_of(CLIP * k**1.5, neighbours)
    return embedding.norm**3 if leaves else embedding.farthest_cubes


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
