"""Recipes from released moments of samples to components."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sktensor_dp.estimator.base import Fitted
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.curators.samples import NoisyThirdMoments, SampleCurator, TensorCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.spectral_topics.plan import TopicPlan
from sktensor_dp.spectral_topics.released import FittedTopics
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.power_method import (
    OnlinePowerMethod,
    orthogonal_decomposition,
    sketched_power_method,
)
from sktensor_dp.tensor.symmetric import multilinear
from sktensor_dp.tensor.whitening import Whitener, noisy_whitener


@dataclass(frozen=True, eq=False)
class FittedComponents:
    """What a fit learned, all of it post-processing of releases."""

    components: Floats  # (k, n_features): unit vectors, or means
    weights: Floats  # (k,): eigenvalues, or probabilities; decreasing
    n_resolved: int  # how many stand out of the noise
    variances: Floats | None = None  # (k,): of each Gaussian along a direction
    # (n_features,): what the released second moment says of numbers of Gaussians.
    evidence: Floats | None = None


@dataclass(frozen=True)
class MomentPlan:
    """What recipes follow: decisions that may depend on public numbers only."""

    n_components: int  # capped by the number of features
    n_features: int  # of the data
    # "whitened_tensor" or "moment_tensor" or "iteration" or "stream": where noise is added.
    perturbation: str
    whiten: bool  # whether third moments are whitened by second ones
    # Of the power method, with what seeds its starts.
    n_restarts: int
    max_iter: int
    random_state: Any
    offset: float  # constant that samples of a mixture get as their last coordinate; 0 without one
    quantile: float  # share of samples whose third moment is left unclipped
    releases: ReleasePlan  # the budget; of one batch in a stream

    def decomposed(self, tensor: Floats, k: int) -> Floats:
        """Orthonormal components of a released tensor."""
        return orthogonal_decomposition(
            tensor, k, n_restarts=self.n_restarts, max_iter=self.max_iter,
            random_state=check_random_state(self.random_state),
        )[1]  # fmt: skip


def noise_edge(sigma: float, size: int) -> float:
    """Operator norm that isotropic symmetric noise is about to have."""
    return sigma * float(np.sqrt(2 * size))


def fit_raw_moments(curator: SampleCurator, plan: MomentPlan) -> FittedComponents:
    """Components of ``E[x (x) x (x) x]`` as unit vectors with their eigenvalues."""
    k, n_features = plan.n_components, plan.n_features
    if plan.perturbation == "moment_tensor" and not plan.whiten:
        white, in_second = Whitener(np.eye(n_features), np.ones(n_features)), k
    else:
        second = curator.second_moments()
        edge = noise_edge(second.sigma, n_features)
        found = noisy_whitener(second.value, k, edge=edge, largest=curator.norm**2)
        k, in_second = found.n_components, found.n_resolved
        white = found if plan.whiten else Whitener(found.basis, np.ones(k))
    third = released_third_moments(curator, plan, white, 0.0)
    components = white.unwhiten(plan.decomposed(third.tensor, k))
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    seen = components @ white.matrix
    weights = _eigenvalues(third.tensor, seen)
    resolved = int((weights * np.linalg.norm(seen, axis=1) ** 3 > 4 * third.sigma).sum())
    order = np.argsort(-weights, kind="stable")
    return FittedComponents(components[order], weights[order], min(in_second, resolved))


def single_topics(topics: FittedTopics, _: Any, plan: TopicPlan, n_iter: int) -> Fitted:
    """What topics of documents of one topic each leave behind, the most probable first."""
    order = np.argsort(-topics.weights, kind="stable")
    found = FittedComponents(topics.topics[order], topics.weights[order], topics.n_resolved)
    return _left(found, plan, n_iter)


def fit_by_steps(curator: SampleCurator | TensorCurator, plan: MomentPlan) -> FittedComponents:
    """Noise at every power step, all of them on the same data."""
    method, sigma = new_method(plan), 0.0
    while not method.is_complete:
        answers = curator.power_iterations(method.ask())
        method.tell(answers.value)
        sigma = answers.sigma
    return found_by(method, sigma)


def fit_by_sketch(curator: TensorCurator, plan: MomentPlan) -> FittedComponents:
    """Steps without noise on the core of a large tensor, or on all of it if that is safer."""
    found = sketched_power_method(
        lambda starts: curator.power_iterations(starts).value, curator.exact_pairs,
        plan.n_features, plan.n_components, n_restarts=plan.n_restarts,
        max_iter=plan.max_iter, random_state=check_random_state(plan.random_state),
    )  # fmt: skip
    if found is None:
        return fit_by_steps(curator, plan)
    weights, vectors = found
    return FittedComponents(vectors, weights, int((weights > 0).sum()))


def new_method(plan: MomentPlan) -> OnlinePowerMethod:
    """Power method that has asked nothing yet."""
    return OnlinePowerMethod(
        plan.n_features, plan.n_components, n_restarts=plan.n_restarts, max_iter=plan.max_iter,
        random_state=check_random_state(plan.random_state),
    )  # fmt: skip


def learn(curator: Any, recipe: Callable[..., FittedComponents], plan: MomentPlan) -> Fitted:
    """Follow a recipe to its end: the state that a fit leaves, and what to warn of."""
    return _left(recipe(curator, plan), plan, plan.max_iter)


def _left(found: FittedComponents, plan: Any, n_iter: int) -> Fitted:
    cautions = cautions_of_noise(found, plan.n_components, plan.releases.epsilon)
    return Fitted({**attributes_of(found), "n_iter_": n_iter}, cautions)


def released_third_moments(
    curator: SampleCurator, plan: MomentPlan, white: Whitener, rho: float
) -> NoisyThirdMoments:
    """Whitened third moments, by the perturbation planned."""
    if plan.perturbation == "whitened_tensor":
        return curator.projected_third_moments(white.matrix, rho, plan.quantile)
    third = curator.third_moments(white.basis, rho)
    tensor = multilinear(third.tensor, white.transform)
    # A cube grows by the mean of its squares.
    growth = float(np.mean(white.scale**-2.0)) ** 1.5
    return NoisyThirdMoments(tensor, third.residual / white.scale, third.sigma * growth)


def _eigenvalues(tensor: Floats, seen: Floats) -> Floats:
    """Non-negative least squares weights of the cubes of some vectors."""
    products = np.einsum("abc,ia,ib,ic->i", tensor, seen, seen, seen, optimize=True)
    weights = np.linalg.lstsq((seen @ seen.T) ** 3, products, rcond=1e-12)[0]
    return np.maximum(weights, 0.0)


def attributes_of(found: FittedComponents) -> dict[str, Any]:
    """Fitted state that every fit of components leaves behind."""
    state = {
        "components_": found.components,
        "weights_": found.weights,
        "n_components_": len(found.components),
        "_n_features_out": len(found.components),
    }
    told = {"covariances_": found.variances, "released_bic_": found.evidence}
    return {**state, **{name: value for name, value in told.items() if value is not None}}


def found_by(method: OnlinePowerMethod, sigma: float) -> FittedComponents:
    """What a power method has found from answers with a noise of sigma."""
    weights, vectors = method.components()
    # Noise alone has T(u, u, u) of about sigma, the largest of a few starts three times it.
    return FittedComponents(vectors, weights, int((weights > 4 * sigma).sum()))


def cautions_of_noise(
    found: FittedComponents, n_components: int, epsilon: float
) -> tuple[Warning, ...]:
    """What to warn of where noise hides components."""
    wanted = min(n_components, found.components.shape[1])
    if found.n_resolved >= wanted or (math.isinf(epsilon) and len(found.components) >= wanted):
        return ()
    return (
        NotEnoughDataWarning(
            f"Of {wanted} components asked for, the released moments show "
            f"{found.n_resolved} above their noise; {len(found.components)} were fitted. "
            "More samples, a larger epsilon, a smaller data_norm or fewer n_components "
            "would help: see forecast()."
        ),
    )
