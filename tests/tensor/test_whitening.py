"""Leading eigenpairs, and whitening by exact and by noisy second moments."""

import numpy as np
import pytest

from sktensor_dp.tensor import (
    orthogonal_decomposition,
    symmetric_outer_sum,
    top_eigenpairs,
    whitener,
)
from sktensor_dp.tensor.symmetric import multilinear
from sktensor_dp.tensor.whitening import n_eigenvalues_above, noisy_whitener

LARGE = 620  # beyond the size that is reduced densely


def random_frame(dim, n_columns, rng):
    return np.linalg.qr(rng.standard_normal((dim, n_columns)))[0]


def noise(dim, rng):
    """Symmetric Gaussian matrix with eigenvalues in [-2, 2], about."""
    G = rng.standard_normal((dim, dim))
    return (G + G.T) / np.sqrt(2 * dim)


def as_given(matrix, form):
    return matrix if form == "array" else lambda V: matrix @ V


@pytest.mark.parametrize("form", ["array", "function"])
@pytest.mark.parametrize("dim", [40, LARGE])
@pytest.mark.parametrize("below", ["larger negative ones", "noise"])
def test_eigenpairs_are_those_of_a_full_reduction(below, dim, form, seed):
    rng = np.random.default_rng([seed, 1])
    V, spectrum = random_frame(dim, 9, rng), [8.0, 7.0, 6.0, 5.0, 4.0]
    matrix = (V[:, :5] * spectrum) @ V[:, :5].T
    if below == "noise":
        matrix += noise(dim, rng)
    else:
        matrix += (V[:, 5:] * [-50.0, -60.0, -70.0, -80.0]) @ V[:, 5:].T
    full_values, full_vectors = np.linalg.eigh(matrix)
    values, vectors = top_eigenpairs(as_given(matrix, form), 5, dim=dim, random_state=seed)
    np.testing.assert_allclose(values, full_values[::-1][:5], rtol=1e-10)
    # Vectors are wrong by residual over gap: 1e-8 times 80 over at least 0.01.
    overlaps = np.abs(np.sum(vectors * full_vectors[:, ::-1][:, :5], axis=0))
    np.testing.assert_allclose(overlaps, 1.0, atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-12)
    # The largest entry of each is positive.
    assert (vectors[np.argmax(np.abs(vectors), axis=0), np.arange(5)] > 0).all()


@pytest.mark.parametrize("form", ["array", "function"])
@pytest.mark.parametrize(
    "spectrum",
    [[], [1.0] * 5, [2.0, 1.0], [-1.0] * 3, [-9.0, -9.0, 1e-3]],
    ids=["zero", "equal", "deficient", "negative", "mixed"],
)
def test_degenerate_matrices_are_exact_and_repeatable(form, spectrum):
    V = random_frame(LARGE, max(1, len(spectrum)), np.random.default_rng(0))
    matrix = (V[:, : len(spectrum)] * spectrum) @ V[:, : len(spectrum)].T
    matrix = (matrix + matrix.T) / 2
    expected = np.sort(np.concatenate([spectrum, np.zeros(5)]))[::-1][:5]
    first, second = (
        top_eigenpairs(as_given(matrix, form), 5, dim=LARGE, random_state=4) for _ in range(2)
    )
    np.testing.assert_allclose(first[0], expected, atol=1e-10)
    np.testing.assert_allclose(first[1].T @ first[1], np.eye(5), atol=1e-10)
    np.testing.assert_allclose(matrix @ first[1], first[1] * first[0], atol=1e-7)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


# Every start spans an invariant subspace, up to rounding: from most of them the
# solver has to draw again.
@pytest.mark.parametrize("form", ["array", "function"])
@pytest.mark.parametrize("random_state", range(3))
def test_draws_within_the_solver_are_seeded(form, random_state):
    given = as_given(-np.eye(LARGE), form)
    first, second = (
        top_eigenpairs(given, 5, dim=LARGE, random_state=random_state) for _ in range(2)
    )
    np.testing.assert_allclose(first[0], -1.0)
    np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize("n_components", [55, 60])
def test_many_eigenvalues_are_no_larger_than_they_are(n_components, seed):
    matrix = noise(LARGE, np.random.default_rng(seed))
    values, vectors = top_eigenpairs(matrix.__matmul__, n_components, dim=LARGE, random_state=seed)
    expected = np.linalg.eigvalsh(matrix)[::-1][:n_components]
    assert (values <= expected + 1e-10).all()  # as those of the matrix in a subspace are
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_components), atol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_eigenpairs(np.ones((2, 3)), 1), r"operator must have shape .* \(2, 3\)"),
        (lambda: top_eigenpairs(np.full((2, 2), np.inf), 1), "operator must be finite"),
        (lambda: top_eigenpairs(np.eye(2), 3), "n_components must be between 1 and 2"),
        (lambda: top_eigenpairs(lambda V: V, 1), "dim"),
        (lambda: top_eigenpairs(np.eye(2), 1, dim=3), "dim must be 2"),
        (lambda: top_eigenpairs(np.eye(2), 1, n_iter=0), "n_iter"),
    ],
)
def test_wrong_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("distinct", [1, 2, 40, 2000])
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_residuals_are_what_was_asked_for_and_columns_stay_apart(distinct, tol, seed):
    """Where spaces are invariant early, blocks have columns that depend on each other."""
    rng = np.random.default_rng([seed, 6])
    spectrum = np.repeat(rng.normal(size=distinct), -(-LARGE // distinct))[:LARGE]
    reflection = rng.standard_normal(LARGE)
    reflection /= np.linalg.norm(reflection)

    def turned(V):
        return V - 2 * np.outer(reflection, reflection @ V)

    values, vectors = top_eigenpairs(
        lambda V: turned(spectrum[:, None] * turned(V)), 4, dim=LARGE, tol=tol, n_iter=500,
        random_state=seed,
    )  # fmt: skip
    residuals = turned(spectrum[:, None] * turned(vectors)) - vectors * values
    # The estimate that stopped it is exact but for rounding.
    largest = np.abs(values).max()
    assert np.linalg.norm(residuals, axis=0).max() <= 1.01 * tol * largest + 1e-11
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)


def test_small_matrices_of_any_scale_have_all_eigenpairs():
    # LAPACK's reduction of a part of the spectrum fails at some of these.
    for seed in range(100):
        small, own = 10.0 ** np.random.default_rng(seed).uniform(-30, -12, 2)
        matrix = np.full((7, 7), -small)
        matrix[np.diag_indices(7)] = own
        matrix[0, 0] = -1.0
        values, vectors = top_eigenpairs(matrix, 3)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[:3:-1], atol=1e-12)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-9)


def topic_moments(d, k, rng):
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
        ({"edge": 3.0}, [4.0], 1),  # the mean alone
        ({"edge": 1.5, "most_by_chance": 2.5}, [4.0], 1),
        ({"edge": 0.2, "most_by_chance": 1.0}, [4.0, 2.0, 0.5], 2),
        ({"edge": 1.5, "hidden_above": 0.2}, [4.0, 2.0, 0.5], 2),
        ({"edge": 3.0, "hidden_above": 0.2}, [4.0], 1),  # nothing is seen beside the mean
        ({"edge": 60.0}, [6.0], 0),  # floored at edge / 10
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
    white = noisy_whitener(M2, 4, edge=0.0)
    framed = white.in_frame(white.matrix * rng.uniform(0.5, 1.0, (60, 1)))
    in_frame = symmetric_outer_sum(weights, topics @ framed.basis)
    whitened = multilinear(in_frame, framed.transform)
    found, vectors = orthogonal_decomposition(whitened, 4, random_state=seed)
    order = np.argsort(weights)
    # Rounding, times the ratio of the moment's eigenvalues.
    np.testing.assert_allclose(found, weights[order] ** -0.5, rtol=1e-6)
    np.testing.assert_allclose(found[:, None] * framed.unwhiten(vectors), topics[order], atol=1e-6)


@pytest.mark.parametrize("dim", [1, 7, 150])
def test_eigenvalues_above_a_bound_are_counted_without_them(dim, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(dim, dim))
    matrix += matrix.T
    values = np.linalg.eigvalsh(matrix)
    for bound in (*values[:5] - 1e-9, *values[-5:] + 1e-9, 0.0, *rng.normal(size=5)):
        assert n_eigenvalues_above(matrix, bound) == (values > bound).sum()
