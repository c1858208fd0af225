"""Norms of what one unit contributes, and the weights that bound them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.queries.counts import CountChunk, UnitWords
from sktensor_dp.queries.query import LIMIT, check_array, check_number
from sktensor_dp.queries.units import rows_of, scale_to
from sktensor_dp.tensor.arrays import Floats

# Pairs of words that are held at once, and those of one unit beyond which its own norm is not
# worth its cost.
PAIRS_AT_ONCE, PAIRS_OF_A_UNIT = 2**22, 2**26


def norms_of_mean_counts(
    at: UnitWords,
    ratios: NDArray[np.floating],
    expected: NDArray[np.floating],
    topics: Floats | None,
) -> Floats:
    """Euclidean norms of the mean of ``ratios expected``, times their topics if there are any."""
    data, squares = ratios[at.stored].astype(np.float64), np.zeros(len(at.words))
    for topic, share in enumerate(expected[at.rows].T):
        sums = np.bincount(at.places, data * np.repeat(share, at.per_row), len(at.words))
        if topics is not None:
            sums = sums * topics[topic, at.words]
        squares += np.square(sums)
    norms = np.sqrt(np.bincount(at.owners, squares, len(at.sizes))) / np.maximum(at.sizes, 1)
    return np.where(at.sizes > 0, norms, np.inf)


def norms_of_mean_pairs(part: CountChunk, diagonal_weight: float) -> Floats:
    """Norms of the mean pair masses; infinite where a unit has too many pairs, too."""
    norms, units = np.full(part.units.n, np.inf), part.units
    squares = np.diff(part.X.indptr).astype(np.float64) ** 2
    costs = np.bincount(units.of_rows, squares, units.n)
    several = np.flatnonzero((units.sizes > 1) & (costs <= PAIRS_OF_A_UNIT))
    batch = np.floor(np.cumsum(costs[several]) / PAIRS_AT_ONCE)
    for number in np.unique(batch):
        chosen = several[batch == number]
        rows = slice(units.starts[chosen[0]], units.starts[chosen[-1] + 1])
        norms[chosen] = _pair_norms(part, rows, chosen, diagonal_weight)
    return norms


def _pair_norms(
    part: CountChunk, rows: slice, chosen: NDArray[np.intp], diagonal_weight: float
) -> Floats:
    """Pair norms of chosen units, which lie in some rows."""
    X, of_rows = rows_of(part.X, rows), part.units.of_rows[rows] - chosen[0]
    wanted = np.zeros(int(chosen[-1] - chosen[0]) + 1, dtype=bool)
    wanted[chosen - chosen[0]] = True
    at = UnitWords.of(X, of_rows, wanted)
    lengths, data = part.lengths[rows][at.rows], X.data[at.stored]
    weight = (lengths >= 2) / np.maximum(lengths - 1, 1) / at.sizes[of_rows[at.rows]]
    weighted = data * np.repeat(weight, at.per_row)
    # A column for each word of each unit: products of columns stay within a unit.
    layout = (at.places, np.append(0, np.cumsum(at.per_row)))
    shape = (len(at.rows), len(at.words))
    counts = sp.csr_matrix((data, *layout), shape=shape)
    pairs = (counts.T.tocsr() @ sp.csr_matrix((weighted, *layout), shape=shape)).tocoo()
    distinct = np.where(pairs.row < pairs.col, 2 * pairs.data, 0.0)
    repeated = np.bincount(at.places, weighted * (data - 1), len(at.words))
    apart = np.bincount(at.owners[pairs.row], np.square(distinct), len(wanted))
    alike = np.bincount(at.owners, np.square(repeated), len(wanted))
    return np.asarray(np.sqrt(apart + diagonal_weight**2 * alike))[wanted]


# Relative error of single precision and of long sums, with room to spare.
NORM_SLACK = 1 + 1e-4
# Weights of the diagonal, and lengths of words in a whitened space: cubes of counts times
# these stay far from overflow.
DIAGONAL, LARGEST_WHITENER = (1e-6, 1e6), 1e30
# Fewest tokens for which all three moments are defined.
MIN_TOKENS = 3


class Norm(Protocol):
    """A norm of one unit's contribution."""

    def of(self, chunk: CountChunk) -> Floats:
        """Upper bounds on the norm, unit by unit."""


@dataclass(frozen=True)
class Clip:
    """A norm and the public limit that contributions are scaled down to."""

    norm: Norm
    limit: float

    def __post_init__(self) -> None:
        check_number("the limit of a clip", self.limit, LIMIT, infinite=True)


class Limited:
    """Contributions whose norm has a limit."""

    def _limited(self) -> tuple[float, int]:
        """The limit, and the order of the norm that it is one on: 2, or 1 and so of both."""
        raise NotImplementedError

    @property
    def l2_contribution(self) -> float:
        """The limit: no L2 norm is larger than its own, or than that in L1."""
        return self._limited()[0]

    @property
    def l1_contribution(self) -> float:
        """The limit, if it is one on the sum of sizes."""
        limit, order = self._limited()
        return limit if order == 1 else math.inf


class NonNegative(Limited):
    """Contributions without a negative number, of norm `limit` at most."""

    @property
    def l2_sensitivity(self) -> float:
        """There is no obtuse angle between two: sqrt(2) times the limit."""
        return self.sensitivity_of(self._limited()[0])

    @property
    def l1_sensitivity(self) -> float:
        """Twice the limit, if it is one on the sum."""
        limit, order = self._limited()
        return self.sensitivity_of(limit, 1) if order == 1 else math.inf

    @staticmethod
    def sensitivity_of(limit: float, order: int = 2, neighbours: str = "replace_one") -> float:
        """Largest distance between two clipped units, or of one from 0, in a norm."""
        if neighbours == "add_remove":
            return limit
        return math.sqrt(2) * limit if order == 2 else 2 * limit


class Signed(Limited):
    """Contributions of any sign, of Euclidean norm `limit` at most."""

    l1_sensitivity = math.inf

    @property
    def l2_sensitivity(self) -> float:
        """Two may be opposite: twice the limit."""
        return self.sensitivity_of(self._limited()[0])

    @staticmethod
    def sensitivity_of(limit: float, neighbours: str = "replace_one") -> float:
        """Largest distance between two clipped units, or of one from 0."""
        return limit if neighbours == "add_remove" else 2 * limit


@dataclass(frozen=True)
class CountNorm:
    """Norm of the counts themselves: their number (order 1) or Euclidean norm (2)."""

    order: int = 2

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}.")

    def of(self, chunk: CountChunk) -> Floats:
        """Norm of the counts."""
        if self.order == 1:
            return NORM_SLACK * chunk.units.means(chunk.lengths)
        return NORM_SLACK * np.sqrt(chunk.unit_squares)


@dataclass(frozen=True)
class PairNorm:
    """Norm of the pair masses ``l (2 M2_ij for i < j, diagonal_weight M2_ii)``."""

    # `diagonal_weight` sqrt(2) is sqrt(2) times the Frobenius norm, 1 the norm of the histogram of
    # word pairs.

    diagonal_weight: float
    words: NDArray[np.intp] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_number("diagonal_weight", self.diagonal_weight, DIAGONAL)

    def of(self, chunk: CountChunk) -> Floats:
        """Exact norm of a document; a unit's own, or where it costs too much the mean of these."""
        part = chunk.restricted(self.words)
        means = chunk.units.means(self._of_documents(part))
        return np.minimum(means, NORM_SLACK * norms_of_mean_pairs(part, self.diagonal_weight))

    def _of_documents(self, part: CountChunk) -> Floats:
        """Exact norm of each document, from power sums of the counts."""
        squares = part.squares
        # sum over i < j of (2 c_i c_j)^2, and over i of (c_i (c_i - 1))^2
        distinct = 2 * (squares**2 - part.sum_over_words(lambda c: c**4))
        repeated = part.sum_over_words(lambda c: (c * (c - 1)) ** 2)
        total = np.maximum(distinct, 0) + self.diagonal_weight**2 * repeated
        return NORM_SLACK * np.sqrt(total) / np.maximum(part.lengths - 1, 1)


@dataclass(frozen=True)
class TripleNorm:
    """Frobenius norm of ``l M3`` in word space."""

    def of(self, chunk: CountChunk) -> Floats:
        """Exact norm of a document, from power sums of the counts; mean of these for a unit."""
        p2 = chunk.squares
        p4 = chunk.sum_over_words(lambda c: c**4)
        p6 = chunk.sum_over_words(lambda c: c**6)
        pairs = chunk.sum_over_words(lambda c: (c * (c - 1)) ** 2)
        own = chunk.sum_over_words(lambda c: (c**2 * (c - 1)) ** 2)
        same = chunk.sum_over_words(lambda c: (c * (c - 1) * (c - 2)) ** 2)
        # Squares of the entries over ordered distinct (i, j, k), over (i, i, j), and over i.
        distinct = np.maximum(p2**3 - 3 * p2 * p4 + 2 * p6, 0)
        repeated = np.maximum(pairs * p2 - own, 0)
        total, lengths = distinct + 3 * repeated + same, chunk.lengths
        norms = NORM_SLACK * np.sqrt(total) / np.maximum((lengths - 1) * (lengths - 2), 1)
        return chunk.units.means(norms)


@dataclass(frozen=True, eq=False)
class WhitenedTripleNorm:
    """Upper bound on the Frobenius norm of ``l M3(W, W, W)``."""

    # The smaller of the triangle inequality on its three terms and of the mean of |w_a| |w_b| |w_c|
    # over ordered draws of three different tokens.

    whitener: Floats
    words: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        check_array("the whitener", self.whitener, LARGEST_WHITENER)

    def of(self, chunk: CountChunk) -> Floats:
        """Mean over a unit's documents of bounds from power sums of the whitener's row norms."""
        X = chunk.restricted(self.words).X
        row_norms = np.linalg.norm(self.whitener, axis=1)
        p1, p2, p3 = (X @ row_norms**p for p in (1, 2, 3))
        triangle = triangle_of_terms(X @ self.whitener, p2, p3)
        # The elementary symmetric polynomial cancels: what rounding may hide is added, which
        # grows with the length of the sums.
        hidden = 2e-15 * (np.diff(X.indptr) + 8) * p1**3
        distinct = np.maximum(p1**3 - 3 * p1 * p2 + 2 * p3, 0) + hidden
        lengths = chunk.lengths
        norms = (
            NORM_SLACK
            * np.minimum(triangle, distinct)
            / np.maximum((lengths - 1) * (lengths - 2), 1)
        )
        return chunk.units.means(norms)


class NormBins:
    """Numbers of units by bins of a norm between edges; too small and too large go to the ends."""

    edges: Floats

    l2_sensitivity = math.sqrt(2)
    l1_sensitivity = 2.0
    l2_contribution = l1_contribution = 1.0

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges)
        if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all():
            raise ValueError(f"edges must be two or more finite numbers, got shape {edges.shape}.")
        if not (edges[1:] > edges[:-1]).all():
            raise ValueError("edges must increase.")

    def counted(self, norms: Floats) -> Floats:
        """Numbers of norms in each bin."""
        n_bins = len(self.edges) - 1
        bins = np.searchsorted(self.edges, norms, side="left") - 1
        return np.bincount(np.clip(bins, 0, n_bins - 1), minlength=n_bins).astype(np.float64)


def triangle_of_terms(projected: Floats, squares: Floats, cubes: Floats) -> Floats:
    """Sum of the norms of the three terms of a whitened triple moment."""
    lengths = np.linalg.norm(projected, axis=1)
    return np.asarray(lengths**3 + 2 * cubes + 3 * squares * lengths)


def unit_factors(chunk: CountChunk, clips: Sequence[Clip]) -> Floats:
    """One factor in [0, 1] per unit that keeps every norm within its limit."""
    # The same factor scales all moments of a unit, so that their identities survive clipping.
    factors = np.ones(chunk.units.n)
    for clip in clips:
        if np.isfinite(clip.limit):
            np.minimum(factors, scale_to(clip.norm.of(chunk), clip.limit), out=factors)
    return factors


def weights(chunk: CountChunk, clips: Sequence[Clip], min_tokens: int = 0) -> Floats:
    """Weight of each document: its part of its unit, within every limit."""
    return (chunk.lengths >= min_tokens) * chunk.units.spread(unit_factors(chunk, clips))


@dataclass(frozen=True, eq=False)
class NormHistogram(NormBins):
    """How many units with enough tokens have a norm in each bin, once it is clipped."""

    norm: Norm
    edges: Floats
    clips: tuple[Clip, ...] = ()
    min_tokens: int = 0

    def total(self, chunk: CountChunk) -> Floats:
        """Counts per bin."""
        norms = unit_factors(chunk, self.clips) * self.norm.of(chunk)
        if self.min_tokens > 0:
            norms = norms[chunk.units.any(chunk.lengths >= self.min_tokens)]
        return self.counted(norms)
