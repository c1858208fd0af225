"""Forecast of shares of topics by group: how far intervals reach, and whether they say anything."""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

import numpy as np

from sktensor_dp.checks.display import counted
from sktensor_dp.spectral_lda.share_noise import (
    chance_variance,
    confusion_of,
    inverse_of,
    mixing_variance,
    variance_of_shares,
)
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.confusion import without_hidden
from sktensor_dp.topics.inference import TINY

# Factor on noise, and on the variance by chance, of persons with about four texts that differ in
# group or topic: the norm of their counts, 2, is half of the sum. Both are equal of texts that are
# alike, or of one.
FEW_TEXTS = 0.5
# Factor of persons who write texts that are alike, but not equally many: E[n^2] / E[n]^2 for
# numbers n spread evenly from 0 on.
UNEVEN_TEXTS = 4 / 3
WIDE = (
    "Intervals of shares by group {} {:.0f} points to either side {} (shares are {:.0f} points on "
    "average; differences between groups may be told better)"
)
HARD = "topics are hard to tell apart"
LEVEL_REACH = NormalDist().inv_cdf(0.95)  # of intervals of level 90 %, in deviations


class TopicError(NamedTuple):
    """Parts of the interval of a topic's share."""

    noise: float  # factor on the noise of a sum
    chance: float  # deviation of what a text adds to the share
    mixed: float = 0.0  # deviation by errors of topics, where these are found
    hidden: float = 0.0  # how far the share is off if hidden topics are nothing, or all there


class FoundTopics(NamedTuple):
    """Topics of a model, as releases show them before their shares by group are paid for."""

    seen: list[TopicError]  # of topics that noise does not hide
    # Noise of a group's number of texts, or of the share of the topic that is seen best, whichever
    # is larger, relative to these and to the noise of a share: the factor of `TopicShares.shows`.
    # Infinite if no topic is seen, or there is one alone.
    factor: float
    hidden: float  # share of topics that noise hides
    n_topics: int  # with these

    @classmethod
    def of(cls, model: Any, matrix: Floats | None = None) -> "FoundTopics":
        """Topics of a fitted model; `matrix` is their confusion, if it is computed already."""
        matrix = confusion_of(model) if matrix is None else matrix
        shares, hidden, k = model._shares, model.hidden(), model.n_components_
        mixtures = without_hidden(model.components_, hidden)
        inverse = inverse_of(matrix, mixtures)
        noise = np.sqrt(variance_of_shares(inverse, shares))
        chance = np.sqrt(chance_variance(matrix, inverse, shares[None])[0])
        mixed = np.sqrt(mixing_variance(model.mixing_covariance_, shares[None])[0])
        by_topics = np.abs(shares @ mixtures - shares) / 2  # half of hidden texts count for others
        parts = np.stack([noise, chance, mixed, by_topics], axis=1)
        least = (noise / np.maximum(shares, TINY)).min(initial=math.inf, where=~hidden & (k > 1))
        return cls(
            [TopicError(*topic) for topic in parts[~hidden].tolist()],
            max(math.sqrt(k), float(least)), float(shares[hidden].sum()), k,
        )  # fmt: skip


class ShareForecast(NamedTuple):
    """Noise and intervals that shares by group are expected to have, if texts are spread evenly."""

    shares: Any  # TopicShares, not fitted
    # Those found that noise does not hide; before a fit one each of two kinds.
    topics: Sequence[TopicError]
    n_units: float  # infinite where it is private
    for_persons: bool
    found: FoundTopics | None = None  # None before a fit
    n_asked: int = 0  # topics asked for, before a fit

    def why_not(self) -> str:
        """Say why shares of the topics found would say nothing, or little; else ""."""
        if (found := self.found) is None:
            return ""
        if math.isinf(found.factor):
            return "No topic can be seen above the noise, or there is one alone"
        shares, n_units = self.shares, self.n_units
        if not shares.shows(n_units, found.factor, self.for_persons):
            shows_texts = shares.shows(n_units, math.sqrt(found.n_topics), self.for_persons)
            hides = "the share of each topic in" if shows_texts else "how many texts there are in"
            units = counted(n_units, "person" if self.for_persons else "text")
            return (
                f"Noise would hide {hides} each of {counted(len(shares.values), 'group')}: of "
                f"{units}, spread evenly, at this epsilon"
            )
        if found.hidden > 0.5:
            moved = max(one.hidden for one in found.seen)
            return (
                f"Topics that noise hides hold {found.hidden:.0%} of the words and may be mixtures "
                f"of those seen, so shares by group of these would be off by up to {moved:.0%} "
                "beside noise"
            )
        return self.on_width() if self.blurs() else ""

    @property
    def bound(self) -> float:
        """Bound on texts of a person, where it is given; else 0."""
        given = self.shares.texts_per_person
        return 0.0 if given == "auto" or not self.for_persons else float(given)

    @property
    def ends(self) -> tuple[float, float]:
        """Factors on noise, and on the variance by chance: least and largest for usual persons."""
        if self.for_persons and not self.bound:
            return FEW_TEXTS, UNEVEN_TEXTS
        return 1.0, max(self.bound, 1)

    @property
    def average_share(self) -> float:
        """Average share of the topics; `topics` count for half of what hidden ones hold."""
        hidden = 0.0 if self.found is None else self.found.hidden
        return (1 - hidden / 2) / (self.n_asked or len(self.topics))

    @property
    def are_narrow(self) -> bool:
        """True if no interval of the topics found is wider than their average share."""
        return 2 * max(self.reaches(self.ends)) <= self.average_share

    def blurs(self) -> bool:
        """Return True if intervals of the topics found are on average wider at any epsilon."""
        return 2 * self._least_reach() > self.average_share

    def _least_reach(self, *, errors: bool = True) -> float:
        """Average over topics of the least that intervals reach at any epsilon."""
        return fmean(self.reaches(self.ends[:1], noise=False, errors=errors))

    def on_width(self) -> str:
        """Say how far intervals reach if they are wider than the average share, and why; or ""."""
        if self.are_narrow:
            return ""
        likely, reach = "may reach up to", max(self.reaches(self.ends))
        why = "by noise, chance, and errors of topics together"
        if self.blurs():
            likely, reach = "will reach about", self._least_reach()
            by_chance = self._least_reach(errors=False)
            why = "few texts are in each" if 2 * by_chance**2 > reach**2 else HARD
            why = f"whatever epsilon they get, as {why}"
        return WIDE.format(likely, 100 * min(reach, 1), why, 100 * self.average_share)

    def reaches(
        self, ends: Sequence[float], *, noise: bool = True, errors: bool = True, apart: bool = False
    ) -> list[float]:
        """Reaches of 90 % intervals of each topic with each factor of `ends`, in one list.

        They are by noise, chance, and errors of topics; without `noise` no epsilon makes them
        smaller, and without `errors` topics are taken to have none. Those of two groups `apart` are
        of their difference.
        """
        of_noise, reaches = self.noise_of_shares() * noise, []
        for factor, deviation, mixed, hidden in self.topics:
            chance = self.shares.expected_chance(self.n_units, deviation)
            reaches += [
                LEVEL_REACH
                * math.sqrt(1 + apart)
                * math.hypot(of_noise * factor * times, chance * math.sqrt(times), errors * mixed)
                + errors * hidden
                for times in ends
            ]
        return reaches

    def noise_of_shares(self) -> float:
        """Noise of shares, as `TopicShares.expected_noise` has it."""
        return float(self.shares.expected_noise(self.n_units, self.for_persons))
