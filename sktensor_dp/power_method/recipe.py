"""Fits of a tensor power method: their releases in order, and components from these."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sktensor_dp.estimator.base import FitResult
from sktensor_dp.estimator.data_norm import release_ball
from sktensor_dp.power_method import defaults
from sktensor_dp.power_method.fitted import (
    FittedComponents,
    attributes_of,
    components_of,
    warnings_of_noise,
)
from sktensor_dp.power_method.plan import RESOLVED, ComponentPlan
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SecondMoments,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import edge_of_noise
from sktensor_dp.tensor.power_method import OnlinePowerMethod, orthogonal_decomposition
from sktensor_dp.tensor.symmetric import coordinates_to_symmetric, multilinear, n_unique
from sktensor_dp.tensor.whitening import Whitener, noisy_whitener

# Largest T(u, u, u) of symmetric normal noise of unit variance, over the root of the length of a
# mode, if that is large (Auffinger, Ben Arous, Cerny, 2013).
LARGEST_ON_LONG_MODES = 1.66


def fit_samples(ask: Session, plan: ComponentPlan) -> FitResult:
    """Release a norm if ``data_norm="auto"``, then steps or moments; compute components."""
    radius = plan.radius
    unseen: tuple[Warning, ...] = ()
    if plan.chooses_norm:
        ball, unseen = release_ball(ask, LiftedBall(radius))
        radius = ball.radius
    if plan.perturbation == "iteration":
        components = fit_by_steps(ask, plan, PowerIterations, radius)
    else:
        components = fit_by_moments(ask, radius, plan)
    warned = warnings_of_noise(components, plan.n_components, plan.releases.epsilon)
    attributes = attributes_of(components, plan)
    if plan.chooses_norm:
        attributes["data_norm_"] = radius
    return FitResult(attributes, (*unseen, *warned))


def fit_to_tensor(ask: Session, plan: ComponentPlan, bound: float) -> FitResult:
    """Release power steps on a tensor, one entry of which may change by `bound`."""
    components = fit_by_steps(ask, plan, TensorPowerIterations, bound)
    warned = warnings_of_noise(components, plan.n_components, plan.releases.epsilon)
    return FitResult(attributes_of(components, plan), warned)


def fit_by_moments(ask: Session, radius: float, plan: ComponentPlan) -> FittedComponents:
    """Release second moments, unless the plan has none, and third ones; compute components."""
    white, n_components, n_resolved, sampling = _release_space(ask, radius, plan)
    third = release_third_moments(ask, radius, plan, white)
    _, vectors = orthogonal_decomposition(
        third.value, n_components, n_restarts=plan.n_restarts, max_iter=plan.max_iter,
        random_state=check_random_state(plan.random_state),
    )  # fmt: skip
    components = white.unwhiten(vectors)
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    whitened = components @ white.matrix
    weights = weights_of_cubes(third.value, whitened)
    # A component c of weight w has T(u, u, u) = w |c|^3 in its direction u.
    peaks = weights * np.linalg.norm(whitened, axis=1) ** 3
    most_of_noise = max(RESOLVED, LARGEST_ON_LONG_MODES * math.sqrt(white.n_components))
    stands_out = peaks > most_of_noise * math.hypot(third.sigma, sampling)
    order = np.argsort(-weights, kind="stable")
    order = order[stands_out[order]] if stands_out.any() else order[:1]
    return FittedComponents(
        components[order], weights[order], n_resolved=min(n_resolved, int(stands_out.sum()))
    )


class _Space(NamedTuple):
    """Space in which third moments are released."""

    white: Whitener  # with scales of 1 if third moments are not whitened
    n_components: int  # number of components to look for
    # Number of eigenvalues of the second moment above its noise; without one, `n_components`.
    n_resolved: int
    sampling: float  # deviation of a coordinate of third moments by sampling; 0 if unknown


def _release_space(ask: Session, radius: float, plan: ComponentPlan) -> _Space:
    """Release second moments; return the space of their leading eigenvectors.

    It is the whole space if the plan has no second moments.
    """
    k = plan.n_components
    if plan.perturbation == "moment_tensor" and not plan.whiten:
        whole = Whitener(np.eye(plan.n_features), np.ones(plan.n_features))
        return _Space(whole, k, n_resolved=k, sampling=0.0)
    second = ask(SecondMoments(LiftedBall(radius)))
    edge = edge_of_noise(second.sigma, plan.n_features)
    white = noisy_whitener(second.value, k, edge=edge, largest=radius**2)
    k, n_resolved = white.n_components, white.n_resolved
    sampling = sampling_deviation(white, second.value, ask.n_units)
    if plan.whiten:
        return _Space(white, k, n_resolved, sampling)
    sampling *= float(np.mean(white.scale**2)) ** 1.5  # of coordinates that are not whitened
    return _Space(Whitener(white.basis, np.ones(k)), k, n_resolved, sampling)


def weights_of_cubes(T: Floats, components: Floats) -> Floats:
    """Least-squares weights (k,) of components, at least 0, by T along each.

    The components c_j of weights w_j have ``T(c_i, c_i, c_i) = sum_j w_j (c_i' c_j)^3``.
    """
    gram = (components @ components.T) ** 3
    cubes = "abc,ia,ib,ic->i"
    values = np.einsum(cubes, T, components, components, components, optimize=True)
    return np.maximum(np.linalg.lstsq(gram, values, rcond=1e-12)[0], 0.0)


def fit_by_steps(
    ask: Session,
    plan: ComponentPlan,
    step: type[PowerIterations | TensorPowerIterations],
    bound: float,
) -> FittedComponents:
    """Release power steps until all components are found.

    `bound` is that of the query `step`: on the norm of samples, or the change of an entry.
    """
    method = new_method(plan)
    while not method.is_complete:
        answer = release_power_step(ask, step(method.columns_asked(), bound))
        # Each answer makes a step, as waiting for the next brings nothing: noise is equal, or on a
        # tensor depends on the columns asked for.
        method.tell(answer.value, answer.sigma, may_wait=False)
    return components_of(method)


def release_power_step(ask: Session, query: PowerIterations | TensorPowerIterations) -> Answer:
    """Release a power step; the answer's value is ``T(I, u, u)`` for the columns u of the query."""
    # `sigma` is that of the released coordinates, which is right in the span of the columns.
    # Outside of it noise of `PowerIterations` is smaller by sqrt(3): `OnlinePowerMethod` corrects
    # that when it averages answers.
    released = ask(query)
    return replace(released, value=query.decoded(released.value))


def new_method(plan: ComponentPlan) -> OnlinePowerMethod:
    """Start a power method, before its first step."""
    return OnlinePowerMethod.begin(
        plan.n_features, plan.n_components, n_restarts=plan.n_restarts, max_iter=plan.max_iter,
        random_state=check_random_state(plan.random_state),
    )  # fmt: skip


def release_third_moments(
    ask: Session, radius: float, plan: ComponentPlan, white: Whitener
) -> Answer:
    """Release third moments; the answer's value is a cube in the space of `white`."""
    if plan.perturbation == "whitened_tensor":
        return release_clipped_third_moments(ask, radius, white.matrix)
    third = release_in_basis(ask, ThirdMoments(white.basis, radius))
    # Whitening multiplies noise, by the mean squared factor of an axis to the power 3 / 2.
    growth = float(np.mean(white.scale**-2.0)) ** 1.5
    whitened = multilinear(third.value, white.transform)
    return replace(third, value=whitened, sigma=third.sigma * growth)


def release_clipped_third_moments(ask: Session, radius: float, basis: Floats) -> Answer:
    """Release the third moment in `basis`, as a cube, clipped at a noisy quantile of norms."""
    limit = math.inf
    if not ask.is_exact:
        # Search a limit in 96 bins, relative to the largest norm possible.
        largest = radius**3 * float(np.linalg.norm(basis, 2)) ** 3
        edges = largest * np.geomspace(1e-8, 1.0, 97)
        histogram = ask(ThirdMomentHistogram(basis, radius, edges))
        limit = histogram.edge_at(edges, 1 - defaults.CLIPPED)
    return release_in_basis(ask, ProjectedThirdMoments(basis, radius, limit))


def release_in_basis(ask: Session, query: ProjectedThirdMoments) -> Answer:
    """Release a third moment; the answer's value is a cube in the basis of the query."""
    answer = ask(query)
    return replace(answer, value=coordinates_to_symmetric(answer.value, query.basis.shape[1], 3))


def sampling_deviation(white: Whitener, second: Floats, n_units: int) -> float:
    """Deviation of a coordinate of a whitened third moment by sampling of normal data."""
    k = white.n_components
    mean_square = float(np.trace(white.matrix.T @ second @ white.matrix))
    # E|z|^6 for standard normal z in n dimensions is n (n + 2) (n + 4), E|z|^2 is n.
    sixth = mean_square * (mean_square + 2) * (mean_square + 4)
    return math.sqrt(max(sixth, 0.0) / (n_units * n_unique(k, 3)))
