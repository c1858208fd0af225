"""Normal equations of one mode of a CP or Tucker model, and many small linear systems at once.

A packed matrix is the upper triangle of a symmetric one, row by row.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats, rows_at_once, spans
from sktensor_dp.tensor.sorted_entries import NUMBERS_EACH, Integers, SortedEntries, kronecker_rows


def packed_products(rows: Floats) -> Floats:
    """Packed outer products a a' of the rows a of an array (n, r): shape (n, r (r + 1) / 2)."""
    first, second = np.triu_indices(rows.shape[1])
    return rows.take(first, axis=1) * rows.take(second, axis=1)


def packed_diagonal(rank: int) -> NDArray[np.intp]:
    """Indices of the diagonal of a rank x rank matrix in its packed form, of shape (rank,)."""
    first, second = np.triu_indices(rank)
    return np.flatnonzero(first == second)


def packed_inner(left: Floats, right: Floats, rank: int) -> Floats:
    """Traces of ``left[i] @ right[i]`` for packed symmetric matrices, of shape (n,)."""
    twice = np.full(left.shape[1], 2.0)
    twice[packed_diagonal(rank)] = 1.0
    return np.asarray(np.einsum("ij,ij,j->i", left, right, twice), dtype=np.float64)


def packed_places(rank: int) -> NDArray[np.intp]:
    """Index in the packed form of each entry of a symmetric matrix, of shape (rank, rank)."""
    places = np.empty((rank, rank), dtype=np.intp)
    upper = np.triu_indices(rank)
    places[upper] = places.T[upper] = np.arange(len(upper[0]))
    return places


def unpack_rows(packed: Floats, rank: int) -> Floats:
    """Symmetric matrices, of shape (n, rank, rank), from their packed forms (n, ...)."""
    return packed.take(packed_places(rank).ravel(), axis=1).reshape(len(packed), rank, rank)


def triangle(packed: Floats, size: int) -> list[Floats]:
    """Rows of n packed matrices as views: the k-th, of shape (size - k, n), starts on the diagonal.
    `packed` has shape (size (size + 1) / 2, n).
    """
    ends = np.cumsum(np.arange(size, 0, -1)).tolist()
    return [packed[end - size + i : end] for i, end in enumerate(ends)]


def eliminated(rows: list[Floats], least: float | Floats) -> Floats:
    """Factorise n matrices as ``R' diag(d) R`` in place, and return 1 / d, of shape (size, n).

    `rows` holds them as `triangle` does, and R afterwards, except its diagonal of ones, which is
    not written. Pivots d are raised to `least`, a number or one for each pivot.
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
    """Solve the systems that `eliminated` factorised, for right-hand sides b of shape (r, n).
    `inverses` are its result. `b` is overwritten and returned.
    """
    for k, row in enumerate(rows):
        b[k + 1 :] -= row[1:] * b[k]
    b *= inverses
    for k in reversed(range(len(rows))):
        for product in rows[k][1:] * b[k + 1 :]:
            b[k] -= product
    return b


def roots_of_inverses(rows: list[Floats], inverses: Floats) -> None:
    """Replace R of `eliminated` by the upper triangular Y with Y Y' the inverse of its matrix.
    `inverses` are 1 / d, the result of `eliminated`.
    """
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
    """Packed ``Y Y' + w w'``, of shape (r (r + 1) / 2, n), of n upper triangular Y.
    `rows` holds Y as `triangle` does; w are the columns of `more`, of shape (r, n), or 0.
    """
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
    """Products, of shape (r, n), of n symmetric matrices with the columns of `x`, of shape (r, n).
    `rows` holds the matrices as `triangle` does.
    """
    result = np.zeros_like(x)
    for k, row in enumerate(rows):
        for part in row * x[k:]:
            result[k] += part
        result[k + 1 :] += row[1:] * x[k]
    return result


# Without noise the ridge vanishes, and a row with fewer entries than components would be
# singular but for this share of its Gram matrix.
_LEAST_RIDGE = 1e-13
# Least pivot, relative to the diagonal: below it is rounding.
_LEAST_PIVOT = 1e-14
# Numbers of a block of matrices (2 MB): calls are few.
_SYSTEM_NUMBERS = 2**18

Design = Callable[[slice], Floats]


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Normal equations of the rows of one mode: sums over the entries of each row.

    With z_e the derivatives of entry e in the row's r parameters (the design) and x_e its target,
    row i sums over the entries e whose coordinate in the mode is i.
    """

    # (n_rows, r (r + 1) / 2): sum of z z', or of its expectation: upper triangles, row by row.
    gram: Floats
    moment: Floats  # (n_rows, r): sum of x z
    design: Floats  # (n_rows, r): sum of z


def normal_equations(
    entries: SortedEntries,
    mode: int,
    design: Design,
    targets: Floats,
) -> NormalEquations:
    """Normal equations of all rows of a mode, in one pass over the entries.
    `design` maps a span of entries, sorted by the mode as `targets` are, to their z, (r, b).
    """
    sums: tuple[Floats, Floats, Floats] | None = None
    for span, rows, starts in entries.blocks(mode, rows_at_once(NUMBERS_EACH)):
        z = design(span)
        products = _products(z)
        if sums is None:
            lengths = (len(products), len(z), len(z))
            gram, moment, total = (np.zeros((n, entries.shape[mode])) for n in lengths)
            sums = gram, moment, total
        # A row cut in two by the end of a block is met again in the next one.
        gram[:, rows] += np.add.reduceat(products, starts, axis=1)
        total[:, rows] += np.add.reduceat(z, starts, axis=1)
        moment[:, rows] += np.add.reduceat(z * targets[span], starts, axis=1)
    return NormalEquations(gram.T.copy(), moment.T.copy(), total.T.copy())


def core_equations(
    factors: Sequence[Floats],
    coordinates: Integers,
    targets: Floats,
    *,
    with_gram: bool = True,
) -> tuple[Floats, Floats, Floats]:
    """Least-squares equations of a Tucker core: sums over entries of z z' (empty without
    `with_gram`), of x z and of z, where x is an entry's target and z the Kronecker product of its
    rows of factors.
    """
    size = math.prod(factor.shape[1] for factor in factors)
    gram = np.zeros((size, size) if with_gram else (0, 0))
    moment, total = np.zeros(size), np.zeros(size)
    for span in spans(len(targets), size):
        design = kronecker_rows(factors, coordinates[span])
        if with_gram:
            gram += design.T @ design
        moment += design.T @ targets[span]
        total += design.sum(axis=0)
    return gram, moment, total


def solve_rows(
    equations: NormalEquations,
    counts: Floats,
    sums: Floats,
    bias_ridge: float | Floats | None,
    ridge: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Bias, factor row and packed inverse of the penalised Gram matrix, for each row of a mode.
    `counts` and `sums` are of the entries and their targets; `bias_ridge` None: no biases.
    """
    # Minimises sum_e (x_e - b - z_e' a)^2 + bias_ridge b^2 + sum_j ridge[j] a[j]^2. Where
    # entries have weights, counts, sums and equations are those of the weighted entries.
    n, rank = equations.moment.shape
    bias, rows, inverses = np.zeros(n), np.zeros((n, rank)), np.empty_like(equations.gram)
    if rank == 0:
        return bias if bias_ridge is None else sums / (counts + bias_ridge), rows, inverses
    ridge = np.broadcast_to(ridge, (n, rank))
    corners = None if bias_ridge is None else counts + np.broadcast_to(bias_ridge, n)
    size = rank if corners is None else rank + 1
    step = max(1, _SYSTEM_NUMBERS // (size * (size + 1) // 2))
    for first in range(0, n, step):
        block = slice(first, first + step)
        b = np.empty((size, len(ridge[block])))
        b[:rank] = equations.moment[block].T
        if corners is not None:
            b[rank] = sums[block]
        matrices = _penalised(equations, corners, ridge, block)
        found, inverse = _solve_block(matrices, b, rank)
        rows[block], inverses[block] = found[:rank].T, inverse.T
        if corners is not None:
            bias[block] = found[rank]
    return bias, rows, inverses


def _penalised(
    equations: NormalEquations, corners: Floats | None, ridge: Floats, block: slice
) -> Floats:
    """Packed matrices of the systems of a block of rows: Gram matrix and ridge, the bias last.
    Shape (size (size + 1) / 2, n); `corners` holds number of entries plus ridge of biases.
    """
    rank = equations.moment.shape[1]
    gram, diagonal = equations.gram[block].T, packed_diagonal(rank)
    least = _LEAST_RIDGE * gram[diagonal].sum(axis=0)
    if corners is None:
        packed = gram.copy()
    else:
        packed = np.empty((len(gram) + rank + 1, gram.shape[1]))
        last = packed_places(rank + 1)[:, rank]
        inside = np.ones(len(packed), dtype=bool)
        inside[last] = False
        packed[inside] = gram
        packed[last[:-1]], packed[last[-1]] = equations.design[block].T, corners[block]
        diagonal = packed_diagonal(rank + 1)[:-1]
    packed[diagonal] += np.maximum(ridge[block].T, least)
    return packed


def _solve_block(packed: Floats, b: Floats, rank: int) -> tuple[Floats, Floats]:
    """Solutions of packed systems, of shape (size, n), and packed inverses of their first block.
    The first block is that of the first `rank` unknowns.
    """
    size = len(b)
    given, rows = triangle(packed.copy(), size), triangle(packed, size)
    # Of what is positive definite no pivot is below rounding.
    pivots = eliminated(rows, _LEAST_PIVOT * packed[packed_diagonal(size)])
    found = solved(rows, pivots, b.copy())
    # The second time on what rounding left: where matrices are badly conditioned the first
    # solution alone would be far from solving anything.
    found += solved(rows, pivots, b - times(given, found))
    own = [row[: rank - i] for i, row in enumerate(rows[:rank])]
    roots_of_inverses(own, pivots[:rank])
    return found, products_of_roots(own)


def _products(z: Floats) -> Floats:
    """Packed z z' for the columns z of an array of shape (r, n)."""
    first, second = np.triu_indices(len(z))
    products = np.empty((len(first), z.shape[1]))
    for position, (i, j) in enumerate(zip(first, second, strict=True)):
        np.multiply(z[i], z[j], out=products[position])
    return products
