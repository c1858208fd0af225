"""Numbers of documents by bucket, and votes of documents for words, as a vocabulary needs them."""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from sktensor_dp.statistics.text import (
    KeyedSum,
    WordContributions,
    WordCounts,
    chosen_words,
    named_totals,
)
from sktensor_dp.tensor.arrays import Floats

# Of a checksum. Rare words of a large corpus then share one with few others.
N_BUCKETS = 2**18
# Step of votes, and what norms of votes of a million words lose at most so that rounding takes none
# past its bound; with more words it is more, in proportion.
VOTE, NORM_SLACK, SLACK_WORDS = 2.0**-20, 1e-9, 10**6


@dataclass(frozen=True)
class WordBuckets(WordContributions):
    """Numbers of documents by bucket of their words: by known words, or by a checksum of any."""

    # A document adds one to the bucket of every word that it contributes, and no more than one to a
    # bucket. All buckets are released, empty ones too. Where `words` are given, each is a bucket,
    # and a document chooses among these alone.

    words: tuple[str, ...] | None = None

    def total(self, chunk: WordCounts | list[list[str]]) -> Floats:
        """Count, for each bucket, the documents of a chunk that are in it."""
        units = chunk if isinstance(chunk, WordCounts) else WordCounts.of(chunk)
        most = self.max_words_per_document
        if self.words is not None:
            columns = {word: column for column, word in enumerate(self.words)}
            names = units.words.names
            places = np.fromiter(map(columns.get, names, repeat(-1)), np.intp, len(names))
            _, kept = chosen_words(units, most, places >= 0)
            return np.bincount(places[kept], minlength=len(self.words)).astype(np.float64)
        documents, kept = chosen_words(units, most)
        # Sorted: numpy finds distinct integers by their hashes, which takes forty times as long.
        pairs = np.sort(documents * N_BUCKETS + units.words.checksums[kept] % N_BUCKETS)
        pairs = pairs[np.diff(pairs, prepend=-1) != 0]
        return np.bincount(pairs % N_BUCKETS, minlength=N_BUCKETS).astype(np.float64)


@dataclass(frozen=True, eq=False)
class WordVotes(WordContributions):
    """Votes of documents for words, which buckets with a weight of 0 cannot get."""

    # Among words of positive weight a document chooses as above. It votes for each in proportion to
    # the weight of its bucket, with as many votes in L2 norm as a document frequency has: one for
    # every word where it is full and weights are even, more where it has fewer candidates. Votes
    # are whole multiples of `VOTE`, so that sums are exact in any order.

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

    @property
    def max_partitions(self) -> int:
        """Largest number of words that one document votes for."""
        return self.max_words_per_document

    @property
    def _slack(self) -> float:
        """What covers the rounding of as many squares."""
        return min(NORM_SLACK * max(1.0, self.max_words_per_document / SLACK_WORDS), 0.5)

    def total(self, chunk: WordCounts | list[list[str]]) -> Counter[str]:
        """Sum the votes of a chunk's documents for each word."""
        units = chunk if isinstance(chunk, WordCounts) else WordCounts.of(chunk)
        weights = np.asarray(self.weights, np.float64)[units.words.checksums % N_BUCKETS]
        documents, kept = chosen_words(units, self.max_words_per_document, weights > 0)
        # The largest weight of a document is 1 then, and no square of it is lost.
        largest = np.zeros(len(units))
        np.maximum.at(largest, documents, weights[kept])
        votes = weights[kept] / largest[documents]
        norms = np.sqrt(np.bincount(documents, votes**2, minlength=len(units)))
        votes *= self.l2_contribution * (1 - self._slack) / norms[documents]
        steps = np.floor(np.minimum(votes, self.largest) / VOTE)
        totals = np.bincount(kept, steps, minlength=len(weights)) * VOTE
        return named_totals(totals, units.words)
