"""Symmetric matrices and tensors: coordinates, products, symmetrisation."""

from itertools import permutations, product

import numpy as np
import pytest

from sktensor_dp.tensor import symmetric_outer_sum
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    multilinear,
    n_unique,
    symmetric_product,
    symmetric_to_coordinates,
    symmetrize,
)

# Sums of at most 5^3 products of numbers of order 1: rounding is below 1e-13.
ROUNDING = 1e-13


def all_transposes(T):
    return [T.transpose(axes) for axes in permutations(range(T.ndim))]


@pytest.mark.parametrize("order", [2, 3])
def test_symmetrize_is_the_orthogonal_projection(order, seed):
    T = np.random.default_rng(seed).standard_normal((4,) * order)
    S = symmetrize(T)
    assert all(np.array_equal(S, other) for other in all_transposes(S))
    np.testing.assert_allclose(S, np.mean(all_transposes(T), axis=0), atol=ROUNDING)
    np.testing.assert_allclose(symmetrize(S), S, atol=ROUNDING)
    assert abs(np.sum(S * (T - S))) < ROUNDING * 4**order
    assert np.linalg.norm(S) > 0.1


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_coordinates_follow_the_definition(order, k, seed):
    T = symmetrize(np.random.default_rng(seed).standard_normal((k,) * order))
    expected = []
    for index in product(range(k), repeat=order):
        if list(index) == sorted(index):
            expected.append(np.sqrt(len(set(permutations(index)))) * T[index])
    np.testing.assert_allclose(symmetric_to_coordinates(T), expected, rtol=1e-14)


@pytest.mark.parametrize(("order", "k"), [(2, 1), (2, 300), (3, 1), (3, 12)])
def test_coordinates_are_orthonormal(order, k, seed):
    rng = np.random.default_rng(seed)
    c = rng.standard_normal(n_unique(k, order))
    T = coordinates_to_symmetric(c, k, order)
    assert all(np.array_equal(T, other) for other in all_transposes(T))
    np.testing.assert_allclose(np.linalg.norm(T), np.linalg.norm(c), rtol=1e-13)
    np.testing.assert_allclose(symmetric_to_coordinates(T), c, rtol=1e-14)
    other = coordinates_to_symmetric(c[::-1], k, order)
    np.testing.assert_allclose(np.sum(T * other), c @ c[::-1], atol=1e-12 * c.size)


def test_only_sorted_entries_are_read_and_nothing_is_changed():
    T = np.full((3, 3), np.nan)
    T[np.triu_indices(3)] = np.arange(6.0)
    before = T.copy()
    assert np.isfinite(symmetric_to_coordinates(T)).all()
    np.testing.assert_array_equal(T, before)


def test_products_match_their_sums(seed, cache_of):
    rng = np.random.default_rng(seed)
    T, A = symmetrize(rng.standard_normal((4, 4, 4))), rng.standard_normal((4, 3))
    expected = np.einsum("ijl,ia,jb,lc->abc", T, A, A, A)
    np.testing.assert_allclose(multilinear(T, A), expected, atol=1e-12)
    M, v = symmetrize(rng.standard_normal((4, 4))), rng.standard_normal(4)
    expected = sum(np.einsum(f"{axes}->ijk", M, v) for axes in ("ij,k", "ik,j", "jk,i"))
    np.testing.assert_allclose(symmetric_product(M, v), expected, atol=ROUNDING)
    weights, V = rng.standard_normal(5), rng.standard_normal((5, 3))
    expected = np.einsum("n,ni,nj,nk->ijk", weights, V, V, V)
    np.testing.assert_allclose(symmetric_outer_sum(weights, V), expected, atol=ROUNDING)
    cache_of(2)  # two rows a block
    np.testing.assert_allclose(symmetric_outer_sum(weights, V), expected, atol=ROUNDING)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: symmetrize(np.ones((2, 3))), r"T must have .* \(2, 3\)"),
        (lambda: symmetrize(np.ones(3)), r"T must have .* \(3,\)"),
        (lambda: symmetric_to_coordinates(np.ones((2,) * 4)), "T must have 2 or 3 modes"),
        (lambda: coordinates_to_symmetric(np.ones(4), 2, 2), r"c must have shape \(3,\)"),
        (lambda: multilinear(np.ones((2, 2, 2)), np.ones((3, 2))), r"A must have shape \(2, m\)"),
        (lambda: symmetric_outer_sum(np.ones(2), np.ones((3, 2))), "weights and V"),
    ],
)
def test_wrong_shapes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
