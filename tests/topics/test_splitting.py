"""Topics in two halves, and the most alike put together."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from sktensor_dp.topics.splitting import SPREAD, merged_topics, split_topics


def some_topics(seed, k=6, d=30):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(d, 0.3), size=k), rng.dirichlet(np.full(k, 2.0))


def test_halves_are_distributions_about_their_topic(seed):
    topics, weights = some_topics(seed, d=5000)
    halves, shares = split_topics(topics, weights, np.random.RandomState(seed))
    np.testing.assert_allclose(halves.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares, np.tile(weights, 2) / 2)
    # Of 5000 words, those that hold a topic are a thousand or more. A squared deviation of gamma
    # factors of shape 10 has a kurtosis of 3.6, so that its mean is off by 6 % in one deviation;
    # six of them are asked for. Factors of a topic's two halves are not the same.
    factors = halves / np.tile(topics, (2, 1))
    held = np.tile(topics > 1e-6, (2, 1))
    spread = [
        np.var(own[seen]) / np.mean(own[seen]) ** 2 for own, seen in zip(factors, held, strict=True)
    ]
    np.testing.assert_allclose(spread, SPREAD, rtol=0.36)
    assert np.abs(halves[:6] - halves[6:]).sum(axis=1).min() > 0.1


@pytest.mark.parametrize("n_topics", [5, 3, 1])
def test_the_two_that_lose_least_are_put_together_one_after_the_other(n_topics, seed):
    topics, weights = some_topics(seed)
    merged, shares = merged_topics(topics, weights, n_topics)
    while len(topics) > n_topics:
        pairs = itertools.combinations(range(len(topics)), 2)
        i, j = min(pairs, key=lambda pair: loss(*pair, topics, weights))
        both = weights[i] + weights[j]
        topics[i] = (weights[i] * topics[i] + weights[j] * topics[j]) / both
        weights[i] = both
        topics, weights = np.delete(topics, j, axis=0), np.delete(weights, j)
    np.testing.assert_allclose(merged, topics)
    np.testing.assert_allclose(shares, weights)


def loss(i, j, topics, weights):
    """Mutual information of a token's word and which of two topics it is of, times their weight."""
    both = weights[i] + weights[j]
    mixed = (weights[i] * topics[i] + weights[j] * topics[j]) / both
    return weights[i] * entropy(topics[i], mixed) + weights[j] * entropy(topics[j], mixed)


def entropy(of, over):
    """Relative entropy in nats."""
    seen = of > 0
    return float((of[seen] * np.log(of[seen] / over[seen])).sum())


@pytest.mark.parametrize("n_topics", [1, 2, 4])
def test_words_keep_their_frequencies(n_topics, seed):
    topics, weights = some_topics(seed)
    merged, shares = merged_topics(topics, weights, n_topics)
    assert len(merged) == n_topics
    np.testing.assert_allclose(shares @ merged, weights @ topics)
    np.testing.assert_allclose(merged.sum(axis=1), 1.0)


def test_halves_find_each_other_again(seed):
    # Of equal weight: of two rare ones less is lost than of two halves of a frequent one.
    topics, weights = some_topics(seed, d=200)[0], np.full(6, 1 / 6)
    merged, shares = merged_topics(
        *split_topics(topics, weights, np.random.RandomState(seed)), len(topics)
    )
    # Topics of this kind are .7 apart; halves are .2 from theirs, and their mean .15.
    distances = jensenshannon(topics[:, None], merged[None], axis=2)
    assert (np.sort(distances.argmin(axis=1)) == np.arange(6)).all()
    assert distances.min(axis=1).max() < 0.25
    np.testing.assert_allclose(shares[distances.argmin(axis=1)], weights)


def test_a_rare_topic_costs_less_to_give_up_than_a_frequent_one():
    topics = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.2, 0.8]])
    _, shares = merged_topics(topics, np.array([0.01, 0.01, 0.49, 0.49]), 3)
    assert sorted(shares) == pytest.approx([0.02, 0.49, 0.49])
    _, shares = merged_topics(topics, np.full(4, 0.25), 3)
    assert sorted(shares) == pytest.approx([0.25, 0.25, 0.5])


def test_topics_that_are_few_enough_stay():
    topics, weights = some_topics(0)
    merged, shares = merged_topics(topics, weights, 6)
    np.testing.assert_allclose(merged, topics)
    np.testing.assert_allclose(shares, weights)
