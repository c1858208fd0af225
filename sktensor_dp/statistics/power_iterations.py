"""Queries for one step of the power method from several starts at once."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sktensor_dp.statistics.norms import NORM_SLACK
from sktensor_dp.statistics.public_numbers import RADIUS, check_array, check_number
from sktensor_dp.statistics.row_chunks import sum_over_rows
from sktensor_dp.statistics.sample_moments import SampleChunk
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.oracle import HALVED_FROM, Oracle
from sktensor_dp.tensor.sketched import Pairs

# Combinations of starts whose pair products are smaller than this share of the
# largest are rounding.
NULL_PAIRS = 1e-12
# Of starts on a private tensor, of which fourth powers are taken; they need not be of length 1.
SIZES = (1e-10, 1e10)


@dataclass(frozen=True, eq=False)
class PowerIterations:
    """Sum of ``z (z' u)^2`` for several u, in orthonormal coordinates of what they ask."""

    # `T(I, u, u)` asks the symmetric tensor `z (x) z (x) z` for its products with the symmetric
    # parts of `e_i (x) u (x) u`. These are far from orthonormal where starts are alike, and shorter
    # by `sqrt(3)` where e_i is orthogonal to all starts. In coordinates that are orthonormal the
    # whole batch of starts has the sensitivity of one, `2 R^3`.

    starts: Floats
    radius: float
    frame: Floats = field(init=False, repr=False)
    pairs: Floats = field(init=False, repr=False)
    unmixing: Floats = field(init=False, repr=False)

    l1_sensitivity = l1_contribution = math.inf

    def __post_init__(self) -> None:
        check_number("the radius", self.radius, RADIUS)
        if not np.allclose(np.square(self.starts).sum(axis=0), 1.0, atol=1e-8):
            raise ValueError("the starts must be unit vectors.")
        frame = np.linalg.qr(self.starts)[0]
        pairs = _squares(self.starts.T @ frame).T
        # Not sums of answers times an inverse: where starts are nearly alike, that would
        # magnify rounding beyond what one sample may add.
        left, lengths, right = np.linalg.svd(pairs, full_matrices=False)
        kept = lengths > NULL_PAIRS * lengths[0]
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "pairs", left[:, kept])
        object.__setattr__(self, "unmixing", lengths[kept, None] * right[kept])

    @property
    def l2_sensitivity(self) -> float:
        """A contribution has norm ``R^3`` at most, and any sign."""
        return 2 * self.radius**3

    @property
    def l2_contribution(self) -> float:
        """The norm of a contribution."""
        return self.radius**3

    def total(self, chunk: SampleChunk) -> Floats:
        """Coordinates outside the span of the starts, below them those within."""
        mixed = sum_over_rows(chunk.X.shape[0], lambda part: self._part(chunk, part))
        within = self.frame.T @ mixed
        mixed -= self.frame @ within
        mixed *= math.sqrt(3)
        return np.concatenate([mixed, within])

    def _part(self, chunk: SampleChunk, part: slice) -> Floats:
        """Sum over some rows, each by its share of its unit."""
        mixed = np.zeros((len(self.starts), self.pairs.shape[1]))
        scales, share = chunk.scales(self.radius), chunk.units.shares
        for rows in chunk.blocks(len(self.pairs), part):
            samples = chunk.X[rows]
            # Scaled one by one: the cube of a scale may be too small a number.
            seen = np.asarray(samples @ self.frame) * scales[rows, None]
            factors = scales[rows, None] * share[rows, None]
            mixed += samples.T @ (_squares(seen) @ self.pairs * factors)
        return mixed

    def answers(self, coordinates: Floats) -> Floats:
        """``T(I, u, u)`` for every column u, from released coordinates."""
        n_features = len(self.starts)
        outside, within = coordinates[:n_features], coordinates[n_features:]
        outside = outside - self.frame @ (self.frame.T @ outside)
        outside /= math.sqrt(3)
        outside += self.frame @ within
        return outside @ self.unmixing


@dataclass(frozen=True, eq=False)
class TensorChunk:
    """A symmetric tensor that is itself the data, and the only chunk."""

    oracle: Oracle  # maps U of shape (d, L) to T(I, u, u) for its columns u
    n_units: int = 1
    pairs: Pairs | None = None  # maps Q of shape (d, s) to T(I, Q, Q), for fits without noise

    # Entries are at most this many times the largest change: beside much larger ones rounding of an
    # answer would outweigh it.
    largest_ratio: ClassVar[float] = 1e6

    def __iter__(self) -> Iterator["TensorChunk"]:
        yield self


@dataclass(frozen=True, eq=False)
class TensorPowerIterations:
    """``T(I, u, u)`` of a private tensor, whose neighbours differ in one entry."""

    # Neighbours differ by `bound` times the sum of `e_i (x) e_j (x) e_k` over the six orders of (i,
    # j, k) (Wang & Anandkumar, Definition 4.2).

    starts: Floats
    bound: float

    l1_sensitivity = math.inf

    def __post_init__(self) -> None:
        check_number("the bound", self.bound, RADIUS)
        check_array("the starts", self.starts, SIZES[1])
        check_number("the largest number of the starts", np.abs(self.starts).max(), SIZES)

    @property
    def l2_sensitivity(self) -> float:
        """Largest at i = j = k: six times the root of the sum of ``u_i^4`` over starts."""
        # Rounding of an answer, to which all entries contribute, is paid for by `NORM_SLACK`, or
        # added where that is not enough.
        largest = math.sqrt((self.starts**4).sum(axis=1).max())
        with_rounding = self.bound * (6 * largest + 2 * self._rounding)
        return max(NORM_SLACK * 6 * self.bound * largest, with_rounding)

    @property
    def _rounding(self) -> float:
        """Bound on the error of all answers, for a change of 1."""
        d = len(self.starts)
        # Longest chain of roundings: one product with all pairs, or one with half the tensor.
        steps = max(d**2 + 2 if d < HALVED_FROM else 0, 3 * d + 4)
        sizes = np.abs(self.starts).sum(axis=0) ** 2
        share = steps * 2.0**-53 * TensorChunk.largest_ratio
        return share * math.sqrt(d) * float(np.linalg.norm(sizes))

    def total(self, chunk: TensorChunk) -> Floats:
        """Answers to all starts at once."""
        return chunk.oracle(self.starts)


@dataclass(frozen=True, eq=False)
class TensorPairs:
    """``T(I, u, v)`` of all pairs of starts; only where there is no noise."""

    starts: Floats

    def total(self, chunk: TensorChunk) -> Floats:
        """Answers to all pairs at once."""
        if chunk.pairs is None:
            raise ValueError("the chunk does not say what pairs of starts have.")
        return chunk.pairs(self.starts)


def _squares(rows: Floats) -> Floats:
    """Entries of ``y y'`` for every row y."""
    return (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
