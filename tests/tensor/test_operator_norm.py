"""The operator norm of symmetric tensors."""

import numpy as np
import pytest
from small_tensors import random_frame

from sktensor_dp.tensor import (
    cp_oracle,
    operator_norm,
    symmetric_outer_sum,
    symmetric_product,
    symmetrize,
    tensor_oracle,
)


# T(u, u, u) is a mean of w_j v_j'u with weights (v_j'u)^2: at most max |w_j|. Its basin
# holds most starts, so 20 restarts do not all miss it.
@pytest.mark.parametrize("shift", [None, 6.0])
def test_norm_of_orthogonal_components_is_their_largest_weight(shift, seed):
    V = random_frame(8, 4, np.random.default_rng([seed, 1]))
    T = symmetric_outer_sum([1.0, -3.0, 2.0, 0.5], V)
    norm = operator_norm(T, shift=shift, random_state=seed)
    assert norm == pytest.approx(3.0, rel=1e-9)
    assert operator_norm(-2.0 * T, shift=shift, random_state=seed) >= norm


# With a = v'u, the three placements of v beside a projection P give 3 a |P u|^2. For P
# of the complement of v: 3 a (1 - a^2), largest at a = 1/sqrt(3); for P = I: 3 a.
@pytest.mark.parametrize("with_axis", [False, True])
@pytest.mark.parametrize("dim", [2, 5, 20])
def test_norm_of_placed_products(dim, with_axis, seed):
    basis = random_frame(dim, dim, np.random.default_rng([seed, dim]))
    others = basis if with_axis else basis[1:]
    E = symmetric_product(others.T @ others, basis[0])
    expected = 3.0 if with_axis else 2.0 / np.sqrt(3.0)
    assert operator_norm(E, random_state=seed) == pytest.approx(expected, rel=1e-9)
    # A fixed shift of twice the norm is enough by theory, and slower.
    fixed = operator_norm(E, shift=6.0, random_state=seed)
    assert fixed == pytest.approx(expected, rel=1e-9)


# On a grid of step 0.01 the nearest point is within 0.0071 of the maximum; there
# T(u, u, u) falls by at most 3/2 (|T| + 2 |T|) 0.0071^2 < 3e-4 |T|.
def test_norm_agrees_with_a_search_of_the_sphere(seed):
    polar, azimuth = np.meshgrid(np.arange(0, np.pi, 0.01), np.arange(0, 2 * np.pi, 0.01))
    grid = np.array(
        [np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)]
    ).reshape(3, -1)
    for trial in range(4):
        T = symmetrize(np.random.default_rng([seed, 2, trial]).standard_normal((3, 3, 3)))
        searched = np.abs(np.sum(grid * tensor_oracle(T)(grid), axis=0)).max()
        norm = operator_norm(T, random_state=seed)
        assert searched * (1 - 1e-12) <= norm <= searched / (1 - 3e-4)


@pytest.mark.parametrize("shift", [None, 8.0])
def test_more_iterations_never_lower_the_value(shift, seed):
    T = symmetrize(np.random.default_rng([seed, 3]).standard_normal((6, 6, 6)))
    values = [
        operator_norm(T, n_restarts=1, max_iter=n, shift=shift, random_state=seed)
        for n in range(1, 40)
    ]
    assert (np.diff(values) > -1e-12).all()
    assert values[-1] > values[0]


def test_value_is_attained_at_a_local_maximum(seed):
    T = symmetrize(np.random.default_rng([seed, 4]).standard_normal((12, 12, 12)))
    norm = operator_norm(T, n_restarts=50, random_state=seed)
    draws = np.random.default_rng([seed, 5]).standard_normal((12, 5000))
    draws /= np.linalg.norm(draws, axis=0)
    assert norm > np.abs(np.sum(draws * tensor_oracle(T)(draws), axis=0)).max()
    assert norm <= np.linalg.norm(T.reshape(12, 144), 2)


def test_oracle_equals_dense_and_scale_does_not_matter(seed):
    rng = np.random.default_rng([seed, 6])
    weights, V = rng.standard_normal(5), rng.standard_normal((5, 4))
    T = symmetric_outer_sum(weights, V)
    norm = operator_norm(T, random_state=seed)
    known = operator_norm(cp_oracle(weights, V), dim=4, random_state=seed)
    assert known == pytest.approx(norm, rel=1e-9)
    assert operator_norm(1e-20 * T, random_state=seed) == pytest.approx(1e-20 * norm, rel=1e-9)


def test_zero_tensor_has_norm_zero():
    assert operator_norm(np.zeros((3, 3, 3)), random_state=0) == 0.0


T2 = np.zeros((2, 2, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: operator_norm(np.ones((2,) * 4)), "order must be 4"),
        (lambda: operator_norm(lambda U: U), "dim"),
        (lambda: operator_norm(T2, n_restarts=0), "n_restarts"),
        (lambda: operator_norm(T2, max_iter=0), "max_iter"),
        (lambda: operator_norm(T2, shift=-1.0), "shift must be"),
    ],
)
def test_wrong_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
