"""Metrics by their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.metrics import coherence, match_topics, precision_at_k, recall_at_k


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
        ([[0.5, 0.5]], np.ones((3, 2)), 2.7, "n_top_words must be an int"),
        ([[0.5, np.nan]], np.ones((3, 2)), 10, "topics must be finite"),
        ([[0.5, 0.5]], np.full((3, 2), np.nan), 10, "X must hold counts"),
    ],
)
def test_coherence_says_what_does_not_fit(topics, X, words, says):
    with pytest.raises(ValueError, match=says):
        coherence(topics, X, n_top_words=words)


def test_precision_and_recall_by_their_definitions(seed):
    rng = np.random.default_rng(seed)
    # Equal scores, and items that may not be recommended.
    truth, scores = rng.random((30, 8)) < 0.3, rng.integers(0, 4, (30, 8)).astype(float)
    scores[rng.random((30, 8)) < 0.2] = -np.inf
    truth[3] = False
    precisions, recalls = [], []
    for person in np.flatnonzero(truth.any(axis=1)):
        order = sorted(range(8), key=lambda i: (-scores[person, i], i))
        best = [i for i in order if scores[person, i] >= 0][:4]
        hits = truth[person, best].sum()
        precisions.append(hits / 4)
        recalls.append(hits / truth[person].sum())
    for relevant in (truth, sp.csr_matrix(truth), truth * 2.5):
        assert precision_at_k(relevant, scores, k=4) == pytest.approx(np.mean(precisions))
        assert recall_at_k(relevant, scores, k=4) == pytest.approx(np.mean(recalls))


def test_limits_of_precision_and_recall():
    assert np.isnan(recall_at_k(np.zeros((3, 4)), np.zeros((3, 4))))
    assert recall_at_k(np.eye(3), np.eye(3), k=1) == precision_at_k(np.eye(3), np.eye(3), k=1) == 1
    assert precision_at_k(np.eye(3), np.eye(3), k=10) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="one shape"):
        recall_at_k(np.eye(3), np.eye(4))
    missing = np.full((3, 3), np.nan)
    for metric in (recall_at_k, precision_at_k):
        for truth, scores in ((np.eye(3), missing), (missing, np.eye(3))):
            with pytest.raises(ValueError, match="must hold no NaN"):
                metric(truth, scores)
    with pytest.raises(ValueError, match="k must"):
        recall_at_k(np.eye(3), np.eye(3), k=0)


def test_similarity_is_one_for_equals_and_zero_where_no_word_is_shared(seed):
    topics = np.random.default_rng(seed).dirichlet(np.ones(20), 2)
    for a, b in ((topics, topics), (topics, topics * 1.7e308)):
        rows, columns, found = match_topics(a, b)
        assert (rows == columns).all()
        np.testing.assert_allclose(found, 1, rtol=1e-12)
    assert match_topics([[1.0, 0.0]], [[0.0, 1.0]])[2][0] == pytest.approx(0)
    # By the definition, word by word.
    p, q = topics
    m = (p + q) / 2
    divergence = (p * np.log2(p / m) + q * np.log2(q / m)).sum() / 2
    assert match_topics([p], [q])[2][0] == pytest.approx(1 - divergence)


def test_topics_are_found_again_in_another_order(seed):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(50, 0.2), 6)
    order = rng.permutation(6)[:4]
    noisy = topics[order] + rng.uniform(0, 1e-3, (4, 50))
    rows, columns, similarity = match_topics(topics, noisy)
    assert len(rows) == 4
    assert np.array_equal(order[columns], rows)
    assert (np.diff(similarity) <= 0).all()
    assert similarity[-1] > 0.9


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [[-1.0, 2.0]], [[0.0, 0.0]], [[np.nan, 1.0]], []])
def test_what_is_no_topic_is_refused(wrong):
    with pytest.raises(ValueError, match="a must"):
        match_topics(wrong, [[1.0, 1.0]])


def test_shapes_are_named():
    with pytest.raises(ValueError, match="same features, got 2 and 3"):
        match_topics([[1.0, 1.0]], [[1.0, 1.0, 1.0]])
