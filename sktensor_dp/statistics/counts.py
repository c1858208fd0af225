"""Counts of words in documents, as the custodian holds them."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.reading import read, read_each
from sktensor_dp.statistics.sums import blocks

__all__ = ["CountChunk", "CountChunks", "as_counts", "row_views"]

Floats = NDArray[np.float64]

# Beyond any document; sixth powers and single precision stay far from overflow, whose
# NaN would pass every clip.
LARGEST_COUNT = 2.0**30


def as_counts(X: Any, name: str = "X") -> sp.csr_matrix:
    """Validated counts in float64 compressed rows."""
    # The bounds of moments hold for whole numbers >= 0 alone; counts above 2**30 are taken for it.
    counts = read(lambda: sp.csr_matrix(X, dtype=np.float64), name)
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


def row_views(X: Any) -> Iterator[Any]:
    """Cut a matrix into parts of at most 2**14 rows, without copying what it holds."""
    parts = list(blocks(X.shape[0]))
    for rows in parts:
        if len(parts) == 1:
            yield X
        elif not sp.issparse(X):
            yield X[rows]
        else:
            ends = X.indptr[rows.start : rows.stop + 1]
            stored = slice(ends[0], ends[-1])
            layout = (X.data[stored], X.indices[stored], ends - ends[0])
            yield sp.csr_matrix(layout, shape=(rows.stop - rows.start, X.shape[1]))


class CountChunk:
    """Some documents with their power sums, computed once."""

    def __init__(self, X: sp.csr_matrix) -> None:
        self.X = X
        # Moments and their norms ask for the same words one after the other.
        self._restricted: tuple[NDArray[np.intp], CountChunk] | None = None

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Row of every non-zero."""
        return np.repeat(np.arange(self.X.shape[0]), np.diff(self.X.indptr))

    @cached_property
    def lengths(self) -> Floats:
        """Number of tokens of each document."""
        return self.sum_over_words(lambda c: c)

    @cached_property
    def squares(self) -> Floats:
        """Sum of the squared counts of each document."""
        return self.sum_over_words(np.square)

    @cached_property
    def by_words(self) -> tuple[NDArray[np.intp], sp.csr_matrix]:
        """Documents sorted by their number of different words, and their counts as singles."""
        order = np.argsort(np.diff(self.X.indptr), kind="stable")
        # Singles first: rows are copied, and half as much memory is.
        singles = (self.X.data.astype(np.float32), self.X.indices, self.X.indptr)
        return order, sp.csr_matrix(singles, self.X.shape)[order]

    def sum_over_words(self, function: Callable[[Floats], Floats]) -> Floats:
        """Sum of a function of the counts that is 0 at 0, document by document."""
        values = function(self.X.data)
        sums = np.bincount(self.rows, weights=values, minlength=self.X.shape[0])
        return sums.astype(np.float64, copy=False)

    def restricted(self, words: NDArray[np.intp] | None) -> "CountChunk":
        """The same documents with their counts of some words only."""
        # Lengths stay those of the whole documents: the restriction is a restriction of the
        # moments.
        if words is None:
            return self
        if self._restricted is None or self._restricted[0] is not words:
            part = CountChunk(self.X[:, words].tocsr())
            part.__dict__["lengths"] = self.lengths
            self._restricted = (words, part)
        return self._restricted[1]


class CountChunks:
    """Counts to be read several times, a chunk of documents at a time."""

    # Chunks are cut where they hold more than 2**14 documents, so that sums over the documents of
    # one stay accurate.

    def __init__(
        self, source: sp.csr_matrix | Iterable[Any], n_documents: int, n_features: int
    ) -> None:
        self.n_units = n_documents
        self.n_features = n_features
        self._whole = list(map(CountChunk, row_views(source))) if sp.issparse(source) else None
        self._source = None if self._whole is not None else source

    @property
    def announced(self) -> bool:
        """Whether only reading shows that chunks are what was announced."""
        return self._whole is None

    def __iter__(self) -> Iterator[CountChunk]:
        if self._whole is not None:
            yield from self._whole
            return
        seen = 0
        assert self._source is not None
        for part in read_each(self._source, "The source of chunks"):
            counts = as_counts(part, "a chunk")
            if counts.shape[1] != self.n_features:
                raise ValueError(
                    f"A chunk has {counts.shape[1]} features; n_features is {self.n_features}."
                )
            seen += counts.shape[0]
            yield from map(CountChunk, row_views(counts))
        if seen != self.n_units:
            raise ValueError(
                f"The chunks have {seen} documents in all; n_samples is {self.n_units}."
            )
