"""Counts of words in documents, validated, by document and by unit."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.data.units import RowChunk, RowChunks
from sktensor_dp.tensor.arrays import Floats, Integers, of_same_shape

# No document has more. Sixth powers of counts stay far from overflow: NaN would pass every clip.
LARGEST_COUNT = 2.0**30


def as_counts(X: object, name: str = "X") -> sp.csr_matrix:
    """Validate `X` as whole numbers >= 0; return float64 CSR, with counts clipped at 2**30."""
    # The bounds of moments hold only for whole numbers >= 0.
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
    """Layout for adding up counts by unit: a place for each pair of unit and word that occurs."""

    # (n_units,): number of documents of each unit; 0 for units that are left out.
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
        rows, n_words = np.flatnonzero(chosen[of_rows]), X.shape[1]
        per_row = np.diff(X.indptr)[rows]
        # A row's counts are consecutive among all counts and among those of `rows`.
        first_here = np.cumsum(per_row) - per_row
        n_counts = int(per_row.sum())
        stored = np.repeat(X.indptr[rows] - first_here, per_row) + np.arange(n_counts)
        # One key for each pair of unit and word. Sorted by unit, so that counts at a place are
        # added in the order of the unit's rows.
        keys = np.repeat(of_rows[rows], per_row) * n_words + X.indices[stored]
        different, places = np.unique(keys, return_inverse=True)
        owners, words = np.divmod(different, n_words)
        sizes = np.bincount(of_rows[rows], minlength=len(chosen))
        return cls(sizes, rows, per_row, stored, places, words=words, owners=owners)


class CountChunk(RowChunk):
    """Word counts of the documents of some units, with cached power sums of each document."""

    # Last choice of words and its chunk: moments and their norms need it one after the other.
    _restricted: "tuple[NDArray[np.intp] | None, CountChunk | None]" = (None, None)

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
        # Convert to float32 before rows are copied, which halves the memory of the copy.
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
        """`UnitWords` of the units with several documents, which exact norms need."""
        return UnitWords.of(self.X, self.units.of_rows, self.units.sizes > 1)

    @cached_property
    def sorted_unit_words(self) -> UnitWords:
        """`UnitWords` of the units with several documents, in the row order of `by_words`."""
        order, counts = self.by_words
        return UnitWords.of(counts, self.units.of_rows[order], self.units.sizes > 1)

    def restricted(self, words: NDArray[np.intp] | None) -> "CountChunk":
        """Chunk with the columns `words` only (None: all), and lengths of whole documents."""
        if words is None:
            return self
        last_words, chunk = self._restricted
        if chunk is None or last_words is not words:
            chunk = CountChunk(self.X[:, words].tocsr(), self.units)
            chunk.__dict__["lengths"] = self.lengths
            self._restricted = words, chunk
        return chunk


class CountChunks(RowChunks[CountChunk]):
    """Word counts of documents, validated and yielded as `CountChunk`, once for each release."""

    noun, _chunk, convert = "documents", CountChunk, staticmethod(as_counts)


class ShareChunks(RowChunks[RowChunk]):
    """Shares of topics in documents, each in the columns of its public group; CSR."""

    noun, _chunk, convert = "documents", RowChunk, staticmethod(sp.csr_matrix)
