"""Mechanisms: (value, sensitivity, cost) -> noisy value.

Each maps its statistic to coordinates in which sensitivity and noise have the same norm, adds noise
by `NoiseSource`, and maps back. Coordinates of symmetric matrices and tensors, such as second
moments, and third moments of counts (docs/proofs/symmetric_noise.md; third moments of samples are
packed into a vector in queries/samples.py):

``symmetric`` and, of matrices, ``matrix``
    Unique entries times the root of their multiplicity: the norm is that of Frobenius. Noise is
    invariant under rotations, so a projection of it can be drawn in the subspace alone.
``pairs``
    Unique entries times their multiplicity, as of a histogram: the mass of each multiset of words.
    Noise of entries off the diagonal of a matrix is half as large.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from sktensor_dp.privacy.calibration import spherical_spread
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries import laws
from sktensor_dp.queries.query import Coordinates
from sktensor_dp.tensor.arrays import Floats, rows_at_once
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    n_unique,
    symmetric_to_coordinates,
)

# Number of grid points to half the range: rounding moves a value by at most 2.4e-7 of the range.
POINTS = 2**20
# Probabilities are multiples of 1 / WHOLE.
WHOLE = 2**64
# Range of epsilon of the piecewise mechanism. Larger ones count as the largest, beyond which no
# multiple of 1 / WHOLE is small enough.
PIECEWISE_EPSILONS = 1e-9, 44.0
# Bound on the relative error of exp and expm1 in double precision.
RELATIVE_ERROR = Fraction(1, 2**50)


@dataclass(frozen=True)
class Mechanism:
    """Law of noise, drawn in the coordinates of a query."""

    law: laws.Law
    # ``(value, sensitivity, strength, noise, *query_attributes) -> noisy value``. The strength is
    # mu or epsilon, whichever the law spends; the value may be overwritten.
    draw: Callable[..., Floats]
    # Public attributes of the query that determine the noise, if any: the dimension of the space
    # before projection, or the weight of the diagonal.
    query_attributes: tuple[str, ...] = ()

    def release(
        self,
        value: Floats,
        sensitivity: float,
        cost: PrivacyCost,
        noise: NoiseSource,
        query: object,
    ) -> Floats:
        """Add noise at the given `cost` to `value`, whose memory may be overwritten."""
        # Noise is drawn by the strength; sigma is for the record.
        sigma, strength = sigma_of(self.law, sensitivity, cost), self.law.strength(cost)
        noise.recorder.record(self.law.id, query, value, sensitivity, sigma)
        if math.isinf(strength):
            return value
        geometry = (getattr(query, name) for name in self.query_attributes)
        return self.draw(value, sensitivity, strength, noise, *geometry)

    @property
    def residual(self) -> str:
        """Note in reports on how far the program may be from the law; empty if it draws exactly."""
        return IN_DOUBLES if self.law.spherical else ""


IN_DOUBLES = (
    "Spherical Laplace noise is drawn in double precision: epsilon and delta are those of its "
    "law. By an estimate, which is no proof, the program adds about 1e-16 to delta for every "
    "release, and to epsilon a share of 1e-7 in tens of dimensions and of up to a hundredth "
    "in the space of all triples of thousands of words: see "
    "docs/proofs/gaussian_noise_on_a_grid.md."
)


def sigma_of(law: laws.Law, sensitivity: float, cost: PrivacyCost) -> float:
    """Standard deviation of a coordinate's noise; of spherical noise its mean norm per dimension.

    Of piecewise noise it is that of a value in the middle of the range, where it is least.
    """
    strength = law.strength(cost)
    if math.isinf(strength):
        return 0.0
    if law is laws.PIECEWISE:
        return sensitivity * piecewise_deviation(strength)
    scale = sensitivity / strength  # of Laplace noise the deviation is sqrt(2) times its scale
    return scale * math.sqrt(2) if law.norm == "l1" else scale


def _on_coordinates(
    method: str, value: Floats, sensitivity: float, strength: float, noise: NoiseSource,
    *geometry: object, symmetric: bool = False,
) -> Floats:  # fmt: skip
    """Add noise to the entries of an array, or to orthonormal coordinates of a symmetric one.

    `method` is the one of `NoiseSource` that draws it.
    """
    coordinates = symmetric_to_coordinates(value) if symmetric else np.ravel(value)
    noisy = getattr(noise, method)(coordinates / sensitivity, strength, *geometry) * sensitivity
    if symmetric:
        return coordinates_to_symmetric(noisy, value.shape[0], value.ndim)
    return noisy.reshape(np.shape(value))


gaussian_vector = partial(_on_coordinates, "gaussian")
# Needs the L1 sensitivity.
laplace_vector = partial(_on_coordinates, "laplace")
# Density exp(-epsilon |b|_2 / sensitivity). The last argument, if given, is the dimension of the
# space of which the value is an orthonormal projection.
spherical_laplace_vector = partial(_on_coordinates, "spherical_laplace")
# Isotropic noise on a third-order tensor, by its sensitivity in the Frobenius norm. On a projection
# `E(U, U, U)` with orthonormal `U` it has the law of projected isotropic noise on the whole space.
gaussian_symmetric = partial(_on_coordinates, "gaussian", symmetric=True)
# Density exp(-epsilon |b|_2 / sensitivity) in the Frobenius norm (AVN).
spherical_laplace_symmetric = partial(_on_coordinates, "spherical_laplace", symmetric=True)


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
    # Weights 2 of pairs and 1 of the diagonal give the histogram of pairs, sqrt(2) and 1 isotropic
    # noise; a smaller diagonal weight reduces the sensitivity to documents that repeat a word.
    # The transpose is equal by symmetry: take the one whose rows lie together in memory.
    released = value if value.flags.c_contiguous else value.T
    size, start = len(released), 0
    n_entries = n_unique(size, 2)
    # By blocks of rows of the upper triangle, as memory may not hold a second large matrix.
    while start < size:
        stop = min(start + rows_at_once(size - start, caches=1 / 4), size)
        i, j = np.triu_indices(stop - start, start, size)
        i += start
        diagonal = i == j
        weighted = released[i, j] * np.where(diagonal, diagonal_weight, pair_weight) / sensitivity
        weighted = getattr(noise, method)(weighted, strength, n_entries) * sensitivity
        noisy = np.where(diagonal, weighted * (1 / diagonal_weight), weighted / pair_weight)
        released[i, j] = released[j, i] = noisy
        start = stop
    return released


# Isotropic Gaussian noise on a matrix, drawn in blocks as for pairs.
gaussian_matrix = partial(_on_triangle, "gaussian", pair_weight=math.sqrt(2))
gaussian_pair_masses = partial(_on_triangle, "gaussian")
# Needs the L1 sensitivity.
laplace_pair_masses = partial(_on_triangle, "laplace")


def spherical_laplace_rows(
    value: Floats, sensitivity: float, epsilon: float, noise: NoiseSource
) -> Floats:
    """Add noise of density exp(-epsilon |b|_2 / sensitivity) to each row of a matrix."""
    # Private only if neighbours differ in one row, by at most `sensitivity` in L2.
    return noise.spherical_laplace_rows(value / sensitivity, epsilon) * sensitivity


class Piecewise:
    """Piecewise mechanism for one epsilon, on integers: releases numbers from [-1/2, 1/2].

    A value c on a grid of ``2 M + 1`` points is answered by one of the ``2 h + 1`` points within
    `reach` h of it with probability ``threshold / 2^64``, and by any point outside otherwise.
    """

    def __init__(self, epsilon: float) -> None:
        least, largest = PIECEWISE_EPSILONS
        if not epsilon >= least:
            raise ValueError(f"epsilon must be at least {least:g}, got {epsilon:g}.")
        epsilon = min(epsilon, largest)
        self.points = POINTS
        # Window of nearly the least variance, for values spread evenly over their range.
        self.reach = round(POINTS * math.exp(-epsilon / 3))
        # A point of the window is `ratio` times as probable as one of the others. Rounded
        # down here and again to a multiple of 1 / WHOLE, so that it never exceeds e^epsilon.
        ratio = 1 + Fraction(math.expm1(epsilon)) * (1 - RELATIVE_ERROR)
        weight = self.window * ratio
        self.threshold = int(WHOLE * weight / (weight + 2 * POINTS))

    @property
    def window(self) -> int:
        """Number of grid points within `reach` of the value."""
        return 2 * self.reach + 1

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Probability of each point within `reach` of the value, and of each point beyond."""
        within = Fraction(self.threshold, WHOLE)
        return within / self.window, (1 - within) / (2 * self.points)

    @cached_property
    def gain(self) -> float:
        """Ratio of the expected answer to the grid point, by which answers are divided."""
        # All points have the probability `far`, and their mean is 0. Points of the window around
        # the grid point have `near - far` more.
        near, far = self.probabilities
        return float(self.window * (near - far))

    def variance(self, value: float) -> float:
        """Variance of the unbiased answer to a value in [-1/2, 1/2] on the grid."""
        # Sums over all points, which have `far`, and over the window, which has `near - far` more.
        near, far = (float(p) for p in self.probabilities)
        point = 2 * self.points * value
        mean_square = far * _sum_of_squares(self.points + self.reach)
        mean_square += (near - far) * (self.window * point**2 + _sum_of_squares(self.reach))
        return (mean_square / self.gain**2 - point**2) / (2 * self.points) ** 2

    def release(self, values: Floats, noise: NoiseSource) -> Floats:
        """Randomise each value in [-1/2, 1/2]; answers are unbiased on the grid."""
        size, outer = values.size, self.points + self.reach
        exact = np.rint(np.clip(values, -0.5, 0.5) * (2 * self.points)).astype(np.int64)
        is_near = noise.integers(WHOLE, size) < np.uint64(self.threshold)
        near = exact + noise.integers(self.window, size).astype(np.int64) - self.reach
        far = noise.integers(2 * self.points, size).astype(np.int64) - outer
        # Numbers of points beyond the window skip it.
        far[far >= exact - self.reach] += self.window
        return np.where(is_near, near, far) / (2 * self.points * self.gain)


def _sum_of_squares(n: int) -> float:
    """Sum of the squares of ``-n .. n``."""
    return n * (n + 1) * (2 * n + 1) / 3


def piecewise_values(
    value: Floats, sensitivity: float, epsilon: float, noise: NoiseSource
) -> Floats:
    """Clip numbers to ``[-sensitivity / 2, sensitivity / 2]`` and randomise each (piecewise)."""
    # Private only if neighbours differ in one number.
    return Piecewise(epsilon).release(value / sensitivity, noise) * sensitivity


def piecewise_variance(epsilon: float, value: float) -> float:
    """Variance of the piecewise noise on a value in [-1/2, 1/2]."""
    return 0.0 if math.isinf(epsilon) else Piecewise(epsilon).variance(value)


@lru_cache(maxsize=1024)
def piecewise_deviation(epsilon: float) -> float:
    """Standard deviation of the piecewise noise on a value in the middle of a range of width 1."""
    return math.sqrt(piecewise_variance(epsilon, 0.0))


# How each law is drawn in the coordinates in which a query states its bounds: the function, and
# the attribute of the query that it needs, if any.
DRAWN: tuple[tuple[laws.Law, Coordinates, Callable[..., Floats], *tuple[str, ...]], ...] = (
    (laws.GAUSSIAN, "entries", gaussian_vector),
    (laws.GAUSSIAN_SYMMETRIC, "symmetric", gaussian_symmetric),
    (laws.GAUSSIAN_SYMMETRIC, "matrix", gaussian_matrix),
    (laws.GAUSSIAN_SYMMETRIC, "pairs", gaussian_pair_masses, "diagonal_weight"),
    (laws.LAPLACE, "entries", laplace_vector),
    (laws.LAPLACE_SYMMETRIC, "pairs", laplace_pair_masses, "diagonal_weight"),
    (laws.SPHERICAL, "entries", spherical_laplace_vector, "ambient_dimension"),
    (laws.SPHERICAL, "symmetric", spherical_laplace_symmetric, "ambient_dimension"),
    (laws.SPHERICAL, "matrix", spherical_laplace_symmetric, "ambient_dimension"),
    (laws.SPHERICAL_ROWS, "entries", spherical_laplace_rows),
    (laws.PIECEWISE, "entries", piecewise_values),
)
MECHANISMS: dict[tuple[laws.Law, Coordinates], Mechanism] = {
    (law, coordinates): Mechanism(law, draw, tuple(attributes))
    for law, coordinates, draw, *attributes in DRAWN
}


def deviation_of(mechanism: Mechanism, sigma: float, value: Floats, query: Any) -> float:
    """Standard deviation of the noise along a coordinate, from the `sigma` of `sigma_of`."""
    if not mechanism.law.spherical:
        return sigma
    if mechanism.law is laws.SPHERICAL_ROWS:
        dimension = value.shape[1]
    elif query.coordinates == "entries":
        dimension = query.ambient_dimension or value.size
    else:
        dimension = query.ambient_dimension or n_unique(len(value), value.ndim)
    return sigma * spherical_spread(dimension)
