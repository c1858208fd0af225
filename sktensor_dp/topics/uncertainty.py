"""Standard deviations of topics and of their shares, from the known noise of released values.

Every function here takes released values and the noise that they were given, and returns
standard deviations. They are meant for normal intervals around the estimates. Where noise was
carried from step to step of EM, these steps are bootstrapped on documents drawn from the topics
found. Limits on what a document counts move shares without any noise, and how far is worked out
from the topics found as well. The constants were chosen on synthetic documents
(``python -m benchmarks.topic_intervals`` prints the coverage on others).
"""

from dataclasses import replace

import numpy as np
from scipy.special import stdtrit

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.bootstrap import Bootstrap, Limits, Steps
from sktensor_dp.topics.concentration import ExplainedTopics
from sktensor_dp.topics.moments import ReleasedMoments, pair_precision
from sktensor_dp.topics.shrinkage import LEAST_SHARE, centres_of_topics, posterior_moments

# Standard deviations that hold nine tenths of a normal law.
NINE_TENTHS = 1.6448536269514722

# A bootstrap on documents from the model leaves out that these are of the topics
# found, which separate words less well than the true ones do.
SLACK, SHARES_SLACK = 1.4, 0.87
# From a start that pairs of words alone tell, steps lead to topics further from those without
# noise. On documents of five laws intervals held 79 % without this, and 87 % (words) and 85 %.
BY_PAIRS = 1.4
# Steps that leave more of their way than this are not taken to go on at the same pace.
MOST_LEFT = 2 / 3
# Of moments fitted jointly: words are not held where they are, and all words of a topic may turn
# towards another topic at once. They estimate the shares of other documents than EM does.
MATCHED_SCALE, MATCHED_SHARES_SCALE, MATCHED_SHARES_DRIFT = 1.55, 2.5, 0.03
# Of topics that go on over batches, whose steps are not bootstrapped.
BATCHES_SCALE = 2.3
# Of a matrix in units of its diagonal.
ROUNDING = 1e-12
# How far topics go with frequencies of words whose counts were limited otherwise than theirs.
PULL = 0.35
# Lengths of documents that are thought of.
LENGTHS = (5.0, 200.0)
# Mixtures of topics on which the limit's effect on shares is worked out, and lengths tried.
MIXTURES, TRIED = 2000, 100
# Words at least so many deviations above zero decide how much a bootstrap enlarges deviations.
ABOVE = 4.0


def typical_length(limit: float, topics: Floats, weights: Floats, order: int) -> float:
    """Number of tokens, within `LENGTHS`, of a document whose counts have the norm `limit`: L1 norm
    for `order` 1, or expected L2 norm of words of one topic.
    """
    if order == 1 or not np.isfinite(limit):
        return float(np.clip(limit, *LENGTHS))
    repeats = float(weights @ (topics**2).sum(axis=1))
    # Of n tokens, the expected sum of squares is n + n (n - 1) times the odds of a repeat.
    linear = 1 - repeats
    n = (np.sqrt(linear**2 + 4 * repeats * limit**2) - linear) / (2 * max(repeats, 1e-12))
    return float(np.clip(n, *LENGTHS))


def clip_drift(
    topics: Floats, weights: Floats, concentration: float, limits: Limits, total: float
) -> Floats:
    """Bias (k,) of the topics' shares, of sum 0, that clipping by `limits` causes without noise:
    documents that repeat words are clipped more. `total` is the released mean number of tokens.
    """
    # At equal length norms are higher where words repeat: topics of few words count less.
    shares, odds = np.eye(len(weights)), weights
    if concentration > 0:
        # Nothing that is protected hangs on these draws: all of this is made of released values.
        prior = np.maximum(concentration * weights, 1e-3)
        shares = np.random.default_rng(0).dirichlet(prior, MIXTURES)
        odds = np.full(MIXTURES, 1 / MIXTURES)
    # The odds that two words of a document are the same one.
    scaled = topics if limits.scales is None else topics / limits.scales
    repeats = ((shares @ (scaled @ scaled.T)) * shares).sum(axis=1)
    singles: float | Floats = 1.0
    if limits.scales is not None:
        singles = shares @ (scaled / limits.scales).sum(axis=1)
    # As found, a mixture is as frequent as its documents count; without limits by so much less.
    free = odds / limits.counted_tokens(np.geomspace(*LENGTHS, TRIED)[:, None], repeats, singles)
    sums = free.sum(axis=1)
    length = min(int(np.searchsorted(1 / sums, total)), TRIED - 1)
    return np.asarray(odds @ shares - free[length] @ shares / sums[length])


def std_of_refined(
    expected_counts: Floats,
    sigma: float | Floats,
    unigram: Floats,
    weights: Floats,
    steps: Steps | None,
    public: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Standard deviations of topics (k, d) and shares (k,) read off noisy `expected_counts`,
    enlarged by a bootstrap of the EM `steps` (None: of a stream, not bootstrapped).
    """
    k, d = expected_counts.shape
    if np.max(sigma) <= 0:
        return np.zeros((k, d)), np.zeros(k)
    total = max(float(expected_counts.sum()), 1e-9)
    counts, std, kept = np.empty((k, d)), np.empty((k, d)), np.empty((k, d))
    for row, around in enumerate(centres_of_topics(unigram, weights, total, public)):
        mean, variance, kept[row] = posterior_moments(expected_counts[row], around, sigma)
        counts[row], std[row] = np.maximum(mean, LEAST_SHARE * around[0]), np.sqrt(variance)
    sizes = np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    # Noise in the share of a topic is that of all its words.
    own = (1 - weights) ** 2 + (k - 1) * weights**2
    usual = sigma if np.isscalar(sigma) else np.sqrt(np.mean(np.square(sigma)))
    weights_std = usual * np.sqrt(d * own) / total
    topics_std = std / sizes
    if steps is None:
        return _capped(BATCHES_SCALE * topics_std, BATCHES_SCALE * weights_std)
    moved, moved_weights = _bootstrap(counts / sizes, weights, kept, sigma / total, steps)
    topics_std *= _enlarged(moved, topics_std, counts / sizes)[:, None]
    if k == 1:  # it has all there is, without noise
        return _capped(SLACK * topics_std, weights_std)
    scale = BY_PAIRS if steps.by_pairs else 1.0
    further = float(np.sqrt(np.mean((moved_weights / weights_std) ** 2)))
    # One bootstrap of shares that sum to 1 says it with so few degrees of freedom.
    weights_std *= max(further * float(stdtrit(k - 1, 0.95)) / NINE_TENTHS, 1.0)
    told = (counts / sizes, weights, steps.concentration)
    drift = clip_drift(*told, steps.limits, total)
    if steps.limits.scales is not None:
        # Released frequencies, with which topics have to agree, are of counts that are not scaled.
        plain = clip_drift(*told, replace(steps.limits, scales=None), total)
        drift = np.maximum(np.abs(drift), PULL * np.abs(plain))
    # An interval of nine tenths reaches as far as the limit moved the share.
    weights_std = np.hypot(SHARES_SLACK * weights_std, drift / NINE_TENTHS)
    return _capped(scale * SLACK * topics_std, scale * weights_std)


def std_of_frequencies(sigma: float | Floats, shape: tuple[int, int]) -> Floats:
    """Standard deviations, of the given shape, of probabilities that are noisy word frequencies.

    They are `sigma` in every row, but at most 1, also where it is NaN: noise may leave next to
    nothing to divide counts by.
    """
    return np.full(shape, np.where(np.less_equal(sigma, 1.0), sigma, 1.0))


def _capped(topics_std: Floats, weights_std: Floats) -> tuple[Floats, Floats]:
    """Limit standard deviations to 1, also where they are NaN: no probability is more uncertain."""
    # What nothing can be said of (NaN) is as uncertain as a probability can be.
    return np.where(topics_std <= 1.0, topics_std, 1.0), np.where(
        weights_std <= 1.0, weights_std, 1.0
    )


def _enlarged(moved: Floats, std: Floats, topics: Floats) -> Floats:
    """Factors (k,) by which the deviations `std` fall short of the bootstrap's changes `moved`, at
    the ninth decile of each topic's clear words; at least 1.
    """
    far = np.abs(moved) / np.maximum(std, 1e-300)
    factors = np.ones(len(topics))
    for row, clear in enumerate(topics > ABOVE * std):
        if clear.any():
            factors[row] = max(float(np.quantile(far[row, clear], 0.9)) / NINE_TENTHS, 1.0)
    return factors


def _bootstrap(
    topics: Floats, weights: Floats, kept: Floats, sigma: float | Floats, steps: Steps
) -> tuple[Floats, Floats]:
    """Changes of topics (k, d) and shares (k,) by one bootstrap of the noisy EM steps
    (`Bootstrap`), with the way that steps had left when they ended.
    """
    bootstrap = Bootstrap(topics, weights, kept, steps)
    # Steps that end early leave a part of their way. The bootstrap measures that part on a way to
    # the topics found; the true way led beyond them and so was longer.
    short, short_shares = bootstrap.run(0.0)
    way = float(np.abs(steps.start - topics).sum())
    left = min(float(np.abs(short).sum()) / max(way, 1e-300), MOST_LEFT)
    further = left / (1 - left)
    moved, moved_shares = bootstrap.run(sigma)
    return moved + further * short, moved_shares + further * short_shares


def std_of_matched(
    found: ExplainedTopics, moments: ReleasedMoments, drift: Floats
) -> tuple[Floats, Floats]:
    """Standard deviations of topics and shares that were fitted to all released moments.

    They are the inverse curvature of the fit for each word, all other words fixed, and count the
    sampling of documents and the noise. `drift` (k,) is the bias of shares by clipping.
    """
    topics, weights, c = found.topics, found.weights, found.concentration
    k, d = topics.shape
    joint = weights[:, None] * topics
    precision = pair_precision(moments)
    # Moves of word a change all pairs (a, b), by this for topic j; off the diagonal twice.
    slope = (topics + c * (weights @ topics)) / (1 + c)
    curvature = 2 * np.einsum("ab,jb,ib->aji", precision, slope, slope, optimize=True)
    first = joint.sum(axis=0)
    own = 1 / (moments.frequencies_sigma**2 + (first + 1e-3 / d) / moments.n_documents)
    curvature += own[:, None, None]
    ridge = 1 / np.maximum(joint.T, 1e-6 / k) ** 2
    curvature[:, np.arange(k), np.arange(k)] += ridge
    # In units of the diagonal: curvatures of words differ by many orders.
    scales = np.sqrt(curvature[:, np.arange(k), np.arange(k)])
    curvature /= scales[:, :, None] * scales[:, None, :]
    curvature[:, np.arange(k), np.arange(k)] += ROUNDING
    variance = (np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2) / scales**2).T
    topics_std = np.sqrt(np.maximum(variance, 0.0)) / np.maximum(weights, 1e-12)[:, None]
    weights_std = np.sqrt(np.maximum(variance, 0.0).sum(axis=1))
    others = np.hypot(drift / NINE_TENTHS, MATCHED_SHARES_DRIFT * weights)
    weights_std = np.hypot(MATCHED_SHARES_SCALE * weights_std, others)
    return _capped(MATCHED_SCALE * topics_std, weights_std)


def std_of_decomposed(
    unwhitened: Floats,
    duals: Floats,
    weights: Floats,
    pairs_sigma: float,
    triples_sigma: float,
) -> tuple[Floats, Floats]:
    """Standard deviations of topics and shares, to first order, if topics are rows `unwhitened`,
    scaled, of a decomposed tensor; `duals` (k, d) are its components times the whitener.
    """
    sums = np.maximum(np.abs(unwhitened.sum(axis=1)), 1e-9)
    of_pairs = pairs_sigma * np.linalg.norm(duals, axis=1) / sums
    # Noise turns a component towards the others, each by about its own size.
    turned = np.sqrt((unwhitened**2).sum(axis=0)) / sums[:, None]
    turn = np.minimum(triples_sigma * np.sqrt(weights), 1.0)
    topics_std = np.hypot(of_pairs[:, None], turn[:, None] * turned)
    weights_std = 2 * weights**1.5 * triples_sigma
    return _capped(topics_std, weights_std)
