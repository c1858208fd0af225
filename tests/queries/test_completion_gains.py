"""What topics gain on half of a document's words: by a loop, and how far one document moves it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.privacy.curator import sensitivity
from sktensor_dp.queries.counts import CountChunk
from sktensor_dp.queries.scores import MOST_GAIN, TopicGain, gains_of
from sktensor_dp.queries.units import Units
from sktensor_dp.topics.inference import collapsed_proportions, topic_posterior

WORDS = 40
# Of one document, in nats. Proportions come from sums of some 20 words in each of 5 steps, of
# probabilities that are rounded by 6e-8: they are off by 5 * 20 * 6e-8 if all errors add up, by
# 1e-6 if they do not, and so is the logarithm of each of some 500 words.
ROUNDING = 1e-3


def made(seed):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(WORDS, 0.2), size=3)
    X = sp.csr_matrix(rng.poisson(rng.choice([0.05, 0.5, 20.0], size=(12, 1)), (12, WORDS)))
    return X.astype(np.float64), topics, rng.dirichlet(np.ones(3))


def asked_for(row, divides_words):
    """How many tokens of each word of a document are asked for."""
    hidden = np.array([(word * 2654435761 >> 16) & 1 for word in range(WORDS)])
    return (row + hidden) // 2 if divides_words else row * hidden


@pytest.mark.parametrize("divides_words", [False, True])
@pytest.mark.parametrize("concentration", [0.0, 0.5, 8.0])
def test_the_sum_is_that_of_documents_by_themselves(seed, concentration, divides_words):
    X, topics, weights = made(seed)
    query = gains_of(topics, weights, concentration, None, divides_words)
    expected = 0.0
    for row in X.toarray():
        asked = asked_for(row, divides_words)
        seen = sp.csr_matrix((row - asked)[None])
        if concentration == 0:
            shares = topic_posterior(seen, topics, weights)[0]
        else:
            gamma = collapsed_proportions(seen, topics, weights * concentration, n_iter=5)[0]
            shares = gamma / gamma.sum()
        ratio = np.log(shares @ topics) - np.log(weights @ topics)
        expected += np.clip(asked @ ratio, -MOST_GAIN, MOST_GAIN)
    assert query.total(CountChunk(X))[0] == pytest.approx(expected, abs=12 * ROUNDING)


def test_tokens_of_one_word_are_in_both_halves():
    topics = np.eye(2) * 0.98 + 0.01
    X = sp.csr_matrix(np.array([[9.0, 0.0], [0.0, 8.0], [1.0, 0.0], [0.0, 1.0]]))
    divided = gains_of(topics, np.array([0.5, 0.5]), 0.0, None, True)
    # Four of nine, or of eight, are asked for and certain; of one there is nothing to go by.
    nats = np.log(0.99 / 0.5)
    assert divided.total(CountChunk(X))[0] == pytest.approx(8 * nats, abs=ROUNDING)
    apart = gains_of(topics, np.array([0.5, 0.5]), 0.0)
    assert apart.total(CountChunk(X))[0] == pytest.approx(0.0, abs=ROUNDING)


@pytest.mark.parametrize("divides_words", [False, True])
def test_neighbours_stay_within_the_bound_and_reach_it(seed, divides_words):
    X, topics, weights = made(seed)
    # A document of one topic's words gains the most there is; one of words that topics of its
    # other words exclude loses as much.
    apart = np.kron(np.eye(2), np.full(WORDS // 2, 2 / WORDS)) * 0.999 + 0.001 / WORDS
    same, crossed = np.zeros((2, WORDS))
    hidden = np.array([bool((word * 2654435761 >> 16) & 1) for word in range(WORDS)])
    first = np.arange(WORDS) < WORDS // 2
    same[first] = 9.0
    crossed[(first & hidden) | (~first & ~hidden)] = 1.0 if divides_words else 9.0
    query = gains_of(apart, np.array([0.5, 0.5]), 1.0, None, divides_words)
    totals = [query.total(CountChunk(sp.csr_matrix(row[None])))[0] for row in (same, crossed)]
    assert totals[0] - totals[1] == pytest.approx(2 * MOST_GAIN)
    query = gains_of(topics, weights, 1.0, None, divides_words)
    ones = [query.total(CountChunk(X[row]))[0] for row in range(X.shape[0])]
    for relation, moved in (("replace_one", max(ones) - min(ones)), ("add_remove", np.abs(ones))):
        assert np.max(moved) <= sensitivity(query, "l2", relation)
    assert sensitivity(query, "l1", "add_remove") == pytest.approx(MOST_GAIN, rel=1e-5)


def test_a_group_counts_as_the_mean_of_its_documents(seed):
    X, topics, weights = made(seed)
    query = gains_of(topics, weights, 1.0)
    ones = np.array([query.total(CountChunk(X[row]))[0] for row in range(X.shape[0])])
    group = CountChunk(X, Units(np.array([0, X.shape[0]])))
    assert query.total(group)[0] == pytest.approx(ones.mean(), rel=1e-9, abs=1e-12)


def test_sums_in_threads_leave_filters_of_warnings_alone():
    """They are everyone's: overlapping blocks would leave behind what another one has set."""
    X, topics, weights = made(0)
    query, before = gains_of(topics, weights, 0.5), list(warnings.filters)
    seen = []

    def looked(*of):
        seen.append(list(warnings.filters) == before)
        return query.score(*of)

    replace(query, score=looked).total(CountChunk(X))
    assert seen == [True]


@pytest.mark.parametrize("concentrations", [(0.0, 0.0), (0.5, 8.0)])
def test_gains_over_other_topics_are_differences(seed, concentrations):
    X, topics, weights = made(seed)
    others = np.random.default_rng(seed + 1).dirichlet(np.full(WORDS, 0.5), size=2)
    shares, words = np.array([0.3, 0.7]), np.random.default_rng(seed).dirichlet(np.ones(WORDS))
    other = TopicGain(others, shares, concentrations[1])
    found = TopicGain(topics, weights, concentrations[0], other)(X, None)
    # Both over the same word frequencies, as one topic that all documents have.
    alone = TopicGain(words[None], np.ones(1), 1.0)
    each = [
        TopicGain(of, share, concentration, alone)(X, None)
        for of, share, concentration in (
            (topics, weights, concentrations[0]), (others, shares, concentrations[1])
        )
    ]  # fmt: skip
    np.testing.assert_allclose(found, each[0] - each[1], atol=ROUNDING)
    # Over the frequencies to which they mix, nothing has to be said.
    mixed = TopicGain((weights @ topics)[None], np.ones(1), 1.0)
    np.testing.assert_allclose(
        TopicGain(topics, weights, 0.5, mixed)(X, None), TopicGain(topics, weights, 0.5)(X, None),
        atol=ROUNDING,
    )  # fmt: skip
    query = gains_of(topics, weights, concentrations[0], other)
    ones = [query.total(CountChunk(X[row]))[0] for row in range(X.shape[0])]
    assert max(ones) - min(ones) <= sensitivity(query, "l2", "replace_one")
    assert np.max(np.abs(ones)) <= sensitivity(query, "l2", "add_remove")
