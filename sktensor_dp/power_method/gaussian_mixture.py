"""Mixtures of spherical Gaussians from released moments, and how many these speak for."""

import math

import numpy as np

from sktensor_dp.power_method.recipe import (
    FittedComponents,
    MomentPlan,
    noise_edge,
    released_third_moments,
)
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.privacy.curators.samples import NoisyThirdMoments, SampleCurator
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.symmetric import n_unique, symmetric_product
from sktensor_dp.tensor.whitening import NoisyWhitener, noisy_whitener

# Deviations of noise that an eigenvalue of a third moment must exceed.
RESOLVED = 4.0
# Least part of the constant in a component, and of the common variance in a variance.
LEAST_SHARE, LEAST_VARIANCE = 1e-3, 0.05
# Relative to the largest square: rounding.
ROUNDING = 1e-12


def fit_gaussian_mixture(curator: SampleCurator, plan: MomentPlan) -> FittedComponents:
    """Means, weights and variances of spherical Gaussians (Hsu & Kakade, 2013).

    Moments are of ``(x, c)``, so that means need be affinely independent only, and the
    scale of each component is read off its constant. Components that noise hides are left out.
    """
    second, offset, radius = curator.second_moments(), plan.offset, curator.radius
    size = len(second.value)
    spectrum = covariance_spectrum(second.value, second.sigma, offset)
    evidence = mixture_evidence(spectrum, second.value, second.sigma, offset, curator.n_units)
    variance = common_variance(spectrum, plan.n_components, second.sigma, radius)
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
    weights, means = shares_and_means(white, vectors, offset)
    variances = vectors @ by_variance / np.maximum(weights, LEAST_SHARE)
    variances = np.clip(variances, LEAST_VARIANCE * variance, radius**2 / (size - 1))
    values = np.einsum("abc,ia,ib,ic->i", tensor, vectors, vectors, vectors, optimize=True)
    noise = math.hypot(third.sigma, sampling_deviation(white, second.value, curator.n_units))
    stands = values > RESOLVED * noise
    stands &= (weights > LEAST_SHARE) & (np.linalg.norm(means, axis=1) <= radius)
    if white.n_components == 1 or not stands.any():
        n_resolved = min(white.n_resolved, plan.n_components, 1)
        return one_gaussian(spectrum, second, offset, radius, evidence, n_resolved)
    order = np.argsort(-weights, kind="stable")
    order = order[stands[order]]
    weights = weights[order] ** 2 / (weights[order] ** 2).sum()
    return FittedComponents(means[order], weights, len(order), variances[order], evidence)


def shares_and_means(white: NoisyWhitener, vectors: Floats, offset: float) -> tuple[Floats, Floats]:
    """Roots of the probabilities, and means, of whitened components."""
    scaled = white.unwhiten(vectors)  # sqrt(w) (mu, c)
    roots = scaled[:, -1] / offset
    return roots, scaled[:, :-1] / np.maximum(roots, LEAST_SHARE)[:, None]


def one_gaussian(
    spectrum: Floats, second: Noisy, offset: float, radius: float, evidence: Floats, n_resolved: int
) -> FittedComponents:
    """Gaussian of all samples, by their first and second moments."""
    mean = second.value[-1, :-1] / offset
    mean *= min(1.0, radius / max(float(np.linalg.norm(mean)), 1e-300))
    variance = common_variance(spectrum, 1, second.sigma, radius)
    return FittedComponents(mean[None], np.ones(1), n_resolved, np.array([variance]), evidence)


def common_variance(spectrum: Floats, n_components: int, sigma: float, radius: float) -> float:
    """Mean of the eigenvalues of the covariance that the means have no part in.

    Of the k - 1 that they may lift, those are left out that noise does not explain.
    """
    edge = noise_edge(sigma, len(spectrum))
    n_own = len(spectrum)
    least = max(n_own - n_components + 1, 1)
    while n_own > least and spectrum[n_own - 1] > spectrum[:n_own].mean() + edge:
        n_own -= 1
    # What noise makes of a variance of zero stands in for less.
    noise = sigma / math.sqrt(n_own)
    variance = max(float(spectrum[:n_own].mean()), noise, ROUNDING * radius**2)
    return min(variance, radius**2 / len(spectrum))


def shrunk_residual(third: NoisyThirdMoments, equal: Floats, rho: float, freedom: float) -> Floats:
    """Posterior mean of variances times components, about that of equal variances.

    Variances differ from each other by about as much as they are.
    """
    spread = float(equal @ equal) / len(equal)
    noise = (third.sigma / (rho * freedom)) ** 2
    kept = spread / (spread + noise) if spread > 0 else 1.0
    return equal + kept * (third.residual / freedom - equal)


def sampling_deviation(white: NoisyWhitener, second: Floats, n_units: int) -> float:
    """Standard deviation of a coordinate of the whitened third moment of normal samples."""
    k = white.n_components
    square = float(np.trace(white.matrix.T @ second @ white.matrix))
    sixth = square * (square + 2) * (square + 4)
    return math.sqrt(max(sixth, 0.0) / (n_units * n_unique(k, 3)))


def covariance_spectrum(second: Floats, sigma: float, offset: float) -> Floats:
    """Eigenvalues of the covariance, growing, by the released second moment of ``(x, offset)``."""
    mean = second[-1, :-1] / offset
    of_mean = sigma / np.sqrt(2) / offset
    covariance = second[:-1, :-1] - np.outer(mean, mean) + of_mean**2 * np.eye(len(mean))
    return np.asarray(np.linalg.eigvalsh(covariance))


def mixture_evidence(
    spectrum: Floats, second: Floats, sigma: float, offset: float, n_units: int
) -> Floats:
    """BIC of 1 to d spherical Gaussians, by the spectrum of their covariance.

    That of k has k - 1 eigenvalues above the others, which are equal.
    """
    mean = second[-1, :-1] / offset
    common = max(float(np.median(spectrum)), 0.0)
    # Noise of the release, and of the mean on which the covariance leans where that is far from
    # zero; then what samples vary by themselves.
    of_release = sigma**2 * (1 + float(mean @ mean) / offset**2)
    variance = of_release + 2 * common**2 / n_units
    least = max(ROUNDING * float(np.abs(spectrum).max()) ** 2, 1e-300)
    return bic_of_spectrum(spectrum[::-1], max(variance, least))


def bic_of_spectrum(eigenvalues: Floats, variance: float) -> Floats:
    """BIC of 0 to d - 1 leading eigenvalues that differ from the others, which are equal.

    Of a symmetric matrix whose coordinates in an orthonormal basis have independent normal noise
    of a variance: its d (d + 1) / 2 coordinates are the sample.
    """
    size = len(eigenvalues)
    apart = np.arange(size)
    left = size - apart
    sums = np.cumsum(eigenvalues[::-1])[::-1]
    squares = np.cumsum(np.square(eigenvalues)[::-1])[::-1]
    misfit = np.maximum(squares - sums**2 / left, 0.0)
    # A matrix of a rank, and the common eigenvalue.
    n_parameters = apart * (2 * size - apart + 1) / 2 + 1
    return np.asarray(misfit / variance + n_parameters * math.log(size * (size + 1) / 2))
