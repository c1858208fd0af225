"""Shares of topics in documents, and what documents are likely."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import psi

from sktensor_dp.topics.inference import (
    collapsed_dirichlet,
    document_log_likelihood,
    topic_posterior,
    variational_dirichlet,
)

both = pytest.mark.parametrize("proportions", [variational_dirichlet, collapsed_dirichlet])


def corpus(seed, n=30, d=12, k=3, length=15):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.3), size=k)
    lengths = rng.integers(0, 2 * length, size=n)
    shares = rng.dirichlet(np.full(k, 0.4), size=n)
    X = sp.csr_matrix(rng.multinomial(lengths, shares @ topics).astype(float))
    return X, topics


def naive_proportions(counts, topics, prior, n_iter):
    gamma = prior + counts.sum() / len(prior)
    for _ in range(n_iter):
        expected = np.exp(psi(gamma) - psi(gamma.sum()))
        updated = prior.copy()
        for word in np.flatnonzero(counts):
            responsibility = expected * topics[:, word]
            updated += counts[word] * responsibility / responsibility.sum()
        gamma = updated
    return gamma


def naive_collapsed(counts, topics, prior, n_iter):
    words = np.repeat(np.arange(counts.size), counts.astype(int))
    of_tokens, gamma = np.zeros((len(words), len(prior))), prior.copy()
    for _ in range(n_iter):
        updated = np.empty_like(of_tokens)
        for token, word in enumerate(words):
            updated[token] = (gamma - of_tokens[token]) * topics[:, word]
            updated[token] /= updated[token].sum()
        of_tokens, gamma = updated, prior + updated.sum(axis=0)
    return gamma


@pytest.mark.parametrize(
    ("proportions", "naive"),
    [(variational_dirichlet, naive_proportions), (collapsed_dirichlet, naive_collapsed)],
)
@pytest.mark.parametrize("n_iter", [1, 4, 25])
def test_proportions_equal_a_naive_loop(seed, n_iter, proportions, naive):
    X, topics = corpus(seed)
    prior = np.array([0.2, 0.5, 1.1])
    found = proportions(X, topics, prior, n_iter=n_iter)
    wanted = [naive(row, topics, prior, n_iter) for row in X.toarray()]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@both
def test_hostile_topics_and_priors_give_finite_proportions(proportions):
    topics = np.array([[0.0, 1.0, 0.0, 1e-300], [0.0, 1e-300, 1.0, 0.0]])
    X = sp.csr_matrix([[5.0, 0, 0, 0], [0, 1, 0, 0], [0, 1e15, 1e15, 1], [0, 0, 0, 0]])
    for prior in (np.array([1e-12, 1.0]), np.full(2, 0.5), np.full(2, 1e10), np.full(2, 1e-12)):
        gamma = proportions(X, topics, prior, n_iter=20, tol=1e-3)
        assert np.isfinite(gamma).all()
        assert (gamma >= prior).all()
        assert np.isfinite(document_log_likelihood(X, topics, prior, gamma)).all()
        assert np.isfinite(topic_posterior(X, topics, prior)).all()


@pytest.mark.parametrize("tol", [0.0, 1e-3])
@both
def test_documents_do_not_touch_each_other(seed, proportions, tol, cache_of):
    X, topics = corpus(seed, n=60)
    prior = np.full(3, 1 / 3)
    whole = proportions(X, topics, prior, n_iter=50, tol=tol)
    alone = [proportions(row, topics, prior, n_iter=50, tol=tol)[0] for row in X]
    np.testing.assert_allclose(whole, alone, rtol=1e-9)
    cache_of(8 * 17)
    blocked = proportions(X, topics, prior, n_iter=50, tol=tol)
    np.testing.assert_allclose(blocked, whole, rtol=1e-9)


@both
def test_stopping_early_is_within_the_tolerance(seed, proportions):
    X, topics = corpus(seed)
    prior = np.full(3, 1 / 3)
    early = proportions(X, topics, prior, n_iter=200, tol=1e-5)
    full = proportions(X, topics, prior, n_iter=200)
    # 200 steps of 1e-5 at most; measured over seeds 0 to 99: at most 3e-4.
    assert np.abs(early - full).max() < 2e-3
    rough = proportions(X, topics, prior, n_iter=1)
    assert np.abs(rough - full).max() > 0.1


def test_posterior_equals_bayes_rule(seed):
    X, topics = corpus(seed)
    weights = np.array([0.5, 0.3, 0.2])
    joint = weights * np.prod(topics[None] ** X.toarray()[:, None, :], axis=2)
    wanted = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(topic_posterior(X, topics, weights), wanted, atol=1e-10)
    likelihood = document_log_likelihood(X, topics, weights, None)
    np.testing.assert_allclose(likelihood, np.log(joint.sum(axis=1)), rtol=1e-10, atol=1e-14)
    # Long documents do not underflow.
    X, topics = sp.csr_matrix([[90_000.0, 10_000.0]]), np.array([[0.9, 0.1], [0.2, 0.8]])
    np.testing.assert_allclose(topic_posterior(X, topics, np.full(2, 0.5)), [[1.0, 0.0]])
    wanted = np.log(0.5) + 90_000 * np.log(0.9) + 10_000 * np.log(0.1)
    found = document_log_likelihood(X, topics, np.full(2, 0.5), None)
    np.testing.assert_allclose(found, [wanted], rtol=1e-12)
