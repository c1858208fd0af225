"""Topics moved away from each other, by as much as EM steps lag behind documents."""

import math
from dataclasses import replace

import numpy as np

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.spectral_lda import defaults
from sktensor_dp.spectral_lda.fitted import FittedTopics
from sktensor_dp.tensor.arrays import Floats, as_generator
from sktensor_dp.topics.documents import drawn_documents, drawn_shares
from sktensor_dp.topics.shrinkage import LEAST_SHARE

# Most tokens that are drawn, most pairs of these and topics, which memory holds at once, and the
# blur of the topics from which a step over them is made.
DRAWN, PAIRS, BLUR = 2**17, 2**21, 0.2
# Least square distance of topics: noise may leave equal ones.
LEAST_SQUARE = 1e-300


def sharpened(fitted: FittedTopics, starts: Floats, n_iter: int) -> FittedTopics:
    """Topics as they would be if steps from `starts` (k, d) had gone all the way to documents.

    One factor takes all topics away from their mean; it is 1 where steps did not lag behind.
    """
    # A step from topics s goes a fraction r of the way to those of the documents. Less its echo,
    # (s + r (t - s) - e s) / (1 - e), it gives x, so that t = x + ((1 - e) / r - 1) (x - s).
    rest = (1 - defaults.ECHO) / step_response(fitted, n_iter) - 1
    weights, base = fitted.weights[:, None], fitted.weights @ fitted.topics
    away = fitted.topics - base
    moved = fitted.topics - starts / np.maximum(starts.sum(axis=1, keepdims=True), 1e-300)
    square = max(float((weights * away**2 / base).sum()), LEAST_SQUARE)
    along = (weights * moved * away / base).sum() / square  # part of `away` that steps moved
    topics = np.maximum(base + (1 + max(rest * along, 0.0)) * away, LEAST_SHARE * base)
    return replace(fitted, topics=topics / topics.sum(axis=1, keepdims=True))


def step_response(fitted: FittedTopics, n_iter: int) -> float:
    """Fraction of the way that an EM step goes from blurred topics to those of documents.

    The documents are drawn from the model, and are as long as those of the fit.
    """
    topics, weights = fitted.topics, fitted.weights
    k, single = len(topics), fitted.concentration == 0
    n_tokens = max(min(DRAWN, PAIRS // k), 2)
    length = min(max(round(fitted.length), 2), n_tokens)
    rng = as_generator(0)
    shares = drawn_shares(weights, fitted.concentration, n_tokens // length, rng)
    drawn = CountChunk(drawn_documents(topics, shares, length, rng))
    base = weights @ topics
    blurred = (1 - BLUR) * topics + BLUR * base
    prior = weights if single else np.full(k, fitted.concentration / k)

    def step(start: Floats) -> Floats:
        """Topics after an EM step."""
        query = ExpectedCounts(start, prior, single, math.inf, n_iter=n_iter)
        sums = query.total(drawn)
        return np.asarray(sums / sums.sum(axis=1, keepdims=True))

    lag, away = step(topics) - step(blurred), topics - blurred
    return float(1 - (lag * away / base).sum() / max((away**2 / base).sum(), LEAST_SQUARE))
