"""The estimate is the largest concentration that released moments do not reject."""

import numpy as np
import pytest

from sktensor_dp.topics.concentration import (
    LEAST_CONCENTRATION,
    ExplainedTopics,
    PairsOfTopics,
    WordPairs,
    concentration_of_pairs,
    expected_topics,
    largest_not_rejected,
)


def explained(limit):
    """Misfit 1 up to a concentration, and 9 beyond."""

    def explain(start, concentration):
        misfit = 1.0 if concentration <= limit else 9.0
        return ExplainedTopics(start.topics, start.weights, concentration, misfit)

    return explain


@pytest.mark.parametrize("limit", [0.1, 0.7, 4.0, 19.0])
def test_the_search_finds_where_misfit_jumps(limit):
    single = ExplainedTopics(np.eye(2), np.full(2, 0.5), 0.0, 1.0)
    found = largest_not_rejected(explained(limit), single, 2.0)
    assert limit / 1.05 <= found.concentration <= limit


def test_the_search_ends_at_one_topic_each_or_with_nothing_rejected():
    single = ExplainedTopics(np.eye(2), np.full(2, 0.5), 0.0, 1.0)
    assert largest_not_rejected(explained(LEAST_CONCENTRATION / 2), single, 2.0) is single
    assert largest_not_rejected(explained(100.0), single, 2.0) is None


def moments(seed, concentration, k=4, d=60):
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.full(d, 0.1), size=k), np.full(k, 1 / k)
    mean = weights @ topics
    single = topics.T @ (weights[:, None] * topics)
    pairs = (single + concentration * np.outer(mean, mean)) / (concentration + 1)
    return topics, weights, mean, pairs


def noise(seed, d, sigma):
    half = np.triu(np.random.default_rng([seed, 1]).normal(size=(d, d)), 1)
    return sigma * (half + half.T)


@pytest.mark.parametrize("concentration", [0.0, 0.3, 1.0])
def test_pairs_tell_the_concentration(seed, concentration):
    topics, weights, mean, pairs = moments(seed, concentration)
    start = 0.8 * topics + 0.2 * mean
    sigma = 1e-5
    noisy = pairs + noise(seed, len(mean), sigma)
    found = concentration_of_pairs(start, weights, WordPairs(noisy, mean, sigma))
    # Rotations that are not found make it smaller.
    assert found <= 1.2 * concentration
    assert found > 0.3 * concentration or concentration == 0
    # The same on words whose frequencies do not sum to 1.
    quarter = WordPairs(0.25 * noisy, 0.5 * mean, 0.25 * sigma)
    scaled = concentration_of_pairs(start, weights, quarter)
    assert scaled == pytest.approx(found)


@pytest.mark.parametrize("concentration", [0.3, 1.0, 4.0])
def test_known_topics_tell_the_concentration(seed, concentration):
    topics, weights, mean, pairs = moments(seed, concentration)
    sigma = 1e-5
    noisy = pairs + noise(seed, len(mean), sigma)
    found = PairsOfTopics.of(topics, WordPairs(noisy, mean, sigma)).concentration(weights)
    # The relative error of 1 + concentration is noise, over what is seen between topics.
    between = topics.T @ (weights[:, None] * topics) - np.outer(mean, mean)
    np.fill_diagonal(between, 0.0)
    error = 2**0.5 * sigma * (1 + concentration) / np.linalg.norm(between)
    assert abs((1 + found) / (1 + concentration) - 1) < 5 * error
    # Of mixtures the same as of topics that are these.
    mixtures = np.eye(len(weights)) + 0.1 * np.random.default_rng(seed).random(2 * weights.shape)
    mixed = [
        PairsOfTopics.of(of, WordPairs(noisy, mean, sigma)).concentration(weights, by)
        for of, by in ((topics, mixtures), (mixtures @ topics, None))
    ]
    assert mixed[0] == pytest.approx(mixed[1])
    single = PairsOfTopics.of(mean[None], WordPairs(pairs, mean, sigma))
    assert single.concentration(np.ones(1)) is None


def test_noise_alone_rejects_nothing(seed):
    topics, weights, mean, pairs = moments(seed, 1.0)
    noisy = pairs + noise(seed, len(mean), 10.0)
    released = WordPairs(noisy, mean, 10.0)
    assert concentration_of_pairs(topics, weights, released) is None
    # Noise that looks like topics does not with the other sign.
    other = released._replace(matrix=2 * pairs - noisy)
    found = [PairsOfTopics.of(topics, one).concentration(weights) for one in (released, other)]
    assert None in found


@pytest.mark.parametrize(
    ("concentration", "length", "expected"), [(0.0, 9, 1), (1.0, 3, 1 + 1 / 2 + 1 / 3), (5.0, 1, 1)]
)
def test_expected_topics_of_a_document(concentration, length, expected):
    assert expected_topics(concentration, length) == pytest.approx(expected)
