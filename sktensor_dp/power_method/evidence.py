"""How many Gaussians the released second moment speaks for."""

import math

import numpy as np

from sktensor_dp.tensor.arrays import Floats

# Variance below which, relative to the square of the largest eigenvalue, nothing is told apart.
LEAST = 1e-12


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
    least = max(LEAST * float(np.abs(spectrum).max()) ** 2, 1e-300)
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
