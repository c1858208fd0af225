"""Whitening by exact and by noisy second moments."""

import numpy as np
import pytest

from sktensor_dp.tensor import (
    multilinear,
    orthogonal_decomposition,
    symmetric_outer_sum,
    whitener,
)
from sktensor_dp.tensor.whitening import noisy_whitener


def topic_moments(d, k, rng):
    """Weights, topics (rows) and second moment of the single topic model."""
    weights, topics = rng.dirichlet(np.full(k, 5.0)), rng.dirichlet(np.full(d, 0.1), size=k)
    return weights, topics, (topics.T * weights) @ topics


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


def test_topics_are_read_from_the_whitened_third_moment(seed):
    weights, topics, M2 = topic_moments(60, 4, np.random.default_rng([seed, 2]))
    white = whitener(M2, 4)
    in_frame = symmetric_outer_sum(weights, topics @ white.basis)
    whitened = multilinear(in_frame, white.transform)
    found, vectors = orthogonal_decomposition(whitened, 4, random_state=seed)
    estimates = found[:, None] * white.unwhiten(vectors)
    order = np.argsort(weights)
    np.testing.assert_allclose(found, weights[order] ** -0.5, rtol=1e-7)
    np.testing.assert_allclose(estimates, topics[order], atol=1e-7)


@pytest.mark.parametrize(
    ("spectrum", "kept"),
    [
        ([4.0, 2.0, 1.0, -9.0], 3),
        ([4.0, 1e-14, 0.0, 0.0], 1),
        ([-1.0, -2.0, -3.0, 0.0], 0),
        ([0.0, 0.0, 0.0, 0.0], 0),
    ],
)
def test_eigenvalues_that_cannot_be_whitened_are_dropped(spectrum, kept):
    white = whitener(np.diag(spectrum), 4)
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
