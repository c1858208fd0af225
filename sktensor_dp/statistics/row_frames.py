"""Coordinates for sums over the entries of a row, in which every entry is equally safe."""

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from sktensor_dp.statistics.observed_entries import IndexSet
from sktensor_dp.statistics.public_numbers import check_array
from sktensor_dp.statistics.sums import split_anchor
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.tensor.packed import unpack_rows

# Regularisation, relative to the trace, below which the factors of a matrix are rounding.
LEAST_RIDGE = 1e-10
# Shortest z that noise is scaled to; rows with shorter ones release nothing.
SHORTEST = 1e-100
# Of a number of z; sums of their squares are far from overflow.
LARGEST = 1e120
# Numbers in a block of entries that is worked on at once (2 MB).
BLOCK_NUMBERS = 2**18


class SortedRows:
    """Public z of each entry, read in blocks in the order of a mode and never held at once.

    Parameters
    ----------
    index_set : IndexSet
        Where values were observed; public.
    mode : int
        Whose rows sums are formed in.
    n_columns : int
        Length r of each z.
    read : callable
        Maps a span of entries, in the order of the mode, to their z, of shape (b, r).
    table : ndarray of shape (n_others, r), optional
        Of two modes: z of each row of the other one.
    """

    def __init__(
        self,
        index_set: IndexSet,
        mode: int,
        n_columns: int,
        read: Callable[[slice], Floats],
        table: Floats | None = None,
    ) -> None:
        self._table = table
        self.index_set, self.mode = index_set, mode
        self.shape = (index_set.n_entries, n_columns)
        self._read = read

    @classmethod
    def of_array(cls, index_set: IndexSet, mode: int, rows: Floats) -> "SortedRows":
        """Of an array of shape (n_entries, r), in the order of the entries."""
        order = index_set.order(mode)
        return cls(index_set, mode, rows.shape[1], lambda span: rows[order[span]])

    def blocks(self) -> Iterator[tuple[slice, Floats, Integers, Integers]]:
        """Span, z of shape (r, b), rows of the mode, and where each of them begins."""
        # A matrix for each entry of a block: it has to stay in the cache.
        size = max(1, BLOCK_NUMBERS // max(self.shape[1], 4) ** 2)
        for span, rows, starts in self.index_set.blocks(self.mode, size):
            yield span, np.ascontiguousarray(self._read(span).T, dtype=np.float64), rows, starts

    @cached_property
    def grams(self) -> Floats:
        """Sums of ``z z'`` over the entries of each row, of shape (n_rows, r, r)."""
        r = self.shape[1]
        first, second = np.triu_indices(r)
        if self._table is not None:
            _check_size(self._table)
            pairs = self._table[:, first] * self._table[:, second]
            return unpack_rows(self._sums(np.ones(self.shape[0]), pairs), r)
        packed = np.zeros((len(first), self.index_set.shape[self.mode]))
        for _, z, rows, starts in self.blocks():
            _check_size(z)
            packed[:, rows] += np.add.reduceat(z[first] * z[second], starts, axis=1)
        return unpack_rows(packed.T, r)

    def moments(self, values: Floats) -> Floats:
        """Sums of values times z over the entries of each row, of shape (n_rows, r)."""
        return self.sorted_moments(self.index_set.sort(values, self.mode))

    def sorted_moments(self, values: Floats) -> Floats:
        """`moments` of values that are in the order of the mode."""
        if self._table is not None:
            return self._sums(values, self._table)
        result = self._zeros()
        for span, z, rows, starts in self.blocks():
            result[:, rows] += np.add.reduceat(z * values[span], starts, axis=1)
        return result.T.copy()

    def _sums(self, values: Floats, table: Floats) -> Floats:
        return np.asarray(self.index_set.matrix(values, self.mode, 1 - self.mode) @ table)

    def _zeros(self) -> Floats:
        return np.zeros((self.shape[1], self.index_set.shape[self.mode]))


class RowFrames:
    """A public matrix F for every row of a mode, with ``|F^-1 z| <= 1`` for its entries.

    Sums ``g = sum_e x_e z_e`` of a row are released as ``F^-1 g``, so that the noise of g
    has the covariance of F: the shape of the noise is chosen row by row, by public
    numbers, so that ridge regression on g errs least on the entries of the row.

    Parameters
    ----------
    index_set : IndexSet
        Where values were observed; public.
    mode : int
        Whose rows.
    rows : ndarray of shape (n_entries, r) or SortedRows
        z of each entry; public.
    regularization : float or ndarray of shape (r,)
        Diagonal of the ridge, >= 0. It is raised to 1e-10 of the trace of ``sum z z'``, and
        to 1e-200 where one of both is more than 0.
    kinds : tuple of str
        Which shapes to choose from: ``"isotropic"``, F in proportion to the identity;
        ``"leverage"``, to a root of ``A = sum z z' + ridge``; ``"solution"``, to A.

    Attributes
    ----------
    frames, inverses : ndarray of shape (n_rows, r, r)
        F and F^-1; both 0 where a row has no entries, or only z = 0: such a row releases
        nothing.
    normal_matrices : ndarray of shape (n_rows, r, r)
        A.
    largest : ndarray of shape (n_rows,)
        What F is the identity, a root of A, or A times of.
    """

    def __init__(
        self,
        index_set: IndexSet,
        mode: int,
        rows: Floats | SortedRows,
        regularization: float | Floats,
        kinds: tuple[str, ...] = ("isotropic", "leverage", "solution"),
    ) -> None:
        if rows.shape[0] != index_set.n_entries or (
            isinstance(rows, np.ndarray) and not (np.abs(rows) <= LARGEST).all()
        ):
            raise ValueError(
                f"rows must hold numbers of size {LARGEST:g} at most, a row for each of the "
                f"{index_set.n_entries} entries; got shape {rows.shape}."
            )
        check_array("the regularization", regularization, LARGEST**2, least=0.0)
        self.index_set, self.mode, self.rows, self.kinds = index_set, mode, rows, kinds
        if isinstance(rows, np.ndarray):
            rows = SortedRows.of_array(index_set, mode, rows)
        self._sorted: SortedRows = rows
        self._grams = self._sorted.grams
        ridge = np.broadcast_to(np.asarray(regularization, float), rows.shape[1:])
        least = LEAST_RIDGE * np.trace(self._grams, axis1=1, axis2=2)[:, None]
        # Where there is nothing to divide by, any matrix does.
        diagonal = np.maximum(ridge, least)
        # Others are not so small that inverses overflow.
        diagonal = np.where(diagonal > 0, np.maximum(diagonal, SHORTEST**2), 1.0)
        self.normal_matrices = self._grams + diagonal[:, :, None] * np.eye(rows.shape[1])
        self._choose()

    def _choose(self) -> None:
        A, eye = self.normal_matrices, np.eye(self.rows.shape[1])
        roots = np.linalg.cholesky(A)
        inverse_roots = np.linalg.inv(roots)
        solutions = inverse_roots.transpose(0, 2, 1) @ inverse_roots
        shapes = {
            "isotropic": (np.broadcast_to(eye, A.shape), np.broadcast_to(eye, A.shape)),
            "leverage": (roots, inverse_roots),
            "solution": (A, solutions),
        }
        best = np.full(len(A), np.inf)
        self.frames, self.inverses = np.zeros_like(A), np.zeros_like(A)
        self.largest = np.zeros(len(A))
        lengths = self._largest_lengths(inverse_roots)
        for kind in self.kinds:
            (shape, inverse), largest = shapes[kind], lengths[kind]
            error = solutions @ (shape * largest[:, None, None])
            cost = np.einsum("iab,iab->i", error, self._grams @ error)
            better = (cost < best) & (largest > SHORTEST)
            best[better], self.largest[better] = cost[better], largest[better]
            self.frames[better] = shape[better] * largest[better, None, None]
            self.inverses[better] = inverse[better] / largest[better, None, None]

    def _largest_lengths(self, inverse_roots: Floats) -> dict[str, Floats]:
        """Largest ``|z|``, ``|L^-1 z|`` and ``|A^-1 z|`` over the entries of each row."""
        found = {kind: np.zeros(len(inverse_roots)) for kind in self.kinds}
        along = np.ascontiguousarray(inverse_roots.transpose(1, 2, 0))
        for _, z, rows, starts in self._sorted.blocks():
            vectors = {"isotropic": z}
            if {"leverage", "solution"} & found.keys():
                own = _of_entries(along, rows, starts, z.shape[1])
                vectors["leverage"] = np.einsum("abe,be->ae", own, z)
                vectors["solution"] = np.einsum("bae,be->ae", own, vectors["leverage"])
            for kind, largest in found.items():
                lengths = np.maximum.reduceat(_lengths(vectors[kind]), starts)
                largest[rows] = np.maximum(largest[rows], lengths)
        return found

    def coordinates(self, values: Floats) -> Floats:
        """``F^-1 sum_e x_e z_e`` of each row, of shape (n_rows, r)."""
        order, counts = self.index_set.order(self.mode), self.index_set.counts[self.mode]
        largest = max(float(values.max()), -float(values.min()))
        squares = float(np.square(counts.astype(np.float64)).sum())
        anchor = split_anchor(largest, len(values), squares)
        coarse, fine = self._sorted._zeros(), self._sorted._zeros()
        for span, terms, rows, starts in self._unit_vectors():
            terms *= values[order[span]]
            if anchor:
                part = terms + anchor
                part -= anchor
                terms -= part
                coarse[:, rows] += np.add.reduceat(part, starts, axis=1)
            fine[:, rows] += np.add.reduceat(terms, starts, axis=1)
        return (coarse + fine).T.copy()

    def _unit_vectors(self) -> Iterator[tuple[slice, Floats, Integers, Integers]]:
        """``F^-1 z`` of each entry, in blocks, of length 1 at most whatever F is."""
        # However badly conditioned F is, what a value is multiplied with has a length that is
        # looked at: rounding in F has nothing to enlarge.
        along = np.ascontiguousarray(self.inverses.transpose(1, 2, 0))
        for span, z, rows, starts in self._sorted.blocks():
            own = _of_entries(along, rows, starts, z.shape[1])
            vectors = np.einsum("abe,be->ae", own, z)
            vectors /= np.maximum(_lengths(vectors), 1.0)
            yield span, vectors, rows, starts


def _check_size(z: Floats) -> None:
    # NaN fails the comparison.
    if not (z.min(initial=0.0) >= -LARGEST and z.max(initial=0.0) <= LARGEST):
        raise ValueError(f"rows must hold numbers of size {LARGEST:g} at most.")


def _of_entries(matrices: Floats, rows: Integers, starts: Integers, n: int) -> Floats:
    """Matrices (r, r, n_rows) of the rows of a block, for each of its n entries."""
    return np.repeat(matrices[:, :, rows], np.diff(np.append(starts, n)), axis=2)


def _lengths(vectors: Floats) -> Floats:
    """Of columns."""
    return np.sqrt(np.einsum("ae,ae->e", vectors, vectors))
