"""Incoherence, distances between subspaces, and the bound of Proposition B.1."""

import numpy as np
import pytest
from small_tensors import random_frame

from sktensor_dp.tensor import (
    coordinates_to_symmetric,
    incoherence,
    n_unique,
    random_marginal_bound,
    subspace_distance,
    symmetric_outer_sum,
    whiten_by_random_marginal,
)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (8, 1), (12, 4), (6, 6)])
def test_incoherence_follows_the_definition(d, k, seed):
    V = random_frame(d, k, np.random.default_rng([seed, d]))
    largest = max(np.linalg.norm(V @ axis) ** 2 for axis in np.eye(d))
    assert incoherence(V) == pytest.approx(d / k * largest, rel=1e-12)
    assert 1.0 - 1e-12 <= incoherence(V) <= d / k + 1e-12
    rotated = random_frame(k, k, np.random.default_rng(seed)) @ V
    assert incoherence(rotated) == pytest.approx(incoherence(V), rel=1e-10)


def test_incoherence_reaches_both_ends():
    flat = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0]]) / 2.0
    assert incoherence(flat) == pytest.approx(1.0)
    assert incoherence(np.eye(12)[3:7]) == 3.0


@pytest.mark.parametrize("k", [1, 3])
def test_distance_is_that_of_projections(k, seed):
    rng = np.random.default_rng([seed, k])
    A, B = rng.standard_normal((7, k)), rng.standard_normal((7, k))
    projections = [Q @ Q.T for Q in (np.linalg.qr(M)[0] for M in (A, B))]
    expected = np.linalg.norm(projections[0] - projections[1], 2)
    assert subspace_distance(A, B) == pytest.approx(expected, abs=1e-12)
    assert subspace_distance(B, A) == pytest.approx(expected, abs=1e-12)
    assert subspace_distance(A, A @ rng.standard_normal((k, k))) < 1e-10
    assert subspace_distance(A, rng.standard_normal((7, k + 1))) == 1.0


def test_small_angles_are_not_lost_to_rounding():
    tilted = np.array([[1.0], [1e-10]])
    assert subspace_distance([[1.0], [0.0]], tilted) == pytest.approx(1e-10, rel=1e-6)


# The bound holds for every draw. With a direction of equal products s = 1/sqrt(20)
# it is not idle either: noise of norm 0.05 s can move the span by 0.05 at most.
@pytest.mark.parametrize("share", [0.05, 0.3, 0.45])
def test_bound_holds_for_actual_noise(share, seed):
    rng = np.random.default_rng([seed, 1])
    V, weights = random_frame(20, 4, rng), np.array([1.0, -1.0, 2.0, 3.0])
    theta = V.sum(axis=0) / 2.0 if seed % 2 else rng.standard_normal(20)
    theta /= np.linalg.norm(theta)
    noise = coordinates_to_symmetric(rng.standard_normal(n_unique(20, 3)), 20, 3)
    smallest = np.abs(weights * (V @ theta)).min()
    noise *= share * smallest / np.linalg.norm(noise @ theta, 2)
    norm = float(np.linalg.norm(noise @ theta, 2))
    found = whiten_by_random_marginal(symmetric_outer_sum(weights, V) + noise, 4, theta=theta)
    distance = subspace_distance(V.T, found.basis)
    bound = random_marginal_bound(weights, V, 3.0 * theta, norm)
    assert bound == pytest.approx(share / (1.0 - share))
    assert 1e-3 * bound < distance <= bound * (1.0 + 1e-9)


def test_bound_is_nearly_reached_by_rotated_noise():
    # M = diag(1, 0) + 0.1 (e1 e2' + e2 e1'): the angle has tan(2a) = 0.2.
    V, E = np.eye(2)[:1], np.array([[0.0, 0.1], [0.1, 0.0]])
    eigenvectors = np.linalg.eigh(np.diag([1.0, 0.0]) + E)[1]
    distance = subspace_distance(V.T, eigenvectors[:, 1:])
    bound = random_marginal_bound([1.0], V, [1.0, 0.0], 0.1)
    assert 0.85 * bound < distance < bound


@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_bound_is_infinite_where_noise_hides_a_component(noise):
    assert random_marginal_bound([2.0, 1.0], np.eye(2), [0.0, 1.0], 0.1) == np.inf
    assert random_marginal_bound([1.0], np.eye(2)[:1], [1.0, 0.0], noise) == np.inf


ONE = np.eye(2)[:1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: incoherence(np.ones((2, 3))), "orthonormal rows"),
        (lambda: incoherence(np.eye(3)[:, :2]), r"vectors must have shape .* \(3, 2\)"),
        (lambda: incoherence(np.full((1, 2), np.nan)), "orthonormal rows"),
        (lambda: subspace_distance(np.ones(3), np.eye(3)), r"A must have shape .* \(3,\)"),
        (lambda: subspace_distance(np.eye(3), np.ones((3, 2))), "B must have linearly"),
        (lambda: subspace_distance(np.eye(3), np.eye(2)), "same number of rows"),
        (lambda: random_marginal_bound([1.0, 1.0], ONE, [1.0, 0.0], 0.1), "weights must have"),
        (lambda: random_marginal_bound([1.0], ONE, [0.0, 0.0], 0.1), "theta must have"),
        (lambda: random_marginal_bound([1.0], ONE, [1.0], 0.1), "theta must have"),
        (lambda: random_marginal_bound([1.0], ONE, [1.0, 0.0], -0.1), "noise_norm must be"),
    ],
)
def test_wrong_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
