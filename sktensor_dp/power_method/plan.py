"""Plan of a tensor power method from public numbers: releases, budget, forecast."""

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.parameters import check_feasible
from sktensor_dp.estimator.forecast import Forecast, ReleaseForecast, counted_releases
from sktensor_dp.power_method import defaults
from sktensor_dp.privacy.calibration import spherical_spread
from sktensor_dp.privacy.plan import COUNT, ReleasePlan, with_histogram
from sktensor_dp.queries.counts import NormHistogram
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SecondMoments,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.tensor.symmetric import n_unique

BY_STEPS = ("iteration", "stream")
PERTURBATIONS = ("auto", "whitened_tensor", "moment_tensor", *BY_STEPS)
# An eigenvalue of a third moment counts as found if it exceeds this many deviations of noise.
RESOLVED = 4.0
# Clip that few samples reach, relative to the norm of an average third moment.
CLIP = 3.0
# Most arrays of one size that a fit holds at once, counted in the code. SQUARES of the width: a
# total and a rest for a chunk and for a part of it (4), and a part's own sum as sparse product, its
# indices, and both dense (4). Later steps hold fewer. CUBES of the subspace: positions of triples
# (1) and their temporaries (2), the released cube, two products and their result (4), and a copy
# (1).
SQUARES, CUBES = 8, 8
# Number of vectors of all features for each component and start: bases, whitened bases, starts,
# noisy answers, and a total and a rest of sums.
VECTORS = 16
# Doubles in blocks that are worked on at once.
WORKSPACE = 2**20


@dataclass(frozen=True)
class MomentPlan:
    """Releases and settings of a fit, chosen from public numbers alone."""

    n_components: int  # capped by the number of features
    n_features: int  # of the data
    perturbation: str  # where noise is added; never "auto"
    whiten: bool  # whether third moments are whitened by second ones
    # Settings of the power method, and the seed of its starts.
    n_restarts: int
    max_iter: int
    random_state: object
    # Public radius of the ball of samples; 1 if a histogram chooses it, as all else is relative to
    # it.
    radius: float
    offset: float  # constant that samples of a mixture get as their last coordinate; 0 without one
    releases: ReleasePlan  # the budget; of one batch in a stream
    chooses_norm: bool = False

    @property
    def is_mixture(self) -> bool:
        """True if samples get a constant coordinate, to fit a mixture of Gaussians."""
        return self.offset > 0


def plan_moments(
    model: Any, n_features: int, perturbation: str, *, to_fit: bool = False
) -> MomentPlan:
    """Choose the releases of a fit and split the budget; `to_fit` checks the memory."""
    # Iterations from each start on a released tensor, where they cost nothing.
    after_release = 100
    check_width(model, n_features)
    k, max_iter = min(model.n_components, n_features), model.max_iter
    if perturbation == "auto":
        perturbation = "whitened_tensor"
    if max_iter is None:
        by_steps = perturbation in BY_STEPS
        max_iter = power_iterations_needed(n_features) if by_steps else after_release
    fractions = _fractions(perturbation, model.whiten, exact=math.isinf(model.epsilon))
    chooses_norm = model.data_norm == "auto"
    if chooses_norm:
        refuse_stream(perturbation)
        fractions = with_histogram(NormHistogram.name, fractions)
    radius = float(model.data_norm) if isinstance(model.data_norm, numbers.Real) else 1.0
    uses = {PowerIterations.name: k * (max_iter + 1)} if perturbation == "iteration" else {}
    mixture = model.moment == "gaussian_mixture"
    if to_fit:
        _check_memory(
            n_features, perturbation, k, model.n_restarts, SecondMoments.name in fractions
        )
    return MomentPlan(
        n_components=k, n_features=n_features, perturbation=perturbation, whiten=model.whiten,
        n_restarts=model.n_restarts, max_iter=max_iter, random_state=model.random_state,
        radius=radius, offset=defaults.OFFSET * radius if mixture else 0.0,
        chooses_norm=chooses_norm,
        releases=ReleasePlan.split(model.epsilon, model.delta, fractions, uses),
    )  # fmt: skip


def plan_tensor(model: Any, size: int) -> MomentPlan:
    """Plan the steps of a power method on a private tensor of a `size`."""
    plan = plan_moments(model, size, "iteration")
    name, n_steps = TensorPowerIterations.name, plan.n_components * (plan.max_iter + 1)
    releases = ReleasePlan.split(model.epsilon, model.delta, {name: 1.0}, {name: n_steps})
    return replace(plan, releases=releases)


def refuse_stream(perturbation: str) -> None:
    """Raise ValueError for a stream: no batch shows the norms of other batches."""
    if perturbation == "stream":
        raise ValueError(
            "data_norm='auto' chooses the norm by a histogram of all samples, of which a stream "
            "reads one batch at a time: pass the number, for example the data_norm_ of a fit "
            "to earlier samples."
        )


def check_width(model: Any, n_features: int) -> None:
    """Raise ValueError for more Gaussians than features: two moments cannot tell them apart."""
    if model.moment == "gaussian_mixture" and model.n_components > n_features:
        raise ValueError(
            f"n_components={model.n_components} Gaussians cannot be told apart in "
            f"{counted(n_features, 'feature')}: their means have to be affinely independent, and "
            f"one direction is left for variances. Pass n_components of at most {n_features}."
        )


def power_iterations_needed(n_features: int) -> int:
    """Number of iterations from a random start: a logarithm of the dimension, and 4 to converge."""
    return math.ceil(math.log2(max(n_features, 2))) + 4


def noise_norm(sigma: float, size: int) -> float:
    """Approximate operator norm of a symmetric noise matrix with orthonormal deviation `sigma`."""
    return sigma * float(np.sqrt(2 * size))


def _fractions(perturbation: str, whiten: bool, *, exact: bool) -> dict[str, float]:
    """Fraction of the budget of each release, relative to the others."""
    if perturbation in BY_STEPS:
        return {PowerIterations.name: 1.0}
    whitened = perturbation == "whitened_tensor"
    names = [SecondMoments.name] if whiten or whitened else []
    if whitened and not exact:
        names.append(ThirdMomentHistogram.name)
    fractions = {name: defaults.FRACTIONS[name] for name in names}
    third = ProjectedThirdMoments.name if whitened else ThirdMoments.name
    return {**fractions, third: defaults.FRACTIONS["third"]}


def _check_memory(
    n_features: int, perturbation: str, n_components: int, n_restarts: int, with_pairs: bool
) -> None:
    """Raise ValueError if the numbers that a fit holds at once may not fit into memory."""
    d, advice = float(n_features), "or less n_restarts"
    held = VECTORS * d * (n_components + n_restarts) + WORKSPACE
    if perturbation not in BY_STEPS:
        # Without a second moment there is no subspace, and the third moment has all features.
        held += SQUARES * (d + 1) ** 2 + CUBES * (n_components if with_pairs else d) ** 3
        advice = "or by perturbation='stream', which needs memory in proportion to them"
    fit = f"A fit of {counted(n_features, 'feature')} by perturbation={perturbation!r}"
    check_feasible(held, fit, f"Fit fewer features, {advice}.")


def _noise_and_signal(plan: MomentPlan, norm: float, name: str) -> tuple[float, float]:
    """Noise of a release per standard deviation, and its signal."""
    # Norm that forecasts assume for equally likely, orthogonal components, in radii.
    component = 0.5
    k, d = plan.n_components, plan.n_features
    eigenvalue = (component * norm) ** 3 / k
    if name == SecondMoments.name:
        return noise_norm(1.0, d), (component * norm) ** 2 / k
    if name == ProjectedThirdMoments.name:
        return math.sqrt(n_unique(k, 3)), k
    if name == PowerIterations.name:
        # A step multiplies the best start's overlap o with a component by the eigenvalue times o,
        # and adds noise of norm sigma sqrt(d); so o grows if eigenvalue sqrt(o / d) > sigma.
        squared = min(2 * math.log(1 + plan.n_restarts) / d, 1.0)
        return 1.0, eigenvalue * math.sqrt(squared / d)
    return math.sqrt(n_unique(k if plan.whiten else d, 3)), eigenvalue * math.sqrt(k)


def forecast_moments(model: Any, n_samples: int, n_features: int) -> Forecast:
    """Forecast noise and signal of each release of a fit to samples of the assumed law."""
    plan = plan_moments(model, n_features, model.perturbation)
    k, pure, ball = plan.n_components, plan.releases.delta == 0, LiftedBall(plan.radius)
    releases, count_sigma = counted_releases(plan.releases, pure, model.neighbours)
    n_batches = k * (plan.max_iter + 1) if plan.perturbation == "stream" else 1
    if count_sigma is not None:
        count_sigma *= math.sqrt(n_batches)  # each batch has a count of its own
    rows, needed = [], [float(k)]
    for planned in releases.planned:
        if planned.name in (COUNT, NormHistogram.name, ThirdMomentHistogram.name):
            continue
        dimension, sensitivity = _dimension_and_sensitivity(
            planned.name, plan, ball, model.neighbours
        )
        scale = spherical_spread(dimension) / planned.cost.epsilon if pure else 1 / planned.cost.mu
        sigma = sensitivity * scale / max(n_samples // n_batches, 1)
        noise, signal = _noise_and_signal(plan, ball.norm, planned.name)
        noise *= sigma
        needed.append(n_samples * noise / signal)
        rows.append(ReleaseForecast(planned.name, sigma, noise, signal))
    return Forecast(tuple(rows), n_samples, math.ceil(max(needed)), k, count_sigma=count_sigma)


def _dimension_and_sensitivity(
    name: str, plan: MomentPlan, ball: LiftedBall, neighbours: str
) -> tuple[int, float]:
    """Dimension of the noise of the release `name`, and L2 sensitivity of its sum."""
    size, k = plan.n_features, plan.n_components
    leaves = neighbours == "add_remove"
    cubes = ball.norm**3 if leaves else ball.farthest_cubes
    if name == SecondMoments.name:
        query = SecondMoments(ball)
        return n_unique(size, 2), query.l2_contribution if leaves else query.l2_sensitivity
    if name == ProjectedThirdMoments.name:
        # The mean squared norm of a whitened sample is k.
        clipped = ProjectedThirdMoments.sensitivity_of(CLIP * k**1.5, neighbours=neighbours)
        return n_unique(k, 3), clipped
    if name == PowerIterations.name:
        seen = min(plan.n_restarts, size)
        return (size + seen) * min(plan.n_restarts, n_unique(seen, 2)), cubes
    return n_unique(size, 3), cubes


def minus_moment(fitted: Any) -> float:
    """Minus the fitted third moment along the first axis, which a worst case makes large."""
    return -float(np.sum(fitted.weights_ * fitted.components_[:, 0] ** 3))
