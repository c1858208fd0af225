"""Estimates of how evenly documents mix topics.

Unknown topics: the largest concentration that moments allow. Known ones: least squares.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, ndtri

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics import defaults
from sktensor_dp.topics.start import pair_step

# Concentration that is assumed if the moments reject none.
USUAL = 1.0
# Range of estimates. Where none in it fits, the estimate is 0, which is one topic for each
# document; a fit by pairs takes the least one where documents can tell several topics. Above the
# largest documents hardly differ.
LEAST_CONCENTRATION, LARGEST_CONCENTRATION = 0.1, 20.0


@dataclass(frozen=True, eq=False)
class ExplainedTopics:
    """Topics fitted to released moments at one concentration, with the misfit that remains."""

    topics: Floats  # (k, d): rows are distributions
    weights: Floats  # (k,): their shares
    concentration: float
    misfit: float = 0.0  # weighted squared distance of their moments from the released ones

    @property
    def pairs(self) -> Floats:
        """Second moment E2 (d, d) of documents that mix the topics: (M2 + c m m') / (1 + c)."""
        mean, c = self.weights @ self.topics, self.concentration
        pairs = self.topics.T @ (self.weights[:, None] * self.topics) + c * np.outer(mean, mean)
        return np.asarray(pairs / (1 + c))


class WordPairs(NamedTuple):
    """Released second moment of words, from which the concentration is estimated."""

    matrix: Floats  # (d, d): E2 as released
    frequencies: Floats  # (d,): of its words
    sigma: float  # deviation of its noise
    sampling: float = 0.0  # sampling variance of an entry over the product of two frequencies

    def word_scales(self, frequencies: Floats) -> Floats:
        """Scales (d,) of words: an entry over both words' scales has a variance of about 1."""
        return np.asarray((self.sigma**2 + self.sampling * frequencies**2) ** 0.25)


def cost_of_bounds(n_topics: int, n_words: int) -> float:
    """Misfit, in units of its variance, that keeping probabilities from being negative may add.

    At the true concentration it adds more once in a hundred times.
    """
    # Topics are expected to lack half of the words (a choice). Keeping such a probability from
    # being negative costs half of a squared normal variable: mean 1/2, variance 5/4. Words of one
    # topic are free: they make up for its bounds.
    n_bounds = 0.5 * (n_topics - 1) * n_words
    return n_bounds / 2 + float(ndtri(0.99)) * (5 / 4 * n_bounds) ** 0.5


def largest_not_rejected(
    explain: Callable[[ExplainedTopics, float], ExplainedTopics],
    single: ExplainedTopics,
    most_misfit: float,
) -> ExplainedTopics | None:
    """Fit at the largest concentration whose misfit is at most `most_misfit`, by bisection.

    `explain` fits topics at a concentration from those given. None if even LARGEST_CONCENTRATION
    fits; `single`, one topic per document, if none does.
    """
    # The bisection stops when two concentrations have this ratio.
    ratio = 1.05
    if explain(single, LARGEST_CONCENTRATION).misfit <= most_misfit:
        return None
    low = explain(single, LEAST_CONCENTRATION)
    if low.misfit > most_misfit:
        return single
    high = LARGEST_CONCENTRATION
    while high > ratio * low.concentration:
        middle = explain(low, (high * low.concentration) ** 0.5)
        if middle.misfit <= most_misfit:
            low = middle
        else:
            high = middle.concentration
    return low


def concentration_of_pairs(topics: Floats, weights: Floats, released: WordPairs) -> float | None:
    """Estimate the concentration from a released second moment, and `topics` to start from.

    None for one topic, or if no concentration is rejected.
    """
    most_words = 600
    if len(topics) == 1:
        return None
    words = np.sort(np.argsort(-released.frequencies, kind="stable")[:most_words])
    frequencies, topics = released.frequencies[words], topics[:, words]
    scales = released.word_scales(frequencies)
    scales = np.maximum(scales, 1e-12 * max(float(scales.max()), 1e-300))  # none is 0
    total = float(frequencies.sum())
    scaled = _ScaledPairs(
        released.matrix[np.ix_(words, words)] / scales[:, None] / scales,
        frequencies / scales, scales / total, weights,
    )  # fmt: skip
    topics = topics / np.maximum(topics.sum(axis=1, keepdims=True), 1e-300) * total / scales
    single = scaled.explain(ExplainedTopics(topics, weights, 0.0), 0.0)
    k, d = topics.shape
    # Entries of the moment have a variance of about 1: the misfit is divided by the number of
    # entries less that of probabilities fitted to them. Topics that do not fit have a larger one.
    variance = max(single.misfit / max(d * (d + 1) / 2 - k * d, 1), 1.0)
    # Reject a concentration if non-negative topics explain the moment worse than topics of
    # one-topic documents do, by more than it costs at the true concentration to bound topics by 0.
    # Noise that neither explains cancels.
    most_misfit = single.misfit + variance * cost_of_bounds(k, d)
    found = largest_not_rejected(scaled.explain, single, most_misfit)
    return None if found is None else found.concentration


@dataclass(frozen=True, eq=False)
class _ScaledPairs:
    """Released second moment, its words scaled so that entries have a variance of about 1."""

    pairs: Floats  # (d, d)
    mean: Floats  # (d,): frequencies of the words
    word_masses: Floats  # (d,): scaled topics times these sum to 1
    weights: Floats  # (k,): shares of topics

    def explain(self, start: ExplainedTopics, concentration: float) -> ExplainedTopics:
        """Topics that fit the pairs from a `start`, with the misfit that is left."""
        n_steps = 12
        topics = start.topics
        for _ in range(n_steps):
            stepped = pair_step(
                topics, self.weights, partial(self._single_pairs, concentration), self.mean,
                self.word_masses,
            )  # fmt: skip
            # Averaging topics and their update is Newton's method for the square root.
            topics = (topics + stepped) / 2
        fitted = ExplainedTopics(topics, self.weights, concentration)
        # Entries off the diagonal are there twice.
        return replace(fitted, misfit=float(((self.pairs - fitted.pairs) ** 2).sum()) / 2)

    def _single_pairs(self, concentration: float, V: Floats) -> Floats:
        """Product of `V` with the second moment corrected to that of one-topic documents."""
        mean = self.mean
        return (1 + concentration) * (self.pairs @ V) - concentration * np.outer(mean, mean @ V)


@dataclass(frozen=True, eq=False)
class PairsOfTopics:
    """Released pairs of words, as they tell of the concentration of topics and their mixtures."""

    topics: Floats  # (k, d): of the words, in units of the errors of their pairs
    # (k, k): topics times released pairs times topics, without the diagonal, whose noise differs.
    between: Floats

    @classmethod
    def of(cls, topics: Floats, released: WordPairs) -> "PairsOfTopics | None":
        """Divide topics (k, d) and pairs by the errors of pairs; None if these have no errors."""
        # A word that is hardly there has the scale of a hundredth of an even share.
        frequencies = released.frequencies
        frequencies = np.maximum(frequencies, frequencies.sum() / (100 * frequencies.size))
        scales = released.word_scales(frequencies)
        if not scales.any():
            return None
        topics, matrix = topics / scales, released.matrix / scales[:, None] / scales
        return cls(topics, topics @ matrix @ topics.T - (topics * matrix.diagonal()) @ topics.T)

    def concentration(self, weights: Floats, mixtures: Floats | None = None) -> float | None:
        """Concentration by which topics, or their mixtures (k, k), explain the pairs.

        None if noise hides it.
        """
        # E2 - m m' is (M2 - m m') / (1 + concentration): the ratio is found by least squares off
        # the diagonal, where M2 - m m' is a product of topics with `inner` between.
        mixtures = np.eye(len(weights)) if mixtures is None else mixtures
        topics, between = mixtures @ self.topics, mixtures @ self.between @ mixtures.T
        inner, gram = np.diag(weights) - np.outer(weights, weights), topics @ topics.T
        diagonal, mean = ((inner @ topics) * topics).sum(axis=0), weights @ topics
        turned = inner @ gram
        square = float((turned * turned.T).sum() - diagonal @ diagonal)
        of_means = float(weights @ gram @ turned @ weights - diagonal @ mean**2)
        overlap = float((inner * between).sum()) - of_means
        # `overlap` has a variance of about twice `square`, as pairs are symmetric. A ratio within
        # three deviations of 0 may be noise.
        if overlap <= 3 * (2 * max(square, 0.0)) ** 0.5:
            return None
        return min(max(square / overlap - 1, LEAST_CONCENTRATION), LARGEST_CONCENTRATION)


def concentration_of_length(length: float) -> float:
    """Concentration that forecasts assume of documents of about `length` tokens.

    Short texts, such as titles, mix fewer topics than long ones.
    """
    return USUAL * length / (length + defaults.HALF_MIXED)


def has_one_topic(concentration: float, length: float, n_components: int) -> bool:
    """True if documents of `length` tokens are too short to show more than one topic each.

    They have fewer tokens than topics and one more; and are expected to mix fewer than two topics,
    or to have fewer than `TOKENS_OF_TOPIC` tokens for each that they mix.
    """
    n_topics = expected_topics(concentration, length)
    too_few_tokens = n_topics < 2 or length < defaults.TOKENS_OF_TOPIC * n_topics
    return length < n_components + 1 and too_few_tokens


def expected_topics(concentration: float, length: float) -> float:
    """Expected number of topics in a document of `length` tokens, if there are many topics."""
    # Sum of a / (a + i) over the tokens i = 1 to length - 1 after the first.
    later = digamma(concentration + max(length, 1.0)) - digamma(concentration + 1)
    return 1 + concentration * float(later)
