"""Incoherence, distances of spans, the bound of Proposition B.1, and the operator norm."""

import numpy as np
import pytest
from small_tensors import random_frame

from sktensor_dp.tensor import symmetric_outer_sum
from sktensor_dp.tensor.symmetric import (
    coordinates_to_symmetric,
    n_unique,
    symmetric_product,
    tensor_oracle,
)


@pytest.fixture
def quantities(script):
    return script("tensor_diagnostics")


def test_incoherence_and_distance_follow_their_definitions(quantities, seed):
    rng = np.random.default_rng([seed, 1])
    for d, k in [(1, 1), (8, 1), (12, 4), (6, 6)]:
        V = random_frame(d, k, rng)
        largest = max(np.linalg.norm(V @ axis) ** 2 for axis in np.eye(d))
        assert quantities.incoherence(V) == pytest.approx(d / k * largest, rel=1e-12)
    A, B = rng.standard_normal((2, 7, 3))
    projections = [Q @ Q.T for Q in (np.linalg.qr(M)[0] for M in (A, B))]
    expected = np.linalg.norm(projections[0] - projections[1], 2)
    assert quantities.subspace_distance(A, B) == pytest.approx(expected, abs=1e-12)
    assert quantities.subspace_distance(A, A @ rng.standard_normal((3, 3))) < 1e-10
    assert quantities.subspace_distance(A, B[:, :2]) == 1.0
    # Small angles are not lost to rounding.
    tilted = quantities.subspace_distance([[1.0], [0.0]], [[1.0], [1e-10]])
    assert tilted == pytest.approx(1e-10, rel=1e-6)


# The bound holds for every draw. With a direction of equal products s = 1/sqrt(20)
# it is not idle either: noise of norm 0.05 s can move the span by 0.05 at most.
@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.45])
def test_bound_holds_for_actual_noise(quantities, fraction, seed):
    rng = np.random.default_rng([seed, 1])
    V, weights = random_frame(20, 4, rng), np.array([1.0, -1.0, 2.0, 3.0])
    theta = V.sum(axis=0) / 2.0 if seed % 2 else rng.standard_normal(20)
    theta /= np.linalg.norm(theta)
    noise = coordinates_to_symmetric(rng.standard_normal(n_unique(20, 3)), 20, 3)
    smallest = np.abs(weights * (V @ theta)).min()
    noise *= fraction * smallest / np.linalg.norm(noise @ theta, 2)
    norm = float(np.linalg.norm(noise @ theta, 2))
    found = quantities.marginal_span(symmetric_outer_sum(weights, V) + noise, 4, theta)
    distance = quantities.subspace_distance(V.T, found)
    bound = quantities.random_marginal_bound(weights, V, 3.0 * theta, norm)
    assert bound == pytest.approx(fraction / (1.0 - fraction))
    assert 1e-3 * bound < distance <= bound * (1.0 + 1e-9)
    assert quantities.random_marginal_bound(weights, V, theta, 2 * smallest) == np.inf


# T(u, u, u) is a mean of w_j v_j'u with weights (v_j'u)^2: at most max |w_j|. With a = v'u, the
# three placements of v beside the projection on its complement give 3 a (1 - a^2) at most, which
# is largest at a = 1/sqrt(3); a basin holds most starts, so that 20 do not all miss it.
def test_operator_norms_known_by_hand(quantities, seed):
    def norm(T):
        rng = np.random.default_rng(seed)
        return quantities.operator_norm(tensor_oracle(T), len(T), rng=rng)

    V = random_frame(8, 4, np.random.default_rng([seed, 1]))
    weights = [1.0, -3.0, 2.0, 0.5]
    for scale in (1.0, 1e-20):
        T = scale * symmetric_outer_sum(weights, V)
        assert norm(T) == pytest.approx(3.0 * scale, rel=1e-9)
    known = quantities.operator_norm(
        quantities.cp_contraction(weights, V), 8, rng=np.random.default_rng(seed)
    )
    assert known == pytest.approx(3.0, rel=1e-9)
    for dim in (2, 5, 20):
        basis = random_frame(dim, dim, np.random.default_rng([seed, dim]))
        E = symmetric_product(basis[1:].T @ basis[1:], basis[0])
        assert norm(E) == pytest.approx(2.0 / np.sqrt(3.0), rel=1e-9)
    assert norm(np.zeros((3, 3, 3))) == 0.0
