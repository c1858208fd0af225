"""Many small systems at once: as each by itself, in any company."""

import numpy as np
import pytest

from sktensor_dp.tensor.normal_equations import are_positive, shifted_inverses


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
