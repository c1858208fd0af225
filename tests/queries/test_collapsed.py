"""Gains of many documents: each is what it would be alone, to the last bit, and finite."""

import numpy as np
import pytest
import scipy.sparse as sp
from batchings import random_batchings

from sktensor_dp.queries.counts import CountChunk
from sktensor_dp.queries.scores import TopicGain, collapsed_shares, gains_of
from sktensor_dp.topics.inference import collapsed_proportions, topic_posterior


def hidden_words(d):
    """Words whose probability is asked for."""
    return np.array([bool((word * 2654435761 >> 16) & 1) for word in range(d)])


def corpus(rng, n, d, longest):
    """Documents of any number of words, some of them empty and some of one word or one half."""
    density = rng.uniform(0, longest / d, (n, 1))
    X = (rng.random((n, d)) < density) * rng.integers(1, 4, (n, d))
    X[:2], X[2, 1:] = 0, 0
    X[3:20, hidden_words(d)] = 0
    X[20:40, ~hidden_words(d)] = 0
    return sp.csr_matrix(X.astype(float))


def gain_of(rng, k, d, concentration, against=None):
    """Topics of which none rules a word out, as those that are released."""
    topics = rng.dirichlet(np.full(d, 0.3), k)
    topics = 0.9999 * topics + 0.0001 * topics.mean(axis=0)
    return TopicGain(topics, rng.dirichlet(np.ones(k)), concentration, against)


def in_double_precision(X, gain, over):
    """Logarithms of the hidden words' probabilities, over those of all topics together."""
    X, hidden = X.toarray(), hidden_words(X.shape[1])
    seen = sp.csr_matrix(np.where(hidden, 0, X))
    if gain.concentration == 0:
        shares = topic_posterior(seen, gain.topics, gain.weights)
    else:
        prior = gain.weights * gain.concentration
        shares = collapsed_proportions(seen, gain.topics, prior, n_iter=5)
        shares /= shares.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(shares @ gain.topics, 1e-30)) - np.log(np.maximum(over, 1e-30))
    return (np.where(hidden, X, 0) * logs).sum(axis=1)


@pytest.mark.parametrize("concentrations", [(1.0, None), (0.5, 8.0), (0.0, 1.0)])
@pytest.mark.parametrize(("k", "d", "longest"), [(1, 60, 50), (2, 30, 3), (7, 300, 250)])
def test_a_gain_does_not_depend_on_its_batch(k, d, longest, concentrations, seed, cache_of):
    """Else replacing one document would move, by a little, what all others add."""
    rng = np.random.default_rng(seed)
    own, others = concentrations
    against = None if others is None else gain_of(rng, k + 1, d, others)
    gain, X = gain_of(rng, k, d, own, against), corpus(rng, 300, d, longest)
    whole = gain(X, None)
    assert np.isfinite(whole).all()
    for rows in random_batchings(rng, 300, cache_of):
        np.testing.assert_array_equal(gain(X[rows], None), whole[rows])


@pytest.mark.parametrize("concentration", [0.0, 0.05, 1.0, 8.0])
@pytest.mark.parametrize(("k", "d", "longest"), [(1, 60, 50), (3, 50, 8), (7, 300, 250)])
def test_gains_are_those_in_double_precision(k, d, longest, concentration, seed):
    """Some 250 words each, whose logarithms are off by 1e-6 or so."""
    rng = np.random.default_rng(seed)
    gain, X = gain_of(rng, k, d, concentration), corpus(rng, 200, d, longest)
    expected = in_double_precision(X, gain, gain.weights @ gain.topics)
    np.testing.assert_allclose(gain(X, None), expected, atol=1e-3, rtol=0)
    assert k == 1 or np.abs(expected).max() > 0.1


def test_words_that_documents_are_filled_up_with_add_nothing():
    """A document among longer ones; proportions by their own words, however small the prior."""
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((np.arange(40)[None] < np.arange(1, 41)[:, None]).astype(float))
    gain = gain_of(rng, 4, 40, 1.0)
    for concentration in (1e-12, 1e-3, 1.0, 1e15):
        prior = gain.weights * concentration
        expected = collapsed_proportions(X, gain.topics, prior, n_iter=5)
        expected /= expected.sum(axis=1, keepdims=True)
        found = collapsed_shares(CountChunk(X), gain.topics, prior, 5)
        np.testing.assert_allclose(found, expected, atol=1e-4)
    # Of word 0, which documents have not, what other tokens are of it would be 0 in all.
    topics = np.array([[0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]])
    X = CountChunk(sp.csr_matrix([[0.0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]))
    found = collapsed_shares(X, topics, np.full(2, 1e-19), 5)
    np.testing.assert_allclose(found, [[0, 1], [0.5, 0.5], [0.5, 0.5]], atol=1e-6)


def hostile():
    """Counts that no text has: words 0 and 1 are of one half, 38 and 39 of the other."""
    hidden = hidden_words(40)
    seen, asked = np.flatnonzero(~hidden), np.flatnonzero(hidden)
    X = np.zeros((12, 40))
    X[1, seen[0]] = X[2, asked[0]] = X[3, [seen[0], asked[0]]] = 1
    X[4, [seen[0], asked[0]]] = 1e6
    X[5, [seen[0], seen[1], asked[0]]] = 2.0**30, 1, 1
    X[6] = 2.0**30
    X[7, seen] = 1e6
    X[8, asked] = 1e6
    X[9, [seen[-1], asked[-1]]] = 1
    X[10, [seen[-1], asked[-1]]] = 2.0**30
    X[11, :] = 1
    return sp.csr_matrix(X), seen[-1], asked[-1]


@pytest.mark.parametrize("concentration", [0.0, 1e-300, 1e-12, 0.3, 1e20])
@pytest.mark.parametrize("weight", [0.0, 1e-12, 0.5])
def test_hostile_counts_have_finite_gains(concentration, weight):
    """Words of no topic, topics without a share, and any prior included."""
    X, *of_no_topic = hostile()
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(40, 0.02), 3)
    topics[:, of_no_topic] = 0
    weights = np.array([weight, 1 - weight, 0])
    other = TopicGain(np.full((1, 40), 1 / 40), np.ones(1), 1.0)
    for against in (None, other):
        gain = TopicGain(topics, weights, concentration, against)
        found = gain(X, None)
        assert np.isfinite(found).all()
        assert found[[0, 1, 7]] == pytest.approx(0)  # nothing is asked
        each = [gain(X[row], None)[0] for row in range(X.shape[0])]
        np.testing.assert_array_equal(found, each)
        assert abs(gains_of(topics, weights, concentration, against).total(CountChunk(X))) <= 60


def test_hostile_counts_have_the_gains_of_double_precision():
    """Each word's logarithm is off by 1e-6 at most; what is cut off does not matter."""
    X, *_ = hostile()
    gain = gain_of(np.random.default_rng(2), 3, 40, 1.0)
    expected = in_double_precision(X, gain, gain.weights @ gain.topics)
    off = np.abs(np.clip(gain(X, None), -5, 5) - np.clip(expected, -5, 5))
    assert (off <= 1e-5 + 1e-6 * X.toarray()[:, hidden_words(40)].sum(axis=1)).all()
