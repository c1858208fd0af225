"""Forecast of shares of topics by group, in words, for the command ``topics``."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from sktensor_dp.checks.display import counted
from sktensor_dp.spectral_lda import PrivateSpectralLDA
from sktensor_dp.spectral_lda.share_noise import errors_of_topics, noise_by_topic, noise_of_seen
from sktensor_dp.spectral_lda.shares import TopicShares

# Factors on the noise of shares by group: of topics that have words of their own, and of topics
# that share most words, as in forums and newsgroups.
NOISE_FACTORS = 1.0, 10.0
# Factor on that noise, and on the variance by chance, of persons with about four texts that differ
# in group or topic, beside one text or texts that are alike: their norm is the root of four.
FEW_TEXTS = 0.5
LEVEL_REACH = NormalDist().inv_cdf(0.95)  # of intervals of level 90 %, in deviations


class TopicError(NamedTuple):
    """Parts of the interval of a topic's share."""

    noise: float  # factor on the noise of a sum
    share: float
    mixed: float = 0.0  # deviation by errors of topics, where these are found
    hidden: float = 0.0  # how far hidden topics may move the share


class GroupForecast(NamedTuple):
    """Noise and intervals that shares by group are expected to have, if texts are spread evenly."""

    shares: TopicShares  # not fitted
    topics: Sequence[TopicError]
    n_units: int
    for_persons: bool
    bound: int  # on texts of a person, as --texts-per-person says; else 0

    def in_words(self, n_topics: int, verdict: str) -> str:
        """Noise of shares, and how far intervals reach.

        A `verdict` is given if the topics are found already.
        """
        moved, head, found, if_uneven, ahead = self.moved, "Of", "", "", ""
        n_groups = counted(len(self.shares.values), "group")
        bound = self.bound
        few_texts = FEW_TEXTS if self.for_persons and not bound else 1.0
        if few_texts < 1:
            ahead = (
                " Lower ends are of persons who write about four texts each, of different groups; "
                "of one text each noise is twice as large (the run has less with "
                "--texts-per-person 1)."
            )
        if verdict:
            head, found = f"{verdict.capitalize()}: of", " found"
        else:
            ahead += (
                " Where topics share most words, as those of short texts do, the upper ends hold. "
                "Errors of topics, which their fit tells, add to that; in differences they are in "
                "proportion to these. A run stops before it pays for shares that noise would hide."
            )
        if bound > 1:
            if_uneven = (
                f" if each person writes {bound:,} texts, by {moved(bound)} if each writes one"
            )
        elif few_texts < 1:
            if_uneven = (
                f", by {moved(2)} where some write far more of the same topics, by {moved(16)} "
                "where of others (a few who write very much stay hidden, and may shift it further)"
            )
        return (
            f"{head} each of {n_groups}, if texts are spread evenly, noise moves the share of a "
            f"topic{found} ({1 / n_topics:.1%} on average) by about {moved(few_texts, 1)} (one "
            f"deviation){if_uneven}; by more in a smaller group. Intervals of 90% reach about "
            f"{self._reach(few_texts, max(bound, 1))} to either side, of which chance alone, which "
            f"no epsilon makes smaller, is {self._reach(few_texts, max(bound, 1), noise=False)}"
            f"{self._of_topics()}.{ahead}"
        )

    def _of_topics(self) -> str:
        """Say how far intervals reach by errors of topics alone, where these are found."""
        reaches = [LEVEL_REACH * one.mixed + one.hidden for one in self.topics]
        if not any(reaches):
            return ""
        return (
            f", and errors of the topics found {_range(min(reaches), max(reaches))}, which in "
            "differences between groups are in proportion to these"
        )

    def moved(self, least: float, most: float | None = None) -> str:
        """Range over topics of the noise of shares, from `least` times it to `most` times."""
        noise, factors = self._noise_of_shares(), [one.noise for one in self.topics]
        return _range(noise * least * min(factors), noise * (most or least) * max(factors))

    def _reach(self, least: float, most: float, *, noise: bool = True) -> str:
        """Range over topics of how far 90 % intervals reach; without `noise` by chance alone.

        `least` and `most` are factors on noise, and on the variance by chance.
        """
        of_noise, reaches = self._noise_of_shares() * noise, []
        for factor, share, mixed, hidden in self.topics:
            # Confused topics blur noise and chance alike.
            chance = self.shares.expected_chance(self.n_units, share) * max(factor, 1.0)
            reaches += [
                LEVEL_REACH
                * math.hypot(of_noise * factor * times, chance * math.sqrt(times), noise * mixed)
                + noise * hidden
                for times in (least, most)
            ]
        return _range(min(reaches), max(reaches))

    def _noise_of_shares(self) -> float:
        """Noise of shares, as `TopicShares.expected_noise` has it."""
        return self.shares.expected_noise(self.n_units, self.for_persons)


def topics_seen(model: PrivateSpectralLDA) -> list[TopicError]:
    """Return what widens intervals of the topics of a fitted model that noise does not hide."""
    seen = ~model.hidden()
    found = zip(noise_by_topic(model), model._shares, *errors_of_topics(model), strict=True)
    return [
        TopicError(*map(float, one)) for one, is_seen in zip(found, seen, strict=True) if is_seen
    ]


@lru_cache(1)
def cached_noise_of_seen(model: PrivateSpectralLDA) -> float:
    """Noise of shares of a model's topics, as `noise_of_seen` has it, for many forecasts."""
    return noise_of_seen(model)


def _range(low: float, high: float) -> str:
    """Say from where to where a number of at most 1 may be, as percentages."""
    return " to ".join(dict.fromkeys(f"{min(end, 1):.1%}" for end in (low, high)))
