"""Words of documents, numbered and counted by unit."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.checks.errors import call_untrusted
from sktensor_dp.data.labels import Labels, checksums, inverse_order
from sktensor_dp.data.units import Chunks, Units
from sktensor_dp.tensor.arrays import read_only

Integers = NDArray[np.integer[Any]]

CHUNK_SIZE = 4096
# Number of documents whose words are held as strings before they are numbered.
BLOCK = 1024


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
        # The order must not depend on the corpus: otherwise one document could steer how ties of
        # others are broken.
        keys = list(zip(self.checksums.tolist(), self.names, strict=True))
        return inverse_order(sorted(range(len(keys)), key=keys.__getitem__))

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
        words, lengths = Words(), [np.zeros(1, np.intp)]  # a 0 first: sums are ends of rows in CSR
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

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.counts.shape[0])

    def joined(self, groups: Labels) -> "WordCounts":
        """Word counts of each group of documents, in the order of the groups' labels."""
        order, units = Units.gathered(groups)
        rows = self.counts if order is None else self.counts[order]
        shape = (units.n, rows.shape[1])
        # Rows of a unit become one, in which a word may occur again. Copy: summing duplicates in
        # place would change the documents' own counts.
        whole_units = (rows.data, rows.indices, rows.indptr[units.starts])
        counts = sp.csr_matrix(whole_units, shape, copy=True)
        counts.sum_duplicates()
        return WordCounts(self.words, counts)


class TextChunks(Chunks):
    """Words of documents, split by `analyze` and yielded as `WordCounts` of some units."""

    def __init__(
        self,
        documents: Iterable[object],
        analyze: Callable[[object], Iterable[str]],
        *,
        groups: Labels | None = None,
    ) -> None:
        self.word_counts = call_untrusted(
            lambda: WordCounts.of(map(analyze, documents)), "Splitting documents into words"
        )
        self.grouped = groups is not None
        self._units = self.word_counts if groups is None else self.word_counts.joined(groups)
        self.n_units = self._units.n_units
        words = self.word_counts.words.names
        wrong = {type(word).__name__ for word in words if not isinstance(word, str)}
        if wrong:
            kinds = ", ".join(sorted(wrong))
            raise TypeError(f"The analyzer must return strings, got objects of type {kinds}.")

    def __iter__(self) -> Iterator[WordCounts]:
        # Yield one chunk without units where there are no units.
        for start in range(0, max(self.n_units, 1), CHUNK_SIZE):
            stop = min(start + CHUNK_SIZE, self.n_units)
            yield WordCounts(self._units.words, self._units.counts[start:stop])
