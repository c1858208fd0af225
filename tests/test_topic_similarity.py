"""Topics of two models beside each other."""

import numpy as np
import pytest

from sktensor_dp.metrics import match_topics, topic_hierarchy, topic_similarity


def test_similarity_is_one_for_equals_and_zero_where_no_word_is_shared(seed):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.ones(20), 4)
    found = topic_similarity(topics)
    assert np.allclose(np.diagonal(found), 1)
    assert np.allclose(found, found.T)
    assert ((found > 0) & (found <= 1)).all()
    assert topic_similarity([[1.0, 0.0]], [[0.0, 1.0]])[0, 0] == pytest.approx(0)
    # By the definition, word by word.
    p, q = topics[:2]
    m = (p + q) / 2
    divergence = (p * np.log2(p / m) + q * np.log2(q / m)).sum() / 2
    assert found[0, 1] == pytest.approx(1 - divergence)


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


def test_alike_topics_join_first(seed):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(40, 0.2), 3)
    whole = np.vstack([topics, 0.95 * topics[1] + 0.05 * topics[0]])
    tree = topic_hierarchy(whole)
    assert tree.shape == (3, 4)
    assert set(tree[0, :2]) == {1.0, 3.0}


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [[-1.0, 2.0]], [[0.0, 0.0]], [[np.nan, 1.0]], []])
def test_what_is_no_topic_is_refused(wrong):
    with pytest.raises(ValueError, match="a must"):
        topic_similarity(wrong)


def test_shapes_are_named():
    with pytest.raises(ValueError, match="same features, got 2 and 3"):
        match_topics([[1.0, 1.0]], [[1.0, 1.0, 1.0]])
    with pytest.raises(ValueError, match="at least 2, got 1"):
        topic_hierarchy([[1.0, 1.0]])
