"""Public topics, adapted to word frequencies; numbers shrunk towards one of two centres."""

import numpy as np
import pytest

from sktensor_dp.topics.denoise import denoise_topics, posterior_moments
from sktensor_dp.topics.public_topics import adapted_topics, on_all_words, shares_of_topics

D = 300


def made(rng, k=3):
    public = rng.dirichlet(np.full(D, 0.2), k)
    public[:, :30] = 0
    return public / public.sum(axis=1, keepdims=True), rng.dirichlet(np.full(D, 2.0))


def test_adapted_topics_mix_to_the_frequencies(seed):
    rng = np.random.default_rng(seed)
    public, frequencies = made(rng)
    weights = rng.dirichlet(np.full(3, 5.0))
    topics = adapted_topics(public, weights, frequencies)
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    # Words that all topics lack stay out of it, at first; all change alike.
    ratio = topics / on_all_words(public, frequencies)
    np.testing.assert_allclose(ratio[0] / ratio[0, 40], ratio[1] / ratio[1, 40], rtol=1e-6)
    assert 0.5 * np.abs(weights @ topics - frequencies).sum() < 0.02


def test_shares_are_those_that_were_mixed(seed):
    rng = np.random.default_rng(seed)
    public, frequencies = made(rng)
    weights = rng.dirichlet(np.full(3, 5.0))
    frequencies[30:] = frequencies[30:].sum() * (weights @ public)[30:]
    found = shares_of_topics(public, frequencies)
    expected = np.maximum(weights, 0.2 / 3)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.02)


def test_a_number_is_shrunk_towards_the_nearer_centre(seed):
    rng = np.random.default_rng(seed)
    words, public = np.full(D, 1.0), rng.choice([0.2, 3.0], D)
    near = rng.random(D) < 0.5
    truth = np.where(near, public, words)
    noisy = truth + 0.3 * rng.standard_normal(D)
    mean, variance, kept = posterior_moments(noisy, (words, public), 0.3)
    # Neither centre by itself does as well; noise of .3 is left by neither.
    errors = [np.abs(guess - truth).mean() for guess in (mean, noisy, words, public)]
    assert errors[0] < 0.7 * min(errors[1:])
    assert (variance >= 0).all()
    assert (kept >= 0).all()
    assert (kept <= 1).all()


def test_moments_are_those_of_the_prior_integrated_by_hand():
    centres = (np.full(5, 1.0), np.full(5, 3.0))
    noisy = np.array([1.0, 1.4, 2.0, 2.6, 3.0])
    mean, variance, kept = posterior_moments(noisy, centres, 0.5, n_iter=0)
    scales = np.concatenate([[0.0], 2.0 ** np.arange(-4, 6)])
    prior = np.r_[0.5, np.full(10, 0.05)] / 2
    for place, value in enumerate(noisy):
        found = []
        for centre in (1.0, 3.0):
            for scale, share in zip(scales * centre, prior, strict=True):
                total = scale**2 + 0.25
                mass = share * np.exp(-0.5 * (value - centre) ** 2 / total) / total**0.5
                keeps = scale**2 / total
                found.append((mass, centre + keeps * (value - centre), keeps * 0.25, keeps))
        mass, at, spread, keeps = np.array(found).T
        mass /= mass.sum()
        assert mean[place] == pytest.approx(mass @ at)
        assert variance[place] == pytest.approx(mass @ (spread + at**2) - (mass @ at) ** 2)
        assert kept[place] == pytest.approx(mass @ keeps)


def test_large_noise_leaves_topics_what_they_were(seed):
    rng = np.random.default_rng(seed)
    public, _ = made(rng)
    weights = np.full(3, 1 / 3)
    public = on_all_words(public, np.full(D, 1 / D))
    counts, sigma = weights[:, None] * public, 0.003
    noisy = counts + sigma * rng.standard_normal(counts.shape)
    words = weights @ public
    kept, _, _ = denoise_topics(noisy, sigma, words, 1e-5, public=public)
    alone, _, _ = denoise_topics(noisy, sigma, words, 1e-5)
    far = [0.5 * np.abs(found - public).sum(axis=1).max() for found in (kept, alone)]
    # A word has .003 on average, a third of it in counts: all of it is noise. Measured over seeds
    # 0 to 99: at most .19 and .61; without public topics at least .28.
    assert far[0] < 0.25
    assert far[0] < 0.75 * far[1]


def test_without_noise_topics_are_their_counts():
    rng = np.random.default_rng(0)
    public, words = made(rng)
    counts = rng.dirichlet(np.ones(D), 3) / 3
    found, _, _ = denoise_topics(counts, 0.0, words, 0.0, public=public)
    np.testing.assert_allclose(found, 3 * counts)
