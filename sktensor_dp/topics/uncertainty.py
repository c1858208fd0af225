"""Standard deviations of topics, from the known noise of released values.

`components_interval` (`spectral_lda/readable.py`) makes intervals of them;
``python -m benchmarks topic_intervals`` prints their coverage.
"""

import numpy as np

from sktensor_dp.tensor.arrays import Floats, as_generator
from sktensor_dp.topics.concentration import ExplainedTopics
from sktensor_dp.topics.moments import (
    ReleasedMoments,
    moved_by_errors,
    pair_precision,
    word_precision,
)
from sktensor_dp.topics.shrinkage import LEAST_SHARE, posterior_moments

# Factor on deviations with which 90 % intervals hold nine of ten probabilities of words: noise may
# also turn whole topics, which moves all words at once.
WORDS_SCALE = 1.25
# Rounding errors of a matrix relative to its diagonal.
ROUNDING = 1e-12
# Number of fits to moments with drawn errors, and least frequency of a word in them.
REFITS, LEAST_FREQUENCY = 8, 1e-12


def std_of_refined(
    expected_counts: Floats, sigma: float | Floats, unigram: Floats, weights: Floats,
    concentration: float,
) -> Floats:  # fmt: skip
    """Standard deviations (k, d) of topics that come from noisy expected counts."""
    k, d = expected_counts.shape
    if np.max(sigma) <= 0:
        return np.zeros((k, d))
    total = max(float(expected_counts.sum()), 1e-9)
    counts, std = np.empty((k, d)), np.empty((k, d))
    for row, weight in enumerate(weights):
        centres = weight * total * unigram
        mean, variance = posterior_moments(expected_counts[row], centres, sigma)
        counts[row], std[row] = np.maximum(mean, LEAST_SHARE * centres), np.sqrt(variance)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    # Noise moves topics that documents mix, at a concentration c, by 1 + c times as much; a single
    # topic mixes with none.
    by_mixing = 1 + concentration if k > 1 else 1.0
    return _at_most_one(by_mixing * (WORDS_SCALE * std / totals))


def std_of_frequencies(sigma: float | Floats, shape: tuple[int, int]) -> Floats:
    """Standard deviations, of the given shape, of probabilities that are noisy word frequencies."""
    return np.full(shape, _at_most_one(sigma))


def _at_most_one(std: float | Floats) -> Floats:
    """Limit deviations to 1, also where they are NaN: no probability is more uncertain."""
    return np.where(np.less_equal(std, 1.0), std, 1.0)


def std_of_matched(fit: ExplainedTopics, moments: ReleasedMoments) -> Floats:
    """Standard deviations of topics fitted to moments, by the fit's curvature."""
    topics, weights, c = fit.topics, fit.weights, fit.concentration
    k = len(topics)
    joint = weights[:, None] * topics
    precision = pair_precision(moments)
    # Derivative of E2_ab in w_j mu_ja, as if the share stayed; and of E2_ba, hence the factor 2.
    slope = (topics + c * (weights @ topics)) / (1 + c)
    curvature = 2 * np.einsum("ab,jb,ib->aji", precision, slope, slope, optimize=True)
    curvature += word_precision(moments, joint.sum(axis=0))[:, None, None]
    # As no probability is below 0, its own size is its prior deviation.
    ridge = 1 / np.maximum(joint.T, 1e-6 / k) ** 2
    curvature[:, np.arange(k), np.arange(k)] += ridge
    # Divide by the diagonal, as curvatures of words differ by many orders of magnitude.
    scales = np.sqrt(curvature[:, np.arange(k), np.arange(k)])
    curvature /= scales[:, :, None] * scales[:, None, :]
    curvature[:, np.arange(k), np.arange(k)] += ROUNDING
    variance = (np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2) / scales**2).T
    topics_std = np.sqrt(np.maximum(variance, 0.0)) / np.maximum(weights, 1e-12)[:, None]
    return _at_most_one(WORDS_SCALE * topics_std)


def mixing_of_matched(fit: ExplainedTopics, moments: ReleasedMoments) -> Floats:
    """For each topic fitted to moments, covariances (k, k) of what texts of two give it too much.

    They are those of fits to moments with their errors once more.
    """
    given = []
    for moved in moved_by_errors(fit, moments, REFITS, as_generator(0)):
        # Weighted least squares takes words of a topic to shares of the moved topics.
        weighted = moved.topics / np.maximum(moved.weights @ moved.topics, LEAST_FREQUENCY)
        given.append(fit.topics @ weighted.T @ np.linalg.pinv(moved.topics @ weighted.T))
    errors = np.array(given) - np.mean(given, axis=0)
    return np.asarray(np.einsum("mij,mlj->jil", errors, errors) / (REFITS - 1))


def std_of_decomposed(
    numerators: Floats, duals: Floats, weights: Floats, pairs_sigma: float, triples_sigma: float
) -> Floats:
    """Standard deviations (k, d), to first order, of topics of a decomposed tensor.

    `duals` (k, d) are the eigenvectors in terms of words, and `numerators` are M2 times these;
    `pairs_sigma` and `triples_sigma` are the noise of M2 and of the whitened tensor.
    """
    # A topic is its numerator over the sum of that.
    sums = np.maximum(np.abs(numerators.sum(axis=1)), 1e-9)
    of_pairs = pairs_sigma * np.linalg.norm(duals, axis=1) / sums
    # Noise turns an eigenvector, of eigenvalue w^(-1/2), by the angle sigma w^(1/2) towards each
    # other one, and its topic by about that one's size.
    sizes = np.sqrt((numerators**2).sum(axis=0)) / sums[:, None]
    angles = np.minimum(triples_sigma * np.sqrt(weights), 1.0)
    return _at_most_one(np.hypot(of_pairs[:, None], angles[:, None] * sizes))
