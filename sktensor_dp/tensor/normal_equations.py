"""Normal equations of one mode of a CP or Tucker model, from observed entries alone."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sktensor_dp.tensor.arrays import Floats, rows_at_once, spans
from sktensor_dp.tensor.small_systems import (
    eliminated,
    packed_diagonal,
    packed_places,
    products_of_roots,
    roots_of_inverses,
    solved,
    times,
    triangle,
)
from sktensor_dp.tensor.sorted_entries import NUMBERS_EACH, Integers, SortedEntries, kronecker_rows

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
    """Least squares of one mode: sums over the entries of each of its rows.

    With z_e the design of entry e and x_e its target, row i has the sums over the
    entries e whose coordinate in the mode is i.
    """

    # (n_rows, r (r + 1) / 2): sum of z z', or of its expectation: upper triangles, row by row.
    gram: Floats
    moment: Floats  # (n_rows, r): sum of x z
    design: Floats  # (n_rows, r): sum of z
    rough: bool = False  # whether they hold the rounding of single precision


def normal_equations(
    entries: SortedEntries,
    mode: int,
    design: Design,
    targets: Floats,
    second_moments: Design | None = None,
) -> NormalEquations:
    """Normal equations of all rows of a mode, one pass over the entries."""
    # `design` maps a span of entries, in the order of the mode as `targets` are, to their z of
    # shape (r, b); `second_moments` to upper triangles of E[z z'], row by row.
    sums: tuple[Floats, Floats, Floats] | None = None
    for span, rows, starts in entries.blocks(mode, rows_at_once(NUMBERS_EACH)):
        z = design(span)
        products = _products(z) if second_moments is None else second_moments(span)
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
    """Sums of z z', of x z and of z, with z an entry's Kronecker product of rows of factors."""
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
    """Bias, factor row and inverse (packed) of the penalised Gram matrix of each row of a mode."""
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
        found, inverse = _solve_block(matrices, b, rank, 1 if equations.rough else 2)
        rows[block], inverses[block] = found[:rank].T, inverse.T
        if corners is not None:
            bias[block] = found[rank]
    return bias, rows, inverses


def _penalised(
    equations: NormalEquations, corners: Floats | None, ridge: Floats, block: slice
) -> Floats:
    """Upper triangles (size (size + 1) / 2, n) of Gram matrices with ridges, biases last."""
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


def _solve_block(packed: Floats, b: Floats, rank: int, n_times: int) -> tuple[Floats, Floats]:
    """Solutions, and inverses (packed) of the matrices of the first unknowns."""
    size = len(b)
    given = triangle(packed.copy(), size) if n_times > 1 else []
    rows = triangle(packed, size)
    # Of what is positive definite no pivot is below rounding.
    pivots = eliminated(rows, _LEAST_PIVOT * packed[packed_diagonal(size)])
    found = solved(rows, pivots, b.copy())
    # The second time on what rounding left: where matrices are badly conditioned the first
    # solution alone would be far from solving anything. Rough ones are not worth it.
    for _ in range(n_times - 1):
        found += solved(rows, pivots, b - times(given, found))
    own = [row[: rank - i] for i, row in enumerate(rows[:rank])]
    roots_of_inverses(own, pivots[:rank])
    return found, products_of_roots(own)


def _products(z: Floats) -> Floats:
    """Upper triangles of z z' for the columns z of an array."""
    first, second = np.triu_indices(len(z))
    products = np.empty((len(first), z.shape[1]))
    for position, (i, j) in enumerate(zip(first, second, strict=True)):
        np.multiply(z[i], z[j], out=products[position])
    return products
