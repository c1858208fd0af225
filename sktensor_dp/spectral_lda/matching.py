"""Topics whose documents give the expected counts that EM steps released.

Steps lag behind documents, by mean field and with an even prior, and topics of documents that mix
them come out too sharp or too blurred, and too even in size. Steps over documents drawn from a
model are off alike. So topics and shares move until these give the counts that were released
(indirect inference; Gourieroux, Monfort & Renault, 1993). They move within the span of the topics:
many words together tell how much of one topic is in another.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.spectral_lda.fitted import FittedTopics
from sktensor_dp.tensor.arrays import Floats, as_generator
from sktensor_dp.topics.documents import drawn_documents, drawn_shares
from sktensor_dp.topics.shrinkage import LEAST_SHARE

# Tokens of documents drawn for each step of each round, and most pairs of these and topics, which
# memory holds at once.
DRAWN, PAIRS = 2**16, 2**21
# Rounds, and the factor on the moves of each: steps go less than all the way to documents.
ROUNDS, GAIN = 4, 1.5


class Step(NamedTuple):
    """Query of an EM step, and the rows of its counts whose topics were kept."""

    query: ExpectedCounts
    rows: NDArray[np.intp]


def matched(
    fitted: FittedTopics, steps: tuple[Step, ...], mean: Floats, variance: float,
    scales: Floats | float, n_units: int, concentration_of: Callable[[FittedTopics], float],
) -> FittedTopics:  # fmt: skip
    """Topics, shares and concentration by which `steps` over drawn documents give `mean`.

    `mean` are counts (k, d) of a unit, divided by `scales`, with noise of this `variance`. The
    error of topics is half of what they move by.
    """
    total = float((scales * mean).sum())
    if total <= 0:  # noise alone
        return fitted
    rng, before = as_generator(0), fitted.topics / scales
    for _ in range(ROUNDS):
        fitted = replace(fitted, concentration=concentration_of(fitted))
        topics, joint = fitted.topics, fitted.weights[:, None] * fitted.topics
        # Directions of words within the span of topics; all have the same noise.
        _, lengths, words = np.linalg.svd(topics / scales, full_matrices=False)
        words = words[lengths > 1e-6 * lengths.max()]
        drawn = _Drawn.of(fitted, steps, words, rng)
        unit = total / max(float((scales * drawn.mean).sum()), 1e-300)
        moves = (mean - unit * drawn.mean) @ words.T
        # Errors that noise and chance explain stay (James & Stein, 1961).
        by_chance = unit**2 * drawn.variance * (1 + drawn.n / n_units)
        expected = len(topics) * (variance + by_chance)
        shown = np.maximum(1 - expected / np.maximum((moves**2).sum(axis=0), 1e-300), 0.0)
        joint = joint + GAIN / total * scales * ((moves * shown) @ words)
        joint = np.maximum(joint, LEAST_SHARE * np.outer(fitted.weights, fitted.weights @ topics))
        weights = joint.sum(axis=1)
        fitted = replace(fitted, topics=joint / weights[:, None], weights=weights / weights.sum())
    mixtures = np.linalg.lstsq(before.T, (fitted.topics / scales).T, rcond=None)[0].T
    return replace(
        fitted, concentration=concentration_of(fitted),
        mixing_error=(mixtures - np.eye(len(mixtures))) / 2,
    )  # fmt: skip


class _Drawn(NamedTuple):
    """Mean counts of steps over documents drawn from a model."""

    mean: Floats  # (k, d)
    variance: Floats  # (r,): of its products with directions of words, by chance
    n: int  # number of documents

    @classmethod
    def of(
        cls, fitted: FittedTopics, steps: tuple[Step, ...], words: Floats, rng: np.random.Generator
    ) -> "_Drawn":
        """Draw documents anew for each of the `steps`, in two halves; `words` are directions."""
        tokens = max(min(DRAWN, PAIRS // len(fitted.topics)), 4)
        length = min(max(round(fitted.length), 2), tokens // 2)
        n, total, products = tokens // (2 * length), np.zeros_like(fitted.topics), []
        for query, rows in steps:
            for _ in range(2):
                shares = drawn_shares(fitted.weights, fitted.concentration, n, rng)
                documents = drawn_documents(fitted.topics, shares, length, rng)
                counts = query.total(CountChunk(documents))[rows] / n
                total += counts
                products.append(counts @ words.T)
        halves = np.array(products)
        errors = (halves[::2] - halves[1::2]) / 2
        variance = np.square(errors).mean(axis=(0, 1)) / len(steps)
        return cls(total / len(halves), variance, 2 * n * len(steps))
