"""Gains of many documents: each is what it would be alone, to the last bit, and finite."""

import numpy as np
import pytest
import scipy.sparse as sp
from batchings import random_batchings

from sktensor_dp.queries.counts import CountChunk
from sktensor_dp.queries.scores import TopicGain, gains_of


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
