"""Clips of whitened rows: limits, their effect on normal rows, and scales of statistics."""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, lambertw, ndtr
from scipy.stats import beta, chi2

from sktensor_dp.mixtures import defaults
from sktensor_dp.tensor.arrays import Floats

# Numbers of rows of `bounded_rows`, and of quantiles of their columns.
N_ROWS, N_QUANTILES = 2000, 200


class Scales(NamedTuple):
    """Squared scales of the parts of a row's statistic, each divided by its largest value."""

    weight: float  # of the responsibility
    shift: float  # of the whitened row
    size: float  # of its squared length
    shape: float  # of the traceless part of its square


@dataclass(frozen=True)
class Clipping:
    """Clips of whitened rows y at lengths, with their effect on standard normal rows."""

    width: int  # number of coordinates
    quantile: float  # of the length of standard normal rows, which is `limit`
    limit: float  # length at which rows are clipped for sizes and shapes
    far: float  # the same for shifts; `limit` or more
    mean: float  # of |y|^2 / width, clipped
    # Derivatives of clipped means of rows in their shift, size and traceless shape. EM steps divide
    # by them, as clipped rows move less than the model does.
    shift_response: float
    size_response: float
    shape_response: float

    @property
    def centre(self) -> float:
        """Expected squared length, in units of the squared limit."""
        return self.mean * self.width / self.limit**2

    def scales(self, n_shape: int, *, alone: bool = False) -> Scales:
        """Squared scales of parts with which noise loses least log-likelihood.

        Those of weight, shift and shape add up to 1; that of size comes on top. The shape of one
        Gaussian, `alone`, has no larger scale than its shift.
        """
        # A part of squared scale a gets noise of variance 1 / a and loses c / a: the sum is least
        # for a in proportion to sqrt(c). c is half the number of coordinates times their
        # information times the squared limit; the `n_shape` coordinates of a shape tell 1 / 2 each.
        d, square = self.width, self.limit**2
        weight, shift = math.sqrt(0.5), math.sqrt(0.5 * d) * self.far
        shape = math.sqrt(n_shape / 4) * square
        if alone:
            shape = min(shape, shift)
        whole = weight + shift + shape
        # Sizes raise the sensitivity by a sixth at most, to adding or removing a unit by a fifth.
        size = 0.5 * (shift + shape)
        return Scales(weight / whole, shift / whole, size / whole, shape / whole)


@cache
def clipping_at(width: int, quantile: float, far: float = 0.0) -> Clipping:
    """Clip at a `quantile` of lengths of standard normal rows, for shifts at `far` if larger."""
    d, square = width, float(chi2.ppf(quantile, width))
    limit = math.sqrt(square)
    far = max(far, limit)

    # `below(d + p)` is the part of E |y|^p that rows shorter than a limit have.
    def below(degrees: int, limit: float = limit) -> float:
        return float(chi2.cdf(limit**2, degrees))

    # Clipped mean square of a column, E min(|y|^2, limit^2) / d; its derivative in the size of y is
    # E |y|^2 / d over shorter rows.
    mean = (d * below(d + 2) + square * (1 - below(d))) / d
    size = below(d + 2)
    # By Stein's lemma the derivative in a shift is E |y|^2 min(1, far / |y|) / d ...
    mean_length = math.exp(0.5 * math.log(2) + gammaln((d + 1) / 2) - gammaln(d / 2))
    length_of_longer = mean_length * (1 - below(d + 1, far))
    shift = (d * below(d + 2, far) + far * length_of_longer) / d
    # ... and in a traceless shape E |y|^4 min(1, (limit / |y|)^2) / (d (d + 2)).
    shape = d * (d + 2) * below(d + 4) + d * square * (1 - below(d + 2))
    return Clipping(
        d, quantile, limit, far, mean, shift_response=shift, size_response=size,
        shape_response=shape / (d * (d + 2)),
    )  # fmt: skip


@cache
def limits_of_fewer(clip: Clipping) -> tuple[float, ...]:
    """Limits for rows of 1, ..., width - 1 coordinates with the `shift_response` of `clip`.

    Where rows that lack cells have other means than complete ones, as by dropout, shifts of both
    then add up to 0 at the mean of all.
    """

    def beyond(quantile: float, width: int) -> float:
        return clipping_at.__wrapped__(width, quantile).shift_response - clip.shift_response

    quantiles = [brentq(beyond, 1e-9, 1 - 1e-9, args=width) for width in range(1, clip.width)]
    return tuple(clipping_at(i, quantile).limit for i, quantile in enumerate(quantiles, start=1))


def clip_for(width: int, least: float, noise: float, by_sampling: float) -> Clipping:
    """Widest clip that noise allows, at a quantile of `least` or more.

    `noise` is that of a mean with a limit of 1. A mean is clipped where it loses as much of an
    exponential tail as noise adds, squares where their noise is `NOISE_OF_SQUARES` of the sampling
    error of a variance, `by_sampling`.
    """
    most = 1 - 1e-6  # of normal rows, to be left as they are
    if noise == 0:
        return clipping_at(width, most)
    # Beyond t deviations an exponential tail has exp(-(1 + t)) of the mean, and a limit of 1 + t
    # brings the noise (1 + t) noise. Both are equal for (1 + t) exp(1 + t) = 1 / noise, which the
    # Lambert function solves. The other coordinates have a mean square of 1 each.
    far = math.hypot(max(float(lambertw(1 / noise).real) - 1, 0.0), math.sqrt(width - 1))
    square = min(far**2, defaults.NOISE_OF_SQUARES * by_sampling / noise)
    return clipping_at(width, min(max(least, float(chi2.cdf(square, width))), most), far)


def bounded_rows(means: Floats, covariance: Floats) -> Floats:
    """Draw rows (N_ROWS, d) with columns in [-1, 1], of Beta laws with these means and variances.

    Correlations are those of a normal law that is mapped to these, corrected for columns of two
    values (Sheppard, 1899).
    """
    means, variances = np.clip(means, -0.999, 0.999), np.diagonal(covariance)
    # Variances over the largest for their means (Bhatia and Davis, 2000).
    parts = np.clip(variances / (1 - np.square(means)), 1e-3, 0.999)
    correlations = covariance / np.sqrt(np.outer(variances, variances))
    of_two = np.sqrt(np.outer(parts, parts))
    of_normal = np.sin(np.pi / 2 * np.clip(correlations, -1, 1))
    values, vectors = np.linalg.eigh((1 - of_two) * correlations + of_two * of_normal)
    normal = np.random.default_rng(0).standard_normal((N_ROWS, len(means)))
    normal = normal @ (vectors * np.sqrt(np.maximum(values, 0))).T
    normal /= normal.std(axis=0)
    a, b = (1 / parts - 1) * (1 + means) / 2, (1 / parts - 1) * (1 - means) / 2
    places = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    quantiles = 2 * beta.ppf(places[:, None], a, b) - 1
    each = zip(ndtr(normal).T, quantiles.T, strict=True)
    return np.column_stack([np.interp(one, places, of_column) for one, of_column in each])


def clip_for_rows(clip: Clipping, rows: Floats, noise: float, n_shape: int) -> Clipping:
    """Clip, no earlier than `clip`, with the least squared error of the covariance of `rows`.

    It errs by `noise`, that of a coordinate of scale 1, and by what the clip takes of rows.
    """
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(rows))
    whitened = centred @ (vectors / np.sqrt(np.maximum(values, max(1e-9 * values[-1], 1e-300))))
    squares = np.maximum(np.square(whitened).sum(axis=1), 1e-9)

    def error(one: Clipping) -> float:
        """Squared error of the whitened covariance with this clip."""
        kept = np.minimum(1, one.limit**2 / squares)
        taken = one.mean * np.eye(one.width) - (whitened * kept[:, None]).T @ whitened / len(rows)
        by_noise = n_shape / one.scales(n_shape, alone=True).shape * (noise * one.limit**2) ** 2
        return (float(np.square(taken).sum()) + by_noise) / one.shape_response**2

    beyond = (1 - clip.quantile) * 10.0 ** -np.arange(0, 10, 0.5)
    later = [min(1 - float(part), 1 - 1e-12) for part in beyond]
    return min((clipping_at(clip.width, one, clip.far) for one in later), key=error)
