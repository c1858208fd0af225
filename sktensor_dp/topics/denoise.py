"""Word frequencies and topics from noisy ones, at a known noise level.

Both estimators are empirical Bayes: the prior is itself fitted to the noisy
values, as a mixture with fixed components and free weights (nonparametric
maximum likelihood; Kiefer & Wolfowitz, 1956), so no constant has to be tuned and
what is indistinguishable from noise is shrunk away. All of it is post-processing.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["denoise_frequencies", "denoise_topics", "deviation_moments", "shrink_deviations"]

Floats = NDArray[np.float64]

# Grid of prior means per fit; more changes the estimates by less than 1 % of the noise.
N_MEANS = 50
# Prior standard deviations of a topic's deviation from the unigram, relative to
# the unigram's own share: from none at all to a word 32 times as frequent.
RELATIVE_SCALES = np.concatenate([[0.0], 2.0 ** np.arange(-4, 6)])
# A word keeps at least this share of its unigram frequency in every topic, so
# that no document gets probability zero.
LEAST_SHARE = 1e-3
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
    noisy: Floats, sigma: float, n_iter: int = 100, *, expected: Floats | None = None
) -> Floats:
    """Posterior means of non-negative numbers seen under Gaussian noise.

    Parameters
    ----------
    noisy : ndarray of shape (d,)
        Numbers with noise.
    sigma : float
        Standard deviation of the noise.
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
    if sigma <= 0:
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


def _denoised_alone(noisy: Floats, sigma: float, n_iter: int) -> tuple[Floats, Floats]:
    """Estimates without public knowledge, and the evidence of each value."""
    size = noisy.size
    total = max(float(noisy.sum()), sigma)
    low = min(0.02 * total / size, sigma)
    high = max(float(noisy.max()), 2 * sigma)
    means = np.concatenate([[1e-3 * total / size], np.geomspace(low, high, N_MEANS)])
    spread = (0.5 * np.log(high / low) / (N_MEANS - 1) * means) ** 2
    variance = sigma**2 + spread
    centred = noisy[:, None] - means
    log_likelihood = -0.5 * (centred**2 / variance + np.log(variance))
    posterior, evidence = _mixture_weights(
        log_likelihood, np.full(means.size, 1 / means.size), n_iter
    )
    component_means = (noisy[:, None] * spread + means * sigma**2) / variance
    estimate: Floats = (posterior * component_means).sum(axis=1)
    return np.maximum(estimate, 0.01 * low), evidence


def shrink_deviations(noisy: Floats, scale: Floats, sigma: float, n_iter: int = 60) -> Floats:
    """Posterior means of deviations around zero under Gaussian noise (Stephens, 2017)."""
    if sigma <= 0:
        return noisy
    posterior, kept, _ = _deviation_posterior(noisy, scale, sigma, n_iter)
    return noisy * (posterior * kept).sum(axis=1)


def deviation_moments(
    noisy: Floats, scale: Floats, sigma: float, n_iter: int = 60
) -> tuple[Floats, Floats]:
    """Posterior means and variances of deviations, as :func:`shrink_deviations` takes them."""
    if sigma <= 0:
        return noisy, np.zeros_like(noisy)
    posterior, kept, _ = _deviation_posterior(noisy, scale, sigma, n_iter)
    mean = noisy * (posterior * kept).sum(axis=1)
    squares = (posterior * (kept * sigma**2 + (noisy[:, None] * kept) ** 2)).sum(axis=1)
    return mean, np.maximum(squares - mean**2, 0.0)


def _deviation_posterior(
    noisy: Floats, scale: Floats, sigma: float, n_iter: int
) -> tuple[Floats, Floats, Floats]:
    """Probabilities of the prior's components, the share each keeps of a value, and evidence."""
    spread = (scale[:, None] * RELATIVE_SCALES) ** 2
    variance = spread + sigma**2
    log_likelihood = -0.5 * (noisy[:, None] ** 2 / variance + np.log(variance))
    # Half of the prior starts at no deviation: evidence has to move it away.
    weights = np.full(RELATIVE_SCALES.size, 0.5 / (RELATIVE_SCALES.size - 1))
    weights[0] = 0.5
    posterior, evidence = _mixture_weights(log_likelihood, weights, n_iter)
    return posterior, spread / variance, evidence


def denoise_topics(
    expected_counts: Floats,
    sigma: float,
    unigram: Floats,
    unigram_sigma: float,
    *,
    expected: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Topics from noisy expected counts, shrunk towards the unigram, and that as expected."""
    n_components = expected_counts.shape[0]
    total = max(float(expected_counts.sum()), 1e-9)
    marginal = expected_counts.sum(axis=0) / total
    marginal_sigma = sigma * n_components**0.5 / total
    if sigma > 0:
        # Inverse variances weigh the two views of the unigram.
        own = unigram_sigma**2 / (marginal_sigma**2 + unigram_sigma**2)
        marginal = own * marginal + (1 - own) * unigram
        marginal_sigma *= own**0.5
    base = denoise_frequencies(marginal, marginal_sigma, expected=expected)
    base = base / base.sum() if base.any() else np.full(base.size, 1 / base.size)
    weights = np.maximum(expected_counts.sum(axis=1), 0.2 * total / n_components)
    weights /= weights.sum()
    topics = np.empty_like(expected_counts)
    for row, (counts, weight) in enumerate(zip(expected_counts, weights, strict=True)):
        share = weight * total * base
        counts = share + shrink_deviations(counts - share, share, sigma)
        topics[row] = np.maximum(counts, LEAST_SHARE * share) if sigma > 0 else counts
    sums = topics.sum(axis=1, keepdims=True)
    # A topic that no document uses is as good as the unigram.
    topics = np.where(sums > 1e-12 * total, topics / np.maximum(sums, 1e-300), base)
    if sigma > 0:
        topics, weights = _with_marginal(topics, weights, base)
    return topics, base, weights


def _with_marginal(topics: Floats, weights: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Rescale words so that the topics mix to frequencies that are known better than they are."""
    joint = weights[:, None] * topics
    joint *= base / np.maximum(joint.sum(axis=0), 1e-300)
    weights = np.maximum(joint.sum(axis=1), 1e-300)
    return joint / weights[:, None], weights / weights.sum()
