"""Words of documents, and what a vocabulary asks of them: numbers of documents, and votes."""

import itertools
import math
import numbers
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import methodcaller
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.checks.errors import call_untrusted
from sktensor_dp.queries.laws import GAUSSIAN, GAUSSIAN_THRESHOLDED, LAPLACE
from sktensor_dp.queries.query import Chunks, NonNegative
from sktensor_dp.queries.units import Units
from sktensor_dp.tensor.arrays import Floats, read_only

Integers = NDArray[np.integer[Any]]

CHUNK_SIZE = 4096
# Documents whose words are strings at one time, before they are numbers.
BLOCK = 1024
# More words than any document has.
LARGEST_NUMBER = 2**52
# Of a checksum. Rare words of a large corpus then share one with few others.
N_BUCKETS = 2**18
# Step of votes, and what norms of votes of a million words lose at most so that rounding takes none
# past its bound; with more words it is more, in proportion.
VOTE, VOTE_SLACK, SLACK_WORDS = 2.0**-20, 1e-9, 10**6


class KeyedSum(Counter[str]):
    """Running sum of numbers by key (word)."""

    # A counter adds by `update`, in C.
    add = merge = Counter.update

    def value(self) -> Self:
        """Sums by key so far."""
        return self


class Words:
    """Distinct words of a corpus, numbered in the order of their first occurrence."""

    def __init__(self) -> None:
        self._places: defaultdict[str, int] = defaultdict(itertools.count().__next__)

    @cached_property
    def names(self) -> list[str]:
        """All words by number; after this no word can be added."""
        self._places.default_factory = None
        return list(self._places)

    @cached_property
    def ranks(self) -> Integers:
        """Rank of each word in a fixed order (checksum, then text), by which ties are broken."""
        # Two words compare alike in every corpus; the order in which a corpus happens to show them
        # would let one document steer the ties of others.
        keys = list(zip(self.checksums.tolist(), self.names, strict=True))
        order = sorted(range(len(keys)), key=keys.__getitem__)
        ranks = np.empty(len(order), np.intp)
        ranks[order] = np.arange(len(order))
        return ranks

    @cached_property
    def checksums(self) -> Integers:
        """Fixed checksum (CRC-32) of each word."""
        return checksums(self.names)

    def numbers(self, documents: list[list[str]]) -> Integers:
        """Number of each word of `documents`, one after the other; new words get new numbers."""
        stream = itertools.chain.from_iterable(documents)
        return np.fromiter(map(self._places.__getitem__, stream), np.int32)


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Word counts of units (documents or groups of documents), by number of the word."""

    words: Words  # of the corpus
    counts: sp.csr_matrix  # (n_units, n_words): without duplicates, and read-only

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", read_only(self.counts))

    @classmethod
    def of(cls, documents: Iterable[Iterable[str]]) -> "WordCounts":
        """Count the words of `documents`, each an iterable of words."""
        words, lengths = Words(), [np.zeros(1, np.intp)]
        numbers: list[Integers] = [np.zeros(0, np.int32)]
        documents = iter(documents)
        while block := [list(one) for one in itertools.islice(documents, BLOCK)]:
            numbers.append(words.numbers(block))
            lengths.append(np.fromiter(map(len, block), np.intp, len(block)))
        stream, ends = np.concatenate(numbers), np.cumsum(np.concatenate(lengths))
        shape = (len(ends) - 1, len(words.names))
        counts = sp.csr_matrix((np.ones(len(stream), np.int32), stream, ends), shape)
        counts.sum_duplicates()
        return cls(words, counts)

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    def joined(self, groups: NDArray[Any]) -> "WordCounts":
        """Word counts of each group of documents, in the order of the groups' labels."""
        order, units = Units.gathered(groups)
        rows = self.counts if order is None else self.counts[order]
        shape = (units.n, rows.shape[1])
        parts = (rows.data, rows.indices, rows.indptr[units.starts])
        # A copy, since summing duplicates writes to the memory of the documents' own counts.
        counts = sp.csr_matrix(parts, shape, copy=True)
        counts.sum_duplicates()
        return WordCounts(self.words, counts)


class TextChunks(Chunks):
    """Words of documents, split by `analyze` and yielded as `WordCounts` of some units."""

    columns: Sequence[str] = ()  # names of the columns whose categories are the words

    def __init__(
        self,
        documents: Iterable[Any],
        analyze: Callable[[Any], Iterable[str]],
        *,
        groups: NDArray[Any] | None = None,
    ) -> None:
        self.word_counts = call_untrusted(
            lambda: WordCounts.of(map(analyze, documents)), "Splitting documents into words"
        )
        self.grouped = groups is not None
        self._units = self.word_counts
        if groups is not None:
            self._units = self.word_counts.joined(groups)
        self.n_units = len(self._units)
        found = set(map(type, self.word_counts.words.names))
        kinds = {kind for kind in found if not issubclass(kind, str)}
        if kinds:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"The analyzer must return strings, got objects of type {names}.")

    def __iter__(self) -> Iterator[WordCounts]:
        # A chunk of no units, where there are none.
        return map(self._chunk, range(0, max(self.n_units, 1), CHUNK_SIZE))

    def _chunk(self, start: int) -> WordCounts:
        """Up to 4096 units from `start` on."""
        stop = min(start + CHUNK_SIZE, self.n_units)
        return WordCounts(self._units.words, self._units.counts[start:stop])


@dataclass(frozen=True)
class WordBuckets(NonNegative):
    """Words by a checksum of theirs; a document gives all its buckets alike, at an L2 norm of 1."""

    name, family = "word_buckets", "texts"
    description = "share of documents, weighted, in each bucket of a checksum of words"
    laws = (GAUSSIAN,)

    # All buckets are released, empty ones too, so a document may have any number of words. Numbers
    # are whole multiples of `VOTE`, so that sums are exact in any order.

    def _largest_norms(self) -> tuple[float, float]:
        return 1.0, math.inf

    def places(self, words: Iterable[str]) -> Integers:
        """Bucket of each word."""
        return checksums(words) % N_BUCKETS

    def total(self, chunk: WordCounts) -> Floats:
        """Sum of the contributions of the units to each bucket, of shape (n_buckets,)."""
        sizes = np.diff(chunk.counts.indptr)
        documents = np.repeat(np.arange(len(sizes)), sizes)
        # Sorted: numpy finds distinct integers by their hashes, which takes forty times as long.
        pairs = np.sort(
            documents * N_BUCKETS + chunk.words.checksums[chunk.counts.indices] % N_BUCKETS
        )
        documents, buckets = np.divmod(pairs[np.diff(pairs, prepend=-1) != 0], N_BUCKETS)
        numbers = np.bincount(documents, minlength=len(sizes))
        steps = np.floor(1 / (VOTE * np.sqrt(np.maximum(numbers, 1))))
        found = np.bincount(buckets, steps[documents], minlength=N_BUCKETS)
        return np.asarray(found * VOTE, np.float64)


@dataclass(frozen=True, eq=False)
class WordContributions(NonNegative):
    """Query in which a unit adds to a limited number of words."""

    max_words_per_document: int

    def __post_init__(self) -> None:
        number = self.max_words_per_document
        if not (isinstance(number, numbers.Integral) and 1 <= number <= LARGEST_NUMBER):
            raise ValueError(
                f"max_words_per_document must be an int from 1 to {LARGEST_NUMBER}, got {number!r}."
            )

    def _largest_norms(self) -> tuple[float, float]:
        return math.sqrt(self.max_words_per_document), float(self.max_words_per_document)


@dataclass(frozen=True)
class DocumentFrequencies(WordContributions):
    """Number of documents that contain each of public `words`."""

    name, family = "document_frequencies", "texts"
    description = "share of documents that contain each released word"
    laws = (GAUSSIAN, LAPLACE)

    # A document counts towards the `max_words_per_document` of them that it uses most. Ties go by a
    # fixed checksum of the word, which every document ranks alike. The choice looks at nothing but
    # the document.

    words: tuple[str, ...]

    def total(self, chunk: WordCounts) -> Floats:
        """Number of units in `chunk` that contribute each word, of shape (n_words,)."""
        columns = {word: column for column, word in enumerate(self.words)}
        names = chunk.words.names
        places = np.fromiter(map(columns.get, names, repeat(-1)), np.intp, len(names))
        _, kept = chosen_words(chunk, self.max_words_per_document, (places >= 0).astype(np.float64))
        return np.bincount(places[kept], minlength=len(self.words)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class WordVotes(WordContributions):
    """Votes for words in proportion to `weights` of their buckets, at most `largest` for each."""

    name, family = "word_votes", "texts"
    description = "words for which enough documents vote, each with its votes"
    laws = (GAUSSIAN_THRESHOLDED,)

    # The words are private. A document votes for the words of largest weight. Its votes have the L2
    # norm of a document frequency: one for every word where it is full and weights are even. They
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
    def _slack(self) -> float:
        """Relative slack by which votes are lowered, to cover rounding in their norms."""
        return min(VOTE_SLACK * max(1.0, self.max_words_per_document / SLACK_WORDS), 0.5)

    def total(self, chunk: WordCounts) -> Counter[str]:
        """Sum of the votes of the units in `chunk` for each word, by word."""
        weights = np.asarray(self.weights, np.float64)[chunk.words.checksums % N_BUCKETS]
        documents, kept = chosen_words(chunk, self.max_words_per_document, weights)
        # The largest weight of a document is 1 then, and no square of it is lost.
        largest = np.zeros(len(chunk))
        np.maximum.at(largest, documents, weights[kept])
        votes = weights[kept] / largest[documents]
        norms = np.sqrt(np.bincount(documents, votes**2, minlength=len(chunk)))
        votes *= self.l2_contribution * (1 - self._slack) / norms[documents]
        steps = np.floor(np.minimum(votes, self.largest) / VOTE)
        totals = np.bincount(kept, steps, minlength=len(weights)) * VOTE
        return named_totals(totals, chunk.words)


def chosen_words(chunk: WordCounts, most: int, weights: Floats) -> tuple[Integers, Integers]:
    """(unit, word) pairs that count: for each unit up to `most` words of positive weight."""
    # Those of largest weight; of equal ones, those that the unit uses most.
    sizes = np.diff(chunk.counts.indptr)
    among = weights[chunk.counts.indices] > 0
    documents = np.repeat(np.arange(len(sizes)), sizes)[among]
    columns, counts = chunk.counts.indices[among], chunk.counts.data[among]
    sizes = np.bincount(documents, minlength=len(sizes))
    # Of most units all words count: only the others' are ranked.
    longer = (sizes > most)[documents]
    if not longer.any():
        return documents, columns
    short = ~longer
    few, those = (documents[short], columns[short]), (documents[longer], columns[longer])
    ranked = chunk.words.ranks[those[1]], -counts[longer], -weights[those[1]], those[0]
    order = np.lexsort(ranked)
    first = np.searchsorted(those[0], those[0])
    order = order[np.arange(order.size) - first < most]
    return np.concatenate([few[0], those[0][order]]), np.concatenate([few[1], those[1][order]])


def named_totals(totals: NDArray[Any], words: Words) -> Counter[str]:
    """Totals above 0, by word instead of by number."""
    found = np.flatnonzero(totals)
    names = map(words.names.__getitem__, found.tolist())
    return Counter(dict(zip(names, totals[found].tolist(), strict=True)))


def checksums(words: Iterable[str]) -> Integers:
    """Fixed checksum (CRC-32) of each word."""
    encoded = map(methodcaller("encode", "utf-8", "surrogatepass"), words)
    return np.fromiter(map(zlib.crc32, encoded), np.int64)
