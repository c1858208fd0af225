"""The power method on the core of a sketch: the same components, or none."""

import math

import numpy as np
import pytest

from sktensor_dp import PrivateTensorPowerMethod
from sktensor_dp.privacy.curators.samples import TensorCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.samples import TensorChunk
from sktensor_dp.tensor import symmetric_outer_sum, symmetrize, tensor_oracle
from sktensor_dp.tensor.power_method import sketch_pays, sketched_power_method, tensor_pairs

D, K = 80, 3


def orthonormal_rows(rng, n, d=D):
    return np.linalg.qr(rng.standard_normal((d, n)))[0].T


def noisy(rng, V, weights, noise=0.05):
    E = symmetrize(rng.standard_normal((V.shape[1],) * 3))
    return symmetric_outer_sum(weights, V) + noise / math.sqrt(V.shape[1]) * E


def sketched(T, k=K, seed=0):
    return sketched_power_method(
        tensor_oracle(T), tensor_pairs(T), len(T), k, n_restarts=8, max_iter=12, random_state=seed
    )


def fit(T, k=K, seed=0, **options):
    options = {"epsilon": math.inf, "perturbation": "iteration", "whiten": False, **options}
    return PrivateTensorPowerMethod(
        k, n_restarts=8, max_iter=12, random_state=seed, **options
    ).fit_tensor(T)


def test_pairs_are_those_of_the_tensor(seed):
    rng = np.random.default_rng(seed)
    T, Q = rng.standard_normal((7, 7, 7)), rng.standard_normal((7, 3))
    expected = np.einsum("abc,bi,cj->aij", T, Q, Q)
    np.testing.assert_allclose(tensor_pairs(T)(Q), expected, atol=1e-12)


def test_it_finds_what_steps_on_the_tensor_find(seed):
    """Both settle at the same maxima; steps stop within 1e-4 of them, squared in a cosine."""
    rng = np.random.default_rng(seed)
    V = orthonormal_rows(rng, K)
    T = noisy(rng, V, [2.0, 1.5, 1.0])
    ours = fit(T, seed=seed)
    steps = fit(T, seed=seed, epsilon=1e12)  # with noise, of a size that is nothing
    cosines = np.einsum("ij,ij->i", ours.components_, steps.components_)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-6)
    np.testing.assert_allclose(ours.weights_, steps.weights_, rtol=1e-4)
    assert sum(row.uses for row in ours.privacy_report_.rows) < K * 13


def test_components_that_do_not_fit_the_core_are_not_guessed(seed):
    """Of eighty components of one size the sketch shows mixtures: hardly ever three of them."""
    rng = np.random.default_rng(seed)
    V = orthonormal_rows(rng, D)
    T = symmetric_outer_sum(np.ones(D), V)
    if (seen := sketched(T, seed=seed)) is not None:  # at seeds 34 and 89
        np.testing.assert_allclose(np.abs(V @ seen[1].T).max(axis=0), 1.0, atol=1e-6)
    found = fit(T, seed=seed)
    np.testing.assert_allclose(np.abs(V @ found.components_.T).max(axis=0), 1.0, atol=1e-6)


def test_fewer_components_than_asked_for_are_found_with_those_of_weight_0(seed):
    rng = np.random.default_rng(seed)
    V = orthonormal_rows(rng, 2)
    found = fit(symmetric_outer_sum([2.0, 1.0], V), k=4, seed=seed)
    np.testing.assert_allclose(found.weights_, [2, 1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(np.abs(found.components_[:2] @ V.T), np.eye(2), atol=1e-5)


def test_pairs_are_not_answered_at_a_finite_epsilon():
    T = np.zeros((4, 4, 4))
    plan = ReleasePlan.split(1.0, 1e-6, {"tensor_power_iterations": 1.0})
    chunk = TensorChunk(tensor_oracle(T), pairs=tensor_pairs(T))
    curator = TensorCurator(chunk, plan, known=1.0, spender="t", unit="entry", accountant=None)
    with curator, pytest.raises(RuntimeError, match="needs noise"):
        curator.exact_pairs(np.eye(4)[:, :2])


def test_noise_is_planned_for_steps_on_the_tensor_alone():
    """At a finite epsilon the sketch is not even looked at, and steps are as many as before."""
    # Far above the noise, which would be warned of.
    T = symmetric_outer_sum([1e5], orthonormal_rows(np.random.default_rng(0), 1))
    assert sketch_pays(D, 1)
    report = fit(T, k=1, epsilon=100.0).privacy_report_
    assert sum(row.uses for row in report.rows) == 13
