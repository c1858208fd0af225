"""Statistics of samples in a Gaussian mixture, and what one mixture gains over another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.mixtures.clipping import Scales
from sktensor_dp.mixtures.gaussians import Gaussians, log_density, shares_of, whitened_rows
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE, SPHERICAL
from sktensor_dp.queries.query import (
    NORM_SLACK,
    RADIUS,
    Bounded,
    Signed,
    check_array,
    check_number,
)
from sktensor_dp.queries.samples import SampleChunk
from sktensor_dp.queries.units import sum_over_rows
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.symmetric import symmetric_to_coordinates

# What is released of the shape of each group: all of yy', its diagonal, or its trace alone.
SHAPES = ("full", "diag", "spherical")
# Largest whitener times radius, and log of weight times density: squares stay finite.
LARGEST_WHITENED, LARGEST_LOG = 1e50, 1e5
LIMITS = (1e-3, 1e6)
# Of the log-density that a mixture gains on a sample, in nats, on either side.
MOST_GAIN = 3.0


@dataclass(frozen=True, eq=False)
class MixtureStatistics(Bounded):
    """Sum over units of weights, whitened shifts, sizes and shapes in each group of a mixture."""

    name, family = "mixture_statistics", "samples"
    description = "mean weight, shift and shape of samples in each group of a released mixture"
    laws = (GAUSSIAN, SPHERICAL)

    means: Floats  # (k, d)
    whiteners: Floats  # (k, q, d), or (1, q, d) that all groups share
    log_scales: Floats  # (k,): log of weight times density at the mean
    limit: float  # length that whitened rows are clipped to
    centre: float  # of squared lengths, in squared limits: 0 to 1
    scales: Scales  # squared scales of weight, shift, size and shape
    radius: float  # length that rows are scaled to before anything else
    shape: str = "full"  # one of SHAPES
    pooled: bool = False  # whether sizes and shapes are added up over groups

    def __post_init__(self) -> None:
        check_number("the radius", self.radius, RADIUS)
        check_number("the limit", self.limit, LIMITS)
        check_number("the centre", self.centre, (0.0, 1.0))
        check_array("the whiteners", self.whiteners, LARGEST_WHITENED / self.radius)
        check_array("the means", self.means, self.radius)
        check_array("log_scales", self.log_scales, LARGEST_LOG)
        for scale in self.scales:
            check_number("a scale", scale, (0.0, 1.0))
        _, b, h, g = self.scales
        if h + g > (2 * b if b >= 2 * self._spread_shape else b + 2 * self._spread_shape):
            raise ValueError("the scale of sizes is too large beside those of shifts and shapes.")
        if (self.scales.shape > 0) != (self.shape != "spherical" and self.width > 1):
            raise ValueError("shapes have a scale above 0 where there is more than one size.")

    @property
    def width(self) -> int:
        """Number q of whitened coordinates."""
        return int(self.whiteners.shape[1])

    @property
    def l2_sensitivity(self) -> float:
        """Largest L2 distance of two contributions, in one group or in two."""
        a, b, h, _ = self.scales
        shape = self._spread_shape
        near = 4 * b if b >= 2 * shape else 2 * b + 2 * shape + b**2 / (2 * shape)
        apart = 2 * self._largest_square
        if self.pooled:
            apart = 2 * a + max(2 * b + 2 * shape, b + h + self.scales.shape)
        return NORM_SLACK * math.sqrt(max(near, apart))

    @property
    def l1_sensitivity(self) -> float:
        """No L1 bound is claimed."""
        return math.inf

    def _largest_norms(self) -> tuple[float, float]:
        return NORM_SLACK * math.sqrt(self._largest_square), math.inf

    @property
    def _largest_square(self) -> float:
        """Largest squared norm of the statistic of a row in one group: of none or at the limit."""
        a, b, h, g = self.scales
        return a + max(h * self.centre**2, b + g + h * (1 - self.centre) ** 2)

    @property
    def _spread_shape(self) -> float:
        """Scale of shapes times q / (q - 1): of them traces are taken out."""
        return self.scales.shape * self.width / (self.width - 1) if self.width > 1 else 0.0

    def total(self, chunk: SampleChunk) -> Floats:
        """Weights (k,), shifts (k, q), then shapes of each group or of all; as one vector."""
        weights = chunk.units.shares
        sums = sum_over_rows(chunk.X.shape[0], lambda part: self._part(chunk, part, weights))
        return self._coordinates(sums)

    def _part(self, chunk: SampleChunk, part: slice, weights: Floats) -> Floats:
        """Sums (k, 1 + q + q * q) over a slice of rows: shares, and clipped y and yy'."""
        k, q = len(self.means), self.width
        sums = np.zeros((k, 1 + q + q * q))
        for rows in chunk.blocks(3 * k * q, part):
            shares, clipped = self.parts_of(chunk, rows)
            shares *= weights[rows, None]
            weighted = clipped * shares.T[:, :, None]
            sums[:, 0] += shares.sum(axis=0)
            sums[:, 1 : 1 + q] += weighted.sum(axis=1)
            sums[:, 1 + q :] += (weighted.swapaxes(1, 2) @ clipped).reshape(k, -1)
        return sums

    def parts_of(self, chunk: SampleChunk, rows: slice) -> tuple[Floats, Floats]:
        """Shares (n, k) of a slice of rows, and whitened rows (k, n, q), clipped."""
        X = scaled_rows(chunk, rows, self.radius)
        whitened = whitened_rows(X, self.means, self.whiteners)
        squares = np.einsum("nkq,nkq->nk", whitened, whitened)
        clips = self.limit / np.maximum(np.sqrt(squares), self.limit)
        clipped = np.ascontiguousarray((whitened * clips[:, :, None]).swapaxes(0, 1))
        return shares_of(self.log_scales - squares / 2), clipped

    def _coordinates(self, sums: Floats) -> Floats:
        """Scaled orthonormal coordinates of sums as `_part` returns them."""
        a, b, h, _ = self.scales
        q, square = self.width, self.limit**2
        weights, shifts = sums[:, 0], sums[:, 1 : 1 + q]
        squares = sums[:, 1 + q :].reshape(-1, q, q)
        sizes = np.trace(squares, axis1=1, axis2=2) / square - self.centre * weights
        parts = [a**0.5 * weights, b**0.5 / self.limit * shifts.ravel()]
        if self.pooled:
            squares, sizes = squares.sum(axis=0, keepdims=True), sizes.sum(keepdims=True)
        if self.shape == "spherical":
            return np.concatenate([*parts, h**0.5 * sizes])
        identity = np.eye(q) / q
        traces = np.trace(squares, axis1=1, axis2=2)[:, None, None]
        shapes = (self._spread_shape**0.5 / square) * (squares - traces * identity)
        shapes += (h * q) ** 0.5 * sizes[:, None, None] * identity
        if self.shape == "diag":
            return np.concatenate([*parts, np.diagonal(shapes, axis1=1, axis2=2).ravel()])
        return np.concatenate([*parts, *[symmetric_to_coordinates(one) for one in shapes]])


@dataclass(frozen=True, eq=False)
class MixtureGains(Signed):
    """Sum over units of the clipped log-density that each of some mixtures gains over a base."""

    name, family = "mixture_gains", "samples"
    description = "mean clipped log-density that released mixtures gain over another"
    laws = (GAUSSIAN, LAPLACE)

    mixtures: Sequence[Gaussians]
    base: Gaussians
    radius: float  # length that rows are scaled to

    def __post_init__(self) -> None:
        check_number("the radius", self.radius, RADIUS)
        for mixture in (self.base, *self.mixtures):
            check_array("the whiteners", mixture.whiteners, LARGEST_WHITENED / self.radius)
            check_array("the means", mixture.means, self.radius)
            check_array("log_scales", mixture.log_scales, LARGEST_LOG)

    @property
    def n_gains(self) -> int:
        """Number of mixtures that are compared with the base."""
        return len(self.mixtures)

    def _largest_norms(self) -> tuple[float, float]:
        most = MOST_GAIN * NORM_SLACK
        return most * math.sqrt(self.n_gains), most * self.n_gains

    def total(self, chunk: SampleChunk) -> Floats:
        """Sum of clipped gains of each mixture, of shape (n_mixtures,)."""
        weights = chunk.units.shares
        return sum_over_rows(chunk.X.shape[0], lambda part: self._part(chunk, part, weights))

    def _part(self, chunk: SampleChunk, part: slice, weights: Floats) -> Floats:
        """Sum of clipped gains over a slice of rows, each weighted by its share."""
        found = np.zeros(self.n_gains)
        for rows in chunk.blocks(3 * self.base.means.size * (1 + self.n_gains), part):
            X = scaled_rows(chunk, rows, self.radius)
            base = log_density(self.base.log_joint(X))
            for place, mixture in enumerate(self.mixtures):
                gains = log_density(mixture.log_joint(X)) - base
                found[place] += weights[rows] @ np.clip(gains, -MOST_GAIN, MOST_GAIN)
        return found


def scaled_rows(chunk: SampleChunk, rows: slice, radius: float) -> Any:
    """Rows of a chunk, scaled to `radius`; dense or CSR."""
    X, scales = chunk.X[rows], chunk.scales(radius)[rows]
    return sp.csr_matrix(sp.diags(scales) @ X) if sp.issparse(X) else X * scales[:, None]
