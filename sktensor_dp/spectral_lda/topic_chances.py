"""Chances of how many topics a fit sees, as texts differ in how strong their topics are."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import largest_over_edge
from sktensor_dp.topics import defaults

# Levels of a range of numbers of topics: one fit in twenty is below, and one above.
LEAST, MOST = 0.95, 0.05
# Distance of the logarithms of strengths at which chances are computed.
STEP = 0.25


def least_over_half_edge(n_words: int) -> float:
    """Least eigenvalue of pairs of words that a fit takes for a topic, over half of noise's edge.

    An eigenvalue x shows as ``x + edge^2 / (4 x)`` (Baik, Ben Arous & Peche, 2005), which has to
    exceed the largest that noise alone gives but seldom.
    """
    largest = largest_over_edge(n_words, 1)
    return largest + math.sqrt(largest**2 - 1)


@dataclass(frozen=True)
class SeenTopics:
    """Number of topics seen by a fit that asks for `n_asked`, at most `n_possible`.

    `strength` is the eigenvalue of the topic of the last rank, if topics are as strong as those of
    ordinary texts, over the least that a fit takes for a topic. Eigenvalues fall as 1 / rank, but
    for log-normal factors, one of the collection and one of each topic. A fit of which no two
    topics stand out sees none: one topic is the frequencies of words. Otherwise EM steps confirm
    further topics that stand out less.
    """

    n_asked: int
    n_possible: int
    strength: float

    def chance(self, least: int) -> float:
        """Probability that `least` topics or more are seen."""
        if least > self.n_possible or self.strength == 0:
            return 0.0
        if math.isinf(self.strength):
            return 1.0
        return float(self._chances[least])

    @property
    def _chances(self) -> Floats:
        """Probabilities that as many topics as the place says, or more, are seen."""
        points = _points(self.n_asked)
        between = (points[1:] + points[:-1]) / 2 - math.log(self.strength)
        below = np.concatenate([[0.0], ndtr(between / defaults.STRENGTH_SPREAD), [1.0]])
        weights = np.diff(below)
        settings = defaults.TOPIC_SPREAD, defaults.CONFIRMED
        chances: Floats = weights @ _chances_at_points(self.n_asked, *settings)
        return chances

    def range(self) -> tuple[int, int]:
        """Least and largest number of topics in nine of ten fits that see any; or none of any."""
        of_all = self.chance(1)
        if of_all <= MOST:
            return 0, 0
        chances = np.array([self.chance(n) for n in range(1, self.n_asked + 1)])
        return int((chances >= LEAST * of_all).sum()), int((chances > MOST * of_all).sum())


def _points(n_asked: int) -> Floats:
    """Logarithms of strengths, from where hardly any fit sees topics to where all see all."""
    reach = 5 * defaults.TOPIC_SPREAD + STEP
    return np.arange(-math.log(n_asked) - reach, reach, STEP)


@lru_cache(16)
def _chances_at_points(n_asked: int, spread: float, confirmed: float) -> Floats:
    """Probabilities that as many topics as the column says, or more, are seen; a row a strength.

    `spread` is that of topics, `confirmed` the strength at which steps confirm them.
    """
    points, n_shown = _points(n_asked), min(2, n_asked)
    # Of the topics of the first ranks: how many stand out, up to `n_shown`, and are confirmed.
    state = np.zeros((len(points), n_shown + 1, n_asked + 1))
    state[:, 0, 0] = 1.0
    for rank in range(1, n_asked + 1):
        strengths = points + math.log(n_asked / rank)
        stands_out = ndtr(strengths / spread)[:, None, None]
        is_confirmed = ndtr((strengths - math.log(confirmed)) / spread)[:, None, None]
        before, state = state, (1 - is_confirmed) * state
        state[:, :, 1:] += (is_confirmed - stands_out) * before[:, :, :-1]
        state[:, 1:, 1:] += stands_out * before[:, :-1, :-1]
        state[:, -1, 1:] += stands_out[:, 0] * before[:, -1, :-1]
    seen: Floats = state[:, -1, ::-1].cumsum(axis=1)[:, ::-1]
    return seen
