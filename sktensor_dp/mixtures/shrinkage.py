"""Shrinkage of noisy covariances to common and round shapes, by their known noise."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sktensor_dp.mixtures import defaults
from sktensor_dp.tensor.arrays import Floats

# Least and largest factor by which a step may change the size of a covariance.
SIZES = (0.2, 5.0)
# Least eigenvalue of a covariance relative to its largest.
LEAST_OF_LARGEST = 1e-4
# Least share of a base that stays in every direction where noise is large.
LEAST_KEPT = 0.5


@dataclass(frozen=True, eq=False)
class Scatters:
    """Noisy covariances in frames in which their noise is isotropic, and the noise."""

    frames: Floats  # (k, d, d): lower factors; a covariance is frame @ whitened @ frame.T
    whitened: Floats  # (k, d, d)
    weights: Floats  # (k,), adding up to 1
    shape_sigma: Floats  # (k,): of an orthonormal coordinate of the traceless part
    size_sigma: Floats  # (k,): of the mean eigenvalue
    n_shape: int  # number of coordinates of the traceless part; 0 if all is round


def shrunk_covariances(noisy: Scatters, least: float, largest: float) -> Floats:
    """Positive definite covariances (k, d, d) with eigenvalues between `least` and `largest`."""
    # Of a covariance F W F', F the frame, the size is trace(W) / d times the d-th root of det(FF'),
    # and the shape is the covariance over its size. Relative noise of a size is that of its log.
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


def unshrunk_covariances(noisy: Scatters, least: float, largest: float) -> Floats:
    """Positive definite covariances (k, d, d) that are not shrunk, by which cells are filled.

    Shrunk ones would fill cells with too little, and so be shrunk again by the filled cells. Where
    noise is large, half of the frame stays in every direction.
    """
    d, found = noisy.whitened.shape[1], []
    for frame, whitened, sigma in zip(noisy.frames, noisy.whitened, noisy.shape_sigma, strict=True):
        moved = whitened - np.eye(d)
        moved *= _safe_share(np.eye(d), whitened, 1.0, sigma, d)
        found.append(clip_eigenvalues(frame @ (np.eye(d) + moved) @ frame.T, least, largest))
    return np.array(found)


def _shrunk_sizes(log_sizes: Floats, deviations: Floats) -> Floats:
    """Log sizes moved towards their mean, by how far they spread beyond their noise."""
    # Mean and variance of the true ones, by precision (DerSimonian and Laird, 1986).
    precisions = 1 / deviations**2
    about_mean = log_sizes - precisions @ log_sizes / precisions.sum()
    excess = float(precisions @ about_mean**2) - (len(log_sizes) - 1)
    n_precise = precisions.sum() - precisions @ precisions / precisions.sum()
    variance = max(excess / max(n_precise, 1e-300), 0.0)
    precisions = 1 / (variance + deviations**2)
    mean = precisions @ log_sizes / precisions.sum()
    return np.asarray(mean + (log_sizes - mean) * variance * precisions)


def _shrunk_shapes(shapes: Floats, log_frames: Floats, noisy: Scatters) -> Floats:
    """Shapes (determinant 1) moved to a common one, and that to a round one.

    `log_frames`: mean log of the squared diagonal of each frame.
    """
    d, n_shape, p = shapes.shape[1], noisy.n_shape, noisy.weights
    # The common shape: the weighted mean, itself shrunk to a round one.
    common = _round_or_not(
        np.einsum("j,jab->ab", p, shapes), float(p**2 @ noisy.shape_sigma**2), n_shape
    )
    noise_variance = noisy.shape_sigma**2
    excess = _mean_squares(shapes - common, log_frames, noisy) - noise_variance
    variances = _variances_beyond_noise(excess, noise_variance, n_shape)
    # Keep of each shape's own part what its variance has of variance and noise together.
    kept_fractions = variances / np.maximum(variances + noise_variance, 1e-300)
    each = zip(shapes, kept_fractions, noisy.shape_sigma, strict=True)
    shares = [_safe_share(common, shape, share, sigma, d) for shape, share, sigma in each]
    return np.array([
        _unit_shape(common + share * (shape - common))
        for shape, share in zip(shapes, shares, strict=True)
    ])  # fmt: skip


def _variances_beyond_noise(excess: Floats, noise_variance: Floats, n_shape: int) -> Floats:
    """Variances (k,) of shapes, halfway from the `excess` over noise of each to the mean of all.

    An excess counts as 0 where noise explains it.
    """
    chance = np.sqrt(2 / n_shape)  # relative deviation of a mean square of n_shape normal numbers
    own = np.where(excess > defaults.SEEN * noise_variance * chance, excess, 0.0)
    if len(excess) == 1:
        return own
    # A mean square of normal numbers has the variance 2 (true variance + noise)^2 / n_shape; for
    # the true variance, which is not known yet, stands the median noise.
    precision = 1 / np.maximum(noise_variance + np.median(noise_variance), 1e-300) ** 2
    precision /= precision.sum()
    mean = max(float(precision @ excess), 0.0)
    if mean <= defaults.SEEN * chance * np.sqrt(precision**2 @ noise_variance**2):
        mean = 0.0
    return (mean + own) / 2


def _mean_squares(differences: Floats, log_frames: Floats, noisy: Scatters) -> Floats:
    """Mean square (k,) of a traceless coordinate, in the frames in which noise is isotropic."""
    d, pairs = differences.shape[1], zip(differences, noisy.frames, strict=True)
    whitened = [_in_frame(difference, frame) for difference, frame in pairs]
    traceless = np.array([one - np.eye(d) * np.trace(one) / d for one in whitened])
    # Shapes are covariances over exp(log_frames).
    traceless *= np.exp(log_frames)[:, None, None]
    return np.asarray(np.square(traceless).sum(axis=(1, 2)) / noisy.n_shape)


def _round_or_not(common: Floats, noise_variance: float, n_shape: int) -> Floats:
    """Shape of determinant 1, moved towards a round one by the part of it that noise explains."""
    d = len(common)
    common = clip_eigenvalues(common, LEAST_OF_LARGEST, np.inf)  # noise may make some negative
    common /= np.exp(np.linalg.slogdet(common)[1] / d)
    round_shape = np.eye(d) * np.trace(common) / d
    squares = float(np.square(_in_frame(common - round_shape, np.linalg.cholesky(common))).sum())
    by_noise = n_shape * noise_variance
    share = 0.0
    if squares > by_noise * (1 + defaults.SEEN * np.sqrt(2 / n_shape)):
        share = 1 - by_noise / squares
    share = _safe_share(round_shape, common, share, float(np.sqrt(noise_variance)), d)
    common = round_shape + share * (common - round_shape)
    return np.asarray(common / np.exp(np.linalg.slogdet(common)[1] / d))


def _safe_share(base: Floats, shape: Floats, share: float, noise: float, d: int) -> float:
    """Share of the way from `base` to `shape`, lowered where noise is large.

    It then leaves at least `LEAST_KEPT` of the base in every direction.
    """
    # The norm of symmetric noise of this deviation in orthonormal coordinates is noise sqrt(2 d).
    if noise * np.sqrt(2 * d) < defaults.LARGE_NOISE or share <= 0:
        return share
    least = float(np.linalg.eigvalsh(_in_frame(shape - base, np.linalg.cholesky(base)))[0])
    return min(share, (1 - LEAST_KEPT) / max(-least, 1e-9))


def _unit_shape(shape: Floats) -> Floats:
    """Shape of determinant 1, with eigenvalues not too far below their largest."""
    values, vectors = np.linalg.eigh((shape + shape.T) / 2)
    largest = float(values[-1])
    values = np.maximum(values, LEAST_OF_LARGEST * (largest if largest > 0 else 1.0))
    return np.asarray((vectors * (values / np.exp(np.log(values).mean()))) @ vectors.T)


def _in_frame(matrix: Floats, frame: Any) -> Floats:
    """Symmetric `matrix` whitened by a lower factor."""
    half = np.linalg.solve(frame, matrix)
    return np.asarray(np.linalg.solve(frame, half.T))


def clip_eigenvalues(covariance: Floats, least: float, largest: float) -> Floats:
    """Covariance with eigenvalues between `least` and `largest`, and not far below its largest."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    low = max(least, LEAST_OF_LARGEST * max(float(values[-1]), 0.0))
    clipped = (vectors * np.clip(values, min(low, largest), largest)) @ vectors.T
    return np.asarray((clipped + clipped.T) / 2)
