"""Counts of words in documents, as the custodian holds them."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.row_chunks import RowChunk, RowChunks, RowReader, Units
from sktensor_dp.statistics.unit_words import UnitWords
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.same_shape import of_same_shape

# Beyond any document; sixth powers and single precision stay far from overflow, whose
# NaN would pass every clip.
LARGEST_COUNT = 2.0**30


def as_counts(X: Any, name: str = "X") -> sp.csr_matrix:
    """Validated counts in float64 compressed rows."""
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


class CountChunk(RowChunk):
    """Some units' documents with their power sums, computed once."""

    # Moments and their norms ask for the same words one after the other.
    _restricted: "tuple[NDArray[np.intp], CountChunk] | None" = None

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
        return order, of_same_shape(self.X, self.X.data.astype(np.float32))[order]

    def sum_over_words(self, function: Callable[[Floats], Floats]) -> Floats:
        """Sum of a function of the counts that is 0 at 0, document by document."""
        values = function(self.X.data)
        sums = np.bincount(self.rows, weights=values, minlength=self.X.shape[0])
        return sums.astype(np.float64, copy=False)

    @cached_property
    def unit_squares(self) -> Floats:
        """Sum of the squared mean counts of each unit."""
        if self.units.are_rows:
            return self.squares
        means = self.units.sums(self.X)
        totals = CountChunk(means).squares
        return totals / self.units.sizes / self.units.sizes

    @cached_property
    def unit_words(self) -> UnitWords:
        """Where counts are added up to those of units that have several documents."""
        return UnitWords.of(self.X, self.units.of_rows, self.units.sizes > 1)

    @cached_property
    def sorted_unit_words(self) -> UnitWords:
        """The same with documents in the order of `by_words`."""
        order, counts = self.by_words
        return UnitWords.of(counts, self.units.of_rows[order], self.units.sizes > 1)

    def restricted(self, words: NDArray[np.intp] | None) -> "CountChunk":
        """The same documents with their counts of some words only."""
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
    """Counts to be read several times, some documents at a time."""

    noun, _chunk = "documents", CountChunk

    def _validated(self, part: Any) -> sp.csr_matrix:
        counts = as_counts(part, "a chunk")
        if counts.shape[1] != self.n_features:
            raise ValueError(
                f"A chunk has {counts.shape[1]} features; n_features is {self.n_features}."
            )
        return counts

    def joined(self) -> "CountChunks":
        """The same with all rows of a unit as one document."""
        other = copy.copy(self)
        other._joined = _as_one_document
        if self._whole is not None:
            other._whole = [
                part for chunk in self._whole for part in other._cut(chunk.X, chunk.units)
            ]
        return other

    def _reader(self) -> RowReader:
        return replace(super()._reader(), joins=self._joined is not None)


def _as_one_document(X: sp.csr_matrix, units: Units) -> tuple[sp.csr_matrix, Units]:
    # A copy of documents that are units already has the same digits.
    if units.are_rows:
        return X, units
    joined = units.sums(X)
    np.minimum(joined.data, LARGEST_COUNT, out=joined.data)
    return joined, Units.single(units.n)
