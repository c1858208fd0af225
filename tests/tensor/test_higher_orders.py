"""Oracles and decompositions of every order."""

from itertools import product

import numpy as np
import pytest
from small_tensors import random_frame

from sktensor_dp.tensor import (
    orthogonal_decomposition,
    robust_tensor_power_method,
    symmetric_outer_sum,
    symmetrize,
    tensor_oracle,
)

ORDERS = [3, 4, 5]


def contracted(T, U):
    """T(I, u, ..., u), one mode and one column at a time."""
    columns = []
    for u in U.T:
        part = T
        while part.ndim > 1:
            part = part @ u
        columns.append(part)
    return np.array(columns).T


@pytest.mark.parametrize("order", [2, *ORDERS])
def test_outer_sum_matches_the_sum(order, seed):
    rng = np.random.default_rng([seed, order])
    weights, V = rng.standard_normal(4), rng.standard_normal((4, 3))
    T = symmetric_outer_sum(weights, V, order)
    for index in product(range(3), repeat=order):
        # Four products of a few numbers of order 1.
        assert abs(T[index] - weights @ np.prod(V[:, list(index)], axis=1)) < 1e-12


# Sizes around the length from which only half of the tensor is read, and one that
# is no multiple of a block; 1, 2, 3 and 70 columns take different ways through it.
@pytest.mark.parametrize("n_columns", [1, 2, 3, 70])
@pytest.mark.parametrize("dim", [5, 64, 83])
def test_third_order_oracle_contracts_every_column(dim, n_columns, seed):
    rng = np.random.default_rng([seed, dim])
    T, U = symmetrize(rng.standard_normal((dim,) * 3)), rng.standard_normal((dim, n_columns))
    answer = tensor_oracle(T)(U)
    # Sums of d^2 terms of order 1, rounded to 1e-16 times d each.
    np.testing.assert_allclose(answer, contracted(T, U), atol=1e-11 * dim)
    assert np.abs(answer).max() > 1e-3  # a zero answer would not do


def test_large_tensors_are_read_by_half_and_not_changed(seed):
    rng = np.random.default_rng([seed, 1])
    T, U = symmetrize(rng.standard_normal((80,) * 3)), rng.standard_normal((80, 10))
    answer = tensor_oracle(T)(U)
    half = T.copy()
    for j in range(80):
        half[j, : j - j % 20] = 1e9  # what lies before the block of row j
    half.flags.writeable = False
    np.testing.assert_array_equal(tensor_oracle(half)(U), answer)


@pytest.mark.parametrize("method", ["power", "simultaneous", "best"])
@pytest.mark.parametrize("order", ORDERS)
def test_components_are_recovered_at_every_order(order, method, seed):
    rng = np.random.default_rng([seed, order, 3])
    V, given = random_frame(6, 4, rng), np.array([4.0, -3.0, 2.0, -1.0])
    # The higher the order, the smaller the basins and the slower the first steps.
    weights, vectors = orthogonal_decomposition(
        symmetric_outer_sum(given, V, order), 4, method=method, n_restarts=40, random_state=seed
    )
    np.testing.assert_allclose(weights, given if order % 2 == 0 else np.abs(given), atol=1e-9)
    overlaps = vectors @ V.T
    np.testing.assert_allclose(np.abs(overlaps), np.eye(4), atol=1e-9)
    if order % 2:  # then the sign of a vector is that of the weight it had
        np.testing.assert_allclose(np.sign(np.diag(overlaps)), np.sign(given))


@pytest.mark.parametrize("order", ORDERS)
def test_oracle_and_dense_tensor_give_the_same(order, seed):
    rng = np.random.default_rng([seed, order, 4])
    V, given = random_frame(5, 3, rng), np.array([3.0, 2.0, 1.0])
    dense = robust_tensor_power_method(symmetric_outer_sum(given, V, order), 3, random_state=seed)
    known = robust_tensor_power_method(
        lambda U: V.T @ (given[:, None] * (V @ U) ** (order - 1)),
        3,
        dim=5,
        order=order,
        random_state=seed,
    )
    np.testing.assert_allclose(dense[0], known[0], atol=1e-9)
    overlaps = np.sum(dense[1] * known[1], axis=1)
    # Of even order the sign depends on how many steps rounding left to take.
    np.testing.assert_allclose(overlaps if order % 2 else np.abs(overlaps), 1.0, atol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_weights_beyond_the_rank_are_zero(order, seed):
    V = random_frame(5, 2, np.random.default_rng([seed, order, 5]))
    T = symmetric_outer_sum([2.0, 1.0], V, order)
    weights, vectors = robust_tensor_power_method(T, 4, random_state=seed)
    np.testing.assert_allclose(weights[:2], [2.0, 1.0], atol=1e-9)
    np.testing.assert_array_equal(weights[2:], np.zeros(2))
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(4), atol=1e-9)


# Components and noise of the speed benchmark, at a fourth of its size: the first-order
# error is the part of E(I, v, v)/w normal to v, of norm about 0.1/sqrt(3) = 0.058 for
# w = 1 (entries of variance 0.01/(3 d)), so that the cosine is .9983, and is .997 at
# one and a third times that norm, 3 standard deviations from it (sd 7 % over 50).
def test_few_iterations_and_loose_restarts_find_noisy_components(seed):
    rng = np.random.default_rng([seed, 6])
    V = random_frame(100, 10, rng)
    noise = 0.1 / 10.0 * symmetrize(rng.standard_normal((100, 100, 100)))
    T = symmetric_outer_sum(np.linspace(1, 2, 10), V) + noise
    vectors = robust_tensor_power_method(
        T, 10, n_restarts=10, max_iter=10, tol=1e-6, random_state=seed
    )[1]
    assert np.abs(vectors @ V.T).max(axis=0).min() > 0.997


T4, X = np.zeros((2,) * 4), np.ones((3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: robust_tensor_power_method(T4, 1, order=3), "order must be 4"),
        (lambda: robust_tensor_power_method(lambda U: U, 1, dim=2, order=2), "order must be at"),
        (lambda: symmetric_outer_sum(np.ones(3), X, 1), "order must be at least 2"),
    ],
)
def test_wrong_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
