"""Estimate how evenly documents mix topics: the largest concentration not rejected by moments."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics import defaults
from sktensor_dp.topics.start import pair_step

# The concentration that is assumed where moments reject none.
USUAL = 1.0
# Documents count as having one topic each below the first; beyond the second all are alike.
LEAST_CONCENTRATION, LARGEST_CONCENTRATION = 0.1, 20.0
# Ratio of two concentrations between which the bisection ends.
RATIO = 1.05
# Steps without shrinkage where a concentration is tried on pairs, of so many words at most.
TRIED_STEPS, TRIED_WORDS = 12, 600
# Share of words that topics are expected to lack. To keep a probability of 0 from being fitted as
# negative costs a squared normal half of the time: mean 1/2, variance 5/4. A concentration is
# rejected where bounds cost more than the .99 quantile of that.
LACKED, QUANTILE = 0.5, 2.33


@dataclass(frozen=True, eq=False)
class ExplainedTopics:
    """Topics fitted to released moments at one concentration, with the misfit that remains."""

    topics: Floats  # (k, d): rows are distributions
    weights: Floats  # (k,): their shares
    concentration: float
    misfit: float  # weighted squared distance of their moments from the released ones


def largest_not_rejected(
    explain: Callable[[ExplainedTopics, float], ExplainedTopics],
    single: ExplainedTopics,
    most: float,
) -> ExplainedTopics | None:
    """Fit at the largest concentration whose misfit is at most `most`, by bisection."""
    # None if no concentration misfits more; one topic per document if all do.
    if explain(single, LARGEST_CONCENTRATION).misfit <= most:
        return None
    found = explain(single, LEAST_CONCENTRATION)
    if found.misfit > most:
        return single
    high = LARGEST_CONCENTRATION
    while high > RATIO * found.concentration:
        tried = explain(found, (high * found.concentration) ** 0.5)
        if tried.misfit <= most:
            found = tried
        else:
            high = tried.concentration
    return found


def concentration_of_pairs(
    topics: Floats,
    weights: Floats,
    pairs: Floats,
    frequencies: Floats,
    sigma: float,
    sampling: float = 0.0,
) -> float | None:
    """Estimate the concentration from a released second moment with noise `sigma`, or None."""
    # Rejected: non-negative topics leave more of the moment than topics of one topic a document do,
    # by more than bounds at 0 cost where it is right. Noise that no topics explain cancels.
    if len(topics) == 1:
        return None
    words = np.sort(np.argsort(-frequencies, kind="stable")[:TRIED_WORDS])
    pairs, frequencies, topics = pairs[np.ix_(words, words)], frequencies[words], topics[:, words]
    # In these units every entry has about unit variance, by noise or by sampling; `sampling` is
    # an entry's sampling variance over the product of its words' frequencies.
    units = (sigma**2 + sampling * frequencies**2) ** 0.25
    units = np.maximum(units, 1e-12 * max(float(units.max()), 1e-300))
    total = float(frequencies.sum())
    mean, pairs = frequencies / units, pairs / units[:, None] / units

    def explain(start: ExplainedTopics, concentration: float) -> ExplainedTopics:
        topics, scale = start.topics, 1 + concentration
        for _ in range(TRIED_STEPS):
            # The average of topics and what they lead to is Newton's method for the square root.
            topics = (topics + pair_step(
                topics, weights,
                lambda V: scale * (pairs @ V) - concentration * np.outer(mean, mean @ V), mean,
                units / total,
            )) / 2  # fmt: skip
        own = weights @ topics
        left = pairs - topics.T @ ((weights / scale)[:, None] * topics)
        left -= concentration / scale * np.outer(own, own)
        return ExplainedTopics(topics, weights, concentration, float((left**2).sum()) / 2)

    topics = topics / np.maximum(topics.sum(axis=1, keepdims=True), 1e-300) * total / units
    single = explain(ExplainedTopics(topics, weights, 0.0, 0.0), 0.0)
    bounds, d = LACKED * (len(topics) - 1) * len(words), len(words)
    # Where topics do not fit, what is left of the moment is the variance.
    variance = max(single.misfit / max(d * (d + 1) / 2 - len(topics) * d, 1), 1.0)
    most = single.misfit + variance * (bounds / 2 + QUANTILE * (5 / 4 * bounds) ** 0.5)
    found = largest_not_rejected(explain, single, most)
    return None if found is None else found.concentration


def has_one_topic(concentration: float, length: float, n_components: int) -> bool:
    """True if documents of `length` tokens are too short to show that they mix topics."""
    expected = expected_topics(concentration, length)
    return length < n_components + 1 and (
        expected < 2 or length < defaults.TOKENS_OF_TOPIC * expected
    )


def expected_topics(concentration: float, length: float) -> float:
    """Expected number of distinct topics, of many, in a document of `length` tokens."""
    # The sum of a / (a + i) over tokens i = 1 to length - 1 that are drawn after the first.
    later = digamma(concentration + max(length, 1.0)) - digamma(concentration + 1)
    return 1 + concentration * float(later)
