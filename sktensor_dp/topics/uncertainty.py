"""Standard deviations of topics and of their shares, from the known noise of released values.

Noise moves topics of documents that mix them at concentration c by 1 + c times as much. Clipping
moves shares without any noise. ``python -m benchmarks topic_intervals`` prints the coverage.
"""

from dataclasses import dataclass

import numpy as np

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.concentration import ExplainedTopics
from sktensor_dp.topics.moments import ReleasedMoments, pair_precision
from sktensor_dp.topics.shrinkage import LEAST_SHARE, centres_of_topics, posterior_moments

# Number of standard deviations of a 90 % interval of a normal law.
NINE_TENTHS = 1.6448536269514722

# Factors by which 90 % intervals of words, of shares, and of shares fitted to moments hold nine of
# ten: noise may turn whole topics, which moves all words at once.
WORDS_SCALE, SHARES_SCALE, MATCHED_SHARES_SCALE = 1.25, 2.0, 3.3
# Rounding errors of a matrix relative to its diagonal.
ROUNDING = 1e-12
# Range of lengths of documents that is considered.
LENGTHS = (5.0, 200.0)
# Number of mixtures of topics for which the effect of clipping on shares is computed, and of
# lengths.
MIXTURES, TRIED = 2000, 100


@dataclass(frozen=True)
class Limits:
    """Clips on what one document contributes; infinite for none."""

    counts: float = np.inf  # of its counts
    order: int = 2  # of this norm: 1 for the number of tokens, 2 for the Euclidean norm
    pairs: float = np.inf  # of its second moment times its number of tokens, Euclidean
    # (d,): divisors of the counts before their norm is taken.
    scales: Floats | None = None

    def counted_tokens(
        self, lengths: Floats, repeats: Floats, singles: float | Floats = 1.0
    ) -> Floats:
        """Number of tokens that count after clipping, for documents of `lengths` tokens."""
        # `repeats` is the expected product of two scaled tokens (without `scales` the probability
        # that they are the same word), `singles` the expected square of one.
        squares = lengths * singles + lengths * (lengths - 1) * repeats
        counts = np.sqrt(squares) if self.order == 2 else lengths
        pairs = np.sqrt(2) * squares / (lengths - 1)
        return np.minimum(1.0, np.minimum(self.counts / counts, self.pairs / pairs)) * lengths


def clip_drift(
    topics: Floats, weights: Floats, concentration: float, limits: Limits, total: float
) -> Floats:
    """Bias (k,) of topics' shares by clipping; `total` is the released mean number of tokens."""
    # For equal lengths norms are larger if words repeat, so topics of few words are clipped more.
    shares, odds = np.eye(len(weights)), weights
    if concentration > 0:
        # All numbers here were released, so these draws need no secrecy.
        prior = np.maximum(concentration * weights, 1e-3)
        shares = np.random.default_rng(0).dirichlet(prior, MIXTURES)
        odds = np.full(MIXTURES, 1 / MIXTURES)
    # Probability that two words of a document are the same.
    scaled = topics if limits.scales is None else topics / limits.scales
    repeats = ((shares @ (scaled @ scaled.T)) * shares).sum(axis=1)
    singles: float | Floats = 1.0
    if limits.scales is not None:
        singles = shares @ (scaled / limits.scales).sum(axis=1)
    # Clipping leaves a mixture only part of its documents' tokens: divide by their number.
    free = odds / limits.counted_tokens(np.geomspace(*LENGTHS, TRIED)[:, None], repeats, singles)
    sums = free.sum(axis=1)
    length = min(int(np.searchsorted(1 / sums, total)), TRIED - 1)
    return np.asarray(odds @ shares - free[length] @ shares / sums[length])


def std_of_refined(
    expected_counts: Floats,
    sigma: float | Floats,
    unigram: Floats,
    weights: Floats,
    concentration: float,
    limits: Limits,
    public: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Standard deviations of topics (k, d) and shares (k,) that come from noisy expected counts."""
    k, d = expected_counts.shape
    if np.max(sigma) <= 0:
        return np.zeros((k, d)), np.zeros(k)
    total = max(float(expected_counts.sum()), 1e-9)
    counts, std = np.empty((k, d)), np.empty((k, d))
    for row, around in enumerate(centres_of_topics(unigram, weights, total, public)):
        mean, variance = posterior_moments(expected_counts[row], around, sigma)
        counts[row], std[row] = np.maximum(mean, LEAST_SHARE * around[0]), np.sqrt(variance)
    sizes = np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    # Noise in a topic's share is the sum of the noise of all its words.
    own = (1 - weights) ** 2 + (k - 1) * weights**2
    usual = sigma if np.isscalar(sigma) else np.sqrt(np.mean(np.square(sigma)))
    weights_std = usual * np.sqrt(d * own) / total
    topics_std = WORDS_SCALE * std / sizes
    if k == 1:  # it has all there is, without noise
        return _at_most_one(topics_std), _at_most_one(weights_std)
    drift = clip_drift(counts / sizes, weights, concentration, limits, total)
    # Widen the interval to include the bias by clipping.
    weights_std = np.hypot(SHARES_SCALE * (1 + concentration) * weights_std, drift / NINE_TENTHS)
    return _at_most_one((1 + concentration) * topics_std), _at_most_one(weights_std)


def std_of_frequencies(sigma: float | Floats, shape: tuple[int, int]) -> Floats:
    """Standard deviations, of the given shape, of probabilities that are noisy word frequencies."""
    return np.full(shape, _at_most_one(sigma))


def _at_most_one(std: float | Floats) -> Floats:
    """Limit deviations to 1, also where they are NaN: no probability is more uncertain."""
    return np.where(np.less_equal(std, 1.0), std, 1.0)


def std_of_matched(
    found: ExplainedTopics, moments: ReleasedMoments, drift: Floats
) -> tuple[Floats, Floats]:
    """Standard deviations of topics and shares fitted to moments, by the fit's curvature."""
    topics, weights, c = found.topics, found.weights, found.concentration
    k, d = topics.shape
    joint = weights[:, None] * topics
    precision = pair_precision(moments)
    # The derivative by word a changes all pairs (a, b); for topic j by this, and off the diagonal
    # twice.
    slope = (topics + c * (weights @ topics)) / (1 + c)
    curvature = 2 * np.einsum("ab,jb,ib->aji", precision, slope, slope, optimize=True)
    first = joint.sum(axis=0)
    own = 1 / (moments.frequencies_sigma**2 + (first + 1e-3 / d) / moments.n_documents)
    curvature += own[:, None, None]
    ridge = 1 / np.maximum(joint.T, 1e-6 / k) ** 2
    curvature[:, np.arange(k), np.arange(k)] += ridge
    # Divide by the diagonal, as curvatures of words differ by many orders of magnitude.
    scales = np.sqrt(curvature[:, np.arange(k), np.arange(k)])
    curvature /= scales[:, :, None] * scales[:, None, :]
    curvature[:, np.arange(k), np.arange(k)] += ROUNDING
    variance = (np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2) / scales**2).T
    topics_std = np.sqrt(np.maximum(variance, 0.0)) / np.maximum(weights, 1e-12)[:, None]
    weights_std = np.sqrt(np.maximum(variance, 0.0).sum(axis=1))
    weights_std = np.hypot(MATCHED_SHARES_SCALE * weights_std, drift / NINE_TENTHS)
    return _at_most_one(WORDS_SCALE * topics_std), _at_most_one(weights_std)


def std_of_decomposed(
    unwhitened: Floats, duals: Floats, weights: Floats, pairs_sigma: float, triples_sigma: float
) -> tuple[Floats, Floats]:
    """Standard deviations, to first order, of topics of a decomposed tensor, and of shares."""
    sums = np.maximum(np.abs(unwhitened.sum(axis=1)), 1e-9)
    of_pairs = pairs_sigma * np.linalg.norm(duals, axis=1) / sums
    # Noise turns a component towards each other one, by about that one's size.
    sizes = np.sqrt((unwhitened**2).sum(axis=0)) / sums[:, None]
    angles = np.minimum(triples_sigma * np.sqrt(weights), 1.0)
    topics_std = np.hypot(of_pairs[:, None], angles[:, None] * sizes)
    weights_std = 2 * weights**1.5 * triples_sigma
    return _at_most_one(topics_std), _at_most_one(weights_std)
