import numpy as np
import pytest

from sktensor_dp.topics.shrinkage import (
    denoise_frequencies,
    denoise_topics,
    shrink_deviations,
    shrink_sampled,
)


def zipf(d):
    frequencies = 1 / np.arange(1, d + 1)
    return frequencies / frequencies.sum()


@pytest.mark.parametrize("relative", [0.1, 1.0, 10.0])
def test_frequencies_come_closer_at_every_noise_level(seed, relative):
    truth = zipf(800)
    sigma = relative * np.median(truth)
    noisy = truth + sigma * np.random.default_rng(seed).normal(size=800)
    estimate = denoise_frequencies(noisy, sigma)
    assert (estimate > 0).all()
    error = np.linalg.norm(estimate - truth) / np.linalg.norm(noisy - truth)
    # Measured over seeds 0 to 99: at most 0.96, 0.74 and 0.44.
    assert error < {0.1: 1.01, 1.0: 0.8, 10.0: 0.6}[relative]
    zeros = np.linalg.norm(truth) / np.linalg.norm(noisy - truth)
    assert error < zeros


def test_noiseless_frequencies_lose_negative_values_only():
    noisy = np.array([0.3, -0.1, 0.0, 0.7])
    np.testing.assert_array_equal(denoise_frequencies(noisy, 0.0), [0.3, 0.0, 0.0, 0.7])


@pytest.mark.parametrize("noisy", [np.zeros(20), np.full(20, -1.0), np.r_[1e6, np.zeros(19)]])
def test_odd_frequencies_give_positive_numbers(noisy):
    estimate = denoise_frequencies(noisy, 0.5)
    assert np.isfinite(estimate).all()
    assert (estimate > 0).all()


def test_deviations_shrink_between_zero_and_themselves(seed):
    rng = np.random.default_rng(seed)
    noisy, scale = rng.standard_t(2, size=300), rng.gamma(1.0, size=300)
    shrunk = shrink_deviations(noisy, scale, 0.7)
    factor = shrunk / noisy
    assert (factor >= 0).all()
    assert (factor <= 1).all()


def test_pure_noise_shrinks_to_almost_nothing_and_signal_stays(seed):
    rng = np.random.default_rng(seed)
    scale = np.full(500, 0.3)
    noise = rng.normal(size=500)
    # Measured over seeds 0 to 99: at most 0.18.
    assert np.linalg.norm(shrink_deviations(noise, scale, 1.0)) < 0.3 * np.linalg.norm(noise)
    signal = rng.choice([-1.0, 1.0], size=500) * 5
    noisy = signal + 0.1 * rng.normal(size=500)
    shrunk = shrink_deviations(noisy, scale, 0.1)
    np.testing.assert_allclose(shrunk, noisy, rtol=0.02)


def test_deviations_come_closer(seed):
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(1000) < 0.1, 4 * rng.normal(size=1000), 0)
    noisy = truth + rng.normal(size=1000)
    shrunk = shrink_deviations(noisy, np.ones(1000), 1.0)
    error = np.linalg.norm(shrunk - truth) / np.linalg.norm(noisy - truth)
    # Measured over seeds 0 to 99: at most 0.52; doing nothing is 1, zeros above 0.97.
    assert error < 0.65


def test_without_noise_deviations_are_returned():
    noisy = np.array([1.0, -2.0])
    np.testing.assert_array_equal(shrink_deviations(noisy, np.ones(2), 0.0), noisy)


def topics_and_counts(rng, d=400, k=4):
    base = zipf(d)
    topics = rng.dirichlet(40 * base, size=k)
    weights = rng.dirichlet(np.full(k, 20.0))
    return topics, weights, weights[:, None] * topics


def test_topics_without_noise_are_exact(seed):
    topics, weights, counts = topics_and_counts(np.random.default_rng(seed))
    found, unigram, shares = denoise_topics(7 * counts, 0.0, counts.sum(axis=0), 0.0)
    np.testing.assert_allclose(found, topics, atol=1e-12)
    np.testing.assert_allclose(unigram, counts.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(shares, weights, atol=1e-12)


def variation(a, b):
    return np.abs(a - b).sum(axis=-1).mean() / 2


@pytest.mark.parametrize("sigma", [1e-4, 1e-3, 1e-2])
def test_topics_beat_both_the_noisy_ones_and_the_unigram(seed, sigma):
    rng = np.random.default_rng(seed)
    topics, _, counts = topics_and_counts(rng)
    noisy = counts + sigma * rng.normal(size=counts.shape)
    unigram = counts.sum(axis=0)
    found, base, shares = denoise_topics(
        noisy, sigma, unigram + sigma * rng.normal(size=unigram.size), sigma
    )
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose([base.sum(), shares.sum()], 1)
    plain = np.maximum(noisy, 0)
    plain /= plain.sum(axis=1, keepdims=True)
    assert variation(found, topics) < variation(plain, topics)
    if sigma < 1e-2:
        assert variation(found, topics) < variation(np.tile(unigram, (4, 1)), topics)


def test_hopeless_noise_leaves_the_unigram(seed):
    rng = np.random.default_rng(seed)
    _, _, counts = topics_and_counts(rng)
    noisy = counts + 100 * rng.normal(size=counts.shape)
    found, base, _ = denoise_topics(noisy, 100.0, counts.sum(axis=0), 1e-6)
    # A topic's own deviation has to be evident: measured over seeds 0 to 99 at
    # most 0.29 from the base (median 0.11); unshrunk topics would be 0.9 from it, and
    # topics of which small ones make up for all that a large one lacks up to 0.64.
    assert variation(found, np.tile(base, (4, 1))) < 0.4
    assert variation(base, counts.sum(axis=0)) < 0.01


@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_unused_topics_and_empty_data_give_distributions(sigma):
    unigram = np.array([0.5, 0.5, 0.0])
    counts = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    for expected, frequencies in ((counts, unigram), (0 * counts, 0 * unigram)):
        topics, base, weights = denoise_topics(expected, sigma, frequencies, sigma)
        for distributions in (topics, base, weights):
            assert (distributions >= 0).all()
            np.testing.assert_allclose(distributions.sum(axis=-1), 1)


@pytest.mark.parametrize("n_tokens", [2000, 10**8])
def test_sampled_topics_are_shrunk_as_far_as_their_tokens_ask(seed, n_tokens):
    rng = np.random.default_rng(seed)
    base, weights = rng.dirichlet(np.full(400, 2.0)), np.array([0.3, 0.7])
    true = rng.dirichlet(400 * base, size=2)
    base = weights @ true
    seen = rng.multinomial((n_tokens * weights).astype(int), true)
    seen = seen / seen.sum(axis=1, keepdims=True)
    found = shrink_sampled(seen, weights, base, n_tokens)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    if n_tokens > 10**6:
        np.testing.assert_allclose(found, seen, atol=2e-6)
    else:
        assert (found > 0).all()
        assert (true * np.log(true / found)).sum() < 0.5
        assert np.abs(found - true).sum() < 0.9 * np.abs(seen - true).sum()
