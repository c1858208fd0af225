"""Scales of the rows of a ridge regression, by what one entry of a row can move."""

from collections.abc import Iterator

import numpy as np

from sktensor_dp.statistics.observed_entries import IndexSet
from sktensor_dp.statistics.public_numbers import check_array
from sktensor_dp.statistics.sums import split_anchor
from sktensor_dp.tensor.arrays import Floats, Integers

# Regularisation, relative to the trace, below which the factors of a matrix are rounding.
LEAST_RIDGE = 1e-10
# Shortest z that noise is scaled to; rows with shorter ones release nothing.
SHORTEST = 1e-100
# Of a number of z; sums of their squares are far from overflow.
LARGEST = 1e120
# Numbers in a block of entries that is worked on at once (2 MB).
BLOCK_NUMBERS = 2**18
# Span, z of shape (r, b), rows of the mode, and where each of them begins.
_Block = tuple[slice, Floats, Integers, Integers]


class RowFrames:
    """Largest ``|A^-1 z|`` of the entries of every row of a mode, ``A = sum z z' + ridge``.

    A row of ridge regression is released over that number, so that the noise of each row is
    that of its own worst entry.

    Parameters
    ----------
    index_set : IndexSet
        Where values were observed; public.
    mode : int
        Whose rows.
    rows : ndarray of shape (n_entries, r)
        z of each entry; public.
    regularization : float or ndarray of shape (r,)
        Diagonal of the ridge, >= 0. It is raised to 1e-10 of the trace of ``sum z z'``, and
        to 1e-200 where one of both is more than 0.

    Attributes
    ----------
    largest : ndarray of shape (n_rows,)
        0 where a row has no entries, or only z = 0: such a row releases nothing.
    inverses : ndarray of shape (n_rows, r, r)
        A^-1 over `largest`.
    """

    def __init__(
        self, index_set: IndexSet, mode: int, rows: Floats, regularization: float | Floats
    ) -> None:
        if rows.shape[0] != index_set.n_entries or not (np.abs(rows) <= LARGEST).all():
            raise ValueError(
                f"rows must hold numbers of size {LARGEST:g} at most, a row for each of the "
                f"{index_set.n_entries} entries; got shape {rows.shape}."
            )
        check_array("the regularization", regularization, LARGEST**2, least=0.0)
        self.index_set, self.mode, self.rows = index_set, mode, rows
        grams = index_set.grams(mode, rows)
        ridge = np.broadcast_to(np.asarray(regularization, float), rows.shape[1:])
        least = LEAST_RIDGE * np.trace(grams, axis1=1, axis2=2)[:, None]
        # Where there is nothing to divide by, any matrix does.
        diagonal = np.maximum(ridge, least)
        # Others are not so small that inverses overflow.
        diagonal = np.where(diagonal > 0, np.maximum(diagonal, SHORTEST**2), 1.0)
        A = grams + diagonal[:, :, None] * np.eye(rows.shape[1])
        inverse_roots = np.linalg.inv(np.linalg.cholesky(A))
        self._take(inverse_roots.transpose(0, 2, 1) @ inverse_roots)

    def _take(self, solutions: Floats) -> None:
        along = np.ascontiguousarray(solutions.transpose(1, 2, 0))
        largest = np.zeros(len(solutions))
        for _, z, rows, starts in self._blocks():
            own = _of_entries(along, rows, starts, z.shape[1])
            lengths = _lengths(np.einsum("abe,be->ae", own, z))
            largest[rows] = np.maximum(largest[rows], np.maximum.reduceat(lengths, starts))
        seen = largest > SHORTEST
        self.largest = np.where(seen, largest, 0.0)
        self.inverses = np.zeros_like(solutions)
        self.inverses[seen] = solutions[seen] / largest[seen, None, None]

    def coordinates(self, values: Floats) -> Floats:
        """``A^-1 sum_e x_e z_e`` of each row over its largest norm, of shape (n_rows, r)."""
        order, counts = self.index_set.order(self.mode), self.index_set.counts[self.mode]
        largest = max(float(values.max()), -float(values.min()))
        squares = float(np.square(counts.astype(np.float64)).sum())
        anchor = split_anchor(largest, len(values), squares)
        coarse, fine = np.zeros((2, self.rows.shape[1], len(counts)))
        for span, terms, rows, starts in self._unit_vectors():
            terms *= values[order[span]]
            if anchor:
                part = terms + anchor
                part -= anchor
                terms -= part
                coarse[:, rows] += np.add.reduceat(part, starts, axis=1)
            fine[:, rows] += np.add.reduceat(terms, starts, axis=1)
        return (coarse + fine).T.copy()

    def _blocks(self) -> Iterator[_Block]:
        """Span, z of shape (r, b), rows of the mode, and where each of them begins."""
        order = self.index_set.order(self.mode)
        # A matrix for each entry of a block: it has to stay in the cache.
        size = max(1, BLOCK_NUMBERS // max(self.rows.shape[1], 4) ** 2)
        for span, rows, starts in self.index_set.blocks(self.mode, size):
            z = np.ascontiguousarray(self.rows[order[span]].T, dtype=np.float64)
            yield span, z, rows, starts

    def _unit_vectors(self) -> Iterator[_Block]:
        """``A^-1 z`` of each entry over the largest norm of its row: of length 1 at most."""
        # However badly conditioned A is, what a value is multiplied with has a length that is
        # looked at: rounding has nothing to enlarge.
        along = np.ascontiguousarray(self.inverses.transpose(1, 2, 0))
        for span, z, rows, starts in self._blocks():
            vectors = np.einsum("abe,be->ae", _of_entries(along, rows, starts, z.shape[1]), z)
            vectors /= np.maximum(_lengths(vectors), 1.0)
            yield span, vectors, rows, starts


def _of_entries(matrices: Floats, rows: Integers, starts: Integers, n: int) -> Floats:
    """Matrices (r, r, n_rows) of the rows of a block, for each of its n entries."""
    return np.repeat(matrices[:, :, rows], np.diff(np.append(starts, n)), axis=2)


def _lengths(vectors: Floats) -> Floats:
    """Of columns."""
    return np.sqrt(np.einsum("ae,ae->e", vectors, vectors))
