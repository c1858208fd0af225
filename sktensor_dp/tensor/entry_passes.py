"""Sums over observed entries by which CP and Tucker models are updated."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse

from sktensor_dp.tensor.arrays import Floats, blocks
from sktensor_dp.tensor.normal_equations import NormalEquations, packed_places
from sktensor_dp.tensor.sorted_entries import SortedEntries, mode_product

# Doubles in the products of rows of factors that are held at once: 64 MB.
_NUMBERS = 2**23


class EntryPasses:
    """Sums over entries, fibre by fibre: entries of a fibre differ in one mode alone.

    "Arranged" values of entries are sorted by fibre.
    """

    # Products of the other modes' rows are computed once per fibre (Smith et al., IPDPS 2015).

    def __init__(self, entries: SortedEntries) -> None:
        self._shape = entries.shape
        # Fibres lie along the `_inner` mode: of a matrix the shorter one, as numbers of that mode
        # are read at random, of a tensor the longest one, as fibres then have the most entries.
        longest, shortest = int(np.argmax(self._shape)), int(np.argmin(self._shape))
        self._inner = shortest if entries.n_modes == 2 and longest != shortest else longest
        self._outer = entries.others(self._inner)
        self._fibres = entries.fibres(self._inner)
        self._rows = dict(zip(self._outer, self._fibres.coordinates.T, strict=True))
        self._observed = self._fibres.matrix(np.ones(entries.n_entries))

    def arrange(self, values: Floats) -> Floats:
        """Values of the entries, sorted by fibre."""
        return np.asarray(values, dtype=np.float64)[self._fibres.order]

    def at(self, numbers: Floats, mode: int) -> Floats:
        """``numbers[i]`` at every entry, i its row in the mode, arranged."""
        if mode == self._inner:
            return numbers.take(self._fibres.rows)
        return np.repeat(numbers.take(self._rows[mode]), self._fibres.sizes)

    def row_sums(self, arranged: Floats, mode: int) -> Floats:
        """Sums (n_m,) of arranged values over each row of a mode."""
        if mode == self._inner:
            rows, sums = self._fibres.rows, arranged
        else:  # of each fibre first
            rows, sums = self._rows[mode], np.add.reduceat(arranged, self._fibres.begins)
        return np.bincount(rows, sums, minlength=self._shape[mode]).astype(np.float64)

    def equations(
        self,
        mode: int,
        factors: Sequence[Floats],
        targets: Floats,
        second_moments: Sequence[Floats],
    ) -> NormalEquations:
        """Normal equations of a mode's factor in a CP model, for arranged `targets`.

        `second_moments` hold packed E[a a'] of the rows a of each factor.
        """
        # z is the product of the other modes' rows: sum x z, then E[z z'] and z side by side.
        matrix, size = self._fibres.matrix(targets), second_moments[mode].shape[1]
        moment = self._sums(mode, factors, matrix)
        tables = [np.hstack(pair) for pair in zip(second_moments, factors, strict=True)]
        sums = self._sums(mode, tables, self._observed)
        return NormalEquations(sums[:, :size], moment, sums[:, size:])

    def _sums(self, mode: int, tables: Sequence[Floats], matrix: scipy.sparse.csr_matrix) -> Floats:
        """Sums (n_m, n_columns) over entries of their number times the product of their other rows.

        `matrix` (n_fibres, n_inner) has the numbers, and `tables` the rows of each mode.
        """
        sums, n = np.empty((self._shape[mode], tables[mode].shape[1])), len(self._fibres)
        others = [k for k in self._outer if k != mode]
        by_fibre = matrix.T if mode == self._inner else self._members(mode)
        for part in blocks(sums.shape[1], max(_NUMBERS // n, 1)):
            columns = [np.ascontiguousarray(table[:, part]) for table in tables]
            factors = [columns[k].take(self._rows[k], axis=0) for k in others]
            if mode != self._inner:  # sum along each fibre first
                factors.append(matrix @ columns[self._inner])
            product = factors.pop()
            for factor in factors:
                product *= factor
            sums[:, part] = by_fibre @ product
        return sums

    def _members(self, mode: int) -> scipy.sparse.csc_matrix:
        """Sparse matrix (n_m, n_fibres) with ones where a fibre is in a row of an outer mode."""
        n = len(self._fibres)
        layout = (np.ones(n), self._rows[mode], np.arange(n + 1))
        return scipy.sparse.csc_matrix(layout, (self._shape[mode], n))

    def tucker_equations(
        self, mode: int, factors: Sequence[Floats], targets: Floats,
        second_moments: Sequence[Floats], core: Floats, core_moments: Floats,
    ) -> NormalEquations:  # fmt: skip
        """Normal equations of a mode's factor in a Tucker model.

        `core_moments` hold E[c c'] of the core c, with a pair of axes (r_k^2) for each mode.
        """
        # A derivative is z[a] = sum_b c[a, b] prod_k u_k[b_k], u_k the other modes' rows, so that
        # E[z z'][a, a'] = sum_b,b' E[c c'][a, a', b, b'] prod_k E[u_k u_k'][b_k, b_k']: pairs of
        # other modes are summed to the packed form of their second moments. The result is
        # symmetric, and of a and a' the upper triangle is enough.
        for k, rank in enumerate(core.shape):
            if k == mode:
                core_moments = core_moments.compress(np.tri(rank, dtype=bool).T.ravel(), axis=k)
            else:
                packing = np.eye(second_moments[k].shape[1])[packed_places(rank).ravel()]
                core_moments = mode_product(core_moments, packing.T, k)
        gram = self._mixed_sums(mode, second_moments, self._observed, core_moments)
        moment = self._mixed_sums(mode, factors, self._fibres.matrix(targets), core)
        return NormalEquations(gram, moment, self._mixed_sums(mode, factors, self._observed, core))

    def _mixed_sums(
        self, mode: int, tables: Sequence[Floats], matrix: scipy.sparse.csr_matrix, mixing: Floats
    ) -> Floats:
        """Sums as by `_sums`, but of Kronecker products of rows times the tensor `mixing`.

        That has the axes of all modes, and maps products to a row (width,) of `mode`.
        """
        n, width = len(self._fibres), mixing.shape[mode]
        others = [k for k in (*self._outer, self._inner) if k != mode]
        rows = [
            matrix @ tables[k] if k == self._inner else tables[k].take(self._rows[k], axis=0)
            for k in others
        ]
        mixing_matrix = mixing.transpose(*others, mode).reshape(-1, width)
        mixed, n_done = np.zeros((n, width)), 0
        for product in _kronecker_blocks(rows):
            n_columns = product.shape[1]
            mixed += product @ mixing_matrix[n_done : n_done + n_columns]
            n_done += n_columns
        return np.asarray((matrix.T if mode == self._inner else self._members(mode)) @ mixed)

    def core_sums(self, tables: Sequence[Floats], targets: Floats | None = None) -> Floats:
        """Sums (r_1, ..., r_M) of outer products of an entry's rows of `tables` (n_m, r_m).

        They are times arranged `targets`, if these are given.
        """
        matrix = self._observed if targets is None else self._fibres.matrix(targets)
        inner, modes = matrix @ tables[self._inner], [*self._outer, self._inner]
        rows = [tables[k].take(self._rows[k], axis=0) for k in self._outer]
        sums = np.concatenate([product.T @ inner for product in _kronecker_blocks(rows)])
        return sums.reshape([tables[k].shape[1] for k in modes]).transpose(np.argsort(modes))


def _kronecker_blocks(rows: Sequence[Floats]) -> Iterator[Floats]:
    """Kronecker products of the rows of arrays (n, r_k), the last fastest, in blocks of columns."""
    first = rows[0]
    n = len(rows[0])
    width = math.prod(more.shape[1] for more in rows[1:])
    for part in blocks(first.shape[1], max(_NUMBERS // (n * width), 1)):
        product = first[:, part]
        for more in rows[1:]:
            product = (product[:, :, None] * more[:, None]).reshape(n, -1)
        yield product
