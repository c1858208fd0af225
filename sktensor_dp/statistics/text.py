"""Document frequencies of words, with a bounded contribution of each document."""

import itertools
import math
import numbers
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.statistics.reading import call_foreign
from sktensor_dp.statistics.units import RowChoice, in_order, kept_rows

__all__ = ["DocumentFrequencies", "KeyedSum", "TextChunks"]

Integers = NDArray[np.intp]

CHUNK_SIZE = 2000
# More words than any document has.
LARGEST_NUMBER = 2**52


class KeyedSum(Counter[str]):
    """A sum of whole numbers by key."""

    # A counter adds by `update`, in C.
    add = merge = Counter.update

    def value(self) -> Self:
        """The sum so far."""
        return self


class TextChunks:
    """Documents as lists of words, a chunk of units at a time: of documents, or of groups."""

    def __init__(
        self,
        documents: Iterable[Any],
        analyze: Callable[[Any], Iterable[str]],
        *,
        groups: NDArray[Any] | None = None,
        choice: RowChoice | None = None,
    ) -> None:
        known: dict[str, str] = {}

        def words(document: Any) -> list[str]:
            found = analyze(document)
            if type(found) is not list:
                found = list(found)
            # One object per distinct word, however often it occurs.
            return list(map(known.setdefault, found, found))

        self.documents = call_foreign(
            lambda: list(map(words, documents)), "Splitting documents into words"
        )
        self.grouped = groups is not None
        self._units = self.documents
        if groups is not None:
            self._units = _joined(self.documents, groups, choice)
        self.n_units = len(self._units)
        kinds = {kind for kind in map(type, known) if not issubclass(kind, str)}
        if kinds:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"The analyzer must return strings, got objects of type {names}.")

    def __iter__(self) -> Iterator[list[list[str]]]:
        # A chunk of no units, where there are none.
        for start in range(0, max(self.n_units, 1), CHUNK_SIZE):
            yield self._units[start : start + CHUNK_SIZE]


def _joined(
    documents: list[list[str]], groups: NDArray[Any], choice: RowChoice | None
) -> list[list[str]]:
    """Words of all documents of each group together, in the order of labels."""
    _, places = np.unique(groups, return_inverse=True)
    order, units = in_order(places)
    order = np.arange(len(documents)) if order is None else order
    if choice is not None:
        kept, units = kept_rows(units, choice)
        order = order[kept]
    rows = [documents[row] for row in order.tolist()]
    parts = itertools.pairwise(units.starts.tolist())
    return [list(itertools.chain.from_iterable(rows[first:last])) for first, last in parts]


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many documents each word of the corpus occurs."""

    # A document counts towards the `max_words_per_document` words it uses most. Ties go by a fixed
    # checksum of the word, which every document ranks alike: their votes then meet on the same
    # words instead of scattering. The choice looks at nothing but the document.

    max_words_per_document: int

    sums = KeyedSum

    def __post_init__(self) -> None:
        number = self.max_words_per_document
        if not (isinstance(number, numbers.Integral) and 1 <= number <= LARGEST_NUMBER):
            raise ValueError(
                f"max_words_per_document must be an int from 1 to {LARGEST_NUMBER}, got {number!r}."
            )

    @property
    def max_partitions(self) -> int:
        """Largest number of words to which one document contributes 1."""
        return self.max_words_per_document

    @property
    def l2_sensitivity(self) -> float:
        """L2 norm of the largest change: that many words lose 1, as many others gain 1."""
        return math.sqrt(2 * self.max_words_per_document)

    @property
    def l1_sensitivity(self) -> float:
        """L1 norm of the largest change."""
        return 2.0 * self.max_words_per_document

    @property
    def l2_contribution(self) -> float:
        """L2 norm of so many ones."""
        return math.sqrt(self.max_words_per_document)

    @property
    def l1_contribution(self) -> float:
        """L1 norm of so many ones."""
        return float(self.max_words_per_document)

    def total(self, chunk: list[list[str]]) -> Counter[str]:
        """Count, for each word, the documents of a chunk that contribute it."""
        ranked, words = _rank_words(chunk)
        lengths = np.fromiter(map(len, chunk), np.intp, len(chunk))
        owners = np.repeat(np.arange(len(chunk)), lengths)
        pairs, counts = np.unique(owners * len(ranked) + words, return_counts=True)
        documents, words = np.divmod(pairs, max(len(ranked), 1))
        # Of most documents all words count: only the others' are ranked.
        sizes = np.bincount(documents, minlength=len(chunk))
        longer = (sizes > self.max_words_per_document)[documents]
        kept = words[~longer]
        if longer.any():
            documents, words, counts = documents[longer], words[longer], counts[longer]
            order = np.lexsort((words, -counts, documents))
            first = np.searchsorted(documents, documents)
            chosen = words[order][np.arange(order.size) - first < self.max_words_per_document]
            kept = np.concatenate([kept, chosen])
        totals = np.bincount(kept, minlength=len(ranked))
        found = np.flatnonzero(totals)
        frequencies = totals[found]
        names = map(ranked.__getitem__, found.tolist())
        return Counter(dict(zip(names, frequencies.tolist(), strict=True)))


def _rank_words(chunk: list[list[str]]) -> tuple[list[str], Integers]:
    """Distinct words of a chunk in an order of their own, and every word's place in it."""
    # Two words compare alike in every corpus; the order in which a chunk happens to show them would
    # let one document steer the ties of others.
    places: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    stream = itertools.chain.from_iterable(chunk)
    words = np.fromiter(map(places.__getitem__, stream), np.intp)
    appeared = list(places)
    encoded = map(methodcaller("encode", "utf-8", "surrogatepass"), appeared)
    keys = list(zip(map(zlib.crc32, encoded), appeared, strict=True))
    order = sorted(range(len(appeared)), key=keys.__getitem__)
    ranks = np.empty(len(order), np.intp)
    ranks[order] = np.arange(len(order))
    return [appeared[place] for place in order], ranks[words]
