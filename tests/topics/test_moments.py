import itertools

import numpy as np
import pytest

from sktensor_dp.topics.moments import PriorCorrection, topics_from_components


def population_moments(topics, alpha):
    """E1, E2, E3 of latent Dirichlet allocation, from Dirichlet moments of the proportions."""
    k, a0 = len(alpha), alpha.sum()
    eye = np.eye(k)
    one = alpha / a0
    two = (np.multiply.outer(alpha, alpha) + np.diag(alpha)) / (a0 * (a0 + 1))
    # E[t_i t_j t_l] by rising factorials: (a_i)(a_j + d_ij)(a_l + d_il + d_jl)
    second = alpha[None, :] + eye
    third = alpha[None, None, :] + eye[:, None, :] + eye[None, :, :]
    three = alpha[:, None, None] * second[:, :, None] * third / (a0 * (a0 + 1) * (a0 + 2))
    E3 = np.einsum("ijl,ia,jb,lc->abc", three, topics, topics, topics)
    return one @ topics, topics.T @ two @ topics, E3


def single_topic_moments(topics, weights):
    M2 = np.einsum("i,ia,ib->ab", weights, topics, topics)
    return M2, np.einsum("i,ia,ib,ic->abc", weights, topics, topics, topics)


@pytest.fixture(params=[0.05, 1.0, 20.0])
def model(request, seed):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(7, 0.5), size=3)
    return topics, request.param * rng.dirichlet(np.full(3, 3.0))


def test_exact_moments_become_those_of_single_topics(model):
    topics, alpha = model
    E1, E2, E3 = population_moments(topics, alpha)
    M2, M3 = single_topic_moments(topics, alpha / alpha.sum())
    correction = PriorCorrection(alpha.sum(), E1, 0.0)
    # Scaled by up to (alpha0 + 1)(alpha0 + 2) / 2 = 231: rounding grows with it.
    np.testing.assert_allclose(correction.pair_matrix(E2), M2, atol=1e-13)
    np.testing.assert_allclose(correction.pairs(lambda V: E2 @ V)(np.eye(7)), M2, atol=1e-13)
    basis = np.random.default_rng(1).normal(size=(7, 3))
    projected = np.einsum("abc,ax,by,cz->xyz", E3, basis, basis, basis)
    wanted = np.einsum("abc,ax,by,cz->xyz", M3, basis, basis, basis)
    found = correction.triples(projected, basis.T @ E2 @ basis, basis)
    np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(basis).max() ** 3 * 7**3)
    # The correction is not a formality.
    assert np.abs(E2 - M2).max() > 1e-5
    assert np.abs(projected - wanted).max() > 1e-5


def test_corrected_moments_are_diagonal_in_the_whitened_space(model):
    topics, alpha = model
    E1, E2, E3 = population_moments(topics, alpha)
    correction = PriorCorrection(alpha.sum(), E1, 0.0)
    values, vectors = np.linalg.eigh(correction.pair_matrix(E2))
    whitener = vectors[:, -3:] / np.sqrt(values[-3:])
    projected = np.einsum("abc,ax,by,cz->xyz", E3, whitener, whitener, whitener)
    whitened = correction.triples(projected, whitener.T @ E2 @ whitener, whitener)
    weights = alpha / alpha.sum()
    frame = np.sqrt(weights)[:, None] * (topics @ whitener)
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-8)
    core = np.einsum("abc,ia,jb,lc->ijl", whitened, frame, frame, frame)
    wanted = np.zeros((3, 3, 3))
    wanted[np.arange(3), np.arange(3), np.arange(3)] = weights**-0.5
    np.testing.assert_allclose(core, wanted, atol=1e-5 * wanted.max())


def test_noise_in_the_frequencies_leaves_no_bias(seed):
    rng = np.random.default_rng(seed)
    d, a0, sigma = 4, 2.0, 0.3
    topics = rng.dirichlet(np.ones(d), size=2)
    E1, E2, E3 = population_moments(topics, np.full(2, a0 / 2))
    M2, M3 = single_topic_moments(topics, np.full(2, 0.5))
    # Random signs have the first three moments of Gaussian noise, and the corrections are
    # cubic in it: the mean over all signs is the expectation.
    signs = np.array(list(itertools.product([-1, 1], repeat=d)))
    noisy = [PriorCorrection(a0, E1 + sigma * row, sigma) for row in signs]
    pairs = np.mean([correction.pair_matrix(E2) for correction in noisy], axis=0)
    triples = np.mean([correction.triples(E3, E2, np.eye(d)) for correction in noisy], axis=0)
    products = [correction.pairs(lambda V: E2 @ V)(np.eye(d)) for correction in noisy]
    np.testing.assert_allclose(pairs, M2, atol=1e-13)
    np.testing.assert_allclose(np.mean(products, axis=0), M2, atol=1e-13)
    np.testing.assert_allclose(triples, M3, atol=1e-13)
    # Taking the noisy frequencies at their word does not do.
    naive = [PriorCorrection(a0, E1 + sigma * row, 0.0) for row in signs]
    plain = np.mean([correction.pair_matrix(E2) for correction in naive], axis=0)
    assert np.abs(np.diagonal(plain - M2)).min() > 0.1
    plain = np.mean([correction.triples(E3, E2, np.eye(d)) for correction in naive], axis=0)
    assert np.abs(plain - M3).max() > 0.1


def test_no_prior_means_no_correction(seed):
    rng = np.random.default_rng(seed)
    E2, E3 = rng.normal(size=(4, 4)), rng.normal(size=(4, 4, 4))
    correction = PriorCorrection(0.0, rng.dirichlet(np.ones(4)), 0.1)
    np.testing.assert_array_equal(correction.pair_matrix(E2), E2)
    np.testing.assert_allclose(correction.triples(E3, E2, np.eye(4)), E3)
    assert correction.pair_scale == correction.triple_scale == 1


def test_correcting_leaves_its_input_alone(seed):
    E2 = np.random.default_rng(seed).normal(size=(4, 4))
    kept = E2.copy()
    PriorCorrection(1.0, np.full(4, 0.25), 0.1).pair_matrix(E2)
    np.testing.assert_array_equal(E2, kept)


def test_topics_are_read_off_components_of_any_sign_and_scale(seed):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(6, 0.5), size=3)
    components = topics * np.array([[-2.0], [0.1], [30.0]])
    np.testing.assert_allclose(topics_from_components(components), topics, atol=1e-12)


def test_components_that_sum_to_nothing_still_give_distributions():
    found = topics_from_components(np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]]))
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
