"""Many small systems at once, each as by itself, in any company."""

import numpy as np
import pytest

from sktensor_dp.tensor.normal_equations import (
    factorise,
    products_of_roots,
    roots_of_inverses,
    solve_factorised,
    times,
    triangle,
    unpack_rows,
)


def problem(rng, n, r):
    z = rng.standard_normal((n, r, r))
    A = z @ z.transpose(0, 2, 1) + np.eye(r)
    packed = np.ascontiguousarray(A[:, *np.triu_indices(r)].T)
    return A, packed, rng.standard_normal((r, n))


def all_of(packed, b, size, least=1.0):
    rows = triangle(packed.copy(), size)
    pivots = factorise(rows, least)
    found = solve_factorised(rows, pivots, b.copy())
    roots_of_inverses(rows, pivots)
    return found, np.concatenate(rows), products_of_roots(rows), products_of_roots(rows, b)


@pytest.mark.parametrize("r", [1, 2, 5, 40])
@pytest.mark.parametrize("n", [1, 3, 300])
def test_systems_are_solved_and_inverted(n, r, seed):
    rng = np.random.default_rng(seed)
    A, packed, b = problem(rng, n, r)
    given = packed.copy()
    found, _, inverses, more = all_of(packed, b, r)
    np.testing.assert_array_equal(packed, given)
    # Errors are of the order of the condition, below 1e3.
    np.testing.assert_allclose(np.einsum("nij,jn->in", A, found), b, atol=1e-9)
    full = unpack_rows(inverses.T, r)
    np.testing.assert_allclose(A @ full, np.broadcast_to(np.eye(r), A.shape), atol=1e-9)
    squares = np.einsum("in,jn->nij", b, b)
    np.testing.assert_allclose(unpack_rows(more.T, r), full + squares, atol=1e-9)
    np.testing.assert_allclose(times(triangle(packed, r), b), np.einsum("nij,jn->in", A, b),
                               atol=1e-9)  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 77])
def test_a_system_does_not_depend_on_the_others(n, seed):
    """Neighbours differ in one unit: the bits of all others must not."""
    rng = np.random.default_rng(seed)
    _, packed, b = problem(rng, 100, 6)
    together, chosen = all_of(packed, b, 6), rng.choice(100, n, replace=False)
    for part, alone in zip(together, all_of(packed[:, chosen], b[:, chosen], 6), strict=True):
        np.testing.assert_array_equal(alone, part[:, chosen])


def test_pivots_are_raised(seed):
    """Of matrices of which the second pivot is below the least: to it, one by one."""
    rng = np.random.default_rng(seed)
    off = rng.uniform(-0.5, 0.5, 9)
    packed = np.stack([np.ones(9), off, off**2 - 1.0])
    rows = triangle(packed.copy(), 2)
    np.testing.assert_array_equal(factorise(rows, 1.0), np.ones((2, 9)))
    least = rng.uniform(2.0, 3.0, (2, 9))
    np.testing.assert_array_equal(factorise(triangle(packed.copy(), 2), least), 1 / least)
