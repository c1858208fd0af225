"""Queries that choose a vocabulary: numbers of documents, and votes."""

import math
import numbers
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Self

import numpy as np

from sktensor_dp.data.labels import checksums
from sktensor_dp.data.texts import Integers, WordCounts
from sktensor_dp.queries.laws import GAUSSIAN, GAUSSIAN_THRESHOLDED, LAPLACE
from sktensor_dp.queries.query import NonNegative, Norms
from sktensor_dp.tensor.arrays import Floats

# Number of buckets of the checksum: few rare words of a large corpus share a bucket.
N_BUCKETS = 2**18
# Grid of votes; and the relative slack that keeps rounded norms within their bound, for up to a
# million words, in proportion beyond.
VOTE, VOTE_SLACK, SLACK_WORDS = 2.0**-20, 1e-9, 10**6


class KeyedSum(Counter[str]):
    """Running sum of numbers by key (word)."""

    # `Counter.update` adds in C.
    add = merge = Counter.update

    def value(self) -> Self:
        """Sums by key so far."""
        return self


@dataclass(frozen=True)
class WordBuckets(NonNegative):
    """Weights of words by bucket of a checksum; a document gives its buckets equal weights."""

    name, family = "word_buckets", "texts"
    description = "share of documents, weighted, in each bucket of a checksum of words"
    laws = (GAUSSIAN,)

    # All buckets are released, empty ones too, so a document may have any number of words.
    # Contributions are multiples of `VOTE`, so sums are exact in any order.

    def _largest_norms(self) -> Norms:
        return Norms(l2=1.0)

    def places(self, words: Iterable[str]) -> Integers:
        """Bucket of each word."""
        return checksums(words) % N_BUCKETS

    def total(self, chunk: WordCounts) -> Floats:
        """Sum of the contributions of the units to each bucket, of shape (n_buckets,)."""
        sizes = np.diff(chunk.counts.indptr)
        documents = np.repeat(np.arange(len(sizes)), sizes)
        # Distinct pairs (document, bucket), each as one integer. Sorting is forty times as fast
        # here as numpy's hashing of distinct integers.
        pairs = np.sort(
            documents * N_BUCKETS + chunk.words.checksums[chunk.counts.indices] % N_BUCKETS
        )
        documents, buckets = np.divmod(pairs[np.diff(pairs, prepend=-1) != 0], N_BUCKETS)
        # A document with m buckets gives each 1 / sqrt(m), rounded down to multiples of `VOTE`.
        n_buckets = np.bincount(documents, minlength=len(sizes))
        votes = np.floor(1 / (VOTE * np.sqrt(np.maximum(n_buckets, 1))))
        totals = np.bincount(buckets, votes[documents], minlength=N_BUCKETS)
        return np.asarray(totals * VOTE, np.float64)


@dataclass(frozen=True, eq=False)
class WordContributions(NonNegative):
    """Query in which a unit adds to a limited number of words."""

    max_words_per_document: int

    def __post_init__(self) -> None:
        # No document has more words.
        largest_number = 2**52
        number = self.max_words_per_document
        if not (isinstance(number, numbers.Integral) and 1 <= number <= largest_number):
            raise ValueError(
                f"max_words_per_document must be an int from 1 to {largest_number}, got {number!r}."
            )

    def _largest_norms(self) -> Norms:
        most = self.max_words_per_document
        return Norms(l2=math.sqrt(most), l1=float(most))


def places_among(names: list[str], words: Iterable[str]) -> Integers:
    """Place of each of `names` among `words`; -1 for others."""
    columns = {word: column for column, word in enumerate(words)}
    return np.fromiter(map(columns.get, names, repeat(-1)), np.intp, len(names))


@dataclass(frozen=True)
class NumberOfWords:
    """Number of different public `words` that a unit has, as the norm of a histogram."""

    words: tuple[str, ...]

    def of(self, chunk: Any) -> Floats:
        """Number of the `words` that each unit has, of shape (n_units,)."""
        counted = places_among(chunk.words.names, self.words)[chunk.counts.indices] >= 0
        before = np.concatenate([[0], np.cumsum(counted)])
        return np.diff(before[chunk.counts.indptr]).astype(np.float64)


@dataclass(frozen=True)
class DocumentFrequencies(WordContributions):
    """Number of documents that contain each of public `words`."""

    name, family = "document_frequencies", "texts"
    description = "share of documents that contain each released word"
    laws = (GAUSSIAN, LAPLACE)

    # A document counts for its `max_words_per_document` most used of these words. Ties go by a
    # fixed checksum of the word, so the choice depends on that document only.

    words: tuple[str, ...]

    def total(self, chunk: WordCounts) -> Floats:
        """Number of units in `chunk` that contribute each word, of shape (n_words,)."""
        places = places_among(chunk.words.names, self.words)
        _, kept = chosen_words(chunk, self.max_words_per_document, (places >= 0).astype(np.float64))
        return np.bincount(places[kept], minlength=len(self.words)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class WordVotes(WordContributions):
    """Votes for words in proportion to the `weights` of their buckets, each at most `largest`."""

    name, family = "word_votes", "texts"
    description = "words for which enough documents vote, each with its votes"
    laws = (GAUSSIAN_THRESHOLDED,)

    # The words are private. A document votes for its words of largest weight; the L2 norm of its
    # votes is at most that of one vote for each of `max_words_per_document` words. Votes are
    # multiples of `VOTE`, so sums are exact in any order.

    largest: float
    weights: Floats

    sums = KeyedSum

    def __post_init__(self) -> None:
        super().__post_init__()
        most = math.sqrt(self.max_words_per_document)
        weights = np.asarray(self.weights)
        if not 1 <= self.largest <= most * (1 + 1e-12):
            raise ValueError(f"largest must be from 1 to {most:g}, got {self.largest!r}.")
        if weights.shape != (N_BUCKETS,) or not np.all((weights >= 0) & (weights <= 1)):
            raise ValueError(f"weights must be {N_BUCKETS} numbers from 0 to 1.")

    def total(self, chunk: WordCounts) -> Counter[str]:
        """Sum of the votes of the units in `chunk` for each word, by word."""
        weights = np.asarray(self.weights, np.float64)[chunk.words.checksums % N_BUCKETS]
        documents, kept = chosen_words(chunk, self.max_words_per_document, weights)
        # Weights relative to the document's largest, so that no square underflows.
        largest = np.zeros(chunk.n_units)
        np.maximum.at(largest, documents, weights[kept])
        votes = weights[kept] / largest[documents]
        norms = np.sqrt(np.bincount(documents, votes**2, minlength=chunk.n_units))
        # Lowered by a slack, which covers rounding in their norms.
        slack = min(VOTE_SLACK * max(1.0, self.max_words_per_document / SLACK_WORDS), 0.5)
        votes *= self.l2_contribution * (1 - slack) / norms[documents]
        steps = np.floor(np.minimum(votes, self.largest) / VOTE)
        totals = np.bincount(kept, steps, minlength=len(weights)) * VOTE
        voted = np.flatnonzero(totals)
        names = map(chunk.words.names.__getitem__, voted.tolist())
        return Counter(dict(zip(names, totals[voted].tolist(), strict=True)))


def chosen_words(chunk: WordCounts, most: int, weights: Floats) -> tuple[Integers, Integers]:
    """(unit, word) pairs that count: for each unit up to `most` words of positive weight."""
    # Words of largest weight; among equal weights, those that the unit uses most.
    n_words = np.diff(chunk.counts.indptr)
    weighted = weights[chunk.counts.indices] > 0
    units = np.repeat(np.arange(len(n_words)), n_words)[weighted]
    words, counts = chunk.counts.indices[weighted], chunk.counts.data[weighted]
    # Rank words only for units that have more words than count.
    is_ranked = (np.bincount(units, minlength=len(n_words)) > most)[units]
    if not is_ranked.any():
        return units, words
    ranked_units, ranked_words = units[is_ranked], words[is_ranked]
    order = np.lexsort((  # by the last key first; units are in order, and stay in their places
        chunk.words.ranks[ranked_words], -counts[is_ranked], -weights[ranked_words], ranked_units
    ))  # fmt: skip
    first = np.searchsorted(ranked_units, ranked_units)  # where each one's unit begins
    kept = order[np.arange(order.size) - first < most]
    return (
        np.concatenate([units[~is_ranked], ranked_units[kept]]),
        np.concatenate([words[~is_ranked], ranked_words[kept]]),
    )
