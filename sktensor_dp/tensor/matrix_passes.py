"""Passes over the observed entries of a sparse matrix, by products with it."""

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from sktensor_dp.tensor.blocks import rows_at_once
from sktensor_dp.tensor.normal_equations import NormalEquations
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.sorted_entries import SortedEntries, add_at

# Terms in single precision that are added one after the other, before sums go on in double.
_SHORT_ROW = 64

Table = NDArray[np.floating[Any]]


class MatrixPasses:
    """Entries of a matrix sorted by its longer mode alone, for both modes.

    The index is held once, and what is looked up or added to at random is the shorter
    mode's, which may stay in a cache.

    Parameters
    ----------
    entries : SortedEntries
        Of two modes.
    """

    def __init__(self, entries: SortedEntries) -> None:
        self._entries = entries
        self._long = int(np.argmax(entries.shape))
        self._short = 1 - self._long
        self._columns = entries.sorted_column(self._long, self._short)
        self._pointers = entries.row_pointers(self._long)

    def arrange(self, values: Floats) -> list[Floats]:
        """Values of the entries, as given, in the arrangement that both modes share."""
        return [self._entries.sort(values, self._long)] * 2

    def at(self, numbers: Floats, of: int, mode: int) -> Floats:
        """Numbers of the rows of one mode at every entry."""
        if of == self._long:
            return np.repeat(numbers, self._entries.counts[of])
        total = np.zeros(self._entries.n_entries)
        add_at(total, numbers, self._columns)
        return total

    def row_sums(self, arranged: Floats, mode: int) -> Floats:
        """Sums over the entries of each row of a mode."""
        if mode == self._long:
            return self._entries.sorted_row_sums(arranged, mode)
        ones = np.ones(self._entries.shape[self._long])
        return np.asarray(self._matrix(arranged).T @ ones, dtype=np.float64)

    def equations(
        self,
        mode: int,
        factors: Sequence[Floats],
        targets: Floats,
        second_moments: Sequence[Floats],
        *,
        rough: bool,
    ) -> NormalEquations:
        """Normal equations of one mode."""
        factor, packed = factors[1 - mode], second_moments[1 - mode]
        size = packed.shape[1]
        table = np.concatenate([packed, factor], axis=1)
        if rough:
            sums = self._rough_sums(mode, table.astype(np.float32), self._ones)
            left = targets.astype(np.float32)
            moment = self._rough_sums(mode, factor.astype(np.float32, order="C"), left)
        else:
            observed, matrix = self._matrix(np.ones(len(targets))), self._matrix(targets)
            if mode != self._long:
                observed, matrix = observed.T, matrix.T
            sums, moment = observed @ table, matrix @ factor
        return NormalEquations(sums[:, :size], moment, sums[:, size:], rough)

    def _matrix(self, values: Table) -> scipy.sparse.csr_matrix:
        size = (self._entries.shape[self._long], self._entries.shape[self._short])
        return scipy.sparse.csr_matrix((values, self._columns, self._pointers), size)

    def _rough_sums(self, mode: int, table: Table, weights: Table) -> Floats:
        """The same of weighted entries, all single, added in double but for a few at a time."""
        if mode == self._long:
            pattern, members = self._short_rows
            layout = (weights, self._columns, pattern.indptr)
            short = scipy.sparse.csr_matrix(layout, pattern.shape)
            return np.asarray(members @ np.asarray(short @ table, dtype=np.float64))
        sums = np.zeros((self._entries.shape[mode], table.shape[1]))
        for rows, span, part in self._parts:
            layout = (weights[span], part.indices, part.indptr)
            sums += scipy.sparse.csr_matrix(layout, part.shape).T @ table[rows]
        return sums

    @cached_property
    def _ones(self) -> NDArray[np.float32]:
        return np.ones(self._entries.n_entries, dtype=np.float32)

    @cached_property
    def _short_rows(self) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
        """The pattern with rows cut into short ones, and which of those lie in each row."""
        cuts = -(-self._entries.counts[self._long] // _SHORT_ROW)
        starts = np.concatenate([[0], np.cumsum(cuts)])
        n = int(starts[-1])
        places = np.arange(n) - np.repeat(starts[:-1], cuts)
        pointers = np.repeat(self._pointers[:-1], cuts) + _SHORT_ROW * places
        pointers = np.append(pointers, self._entries.n_entries).astype(self._pointers.dtype)
        layout = (self._ones, self._columns, pointers)
        short = scipy.sparse.csr_matrix(layout, (n, self._entries.shape[self._short]))
        members = scipy.sparse.csr_matrix((np.ones(n), np.arange(n), starts), (len(cuts), n))
        return short, members

    @cached_property
    def _parts(self) -> list[tuple[slice, slice, scipy.sparse.csr_matrix]]:
        """The pattern cut into ranges of rows, with views of the index."""
        size = rows_at_once(2)
        marks = np.arange(size, self._entries.n_entries, size)
        ends = np.unique([0, *np.searchsorted(self._pointers, marks), len(self._pointers) - 1])
        parts = []
        for first, last in itertools.pairwise(ends):
            pointers = self._pointers[first : last + 1]
            span, size = slice(pointers[0], pointers[-1]), self._entries.shape[self._short]
            layout = (self._ones[span], self._columns[span], pointers - pointers[0])
            part = scipy.sparse.csr_matrix(layout, (last - first, size))
            parts.append((slice(first, last), span, part))
        return parts
