"""Recipes of a tensor power method: releases in order, and components made of them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sktensor_dp.estimator.base import (
    Fitted,
    PlannedFit,
    warnings_of_cap,
    warnings_of_range,
)
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.power_method import defaults
from sktensor_dp.power_method.plan import (
    AFTER_RELEASE,
    RESOLVED,
    MomentPlan,
    noise_edge,
    plan_moments,
    plan_single_topics,
)
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.privacy.curators.samples import NoisyThirdMoments, SampleCurator, TensorCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import CountChunks
from sktensor_dp.queries.samples import LiftedBall, SampleChunks, TensorChunk
from sktensor_dp.spectral_topics.plan import TopicPlan
from sktensor_dp.spectral_topics.recipe import fit_topics
from sktensor_dp.spectral_topics.released import FittedTopics, TopicOptions
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.power_method import OnlinePowerMethod
from sktensor_dp.tensor.symmetric import multilinear, n_unique, symmetric_product, tensor_oracle
from sktensor_dp.tensor.whitening import NoisyWhitener, Whitener, noisy_whitener

# Least part of the constant in a component, and of the common variance in a variance.
LEAST_ROOT, LEAST_VARIANCE = 1e-3, 0.05
# Share of the largest mean square from which nearly all samples must be as long as they may be.
FULL = 0.97
ALL_CLIPPED = (
    "Nearly all samples are as long as data_norm or longer, by the released second moment. A "
    "larger data_norm, or 'auto', would clip fewer; if they are far from zero, subtract a public "
    "centre."
)
# Relative to the largest square: rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class FittedComponents:
    """Components estimated from released moments, with their weights."""

    components: Floats  # (k, n_features): unit vectors, or means
    weights: Floats  # (k,): eigenvalues, or probabilities; decreasing
    n_resolved: int  # how many stand out of the noise
    variances: Floats | None = None  # (k,): of each Gaussian along a direction
    evidence: Floats | None = None  # (n_features,): BIC of 1, 2, ... Gaussians
    fill: float = 0.0  # least mean square of clipped samples that noise allows, over the largest


def planned_samples(
    model: Any, chunks: SampleChunks, columns: Mapping[str, Any], _: int
) -> PlannedFit[SampleCurator]:
    """Plan a fit of components to moments of samples."""
    plan = plan_moments(model, chunks.n_features, model.perturbation, to_fit=True)
    recipe = fit_by_steps if plan.perturbation == "iteration" else fit_raw_moments
    if model.moment == "gaussian_mixture":
        recipe = fit_gaussian_mixture
    return PlannedFit(
        SampleCurator, chunks, plan.releases, partial(run_recipe, recipe=recipe, plan=plan),
        columns, {"known": LiftedBall(plan.norm, plan.offset)},
        warnings_of_cap(model.n_components, chunks.n_features),
    )  # fmt: skip


def planned_topics(
    model: Any, chunks: CountChunks, columns: Mapping[str, Any], n_units: int
) -> PlannedFit[DocumentCurator]:
    """Plan a fit of topics to documents of one topic each."""
    plan = plan_single_topics(model, n_units, chunks.n_features, to_fit=True)
    n_iter = model.max_iter or AFTER_RELEASE
    options = TopicOptions(0.0, model.random_state, model.n_restarts, n_iter)
    leave = partial(single_topics, plan=plan, n_iter=n_iter)
    return PlannedFit(
        DocumentCurator, chunks, plan.releases,
        partial(fit_topics, plan=plan, options=options, leave=leave),
        columns, {"unit": "document", "known": {}},
        warnings_of_cap(model.n_components, chunks.n_features),
    )  # fmt: skip


def planned_tensor(model: Any, tensor: Floats, bound: float) -> PlannedFit[TensorCurator]:
    """Plan to decompose a tensor with private entries; `bound` is the largest change of one."""
    plan = plan_moments(model, len(tensor), "iteration")
    name, n_steps = "tensor_power_iterations", plan.n_components * (plan.max_iter + 1)
    releases = ReleasePlan.split(model.epsilon, model.delta, {name: 1.0}, {name: n_steps})
    neighbours = f"tensors that differ by {bound:g} in each of the six orders of one entry"
    return PlannedFit(
        TensorCurator, TensorChunk(tensor_oracle(tensor)), releases,
        partial(run_recipe, recipe=fit_by_steps, plan=plan), {"n_features_in_": len(tensor)},
        {"known": bound, "unit": "entry", "neighbours": neighbours},
        warnings_of_cap(model.n_components, len(tensor)),
    )  # fmt: skip


def fit_raw_moments(curator: SampleCurator, plan: MomentPlan) -> FittedComponents:
    """Components of ``E[x (x) x (x) x]``, unit vectors, from released moments."""
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
    resolved = int((weights * np.linalg.norm(seen, axis=1) ** 3 > RESOLVED * third.sigma).sum())
    order = np.argsort(-weights, kind="stable")
    return FittedComponents(components[order], weights[order], min(in_second, resolved))


def single_topics(topics: FittedTopics, _: Any, plan: TopicPlan, n_iter: int) -> Fitted:
    """Fitted attributes of topics of documents with one topic each, the most probable first."""
    order = np.argsort(-topics.weights, kind="stable")
    found = FittedComponents(topics.topics[order], topics.weights[order], topics.n_resolved)
    return _fitted_state(found, plan, n_iter)


def fit_by_steps(curator: SampleCurator | TensorCurator, plan: MomentPlan) -> FittedComponents:
    """Power method with noise in every step, all steps on the same data."""
    method = new_method(plan)
    while not method.is_complete:
        answers = curator.power_iterations(method.ask())
        method.tell(answers.value, answers.sigma, may_wait=False)
    return components_of(method)


def new_method(plan: MomentPlan) -> OnlinePowerMethod:
    """Start a power method, before its first step."""
    return OnlinePowerMethod.begin(
        plan.n_features, plan.n_components, n_restarts=plan.n_restarts, max_iter=plan.max_iter,
        random_state=check_random_state(plan.random_state),
    )  # fmt: skip


def run_recipe(curator: Any, recipe: Callable[..., FittedComponents], plan: MomentPlan) -> Fitted:
    """Run `recipe`, which makes the releases; return fitted attributes and warnings."""
    if not plan.chooses_norm:
        return _fitted_state(recipe(curator, plan), plan, plan.max_iter)
    warnings = warnings_of_range("norm_histogram", seen=curator.choose_norm())
    fitted = _fitted_state(recipe(curator, plan), plan, plan.max_iter)
    attributes = {**fitted.attributes, "data_norm_": curator.radius}
    return Fitted(attributes, (*warnings, *fitted.warnings))


def _fitted_state(found: FittedComponents, plan: Any, n_iter: int) -> Fitted:
    """Fitted attributes of components, with a warning if noise hides some."""
    warnings = warnings_of_noise(found, plan.n_components, plan.releases.epsilon)
    if found.fill > FULL:
        warnings = (UserWarning(ALL_CLIPPED), *warnings)
    return Fitted({**attributes_of(found), "n_iter_": n_iter}, warnings)


def released_third_moments(
    curator: SampleCurator, plan: MomentPlan, white: Whitener, rho: float
) -> NoisyThirdMoments:
    """Release the whitened third moment, and that of residuals if `rho` is above 0."""
    if plan.perturbation == "whitened_tensor":
        return curator.projected_third_moments(white.matrix, rho, 1 - defaults.CLIPPED)
    third = curator.third_moments(white.basis, rho)
    tensor = multilinear(third.tensor, white.transform)
    # A cube grows by the mean of its squares.
    growth = float(np.mean(white.scale**-2.0)) ** 1.5
    return NoisyThirdMoments(tensor, third.residual / white.scale, third.sigma * growth)


def _eigenvalues(tensor: Floats, seen: Floats) -> Floats:
    """Least-squares weights, at least 0, of the cubes of the rows of `seen` in a tensor."""
    products = np.einsum("abc,ia,ib,ic->i", tensor, seen, seen, seen, optimize=True)
    weights = np.linalg.lstsq((seen @ seen.T) ** 3, products, rcond=1e-12)[0]
    return np.maximum(weights, 0.0)


def attributes_of(found: FittedComponents) -> dict[str, Any]:
    """Public attributes of fitted components, by name."""
    state = {
        "components_": found.components,
        "weights_": found.weights,
        "n_components_": len(found.components),
        "_n_features_out": len(found.components),
    }
    mixture = {"covariances_": found.variances, "released_bic_": found.evidence}
    return {**state, **{name: value for name, value in mixture.items() if value is not None}}


def components_of(method: OnlinePowerMethod) -> FittedComponents:
    """Components that a power method found."""
    weights, vectors = method.components()
    # Noise alone has T(u, u, u) of about its deviation, the largest of a few starts three times it.
    return FittedComponents(vectors, weights, method.n_above(RESOLVED))


def warnings_of_noise(
    found: FittedComponents, n_components: int, epsilon: float
) -> tuple[Warning, ...]:
    """Warning, if any, that noise hides some of the components asked for."""
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


def fit_gaussian_mixture(curator: SampleCurator, plan: MomentPlan) -> FittedComponents:
    """Fit spherical Gaussians to released moments (Hsu & Kakade, 2013)."""
    second, offset, radius = curator.second_moments(), curator.offset, curator.radius
    size = len(second.value)
    square = float(np.trace(second.value[:-1, :-1])) - 2 * second.sigma * math.sqrt(size)
    spectrum = covariance_spectrum(second.value, second.sigma, offset)
    evidence = mixture_evidence(spectrum, second.value, second.sigma, offset, curator.n_units)
    variance = common_variance(spectrum, plan.n_components, second.sigma, radius, curator.n_units)
    spherical = np.append(np.ones(size - 1), 0.0)  # the constant has no variance
    corrected = second.value - variance * np.diag(spherical)
    corrected[-1, -1] = offset**2
    # Sampling moves a second moment as noise does.
    edge = noise_edge(math.hypot(second.sigma, variance * math.sqrt(2 / curator.n_units)), size)
    white = noisy_whitener(corrected, plan.n_components, edge=edge, largest=curator.norm**2)
    # Expected squared distance from the span, in units of the variance.
    freedom = max(float(spherical.sum() - (white.basis**2 * spherical[:, None]).sum()), 1e-3)
    rho = (3 / (size - white.n_components)) ** 0.5
    if plan.perturbation == "whitened_tensor":
        rho = 0.5 * white.n_components / (freedom * variance)
    third = released_third_moments(curator, plan, white, rho)
    mean = np.append(second.value[-1, :-1] / offset, offset)
    by_variance = shrunk_residual(third, white.matrix.T @ mean * variance, rho, freedom)
    tensor = third.tensor - symmetric_product(
        white.matrix.T @ (spherical[:, None] * white.matrix), by_variance
    )
    vectors = plan.decomposed(tensor, white.n_components)
    weights, means = roots_and_means(white, vectors, offset)
    variances = vectors @ by_variance / np.maximum(weights, LEAST_ROOT)
    variances = np.clip(variances, LEAST_VARIANCE * variance, radius**2 / (size - 1))
    values = np.einsum("abc,ia,ib,ic->i", tensor, vectors, vectors, vectors, optimize=True)
    noise = math.hypot(third.sigma, sampling_deviation(white, second.value, curator.n_units))
    stands = values > RESOLVED * noise
    stands &= (weights > LEAST_ROOT) & (np.linalg.norm(means, axis=1) <= radius)
    if white.n_components == 1 or not stands.any():
        n_resolved = min(white.n_resolved, plan.n_components, 1)
        one = one_gaussian(spectrum, second, offset, radius, evidence, n_resolved)
        return replace(one, fill=square / radius**2)
    order = np.argsort(-weights, kind="stable")
    order = order[stands[order]]
    weights = weights[order] ** 2 / (weights[order] ** 2).sum()
    return FittedComponents(
        means[order], weights, len(order), variances[order], evidence, square / radius**2
    )


def roots_and_means(white: NoisyWhitener, vectors: Floats, offset: float) -> tuple[Floats, Floats]:
    """Roots of weights (k,) and means (k, d) of Gaussians, from whitened components."""
    scaled = white.unwhiten(vectors)  # sqrt(w) (mu, c)
    roots = scaled[:, -1] / offset
    return roots, scaled[:, :-1] / np.maximum(roots, LEAST_ROOT)[:, None]


def one_gaussian(
    spectrum: Floats, second: Noisy, offset: float, radius: float, evidence: Floats, n_resolved: int
) -> FittedComponents:
    """Mixture of one Gaussian, by the released first and second moments."""
    mean = second.value[-1, :-1] / offset
    mean *= min(1.0, radius / max(float(np.linalg.norm(mean)), 1e-300))
    variance = common_variance(spectrum, 1, second.sigma, radius, 1)
    return FittedComponents(mean[None], np.ones(1), n_resolved, np.array([variance]), evidence)


def common_variance(
    spectrum: Floats, n_components: int, sigma: float, radius: float, n_units: int
) -> float:
    """Mean of the covariance's least eigenvalues that noise and sampling explain as equal."""
    n_own = len(spectrum)
    least = max(n_own - n_components + 1, 1)
    while n_own > least:
        variance = max(float(spectrum[:n_own].mean()), 0.0)
        sampling = variance * math.sqrt(2 / n_units)
        if spectrum[n_own - 1] <= variance + noise_edge(math.hypot(sigma, sampling), len(spectrum)):
            break
        n_own -= 1
    # What noise makes of a variance of zero stands in for less.
    noise = sigma / math.sqrt(n_own)
    variance = max(float(spectrum[:n_own].mean()), noise, ROUNDING * radius**2)
    return min(variance, radius**2 / len(spectrum))


def shrunk_residual(third: NoisyThirdMoments, equal: Floats, rho: float, freedom: float) -> Floats:
    """Posterior mean (k,) of variances times means, shrunk towards one variance, `equal`."""
    spread = float(equal @ equal) / len(equal)
    noise = (third.sigma / (rho * freedom)) ** 2
    kept = spread / (spread + noise) if spread > 0 else 1.0
    return equal + kept * (third.residual / freedom - equal)


def sampling_deviation(white: NoisyWhitener, second: Floats, n_units: int) -> float:
    """Deviation, by sampling of normal data, of a whitened third moment's coordinate."""
    k = white.n_components
    square = float(np.trace(white.matrix.T @ second @ white.matrix))
    sixth = square * (square + 2) * (square + 4)
    return math.sqrt(max(sixth, 0.0) / (n_units * n_unique(k, 3)))


def covariance_spectrum(second: Floats, sigma: float, offset: float) -> Floats:
    """Ascending eigenvalues of the covariance of x, by a noisy second moment of ``(x, offset)``."""
    mean = second[-1, :-1] / offset
    of_mean = sigma / np.sqrt(2) / offset
    covariance = second[:-1, :-1] - np.outer(mean, mean) + of_mean**2 * np.eye(len(mean))
    return np.asarray(np.linalg.eigvalsh(covariance))


def mixture_evidence(
    spectrum: Floats, second: Floats, sigma: float, offset: float, n_units: int
) -> Floats:
    """BIC (d,) of 1 to d spherical Gaussians, lower is better, by the second moment."""
    mean = second[-1, :-1] / offset
    common = max(float(np.median(spectrum)), 0.0)
    # Noise of the release, and of the mean on which the covariance leans where that is far from
    # zero; then what samples vary by themselves.
    of_release = sigma**2 * (1 + float(mean @ mean) / offset**2)
    variance = of_release + 2 * common**2 / n_units
    least = max(ROUNDING * float(np.abs(spectrum).max()) ** 2, 1e-300)
    return bic_of_spectrum(spectrum[::-1], max(variance, least))


def bic_of_spectrum(eigenvalues: Floats, variance: float) -> Floats:
    """BIC (d,) of 0 to d - 1 leading eigenvalues apart and all others equal."""
    size = len(eigenvalues)
    apart = np.arange(size)
    left = size - apart
    sums = np.cumsum(eigenvalues[::-1])[::-1]
    squares = np.cumsum(np.square(eigenvalues)[::-1])[::-1]
    misfit = np.maximum(squares - sums**2 / left, 0.0)
    # A matrix of a rank, and the common eigenvalue.
    n_parameters = apart * (2 * size - apart + 1) / 2 + 1
    return np.asarray(misfit / variance + n_parameters * math.log(size * (size + 1) / 2))
