"""Plan of a tensor power method from public numbers: releases, budget, forecast."""

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.parameters import check_feasible
from sktensor_dp.estimator.forecast import Forecast, Question, ReleaseForecast, counted_releases
from sktensor_dp.power_method import defaults
from sktensor_dp.privacy.calibration import spherical_spread
from sktensor_dp.privacy.plan import COUNT, ReleasePlan, with_histogram
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SecondMoments,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.tensor.largest_of_noise import edge_of_noise
from sktensor_dp.tensor.symmetric import n_unique

# Perturbations that add noise to power steps.
BY_STEPS = ("iteration", "stream")
PERTURBATIONS = ("auto", "whitened_tensor", "moment_tensor", *BY_STEPS)
# A component counts as found if its T(u, u, u) exceeds at least this many deviations of noise.
RESOLVED = 4.0
# Clip of third moments that forecasts assume, in norms of an average one: few samples reach it.
CLIP = 3.0
# Law that forecasts assume.
LAW = (
    "Components are assumed to be equally likely, orthogonal, and half as long as data_norm allows."
)
# Most arrays that a fit holds at once, counted in the code. SQUARES, (d, d) for d features: a total
# and a rest, both for a chunk and for a part of it (4), and the own sum of a part: values and
# indices of a sparse product, and each of them as a dense array (4). Later steps hold fewer.
# CUBES, (k, k, k) for a subspace of k dimensions: positions of triples (1) and their temporaries
# (2), the released cube, two products and their result (4), and a copy (1).
SQUARES, CUBES = 8, 8
# Vectors of all features, for each component and for each start: bases, whitened bases, starts,
# noisy answers, and a total and a rest of sums.
VECTORS = 16
# Doubles in blocks that are worked on at once.
WORKSPACE = 2**20


@dataclass(frozen=True)
class ComponentPlan:
    """Releases and settings of a fit, chosen from public numbers alone."""

    n_components: int  # capped by the number of features
    n_features: int  # of the data
    perturbation: str  # where noise is added; never "auto"
    whiten: bool  # True if third moments are whitened by second ones, where these are released
    # Settings of the power method, and the seed of its starts.
    n_restarts: int
    max_iter: int
    random_state: object
    # Public radius of the ball of samples; 1 if a histogram chooses it, as all else is relative.
    radius: float
    releases: ReleasePlan  # of a fit; of a stream those of one batch
    chooses_norm: bool = False  # True for ``data_norm="auto"``

    @property
    def n_batches(self) -> int:
        """Number of batches that a stream deals a table to: as many as one component more needs."""
        return (self.n_components + 1) * (self.max_iter + 1)


def plan_components(estimator: Any, n_features: int, perturbation: str) -> ComponentPlan:
    """Choose the releases of a fit, and split the budget among them."""
    k, max_iter = min(estimator.n_components, n_features), estimator.max_iter
    if perturbation == "auto":
        perturbation = "whitened_tensor"
    if max_iter is None:
        # Where each iteration is a release: from a random start a logarithm of the dimension leads
        # near a component, and 4 more converge. On a released tensor iterations cost nothing.
        needed = math.ceil(math.log2(max(n_features, 2))) + 4
        max_iter = needed if perturbation in BY_STEPS else 100
    fractions = _fractions(perturbation, estimator.whiten, noiseless=math.isinf(estimator.epsilon))
    chooses_norm = estimator.data_norm == "auto"
    if chooses_norm:
        if perturbation == "stream":
            raise ValueError(
                "data_norm='auto' chooses the norm by a histogram of all samples, of which a "
                "stream reads one batch at a time: pass the number, for example the data_norm_ of "
                "a fit to earlier samples."
            )
        fractions = with_histogram(NormHistogram.name, fractions)
    radius = float(estimator.data_norm) if isinstance(estimator.data_norm, numbers.Real) else 1.0
    uses = {PowerIterations.name: k * (max_iter + 1)} if perturbation == "iteration" else {}
    return ComponentPlan(
        n_components=k, n_features=n_features, perturbation=perturbation, whiten=estimator.whiten,
        n_restarts=estimator.n_restarts, max_iter=max_iter, random_state=estimator.random_state,
        radius=radius, chooses_norm=chooses_norm,
        releases=ReleasePlan.split(estimator.epsilon, estimator.delta, fractions, uses),
    )  # fmt: skip


def plan_tensor(estimator: Any, size: int) -> ComponentPlan:
    """Plan of power steps on a private tensor with modes of length `size`."""
    plan = plan_components(estimator, size, "iteration")
    name, n_steps = TensorPowerIterations.name, plan.n_components * (plan.max_iter + 1)
    releases = ReleasePlan.split(estimator.epsilon, estimator.delta, {name: 1.0}, {name: n_steps})
    return replace(plan, releases=releases)


def _fractions(perturbation: str, whiten: bool, *, noiseless: bool) -> dict[str, float]:
    """Weight of each release in the budget, by name."""
    if perturbation in BY_STEPS:
        return {PowerIterations.name: 1.0}
    # Samples are projected, and whitened if `whiten`, before third moments are taken.
    projects = perturbation == "whitened_tensor"
    names = [SecondMoments.name] if whiten or projects else []
    if projects and not noiseless:
        names.append(ThirdMomentHistogram.name)
    fractions = {name: defaults.FRACTIONS[name] for name in names}
    third = ProjectedThirdMoments.name if projects else ThirdMoments.name
    return {**fractions, third: defaults.FRACTIONS["third"]}


def check_memory(plan: ComponentPlan) -> None:
    """Raise ValueError if the numbers that a fit holds at once may not fit into memory."""
    k = plan.n_components
    d = float(plan.n_features)
    perturbation = plan.perturbation
    n_numbers = VECTORS * d * (k + plan.n_restarts) + WORKSPACE
    advice = "or with fewer n_restarts"
    if perturbation not in BY_STEPS:
        # Without a second moment there is no subspace: third moments are of all features.
        has_subspace = any(one.name == SecondMoments.name for one in plan.releases.planned)
        n_numbers += SQUARES * d**2 + CUBES * (k if has_subspace else d) ** 3
        advice = "or by perturbation='stream', which needs memory in proportion to them"
    fit = f"A fit of {counted(plan.n_features, 'feature')} by perturbation={perturbation!r}"
    check_feasible(n_numbers, fit, f"Fit fewer features, {advice}.")


def forecast_components(
    estimator: Any, n_samples: int, n_features: int, question: Question
) -> Forecast:
    """Forecast of noise and signal of each release of a fit, for samples of the assumed law."""
    plan = plan_components(estimator, n_features, estimator.perturbation)
    k = plan.n_components
    pure = plan.releases.delta == 0
    releases, count_sigma = counted_releases(plan.releases, pure, estimator.neighbours)
    n_batches = plan.n_batches if plan.perturbation == "stream" else 1
    if count_sigma is not None:
        count_sigma *= math.sqrt(n_batches)  # each batch has a count of its own
    rows = []
    for planned in releases.planned:
        if planned.name in (COUNT, NormHistogram.name, ThirdMomentHistogram.name):
            continue
        one, cost = _expected_release(planned.name, plan, estimator.neighbours), planned.cost
        scale = spherical_spread(one.dimension) / cost.epsilon if pure else 1 / cost.mu
        sigma = one.sensitivity * scale / max(n_samples // n_batches, 1)
        noise = sigma * one.unit_noise
        rows.append(ReleaseForecast(planned.name, sigma, noise, one.signal))
    return Forecast(tuple(rows), n_samples, k, count_sigma=count_sigma, law=LAW, _question=question)


class _ExpectedRelease(NamedTuple):
    """Numbers by which noise and signal of a release are forecast."""

    dimension: int  # of the released vector
    sensitivity: float  # L2, of a sum over samples
    unit_noise: float  # norm, in the directions that count, of noise of deviation 1
    signal: float  # norm of the part that a fit has to see


def _expected_release(name: str, plan: ComponentPlan, neighbours: str) -> _ExpectedRelease:
    """Numbers of the release `name`, for k orthogonal components of equal weight."""
    size, k = plan.n_features, plan.n_components
    length = 0.5 * plan.radius  # of a component
    eigenvalue = length**3 / k
    cubes_sensitivity = (1 if neighbours == "add_remove" else 2) * plan.radius**3
    if name == SecondMoments.name:
        return _ExpectedRelease(
            n_unique(size, 2), SecondMoments(LiftedBall(plan.radius)).sensitivity("l2", neighbours),
            unit_noise=edge_of_noise(1.0, size), signal=length**2 / k,
        )  # fmt: skip
    if name == ProjectedThirdMoments.name:
        # As if samples were whitened, with a mean squared norm of k, even if they are not.
        sensitivity = ProjectedThirdMoments.sensitivity_of(CLIP * k**1.5, neighbours=neighbours)
        dimension = n_unique(k, 3)
        return _ExpectedRelease(dimension, sensitivity, math.sqrt(dimension), signal=k)
    if name == PowerIterations.name:
        # A step maps the best start, of cosine o with a component, to eigenvalue o^2 along it, and
        # adds noise of norm sigma sqrt(d): o grows if eigenvalue o / sqrt(d) > sigma. The largest
        # squared cosine of n random starts is about 2 log(1 + n) / d.
        squared_overlap = min(2 * math.log(1 + plan.n_restarts) / size, 1.0)
        # A step releases coordinates outside the span of the starts, and in it, for pairs of axes.
        rank = min(plan.n_restarts, size)
        dimension = (size + rank) * min(plan.n_restarts, n_unique(rank, 2))
        signal = eigenvalue * math.sqrt(squared_overlap / size)
        return _ExpectedRelease(dimension, cubes_sensitivity, unit_noise=1.0, signal=signal)
    # Third moments in all dimensions: k orthogonal components together; if whitened, noise counts
    # in their span alone.
    n_noisy = n_unique(k if plan.whiten else size, 3)
    return _ExpectedRelease(
        n_unique(size, 3), cubes_sensitivity, math.sqrt(n_noisy), signal=eigenvalue * math.sqrt(k)
    )
