"""Many small positive definite systems at once, kept as upper triangles.

A triangle is a list of its rows, of shapes (r, n), (r - 1, n), ..., (1, n), for n systems.
All is done number by number: what is computed of one system is a function of it to the last
bit, whatever others there are.
"""

import numpy as np

from sktensor_dp.tensor.oracle import Floats


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
