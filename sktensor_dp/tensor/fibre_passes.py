"""Passes over the observed entries of a tensor, fibre by fibre."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from sktensor_dp.tensor.normal_equations import NormalEquations
from sktensor_dp.tensor.oracle import Floats
from sktensor_dp.tensor.sorted_entries import Integers, SortedEntries, distinct

# Entries of a fibre, on average, from which on products of what its other modes share are
# saved: with 4 there is nothing to gain.
_LEAST_ENTRIES = 8
# Columns of a table that are multiplied at once.
_COLUMNS = 16
# Fibres that there may be for each entry, for those with entries to be marked and not sorted.
_MARKS = 8


def fibre_mode(entries: SortedEntries) -> int | None:
    """Mode along which fibres have enough entries, the most of all; None where none has."""
    found = {mode: _n_fibres(entries, mode) for mode in range(entries.n_modes)}
    mode = min(found, key=found.__getitem__)
    return mode if entries.n_entries >= _LEAST_ENTRIES * found[mode] else None


@dataclass(frozen=True, eq=False)
class _Given:
    """Values of the entries and their sums."""

    arranged: Floats
    matrix: scipy.sparse.csr_matrix
    of_fibres: Floats
    of_columns: Floats
    square: float


class FibrePasses:
    """Entries fibre by fibre: those that differ in one mode alone are read together.

    What the other modes make of a fibre is computed once, and not for each of its entries
    (S. Smith et al., "SPLATT: efficient and parallel sparse tensor-matrix multiplication",
    IPDPS 2015).

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
        """Values of the entries, as given, in the arrangement that all modes share."""
        return [np.asarray(values, dtype=np.float64)[self._order]] * len(self._shape)

    def at(self, numbers: Floats, of: int, mode: int) -> Floats:
        """Numbers of the rows of one mode at every entry."""
        if of == self._inner:
            return numbers.take(self._columns)
        return np.repeat(numbers.take(self._rows[of]), self._sizes)

    def row_sums(self, arranged: Floats, mode: int) -> Floats:
        """Sums over the entries of each row of a mode."""
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
        """Normal equations of one mode."""
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

        These are `arranged` values less `mean` and the other modes' `biases`. Whatever does
        not differ within a fibre is added and multiplied once for each of them.
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
        """Sums along each fibre of what depends on the inner mode alone."""
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
        """Sums over each row's entries of products of the other modes' second moments."""
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
        """Products of the rows of the outer modes but one, for each fibre."""
        first, *others = (k for k in self._outer if k != mode)
        product = np.take(tables[first], self._rows[first], axis=0)
        for k in others:
            product *= np.take(tables[k], self._rows[k], axis=0)
        return product

    def _given(self, arranged: Floats) -> _Given:
        """Sums of the values themselves, formed once."""
        if self._values is None or self._values.arranged is not arranged:
            matrix = self._matrix(arranged)
            of_fibres = np.add.reduceat(arranged, self._begins)
            of_columns = self.row_sums(arranged, self._inner)
            square = float(arranged @ arranged)
            self._values = _Given(arranged, matrix, of_fibres, of_columns, square)
        return self._values

    def _members(self, mode: int) -> scipy.sparse.csc_matrix:
        """Which fibres lie in each row of a mode."""
        n = len(self._begins)
        layout = (np.ones(n), self._rows[mode], np.arange(n + 1))
        return scipy.sparse.csc_matrix(layout, (self._shape[mode], n))

    def _matrix(self, values: Floats) -> scipy.sparse.csr_matrix:
        """Values of the entries, a row for each fibre."""
        size = (len(self._begins), self._shape[self._inner])
        return scipy.sparse.csr_matrix((values, self._columns, self._pointers), size)


def _keys(entries: SortedEntries, inner: int) -> NDArray[np.int64]:
    """A number of each entry's fibre, by all modes but one."""
    keys = np.zeros(entries.n_entries, dtype=np.int64)
    for k in entries.others(inner):
        keys *= entries.shape[k]
        keys += entries.rows(k)
    return keys


def _n_fibres(entries: SortedEntries, inner: int) -> float:
    """Number of fibres along a mode that have entries; infinity where they cannot be numbered."""
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
