"""Coherence by its definition."""

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.metrics import coherence


def test_coherence_is_the_mean_of_npmi_over_pairs(seed):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, size=(60, 12))
    topics = rng.dirichlet(np.full(12, 0.5), size=3)
    found = coherence(topics, X, n_top_words=4)
    for row, value in zip(topics, found, strict=True):
        words, scores = np.argsort(-row, kind="stable")[:4], []
        for i in range(4):
            for j in range(i):
                a, b = X[:, words[i]] > 0, X[:, words[j]] > 0
                p = (a & b).mean()
                pmi = np.log(p / (a.mean() * b.mean())) if p > 0 else 0
                scores.append(pmi / -np.log(p) if p > 0 else -1.0)
        assert value == pytest.approx(np.mean(scores))
    np.testing.assert_array_equal(found, coherence(topics, sp.csr_matrix(X), n_top_words=4))


def test_limits_of_coherence():
    everywhere, never = np.ones((5, 2)), np.zeros((5, 2))
    assert coherence([[0.5, 0.5]], everywhere).tolist() == [1.0]
    assert coherence([[0.5, 0.5]], never).tolist() == [-1.0]
    apart = np.repeat(np.eye(2), 3, axis=0)
    assert coherence([[0.5, 0.5]], apart).tolist() == [-1.0]


@pytest.mark.parametrize(
    ("topics", "X", "words", "says"),
    [
        ([[1.0]], np.ones((3, 2)), 10, r"shape \(n_components, 2\)"),
        ([[0.5, 0.5]], np.ones((0, 2)), 10, "at least one document"),
        ([[0.5, 0.5]], np.ones((3, 2)), 1, "at least 2 words"),
    ],
)
def test_coherence_says_what_does_not_fit(topics, X, words, says):
    with pytest.raises(ValueError, match=says):
        coherence(topics, X, n_top_words=words)
