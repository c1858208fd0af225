"""Standard deviations of topics and of their shares, from the known noise of released values.

They are meant for normal intervals. Noise that EM carries from step to step is measured by a
parametric bootstrap: noisy EM steps on documents drawn from the topics found. Clipping moves shares
without any noise; how far follows from the topics found as well. ``python -m benchmarks
topic_intervals`` prints the coverage, and the scale that would be exact.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import stdtrit

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.concentration import ExplainedTopics
from sktensor_dp.topics.inference import (
    expected_log_proportions,
    topic_posterior,
    variational_proportions,
    word_ratios,
)
from sktensor_dp.topics.moments import ReleasedMoments, pair_precision
from sktensor_dp.topics.shrinkage import LEAST_SHARE, centres_of_topics, posterior_moments

# Standard deviations that hold nine tenths of a normal law.
NINE_TENTHS = 1.6448536269514722

# Calibrated scales: how much deviations are enlarged for 90 % intervals to hold nine of ten.
# A bootstrap draws from the topics found, which separate words less well than the true ones do.
SLACK = 1.4
# Without a bootstrap; and for shares, as all words of a topic may turn to another one at once.
ALONE, SHARES_ALONE = 2.3, 3.3
# Steps that leave more of their way than this are not taken to go on at the same pace.
MOST_LEFT = 2 / 3
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
# Documents of a bootstrap and their tokens, and mean field steps on each.
DOCUMENTS, TOKENS, FIRST_STEPS, LATER_STEPS = 300, 16_000, 20, 5


@dataclass(frozen=True)
class Limits:
    """Clips on what one document contributes; infinite for none."""

    counts: float = np.inf  # of its counts
    order: int = 2  # of this norm: 1 for the number of tokens, 2 for the Euclidean norm
    pairs: float = np.inf  # of its second moment times its number of tokens, Euclidean
    # (d,): scales that counts are divided by before their norm is taken.
    scales: Floats | None = None

    def counted_tokens(
        self, lengths: Floats, repeats: Floats, singles: float | Floats = 1.0
    ) -> Floats:
        """Tokens that count after clipping, of documents of `lengths` tokens."""
        # `repeats` is the expected product of two scaled tokens (without `scales` the probability
        # that they are the same word), and `singles` the expected square of one.
        squares = lengths * singles + lengths * (lengths - 1) * repeats
        counts = np.sqrt(squares) if self.order == 2 else lengths
        pairs = np.sqrt(2) * squares / (lengths - 1)
        return np.minimum(1.0, np.minimum(self.counts / counts, self.pairs / pairs)) * lengths


@dataclass(frozen=True, eq=False)
class Steps:
    """Settings of a fit's noisy EM steps, which the bootstrap repeats."""

    start: Floats  # (k, d): topics of the first step
    rates: tuple[float, ...]  # weight of each step's counts in the running mean
    concentration: float  # sum of the Dirichlet prior; 0 for one topic per document
    length: float  # about how many tokens a document has
    limits: Limits = Limits()  # on what a document counts in them
    # Fraction of the topics given to a step that is subtracted from its counts.
    echo: float = 0.0


def typical_length(limit: float, topics: Floats, weights: Floats, order: int) -> float:
    """Number of tokens of a document of one topic whose counts have the norm `limit`."""
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
    """Bias (k,) of topics' shares by clipping; `total` is the released mean number of tokens."""
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
    """Standard deviations of topics (k, d) and shares (k,) read off noisy expected counts."""
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
        return _at_most_one(ALONE * topics_std), _at_most_one(SHARES_ALONE * weights_std)
    moved, moved_weights = Bootstrap(counts / sizes, weights, kept, steps).errors(sigma / total)
    topics_std *= _enlarged(moved, topics_std, counts / sizes)[:, None]
    if k == 1:  # it has all there is, without noise
        return _at_most_one(SLACK * topics_std), _at_most_one(weights_std)
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
    weights_std = np.hypot(SLACK * weights_std, drift / NINE_TENTHS)
    return _at_most_one(SLACK * topics_std), _at_most_one(weights_std)


def std_of_frequencies(sigma: float | Floats, shape: tuple[int, int]) -> Floats:
    """Standard deviations, of the given shape, of probabilities that are noisy word frequencies."""
    return np.full(shape, _at_most_one(sigma))


def _at_most_one(std: float | Floats) -> Floats:
    """Limit deviations to 1, also where they are NaN: no probability is more uncertain."""
    return np.where(np.less_equal(std, 1.0), std, 1.0)


def _enlarged(moved: Floats, std: Floats, topics: Floats) -> Floats:
    """Factors (k,), at least 1, at the ninth decile of the changes of each topic's clear words."""
    far = np.abs(moved) / np.maximum(std, 1e-300)
    factors = np.ones(len(topics))
    for row, clear in enumerate(topics > ABOVE * std):
        if clear.any():
            factors[row] = max(float(np.quantile(far[row, clear], 0.9)) / NINE_TENTHS, 1.0)
    return factors


class Bootstrap:
    """Noisy EM on documents drawn from the topics found."""

    # `kept` (k, d): fractions of noise that shrinkage leaves in expected counts.

    def __init__(self, topics: Floats, weights: Floats, kept: Floats, steps: Steps) -> None:
        # Nothing that is protected hangs on these draws: all of this is made of released values.
        self._rng = np.random.default_rng(0)
        self._topics, self._weights, self._kept, self._steps = topics, weights, kept, steps
        length = int(steps.length)
        n = max(min(DOCUMENTS, TOKENS // length), 20)
        self._X = _documents(topics, weights, steps.concentration, n, length, self._rng)
        truth, self._gamma = _expected(self._X, topics, weights, steps.concentration, None)
        self._truth, self._size = truth / truth.sum(), truth.sum()

    def errors(self, sigma: float | Floats) -> tuple[Floats, Floats]:
        """Errors of topics and shares by noise `sigma` in the average and by steps ending early."""
        # Steps that end early leave a part of their way. The bootstrap measures that part on a way
        # to the topics found; the true way led beyond them and so was longer.
        short, short_shares = self._run(0.0)
        way = float(np.abs(self._steps.start - self._topics).sum())
        left = min(float(np.abs(short).sum()) / max(way, 1e-300), MOST_LEFT)
        further = left / (1 - left)
        moved, moved_shares = self._run(sigma)
        return moved + further * short, moved_shares + further * short_shares

    def _run(self, sigma: float | Floats) -> tuple[Floats, Floats]:
        rates, echo = self._steps.rates, self._steps.echo
        spent = 0.0
        for rate in rates:
            spent = (1 - rate) ** 2 * spent + rate**2
        sigma = sigma * (1 - echo) / max(spent, 1e-300) ** 0.5
        base = self._weights[:, None] * self._topics
        told, given = np.zeros_like(base), np.zeros_like(base)
        current, shares = self._steps.start, self._weights
        for rate in rates:
            answer, _ = _expected(self._X, current, shares, self._steps.concentration, self._gamma)
            change = answer / self._size - self._truth
            if np.max(sigma) > 0:
                change += sigma * self._rng.standard_normal(base.shape)
            told = (1 - rate) * told + rate * change
            given = (1 - rate) * given + rate * (shares[:, None] * current - base)
            moved = (told - echo * given) / (1 - echo)
            counts = np.maximum(base + self._kept * moved, LEAST_SHARE * base)
            current = counts / counts.sum(axis=1, keepdims=True)
            shares = np.maximum((base + moved).sum(axis=1), 1e-9)
            shares /= shares.sum()
        return current - self._topics, shares - self._weights


def _documents(
    topics: Floats, weights: Floats, concentration: float, n: int, length: int, rng: Any
) -> sp.csr_matrix:
    """Draw a count matrix (n, d) of documents of `length` tokens from the topic model."""
    k, d = topics.shape
    if concentration > 0:
        shares = rng.dirichlet(np.maximum(concentration * weights, 1e-3), n)
    else:
        shares = np.eye(k)[rng.choice(k, n, p=weights / weights.sum())]
    limits = np.cumsum(shares, axis=1)[:, None, :-1]
    topic = (rng.random((n, length, 1)) > limits).sum(axis=2).ravel()
    # One line of all topics' distributions, end to end, is searched for all tokens at once.
    ends = np.cumsum(topics / topics.sum(axis=1, keepdims=True), axis=1)
    ends = (ends + np.arange(k)[:, None]).ravel()
    word = np.searchsorted(ends, topic + rng.random(n * length)) - topic * d
    rows = np.repeat(np.arange(n), length)
    entries = (np.ones(n * length), (rows, np.clip(word, 0, d - 1)))
    return sp.coo_matrix(entries, shape=(n, d)).tocsr()


def _expected(
    X: sp.csr_matrix, topics: Floats, weights: Floats, concentration: float, start: Floats | None
) -> tuple[Floats, Floats | None]:
    """Expected counts (k, d) of one EM step, and where the next step starts (None: no matter)."""
    if concentration == 0:
        return np.asarray((X.T @ topic_posterior(X, topics, weights)).T), None
    prior = np.full(len(topics), concentration / len(topics))
    n_iter = FIRST_STEPS if start is None else LATER_STEPS
    gamma = variational_proportions(X, topics, prior, n_iter=n_iter, start=start)
    odds = np.exp(expected_log_proportions(gamma))
    ratios = word_ratios(X, odds, np.ascontiguousarray(topics.T))
    return topics * np.asarray((ratios.T @ odds).T), gamma


def std_of_matched(
    found: ExplainedTopics, moments: ReleasedMoments, drift: Floats
) -> tuple[Floats, Floats]:
    """Standard deviations of topics and shares fitted to moments, by the fit's curvature."""
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
    weights_std = np.hypot(SHARES_ALONE * weights_std, drift / NINE_TENTHS)
    return _at_most_one(SLACK * topics_std), _at_most_one(weights_std)


def std_of_decomposed(
    unwhitened: Floats, duals: Floats, weights: Floats, pairs_sigma: float, triples_sigma: float
) -> tuple[Floats, Floats]:
    """Standard deviations, to first order, of topics of a decomposed tensor, and of shares."""
    sums = np.maximum(np.abs(unwhitened.sum(axis=1)), 1e-9)
    of_pairs = pairs_sigma * np.linalg.norm(duals, axis=1) / sums
    # Noise turns a component towards the others, each by about its own size.
    turned = np.sqrt((unwhitened**2).sum(axis=0)) / sums[:, None]
    turn = np.minimum(triples_sigma * np.sqrt(weights), 1.0)
    topics_std = np.hypot(of_pairs[:, None], turn[:, None] * turned)
    weights_std = 2 * weights**1.5 * triples_sigma
    return _at_most_one(topics_std), _at_most_one(weights_std)
