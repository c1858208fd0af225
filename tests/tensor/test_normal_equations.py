"""Many small systems at once, each as by itself, in any company."""

import numpy as np
import pytest

from sktensor_dp.tensor.normal_equations import (
    are_positive,
    eliminated,
    products_of_roots,
    roots_of_inverses,
    shifted_inverses,
    solved,
    times,
    triangle,
    unpack_rows,
)


def problem(rng, n, r):
    """Matrices with eigenvalues of 1 and more, their triangles, and right-hand sides."""
    z = rng.standard_normal((n, r, r))
    A = z @ z.transpose(0, 2, 1) + np.eye(r)
    packed = np.ascontiguousarray(A[:, *np.triu_indices(r)].T)
    return A, packed, rng.standard_normal((r, n))


def all_of(packed, b, size, least=1.0):
    rows = triangle(packed.copy(), size)
    pivots = eliminated(rows, least)
    found = solved(rows, pivots, b.copy())
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
    np.testing.assert_array_equal(eliminated(rows, 1.0), np.ones((2, 9)))
    least = rng.uniform(2.0, 3.0, (2, 9))
    np.testing.assert_array_equal(eliminated(triangle(packed.copy(), 2), least), 1 / least)


def positive(rng, n, r, rank=None):
    z = rng.standard_normal((n, r, r if rank is None else rank))
    return z @ z.transpose(0, 2, 1)


@pytest.mark.parametrize("n", [1, 3, 3000])
def test_shifted_inverses_depend_on_their_own_matrix_alone(n, seed):
    """Neighbours differ in one unit: the bits of all others must not."""
    rng = np.random.default_rng(seed)
    A = positive(rng, n, 6, 3)
    given, found = A.copy(), shifted_inverses(A)
    np.testing.assert_array_equal(A, given)
    np.testing.assert_allclose(found @ (A + np.eye(6)), np.broadcast_to(np.eye(6), A.shape),
                               atol=1e-9)  # fmt: skip
    order = rng.permutation(n)[: max(1, n // 2)]
    np.testing.assert_array_equal(shifted_inverses(A[order]), found[order])


def test_whatever_a_matrix_holds_its_shifted_inverse_is_finite(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((500, 4, 4)) * 10.0 ** rng.uniform(-300, 300, (500, 1, 1))
    A[0, 0, 0], A[1] = np.nan, np.inf
    with np.errstate(all="ignore"):
        found = shifted_inverses(A)
    # What is added to 1 is positive semidefinite in exact arithmetic: entries are 1 at most.
    assert np.abs(found).max() <= 1.0
    assert not found[0].any()


@pytest.mark.parametrize("n", [1, 2000])
def test_no_matrix_with_a_negative_eigenvalue_is_called_positive(n, seed):
    """Beyond rounding, which is far below a 1e-12 of the trace."""
    rng = np.random.default_rng(seed)
    A = positive(rng, n, 5, 4) + 10.0 ** rng.uniform(-14, 1, (n, 1, 1)) * rng.choice(
        [-1.0, 1.0], (n, 1, 1)
    ) * np.eye(5)
    given, found = A.copy(), are_positive(A)
    np.testing.assert_array_equal(A, given)
    values, traces = np.linalg.eigvalsh(A)[:, 0], np.abs(np.trace(A, axis1=1, axis2=2))
    assert not found[values < -1e-13 * traces].any()
    assert found[values > 1e-13 * traces].all()


def test_matrices_that_are_not_finite_are_not_positive():
    A = np.stack([np.eye(3), np.full((3, 3), np.nan), np.diag([1.0, np.inf, 1.0])])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(are_positive(A), [True, False, False])
