"""Many small symmetric positive definite systems at once, packed as upper triangles."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats, spans


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


def triangle(packed: Floats, size: int) -> list[Floats]:
    """Rows of upper triangles that an array of shape (size (size + 1) / 2, n) holds: views."""
    ends = np.cumsum(np.arange(size, 0, -1)).tolist()
    return [packed[end - size + i : end] for i, end in enumerate(ends)]


def eliminated(rows: list[Floats], least: float | Floats) -> Floats:
    """One over the pivots d of matrices, and R of ``R' diag(d) R`` in place of them.

    Pivots are raised to `least`, which may have one for each. The diagonal of R, which is 1,
    is not written.
    """
    inverses, room = np.empty_like(rows[0]), np.empty_like(rows[0])
    floors = np.broadcast_to(least, inverses.shape)
    for k, row in enumerate(rows):
        np.divide(1.0, np.maximum(row[0], floors[k]), out=inverses[k])
        factors = row[1:] * inverses[k]
        for i, factor in enumerate(factors, 1):
            rows[k + i] -= np.multiply(row[i:], factor, out=room[k + i :])
        row[1:] = factors
    return inverses


def solved(rows: list[Floats], inverses: Floats, b: Floats) -> Floats:
    """Solutions (r, n) of systems that were `eliminated`; b is changed."""
    for k, row in enumerate(rows):
        b[k + 1 :] -= row[1:] * b[k]
    b *= inverses
    for k in reversed(range(len(rows))):
        for product in rows[k][1:] * b[k + 1 :]:
            b[k] -= product
    return b


def roots_of_inverses(rows: list[Floats], inverses: Floats) -> None:
    """Upper triangular Y, Y Y' the inverse of what was `eliminated`, in place of R."""
    for i in reversed(range(len(rows))):
        # A row of the inverse of R, from those below.
        factors, own = rows[i][1:].copy(), rows[i][1:]
        np.negative(own, out=own)
        for m, factor in enumerate(factors[:-1], 1):
            own[m:] -= rows[i + m][1:] * factor
    roots = np.sqrt(inverses)
    for k, row in enumerate(rows):
        row[0] = roots[k]
        row[1:] *= roots[k + 1 :]


def products_of_roots(rows: list[Floats], more: Floats | None = None) -> Floats:
    """Upper triangles of ``Y Y' + w w'``, w the columns of an (r, n) array or 0: packed."""
    r, n = rows[0].shape
    packed, column, room = np.empty((r * (r + 1) // 2, n)), np.empty((r, n)), np.empty((r, n))
    products = triangle(packed, r)
    for k in reversed(range(r)):
        for i in range(k + 1):
            column[i] = rows[i][k - i]
        for i, product in enumerate(products[: k + 1]):
            if k == r - 1:
                np.multiply(column[i:], column[i], out=product)
            else:
                part = np.multiply(column[i : k + 1], column[i], out=room[i : k + 1])
                product[: k + 1 - i] += part
    if more is not None:
        for i, product in enumerate(products):
            product += np.multiply(more[i:], more[i], out=room[i:])
    return packed


def times(rows: list[Floats], x: Floats) -> Floats:
    """Products (r, n) of matrices with the columns of an (r, n) array."""
    result = np.zeros_like(x)
    for k, row in enumerate(rows):
        for part in row * x[k:]:
            result[k] += part
        result[k + 1 :] += row[1:] * x[k]
    return result


def _blocks(matrices: Floats) -> Iterator[tuple[slice, Floats]]:
    """Some of the matrices at a time, copied, of shape (r, r, n)."""
    n, r, _ = matrices.shape
    for block in spans(n, r**2, caches=1 / 4):
        yield block, np.array(matrices[block].transpose(1, 2, 0), order="C")


def shifted_inverses(matrices: Floats) -> Floats:
    """Inverses of one plus matrices that are positive semidefinite; zeros where not finite."""
    # Every pivot is 1 at least, and is raised to it: whatever matrices hold, nothing fails,
    # and each inverse is a function of its own matrix to the last bit, wherever it stands.
    # No entry of such an inverse is above 1 but by rounding, which huge entries make huge.
    inverses, diagonal = np.empty_like(matrices), np.arange(matrices.shape[1])
    for block, M in _blocks(matrices):
        M[diagonal, diagonal] += 1.0
        product = np.empty_like(M)
        # Gauss-Jordan elimination, in place.
        for k in diagonal:
            inverse = 1.0 / np.maximum(M[k, k], 1.0)
            row, column = M[k] * inverse, M[:, k].copy()
            np.multiply(column[:, None], row, out=product)
            M -= product
            M[k], M[:, k] = row, -column * inverse
            M[k, k] = inverse
        inverses[block] = M.transpose(2, 0, 1)
    np.clip(inverses, -1.0, 1.0, out=inverses)
    inverses[~np.isfinite(inverses).all(axis=(1, 2))] = 0.0
    return inverses


def are_positive(matrices: Floats) -> NDArray[np.bool_]:
    """Whether symmetric matrices have positive pivots; never where they are not finite."""
    found = np.ones(len(matrices), dtype=bool)
    for block, M in _blocks(matrices):
        positive = found[block]
        for k in range(len(M)):
            positive &= (M[k, k] > 0) & np.isfinite(M[k, k])
            below = M[k + 1 :, k] / np.where(positive, M[k, k], 1.0)
            M[k + 1 :, k + 1 :] -= below[:, None] * M[k, k + 1 :]
    return found
