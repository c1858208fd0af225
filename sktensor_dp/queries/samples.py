"""Queries for moments of samples in a ball, and for steps of the power method."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.data.samples import SampleChunk, TensorChunk
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import rows_of, scale_to, sum_over_rows
from sktensor_dp.queries import query
from sktensor_dp.queries.laws import GAUSSIAN, GAUSSIAN_SYMMETRIC, LAPLACE, SPHERICAL
from sktensor_dp.tensor.arrays import Floats, product_by_rows
from sktensor_dp.tensor.symmetric import (
    HALVED_FROM,
    n_unique,
    symmetric_outer_sum,
    symmetric_to_coordinates,
)


class SampleNorm:
    """Mean Euclidean norm of each unit's samples, to choose the radius of a ball from."""

    def of(self, chunk: Any) -> Floats:
        """Norms of the units of `chunk`, of shape (n_units,)."""
        return chunk.units.means(np.sqrt(chunk.square_norms))


@dataclass(frozen=True)
class LiftedBall:
    """Ball of `radius` into which samples are scaled; `offset` > 0 is one more coordinate."""

    radius: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        low, high = query.RADIUS
        # NaN fails every comparison.
        if not (low <= self.radius <= high and 0 <= self.offset <= self.radius):
            raise ValueError(
                f"the radius must be a number from {low:g} to {high:g}, and the offset must be a "
                f"number from 0 to {self.radius:g}, got {self.radius!r} and {self.offset!r}."
            )

    @property
    def norm(self) -> float:
        """Largest norm of an embedded sample z."""
        return math.hypot(self.radius, self.offset)

    def dimension(self, n_features: int) -> int:
        """Number of coordinates of z: `n_features`, and one for the constant."""
        return n_features + (self.offset > 0)


@dataclass(frozen=True, eq=False)
class SecondMoments(query.NonNegative):
    """Sum over units of their mean ``z z'``, z the samples scaled into the ball of `ball`."""

    name, family = "second_moments", "samples"
    description = "mean second moment of samples clipped to a ball"
    laws = (GAUSSIAN_SYMMETRIC, SPHERICAL)
    coordinates = "matrix"

    ball: LiftedBall

    def _largest_norms(self) -> query.Norms:
        # The inner product of z z' and w w' is (z'w)^2, never negative.
        return query.Norms(l2=self.ball.norm**2)

    def total(self, chunk: SampleChunk) -> Floats:
        """Dense symmetric matrix over the coordinates of z, the last a constant if there is one."""
        scales, weights = chunk.scales(self.ball.radius), chunk.units.mean_weights
        return sum_over_rows(len(weights), lambda part: self._part(chunk, part, scales, weights))

    def _part(self, chunk: SampleChunk, part: slice, scales: Floats, weights: Floats) -> Floats:
        """Weighted sum over a slice of rows of ``z z'``, z a scaled row with any constant."""
        X, offset = chunk.X, self.ball.offset
        n_features = X.shape[1]
        size = self.ball.dimension(n_features)
        result = np.zeros((size, size))
        inner = result[:n_features, :n_features]
        if sp.issparse(X):
            sparse = rows_of(X, part)
            inner += (sparse.T @ sp.diags(scales[part] ** 2 * weights[part]) @ sparse).toarray()
        else:
            for rows in chunk.blocks(n_features, part):
                block = X[rows] * (scales[rows] * np.sqrt(weights[rows]))[:, None]
                inner += block.T @ block
        if offset > 0:
            # The constant is less for rows with missing cells, which shows how many these are.
            squares = chunk.squared_constants(part)
            factors = scales[part] * weights[part] * np.sqrt(squares)
            mean = offset * np.asarray(rows_of(X, part).T @ factors)
            result[n_features, :n_features] = result[:n_features, n_features] = mean
            result[n_features, n_features] = (weights[part] * squares).sum() * offset**2
        return result


@dataclass(frozen=True, eq=False)
class _ThirdMoments:
    """Third moments of units in the span of `basis`, with a bound on the norm of each."""

    # Means of ``y (x) y (x) y`` with ``y = basis' x``, x scaled into the ball of `radius`.

    basis: Floats
    radius: float

    def __post_init__(self) -> None:
        # Largest projection of a sample: squares of contributions stay far from overflow.
        largest_projection = 1e46
        query.check_number("the radius", self.radius, query.RADIUS)
        query.check_array("the basis", self.basis, largest_projection / self.radius)

    def _projections(self, chunk: SampleChunk) -> Floats:
        """Projections ``y = basis' x`` of scaled samples."""
        y = np.empty((chunk.X.shape[0], self.basis.shape[1]))
        scales = chunk.scales(self.radius)
        for rows in chunk.blocks(self.basis.shape[1]):
            y[rows] = product_by_rows(chunk.X[rows], self.basis) * scales[rows, None]
        return y

    def _norms(self, chunk: SampleChunk, y: Floats) -> Floats:
        """Mean norm of ``y y y`` of each unit's samples, (n_units,): bounds that of their mean."""
        squares = np.square(y).sum(axis=1)
        return chunk.units.means(np.sqrt(squares * squares**2))


@dataclass(frozen=True, eq=False)
class ThirdMomentHistogram(query.NormBins, _ThirdMoments):
    """Histogram of units by the norm of their projected third moment, to choose a clip from."""

    name, family = "third_moment_histogram", "samples"
    description = "share of units in each bin of the norm of their projected third moment"
    laws = (GAUSSIAN, LAPLACE)

    edges: Floats

    def total(self, chunk: SampleChunk) -> Floats:
        """Number of units of `chunk` in each bin, of shape (n_edges - 1,)."""
        return self.histogram(self._norms(chunk, self._projections(chunk)))


@dataclass(frozen=True, eq=False)
class ProjectedThirdMoments(_ThirdMoments, query.Signed):
    """Sum of third moments in the span of a public `basis`, clipped to `limit` there."""

    name, family = "projected_third_moments", "samples"
    description = "mean third moment of samples in a released subspace, clipped there"
    laws = (GAUSSIAN, SPHERICAL)

    limit: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        query.check_number("the limit", self.limit, query.LIMIT, infinite=True)

    def _largest_norms(self) -> query.Norms:
        return query.Norms(l2=self.limit)

    def total(self, chunk: SampleChunk) -> Floats:
        """Orthonormal coordinates of ``sum y y y``."""
        y, weights = self._projections(chunk), chunk.units.mean_weights
        if math.isfinite(self.limit):
            norms = NORM_SLACK * self._norms(chunk, y)
            weights = chunk.units.row_weights(scale_to(norms, self.limit))
        return sum_over_rows(len(weights), lambda part: self._part(chunk, part, weights, y))

    def _part(self, chunk: SampleChunk, part: slice, weights: Floats, y: Floats) -> Floats:
        """Weighted sum over a slice of rows, in the coordinates of :meth:`total`."""
        size = self.basis.shape[1]
        tensor = np.zeros((size,) * 3)
        for rows in chunk.blocks(size * size, part):
            tensor += symmetric_outer_sum(weights[rows], y[rows])
        return symmetric_to_coordinates(tensor)


@dataclass(frozen=True, eq=False)
class ThirdMoments(ProjectedThirdMoments):
    """Sum of ``x (x) x (x) x`` in the span of `basis`, bounded in the whole space (AGN, AVN)."""

    name, family = "third_moments", "samples"
    description = "mean third moment of samples, noised in the whole space, seen in a subspace"
    laws = (GAUSSIAN, SPHERICAL)

    def __post_init__(self) -> None:
        super().__post_init__()
        gram = self.basis.T @ self.basis
        if not np.allclose(gram, np.eye(len(gram)), rtol=0.0, atol=1e-8):
            raise ValueError("the basis must have orthonormal columns.")
        if math.isfinite(self.limit):
            raise ValueError("the norm of x is the only limit in the whole space.")

    def _largest_norms(self) -> query.Norms:
        # A projection of ``x (x) x (x) x`` is not longer than it.
        return query.Norms(l2=self.radius**3)

    @property
    def ambient_dimension(self) -> int:
        """Number of distinct entries of the whole symmetric tensor, which is projected here."""
        return n_unique(self.basis.shape[0], 3)


@dataclass(frozen=True, eq=False)
class PowerIterations(query.Signed):
    """Sum over units of ``z (z' u)^2`` for all columns u of `starts`: the power method's step."""

    name, family = "power_iterations", "samples"
    description = "one step of the power method on the third moment of samples, from all starts"
    laws = (GAUSSIAN, SPHERICAL)

    # `T(I, u, u)` are products of `z (x) z (x) z` with symmetric parts of `e_i (x) u (x) u`. These
    # are far from orthonormal where starts are alike, and shorter by `sqrt(3)` outside their span.
    # In orthonormal coordinates a batch of starts has the sensitivity of a single one: `2 R^3`
    # where a unit replaces another.

    starts: Floats
    radius: float
    # (d, k), orthonormal columns: basis of the span of the starts
    frame: Floats = field(init=False, repr=False)
    # (k * k, p), orthonormal columns: combinations of pairs of that basis
    pairs: Floats = field(init=False, repr=False)
    # (p, n_starts), columns of norm 1: by these answers to combinations become those to starts
    unmixing: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Singular values below this fraction of the largest are rounding errors.
        null_pairs = 1e-12
        query.check_number("the radius", self.radius, query.RADIUS)
        if not np.allclose(np.square(self.starts).sum(axis=0), 1.0, atol=1e-8):
            raise ValueError("the starts must be unit vectors, one in each column.")
        frame = np.linalg.qr(self.starts)[0]
        pairs = _squares(self.starts.T @ frame).T
        # Squares of starts are ``pairs @ unmixing``. Release orthonormal coordinates, not answers
        # times an inverse: if starts are nearly alike the inverse would magnify rounding errors.
        left, lengths, right = np.linalg.svd(pairs, full_matrices=False)
        kept = lengths > null_pairs * lengths[0]
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "pairs", left[:, kept])
        object.__setattr__(self, "unmixing", lengths[kept, None] * right[kept])

    def _largest_norms(self) -> query.Norms:
        return query.Norms(l2=self.radius**3)

    def total(self, chunk: SampleChunk) -> Floats:
        """Coordinates outside the span of the starts, (d, p), above those within, (k, p)."""
        mixed = sum_over_rows(chunk.X.shape[0], lambda part: self._part(chunk, part))
        within = self.frame.T @ mixed
        mixed -= self.frame @ within
        mixed *= math.sqrt(3)
        return np.concatenate([mixed, within])

    def _part(self, chunk: SampleChunk, part: slice) -> Floats:
        """Sum over a slice of rows, each weighted by one over its unit's rows; (n_features, p)."""
        mixed = np.zeros((len(self.starts), self.pairs.shape[1]))
        scales, weights = chunk.scales(self.radius), chunk.units.mean_weights
        for rows in chunk.blocks(len(self.pairs), part):
            samples = chunk.X[rows]
            # Scale each product: the cube of a scale could underflow.
            in_frame = np.asarray(samples @ self.frame) * scales[rows, None]
            factors = scales[rows, None] * weights[rows, None]
            mixed += samples.T @ (_squares(in_frame) @ self.pairs * factors)
        return mixed

    def decoded(self, coordinates: Floats) -> Floats:
        """``T(I, u, u)`` for every start u as columns, from the released `coordinates`."""
        n_features = len(self.starts)
        outside, within = coordinates[:n_features], coordinates[n_features:]
        outside = outside - self.frame @ (self.frame.T @ outside)
        outside /= math.sqrt(3)
        outside += self.frame @ within
        return outside @ self.unmixing


@dataclass(frozen=True, eq=False)
class TensorPowerIterations(query.Query):
    """Power steps ``T(I, u, u)`` of a private tensor; neighbours differ in one entry."""

    name, family = "tensor_power_iterations", "tensors"
    description = "one step of the power method on a private tensor, from all starts"
    laws = (GAUSSIAN, SPHERICAL)

    # Neighbours differ by `bound` times the sum of `e_i (x) e_j (x) e_k` over the six orders of (i,
    # j, k) (Wang & Anandkumar, Definition 4.2).

    starts: Floats
    bound: float

    def __post_init__(self) -> None:
        # Range for the entries of starts on a private tensor, whose fourth powers are taken.
        start_sizes = (1e-10, 1e10)
        query.check_number("the bound", self.bound, query.RADIUS)
        query.check_array("the starts", self.starts, start_sizes[1])
        query.check_number("the largest of the starts", np.abs(self.starts).max(), start_sizes)

    @property
    def l2_sensitivity(self) -> float:
        """``6 bound sqrt(sum_u u_i^4)`` at the worst row i of the starts, with rounding."""
        largest = math.sqrt((self.starts**4).sum(axis=1).max())
        # All entries contribute to the rounding error of an answer, which `NORM_SLACK` may not
        # cover.
        with_slack = NORM_SLACK * 6 * self.bound * largest
        with_rounding = self.bound * (6 * largest + 2 * self._rounding)
        return max(with_slack, with_rounding)

    @property
    def _rounding(self) -> float:
        """Bound on the L2 rounding error of all answers together, for `bound` = 1."""
        d = len(self.starts)
        # Number of roundings of one entry: in one product with all pairs, or in one with half of
        # the tensor.
        steps = d**2 + 6 if d < HALVED_FROM else 3 * d + 4
        sizes = np.abs(self.starts).sum(axis=0) ** 2  # bound entries of T(I, u, u) for |T| <= 1
        relative = steps * 2.0**-53 * TensorChunk.largest_ratio
        return relative * math.sqrt(d) * float(np.linalg.norm(sizes))

    def total(self, chunk: TensorChunk) -> Floats:
        """``T(I, u, u)`` for all starts as columns, of shape (d, n_starts)."""
        return chunk.oracle(self.starts)

    def decoded(self, coordinates: Floats) -> Floats:
        """``T(I, u, u)`` as released: its entries are the coordinates that noise is added to."""
        return coordinates


def _squares(rows: Floats) -> Floats:
    """``y y'``, flattened, of each row y; (n_rows, k^2)."""
    return (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
