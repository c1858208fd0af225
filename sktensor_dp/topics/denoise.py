"""Word frequencies and topics from noisy ones, at a known noise level.

Both estimators are empirical Bayes: the prior is itself fitted to the noisy
values, as a mixture with fixed components and free weights (nonparametric
maximum likelihood; Kiefer & Wolfowitz, 1956), so no constant has to be tuned and
what is indistinguishable from noise is shrunk away. All of it is post-processing.
"""

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.public_topics import adapted_topics

# Grid of prior means per fit; more changes the estimates by less than 1 % of the noise.
N_MEANS = 50
# Prior standard deviations of a topic's deviation from the unigram, relative to
# the unigram's own share: from none at all to a word 32 times as frequent.
RELATIVE_SCALES = np.concatenate([[0.0], 2.0 ** np.arange(-4, 6)])
# A word keeps at least this share of its unigram frequency in every topic, so
# that no document gets probability zero.
LEAST_SHARE = 1e-3
# By how much a word is multiplied in all topics so that they mix to its frequency, at most. Topics
# that are told from noise need less than 4, and 2 to 4 are equally good on synthetic documents.
MOST_RESCALED = 3.0
# Of the estimate without public knowledge, in that with it.
UNEXPECTED = 0.05


def _mixture_weights(log_likelihood: Floats, weights: Floats, n_iter: int) -> tuple[Floats, Floats]:
    """Posterior component probabilities and the evidence of each value, after an EM fit."""
    highest = log_likelihood.max(axis=1, keepdims=True)
    likelihood = np.exp(log_likelihood - highest)
    # Of few words, steps take as long as numpy takes to begin one.
    weights, share, inverse = weights.copy(), np.empty_like(weights), np.empty(len(likelihood))
    number = np.array(float(len(likelihood)))
    for _ in range(n_iter):
        likelihood.dot(weights, inverse)
        np.reciprocal(inverse, inverse)
        inverse.dot(likelihood, share)
        np.multiply(weights, share, weights)
        np.divide(weights, number, weights)
    posterior = likelihood * weights
    sums = posterior.sum(axis=1, keepdims=True)
    return posterior / sums, (highest + np.log(sums)).ravel()


def denoise_frequencies(
    noisy: Floats, sigma: float | Floats, n_iter: int = 100, *, expected: Floats | None = None
) -> Floats:
    """Posterior means of non-negative numbers seen under Gaussian noise.

    Parameters
    ----------
    noisy : ndarray of shape (d,)
        Numbers with noise.
    sigma : float or ndarray of shape (d,)
        Standard deviation of the noise, of each number if they differ.
    n_iter : int, default=100
        EM steps of the fit of the prior.
    expected : ndarray of shape (d,) or None, default=None
        Positive numbers that public knowledge expects. They are what is shrunk towards,
        unless the evidence says that the numbers are better explained without.

    Returns
    -------
    ndarray of shape (d,)
        Estimates.

    Notes
    -----
    The prior is a mixture of narrow normals around points spaced evenly on a
    logarithmic scale, which suits the heavy tails of word frequencies. Around expected
    numbers it is that of :func:`shrink_deviations`.
    """
    if np.max(sigma) <= 0:
        return np.maximum(noisy, 0.0)
    estimate, evidence = _denoised_alone(noisy, sigma, n_iter)
    if expected is None:
        return estimate
    posterior, kept, explained = _deviation_posterior(noisy - expected, expected, sigma, n_iter)
    if explained.sum() < evidence.sum():
        return estimate
    moved = expected + (noisy - expected) * (posterior * kept).sum(axis=1)
    # A word that is much more frequent than expected is not ruled out.
    return np.maximum((1 - UNEXPECTED) * moved + UNEXPECTED * estimate, LEAST_SHARE * expected)


def _column(sigma: float | Floats) -> float | Floats:
    """Deviations of the noise of each number, as a column where they differ."""
    return sigma[:, None] if isinstance(sigma, np.ndarray) else sigma


def _denoised_alone(noisy: Floats, sigma: float | Floats, n_iter: int) -> tuple[Floats, Floats]:
    """Estimates without public knowledge, and the evidence of each value."""
    size, usual = noisy.size, float(np.median(sigma))
    total = max(float(noisy.sum()), usual)
    low = min(0.02 * total / size, usual)
    high = max(float(noisy.max()), 2 * usual)
    means = np.concatenate([[1e-3 * total / size], np.geomspace(low, high, N_MEANS)])
    spread = (0.5 * np.log(high / low) / (N_MEANS - 1) * means) ** 2
    variance = _column(sigma) ** 2 + spread
    centred = noisy[:, None] - means
    log_likelihood = -0.5 * (centred**2 / variance + np.log(variance))
    posterior, evidence = _mixture_weights(
        log_likelihood, np.full(means.size, 1 / means.size), n_iter
    )
    component_means = (noisy[:, None] * spread + means * _column(sigma) ** 2) / variance
    estimate: Floats = (posterior * component_means).sum(axis=1)
    return np.maximum(estimate, 0.01 * low), evidence


def shrink_deviations(
    noisy: Floats, scale: Floats, sigma: float | Floats, n_iter: int = 60
) -> Floats:
    """Posterior means of deviations around zero under Gaussian noise (Stephens, 2017)."""
    if np.max(sigma) <= 0:
        return noisy
    posterior, kept, _ = _deviation_posterior(noisy, scale, sigma, n_iter)
    return noisy * (posterior * kept).sum(axis=1)


def posterior_moments(
    noisy: Floats, centres: tuple[Floats, ...], sigma: float | Floats, n_iter: int = 60
) -> tuple[Floats, Floats, Floats]:
    """Posterior means and variances of numbers, and what share of their noise the means keep.

    Each number is around one of the centres, in proportion to which it deviates.
    """
    if np.max(sigma) <= 0:
        return noisy, np.zeros_like(noisy), np.ones_like(noisy)
    if len(centres) == 1:
        deviations = noisy - centres[0]
        posterior, kept, _ = _deviation_posterior(deviations, centres[0], sigma, n_iter)
        mean = deviations * (posterior * kept).sum(axis=1)
        spread = kept * _column(sigma) ** 2
        squares = (posterior * (spread + (deviations[:, None] * kept) ** 2)).sum(axis=1)
        share = mean / np.where(deviations == 0, 1.0, deviations)
        return centres[0] + mean, np.maximum(squares - mean**2, 0.0), share
    posterior, kept, moved = _posterior_around(noisy, centres, sigma, n_iter)
    mean = (posterior * moved).sum(axis=1)
    squares = (posterior * (kept * _column(sigma) ** 2 + moved**2)).sum(axis=1)
    kept = (posterior * kept).sum(axis=1)
    return centres[0] + mean, np.maximum(squares - mean**2, 0.0), kept


def centres_of_topics(
    base: Floats, weights: Floats, total: float, public: Floats | None
) -> list[tuple[Floats, ...]]:
    """What the expected counts of each topic are shrunk towards: words, or public topics too."""
    found: list[tuple[Floats, ...]] = [(weight * total * base,) for weight in weights]
    if public is not None:
        adapted = adapted_topics(public, weights[: len(public)], base)
        for row, topic in enumerate(adapted):
            found[row] = (*found[row], weights[row] * total * topic)
    return found


def _posterior_around(
    noisy: Floats, centres: tuple[Floats, ...], sigma: float | Floats, n_iter: int
) -> tuple[Floats, Floats, Floats]:
    """Probabilities of the prior's components, the share each keeps, and where it puts a number.

    Numbers are put relative to the first centre.
    """
    likelihoods, kept, moved = [], [], []
    for centre in centres:
        log_likelihood, share = _deviations(noisy - centre, centre, sigma)
        likelihoods.append(log_likelihood)
        kept.append(share)
        moved.append((centre - centres[0])[:, None] + share * (noisy - centre)[:, None])
    weights = np.tile(_prior_weights(), len(centres)) / len(centres)
    posterior, _ = _mixture_weights(np.hstack(likelihoods), weights, n_iter)
    return posterior, np.hstack(kept), np.hstack(moved)


def _deviation_posterior(
    noisy: Floats, scale: Floats, sigma: float | Floats, n_iter: int
) -> tuple[Floats, Floats, Floats]:
    """Probabilities of the prior's components, the share each keeps of a value, and evidence."""
    log_likelihood, kept = _deviations(noisy, scale, sigma)
    posterior, evidence = _mixture_weights(log_likelihood, _prior_weights(), n_iter)
    return posterior, kept, evidence


def _deviations(noisy: Floats, scale: Floats, sigma: float | Floats) -> tuple[Floats, Floats]:
    """Log-likelihood under each component of the prior, and the share it keeps of a value."""
    spread = (scale[:, None] * RELATIVE_SCALES) ** 2
    variance = spread + _column(sigma) ** 2
    return -0.5 * (noisy[:, None] ** 2 / variance + np.log(variance)), spread / variance


def _prior_weights() -> Floats:
    # Half of the prior starts at no deviation: evidence has to move it away.
    weights = np.full(RELATIVE_SCALES.size, 0.5 / (RELATIVE_SCALES.size - 1))
    weights[0] = 0.5
    return weights


def denoise_topics(
    expected_counts: Floats,
    sigma: float | Floats,
    unigram: Floats,
    unigram_sigma: float,
    *,
    expected: Floats | None = None,
    public: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Topics from noisy expected counts, shrunk towards the unigram, and that as expected.

    The first topics are shrunk towards public ones too, word by word to that of the two which
    the evidence is for.
    """
    n_components = expected_counts.shape[0]
    total = max(float(expected_counts.sum()), 1e-9)
    marginal = expected_counts.sum(axis=0) / total
    marginal_sigma = sigma * n_components**0.5 / total
    noise = bool(np.max(sigma) > 0)
    if noise:
        # Inverse variances weigh the two views of the unigram.
        own = unigram_sigma**2 / (marginal_sigma**2 + unigram_sigma**2)
        marginal = own * marginal + (1 - own) * unigram
        marginal_sigma = marginal_sigma * own**0.5
    base = denoise_frequencies(marginal, marginal_sigma, expected=expected)
    base = base / base.sum() if base.any() else np.full(base.size, 1 / base.size)
    weights = np.maximum(expected_counts.sum(axis=1), 0.2 * total / n_components)
    weights /= weights.sum()
    topics = np.empty_like(expected_counts)
    centres = centres_of_topics(base, weights, total, public if noise else None)
    for row, (counts, around) in enumerate(zip(expected_counts, centres, strict=True)):
        share = around[0]
        if len(around) > 1:
            counts = posterior_moments(counts, around, sigma)[0]
        else:
            counts = share + shrink_deviations(counts - share, share, sigma)
        topics[row] = np.maximum(counts, LEAST_SHARE * share) if noise else counts
    sums = topics.sum(axis=1, keepdims=True)
    # A topic that no document uses is as good as the unigram.
    topics = np.where(sums > 1e-12 * total, topics / np.maximum(sums, 1e-300), base)
    if noise:
        topics, weights = _with_marginal(topics, weights, base)
    return topics, base, weights


def _with_marginal(topics: Floats, weights: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Rescale words so that the topics mix to frequencies that are known better than they are."""
    joint = weights[:, None] * topics
    joint *= np.minimum(base / np.maximum(joint.sum(axis=0), 1e-300), MOST_RESCALED)
    # A word that a large topic is denied by noise does not fill the small ones: what is left of
    # it, all topics have as it is.
    joint += weights[:, None] * np.maximum(base - joint.sum(axis=0), 0.0)
    weights = np.maximum(joint.sum(axis=1), 1e-300)
    return joint / weights[:, None], weights / weights.sum()
