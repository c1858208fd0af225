"""Passes over observed entries that updates of a CP model need, in three layouts of the entries.

Each class has the methods `arrange`, `at`, `row_sums` and `equations`. "Arranged for a mode" means:
in the order in which the class keeps the entries for updates of that mode.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats, rows_at_once
from sktensor_dp.tensor.normal_equations import Design, NormalEquations, normal_equations
from sktensor_dp.tensor.sorted_entries import Integers, SortedEntries, add_at, distinct

# Terms in single precision that are added one after the other, before sums go on in double.
_SHORT_ROW = 64

Table = NDArray[np.floating[Any]]


class MatrixPasses:
    """Passes over a sparse matrix that is sorted by its longer mode alone, for both modes."""

    def __init__(self, entries: SortedEntries) -> None:
        self._entries = entries
        self._long = int(np.argmax(entries.shape))
        self._short = 1 - self._long
        self._columns = entries.sorted_column(self._long, self._short)
        self._pointers = entries.row_pointers(self._long)

    def arrange(self, values: Floats) -> list[Floats]:
        """Values of the entries arranged for each mode; one array serves both."""
        return [self._entries.sort(values, self._long)] * 2

    def at(self, numbers: Floats, of: int, mode: int) -> Floats:
        """``numbers[i]`` at every entry, i its row in mode `of`, arranged for `mode`."""
        if of == self._long:
            return np.repeat(numbers, self._entries.counts[of])
        total = np.zeros(self._entries.n_entries)
        add_at(total, numbers, self._columns)
        return total

    def row_sums(self, arranged: Floats, mode: int) -> Floats:
        """Sums of arranged values over each row of a mode, of shape (n_m,)."""
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
        """Normal equations of the factor of `mode`, for arranged targets.

        `second_moments` hold packed E[a a'] of the rows a of each factor; `rough`: single
        precision.
        """
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
        """Sparse matrix (longer mode by shorter one) with `values` at the entries."""
        size = (self._entries.shape[self._long], self._entries.shape[self._short])
        return scipy.sparse.csr_matrix((values, self._columns, self._pointers), size)

    def _rough_sums(self, mode: int, table: Table, weights: Table) -> Floats:
        """Sums over each row's entries of weight times the other mode's row of `table`.
        In single precision, a few terms at a time, which are added up in double.
        """
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
        """One for each entry, in single precision."""
        return np.ones(self._entries.n_entries, dtype=np.float32)

    @cached_property
    def _short_rows(self) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
        """Pattern of entries with rows cut into pieces of _SHORT_ROW entries at most.
        Also the matrix of shape (n_rows, n_pieces) that adds up the pieces of each row.
        """
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
        """Pattern of entries cut into blocks of rows: slice of rows, slice of entries, matrix."""
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


# Entries of a fibre, on average, from which on products of what its other modes share are
# saved: with 4 there is nothing to gain.
_LEAST_ENTRIES = 8
# Columns of a table that are multiplied at once.
_COLUMNS = 16
# Fibres that there may be for each entry, for those with entries to be marked and not sorted.
_MARKS = 8


def fibre_mode(entries: SortedEntries) -> int | None:
    """Mode whose fibres (entries that differ in that mode alone) have the most entries.
    None where they have fewer than _LEAST_ENTRIES each on average.
    """
    found = {mode: _n_fibres(entries, mode) for mode in range(entries.n_modes)}
    mode = min(found, key=found.__getitem__)
    return mode if entries.n_entries >= _LEAST_ENTRIES * found[mode] else None


@dataclass(frozen=True, eq=False)
class _Given:
    """Values of the entries and their sums over fibres and rows, kept between updates."""

    arranged: Floats
    matrix: scipy.sparse.csr_matrix
    of_fibres: Floats
    of_columns: Floats
    square: float


class FibrePasses:
    """Passes that read fibre by fibre the entries that differ in one mode alone.

    Products of the other modes' rows are computed once for a fibre, and not for each of its entries
    (S. Smith et al., "SPLATT: efficient and parallel sparse tensor-matrix multiplication", IPDPS
    2015).

    Parameters
    ----------
    entries : SortedEntries
        Of three modes or more.
    inner : int
        Mode along which fibres run.
    """

    def __init__(self, entries: SortedEntries, inner: int) -> None:
        self._shape, self._inner = entries.shape, inner
        self._outer = entries.others(inner)
        keys = _keys(entries, inner)
        self._order = np.argsort(keys, kind="stable")
        keys = keys[self._order]
        begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        self._begins, self._sizes = begins, np.diff(np.append(begins, len(keys)))
        firsts = self._order[begins]
        self._rows: dict[int, Integers] = {k: entries.rows(k)[firsts] for k in self._outer}
        kind = entries.coordinates.dtype
        self._columns = entries.rows(inner)[self._order]
        self._pointers = np.append(begins, len(keys)).astype(kind)
        self._observed = self._matrix(np.ones(len(keys)))
        self._counts = entries.counts[inner]
        self._values: _Given | None = None
        self._last: tuple[tuple[Any, ...], tuple[Floats, Floats, Floats, Floats]] | None = None

    def arrange(self, values: Floats) -> list[Floats]:
        """Values of the entries arranged for each mode; one array serves all."""
        return [np.asarray(values, dtype=np.float64)[self._order]] * len(self._shape)

    def at(self, numbers: Floats, of: int, mode: int) -> Floats:
        """``numbers[i]`` at every entry, i its row in mode `of`, arranged for `mode`."""
        if of == self._inner:
            return numbers.take(self._columns)
        return np.repeat(numbers.take(self._rows[of]), self._sizes)

    def row_sums(self, arranged: Floats, mode: int) -> Floats:
        """Sums of arranged values over each row of a mode, of shape (n_m,)."""
        rows, sums = self._columns, arranged
        if mode != self._inner:
            rows, sums = self._rows[mode], np.add.reduceat(arranged, self._begins)
        return np.bincount(rows, sums, minlength=self._shape[mode]).astype(np.float64)

    def equations(
        self,
        mode: int,
        factors: Sequence[Floats],
        targets: Floats,
        second_moments: Sequence[Floats],
        *,
        rough: bool,
    ) -> NormalEquations:
        """Normal equations of the factor of `mode`, for arranged targets.
        `second_moments` hold packed E[a a'] of the rows a of each factor. `rough` is ignored.
        """
        product, matrix = self._product(mode, factors), self._matrix(targets)
        if mode == self._inner:
            moment, design = matrix.T @ product, self._observed.T @ product
        else:
            columns, members = factors[self._inner], self._members(mode)
            moment = members @ ((matrix @ columns) * product)
            design = members @ ((self._observed @ columns) * product)
        return NormalEquations(self._gram(mode, factors, second_moments), moment, design)

    def gathered(
        self,
        mode: int,
        arranged: Floats,
        mean: float,
        biases: Sequence[Floats],
        factors: Sequence[Floats],
        second_moments: Sequence[Floats],
    ) -> tuple[Floats, float, NormalEquations]:
        """Row sums, sum of squares and normal equations of targets that are never formed.

        Targets are `arranged` values less `mean` and the other modes' `biases`. Terms that are
        constant along a fibre are added and multiplied once for it.
        """
        given, product = self._given(arranged), self._product(mode, factors)
        level = np.full(len(self._begins), mean)
        for k in self._outer:
            if k != mode:
                level += biases[k].take(self._rows[k])
        inner, columns = biases[self._inner], factors[self._inner]
        if mode == self._inner:
            rank = columns.shape[1]
            parts = np.concatenate([product, level[:, None] * product, level[:, None]], axis=1)
            over = self._observed.T @ parts
            design, moment = over[:, :rank], given.matrix.T @ product - over[:, rank : 2 * rank]
            sums, square = given.of_columns - over[:, -1], given.square
        else:
            values, designs, shifts, shift = self._along(given, columns, inner)
            members = self._members(mode)
            design = members @ (designs * product)
            moment = members @ ((values - shifts - level[:, None] * designs) * product)
            own = given.of_fibres - self._sizes * level - shift
            sums = np.bincount(self._rows[mode], own, minlength=self._shape[mode])
            square = given.square + 2.0 * float(level @ shift)
            square += float(self._counts @ inner**2) - 2.0 * float(inner @ given.of_columns)
        square += float((self._sizes * level - 2.0 * given.of_fibres) @ level)
        equations = NormalEquations(self._gram(mode, factors, second_moments), moment, design)
        return sums, max(square, 0.0), equations

    def _along(
        self, given: _Given, columns: Floats, biases: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Sums along each fibre of terms that depend on the inner mode alone, kept until it
        changes.

        Summed are values times rows of the inner factor, the rows, biases times rows, and biases.
        """
        # The other modes ask one after the other, before any of it has changed.
        if self._last is None or any(
            ours is not theirs
            for ours, theirs in zip(self._last[0], (given, columns, biases), strict=True)
        ):
            rank = columns.shape[1]
            table = np.concatenate([columns, biases[:, None] * columns, biases[:, None]], axis=1)
            over = self._observed @ table
            found = given.matrix @ columns, over[:, :rank], over[:, rank : 2 * rank], over[:, -1]
            self._last = (given, columns, biases), found
        return self._last[1]

    def _gram(
        self, mode: int, factors: Sequence[Floats], second_moments: Sequence[Floats]
    ) -> Floats:
        """Sums over each row's entries of products of the other modes' packed moments."""
        rank = factors[mode].shape[1]
        tables = {k: m for k, m in enumerate(second_moments) if k != mode}
        width = rank * (rank + 1) // 2
        sums = np.empty((self._shape[mode], width))
        for first in range(0, width, _COLUMNS):
            part = slice(first, first + _COLUMNS)
            cut = {k: np.ascontiguousarray(table[:, part]) for k, table in tables.items()}
            product = self._product(mode, cut)
            if mode == self._inner:
                sums[:, part] = self._observed.T @ product
            else:
                product *= self._observed @ cut[self._inner]
                sums[:, part] = self._members(mode) @ product
        return sums

    def _product(self, mode: int, tables: Sequence[Floats] | dict[int, Floats]) -> Floats:
        """Products, for each fibre, of the rows of `tables` of the outer modes except `mode`."""
        first, *others = (k for k in self._outer if k != mode)
        product = np.take(tables[first], self._rows[first], axis=0)
        for k in others:
            product *= np.take(tables[k], self._rows[k], axis=0)
        return product

    def _given(self, arranged: Floats) -> _Given:
        """Values and their sums, computed once for an array of values."""
        if self._values is None or self._values.arranged is not arranged:
            matrix = self._matrix(arranged)
            of_fibres = np.add.reduceat(arranged, self._begins)
            of_columns = self.row_sums(arranged, self._inner)
            square = float(arranged @ arranged)
            self._values = _Given(arranged, matrix, of_fibres, of_columns, square)
        return self._values

    def _members(self, mode: int) -> scipy.sparse.csc_matrix:
        """Sparse matrix (n_m, n_fibres) with ones where a fibre lies in a row of a mode."""
        n = len(self._begins)
        layout = (np.ones(n), self._rows[mode], np.arange(n + 1))
        return scipy.sparse.csc_matrix(layout, (self._shape[mode], n))

    def _matrix(self, values: Floats) -> scipy.sparse.csr_matrix:
        """Sparse matrix of shape (n_fibres, n_inner) with `values` at the entries."""
        size = (len(self._begins), self._shape[self._inner])
        return scipy.sparse.csr_matrix((values, self._columns, self._pointers), size)


def _keys(entries: SortedEntries, inner: int) -> NDArray[np.int64]:
    """Integer for each entry that is equal for entries of one fibre along `inner`."""
    keys = np.zeros(entries.n_entries, dtype=np.int64)
    for k in entries.others(inner):
        keys *= entries.shape[k]
        keys += entries.rows(k)
    return keys


def _n_fibres(entries: SortedEntries, inner: int) -> float:
    """Number of fibres along a mode with entries; infinity where their keys would overflow."""
    most = math.prod(entries.shape[k] for k in entries.others(inner))
    if most * _LEAST_ENTRIES <= entries.n_entries:
        return float(most)
    if most > np.iinfo(np.int64).max:
        return math.inf
    keys = _keys(entries, inner)
    if most > _MARKS * entries.n_entries:
        return float(len(distinct(keys)))
    marks = np.zeros(most, dtype=bool)
    marks[keys] = True
    return float(np.count_nonzero(marks))


# A matrix with at least one entry in so many observed is multiplied as a dense one: it
# costs no more memory than the entries do, and BLAS reads it faster.
_DENSE_SHARE = 4


class SortedPasses:
    """Passes over entries that are sorted by each mode, a copy of the values for each."""

    def __init__(self, entries: SortedEntries) -> None:
        self._entries = entries

    def arrange(self, values: Floats) -> list[Floats]:
        """Values of the entries arranged for each mode: sorted by it."""
        return [self._entries.sort(values, mode) for mode in range(self._entries.n_modes)]

    def at(self, numbers: Floats, of: int, mode: int) -> Floats:
        """``numbers[i]`` at every entry, i its row in mode `of`, arranged for `mode`."""
        return numbers.take(self._entries.sorted_column(mode, of))

    def row_sums(self, arranged: Floats, mode: int) -> Floats:
        """Sums, of shape (n_m,), over each row of a mode, of values arranged for it."""
        return self._entries.sorted_row_sums(arranged, mode)

    def equations(
        self,
        mode: int,
        factors: Sequence[Floats],
        targets: Floats,
        second_moments: Sequence[Floats],
        *,
        rough: bool,
    ) -> NormalEquations:
        """Normal equations of the factor of `mode`, for targets arranged for it.
        `second_moments` hold packed E[a a'] of the rows a of each factor. `rough` is ignored.
        """
        # Rough ones may err by a few units of single precision.
        others = self._entries.others(mode)
        if len(others) == 1:
            return self._of_matrix(mode, factors[1 - mode], targets, second_moments[1 - mode])
        # Components as rows: reads and sums then run along contiguous memory.
        indices = [self._entries.sorted_column(mode, k) for k in others]
        design, products = (
            _gathered_product([np.ascontiguousarray(tables[k].T) for k in others], indices)
            for tables in (factors, second_moments)
        )
        return normal_equations(self._entries, mode, design, targets, products)

    def _of_matrix(
        self, mode: int, factor: Floats, targets: Floats, second_moments: Floats
    ) -> NormalEquations:
        """Normal equations of a mode of a matrix, by dense matrix products.
        `factor` and packed `second_moments` are those of the other mode.
        """
        shape, counts = self._entries.shape, self._entries.counts
        size = shape[mode], shape[1 - mode]
        cells = np.repeat(np.arange(size[0]), counts[mode]) * size[1]
        cells += self._entries.sorted_column(mode, 1 - mode)
        observed, values = (
            np.bincount(cells, numbers, minlength=size[0] * size[1]).reshape(size)
            for numbers in (None, targets)
        )
        observed = observed.astype(float)
        return NormalEquations(observed @ second_moments, values @ factor, observed @ factor)


EntryPasses = SortedPasses | MatrixPasses | FibrePasses


def passes_over(entries: SortedEntries) -> EntryPasses:
    """Fastest of the three kinds of passes for `entries`."""
    cells = float(np.prod([float(n) for n in entries.shape]))
    if entries.n_modes == 2 and cells > _DENSE_SHARE * entries.n_entries:
        return MatrixPasses(entries)
    if entries.n_modes > 2 and (inner := fibre_mode(entries)) is not None:
        return FibrePasses(entries, inner)
    return SortedPasses(entries)


def _gathered_product(columns: list[Floats], indices: list[Integers]) -> Design:
    """Function from a span of entries to products of columns: element-wise over the modes.
    `columns` holds an array (r, n_k) and `indices` the entries' row for each of the modes.
    """
    # Coordinates were checked when they were sorted; "clip" saves a check of each.

    def gather(span: slice) -> Floats:
        product = columns[0].take(indices[0][span], axis=1, mode="clip")
        for column, index in zip(columns[1:], indices[1:], strict=True):
            product *= column.take(index[span], axis=1, mode="clip")
        return product

    return gather
