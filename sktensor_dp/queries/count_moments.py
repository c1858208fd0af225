"""Queries for frequencies of words, and for pair and triple moments of counts."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.data.sums import AccurateSum
from sktensor_dp.data.units import rows_of, sum_over_rows
from sktensor_dp.queries.clips import (
    DIAGONAL,
    MIN_TOKENS,
    Clip,
    CountNorm,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
    document_weights,
    triangle_of_terms,
    unit_factors,
)
from sktensor_dp.queries.laws import (
    GAUSSIAN,
    GAUSSIAN_SYMMETRIC,
    LAPLACE,
    LAPLACE_SYMMETRIC,
    SPHERICAL,
)
from sktensor_dp.queries.query import NonNegative, Norms, Signed, check_number, norms_within
from sktensor_dp.tensor.arrays import Floats, blocks, of_same_shape, spans
from sktensor_dp.tensor.symmetric import n_unique

# Sums of absolute terms of a triple moment, most of which cancel, are at most this many times its
# limit.
LARGEST_TERMS = 16.0


@dataclass(frozen=True, eq=False)
class WordFrequencies(NonNegative):
    """Sum over units of their mean count vectors, each clipped by `clip` and `other_clips`."""

    name, family = "word_frequencies", "counts"
    description = "weighted mean counts of every word"
    laws = (GAUSSIAN, LAPLACE)

    # `clip` must have a CountNorm: its limit bounds the contribution of one unit.

    clip: Clip
    other_clips: tuple[Clip, ...] = ()  # in force, too
    min_tokens: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.clip.norm, CountNorm):
            raise TypeError(
                f"clip must be of a CountNorm, got one of a {type(self.clip.norm).__name__}."
            )

    def _largest_norms(self) -> Norms:
        assert isinstance(self.clip.norm, CountNorm)
        return norms_within(self.clip.limit, self.clip.norm.order)

    def total(self, chunk: CountChunk) -> Floats:
        """Clipped sum of counts of each word, of shape (n_features,)."""
        weight = document_weights(chunk, (self.clip, *self.other_clips), self.min_tokens)
        return sum_over_rows(len(weight), lambda rows: rows_of(chunk.X, rows).T @ weight[rows])


def _whitened_sum(X: sp.csr_matrix, B: Floats, projected: Floats, weight: Floats) -> Floats:
    """Weighted sum over documents of third moments in a basis B; `projected` is ``X @ B``."""
    # Counts c with p = B'c have the moment p p p, less sum_w c_w b_w b_w p with p in each of three
    # places, plus 2 sum_w c_w b_w b_w b_w: two thirds of this are added in each place.
    terms_at_once = 2**12  # documents or words that are added plainly before an accurate sum
    cubes, word_counts, word_moments = AccurateSum(), AccurateSum(), AccurateSum()
    for rows in blocks(X.shape[0], terms_at_once):
        counts, p = rows_of(X, rows), projected[rows]
        weighted = p * weight[rows, None]
        cubes.add(_triple_products(p, weighted, all_alike=True))
        word_counts.add(np.asarray(counts.T @ weight[rows]))
        word_moments.add(np.asarray(counts.T @ weighted))
    repeated = word_moments.value() - (2 / 3) * word_counts.value()[:, None] * B
    in_one_place = AccurateSum()
    for words in blocks(len(B), terms_at_once):
        in_one_place.add(_triple_products(B[words], repeated[words], all_alike=False))
    of_repeated = in_one_place.value()
    result = cubes.value() - of_repeated
    return result - of_repeated.transpose(0, 2, 1) - of_repeated.transpose(2, 1, 0)


def _triple_products(A: Floats, C: Floats, *, all_alike: bool) -> Floats:
    """``sum_n A_na A_nb C_nc``, (k, k, k); `all_alike` if rows of C are multiples of those of A."""
    # Columns are contiguous and taken one at a time, so that nothing larger than A is formed; equal
    # entries are computed once.
    k = A.shape[1]
    columns, result = np.ascontiguousarray(A.T), np.zeros((k, k, k))
    for a in range(k):
        first = a if all_alike else 0
        block = (columns[a] * columns[a:]) @ C[:, first:]
        result[a, a:, first:] = result[a:, a, first:] = block
        if all_alike:
            result[a:, a:, a] = block
    return result


@dataclass(frozen=True, eq=False)
class PairMoments(NonNegative):
    """Sum over units of clipped pair moments ``l E2 = (c c' - diag(c)) / (l - 1)`` of counts c."""

    name, family = "pair_moments", "counts"
    description = "weighted mean second moment of counts"
    laws = (GAUSSIAN_SYMMETRIC, LAPLACE_SYMMETRIC)
    coordinates = "pairs"

    # `clip` must have a PairNorm (L2), or a CountNorm of order 1 (L1 and L2).

    clip: Clip
    diagonal_weight: float
    other_clips: tuple[Clip, ...] = ()  # in force, too
    words: NDArray[np.intp] | None = None  # columns; None: all
    min_tokens: int = 2

    def __post_init__(self) -> None:
        norm = self.clip.norm
        check_number("diagonal_weight", self.diagonal_weight, DIAGONAL)
        if isinstance(norm, PairNorm):
            if norm.diagonal_weight < self.diagonal_weight or norm.words is not self.words:
                raise ValueError(
                    "clip must be of a PairNorm on the same words, with a diagonal_weight no less "
                    f"than that of the query, {self.diagonal_weight:g}."
                )
        elif not (isinstance(norm, CountNorm) and norm.order == 1 and self.diagonal_weight <= 1):
            raise TypeError(
                "clip must be of a PairNorm, or of a CountNorm of order 1 where diagonal_weight is "
                f"at most 1; got one of a {type(norm).__name__}."
            )

    def _largest_norms(self) -> Norms:
        # All entries of ``l E2`` sum to the number of tokens l.
        return norms_within(self.clip.limit, 1 if isinstance(self.clip.norm, CountNorm) else 2)

    def _weighted(self, chunk: CountChunk) -> tuple[sp.csr_matrix, Floats]:
        """Counts of `words`, and the weight of each document divided by ``l - 1``."""
        weight = document_weights(chunk, (self.clip, *self.other_clips), max(self.min_tokens, 2))
        weight /= np.maximum(chunk.lengths - 1, 1)
        return chunk.restricted(self.words).X, weight

    def total(self, chunk: CountChunk) -> Floats:
        """Sum of the pair moments of `chunk`, dense and symmetric, of shape (n_words, n_words)."""
        X, weight = self._weighted(chunk)
        return sum_over_rows(len(weight), lambda rows: _pair_sums(rows_of(X, rows), weight[rows]))

    def product_parts(self, chunk: CountChunk, V: Floats) -> Floats:
        """Parts of ``M @ V``, M the sum of `chunk`, without forming M; (n_words, n_columns + 1)."""
        # Above this many words eigenvectors are found by iteration, whose tolerance single
        # precision can reach. Used without noise only, so rounding needs no bound.
        words_for_singles = 600
        X, weight = self._weighted(chunk)
        if len(V) > words_for_singles:
            order, X = chunk.restricted(self.words).by_words
            V, weight = V.astype(np.float32), weight[order].astype(np.float32)
        # The last column holds the diagonal, subtracted once at the end: with many words, V is
        # larger than a chunk.
        projected = np.ones((len(weight), V.shape[1] + 1), dtype=V.dtype)
        projected[:, :-1] = X @ V
        projected *= weight[:, None]
        return np.asarray(X.T @ projected)

    def product_of_parts(self, total: Floats, V: Floats) -> Floats:
        """``M @ V`` from the sum of :meth:`product_parts`."""
        return np.asarray(total[:, :-1] - total[:, -1:] * V)


def _pair_sums(X: sp.csr_matrix, weight: Floats) -> Floats:
    """Weighted sum of ``c c' - diag(c)`` over documents with counts c, the rows of `X`; dense."""
    n_words = X.shape[1]
    transposed = X.T.tocsr()
    scaled = of_same_shape(X, X.data * np.repeat(weight, np.diff(X.indptr)))
    sums = np.empty((n_words, n_words))
    # A block of words at a time, since memory holds only one matrix of all words.
    for words in spans(n_words, n_words, caches=4):
        sums[words] = (transposed[words] @ scaled).toarray()
    # Computed as c (c - 1): the difference of two sums would leave rounding errors.
    np.fill_diagonal(sums, of_same_shape(X, X.data * (X.data - 1)).T @ weight)
    return sums


@dataclass(frozen=True, eq=False)
class _Triples:
    """Weighted sum over units of third moments ``l E3(B, B, B)``, B the public `basis`.

    Their norm is at most the limit of `clip`.
    """

    basis: Floats
    clip: Clip
    other_clips: tuple[Clip, ...] = ()  # in force, too
    words: NDArray[np.intp] | None = None  # columns; None: all

    def _largest_norms(self) -> Norms:
        return Norms(l2=self.clip.limit)

    def document_weights(self, chunk: CountChunk, projected: Floats) -> Floats:
        """Weight of each document over its ``(l - 1) (l - 2)``; 0 for fewer than three tokens."""
        # Sums of absolute terms are bounded too: where large terms cancel, their rounding errors
        # would remain.
        X, lengths = chunk.restricted(self.words).X, chunk.lengths
        products = np.maximum((lengths - 1) * (lengths - 2), 1)
        long_enough = lengths >= MIN_TOKENS
        factors = unit_factors(chunk, (self.clip, *self.other_clips))
        limit = LARGEST_TERMS * self.clip.limit
        if np.isfinite(limit):
            row_norms = np.linalg.norm(self.basis, axis=1)
            terms = triangle_of_terms(projected, X @ row_norms**2, X @ row_norms**3)
            terms = chunk.units.means(np.where(long_enough, terms / products, 0.0))
            np.minimum(factors, limit / np.maximum(terms, limit), out=factors)
        return long_enough * chunk.units.row_weights(factors) / products

    def total(self, chunk: CountChunk) -> Floats:
        """Symmetric tensor of shape (k, k, k), in time linear in non-zeros and in n_words k^3."""
        X = chunk.restricted(self.words).X
        in_use = np.flatnonzero(X.getnnz(axis=0))  # words with a count
        X, B = X[:, in_use], self.basis[in_use]
        projected = X @ B
        return _whitened_sum(X, B, projected, self.document_weights(chunk, projected))


@dataclass(frozen=True, eq=False)
class WhitenedTripleMoments(_Triples, Signed):
    """Sum over units of ``l E3(W, W, W)``, W the public `basis`, clipped in this space."""

    name, family = "whitened_triple_moments", "counts"
    description = "weighted mean third moment of counts in the released whitened space"
    laws = (GAUSSIAN_SYMMETRIC, SPHERICAL)
    coordinates = "symmetric"

    # `clip` must have a WhitenedTripleNorm of the same W. The moments of two units may be opposite:
    # where one replaces another, the sensitivity is twice its limit.

    def __post_init__(self) -> None:
        norm = self.clip.norm
        if not isinstance(norm, WhitenedTripleNorm) or norm.whitener is not self.basis:
            raise ValueError(
                "clip must be of a WhitenedTripleNorm whose whitener is the basis; got one of a "
                f"{type(norm).__name__}."
            )


@dataclass(frozen=True, eq=False)
class TripleMoments(_Triples, NonNegative):
    """Sum over units of ``l E3(U, U, U)``, U the orthonormal `basis`, clipped over all words."""

    name, family = "triple_moments", "counts"
    description = "weighted mean third moment of counts, noised in word space, seen in a subspace"
    laws = (GAUSSIAN_SYMMETRIC, SPHERICAL)
    coordinates = "symmetric"

    # `clip` must have a TripleNorm, or a CountNorm of order 1, which bounds the former. A bound on
    # the whole tensor also bounds its part at `words`.

    def __post_init__(self) -> None:
        norm = self.clip.norm
        if not isinstance(norm, TripleNorm) and norm != CountNorm(1):
            raise TypeError(
                "clip must be of a TripleNorm, or of a CountNorm of order 1; got one of a "
                f"{type(norm).__name__}."
            )
        gram = self.basis.T @ self.basis
        if not np.allclose(gram, np.eye(len(gram)), atol=1e-8):
            raise ValueError("the basis must have orthonormal columns.")

    @property
    def ambient_dimension(self) -> int:
        """Number of distinct entries of the tensor over all words, that is projected here."""
        return n_unique(self.basis.shape[0], 3)
