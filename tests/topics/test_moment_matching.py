import numpy as np
import pytest
from scipy.optimize import approx_fprime, linear_sum_assignment

from sktensor_dp.topics.moment_matching import (
    ReleasedMoments,
    _Objective,
    match_moments,
    unexplained,
)


def exact_moments(topics, weights, basis, **changes):
    seen = topics @ basis
    fields = {
        "frequencies": weights @ topics,
        "frequencies_sigma": 1e-4,
        "pairs": np.einsum("i,ia,ib->ab", weights, topics, topics),
        "pairs_sigma": 1e-4,
        "diagonal_sigma": 2e-4,
        "basis": basis,
        "triples": np.einsum("i,ia,ib,ic->abc", weights, seen, seen, seen),
        "triples_sigma": 1e-3,
        "n_documents": 10**6,
        "spread": 0.1,
    }
    return ReleasedMoments(**{**fields, **changes})


def model(rng, d=12, k=3):
    topics = rng.dirichlet(np.full(d, 0.4), size=k)
    weights = rng.dirichlet(np.full(k, 10.0))
    values, vectors = np.linalg.eigh(topics.T @ (weights[:, None] * topics))
    whitener = vectors[:, -k:] / np.sqrt(values[-k:])
    return topics, weights, whitener / np.linalg.norm(whitener, axis=1, keepdims=True)


def test_gradient_agrees_with_finite_differences(seed):
    rng = np.random.default_rng(seed)
    topics, weights, basis = model(rng, d=6)
    # Noise of the size of the signal, so that no part of the gradient vanishes.
    moments = exact_moments(topics, weights, basis)
    moments = exact_moments(
        topics,
        weights,
        basis,
        frequencies=moments.frequencies + 0.1 * rng.normal(size=6),
        pairs=moments.pairs + 0.1 * np.cov(rng.normal(size=(6, 9))),
        frequencies_sigma=0.1,
        pairs_sigma=0.1,
        diagonal_sigma=0.2,
        triples_sigma=0.5,
        n_documents=20,
    )
    objective = _Objective(topics, weights, moments)
    x = rng.normal(size=topics.size)
    _, gradient = objective(x)
    numeric = approx_fprime(x, lambda x: objective(x)[0], 1e-6)
    # Forward differences of step 1e-6 are exact to about 1e-6 of the curvature.
    np.testing.assert_allclose(gradient, numeric, atol=1e-4 * np.abs(gradient).max())
    # The objective does not see the scale of its argument.
    assert abs(gradient @ x) < 1e-10 * np.linalg.norm(gradient) * np.linalg.norm(x)


def test_truth_is_a_fixed_point(seed):
    topics, weights, basis = model(np.random.default_rng(seed))
    value, gradient = _Objective(topics, weights, exact_moments(topics, weights, basis))(
        np.sqrt(weights[:, None] * topics).ravel()
    )
    # Weights carry 1e-12 against division by zero, under precisions of up to 1e8.
    assert value < 1e-8
    assert np.abs(gradient).max() < 1e-2
    found, shares = match_moments(topics, weights, exact_moments(topics, weights, basis))
    # 0.02 of the uniform is mixed into the start and has to be removed again; measured
    # over seeds 0 to 99: topics within 3e-4 in total variation, weights within 1.6e-4.
    assert np.abs(found - topics).sum(axis=1).max() / 2 < 2e-3
    np.testing.assert_allclose(shares, weights, atol=1e-3)


def error(found, topics):
    cost = np.abs(found[:, None] - topics[None]).sum(axis=2) / 2
    return cost[linear_sum_assignment(cost)].mean()


def test_a_rough_start_is_mended_by_exact_moments(seed):
    rng = np.random.default_rng(seed)
    topics, weights, basis = model(rng)
    start = 0.7 * topics + 0.3 * rng.dirichlet(np.ones(12), size=3)
    found, shares = match_moments(start, np.full(3, 1 / 3), exact_moments(topics, weights, basis))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(shares.sum(), 1)
    assert (found >= 0).all()
    # Measured over seeds 0 to 99: at most 3.5e-4, from 0.10 to 0.23 at the start.
    assert error(found, topics) < 2e-3 < error(start, topics)


def test_noisy_moments_improve_a_start_of_their_own_accuracy(seed):
    rng = np.random.default_rng(seed)
    topics, weights, basis = model(rng, d=20)
    start = 0.6 * topics + 0.4 * rng.dirichlet(np.ones(20), size=3)
    sigma = 5e-4
    noise = sigma * rng.normal(size=(20, 20))
    exact = exact_moments(topics, weights, basis)
    moments = exact_moments(
        topics,
        weights,
        basis,
        frequencies=exact.frequencies + sigma * rng.normal(size=20),
        pairs=exact.pairs + np.triu(noise) + np.triu(noise, 1).T,
        frequencies_sigma=sigma,
        pairs_sigma=sigma,
        diagonal_sigma=sigma,
        triples_sigma=1.0,
    )
    found, _ = match_moments(start, weights, moments)
    # Measured over seeds 0 to 99: at most 0.47 of the start's error.
    assert error(found, topics) < 0.7 * error(start, topics)


@pytest.mark.parametrize("k", [1, 4])
def test_topics_without_weight_do_not_break_it(k):
    topics = np.full((k, 5), 0.2)
    weights = np.eye(k)[0]
    moments = exact_moments(topics, weights, np.eye(5))
    found, shares = match_moments(topics, weights, moments)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(shares.sum(), 1)


def test_unexplained_is_the_share_of_structure_that_topics_miss():
    topics, weights, basis = model(np.random.default_rng(0))
    moments = exact_moments(topics, weights, basis, n_documents=10**9, pairs_sigma=1e-9)
    assert unexplained(topics, weights, moments) == 0
    independent = np.outer(moments.frequencies, moments.frequencies)
    # A second moment whose structure has lost, or doubled, so much of it.
    for share in (0.3, -1.0):
        off = moments.pairs - share * (moments.pairs - independent)
        less = exact_moments(
            topics, weights, basis, pairs=off, n_documents=10**9, pairs_sigma=1e-9,
            diagonal_sigma=1e-9,
        )  # fmt: skip
        expected = abs(share) / (1 - share)
        assert unexplained(topics, weights, less) == pytest.approx(expected, rel=1e-3)
    # The same within its error.
    noisy = exact_moments(topics, weights, basis, pairs=off, pairs_sigma=1.0, diagonal_sigma=1.0)
    assert unexplained(topics, weights, noisy) == 0
