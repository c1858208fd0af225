"""Coordinates for sums over the entries of a row, in which every entry is equally safe."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.statistics.observed_entries import IndexSet
from sktensor_dp.statistics.public_numbers import check_array

__all__ = ["RowFrames"]

Floats = NDArray[np.float64]

# Regularisation, relative to the trace, below which the factors of a matrix are rounding.
LEAST_RIDGE = 1e-10
# Shortest z that noise is scaled to; rows with shorter ones release nothing.
SHORTEST = 1e-100
# Of a number of z; sums of their squares are far from overflow.
LARGEST = 1e120
# Numbers in a block of entries that is worked on at once (4 MB).
BLOCK_NUMBERS = 2**19


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
    rows : ndarray of shape (n_entries, r)
        z of each entry; public.
    regularization : float or ndarray of shape (r,)
        Diagonal of the ridge, >= 0. It is raised to 1e-10 of the trace of ``sum z z'``.
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
        rows: Floats,
        regularization: float | Floats,
        kinds: tuple[str, ...] = ("isotropic", "leverage", "solution"),
    ) -> None:
        if rows.shape[0] != index_set.n_entries or not (np.abs(rows) <= LARGEST).all():
            raise ValueError(
                f"rows must hold numbers of size {LARGEST:g} at most, a row for each of the "
                f"{index_set.n_entries} entries; got shape {rows.shape}."
            )
        check_array("the regularization", regularization, LARGEST**2, least=0.0)
        self.index_set, self.mode, self.rows, self.kinds = index_set, mode, rows, kinds
        self._grams = index_set.grams(mode, rows)
        ridge = np.broadcast_to(np.asarray(regularization, float), rows.shape[1:])
        least = LEAST_RIDGE * np.trace(self._grams, axis1=1, axis2=2)[:, None]
        # Where there is nothing to divide by, any matrix does.
        diagonal = np.maximum(ridge, least)
        diagonal = np.where(diagonal > 0, diagonal, 1.0)
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
        for kind in self.kinds:
            shape, inverse = shapes[kind]
            largest = self._maxima(inverse)
            error = solutions @ (shape * largest[:, None, None])
            cost = np.einsum("iab,iac,ibc->i", self._grams, error, error, optimize=True)
            better = (cost < best) & (largest > SHORTEST)
            best[better], self.largest[better] = cost[better], largest[better]
            self.frames[better] = shape[better] * largest[better, None, None]
            self.inverses[better] = inverse[better] / largest[better, None, None]

    def coordinates(self, values: Floats) -> Floats:
        """``F^-1 sum_e x_e z_e`` of each row, of shape (n_rows, r)."""
        return self.index_set.sums(self.mode, values[:, None] * self._coordinates)

    @cached_property
    def longest(self) -> float:
        """Largest ``|F^-1 z|`` over entries: 1, up to rounding, or 0."""
        return float(_norms(self._coordinates).max())

    @cached_property
    def _coordinates(self) -> Floats:
        # Computed once, entry by entry: however badly conditioned F is, sums are of the very
        # numbers whose length is known, and rounding in them has nothing to enlarge it.
        return self._products(self.inverses)

    def _maxima(self, matrices: Floats) -> Floats:
        """Largest ``|matrix z|`` over the entries of each row."""
        return self.index_set.maxima(self.mode, _norms(self._products(matrices)))

    def _products(self, matrices: Floats) -> Floats:
        """Each z times the matrix of its row."""
        places, r = self.index_set.rows(self.mode), self.rows.shape[1]
        result = np.empty_like(self.rows, dtype=np.float64)
        step = max(1, BLOCK_NUMBERS // (r * r))
        for start in range(0, len(places), step):
            block = slice(start, start + step)
            result[block] = np.einsum("eab,eb->ea", matrices[places[block]], self.rows[block])
        return result


def _norms(vectors: Floats) -> Floats:
    return np.sqrt(np.square(vectors).sum(axis=1))
