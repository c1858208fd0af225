from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linear_sum_assignment

from sktensor_dp.topics.concentration import USUAL, ExplainedTopics
from sktensor_dp.topics.moments import (
    MomentDistance,
    ReleasedMoments,
    match_moments,
    match_with_concentration,
    model_pairs,
    spread_of_pairs,
)

CONCENTRATIONS = [0.0, 0.3, 4.0]


def exact_moments(topics, weights, basis, concentration=0.0, **changes):
    """Moments of documents of two and three tokens, by the law of Blackwell and MacQueen."""
    seen, mean, c = topics @ basis, weights @ topics, concentration
    pairs = model_pairs(ExplainedTopics(topics, weights, c, 0.0))
    middle, second = mean @ basis, basis.T @ pairs @ basis
    # The third token is of a topic drawn anew, or of that of the first or the second, of which
    # each is as likely.
    same = np.einsum("i,ia,ib,ic->abc", weights, seen, seen, seen)
    single = seen.T @ (weights[:, None] * seen)
    new = np.einsum("ab,c->abc", second, middle) * c / (2 + c)
    first = (same + c * np.einsum("ac,b->abc", single, middle)) / (1 + c) / (2 + c)
    triples = new + first + first.transpose(1, 0, 2)
    fields = {
        "frequencies": mean,
        "frequencies_sigma": 1e-4,
        "pairs": pairs,
        "pairs_sigma": 1e-4,
        "diagonal_sigma": 2e-4,
        "basis": basis,
        "triples": triples,
        "triples_sigma": 1e-3,
        "n_documents": 10**6,
        "spread": 0.1,
        "second": topics.T @ (weights[:, None] * topics),
    }
    return ReleasedMoments(**{**fields, **changes})


def model(rng, d=12, k=3):
    topics = rng.dirichlet(np.full(d, 0.4), size=k)
    weights = rng.dirichlet(np.full(k, 10.0))
    values, vectors = np.linalg.eigh(topics.T @ (weights[:, None] * topics))
    whitener = vectors[:, -k:] / np.sqrt(values[-k:])
    return topics, weights, whitener / np.linalg.norm(whitener, axis=1, keepdims=True)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_gradient_agrees_with_finite_differences(seed, concentration):
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
    objective = MomentDistance(topics.shape, moments, concentration)
    x = rng.normal(size=topics.size)
    _, gradient = objective(x)
    numeric = approx_fprime(x, lambda x: objective(x)[0], 1e-6)
    # Forward differences of step 1e-6 are exact to about 1e-6 of the curvature.
    np.testing.assert_allclose(gradient, numeric, atol=1e-4 * np.abs(gradient).max())
    # The objective does not see the scale of its argument.
    assert abs(gradient @ x) < 1e-10 * np.linalg.norm(gradient) * np.linalg.norm(x)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_truth_is_a_fixed_point(seed, concentration):
    topics, weights, basis = model(np.random.default_rng(seed))
    moments = exact_moments(topics, weights, basis, concentration)
    value, gradient = MomentDistance(topics.shape, moments, concentration)(
        np.sqrt(weights[:, None] * topics).ravel()
    )
    # Weights carry 1e-12 against division by zero, under precisions of up to 1e8.
    assert value < 1e-8
    assert np.abs(gradient).max() < 1e-2
    found, shares = fitted(topics, weights, moments, concentration)
    # 0.02 of the uniform is mixed into the start and has to be removed again; measured
    # over seeds 0 to 99: topics within 3e-4 in total variation, weights within 1.6e-4.
    assert np.abs(found - topics).sum(axis=1).max() / 2 < 2e-3 * (1 + concentration) ** 2
    np.testing.assert_allclose(shares, weights, atol=1e-3 * (1 + concentration) ** 2)


def fitted(topics, weights, moments, concentration=0.0):
    found = match_moments(topics, weights, moments, concentration)
    return found.topics, found.weights


def error(found, topics):
    cost = np.abs(found[:, None] - topics[None]).sum(axis=2) / 2
    return cost[linear_sum_assignment(cost)].mean()


def test_a_rough_start_is_mended_by_exact_moments(seed):
    rng = np.random.default_rng(seed)
    topics, weights, basis = model(rng)
    start = 0.7 * topics + 0.3 * rng.dirichlet(np.ones(12), size=3)
    found, shares = fitted(start, np.full(3, 1 / 3), exact_moments(topics, weights, basis))
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
    found, _ = fitted(start, weights, moments)
    # Measured over seeds 0 to 99: at most 0.47 of the start's error.
    assert error(found, topics) < 0.7 * error(start, topics)


@pytest.mark.parametrize("k", [1, 4])
def test_topics_without_weight_do_not_break_it(k):
    topics = np.full((k, 5), 0.2)
    weights = np.eye(k)[0]
    moments = exact_moments(topics, weights, np.eye(5))
    found, shares = fitted(topics, weights, moments)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(shares.sum(), 1)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_the_concentration_is_fitted_with_topics(seed, concentration):
    rng = np.random.default_rng(seed)
    topics, weights, basis = model(rng, d=20)
    noise = 1e-4 * rng.normal(size=(20, 20))
    exact = exact_moments(topics, weights, basis, concentration, n_documents=10**7)
    moments = replace(exact, pairs=exact.pairs + np.triu(noise) + np.triu(noise, 1).T)
    start = 0.8 * topics + 0.2 * weights @ topics
    found, _, assumed = match_with_concentration(start, weights, moments, None)
    assert not assumed
    # Seeds 0 to 99: see the ratio in the assertion.
    assert found.concentration <= 0.2 if concentration == 0 else found.concentration > 0
    given, _, _ = match_with_concentration(start, weights, moments, concentration)
    assert given.concentration == concentration
    assert error(found.topics, topics) < 1.3 * error(given.topics, topics) + 0.05


def test_the_usual_concentration_is_assumed_where_noise_hides_it(seed):
    rng = np.random.default_rng(seed)
    topics, weights, basis = model(rng)
    exact = exact_moments(
        topics, weights, basis, pairs_sigma=1.0, diagonal_sigma=1.0, triples_sigma=10.0
    )
    noise = rng.normal(size=exact.pairs.shape)
    moments = replace(exact, pairs=exact.pairs + np.triu(noise) + np.triu(noise, 1).T)
    found, _, assumed = match_with_concentration(topics, weights, moments, None)
    assert assumed
    assert found.concentration == USUAL


@pytest.mark.parametrize("length", [2, 3, 10])
def test_spread_of_pairs_is_the_mean_squared_norm_of_their_masses(length):
    frequencies = np.random.default_rng(0).dirichlet(np.ones(8))
    counts = np.random.default_rng(1).multinomial(length, frequencies, size=20_000).astype(float)
    masses = 2 * np.einsum("ni,nj->nij", counts, counts)[:, *np.triu_indices(8, 1)]
    squares = (masses**2).sum(axis=1) + ((counts * (counts - 1)) ** 2).sum(axis=1)
    exact = squares.mean() / (length * (length - 1)) ** 2
    # Pairs of three tokens that are alike are left out.
    assert spread_of_pairs(length, frequencies) == pytest.approx(exact, rel=0.25)
