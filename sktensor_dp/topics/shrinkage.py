"""Word frequencies and topics from noisy ones, at a known noise level, by empirical Bayes.

The prior is a mixture with fixed components and free weights (nonparametric maximum likelihood;
Kiefer & Wolfowitz, 1956), fitted to the noisy values.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln

from sktensor_dp.tensor.arrays import Floats

# Least weight of a topic, relative to an even weight.
LEAST_WEIGHT = 0.2
# Possible ratios of a word's probability in a topic to the expected one. The first stands for equal
# frequency, the second for all smaller ones; the others are half an octave apart.
RATIOS = np.concatenate([[1.0, 2.0**-6.5], 2.0 ** (np.arange(-11, 21) / 2)])
RATIO_SPREADS = np.concatenate([[0.0, RATIOS[1]], np.log(2.0) / 4 * RATIOS[2:]])
# Shapes of the gamma distributions of mean 1 whose mixture is the prior of the ratio: from words
# that all topics share to words of few topics. Normal priors raise the completion perplexity by two
# to four percent.
GAMMA_SHAPES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
# Least probability of a word in a topic, relative to its unigram frequency, so that no document has
# probability 0.
LEAST_SHARE = 1e-3
# Number of EM steps that fit the weights of a prior to frequencies, and to a topic.
FREQUENCY_STEPS, TOPIC_STEPS = 100, 60


def _fit_log_mixture(log_likelihood: Floats, weights: Floats, n_iter: int) -> tuple[Floats, Floats]:
    """Fit mixture weights by EM; return posteriors (n, m) and log evidence (n,)."""
    highest = log_likelihood.max(axis=1, keepdims=True)
    posterior, evidence = _fit_mixture(np.exp(log_likelihood - highest), weights, n_iter)
    return posterior, highest.ravel() + np.log(evidence)


def _fit_mixture(likelihood: Floats, weights: Floats, n_iter: int) -> tuple[Floats, Floats]:
    """Fit mixture weights by EM; return posteriors (n, m) and evidence (n,)."""
    for _ in range(n_iter):
        evidence = likelihood @ weights
        weights = weights * ((1 / evidence) @ likelihood) / len(likelihood)
    posterior = likelihood * weights
    sums = posterior.sum(axis=1, keepdims=True)
    return posterior / sums, sums.ravel()


def denoise_frequencies(
    noisy: Floats, sigma: float | Floats, *, expected: Floats | None = None
) -> Floats:
    """Posterior means of non-negative numbers with noise `sigma`, near `expected` ones if given."""
    # Weight of the estimate without public knowledge in the estimate with it.
    unexpected = 0.05
    if np.max(sigma) <= 0:
        return np.maximum(noisy, 0.0)
    alone, evidence_alone = _denoised_alone(noisy, sigma)
    if expected is None:
        return alone
    found = _deviation_posterior(noisy - expected, expected, sigma, FREQUENCY_STEPS)
    if found.evidence.sum() < evidence_alone.sum():
        return alone
    near_expected = expected + (noisy - expected) * found.mean_kept
    # Part of the estimate without public knowledge stays, in case a word is much more frequent than
    # expected.
    mixed = (1 - unexpected) * near_expected + unexpected * alone
    return np.maximum(mixed, LEAST_SHARE * expected)


def _column(sigma: float | Floats) -> float | Floats:
    """Return `sigma` as a column (n, 1) if it is an array, to broadcast over mixture components."""
    return sigma[:, None] if isinstance(sigma, np.ndarray) else sigma


def _denoised_alone(noisy: Floats, sigma: float | Floats) -> tuple[Floats, Floats]:
    """Posterior means (n,) under a mixture on a logarithmic grid, and log evidence (n,)."""
    # Number of prior means in each fit; more change estimates by less than 1 % of the noise.
    n_means = 50
    # The grid covers all that noise of the `usual` deviation can tell apart, and begins far below
    # the mean of all numbers.
    usual = float(np.median(sigma))
    total = max(float(noisy.sum()), usual)
    low = min(0.02 * total / noisy.size, usual)
    high = max(float(noisy.max()), 2 * usual)
    means = np.geomspace(low, high, n_means)
    # Prior deviation: half the way from one mean of the grid to the next.
    prior_variance = (0.5 * np.log(high / low) / (n_means - 1) * means) ** 2
    variance = _column(sigma) ** 2 + prior_variance
    centred = noisy[:, None] - means
    log_likelihood = -0.5 * (centred**2 / variance + np.log(variance))
    posterior, evidence = _fit_log_mixture(
        log_likelihood, np.full(means.size, 1 / means.size), FREQUENCY_STEPS
    )
    component_means = (noisy[:, None] * prior_variance + means * _column(sigma) ** 2) / variance
    estimate: Floats = (posterior * component_means).sum(axis=1)
    return np.maximum(estimate, 0.01 * low), evidence  # no number is 0


def shrink_deviations(noisy: Floats, scale: Floats, sigma: float | Floats) -> Floats:
    """Posterior means (n,) of deviations with noise `sigma` (Stephens, 2017).

    The prior is a mixture of normals of mean 0, with deviations in proportion to `scale` (n,).
    """
    return deviation_moments(noisy, scale, sigma)[0]


def deviation_moments(noisy: Floats, scale: Floats, sigma: float | Floats) -> tuple[Floats, Floats]:
    """Posterior means and variances (n,) of deviations, as by :func:`shrink_deviations`."""
    if np.max(sigma) <= 0:
        return noisy, np.zeros_like(noisy)
    found = _deviation_posterior(noisy, scale, sigma, TOPIC_STEPS)
    mean, kept = noisy * found.mean_kept, found.kept
    squares = kept * _column(sigma) ** 2 + (kept * noisy[:, None] - mean[:, None]) ** 2
    return mean, (found.probabilities * squares).sum(axis=1)


def posterior_moments(
    noisy: Floats, centres: Floats, sigma: float | Floats
) -> tuple[Floats, Floats]:
    """Posterior means and variances (n,) of noisy numbers, random multiples of `centres` > 0."""
    # Before noise a number is normal of mean r c and deviation s(r) c, c being its centre and r one
    # of the `RATIOS`. Axes: numbers, 1, ratios.
    if np.max(sigma) <= 0:
        return noisy, np.zeros_like(noisy)
    noise_variance = np.square(_column(sigma))[..., None]
    around = centres[:, None, None]
    prior_variance = (around * RATIO_SPREADS) ** 2
    variance = prior_variance + noise_variance
    away, kept = noisy[:, None, None] - around * RATIOS, prior_variance / variance
    exponents = -0.5 * (away**2 / variance + np.log(variance))
    likelihood = np.exp(exponents - exponents.max(axis=(1, 2), keepdims=True))
    probabilities = _posterior_of_ratios(likelihood)
    # Given its ratio a number has these means, and the variance kept * noise_variance.
    means = around * RATIOS + kept * away
    mean = (probabilities * means).sum(axis=(1, 2))
    squares = kept * noise_variance + (means - mean[:, None, None]) ** 2
    return mean, (probabilities * squares).sum(axis=(1, 2))


def _posterior_of_ratios(likelihood: Floats) -> Floats:
    """Posterior probabilities (n, 1, n_ratios) of each number's ratio, from their likelihood."""
    # Prior: a mixture of rows of `_RATIO_PRIOR`, whose weights are fitted to all numbers. The axis
    # of length 1 gives each number a product of its own, whose rounding does not depend on others.
    by_row = likelihood @ _RATIO_PRIOR.T
    weights = _starting_weights(len(_RATIO_PRIOR))
    posterior, _ = _fit_mixture(by_row.reshape(len(likelihood), -1), weights, TOPIC_STEPS)
    # Likelihood times prior, by the posteriors of rows of the prior.
    return likelihood * (
        (posterior.reshape(by_row.shape) / np.maximum(by_row, 1e-300)) @ _RATIO_PRIOR
    )


class _DeviationPosterior(NamedTuple):
    """Posterior of n noisy deviations under a mixture of m normals of mean 0."""

    probabilities: Floats  # (n, m): of each normal
    kept: Floats  # (n, m): fraction of a deviation that is kept under each
    evidence: Floats  # (n,): logarithms

    @property
    def mean_kept(self) -> Floats:
        """Expected fraction of each deviation that is kept, (n,)."""
        return np.asarray((self.probabilities * self.kept).sum(axis=1))


def _deviation_posterior(
    noisy: Floats, scale: Floats, sigma: float | Floats, n_iter: int
) -> _DeviationPosterior:
    """Posterior of deviations under normals whose deviations are multiples of `scale`."""
    # Prior standard deviations of a deviation, in units of `scale`: from none to 32 times as much.
    relative_scales = np.concatenate([[0.0], 2.0 ** np.arange(-4, 6)])
    prior_variance = (scale[:, None] * relative_scales) ** 2
    variance = prior_variance + _column(sigma) ** 2
    log_likelihood = -0.5 * (noisy[:, None] ** 2 / variance + np.log(variance))
    weights = _starting_weights(relative_scales.size)
    posterior, evidence = _fit_log_mixture(log_likelihood, weights, n_iter)
    return _DeviationPosterior(posterior, prior_variance / variance, evidence)


def _starting_weights(n_components: int) -> Floats:
    """Weights of a prior before EM: half on the first component, which stands for no deviation."""
    weights = np.full(n_components, 0.5 / (n_components - 1))
    weights[0] = 0.5
    return weights


# Probabilities of the `RATIOS` under each component of the prior, a row each: equal frequency has
# the first ratio alone, and each gamma distribution has the others.
_BETWEEN_RATIOS = np.sqrt(RATIOS[1:-1] * RATIOS[2:])
_BY_GAMMA = [
    np.diff([0.0, *gammainc(shape, shape * _BETWEEN_RATIOS), 1.0]) for shape in GAMMA_SHAPES
]
_RATIO_PRIOR = np.vstack([np.eye(1, RATIOS.size), np.insert(_BY_GAMMA, 0, 0.0, axis=1)])


def denoise_topics(
    expected_counts: Floats, sigma: float | Floats, unigram: Floats, unigram_sigma: float, *,
    expected: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:  # fmt: skip
    """Topics (k, d), unigram (d,) and weights (k,) of expected counts (k, d) with noise `sigma`.

    Topics are shrunk towards the unigram. That is estimated by the counts together with another
    estimate, `unigram` with noise `unigram_sigma`, and public frequencies, `expected`.
    """
    n_components = expected_counts.shape[0]
    total = max(float(expected_counts.sum()), 1e-9)
    marginal = expected_counts.sum(axis=0) / total
    marginal_sigma = sigma * n_components**0.5 / total
    is_noisy = bool(np.max(sigma) > 0)
    if is_noisy:
        # Weigh both estimates of the unigram by their inverse variances.
        weight = unigram_sigma**2 / (marginal_sigma**2 + unigram_sigma**2)
        marginal = weight * marginal + (1 - weight) * unigram
        marginal_sigma = marginal_sigma * weight**0.5  # root of the harmonic sum of variances
    base = denoise_frequencies(marginal, marginal_sigma, expected=expected)
    base = base / base.sum() if base.any() else np.full(base.size, 1 / base.size)
    weights = np.maximum(expected_counts.sum(axis=1), LEAST_WEIGHT * total / n_components)
    weights /= weights.sum()
    topics = np.empty_like(expected_counts)
    for row, (counts, weight) in enumerate(zip(expected_counts, weights, strict=True)):
        centres = weight * total * base
        means, _ = posterior_moments(counts, centres, sigma)
        topics[row] = np.maximum(means, LEAST_SHARE * centres) if is_noisy else means
    sums = topics.sum(axis=1, keepdims=True)
    # A topic that no document uses gets the unigram.
    topics = np.where(sums > 1e-12 * total, topics / np.maximum(sums, 1e-300), base)
    if not is_noisy:
        return topics, base, weights
    # Rescale words so that the topics' mixture has the frequencies `base`, by this factor at most.
    # Topics that stand out of noise need less than 4; on synthetic documents 2 to 4 are equally
    # good.
    most_rescaled = 3.0
    joint = weights[:, None] * topics
    joint *= np.minimum(base / np.maximum(joint.sum(axis=0), 1e-300), most_rescaled)
    # If noise removed a word from a large topic, small topics must not take all of its probability:
    # the missing part goes to all topics alike.
    joint += weights[:, None] * np.maximum(base - joint.sum(axis=0), 0.0)
    weights = np.maximum(joint.sum(axis=1), 1e-300)
    return joint / weights[:, None], base, weights / weights.sum()


def smoothed(topics: Floats, unigram: Floats) -> Floats:
    """Mix topics with a little of the unigram, itself mixed with 1 % of the uniform law."""
    little = 1e-4  # so that no word has probability 0
    background = 0.99 * unigram + 0.01 / unigram.size
    return (1 - little) * topics + little * background


def shrink_sampled(topics: Floats, weights: Floats, base: Floats, n_tokens: float) -> Floats:
    """Posterior means of topics (k, d) that `n_tokens` tokens show without noise.

    Counts are Poisson, of gamma priors around the word frequencies `base` (d,).
    """
    # A count x of mean g `centre`, g from a gamma distribution of mean 1 and shape a, is negative
    # binomial; the posterior mean of g is (x + a) / (a + centre).
    a, shrunk = np.array(GAMMA_SHAPES), np.empty_like(topics)
    for row, (topic, weight) in enumerate(zip(topics, weights, strict=True)):
        x, centre = n_tokens * weight * topic[:, None], n_tokens * weight * base[:, None] + 1e-300
        log_likelihood = gammaln(x + a) - gammaln(a) + a * np.log(a) + x * np.log(centre)
        log_likelihood -= (x + a) * np.log(a + centre)
        posterior, _ = _fit_log_mixture(log_likelihood, np.full(a.size, 1 / a.size), TOPIC_STEPS)
        shrunk[row] = (posterior * centre * (x + a) / (a + centre)).sum(axis=1)
    return np.asarray(shrunk / shrunk.sum(axis=1, keepdims=True))
