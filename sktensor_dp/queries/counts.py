"""Counts of words in documents, as the custodian holds them, and batches of documents."""

import copy
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.queries.units import RowChunk, RowChunks, RowReader, Units
from sktensor_dp.tensor.arrays import Floats, Integers, Singles, of_same_shape, rows_at_once


@dataclass(frozen=True, eq=False)
class UnitWords:
    """Cells in which the counts of a unit's documents are added up."""

    # (n_units,): number of documents of each unit, and 0 of those that are left out.
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
        """Select the documents of chosen units."""
        rows = np.flatnonzero(chosen[of_rows])
        per_row = np.diff(X.indptr)[rows]
        ends = np.cumsum(per_row)
        starts = np.repeat(X.indptr[rows] - ends + per_row, per_row)
        stored = starts + np.arange(len(starts))
        owners = of_rows[rows]
        # Places in the order of units; sums at a place are of one unit, in the order of its rows.
        keys = np.repeat(owners, per_row) * X.shape[1] + X.indices[stored]
        different, places = np.unique(keys, return_inverse=True)
        sizes = np.bincount(owners, minlength=len(chosen))
        return cls(
            sizes, rows, per_row, stored, places, *reversed(np.divmod(different, X.shape[1]))
        )


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
        """Cells that add counts up for units of several documents."""
        return UnitWords.of(self.X, self.units.of_rows, self.units.sizes > 1)

    @cached_property
    def sorted_unit_words(self) -> UnitWords:
        """`unit_words` with documents in the order of `by_words`."""
        order, counts = self.by_words
        return UnitWords.of(counts, self.units.of_rows[order], self.units.sizes > 1)

    def restricted(self, words: NDArray[np.intp] | None) -> "CountChunk":
        """Keep the counts of some words only."""
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
        """Join the rows of each unit into one document."""
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


# Array operations release the interpreter's lock; more threads would wait for memory.
N_THREADS = min(os.cpu_count() or 1, 4)
# Batches below which threads cost more than they gain.
FEWEST_BATCHES = 8

PROPORTIONS = 2**15
# Documents are computed by this many, or some by other instructions than the rest.
LANES = 16


def run_in_batches(
    work: Callable[[slice, "Space"], None],
    counts: sp.csr_matrix,
    n_components: int,
    caches: float = 2.0,
) -> None:
    """Work on each batch of documents that are sorted by their numbers of words."""
    # At most 4 MB of singles to a batch, and enough batches for threads, unless they get smaller
    # than 1 MB. Calls on small arrays are slow.
    least, most = rows_at_once(1, 1 / 2), rows_at_once(1, caches)
    room = min(max(counts.nnz * n_components // FEWEST_BATCHES, least), most)
    batches = list(batches_of(np.diff(counts.indptr), n_components, room))

    def run(some: list[slice]) -> None:
        space = Space()
        # A thread does not know what its caller ignores, and warnings are outputs.
        with np.errstate(all="ignore"):
            for batch in some:
                work(batch, space)

    if N_THREADS == 1 or len(batches) < FEWEST_BATCHES:
        run(batches)
    else:
        with ThreadPoolExecutor(N_THREADS) as pool:
            shares = [list(islice(batches, i, None, N_THREADS)) for i in range(N_THREADS)]
            list(pool.map(run, shares))


def batches_of(n_words: NDArray[np.integer], n_components: int, room: int) -> Iterator[slice]:
    """Documents, sorted by their numbers of words, in batches of about as many words."""
    stop, first = len(n_words), int(np.searchsorted(n_words, 1))
    filled = np.concatenate([[0], np.cumsum(n_words, dtype=np.int64)])
    while stop > first:
        longest = int(n_words[stop - 1])
        most = min(room // longest, PROPORTIONS) // n_components
        most = max(most // LANES * LANES, LANES)
        least = max(stop - most, first)
        equal = int(np.searchsorted(n_words, longest))
        if equal <= (least + stop) // 2:
            start = max(equal, least)
        else:
            places = np.arange(least, stop)
            spare = longest * (stop - places) - (filled[stop] - filled[least:stop])
            # Filling shorter documents up with some words is cheaper than another batch.
            start = least + int((spare > rows_at_once(64 * n_components)).sum())
        yield slice(start, stop)
        stop = start


def filled_rows(
    counts: sp.csr_matrix, batch: slice
) -> tuple[Singles, NDArray[np.integer], NDArray[np.bool_] | None]:
    """Counts and words, a row a document, and which are not filled up, if some are."""
    ends = counts.indptr[batch.start : batch.stop + 1]
    stored, per_row = slice(ends[0], ends[-1]), np.diff(ends)
    shape = len(per_row), int(per_row[-1])
    data, words = counts.data[stored], counts.indices[stored]
    if per_row[0] == shape[1]:
        return data.reshape(shape), words.reshape(shape), None
    used = np.arange(shape[1]) < per_row[:, None]
    rows = np.zeros(shape, dtype=data.dtype), np.zeros(shape, dtype=words.dtype)
    rows[0][used], rows[1][used] = data, words
    return *rows, used


def columns(
    counts: sp.csr_matrix, batch: slice
) -> tuple[Singles, NDArray[np.integer], NDArray[np.bool_] | None]:
    """Counts with a column for each document."""
    *both, used = filled_rows(counts, batch)
    found = []
    for rows in both:
        n, longest = rows.shape
        found.append(np.zeros((longest, -(-n // LANES) * LANES), dtype=rows.dtype))
        found[-1][:, :n] = rows.T
    return found[0], found[1], used


class Space:
    """Arrays that are used again by the next batch: fresh memory is slow."""

    def __init__(self) -> None:
        self._arrays: dict[str, Singles] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> Singles:
        """Uninitialised array of a shape."""
        size = math.prod(shape)
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size, dtype=np.float32)
        return self._arrays[name][:size].reshape(shape)
