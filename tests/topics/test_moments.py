"""Moments of topics: corrected for the prior, matched by topics, and projected on the simplex."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linear_sum_assignment

from sktensor_dp.topics.concentration import USUAL, ExplainedTopics
from sktensor_dp.topics.moments import (
    MomentDistance,
    PriorCorrection,
    ReleasedMoments,
    match_moments,
    match_with_concentration,
    mean_square_of_pairs,
    moved_by_errors,
    project_rows,
    topics_from_components,
    variance_by_shares,
)
from sktensor_dp.topics.uncertainty import mixing_of_matched

CONCENTRATIONS = [0.0, 0.3, 4.0]


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


def test_topics_are_read_off_components_of_any_sign_and_scale(seed):
    topics = np.random.default_rng(seed).dirichlet(np.full(6, 0.5), size=3)
    components = topics * np.array([[-2.0], [0.1], [30.0]])
    np.testing.assert_allclose(topics_from_components(components), topics, atol=1e-12)
    # Those that sum to nothing still give distributions.
    found = topics_from_components(np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]]))
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


def exact_moments(topics, weights, basis, concentration=0.0, **changes):
    """Moments of documents of two and three tokens, by the law of Blackwell and MacQueen."""
    seen, mean, c = topics @ basis, weights @ topics, concentration
    pairs = ExplainedTopics(topics, weights, c).pairs
    middle, second = mean @ basis, basis.T @ pairs @ basis
    # The third token is of a topic drawn anew, or of that of the first or the second, of which
    # each is as likely.
    same = np.einsum("i,ia,ib,ic->abc", weights, seen, seen, seen)
    single = seen.T @ (weights[:, None] * seen)
    new = np.einsum("ab,c->abc", second, middle) * c / (2 + c)
    first = (same + c * np.einsum("ac,b->abc", single, middle)) / (1 + c) / (2 + c)
    triples = new + first + first.transpose(1, 0, 2)
    moments = ReleasedMoments(
        frequencies=mean, frequencies_sigma=1e-4, pairs=pairs, pairs_sigma=1e-4,
        diagonal_sigma=2e-4, basis=basis, triples=triples, triples_sigma=1e-3, n_documents=10**6,
        pairs_square=0.1, second=topics.T @ (weights[:, None] * topics),
    )  # fmt: skip
    return replace(moments, **changes)


def drawn_model(rng, d=12, k=3, of_words=0.4):
    topics = rng.dirichlet(np.full(d, of_words), size=k)
    weights = rng.dirichlet(np.full(k, 10.0))
    values, vectors = np.linalg.eigh(topics.T @ (weights[:, None] * topics))
    whitener = vectors[:, -k:] / np.sqrt(values[-k:])
    return topics, weights, whitener / np.linalg.norm(whitener, axis=1, keepdims=True)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_gradient_agrees_with_finite_differences(seed, concentration):
    rng = np.random.default_rng(seed)
    topics, weights, basis = drawn_model(rng, d=6)
    # Noise of the size of the signal, so that no part of the gradient vanishes.
    exact = exact_moments(topics, weights, basis)
    moments = replace(
        exact, frequencies=exact.frequencies + 0.1 * rng.normal(size=6),
        pairs=exact.pairs + 0.1 * np.cov(rng.normal(size=(6, 9))),
        frequencies_sigma=0.1, pairs_sigma=0.1, diagonal_sigma=0.2, triples_sigma=0.5,
        n_documents=20,
    )  # fmt: skip
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
    topics, weights, basis = drawn_model(np.random.default_rng(seed))
    moments = exact_moments(topics, weights, basis, concentration)
    value, gradient = MomentDistance(topics.shape, moments, concentration)(
        np.sqrt(weights[:, None] * topics).ravel()
    )
    # Weights carry 1e-12 against division by zero, under precisions of up to 1e8.
    assert value < 1e-8
    assert np.abs(gradient).max() < 1e-2
    found = match_moments(topics, weights, moments, concentration)
    # 0.02 of the uniform is mixed into the start and has to be removed again; measured
    # over seeds 0 to 99: topics within 3e-4 in total variation, weights within 1.6e-4.
    assert np.abs(found.topics - topics).sum(axis=1).max() / 2 < 2e-3 * (1 + concentration) ** 2
    np.testing.assert_allclose(found.weights, weights, atol=1e-3 * (1 + concentration) ** 2)


def with_noise(exact, rng, sigma, **changes):
    noise = sigma * rng.normal(size=exact.pairs.shape)
    return replace(exact, pairs=exact.pairs + np.triu(noise) + np.triu(noise, 1).T, **changes)


def error(found, topics):
    cost = np.abs(found[:, None] - topics[None]).sum(axis=2) / 2
    return cost[linear_sum_assignment(cost)].mean()


def test_noisy_moments_improve_a_start_of_their_own_accuracy(seed):
    rng = np.random.default_rng(seed)
    topics, weights, basis = drawn_model(rng, d=20)
    start = 0.6 * topics + 0.4 * rng.dirichlet(np.ones(20), size=3)
    sigma = 5e-4
    exact = exact_moments(topics, weights, basis)
    moments = with_noise(
        exact, rng, sigma, frequencies=exact.frequencies + sigma * rng.normal(size=20),
        frequencies_sigma=sigma, pairs_sigma=sigma, diagonal_sigma=sigma, triples_sigma=1.0,
    )  # fmt: skip
    found = match_moments(start, weights, moments).topics
    # Measured over seeds 0 to 99: at most 0.47 of the start's error.
    assert error(found, topics) < 0.7 * error(start, topics)


@pytest.mark.parametrize("k", [1, 4])
def test_topics_without_weight_do_not_break_it(k):
    topics = np.full((k, 5), 0.2)
    weights = np.eye(k)[0]
    found = match_moments(topics, weights, exact_moments(topics, weights, np.eye(5)))
    assert np.isfinite(found.topics).all()
    np.testing.assert_allclose(found.topics.sum(axis=1), 1)
    np.testing.assert_allclose(found.weights.sum(), 1)


@pytest.mark.parametrize(
    "concentration",
    [pytest.param(one, marks=[pytest.mark.nightly] * (one != 0.3)) for one in CONCENTRATIONS],
)
def test_the_concentration_is_fitted_with_topics(seed, concentration):
    rng = np.random.default_rng(seed)
    # Topics lack about half of the words, as the rule expects.
    topics, weights, basis = drawn_model(rng, d=20, of_words=0.2)
    exact = exact_moments(topics, weights, basis, concentration, n_documents=10**7)
    moments = with_noise(exact, rng, 1e-4)
    start = 0.8 * topics + 0.2 * weights @ topics
    found, _, assumed = match_with_concentration([(start, weights)], moments, None)
    assert not assumed
    # Seeds 0 to 99: see the ratio in the assertion.
    assert found.concentration <= 0.2 if concentration == 0 else found.concentration > 0
    given, _, _ = match_with_concentration([(start, weights)], moments, concentration)
    assert given.concentration == concentration
    # One and a half times the worst excess of seeds 0 to 99, which fits without mixing miss.
    bound = 1.3 * error(given.topics, topics) + 0.1
    assert error(found.topics, topics) < bound
    if concentration == 4:
        single, _, _ = match_with_concentration([(start, weights)], moments, 0.0)
        assert error(single.topics, topics) > bound


@pytest.mark.parametrize("concentration", [0.0, 1.0])
def test_noise_adds_no_topics_and_hides_none_that_moments_show(concentration, seed):
    rng = np.random.default_rng(seed)
    topics, _, basis = drawn_model(rng, k=6, d=30)
    exact = exact_moments(topics[:3], np.full(3, 1 / 3), basis, concentration, n_documents=10**6)
    moments = with_noise(exact, rng, 1e-4)
    starts = [(topics[:k], np.full(k, 1 / k)) for k in range(1, 7)]
    found, _, _ = match_with_concentration(starts, moments, concentration)
    assert len(found.topics) == 3


def test_the_usual_concentration_is_assumed_where_noise_hides_it(seed):
    rng = np.random.default_rng(seed)
    topics, weights, basis = drawn_model(rng)
    exact = exact_moments(
        topics, weights, basis, pairs_sigma=1.0, diagonal_sigma=1.0, triples_sigma=10.0
    )
    moments = with_noise(exact, rng, 1.0)
    found, _, assumed = match_with_concentration([(topics, weights)], moments, None)
    assert assumed
    assert found.concentration == USUAL


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_variance_by_shares_is_that_of_pairs_between_documents(concentration, seed):
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.full(6, 0.3), size=3), rng.dirichlet(np.full(3, 3.0))
    mean_square = np.zeros((6, 6))
    for shares in itertools.product(range(3), repeat=4):
        # E[t_i t_j t_k t_l] by rising factorials: the next share of a topic is likelier by one.
        numbers = [shares[:n].count(i) for n, i in enumerate(shares)]
        factors = [
            (concentration * weights[i] + number) / (concentration + n) if n else weights[i]
            for n, (i, number) in enumerate(zip(shares, numbers, strict=True))
        ]
        i, j, k, m = topics[list(shares)]
        mean_square += math.prod(factors) * np.outer(i * j, k * m)
    fit = ExplainedTopics(topics, weights, concentration)
    np.testing.assert_allclose(variance_by_shares(fit), mean_square - fit.pairs**2, atol=1e-12)


@pytest.mark.parametrize("length", [2, 3, 10])
def test_mean_square_of_pairs_is_the_mean_squared_norm_of_their_masses(length):
    frequencies = np.random.default_rng(0).dirichlet(np.ones(8))
    counts = np.random.default_rng(1).multinomial(length, frequencies, size=20_000).astype(float)
    masses = 2 * np.einsum("ni,nj->nij", counts, counts)[:, *np.triu_indices(8, 1)]
    squares = (masses**2).sum(axis=1) + ((counts * (counts - 1)) ** 2).sum(axis=1)
    exact = squares.mean() / (length * (length - 1)) ** 2
    # Pairs of three tokens that are alike are left out.
    assert mean_square_of_pairs(length, float(frequencies @ frequencies)) == pytest.approx(
        exact, rel=0.25
    )


@pytest.mark.parametrize("size", [1, 2, 7, 300])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_projection_satisfies_the_optimality_conditions(seed, size, scale):
    values = scale * np.random.default_rng(seed).normal(size=(50, size))
    projected = project_rows(values)
    assert (projected >= 0).all()
    # Rounding of values - threshold is relative to the values.
    slack = 1e-12 * max(scale, 1.0) * size
    np.testing.assert_allclose(projected.sum(axis=1), 1, atol=slack)
    # Karush, Kuhn, Tucker: the shift is the same where positive, and not less elsewhere.
    shift = values - projected
    threshold = np.where(projected > 0, shift, -np.inf).max(axis=1, keepdims=True)
    kept = projected > 0
    assert np.abs(np.where(kept, shift - threshold, 0)).max() <= slack
    assert (np.where(kept, 0, values - threshold) <= slack).all()


def test_rows_of_large_numbers_are_projected():
    rows = np.array([[1e17, 9e16, -1e17], [-1e20, -1e20, -3e20]])
    np.testing.assert_array_equal(project_rows(rows), [[1, 0, 0], [0.5, 0.5, 0]])


@pytest.mark.parametrize("concentration", [0.0, pytest.param(2.0, marks=pytest.mark.nightly)])
def test_errors_of_fitted_topics_are_as_large_as_their_covariance_says(seed, concentration):
    rng = np.random.default_rng(seed)
    topics, weights, basis = drawn_model(rng, d=30, k=4, of_words=0.3)
    exact = exact_moments(topics, weights, basis, concentration, pairs_sigma=3e-4)
    exact = replace(exact, diagonal_sigma=3e-4, frequencies_sigma=3e-4, n_documents=10**5)
    truth = ExplainedTopics(topics, weights, concentration)
    errors, stated = [], []
    for fit in moved_by_errors(truth, exact, 4, rng):  # errors as fits weigh them
        covariance = mixing_of_matched(fit, exact)
        stated.append(np.einsum("i,jil,l->j", weights, covariance, weights))
        weighted = fit.topics / (fit.weights @ fit.topics)
        given = topics @ weighted.T @ np.linalg.pinv(fit.topics @ weighted.T)
        errors.append(weights @ given - weights)
    # Over seeds 0 to 11, with twice as many fits: 0.55 to 1.81.
    assert 0.2 < np.square(errors).mean() / np.mean(stated) < 5
