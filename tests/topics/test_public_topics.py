"""Public topics, adapted to word frequencies; numbers shrunk towards one of two centres."""

import numpy as np
import pytest
from scipy.stats import gamma

from sktensor_dp.topics.shrinkage import (
    adapted_topics,
    denoise_topics,
    on_all_words,
    posterior_moments,
    shares_of_topics,
    shrink_deviations,
)

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
    noisy = np.array([-0.5, 1.4, 2.0, 2.6, 3.0])
    mean, variance, kept = posterior_moments(noisy, centres, 0.5, n_iter=0)
    ratios = np.r_[2.0**-6.5, 2.0 ** (np.arange(-11, 21) / 2)]
    ends = np.concatenate([[0.0], np.sqrt(ratios[1:] * ratios[:-1]), [np.inf]])
    widths = np.r_[ratios[0], ratios[1:] * np.log(2) / 4]
    # Half of the prior is what is expected itself, and an eighth of the rest is of each gamma.
    prior = np.zeros(len(ratios))
    for shape in (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03):
        prior += np.diff(gamma.cdf(ends, shape, scale=1 / shape)) / 16
    for place, value in enumerate(noisy):
        found = []
        for centre in (1.0, 3.0):
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
        assert kept[place] == pytest.approx(min(left / 0.25, 1.0))


@pytest.mark.parametrize("sigma", [0.05, 0.5, 5.0])
def test_the_mean_follows_a_number_as_fast_as_is_said(seed, sigma):
    rng = np.random.default_rng(seed)
    centre = rng.gamma(1.0, size=40) + 0.01
    noisy, step = centre * rng.gamma(0.5, 2.0, 40) + sigma * rng.standard_normal(40), 1e-3 * sigma
    # Without steps the prior stays what it is.
    low, _, _ = posterior_moments(noisy - step, (centre,), sigma, n_iter=0)
    high, _, _ = posterior_moments(noisy + step, (centre,), sigma, n_iter=0)
    _, _, kept = posterior_moments(noisy, (centre,), sigma, n_iter=0)
    # To second order: the third derivative of a posterior mean is a few at most in units of noise.
    slope = (high - low) / (2 * step)
    np.testing.assert_allclose(kept, np.minimum(slope, 1.0), atol=1e-4)


@pytest.mark.parametrize(("sigma", "most"), [(1e-3, 1.1), (0.1, 0.97), (1.0, 0.93)])
def test_words_of_few_topics_come_out_nearer_than_by_normals(seed, sigma, most):
    """Most words are nearly absent, and few are many times as frequent as is expected."""
    rng = np.random.default_rng(seed)
    truth = rng.gamma(0.2, 5.0, 2000)
    noisy = truth + sigma * rng.standard_normal(2000)
    centre = np.ones(2000)
    mean, _, _ = posterior_moments(noisy, (centre,), sigma)
    normal = np.maximum(centre + shrink_deviations(noisy - centre, centre, sigma), 0.0)
    errors = [np.linalg.norm(guess - truth) for guess in (mean, normal, np.maximum(noisy, 0))]
    # Where noise is next to nothing, so is all that either could do about it.
    assert errors[0] < most * min(errors[1:])


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
