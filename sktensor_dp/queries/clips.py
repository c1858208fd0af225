"""Clips of what a unit adds to sums of counts: norms, limits, and factors that keep to them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.data.counts import CountChunk, UnitWords
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import rows_of, scale_to
from sktensor_dp.queries import query
from sktensor_dp.tensor.arrays import Floats

# Range of weights of the diagonal, and the largest entry of a whitener: cubes of counts times these
# stay far from overflow.
DIAGONAL, LARGEST_WHITENER = (1e-6, 1e6), 1e30
# Fewest tokens for which the first three moments are defined.
MIN_TOKENS = 3


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
        query.check_number("the limit of a clip", self.limit, query.LIMIT, infinite=True)


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
    """L2 norm of a unit's mean of ``2 l E2_ij``, i < j, and of ``diagonal_weight l E2_ii``."""

    # A `diagonal_weight` of sqrt(2) gives sqrt(2) times the Frobenius norm, 1 the norm of the
    # histogram of word pairs.

    diagonal_weight: float
    words: NDArray[np.intp] | None = field(default=None, compare=False)  # columns; None: all

    def __post_init__(self) -> None:
        query.check_number("diagonal_weight", self.diagonal_weight, DIAGONAL)

    def of(self, chunk: CountChunk) -> Floats:
        """Exact norm of each unit where cheap, else the mean norm of its documents, a bound."""
        part = chunk.restricted(self.words)
        squares = part.squares
        # Of each document the sum over i < j of (2 c_i c_j)^2, and over i of (c_i (c_i - 1))^2.
        distinct = 2 * (squares**2 - part.sum_over_words(lambda c: c**4))
        repeated = part.sum_over_words(lambda c: (c * (c - 1)) ** 2)
        total = np.maximum(distinct, 0) + self.diagonal_weight**2 * repeated
        norms = NORM_SLACK * np.sqrt(total) / np.maximum(part.lengths - 1, 1)
        exact = NORM_SLACK * norms_of_mean_pairs(part, self.diagonal_weight)
        return np.minimum(chunk.units.means(norms), exact)


def norms_of_mean_pairs(part: CountChunk, diagonal_weight: float) -> Floats:
    """Exact pair norm of each unit, (n_units,); infinity for one document or too many pairs."""
    # Most pairs of words held at once, and most of a unit for its exact norm to be computed.
    pairs_at_once, most_pairs = 2**22, 2**26
    norms, units = np.full(part.units.n, np.inf), part.units
    pairs_of_documents = np.diff(part.X.indptr).astype(np.float64) ** 2
    n_pairs = np.bincount(units.of_rows, pairs_of_documents, units.n)
    eligible = np.flatnonzero((units.sizes > 1) & (n_pairs <= most_pairs))
    batches = np.floor(np.cumsum(n_pairs[eligible]) / pairs_at_once)
    for batch in np.unique(batches):
        chosen = eligible[batches == batch]
        rows = slice(units.starts[chosen[0]], units.starts[chosen[-1] + 1])
        norms[chosen] = _pair_norms(part, rows, chosen, diagonal_weight)
    return norms


def _pair_norms(
    part: CountChunk, rows: slice, chosen: NDArray[np.intp], diagonal_weight: float
) -> Floats:
    """Exact pair norms of the units `chosen`, whose documents lie in the slice `rows`."""
    # Units are numbered from the first chosen one on; `cells` are words of units.
    X, unit_of_row = rows_of(part.X, rows), part.units.of_rows[rows] - chosen[0]
    wanted = np.zeros(int(chosen[-1] - chosen[0]) + 1, dtype=bool)
    wanted[chosen - chosen[0]] = True
    cells = UnitWords.of(X, unit_of_row, wanted)
    # Of counts c of l tokens the moment has the entries 2 c_i c_j / (l - 1), i < j, and
    # c_i (c_i - 1) / (l - 1); a unit's is the mean over its documents.
    lengths, data = part.lengths[rows][cells.rows], X.data[cells.stored]
    weight = (lengths >= 2) / np.maximum(lengths - 1, 1) / cells.sizes[unit_of_row[cells.rows]]
    weighted = data * np.repeat(weight, cells.per_row)
    # One column for each word of each unit, so that products of columns stay within a unit.
    layout = (cells.places, np.append(0, np.cumsum(cells.per_row)))
    shape = (len(cells.rows), len(cells.words))
    counts = sp.csr_matrix((data, *layout), shape=shape)
    pairs = (counts.T.tocsr() @ sp.csr_matrix((weighted, *layout), shape=shape)).tocoo()
    distinct = np.where(pairs.row < pairs.col, 2 * pairs.data, 0.0)
    repeated = np.bincount(cells.places, weighted * (data - 1), len(cells.words))
    distinct_squares = np.bincount(cells.owners[pairs.row], np.square(distinct), len(wanted))
    repeated_squares = np.bincount(cells.owners, np.square(repeated), len(wanted))
    return np.asarray(np.sqrt(distinct_squares + diagonal_weight**2 * repeated_squares))[wanted]


def norms_of_mean_counts(
    cells: UnitWords,
    ratios: NDArray[np.floating],
    expected: NDArray[np.floating],
    topics: Floats | None,
) -> Floats:
    """L2 norm of each unit's mean over documents of ``ratios_w expected_k topics_kw``; (n_units,).

    Without `topics` the last factor is 1. `cells` lays out the units wanted; others get infinity.
    `ratios` has a number for each stored count, `expected` the shape (n_documents, k).
    """
    # Squares of a word's entries in all topics are added up first, then those of a unit's words.
    data, squares = ratios[cells.stored].astype(np.float64), np.zeros(len(cells.words))
    for topic, share in enumerate(expected[cells.rows].T):
        sums = np.bincount(cells.places, data * np.repeat(share, cells.per_row), len(cells.words))
        if topics is not None:
            sums = sums * topics[topic, cells.words]
        squares += np.square(sums)
    root_sums = np.sqrt(np.bincount(cells.owners, squares, len(cells.sizes)))
    # Callers take the smaller of this and another bound, which units left out of `cells` keep.
    return np.where(cells.sizes > 0, root_sums / np.maximum(cells.sizes, 1), np.inf)


@dataclass(frozen=True)
class TripleNorm:
    """Mean over a unit's documents, of length l, of the Frobenius norm of ``l E3``."""

    def of(self, chunk: CountChunk) -> Floats:
        """Mean over each unit's documents of their norms, from power sums; (n_units,)."""
        p2 = chunk.squares
        p4 = chunk.sum_over_words(lambda c: c**4)
        p6 = chunk.sum_over_words(lambda c: c**6)
        pairs = chunk.sum_over_words(lambda c: (c * (c - 1)) ** 2)
        pairs_with_itself = chunk.sum_over_words(lambda c: (c**2 * (c - 1)) ** 2)
        # Squares of the entries with three different indices, c_i c_j c_k; with two, c_i (c_i - 1)
        # c_j, in three places; and with one, c_i (c_i - 1) (c_i - 2).
        distinct = np.maximum(p2**3 - 3 * p2 * p4 + 2 * p6, 0)
        repeated = np.maximum(pairs * p2 - pairs_with_itself, 0)
        same = chunk.sum_over_words(lambda c: (c * (c - 1) * (c - 2)) ** 2)
        total, lengths = distinct + 3 * repeated + same, chunk.lengths
        norms = NORM_SLACK * np.sqrt(total) / np.maximum((lengths - 1) * (lengths - 2), 1)
        return chunk.units.means(norms)


@dataclass(frozen=True, eq=False)
class WhitenedTripleNorm:
    """Upper bound on the norm of ``l E3(W, W, W)``, W the `whitener` (n_words, k) of `words`."""

    # The smaller of two bounds: the triangle inequality on the three terms, and l times the mean of
    # |w_a| |w_b| |w_c| over ordered draws of three different tokens.

    whitener: Floats
    words: NDArray[np.intp] | None = None  # columns; None: all

    def __post_init__(self) -> None:
        query.check_array("the whitener", self.whitener, LARGEST_WHITENER)

    def of(self, chunk: CountChunk) -> Floats:
        """Mean over each unit's documents of bounds on the norms of their moments; (n_units,)."""
        X = chunk.restricted(self.words).X
        # Sums over a document's tokens of powers of their rows' norms.
        row_norms = np.linalg.norm(self.whitener, axis=1)
        p1, p2, p3 = (X @ row_norms**p for p in (1, 2, 3))
        triangle = triangle_of_terms(X @ self.whitener, p2, p3)
        # Sum of |w_a| |w_b| |w_c| over three different tokens. The polynomial cancels: a bound on
        # its rounding error, which grows with the number of words, is added.
        rounding = 2e-15 * (np.diff(X.indptr) + 8) * p1**3
        distinct = np.maximum(p1**3 - 3 * p1 * p2 + 2 * p3, 0) + rounding
        lengths = chunk.lengths
        norms = (
            NORM_SLACK
            * np.minimum(triangle, distinct)
            / np.maximum((lengths - 1) * (lengths - 2), 1)
        )
        return chunk.units.means(norms)


def triangle_of_terms(projected: Floats, squares: Floats, cubes: Floats) -> Floats:
    """Triangle bound (n,) on ``|l E3(W, W, W)| (l - 1) (l - 2)`` of each document.

    `projected` is ``X @ W``; `squares` and `cubes` sum these powers of tokens' row norms of W.
    """
    norms = np.linalg.norm(projected, axis=1)
    return np.asarray(norms**3 + 2 * cubes + 3 * squares * norms)


def unit_factors(chunk: CountChunk, clips: Sequence[Clip]) -> Floats:
    """Factor in [0, 1] of each unit that brings its norm within the limits of all `clips`."""
    # Queries with the same clips scale a unit by one factor: identities between moments survive.
    factors = np.ones(chunk.units.n)
    for clip in clips:
        if np.isfinite(clip.limit):
            np.minimum(factors, scale_to(clip.norm.of(chunk), clip.limit), out=factors)
    return factors


def document_weights(chunk: CountChunk, clips: Sequence[Clip], min_tokens: int = 0) -> Floats:
    """Weight of each document: its unit's factor over its unit's number of documents; (n,).

    It is 0 for documents with fewer than `min_tokens` tokens.
    """
    return (chunk.lengths >= min_tokens) * chunk.units.row_weights(unit_factors(chunk, clips))
