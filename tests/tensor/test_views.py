"""Moments of three views, brought to the space of the third."""

import numpy as np
import pytest

from sktensor_dp.tensor import (
    multilinear,
    orthogonal_decomposition,
    symmetric_outer_sum,
    symmetrize_views,
    whitener,
)


def mixture(dims, k, rng):
    """Weights, conditional means of each view as rows, and moments."""
    weights = rng.dirichlet(np.full(k, 5.0))
    A, B, C = means = [rng.standard_normal((k, d)) for d in dims]
    T = np.einsum("j,ja,jb,jc->abc", weights, A, B, C)
    pairs = [(P.T * weights) @ Q for P, Q in ((A, B), (A, C), (B, C))]
    return weights, means, T, pairs


# Rounding is amplified by the inverse of M12 twice; its condition number is far
# below 1e4 for Gaussian means of seven dimensions and three classes.
@pytest.mark.parametrize("dims", [(7, 7, 7), (9, 7, 8), (7, 9, 3)])
def test_moments_are_those_of_the_third_view(dims, seed):
    weights, (_, _, C), T, pairs = mixture(dims, 3, np.random.default_rng([seed, *dims]))
    M2, M3 = symmetrize_views(T, *pairs, n_components=3)
    np.testing.assert_allclose(M2, (C.T * weights) @ C, atol=1e-8)
    np.testing.assert_allclose(M3, symmetric_outer_sum(weights, C), atol=1e-8)
    np.testing.assert_array_equal(M3, M3.transpose(2, 0, 1))
    assert np.abs(M3).max() > 1e-3  # a zero answer would not do


def test_means_of_the_third_view_are_read_from_the_moments(seed):
    weights, (_, _, C), T, pairs = mixture((8, 9, 10), 3, np.random.default_rng([seed, 1]))
    M2, M3 = symmetrize_views(T, *pairs, n_components=3)
    white = whitener(M2, 3)
    found, vectors = orthogonal_decomposition(multilinear(M3, white.matrix), 3, random_state=seed)
    order = np.argsort(weights)
    np.testing.assert_allclose(found**-2, weights[order], rtol=1e-6)
    np.testing.assert_allclose(found[:, None] * white.unwhiten(vectors), C[order], atol=1e-6)


def test_noise_beyond_the_rank_is_not_inverted(seed):
    rng = np.random.default_rng([seed, 2])
    weights, (_, _, C), T, pairs = mixture((8, 8, 8), 2, rng)
    pairs[0] = pairs[0] + 1e-9 * rng.standard_normal((8, 8))
    M2, _ = symmetrize_views(T, *pairs, n_components=2)
    np.testing.assert_allclose(M2, (C.T * weights) @ C, atol=1e-5)


T, M = np.ones((2, 3, 4)), {"M12": (2, 3), "M13": (2, 4), "M23": (3, 4)}


def pair_moments(**shapes):
    return [np.ones(shapes.get(name, shape)) for name, shape in M.items()]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: symmetrize_views(np.ones((2, 3)), *pair_moments(), 1), "T must have shape"),
        (lambda: symmetrize_views(T, *pair_moments(M12=(3, 2)), 1), r"M12 must have shape \(2, 3"),
        (lambda: symmetrize_views(T, *pair_moments(M23=(4, 3)), 1), r"M23 must have shape \(3, 4"),
        (lambda: symmetrize_views(T, *pair_moments(), 3), "n_components must be between 1 and 2"),
        (lambda: symmetrize_views(T, *pair_moments(), 2), "M12 must have rank"),
        (lambda: symmetrize_views(T * np.nan, *pair_moments(), 1), "must be finite"),
    ],
)
def test_wrong_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
