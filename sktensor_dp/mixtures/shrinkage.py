"""Shrinkage of noisy covariances to a common size and shape, and of that to a round one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sktensor_dp.mixtures import defaults
from sktensor_dp.tensor.arrays import Floats

# Least and largest factor by which a step may change the size of a covariance that it shrinks.
SIZES = (0.2, 5.0)
# Least eigenvalue of a covariance relative to its largest.
LEAST_OF_LARGEST = 1e-4
# Where noise is large, a covariance keeps in every direction at least this part of the variance of
# what it is shrunk to, or if it is not shrunk, of the former covariance.
LEAST_KEPT = 0.5


@dataclass(frozen=True, eq=False)
class Scatters:
    """Noisy covariances, in frames in which their noise is isotropic, and its deviations."""

    frames: Floats  # (k, d, d): lower factors; a covariance is frame @ whitened @ frame.T
    whitened: Floats  # (k, d, d)
    weights: Floats  # (k,), adding up to 1
    shape_sigma: Floats  # (k,): of an orthonormal coordinate of the traceless part
    size_sigma: Floats  # (k,): of the mean eigenvalue
    n_shape: int  # number of coordinates of the traceless part; 0 if all is round


def shrunk_covariances(noisy: Scatters, least: float, largest: float) -> Floats:
    """Positive definite covariances (k, d, d) with eigenvalues between `least` and `largest`."""
    # The size of a covariance F W F', F the frame, is trace(W) / d times the d-th root of det(FF'),
    # and its shape is the covariance over its size. The noise of a log size is relative noise.
    d = noisy.whitened.shape[1]
    sizes = np.clip(np.trace(noisy.whitened, axis1=1, axis2=2) / d, *SIZES)
    log_frames = 2 * np.log(np.diagonal(noisy.frames, axis1=1, axis2=2)).mean(axis=1)
    scales = np.exp(_shrunk_sizes(np.log(sizes) + log_frames, noisy.size_sigma / sizes))
    shapes = np.broadcast_to(np.eye(d), noisy.frames.shape)
    if noisy.n_shape:
        inner = noisy.whitened / sizes[:, None, None]
        scaled = noisy.frames @ inner @ noisy.frames.swapaxes(1, 2)
        relative = replace(noisy, shape_sigma=noisy.shape_sigma / sizes)
        shapes = _shrunk_shapes(scaled / np.exp(log_frames)[:, None, None], log_frames, relative)
    return np.array(
        [
            clip_eigenvalues(scale * shape, least, largest)
            for scale, shape in zip(scales, shapes, strict=True)
        ]
    )


def unshrunk_covariances(noisy: Scatters, least: float, largest: float, missing: float) -> Floats:
    """Positive definite covariances (k, d, d) without shrinkage, to fill missing cells by.

    Cells filled by shrunk covariances would vary too little, and would shrink the next ones again.
    Where noise is large, the share of `missing` cells stays of the former variance in every
    direction, as it does of a column that rows lack, given the others, in a step without noise.
    """
    d, found = noisy.whitened.shape[1], []
    for frame, whitened, sigma in zip(noisy.frames, noisy.whitened, noisy.shape_sigma, strict=True):
        moved = whitened - np.eye(d)
        moved *= _safe_fraction(np.eye(d), whitened, 1.0, sigma, missing)
        found.append(clip_eigenvalues(frame @ (np.eye(d) + moved) @ frame.T, least, largest))
    return np.array(found)


def _shrunk_sizes(log_sizes: Floats, deviations: Floats) -> Floats:
    """Log sizes shrunk to their mean by the `deviations` of their noise."""
    # Mean and variance of true log sizes, by precision (DerSimonian and Laird, 1986).
    precisions = 1 / deviations**2
    about_mean = log_sizes - precisions @ log_sizes / precisions.sum()
    excess = float(precisions @ about_mean**2) - (len(log_sizes) - 1)
    n_precise = precisions.sum() - precisions @ precisions / precisions.sum()
    variance = max(excess / max(n_precise, 1e-300), 0.0)
    precisions = 1 / (variance + deviations**2)
    mean = precisions @ log_sizes / precisions.sum()
    return np.asarray(mean + (log_sizes - mean) * variance * precisions)


def _shrunk_shapes(shapes: Floats, log_frames: Floats, noisy: Scatters) -> Floats:
    """Shrink `shapes`, of mean eigenvalue 1 in their frames, towards a common one.

    The common one is itself shrunk towards a round one. It has determinant 1, as results have.
    `log_frames` are mean logs of the squared diagonals of frames; `noisy` has relative noise.
    """
    n_shape, p = noisy.n_shape, noisy.weights
    common = _round_or_not(
        np.einsum("j,jab->ab", p, shapes), float(p**2 @ noisy.shape_sigma**2), n_shape
    )
    noise_variance = noisy.shape_sigma**2
    excess = _mean_squares(shapes - common, log_frames, noisy) - noise_variance
    variances = _variances_beyond_noise(excess, noise_variance)
    kept_fractions = variances / np.maximum(variances + noise_variance, 1e-300)
    each = zip(shapes, kept_fractions, noisy.shape_sigma, strict=True)
    fractions = [_safe_fraction(common, shape, kept, sigma) for shape, kept, sigma in each]
    return np.array([
        _unit_shape(common + fraction * (shape - common))
        for shape, fraction in zip(shapes, fractions, strict=True)
    ])  # fmt: skip


def _variances_beyond_noise(excess: Floats, noise_variance: Floats) -> Floats:
    """Variances (k,) of shapes: halfway from the `excess` of each over noise to the mean excess."""
    # A mean square of n normal numbers has the variance 2 (true variance + noise)^2 / n. The true
    # variance is not known yet: take the median noise.
    precision = 1 / np.maximum(noise_variance + np.median(noise_variance), 1e-300) ** 2
    mean = precision @ excess / precision.sum()
    return (np.maximum(mean, 0.0) + np.maximum(excess, 0.0)) / 2


def _mean_squares(differences: Floats, log_frames: Floats, noisy: Scatters) -> Floats:
    """Mean squares (k,) of traceless coordinates, in the frames in which noise is isotropic."""
    d, pairs = differences.shape[1], zip(differences, noisy.frames, strict=True)
    whitened = [_in_frame(difference, frame) for difference, frame in pairs]
    traceless = np.array([one - np.eye(d) * np.trace(one) / d for one in whitened])
    # Shapes are covariances over exp(log_frames).
    traceless *= np.exp(log_frames)[:, None, None]
    return np.asarray(np.square(traceless).sum(axis=(1, 2)) / noisy.n_shape)


def _round_or_not(common: Floats, noise_variance: float, n_shape: int) -> Floats:
    """Shape of determinant 1, shrunk to a round one by its noise."""
    d = len(common)
    common = clip_eigenvalues(common, LEAST_OF_LARGEST, np.inf)  # noise may make some negative
    common /= np.exp(np.linalg.slogdet(common)[1] / d)
    round_shape = np.eye(d) * np.trace(common) / d
    squares = float(np.square(_in_frame(common - round_shape, np.linalg.cholesky(common))).sum())
    fraction = max(1 - n_shape * noise_variance / max(squares, 1e-300), 0.0)
    fraction = _safe_fraction(round_shape, common, fraction, float(np.sqrt(noise_variance)))
    common = round_shape + fraction * (common - round_shape)
    return np.asarray(common / np.exp(np.linalg.slogdet(common)[1] / d))


def _safe_fraction(
    base: Floats, shape: Floats, fraction: float, noise: float, least_kept: float = LEAST_KEPT
) -> float:
    """Fraction of the way from `base` to `shape`, lowered where `noise` of a coordinate is large.

    It then keeps at least the part `least_kept` of the base in every direction.
    """
    # The operator norm of such noise is about noise sqrt(2 d).
    if noise * np.sqrt(2 * len(base)) < defaults.LARGE_NOISE or fraction <= 0:
        return fraction
    least = float(np.linalg.eigvalsh(_in_frame(shape - base, np.linalg.cholesky(base)))[0])
    return min(fraction, (1 - least_kept) / max(-least, 1e-9))


def _unit_shape(shape: Floats) -> Floats:
    """Shape of determinant 1, with eigenvalues of `LEAST_OF_LARGEST` of the largest at least."""
    values, vectors = np.linalg.eigh((shape + shape.T) / 2)
    largest = float(values[-1])
    values = np.maximum(values, LEAST_OF_LARGEST * (largest if largest > 0 else 1.0))
    return np.asarray((vectors * (values / np.exp(np.log(values).mean()))) @ vectors.T)


def _in_frame(matrix: Floats, frame: Any) -> Floats:
    """Symmetric `matrix` M whitened by a lower factor F: F^-1 M F'^-1."""
    half = np.linalg.solve(frame, matrix)
    return np.asarray(np.linalg.solve(frame, half.T))


def clip_eigenvalues(covariance: Floats, least: float, largest: float) -> Floats:
    """Covariance with eigenvalues between `least` and `largest`.

    They are also `LEAST_OF_LARGEST` of its largest at least.
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    low = max(least, LEAST_OF_LARGEST * max(float(values[-1]), 0.0))
    clipped = (vectors * np.clip(values, min(low, largest), largest)) @ vectors.T
    return np.asarray((clipped + clipped.T) / 2)
