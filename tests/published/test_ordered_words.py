"""Algorithm 1 on ordered words: what it outputs, and that the order of words is in it."""

import itertools
import math

import numpy as np
import pytest

from sktensor_dp.published import agn_of_words, avn_of_words

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.UnsoundClaimWarning")

ALGORITHMS = [agn_of_words, avn_of_words]
WORDS = [[0, 1, 2], [2, 1, 0], [0, 0, 1], [1, 2, 2], [2, 0, 1]]


def dense(words):
    """Means of t1 (x) t2 and t1 (x) t2 (x) t3, by their definition."""
    t = np.eye(3)[np.asarray(words)]
    pairs = sum(np.multiply.outer(a, b) for a, b, _ in t) / len(t)
    triples = sum(np.multiply.outer(np.multiply.outer(a, b), c) for a, b, c in t) / len(t)
    return pairs, triples


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_without_noise_it_is_the_moment_in_its_subspace(algorithm):
    found = algorithm(WORDS, 3, 2, epsilon=math.inf)
    pairs, triples = dense(WORDS)
    U, scale, _ = np.linalg.svd(pairs)
    W = U[:, :2] / np.sqrt(scale[:2])
    np.testing.assert_allclose(np.abs(found.subspace), np.abs(W), atol=1e-12)
    W = found.subspace
    expected = np.einsum("abc,ai,bj,ck->ijk", triples, W, W, W)
    np.testing.assert_allclose(found.tensor, expected, atol=1e-12)
    assert np.abs(expected - expected.transpose(1, 0, 2)).max() > 0.01


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_output_tells_neighbours_apart_with_certainty(algorithm):
    """Given W, what is not symmetric in the tensor is exact, whatever the noise."""
    neighbour = [[1, 0, 2], *WORDS[1:]]
    found = algorithm(WORDS, 3, 2, epsilon=0.1)
    scale = max(np.abs(found.tensor).max(), 1e-300)

    def antisymmetric(T):
        return T - sum(T.transpose(p) for p in itertools.permutations(range(3))) / 6

    gaps = []
    for words in (WORDS, neighbour):
        T = np.einsum("abc,ai,bj,ck->ijk", dense(words)[1], *[found.subspace] * 3)
        gaps.append(np.abs(antisymmetric(found.tensor) - antisymmetric(T)).max())
    assert gaps[0] < 1e-10 * scale
    assert gaps[1] > 1e3 * gaps[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"words": [[0, 1]]}, r"shape \(n_documents >= 1, 3\)"),
        ({"words": [[0.5, 1, 2]]}, "integers"),
        ({"words": [[0, 1, 3]]}, "between 0 and"),
        ({"n_components": 4}, "at most the 3 features of words"),
        ({"n_features": 0}, "n_features must be"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"delta": 1}, "delta must be"),
    ],
)
def test_bad_parameters_are_named(algorithm, parameters, message):
    arguments = {"words": WORDS, "n_features": 3, "n_components": 2, **parameters}
    with pytest.raises(ValueError, match=message):
        algorithm(**arguments)
