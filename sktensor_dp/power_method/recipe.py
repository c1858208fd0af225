"""Recipes from released moments of samples to components."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.power_method.plan import MomentPlan
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.privacy.curators.samples import NoisyThirdMoments, SampleCurator
from sktensor_dp.tensor.noisy_whitening import NULL_EIGENVALUE, noisy_whitener
from sktensor_dp.tensor.power_method import orthogonal_decomposition
from sktensor_dp.tensor.symmetric import multilinear, symmetric_product
from sktensor_dp.tensor.whitening import Whitener

__all__ = ["FittedComponents", "fit_gaussian_mixture", "fit_raw_moments", "noise_edge"]

Floats = NDArray[np.float64]

# Least share of the constant in a component, and of the average variance in a variance:
# what noise pushes below is taken for it.
LEAST_SHARE, LEAST_VARIANCE = 1e-3, 0.05


@dataclass(frozen=True, eq=False)
class FittedComponents:
    """What a fit learned, all of it post-processing of releases.

    Attributes
    ----------
    components : ndarray of shape (k, n_features)
        Unit vectors, or means.
    weights : ndarray of shape (k,)
        Eigenvalues, or probabilities; decreasing.
    n_resolved : int
        How many stand out of the noise.
    variances : ndarray of shape (k,) or None
        Of each Gaussian along a direction.
    """

    components: Floats
    weights: Floats
    n_resolved: int
    variances: Floats | None = None


def noise_edge(sigma: float, size: int) -> float:
    """Operator norm that isotropic symmetric noise is about to have."""
    return sigma * float(np.sqrt(2 * size))


def fit_raw_moments(
    curator: SampleCurator, plan: MomentPlan, n_features: int, random_state: np.random.RandomState
) -> FittedComponents:
    """Components of ``E[x (x) x (x) x]`` as unit vectors with their eigenvalues."""
    k = plan.n_components
    if "second_moments" not in plan.names:
        white, in_second = Whitener(np.eye(n_features), np.ones(n_features)), k
    else:
        second = curator.second_moments()
        edge = noise_edge(second.sigma, n_features)
        found = noisy_whitener(second.value, k, edge=edge, largest=curator.norm**2)
        k, in_second = found.n_components, found.n_resolved
        white = found if plan.whiten else Whitener(found.basis, np.ones(k))
    third = _third_moments(curator, plan, white, 0.0)
    _, vectors = orthogonal_decomposition(
        third.tensor, k, n_restarts=plan.n_restarts, max_iter=plan.max_iter,
        random_state=random_state,
    )  # fmt: skip
    components = white.unwhiten(vectors)
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    seen = components @ white.matrix
    weights = _eigenvalues(third.tensor, seen)
    resolved = int((weights * np.linalg.norm(seen, axis=1) ** 3 > 4 * third.sigma).sum())
    order = np.argsort(-weights, kind="stable")
    return FittedComponents(components[order], weights[order], min(in_second, resolved))


def fit_gaussian_mixture(
    curator: SampleCurator, plan: MomentPlan, offset: float, random_state: np.random.RandomState
) -> FittedComponents:
    """Means, weights and variances of spherical Gaussians (Hsu & Kakade, 2013).

    Moments are of ``(x, c)``, so that means need be affinely independent only, and the
    scale of each component is read off its constant.
    """
    second = curator.second_moments()
    size = len(second.value)
    spherical = np.append(np.ones(size - 1), 0.0)  # the constant has no variance
    variance = _common_variance(second, plan.n_components, offset)
    corrected = second.value - variance * np.diag(spherical)
    corrected[-1, -1] = offset**2
    edge, largest = noise_edge(second.sigma, size), curator.norm**2
    white = noisy_whitener(corrected, plan.n_components, edge=edge, largest=largest)
    k, whitening = white.n_components, white.matrix
    # Expected squared distance from the span, in units of the variance.
    freedom = float(spherical.sum() - (white.basis**2 * spherical[:, None]).sum())
    rho = (3 / (size - k)) ** 0.5
    if plan.third == "projected_third_moments":
        rho = 0.5 * k / (max(freedom, 1e-3) * variance)
    third = _third_moments(curator, plan, white, rho)
    by_variance = third.residual / max(freedom, 1e-3)
    tensor = third.tensor - symmetric_product(
        whitening.T @ (spherical[:, None] * whitening), by_variance
    )
    _, vectors = orthogonal_decomposition(
        tensor, k, n_restarts=plan.n_restarts, max_iter=plan.max_iter, random_state=random_state
    )
    # Rows are sqrt(w) (mu, c).
    scaled = white.unwhiten(vectors)
    shares = np.maximum(scaled[:, -1] / offset, LEAST_SHARE)
    means = scaled[:, :-1] / shares[:, None]
    variances = np.maximum(vectors @ by_variance / shares, LEAST_VARIANCE * variance)
    order = np.argsort(-shares, kind="stable")
    weights = shares[order] ** 2 / (shares**2).sum()
    return FittedComponents(means[order], weights, white.n_resolved, variances[order])


def _third_moments(
    curator: SampleCurator, plan: MomentPlan, white: Whitener, rho: float
) -> NoisyThirdMoments:
    """Whitened third moments, by the perturbation planned."""
    if plan.third == "projected_third_moments":
        return curator.projected_third_moments(white.matrix, rho, plan.quantile)
    third = curator.third_moments(white.basis, rho)
    tensor = multilinear(third.tensor, white.transform)
    scale = white.scale
    return NoisyThirdMoments(tensor, third.residual / scale, third.sigma / scale[-1] ** 3)


def _eigenvalues(tensor: Floats, seen: Floats) -> Floats:
    """Non-negative least squares weights of the cubes of some vectors."""
    products = np.einsum("abc,ia,ib,ic->i", tensor, seen, seen, seen, optimize=True)
    weights = np.linalg.lstsq((seen @ seen.T) ** 3, products, rcond=1e-12)[0]
    return np.maximum(weights, 0.0)


def _common_variance(second: Noisy, n_components: int, offset: float) -> float:
    """Mean of the eigenvalues of the covariance that the means have no part in."""
    mean = second.value[-1, :-1] / offset
    sigma = second.sigma / np.sqrt(2) / offset
    covariance = second.value[:-1, :-1] - np.outer(mean, mean) + sigma**2 * np.eye(len(mean))
    values = np.linalg.eigvalsh(covariance)
    own = values[: max(len(values) - n_components + 1, 1)]
    # Noise can outweigh a variance: a little of what samples can have stands in.
    return float(max(own.mean(), NULL_EIGENVALUE * offset**2))
