"""Counts of words in documents, norms of what a unit adds, and sums of counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE
from sktensor_dp.queries.query import (
    LIMIT,
    NORM_SLACK,
    NonNegative,
    NormBins,
    check_array,
    check_number,
    norms_within,
)
from sktensor_dp.queries.units import (
    RowChunk,
    RowChunks,
    rows_of,
    scale_to,
    sum_over_rows,
)
from sktensor_dp.tensor.arrays import Floats, Integers, of_same_shape

# Beyond any document; sixth powers and single precision stay far from overflow, whose
# NaN would pass every clip.
LARGEST_COUNT = 2.0**30
# Weights of the diagonal, and lengths of words in a whitened space: cubes of counts times
# these stay far from overflow.
DIAGONAL, LARGEST_WHITENER = (1e-6, 1e6), 1e30
# Fewest tokens for which all three moments are defined.
MIN_TOKENS = 3
# Pairs of words that are held at once, and those of one unit beyond which its own norm is not
# worth its cost.
PAIRS_AT_ONCE, PAIRS_OF_A_UNIT = 2**22, 2**26


def as_counts(X: Any, name: str = "X") -> sp.csr_matrix:
    """Validate `X` as whole numbers >= 0; return float64 CSR, with counts clipped at 2**30."""
    # The bounds of moments hold for whole numbers >= 0 alone; counts above 2**30 are taken for it.
    counts = sp.csr_matrix(X, dtype=np.float64)
    if not np.isfinite(counts.data).all():
        raise ValueError(f"{name} contains NaN or infinity; counts must be finite numbers >= 0.")
    if counts.data.size and counts.data.min() < 0:
        raise ValueError(f"Negative values in data passed as {name}; counts must be >= 0.")
    if not counts.has_canonical_format:
        counts = counts.copy()
        counts.sum_duplicates()
    if not np.array_equal(np.floor(counts.data), counts.data):
        raise ValueError(
            f"{name} must hold counts, which are whole numbers; it holds fractions. Pass counts "
            "that are neither normalised nor weighted: CountVectorizer or "
            "PrivateCountVectorizer in the place of TfidfVectorizer."
        )
    bounded = np.minimum(counts.data, LARGEST_COUNT)
    if not np.array_equal(bounded, counts.data) or not counts.data.all():
        counts = sp.csr_matrix((bounded, counts.indices.copy(), counts.indptr.copy()), counts.shape)
        counts.eliminate_zeros()
    return counts


@dataclass(frozen=True, eq=False)
class UnitWords:
    """Layout for adding up counts by unit, with a place for each (unit, word) that occurs."""

    # (n_units,): number of documents of each unit, and 0 of those that are left out.
    sizes: Integers
    rows: Integers  # (n_rows,): documents of the units, in their order
    per_row: Integers  # (n_rows,): number of their counts
    stored: Integers  # (nnz,): where their counts stand among all counts
    places: Integers  # (nnz,): place of each among the different words of units
    # (n_places,): word and unit of each place.
    words: Integers
    owners: Integers

    @classmethod
    def of(cls, X: sp.csr_matrix, of_rows: Integers, chosen: NDArray[np.bool_]) -> "UnitWords":
        """Lay out the rows of `X` whose unit, by `of_rows`, is in the mask `chosen`."""
        rows = np.flatnonzero(chosen[of_rows])
        per_row = np.diff(X.indptr)[rows]
        ends = np.cumsum(per_row)
        starts = np.repeat(X.indptr[rows] - ends + per_row, per_row)
        stored = starts + np.arange(len(starts))
        owners = of_rows[rows]
        # Places in the order of units; sums at a place are of one unit, in the order of its rows.
        keys = np.repeat(owners, per_row) * X.shape[1] + X.indices[stored]
        different, places = np.unique(keys, return_inverse=True)
        sizes = np.bincount(owners, minlength=len(chosen))
        return cls(
            sizes, rows, per_row, stored, places, *reversed(np.divmod(different, X.shape[1]))
        )


class CountChunk(RowChunk):
    """Word counts of the documents of some units, with cached power sums of each document."""

    # Moments and their norms ask for the same words one after the other.
    _restricted: "tuple[NDArray[np.intp], CountChunk] | None" = None

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Row (document) of each stored count, of shape (nnz,)."""
        return np.repeat(np.arange(self.X.shape[0]), np.diff(self.X.indptr))

    @cached_property
    def lengths(self) -> Floats:
        """Number of tokens of each document, of shape (n_documents,)."""
        return self.sum_over_words(lambda c: c)

    @cached_property
    def squares(self) -> Floats:
        """Sum of the squared counts of each document, of shape (n_documents,)."""
        return self.sum_over_words(np.square)

    @cached_property
    def by_words(self) -> tuple[NDArray[np.intp], sp.csr_matrix]:
        """Order of documents by number of distinct words, and float32 counts in that order."""
        order = np.argsort(np.diff(self.X.indptr), kind="stable")
        # Singles first: rows are copied, and half as much memory is.
        return order, of_same_shape(self.X, self.X.data.astype(np.float32))[order]

    def sum_over_words(self, function: Callable[[Floats], Floats]) -> Floats:
        """Sum of `function(count)` over each document's words; `function` maps 0 to 0."""
        values = function(self.X.data)
        sums = np.bincount(self.rows, weights=values, minlength=self.X.shape[0])
        return sums.astype(np.float64, copy=False)

    @cached_property
    def unit_squares(self) -> Floats:
        """Squared Euclidean norm of each unit's mean count vector, of shape (n_units,)."""
        totals = CountChunk(self.units.sums(self.X)).squares
        return totals / self.units.sizes / self.units.sizes

    @cached_property
    def unit_words(self) -> UnitWords:
        """`UnitWords` of the units with several documents, for their exact norms."""
        return UnitWords.of(self.X, self.units.of_rows, self.units.sizes > 1)

    @cached_property
    def sorted_unit_words(self) -> UnitWords:
        """`UnitWords` of the units with several documents, in the row order of `by_words`."""
        order, counts = self.by_words
        return UnitWords.of(counts, self.units.of_rows[order], self.units.sizes > 1)

    def restricted(self, words: NDArray[np.intp] | None) -> "CountChunk":
        """Chunk with the columns `words` only (None: all), and lengths of whole documents."""
        # Lengths stay those of the whole documents: the restriction is a restriction of the
        # moments.
        if words is None:
            return self
        if self._restricted is None or self._restricted[0] is not words:
            part = CountChunk(self.X[:, words].tocsr(), self.units)
            part.__dict__["lengths"] = self.lengths
            self._restricted = (words, part)
        return self._restricted[1]


class CountChunks(RowChunks[CountChunk]):
    """Word counts of documents, validated and yielded as `CountChunk`, once for each release."""

    noun, _chunk = "documents", CountChunk

    def _checked_part(self, part: Any) -> sp.csr_matrix:
        """Counts of one chunk as CSR; refuses another number of columns than `n_features`."""
        counts = as_counts(part, "a chunk")
        if counts.shape[1] != self.n_features:
            raise ValueError(
                f"A chunk has {counts.shape[1]} features; n_features is {self.n_features}."
            )
        return counts


class Norm(Protocol):
    """Norm of one unit's contribution to a sum, by which contributions are clipped."""

    def of(self, chunk: CountChunk) -> Floats:
        """Upper bound on the norm of each unit in `chunk`, of shape (n_units,)."""


@dataclass(frozen=True)
class Clip:
    """Norm of contributions, and the public limit that larger ones are scaled down to."""

    norm: Norm
    limit: float

    def __post_init__(self) -> None:
        check_number("the limit of a clip", self.limit, LIMIT, infinite=True)


@dataclass(frozen=True)
class CountNorm:
    """Norm of a unit's mean count vector: L1, which is its mean length (`order` 1), or L2 (2)."""

    order: int = 2

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}.")

    def of(self, chunk: CountChunk) -> Floats:
        """Norm of each unit's mean count vector, with a slack for rounding; (n_units,)."""
        if self.order == 1:
            return NORM_SLACK * chunk.units.means(chunk.lengths)
        return NORM_SLACK * np.sqrt(chunk.unit_squares)


@dataclass(frozen=True)
class PairNorm:
    """Norm of a unit's pair moment: 2 l M2_ij for i < j and `diagonal_weight` l M2_ii."""

    # `diagonal_weight` sqrt(2) is sqrt(2) times the Frobenius norm, 1 the norm of the histogram of
    # word pairs.

    diagonal_weight: float
    words: NDArray[np.intp] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_number("diagonal_weight", self.diagonal_weight, DIAGONAL)

    def of(self, chunk: CountChunk) -> Floats:
        """Mean of a unit's documents' norms or, where cheap, its smaller exact norm."""
        part = chunk.restricted(self.words)
        means = chunk.units.means(self._of_documents(part))
        return np.minimum(means, NORM_SLACK * norms_of_mean_pairs(part, self.diagonal_weight))

    def _of_documents(self, part: CountChunk) -> Floats:
        """Exact pair norm of each document, from power sums of its counts; (n_documents,)."""
        squares = part.squares
        # sum over i < j of (2 c_i c_j)^2, and over i of (c_i (c_i - 1))^2
        distinct = 2 * (squares**2 - part.sum_over_words(lambda c: c**4))
        repeated = part.sum_over_words(lambda c: (c * (c - 1)) ** 2)
        total = np.maximum(distinct, 0) + self.diagonal_weight**2 * repeated
        return NORM_SLACK * np.sqrt(total) / np.maximum(part.lengths - 1, 1)


def norms_of_mean_pairs(part: CountChunk, diagonal_weight: float) -> Floats:
    """Exact pair norm of each unit, (n_units,); infinity for one document or too many pairs."""
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
    """Exact pair norms of the units `chosen`, whose documents lie in the slice `rows`."""
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


def norms_of_mean_counts(
    at: UnitWords,
    ratios: NDArray[np.floating],
    expected: NDArray[np.floating],
    topics: Floats | None,
) -> Floats:
    """Norm, per unit, of the mean over documents of ``ratios_w expected_k topics_kw``."""
    data, squares = ratios[at.stored].astype(np.float64), np.zeros(len(at.words))
    for topic, share in enumerate(expected[at.rows].T):
        sums = np.bincount(at.places, data * np.repeat(share, at.per_row), len(at.words))
        if topics is not None:
            sums = sums * topics[topic, at.words]
        squares += np.square(sums)
    norms = np.sqrt(np.bincount(at.owners, squares, len(at.sizes))) / np.maximum(at.sizes, 1)
    return np.where(at.sizes > 0, norms, np.inf)


@dataclass(frozen=True)
class TripleNorm:
    """Frobenius norm of a unit's third moment ``l M3`` over all words, l a document's length."""

    def of(self, chunk: CountChunk) -> Floats:
        """Mean over each unit's documents of their norms, from power sums; (n_units,)."""
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
    """Upper bound on the norm of ``l M3(W, W, W)``, W the `whitener` (n_words, k) of `words`."""

    # The smaller of the triangle inequality on its three terms and of the mean of |w_a| |w_b| |w_c|
    # over ordered draws of three different tokens.

    whitener: Floats
    words: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        check_array("the whitener", self.whitener, LARGEST_WHITENER)

    def of(self, chunk: CountChunk) -> Floats:
        """Mean over each unit's documents of a bound from the row norms of W; (n_units,)."""
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


def triangle_of_terms(projected: Floats, squares: Floats, cubes: Floats) -> Floats:
    """Triangle bound per document, from ``X @ W`` and sums of powers of row norms of W."""
    lengths = np.linalg.norm(projected, axis=1)
    return np.asarray(lengths**3 + 2 * cubes + 3 * squares * lengths)


def unit_factors(chunk: CountChunk, clips: Sequence[Clip]) -> Floats:
    """Factor in [0, 1] of each unit that brings its norm within the limits of all `clips`."""
    # The same factor scales all moments of a unit, so that their identities survive clipping.
    factors = np.ones(chunk.units.n)
    for clip in clips:
        if np.isfinite(clip.limit):
            np.minimum(factors, scale_to(clip.norm.of(chunk), clip.limit), out=factors)
    return factors


def weights(chunk: CountChunk, clips: Sequence[Clip], min_tokens: int = 0) -> Floats:
    """Weight of each document: its unit's factor over its unit's number of documents."""
    return (chunk.lengths >= min_tokens) * chunk.units.spread(unit_factors(chunk, clips))


@dataclass(frozen=True, eq=False)
class NormHistogram(NormBins):
    """Histogram by `norm` after `clips` of units with a document of `min_tokens` tokens."""

    name, family = "norm_histogram", "counts"
    description = "share of units in each bin of a norm, from which a clip is chosen"
    laws = (GAUSSIAN, LAPLACE)

    norm: Norm
    edges: Floats
    clips: tuple[Clip, ...] = ()
    min_tokens: int = 0

    def total(self, chunk: CountChunk) -> Floats:
        """Number of units of `chunk` in each bin, of shape (n_edges - 1,)."""
        norms = unit_factors(chunk, self.clips) * self.norm.of(chunk)
        if self.min_tokens > 0 and isinstance(chunk, CountChunk):  # samples have no tokens
            norms = norms[chunk.units.any(chunk.lengths >= self.min_tokens)]
        return self.counted(norms)


@dataclass(frozen=True, eq=False)
class WordFrequencies(NonNegative):
    """Sum over units of their mean count vectors, each clipped by `clip` and `clips`."""

    name, family = "word_frequencies", "counts"
    description = "weighted mean counts of every word"
    laws = (GAUSSIAN, LAPLACE)

    # `clip` is of a CountNorm: its limit bounds what one document adds.

    clip: Clip
    clips: tuple[Clip, ...] = ()
    min_tokens: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.clip.norm, CountNorm):
            raise TypeError(
                f"clip must be of a CountNorm, got one of a {type(self.clip.norm).__name__}."
            )

    def _largest_norms(self) -> tuple[float, float]:
        assert isinstance(self.clip.norm, CountNorm)
        return norms_within(self.clip.limit, self.clip.norm.order)

    def total(self, chunk: CountChunk) -> Floats:
        """Clipped sum of counts of each word, of shape (n_features,)."""
        weight = weights(chunk, (self.clip, *self.clips), self.min_tokens)
        return sum_over_rows(len(weight), lambda rows: rows_of(chunk.X, rows).T @ weight[rows])
