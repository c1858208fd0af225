"""Start of a mixture: many small spheres in the leading directions, moved and merged."""

import math
from dataclasses import dataclass, replace

import numpy as np

from sktensor_dp.mixtures.clipping import Clipping, Scales
from sktensor_dp.mixtures.gaussians import Gaussians
from sktensor_dp.mixtures.shrinkage import LEAST_OF_LARGEST
from sktensor_dp.tensor.arrays import Floats, Integers

# Candidates for each sphere's centre. In q directions their distances are 64^(-1/q) of those of
# centres, a quarter in three: more candidates would move centres by less than a sphere's radius.
TRIES = 64
LONGEST = 1.4  # largest distance of a centre, in roots of the number of directions
# A sphere's weight has to exceed its noise by this many standard deviations.
RESOLVED = 3.0
LEAST_WEIGHT = 1e-4
# Squared scales of the parts of a sphere's statistic: with these the largest distance of two rows
# in one sphere is that of rows in two.
SPHERE_SCALES = Scales(weight=1.0, shift=1.0, size=1.0, shape=0.0)


@dataclass(frozen=True, eq=False)
class Spheres:
    """Small spheres of one variance in the leading directions of a covariance."""

    weights: Floats  # (K,)
    centres: Floats  # (K, q), in the coordinates of `basis` about `mean`
    variance: float
    basis: Floats  # (d, q), orthonormal columns
    mean: Floats  # (d,)
    rest: Floats  # (d, d): covariance outside the span of the basis

    @property
    def whitener(self) -> Floats:
        """Matrix (1, q, d) from centred rows to rows with identity covariance in each sphere."""
        return self.basis.T[None] / math.sqrt(self.variance)

    @property
    def means(self) -> Floats:
        """Centres in the coordinates of the data; (K, d)."""
        return np.asarray(self.mean + self.centres @ self.basis.T)

    @property
    def gaussians(self) -> Gaussians:
        """Mixture of the spheres in all directions, with `rest` outside the leading ones."""
        covariance = self.variance * self.basis @ self.basis.T + self.rest
        return Gaussians(self.weights, self.means, np.tile(covariance, (len(self.weights), 1, 1)))


def small_spheres(
    mean: Floats, covariance: Floats, noise: float, radius: float, n_directions: int,
    n_spheres: int, rng: np.random.Generator,
) -> Spheres:  # fmt: skip
    """Spheres spread over `n_directions` leading directions of a covariance.

    `noise` is the deviation of a coordinate of the covariance.
    """
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, -(radius**2), radius**2)  # rows in a ball vary by no more
    n_rest = len(mean) - n_directions
    leading = np.maximum(values[n_rest:], max(noise, LEAST_OF_LARGEST * abs(values[-1])))
    basis, outside = vectors[:, n_rest:], vectors[:, :n_rest]
    # A row is at most two radii from the mean, about which centres are.
    centres = scaled_down_to_radius(
        _spread_points(n_spheres, n_directions, rng) * np.sqrt(leading), 2 * radius
    )
    # Spheres that fill the volume of one have its radius over the n-th root of their number.
    variance = float(leading.mean()) / n_spheres ** (2 / n_directions)
    rest = (outside * _shrunk_to_mean(values[:n_rest], noise)) @ outside.T
    return Spheres(np.full(n_spheres, 1 / n_spheres), centres, variance, basis, mean, rest)


def in_all_columns(spheres: Spheres, chosen: Integers, mean: Floats, variances: Floats) -> Spheres:
    """Spheres in all d columns by those in `chosen` ones; others have this mean and variances."""
    basis, rest = np.zeros((len(mean), spheres.basis.shape[1])), np.diag(variances)
    basis[chosen] = spheres.basis
    rest[np.ix_(chosen, chosen)] = spheres.rest
    return replace(spheres, basis=basis, mean=mean, rest=rest)


def spheres_after_step(
    spheres: Spheres, statistics: Floats, sigma: float, clip: Clipping, radius: float,
    rng: np.random.Generator, *, drops: bool,
) -> Spheres:  # fmt: skip
    """Spheres after an EM step, by noisy `statistics` of deviation `sigma`.

    These are weights (K,), shifts (K, q) in units of the clip, and one size in squared clips. A
    sphere that no rows support is put beside a heavy one; a step that `drops` leaves it out, unless
    no sphere is supported.
    """
    k, width = spheres.centres.shape
    weights, shifts, sizes = np.split(statistics, [k, k + k * width])
    shifts, size = shifts.reshape(k, width), float(sizes[0])
    clip_length = clip.limit * math.sqrt(spheres.variance)  # in the coordinates of the data
    counts = np.maximum(weights, max(RESOLVED * sigma, 1e-9))
    shifts = shifts / counts[:, None]
    squares = np.maximum(np.square(shifts).sum(axis=1), 1e-24)
    # James-Stein: what the squared length has beyond the variance of noise in its coordinates.
    kept_fractions = np.clip(1 - width * (sigma / counts) ** 2 / squares, 0, 1)
    centres = spheres.centres + clip_length * shifts * kept_fractions[:, None]
    # Clipped size minus its expectation for a normal law, divided by its derivative; noise may make
    # it negative: a step at most halves the deviation, or doubles the variance.
    growth = 1 + (size * clip.limit**2 / width - clip.mean) / clip.size_response
    variance = min(spheres.variance * float(np.clip(growth, 0.25, 2)), radius**2)
    alive = weights > RESOLVED * sigma
    shares = np.maximum(weights, LEAST_WEIGHT)
    shares /= shares.sum()
    if not drops:
        _put_beside_heaviest(np.flatnonzero(~alive), shares, centres, variance, rng)
    elif alive.any():
        shares, centres = shares[alive] / shares[alive].sum(), centres[alive]
    centres = scaled_down_to_radius(centres, 2 * radius)
    return Spheres(shares, centres, variance, spheres.basis, spheres.mean, spheres.rest)


def _spread_points(n_points: int, n_directions: int, rng: np.random.Generator) -> Floats:
    """Points (K, q): 0, then of many normal ones, none far out, each farthest from all before."""
    points = rng.standard_normal((TRIES * n_points, n_directions))
    points = points[np.linalg.norm(points, axis=1) < LONGEST * math.sqrt(n_directions)]
    found = [np.zeros(n_directions)]
    distances = np.linalg.norm(points, axis=1)
    while len(found) < n_points:
        found.append(points[distances.argmax()])
        distances = np.minimum(distances, np.linalg.norm(points - found[-1], axis=1))
    return np.array(found)


def _shrunk_to_mean(values: Floats, noise: float) -> Floats:
    """Eigenvalues outside the leading directions, shrunk to their mean by their noise."""
    # Least variance outside the leading directions, relative to the mean one.
    least_left = 0.05
    if not len(values):
        return values
    mean = max(float(values.mean()), noise)
    about_mean = values - mean
    # Noise adds its variance for each orthonormal coordinate.
    by_noise = noise**2 * len(values) * (len(values) + 1) / 2
    kept_fraction = max(0.0, 1 - by_noise / max(float(about_mean @ about_mean), 1e-300))
    return np.maximum(mean + kept_fraction * about_mean, least_left * mean)


def scaled_down_to_radius(points: Floats, radius: float) -> Floats:
    """Scale rows of `points` that are longer than `radius` down to that length."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return points * (radius / np.maximum(lengths, max(radius, 1e-300)))


def _put_beside_heaviest(
    unsupported: Integers, shares: Floats, centres: Floats, variance: float,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Move each unsupported sphere to a random point about the heaviest one; they share its weight.

    The point is as far as rows of a sphere are. `shares` and `centres` are changed in place.
    """
    width = centres.shape[1]
    for j in unsupported:
        heavy = int(shares.argmax())
        step = rng.standard_normal(width)
        centres[j] = centres[heavy] + math.sqrt(variance * width) * step / np.linalg.norm(step)
        shares[heavy] /= 2
        shares[j] = shares[heavy]
