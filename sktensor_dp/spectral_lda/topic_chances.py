"""Chances of how many topics a fit sees, as texts differ in how strong their topics are."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import largest_over_edge
from sktensor_dp.topics import defaults

# Eigenvalues of topics fall with their rank r in proportion to r to the power of minus one of
# these: those of texts by about 1, those of topics of one size not at all.
POWERS = np.array([0.0, 0.5, 1.0])
# Levels of a range of numbers of topics: one fit in twenty is below, and one above.
LEAST, MOST = 0.95, 0.05


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

    `strength` is the eigenvalue of the weakest one, if topics are as strong as those of ordinary
    texts, over the least that a fit takes for a topic. Strengths of texts differ, by log-normal
    factors. A fit whose second topic does not stand out sees none: one topic is the frequencies of
    words. Otherwise EM steps confirm further topics that stand out less.
    """

    n_asked: int
    n_possible: int
    strength: float

    def chance(self, least: int) -> float:
        """Probability that `least` topics or more are seen."""
        if least > self.n_possible or self.strength == 0:
            return 0.0
        return _chance(self.n_asked, least, self.strength)

    def range(self, *, if_any: bool = False) -> tuple[int, int]:
        """Least and largest number of topics in nine of ten fits, or of those that see any."""
        of_all = self.chance(1) if if_any else 1.0
        chances = np.array([self.chance(n) for n in range(1, self.n_asked + 1)])
        return int((chances >= LEAST * of_all).sum()), int((chances > MOST * of_all).sum())


def _chance(n_asked: int, least: int, strength: float) -> float:
    """Probability that topics of a `strength` are seen, `least` or more of those asked for."""
    needed = np.maximum(
        (min(2, n_asked) / n_asked) ** POWERS,  # strength by which the second topic stands out
        defaults.CONFIRMED * (least / n_asked) ** POWERS,  # and by which so many are confirmed
    )
    if math.isinf(strength):
        return 1.0
    deviations: Floats = np.log(strength / needed) / defaults.STRENGTH_SPREAD
    return float(ndtr(deviations).mean())
