"""Whitening, capped whitening, and whitening of a lone third moment."""

import numpy as np
import pytest

from sktensor_dp.tensor import (
    capped_whitener,
    multilinear,
    orthogonal_decomposition,
    symmetric_outer_sum,
    top_eigenpairs,
    whiten_by_random_marginal,
    whitener,
)
from sktensor_dp.tensor.whitening import noisy_whitener


def topic_moments(d, k, rng):
    """Weights, topics (rows) and second moment of the single topic model."""
    weights, topics = rng.dirichlet(np.full(k, 5.0)), rng.dirichlet(np.full(d, 0.1), size=k)
    return weights, topics, (topics.T * weights) @ topics


def row_norms(W):
    return np.linalg.norm(W, axis=1)


def test_whitening_makes_topics_orthonormal_and_back(seed):
    weights, topics, M2 = topic_moments(60, 4, np.random.default_rng([seed, 1]))
    white = whitener(M2, 4)
    whitened = np.sqrt(weights)[:, None] * topics @ white.matrix
    np.testing.assert_allclose(white.matrix.T @ M2 @ white.matrix, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(whitened @ whitened.T, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(
        white.unwhiten(whitened), np.sqrt(weights)[:, None] * topics, atol=1e-12
    )
    np.testing.assert_allclose(white.unwhitening, M2 @ white.matrix, atol=1e-12)
    np.testing.assert_allclose(white.basis @ white.transform, white.matrix, atol=1e-12)


@pytest.mark.parametrize("cap", [None, 0.95, 0.5])
def test_topics_are_read_from_the_whitened_third_moment(cap, seed):
    weights, topics, M2 = topic_moments(60, 4, np.random.default_rng([seed, 2]))
    white = whitener(M2, 4)
    if cap is not None:
        white = capped_whitener(white, np.quantile(row_norms(white.matrix), cap))
    in_frame = symmetric_outer_sum(weights, topics @ white.basis)
    whitened = multilinear(in_frame, white.transform)
    found, vectors = orthogonal_decomposition(whitened, 4, random_state=seed)
    estimates = found[:, None] * white.unwhiten(vectors)
    order = np.argsort(weights)
    np.testing.assert_allclose(found, weights[order] ** -0.5, rtol=1e-7)
    np.testing.assert_allclose(estimates, topics[order], atol=1e-7)


def test_whitener_takes_eigenpairs_and_functions(seed):
    _, _, M2 = topic_moments(50, 3, np.random.default_rng([seed, 3]))
    expected = whitener(M2, 3)
    for given in (top_eigenpairs(M2, 5), lambda V: M2 @ V):
        options = {"dim": 50} if callable(given) else {}
        found = whitener(given, 3, **options)
        np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-9)
        np.testing.assert_allclose(found.matrix, expected.matrix, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("spectrum", "floor", "kept"),
    [
        ([4.0, 2.0, 1.0, -9.0], 0.0, 3),
        ([4.0, 2.0, 1.0, -9.0], 1.5, 2),
        ([4.0, 1e-14, 0.0, 0.0], 0.0, 1),
        ([-1.0, -2.0, -3.0, 0.0], 0.0, 0),
        ([0.0, 0.0, 0.0, 0.0], 0.0, 0),
    ],
)
def test_eigenvalues_that_cannot_be_whitened_are_dropped(spectrum, floor, kept):
    white = whitener(np.diag(spectrum), 4, floor=floor)
    assert white.n_components == kept
    assert white.matrix.shape == white.unwhitening.shape == (4, kept)
    assert white.unwhiten(np.empty((0, kept))).shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "kept", "resolved"),
    [
        ({"edge": 1.5}, [4.0, 2.0], 2),
        ({"edge": 9.0}, [4.0], 0),  # one is always kept
        ({"edge": 9.0, "keep_all": True}, [4.0, 2.0, 0.9, 0.9], 0),  # and floored at edge / 10
        ({"edge": 0.0}, [4.0, 2.0, 0.5], 3),
        ({"edge": 0.0, "largest": 1e12}, [4.0, 2.0, 1.0], 3),  # a millionth of a millionth of it
    ],
)
def test_eigenvalues_under_the_noise_are_dropped_or_floored(options, kept, resolved):
    white = noisy_whitener(np.diag([4.0, 0.5, 2.0, -3.0]), 4, **options)
    np.testing.assert_allclose(white.eigenvalues, kept)
    np.testing.assert_allclose(white.scale, np.sqrt(kept))
    assert (white.n_components, white.n_resolved) == (len(kept), resolved)


def test_topics_are_read_from_a_third_moment_in_any_frame(seed):
    rng = np.random.default_rng([seed, 6])
    weights, topics, M2 = topic_moments(60, 4, rng)
    white = noisy_whitener(M2, 4, edge=0.0, keep_all=True)
    framed = white.in_frame(white.matrix * rng.uniform(0.5, 1.0, (60, 1)))
    in_frame = symmetric_outer_sum(weights, topics @ framed.basis)
    whitened = multilinear(in_frame, framed.transform)
    found, vectors = orthogonal_decomposition(whitened, 4, random_state=seed)
    order = np.argsort(weights)
    # Rounding, times the ratio of the moment's eigenvalues.
    np.testing.assert_allclose(found, weights[order] ** -0.5, rtol=1e-6)
    np.testing.assert_allclose(found[:, None] * framed.unwhiten(vectors), topics[order], atol=1e-6)


@pytest.mark.parametrize("n_rounds", [1, 10])
@pytest.mark.parametrize("quantile", [0.95, 0.5])
def test_capped_whitener_is_unbiased_in_an_orthonormal_frame(quantile, n_rounds, seed):
    weights, topics, M2 = topic_moments(300, 6, np.random.default_rng([seed, 4]))
    white = whitener(M2, 6)
    limit = np.quantile(row_norms(white.matrix), quantile)
    capped = capped_whitener(white, limit, n_rounds=n_rounds)
    np.testing.assert_allclose(capped.basis.T @ capped.basis, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(capped.matrix.T @ capped.unwhitening, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(topics @ capped.matrix, topics @ white.matrix, atol=1e-8)
    np.testing.assert_allclose(
        weights @ (topics @ capped.matrix) ** 3, weights @ (topics @ white.matrix) ** 3, atol=1e-6
    )
    assert capped.n_components == 6
    assert row_norms(capped.matrix).max() < 0.95 * row_norms(white.matrix).max()


def test_rounds_of_capping_lower_the_largest_row(seed):
    _, _, M2 = topic_moments(300, 6, np.random.default_rng([seed, 5]))
    white = whitener(M2, 6)
    limit = np.quantile(row_norms(white.matrix), 0.9)
    once, often = (capped_whitener(white, limit, n_rounds=n) for n in (1, 20))
    assert row_norms(often.matrix).max() < row_norms(once.matrix).max()


def test_cap_above_every_row_changes_nothing():
    _, _, M2 = topic_moments(40, 3, np.random.default_rng(0))
    white = whitener(M2, 3)
    np.testing.assert_allclose(capped_whitener(white, 1e9).matrix, white.matrix, atol=1e-10)


def test_random_marginal_spans_the_components(seed):
    rng = np.random.default_rng([seed, 6])
    V = np.linalg.qr(rng.standard_normal((20, 4)))[0].T
    T = symmetric_outer_sum([4.0, 3.0, 2.0, 1.0], V)
    marginal = whiten_by_random_marginal(T, 4, random_state=seed)
    overlaps = V @ marginal.theta * [4.0, 3.0, 2.0, 1.0]
    expected = overlaps[np.argsort(-np.abs(overlaps))]
    np.testing.assert_allclose(marginal.eigenvalues, expected, atol=1e-12)
    projected = multilinear(T, marginal.basis)
    weights, vectors = orthogonal_decomposition(projected, 4, random_state=seed)
    np.testing.assert_allclose(weights, [4.0, 3.0, 2.0, 1.0], atol=1e-10)
    np.testing.assert_allclose(vectors @ marginal.basis.T, V, atol=1e-9)


def test_random_marginal_is_uniform_on_the_sphere_and_seeded():
    T = np.zeros((3, 3, 3))
    first, second = (whiten_by_random_marginal(T, 1, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(first.theta, second.theta)
    draws = np.array([whiten_by_random_marginal(T, 1, random_state=s).theta for s in range(500)])
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1.0)
    # Standard errors: mean sqrt(1/1500) = 0.026, second moments at most 0.014.
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=0.11)
    np.testing.assert_allclose(draws.T @ draws / 500, np.eye(3) / 3, atol=0.06)


def test_definite_marginal_whitens_components_that_are_not_orthogonal(seed):
    rng = np.random.default_rng([seed, 7])
    weights, topics, _ = topic_moments(30, 3, rng)
    T = symmetric_outer_sum(weights, topics)
    white = whiten_by_random_marginal(T, 3, theta=np.ones(30)).whitener()
    found, vectors = orthogonal_decomposition(multilinear(T, white.matrix), 3, random_state=seed)
    estimates = white.unwhiten(vectors)
    estimates /= estimates.sum(axis=1, keepdims=True)
    # theta = 1/sqrt(30): the marginal is M2/sqrt(30), so weights are raised by it.
    order = np.argsort(weights)
    np.testing.assert_allclose(found, 30**0.75 * weights[order] ** -0.5, rtol=1e-7)
    np.testing.assert_allclose(estimates, topics[order], atol=1e-7)


def test_indefinite_marginal_has_no_whitener():
    marginal = whiten_by_random_marginal(
        symmetric_outer_sum([1.0, 1.0], np.eye(2)), 2, theta=[1.0, -1.0]
    )
    with pytest.raises(ValueError, match="1 of 2"):
        marginal.whitener()


WHITE = whitener(np.eye(2), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whitener((np.ones(2), np.ones((3, 3))), 2), "M2 given as eigenpairs"),
        (lambda: capped_whitener(WHITE, 0.0), "limit must be positive"),
        (lambda: capped_whitener(WHITE, 1.0, n_rounds=0), "n_rounds"),
        (lambda: whiten_by_random_marginal(np.eye(2), 1), "T must have shape"),
        (lambda: whiten_by_random_marginal(np.zeros((2, 2, 2)), 3), "n_components must be"),
        (lambda: whiten_by_random_marginal(np.zeros((2, 2, 2)), 1, theta=[0, 0]), "theta must"),
        (lambda: whiten_by_random_marginal(np.zeros((2, 2, 2)), 1, theta=[1]), "theta must"),
    ],
)
def test_wrong_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
