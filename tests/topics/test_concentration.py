"""The concentration is read off a second moment, as far as its noise allows."""

import numpy as np
import pytest

from sktensor_dp.topics.concentration import USUAL, PairEvidence


def moments(seed, concentration, k=4, d=30):
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.full(d, 0.2), size=k), rng.dirichlet(np.full(k, 5.0))
    mean = weights @ topics
    single = topics.T @ (weights[:, None] * topics)
    pairs = (single + concentration * np.outer(mean, mean)) / (concentration + 1)
    return topics, weights, mean, pairs


@pytest.mark.parametrize("concentration", [0.0, 0.3, 1.0, 4.0])
def test_exact_moments_give_the_concentration(seed, concentration):
    topics, weights, mean, pairs = moments(seed, concentration)
    evidence = PairEvidence(None, mean, 0.0, pairs.__matmul__, 0.0)
    assert evidence.concentration(topics, weights) == pytest.approx(concentration)
    # On some of the words, and with a known variance in their frequencies.
    words = np.arange(0, 30, 2)
    part = pairs[np.ix_(words, words)]
    evidence = PairEvidence(words, mean[words], 0.0, part.__matmul__, 0.0)
    assert evidence.concentration(topics, weights) == pytest.approx(concentration)


def test_noise_in_frequencies_does_not_bias_it(seed):
    topics, weights, mean, pairs = moments(seed, 1.0)
    rng, sigma, shares = np.random.default_rng(seed), 0.02, []
    for _ in range(400):
        noisy = mean + sigma * rng.standard_normal(mean.shape)
        evidence = PairEvidence(None, noisy, sigma**2, pairs.__matmul__, 0.0)
        shares.append(1 / (1 + evidence.concentration(topics, weights)))
    # The mean of 400, five of its deviations off at most; the variance unmended adds 0.05 or more.
    assert np.mean(shares) == pytest.approx(0.5, abs=5 * np.std(shares) / 20 + 1e-3)


def test_nothing_but_noise_leaves_what_is_usual(seed):
    topics, weights, mean, pairs = moments(seed, 0.0)
    evidence = PairEvidence(None, mean, 0.0, pairs.__matmul__, 1e3)
    assert evidence.concentration(topics, weights) == pytest.approx(USUAL, rel=1e-3)
