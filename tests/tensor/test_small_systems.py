"""Many small systems at once: as each by itself, in any company."""

import numpy as np
import pytest

from sktensor_dp.tensor.small_systems import are_positive, bordered_inverses, shifted_inverses


def positive(rng, n, r, rank=None):
    z = rng.standard_normal((n, r, r if rank is None else rank))
    return z @ z.transpose(0, 2, 1)


@pytest.mark.parametrize("r", [0, 1, 5, 40])
@pytest.mark.parametrize("n", [1, 3, 3000])
def test_bordered_inverses_are_those_of_each_matrix(n, r, seed):
    rng = np.random.default_rng(seed)
    A, d = positive(rng, n, r) + np.eye(r), rng.standard_normal((n, r))
    given = A.copy()
    found = bordered_inverses(A.transpose(1, 2, 0), d.T, np.full(n, 1e4))
    inverses, products, left = found[0].transpose(2, 0, 1), found[1].T, found[2]
    # Least eigenvalues are 1 or more: errors are of the order of the condition, below 1e3.
    np.testing.assert_allclose(A @ inverses, np.broadcast_to(np.eye(r), A.shape), atol=1e-9)
    np.testing.assert_allclose(products, np.einsum("nij,nj->ni", inverses, d), atol=1e-9)
    np.testing.assert_allclose(left, 1e4 - np.einsum("ni,ni->n", d, products), rtol=1e-9)
    np.testing.assert_array_equal(A, given)


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
