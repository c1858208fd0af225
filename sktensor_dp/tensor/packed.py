"""Symmetric matrices kept as their upper triangles, row by row."""

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.oracle import Floats


def packed_products(rows: Floats) -> Floats:
    """Upper triangles of a a' for the rows a of an array: (n, r (r + 1) / 2)."""
    first, second = np.triu_indices(rows.shape[1])
    return rows.take(first, axis=1) * rows.take(second, axis=1)


def packed_diagonal(rank: int) -> NDArray[np.intp]:
    """Places of the diagonal in an upper triangle, row by row."""
    first, second = np.triu_indices(rank)
    return np.flatnonzero(first == second)


def packed_inner(left: Floats, right: Floats, rank: int) -> Floats:
    """Traces of the products of symmetric matrices, from their upper triangles: (n,)."""
    twice = np.full(left.shape[1], 2.0)
    twice[packed_diagonal(rank)] = 1.0
    return np.asarray(np.einsum("ij,ij,j->i", left, right, twice), dtype=np.float64)


def packed_places(rank: int) -> NDArray[np.intp]:
    """Place in an upper triangle of each entry of a symmetric matrix."""
    places = np.empty((rank, rank), dtype=np.intp)
    upper = np.triu_indices(rank)
    places[upper] = places.T[upper] = np.arange(len(upper[0]))
    return places


def unpack_rows(packed: Floats, rank: int) -> Floats:
    """Symmetric matrices (n, r, r) from their upper triangles, row by row."""
    return packed.take(packed_places(rank).ravel(), axis=1).reshape(len(packed), rank, rank)
