"""Normal equations of a mode of a CP or Tucker model, and many small linear systems at once.

A packed matrix is the upper triangle of a symmetric one, row by row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.arrays import Floats, spans
from sktensor_dp.tensor.sorted_entries import Fibres, SortedEntries, kronecker_rows
from sktensor_dp.tensor.symmetric import diagonal_positions

# Pivots below this fraction of the diagonal are rounding errors.
_LEAST_PIVOT = 1e-14


def packed_products(rows: Floats) -> Floats:
    """Packed outer products a a' of the rows a of an array (n, r): shape (n, r (r + 1) / 2)."""
    first, second = np.triu_indices(rows.shape[1])
    return rows.take(first, axis=1) * rows.take(second, axis=1)


def packed_inner(left: Floats, right: Floats, rank: int) -> Floats:
    """Traces (n,) of products ``left[i] @ right[i]`` of packed symmetric matrices."""
    twice = np.full(left.shape[1], 2.0)
    twice[diagonal_positions(rank)] = 1.0
    return np.asarray(np.einsum("ij,ij,j->i", left, right, twice), dtype=np.float64)


def packed_places(rank: int) -> NDArray[np.intp]:
    """Index (rank, rank) of each entry of a symmetric matrix in its packed form."""
    places = np.empty((rank, rank), dtype=np.intp)
    upper = np.triu_indices(rank)
    places[upper] = places.T[upper] = np.arange(len(upper[0]))
    return places


def unpack_rows(packed: Floats, rank: int) -> Floats:
    """Symmetric matrices (n, rank, rank) from packed ones (n, rank (rank + 1) / 2)."""
    return packed.take(packed_places(rank).ravel(), axis=1).reshape(len(packed), rank, rank)


def triangle(packed: Floats, size: int) -> list[Floats]:
    """Rows, as views, of packed matrices (size (size + 1) / 2, n).

    The k-th row has shape (size - k, n), its diagonal entry first.
    """
    ends = np.cumsum(np.arange(size, 0, -1)).tolist()
    return [packed[end - size + i : end] for i, end in enumerate(ends)]


def factorise(rows: list[Floats], least: float | Floats) -> Floats:
    """Factorise n matrices, rows of `triangle`, as ``R' diag(d) R`` in place; return 1 / d.

    R, without its unit diagonal, replaces the matrix. Pivots d are raised to `least`.
    """
    inverses, scratch = np.empty_like(rows[0]), np.empty_like(rows[0])  # (size, n)
    floors = np.broadcast_to(least, inverses.shape)
    for k, row in enumerate(rows):
        np.divide(1.0, np.maximum(row[0], floors[k]), out=inverses[k])
        factors = row[1:] * inverses[k]
        for i, factor in enumerate(factors, 1):
            rows[k + i] -= np.multiply(row[i:], factor, out=scratch[k + i :])
        row[1:] = factors
    return inverses


def solve_factorised(rows: list[Floats], inverses: Floats, b: Floats) -> Floats:
    """Solve n systems by `factorise` for right-hand sides b (r, n), which are overwritten."""
    for k, row in enumerate(rows):
        b[k + 1 :] -= row[1:] * b[k]
    b *= inverses
    for k in reversed(range(len(rows))):
        for product in rows[k][1:] * b[k + 1 :]:
            b[k] -= product
    return b


def roots_of_inverses(rows: list[Floats], inverses: Floats) -> None:
    """Replace R of `factorise` by the upper triangular Y with Y Y' the inverse of its matrix."""
    # The inverse of R' diag(d) R is Y Y' with Y = R^-1 diag(d)^(-1/2).
    for i in reversed(range(len(rows))):
        # Back substitution: a row of the inverse of R follows from the rows below.
        factors, inverse_row = rows[i][1:].copy(), rows[i][1:]
        np.negative(inverse_row, out=inverse_row)
        for m, factor in enumerate(factors[:-1], 1):
            inverse_row[m:] -= rows[i + m][1:] * factor
    roots = np.sqrt(inverses)
    for k, row in enumerate(rows):
        row[0] = roots[k]
        row[1:] *= roots[k + 1 :]


def products_of_roots(rows: list[Floats], more: Floats | None = None) -> Floats:
    """Packed ``Y Y' + w w'`` of n upper triangular Y; w are the columns of `more`, or 0."""
    r, n = rows[0].shape
    packed, column, scratch = np.empty((r * (r + 1) // 2, n)), np.empty((r, n)), np.empty((r, n))
    products = triangle(packed, r)
    # Sum y y' over the columns y of Y. Column k has k + 1 numbers, so that y y' is the upper left
    # part of the result: begin with the last one, which fills it.
    for k in reversed(range(r)):
        y = column[: k + 1]
        for i in range(k + 1):
            y[i] = rows[i][k - i]
        for i, product in enumerate(products[: k + 1]):
            if k == r - 1:
                np.multiply(y[i:], y[i], out=product)
            else:
                product[: k + 1 - i] += np.multiply(y[i:], y[i], out=scratch[i : k + 1])
    if more is not None:
        for i, product in enumerate(products):
            product += np.multiply(more[i:], more[i], out=scratch[i:])
    return packed


def times(rows: list[Floats], x: Floats) -> Floats:
    """Product of the j-th symmetric matrix with column j of `x`, for all j; (size, n).

    ``rows[k][i]`` has the entries (k, k + i) of all matrices, as `triangle` returns them.
    """
    result = np.zeros_like(x)
    for k, row in enumerate(rows):
        for product in row * x[k:]:
            result[k] += product
        result[k + 1 :] += row[1:] * x[k]
    return result


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Normal equations of a mode's rows, by the derivatives z and targets x of their entries."""

    gram: Floats  # (n_rows, r (r + 1) / 2): packed sums of z z', or of its expectation
    moment: Floats  # (n_rows, r): sums of x z
    design: Floats  # (n_rows, r): sums of z


def normal_equations(fibres: Fibres, factors: Sequence[Floats], targets: Floats) -> NormalEquations:
    """Normal equations of all rows of a mode, for `targets` sorted by its fibres.

    The derivatives z of an entry, which all of a fibre share, are the Kronecker product of its rows
    in `factors`, those of the other modes.
    """
    rank = math.prod(factor.shape[1] for factor in factors)
    size, ones = rank * (rank + 1) // 2, np.ones(len(targets))
    sums, moment = np.zeros((fibres.length, size + rank)), np.zeros((fibres.length, rank))
    for part in spans(len(fibres), size + 2 * rank, caches=16):
        z = kronecker_rows(factors, fibres.coordinates[part])
        sums += fibres.matrix(ones, part).T @ np.hstack([packed_products(z), z])
        moment += fibres.matrix(targets, part).T @ z
    return NormalEquations(sums[:, :size], moment, sums[:, size:])


def core_equations(
    entries: SortedEntries, factors: Sequence[Floats], targets: Floats
) -> tuple[Floats, Floats, Floats]:
    """Sums over entries of z z' (n, n), x z and z (n,), z the Kronecker product of factors' rows.

    They are the normal equations of a core of n numbers.
    """
    ranks = [factor.shape[1] for factor in factors]
    size, n_modes = math.prod(ranks), len(ranks)
    # Sum along the mode for which this takes the fewest multiplications.
    costs = [
        entries.n_entries * (size // rank) ** 2 + length * size**2
        for rank, length in zip(ranks, entries.shape, strict=True)
    ]
    mode = int(np.argmin(costs))
    fibres, factor, rank = entries.fibres(mode), factors[mode], ranks[mode]
    others, width = [ranks[k] for k in entries.others(mode)], size // rank
    equations = normal_equations(
        fibres, [factors[k] for k in entries.others(mode)], targets[fibres.order]
    )
    # z is the Kronecker product of a row a of this mode and w, that of the others. Sum a a' (x) w
    # w', unpack it to (rank, rank, width, width), and put axes in the order of modes.
    packed = packed_products(factor).T @ equations.gram
    gram = packed[packed_places(rank).ravel()][:, packed_places(width).ravel()]
    gram = gram.reshape(rank, rank, width, width).swapaxes(1, 2)
    gram = gram.reshape(rank, *others, rank, *others)
    gram = np.moveaxis(gram, (0, n_modes), (mode, n_modes + mode)).reshape(size, size)
    moment, design_total = (
        np.moveaxis((factor.T @ sums).reshape(rank, *others), 0, mode).ravel()
        for sums in (equations.moment, equations.design)
    )
    return gram, moment, design_total


def solve_rows(
    equations: NormalEquations, counts: Floats, sums: Floats, bias_ridge: float, ridge: Floats
) -> tuple[Floats, Floats, Floats]:
    """Bias b and factor row a of each row, and packed inverse of its Gram matrix with the ridge.

    b and a minimise ``sum_e (x_e - b - z_e' a)^2 + bias_ridge b^2 + sum_j ridge[j] a[j]^2`` over a
    row's entries e; `counts` and `sums` (n_rows,) are their number and the sum of x.
    """
    system_numbers = 2**18  # doubles in a block of matrices: 2 MB, so that there are few calls
    n, rank = equations.moment.shape
    corners = counts + bias_ridge  # last diagonal entry of each matrix, that of the bias
    bias = sums / corners
    rows = np.zeros((n, rank))
    inverses = np.empty_like(equations.gram)
    if rank == 0:
        return bias, rows, inverses
    step = max(1, system_numbers // ((rank + 1) * (rank + 2) // 2))
    for first in range(0, n, step):
        block = slice(first, first + step)
        b = np.empty((rank + 1, len(sums[block])))
        b[:rank], b[rank] = equations.moment[block].T, sums[block]
        packed = _penalised(equations, corners, ridge, block)
        matrices, factored = triangle(packed.copy(), rank + 1), triangle(packed, rank + 1)
        # Exact pivots are larger than rounding errors: raise them to these.
        inverse_pivots = factorise(factored, _LEAST_PIVOT * packed[diagonal_positions(rank + 1)])
        solution = solve_factorised(factored, inverse_pivots, b.copy())
        # Iterative refinement: for badly conditioned matrices the first solution may be far off.
        left = b - times(matrices, solution)
        solution += solve_factorised(factored, inverse_pivots, left)
        # Without the bias, which is last: the Gram matrix alone is inverted.
        roots = [row[: rank - i] for i, row in enumerate(factored[:rank])]
        roots_of_inverses(roots, inverse_pivots[:rank])
        rows[block], bias[block] = solution[:rank].T, solution[rank]
        inverses[block] = products_of_roots(roots).T
    return bias, rows, inverses


def _penalised(equations: NormalEquations, corners: Floats, ridge: Floats, block: slice) -> Floats:
    """Packed matrices (..., n) of a block of rows: Gram matrix plus ridge, and last the bias."""
    # Least ridge relative to the Gram matrix: without noise a row with fewer entries than
    # components would be singular.
    least_ridge = 1e-13
    gram, rank = equations.gram[block].T, len(ridge)
    least = least_ridge * gram[diagonal_positions(rank)].sum(axis=0)
    packed = np.empty((len(gram) + rank + 1, gram.shape[1]))
    of_bias = packed_places(rank + 1)[:, rank]  # places of the bias's column, its diagonal last
    is_gram = np.ones(len(packed), dtype=bool)
    is_gram[of_bias] = False
    packed[is_gram] = gram
    packed[of_bias[:-1]] = equations.design[block].T
    packed[of_bias[-1]] = corners[block]
    packed[diagonal_positions(rank + 1)[:-1]] += np.maximum(ridge[:, None], least)
    return packed


def posterior_rows(
    sums: Floats, grams: Floats, noise: Floats, residual: float, prior: float
) -> Floats:
    """Posterior means (n, r) of normal rows a_i observed as ``sums_i = grams_i @ a_i + e_i``.

    The covariance of the error e_i is ``noise_i + residual * grams_i``. EM for the variance of rows
    starts from `prior`. Rows whose gram is 0 stay 0.
    """
    # EM steps, least variance relative to the first one, and ridge of matrices relative to their
    # size.
    prior_steps, least_prior, least_ridge = 20, 1e-8, 1e-12
    r = sums.shape[1]
    observed = np.trace(grams, axis1=1, axis2=2) > 0
    posterior = np.zeros_like(sums)
    if r == 0 or not observed.any():
        return posterior
    # A row's sums g have the covariance p H H + N at the prior variance p, H its gram and N the
    # covariance of noise; its posterior mean is p H (p H H + N)^-1 g.
    H = grams[observed]
    g = sums[observed]
    N = noise[observed] + residual * grams[observed]
    size = np.trace(prior * (H @ H) + N, axis1=1, axis2=2) / r
    # With L L' = N, M = L^-1 H and M M' = U D U', the matrix to invert is L U (p D + 1) U' L' for
    # any prior variance p, so iterations need no further factorisation.
    L = np.linalg.cholesky(N + (least_ridge * size)[:, None, None] * np.eye(r))
    whitened = np.linalg.solve(L, np.concatenate([H, g[..., None]], axis=2))
    M, white_sums = whitened[:, :, :r], whitened[:, :, r:]
    squares, axes = np.linalg.eigh(M @ M.transpose(0, 2, 1))
    squares = np.maximum(squares, 0.0)
    white_sums = (axes.transpose(0, 2, 1) @ white_sums)[..., 0]
    least = least_prior * prior
    # EM: a row's expected square is its posterior mean's square plus its posterior variance, which
    # is also the factor of its mean along each axis.
    for _ in range(prior_steps):
        variances = prior / (prior * squares + 1)
        turned = variances * white_sums
        # Rows are M' U turned, so their squares sum to those of sqrt(D) turned.
        prior = max(float(np.mean(squares * turned**2 + variances)), least)
    posterior[observed] = (M.transpose(0, 2, 1) @ (axes @ turned[..., None]))[..., 0]
    return posterior
