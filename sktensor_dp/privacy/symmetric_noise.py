"""Noise on symmetric matrices and tensors: second moments, and third moments of counts. Those of
samples are packed into a vector in queries/samples.py.

Noise is added to either of two coordinates (docs/proofs/symmetric_noise.md):

``symmetric`` and, of matrices, ``matrix``
    Unique entries times the root of their multiplicity: the norm is that of Frobenius. Noise is
    invariant under rotations, so a projection of it can be drawn in the subspace alone.
``pairs``
    Unique entries times their multiplicity, as of a histogram: the mass of each multiset of words.
    Noise off the diagonal of a matrix is smaller by 2.
"""

import math
from functools import partial

import numpy as np

from sktensor_dp.privacy.noise_on_grid import NoiseSource
from sktensor_dp.tensor.arrays import Floats, rows_at_once
from sktensor_dp.tensor.symmetric import coordinates_to_symmetric, symmetric_to_coordinates


def _on_unique(
    method: str, value: Floats, sensitivity: float, strength: float, noise: NoiseSource,
    *geometry: object,
) -> Floats:  # fmt: skip
    """Add noise to the orthonormal coordinates of a symmetric array."""
    coordinates = symmetric_to_coordinates(value)
    coordinates /= sensitivity
    coordinates = getattr(noise, method)(coordinates, strength, *geometry)
    coordinates *= sensitivity
    return coordinates_to_symmetric(coordinates, value.shape[0], value.ndim)


# Isotropic noise on a third-order tensor, by its sensitivity in the Frobenius norm. On a projection
# `E(U, U, U)` with orthonormal `U` it has the law of projected isotropic noise on the whole space.
gaussian_symmetric = partial(_on_unique, "gaussian")
# Density exp(-epsilon |b|_2 / sensitivity) in the Frobenius norm (AVN); the last argument is as for
# `spherical_laplace_vector`.
spherical_laplace_symmetric = partial(_on_unique, "spherical_laplace")


def _on_triangle(
    method: str,
    value: Floats,
    sensitivity: float,
    strength: float,
    noise: NoiseSource,
    diagonal_weight: float = 1.0,
    pair_weight: float = 2.0,
) -> Floats:
    """Add independent noise to the weighted distinct entries of a symmetric matrix, in place."""
    # Weights 2 and 1 give the histogram of pairs, sqrt(2) and 1 isotropic noise; a smaller diagonal
    # weight reduces the sensitivity to documents that repeat a word. Rows of the upper triangle are
    # drawn in blocks, as memory may not hold a second matrix of many words.
    # The one whose rows lie together in memory: the transpose is equal by symmetry.
    released = value if value.flags.c_contiguous else value.T
    size, start = len(released), 0
    while start < size:
        stop = min(start + rows_at_once(size - start, caches=1 / 4), size)
        i, j = np.triu_indices(stop - start, start, size)
        i += start
        diagonal = i == j
        weighted = released[i, j] * np.where(diagonal, diagonal_weight, pair_weight) / sensitivity
        weighted = getattr(noise, method)(weighted, strength, size * (size + 1) // 2) * sensitivity
        noisy = np.where(diagonal, weighted * (1 / diagonal_weight), weighted / pair_weight)
        released[i, j] = released[j, i] = noisy
        start = stop
    return released


# Isotropic Gaussian noise on a matrix, drawn in blocks as for pairs.
gaussian_matrix = partial(_on_triangle, "gaussian", pair_weight=math.sqrt(2))
gaussian_pair_masses = partial(_on_triangle, "gaussian")
# Needs the L1 sensitivity.
laplace_pair_masses = partial(_on_triangle, "laplace")
