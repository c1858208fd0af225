"""Noisy word frequencies and topics, shrunk to what the noise leaves likely."""

import numpy as np
import pytest
from scipy.stats import gamma

from sktensor_dp.topics.shrinkage import (
    denoise_frequencies,
    denoise_topics,
    posterior_moments,
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


def test_without_noise_only_negative_frequencies_change():
    noisy = np.array([0.3, -0.1, 0.0, 0.7])
    np.testing.assert_array_equal(denoise_frequencies(noisy, 0.0), [0.3, 0.0, 0.0, 0.7])
    np.testing.assert_array_equal(shrink_deviations(noisy, np.ones(4), 0.0), noisy)


def test_noise_shrinks_to_almost_nothing_signal_stays_and_mixtures_come_closer(seed):
    rng = np.random.default_rng(seed)
    noise, scale = rng.normal(size=500), np.full(500, 0.3)
    # Measured over seeds 0 to 99: at most 0.18.
    assert np.linalg.norm(shrink_deviations(noise, scale, 1.0)) < 0.3 * np.linalg.norm(noise)
    noisy = rng.choice([-5.0, 5.0], size=500) + 0.1 * rng.normal(size=500)
    np.testing.assert_allclose(shrink_deviations(noisy, scale, 0.1), noisy, rtol=0.02)
    truth = np.where(rng.random(1000) < 0.1, 4 * rng.normal(size=1000), 0)
    noisy = truth + rng.normal(size=1000)
    shrunk = shrink_deviations(noisy, np.ones(1000), 1.0)
    # Measured over seeds 0 to 99: at most 0.52; doing nothing is 1, zeros above 0.97.
    assert np.linalg.norm(shrunk - truth) < 0.65 * np.linalg.norm(noisy - truth)


def topics_and_counts(rng, d=400, k=4):
    base = zipf(d)
    topics = rng.dirichlet(40 * base, size=k)
    weights = rng.dirichlet(np.full(k, 20.0))
    return topics, weights, weights[:, None] * topics


def test_topics_without_noise_are_exact(seed):
    rng = np.random.default_rng(seed)
    topics, weights, counts = topics_and_counts(rng)
    found, unigram, shares = denoise_topics(7 * counts, 0.0, counts.sum(axis=0), 0.0)
    np.testing.assert_allclose(found, topics, atol=1e-12)
    np.testing.assert_allclose(unigram, counts.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(shares, weights, atol=1e-12)


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


def test_moments_are_those_of_the_prior_integrated_by_hand(monkeypatch):
    monkeypatch.setattr("sktensor_dp.topics.shrinkage.TOPIC_STEPS", 0)
    noisy, centre = np.array([-0.5, 1.4, 2.0, 2.6, 3.0]), 3.0
    mean, variance = posterior_moments(noisy, np.full(5, centre), 0.5)
    ratios = np.r_[2.0**-6.5, 2.0 ** (np.arange(-11, 21) / 2)]
    ends = np.concatenate([[0.0], np.sqrt(ratios[1:] * ratios[:-1]), [np.inf]])
    widths = np.r_[ratios[0], ratios[1:] * np.log(2) / 4]
    # Half of the prior is what is expected itself, and an eighth of the rest is of each gamma.
    prior = np.zeros(len(ratios))
    for shape in (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03):
        prior += np.diff(gamma.cdf(ends, shape, scale=1 / shape)) / 16
    for place, value in enumerate(noisy):
        found = []
        for ratio, width, share in zip(
            np.r_[1.0, ratios], np.r_[0.0, widths], np.r_[0.5, prior], strict=True
        ):
            at, spread = centre * ratio, (centre * width) ** 2
            total = spread + 0.25
            mass = share * np.exp(-0.5 * (value - at) ** 2 / total) / total**0.5
            found.append((mass, at + spread / total * (value - at), spread / total * 0.25))
        mass, at, spread = np.array(found).T
        mass /= mass.sum()
        assert mean[place] == pytest.approx(mass @ at)
        left = mass @ (spread + at**2) - (mass @ at) ** 2
        assert variance[place] == pytest.approx(left)


@pytest.mark.parametrize(("sigma", "most"), [(1e-3, 1.1), (0.1, 0.97), (1.0, 0.93)])
def test_words_of_few_topics_come_out_nearer_than_by_normals(seed, sigma, most):
    """Most words are nearly absent, and few are many times as frequent as is expected."""
    rng = np.random.default_rng(seed)
    truth = rng.gamma(0.2, 5.0, 2000)
    noisy = truth + sigma * rng.standard_normal(2000)
    centre = np.ones(2000)
    mean, _ = posterior_moments(noisy, centre, sigma)
    normal = np.maximum(centre + shrink_deviations(noisy - centre, centre, sigma), 0.0)
    errors = [np.linalg.norm(guess - truth) for guess in (mean, normal, np.maximum(noisy, 0))]
    # Where noise is next to nothing, so is all that either could do about it.
    assert errors[0] < most * min(errors[1:])


def test_expected_numbers_are_used_as_far_as_the_evidence_goes(seed):
    rng = np.random.default_rng(seed)
    truth = zipf(400)
    for sigma in (1e-4, 1e-3, 1e-2):
        noisy = truth + sigma * rng.standard_normal(400)
        alone = denoise_frequencies(noisy, sigma)
        right = denoise_frequencies(noisy, sigma, expected=truth)
        wrong = denoise_frequencies(noisy, sigma, expected=rng.permutation(truth))
        assert np.linalg.norm(right - truth) <= np.linalg.norm(alone - truth)
        assert (right > 0).all()
        # Noise that hides all words leaves no evidence against anything.
        if sigma < 1e-2:
            np.testing.assert_array_equal(wrong, alone)
