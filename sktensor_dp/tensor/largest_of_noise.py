"""Size of the largest eigenvalue or component that noise alone shows, and what is beyond it."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats

# Probability that noise passes for a component, and the quantile of the Tracy-Widom law of order
# one (of the largest eigenvalue of noise) at it.
LEVEL, TRACY_WIDOM = 0.01, 2.02


def edge_of_noise(sigma: Any, size: Any) -> Any:
    """Largest eigenvalue, about, of symmetric noise of deviation `sigma` on the diagonal.

    The matrix has `size` rows; it has the same noise in all orthonormal coordinates.
    """
    # Entries off the diagonal have deviation s = sigma / sqrt(2), and the largest eigenvalue is
    # about 2 s sqrt(size).
    return sigma * np.sqrt(2 * size)


def beyond_noise(values: NDArray[np.floating[Any]], noise: float) -> Floats:
    """Eigenvalues (d,) without noise, from all d of a noisy matrix; 0 where these may be noise.

    `noise` is the deviation on the diagonal.
    """
    # An eigenvalue v appears as v + e^2 / 4 v, e the edge of the noise (Baik, Ben
    # Arous & Peche, 2005).
    edge = edge_of_noise(noise, len(values))
    above = np.maximum(values, edge)
    return np.where(values > edge, (above + np.sqrt((above - edge) * (above + edge))) / 2, 0.0)


def largest_over_edge(size: int, n_blocks: int) -> float:
    """Largest eigenvalue of symmetric noise over its edge, exceeded with the probability `LEVEL`.

    The matrix, of this size, may consist of blocks with the same edge.
    """
    # With entries of variance 1 it is about 2 d^(1/2) + d^(-1/6) t, t of Tracy and Widom's law. The
    # logarithm of P(T > t) falls with 2/3 t^(3/2), and each of k blocks has a k-th of the level.
    tail = (TRACY_WIDOM**1.5 + 1.5 * math.log(n_blocks)) * n_blocks / size
    return float(1 + tail ** (2 / 3) / 2)


def largest_of_noise(*lengths: float) -> float:
    """Norm that no component of noise of unit variance exceeds, but with the probability `LEVEL`.

    Noise fills a tensor with modes of these lengths.
    """
    # For a matrix it is the largest singular value, whose square is m + s t, with m = (sum of
    # roots)^2, s = sqrt(m) (sum of 1 / root)^(1/3) and t of Tracy and Widom's law (Johnstone 2001);
    # so it is about sqrt(m) + s t / (2 sqrt(m)). For more modes the sum of roots bounds the mean of
    # the largest norm (Chevet, 1978), and fluctuations are smaller.
    roots = [math.sqrt(length) for length in lengths]
    return sum(roots) + TRACY_WIDOM / 2 * sum(1 / root for root in roots) ** (1 / 3)
