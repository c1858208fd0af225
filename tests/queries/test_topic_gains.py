"""What topics gain on half of a document's words: by a loop, of any batch, for any counts."""

import numpy as np
import pytest
import scipy.sparse as sp
from batchings import documents_of_any_length, random_batchings

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.data.units import Units
from sktensor_dp.queries.topic_gains import MOST_GAIN, HeldOutWords, TopicGains
from sktensor_dp.topics.inference import collapsed_proportions, topic_posterior

WORDS = 40
# Of one document, in nats. Proportions come from sums of some 20 words in each of 5 steps, of
# probabilities that are rounded by 6e-8: they are off by 5 * 20 * 6e-8 if all errors add up, by
# 1e-6 if they do not, and so is the logarithm of each of some 500 words.
ROUNDING = 1e-3


def gains_of(*topics):
    return TopicGains.of(HeldOutWords(*topics))


def made(seed):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(WORDS, 0.2), size=3)
    X = sp.csr_matrix(rng.poisson(rng.choice([0.05, 0.5, 20.0], size=(12, 1)), (12, WORDS)))
    return X.astype(np.float64), topics, rng.dirichlet(np.ones(3))


def hidden_words(d):
    """Words whose probability is asked for."""
    return np.array([bool((word * 2654435761 >> 16) & 1) for word in range(d)])


def asked_for(row, divides_words):
    """How many tokens of each word of a document are asked for."""
    hidden = hidden_words(WORDS)
    return (row + hidden) // 2 if divides_words else row * hidden


@pytest.mark.parametrize("divides_words", [False, True])
@pytest.mark.parametrize("concentration", [0.0, 0.5, 8.0])
def test_the_sum_is_that_of_documents_by_themselves(seed, concentration, divides_words):
    """A group counts as the mean of its documents."""
    X, topics, weights = made(seed)
    query, expected = gains_of(topics, weights, concentration, None, divides_words), []
    for row in X.toarray():
        asked = asked_for(row, divides_words)
        seen = sp.csr_matrix((row - asked)[None])
        if concentration == 0:
            shares = topic_posterior(seen, topics, weights)[0]
        else:
            gamma = collapsed_proportions(seen, topics, weights * concentration, n_iter=5)[0]
            shares = gamma / gamma.sum()
        ratio = np.log(shares @ topics) - np.log(weights @ topics)
        expected.append(np.clip(asked @ ratio, -MOST_GAIN, MOST_GAIN))
    assert query.total(CountChunk(X))[0] == pytest.approx(sum(expected), abs=12 * ROUNDING)
    group = CountChunk(X, Units(np.array([0, X.shape[0]])))
    assert query.total(group)[0] == pytest.approx(np.mean(expected), abs=ROUNDING)


@pytest.mark.parametrize("concentrations", [(0.0, 0.0), (0.5, 8.0)])
def test_gains_over_other_topics_are_differences(seed, concentrations):
    X, topics, weights = made(seed)
    others = np.random.default_rng(seed + 1).dirichlet(np.full(WORDS, 0.5), size=2)
    shares, words = np.array([0.3, 0.7]), np.random.default_rng(seed).dirichlet(np.ones(WORDS))
    # Both over the same word frequencies, as one topic that all documents have.
    alone = HeldOutWords(words[None], np.ones(1), 1.0)
    own, other = (topics, weights, concentrations[0]), (others, shares, concentrations[1])
    found = HeldOutWords(*own, HeldOutWords(*other))(X, None)
    each = [HeldOutWords(*of, alone)(X, None) for of in (own, other)]
    np.testing.assert_allclose(found, each[0] - each[1], atol=ROUNDING)
    # Over the frequencies to which they mix, nothing has to be said.
    mixed = HeldOutWords((weights @ topics)[None], np.ones(1), 1.0)
    one, other = (HeldOutWords(topics, weights, 0.5, over)(X, None) for over in (mixed, None))
    np.testing.assert_allclose(one, other, atol=ROUNDING)


def gain_of(rng, k, d, concentration, against):
    """Topics of which none rules a word out, as those that are released."""
    topics = rng.dirichlet(np.full(d, 0.3), k)
    topics = 0.9999 * topics + 0.0001 * topics.mean(axis=0)
    return HeldOutWords(topics, rng.dirichlet(np.ones(k)), concentration, against)


@pytest.mark.parametrize("concentrations", [(1.0, None), (0.5, 8.0), (0.0, 1.0)])
@pytest.mark.parametrize(("k", "d", "longest"), [(1, 60, 50), (2, 30, 3), (7, 300, 250)])
def test_a_gain_does_not_depend_on_its_batch(k, d, longest, concentrations, seed, cache_of):
    """Else replacing one document would move, by a little, what all others add."""
    rng = np.random.default_rng(seed)
    own, others = concentrations
    against = None if others is None else gain_of(rng, k + 1, d, others, None)
    gain, X = gain_of(rng, k, d, own, against), documents_of_any_length(rng, 300, d, longest)
    # Some documents have words of one half alone.
    X[3:20, hidden_words(d)] = X[20:40, ~hidden_words(d)] = 0
    X = sp.csr_matrix(X)
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
    other = HeldOutWords(np.full((1, 40), 1 / 40), np.ones(1), 1.0)
    for against in (None, other):
        gain = HeldOutWords(topics, weights, concentration, against)
        found = gain(X, None)
        assert np.isfinite(found).all()
        assert found[[0, 1, 7]] == pytest.approx(0)  # nothing is asked
        each = [gain(X[row], None)[0] for row in range(X.shape[0])]
        np.testing.assert_array_equal(found, each)
        assert abs(gains_of(topics, weights, concentration, against).total(CountChunk(X))) <= 60
