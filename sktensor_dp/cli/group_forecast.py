"""Forecast of shares of topics by group, in words, for the command ``topics``."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean
from typing import NamedTuple

from sktensor_dp.checks.display import Table, as_text, counted
from sktensor_dp.spectral_lda import PrivateSpectralLDA
from sktensor_dp.spectral_lda.share_noise import (
    chance_by_topic,
    errors_of_topics,
    noise_by_topic,
    noise_of_seen,
)
from sktensor_dp.spectral_lda.shares import TopicShares

# Factors on the noise of shares by group: of topics that have words of their own, and of topics
# that share most words, as in forums and newsgroups.
NOISE_FACTORS = 1.0, 10.0
# Factor on that noise, and on the variance by chance, of persons with about four texts that differ
# in group or topic: the norm of their counts, 2, is half of the sum. Of texts that are alike, or of
# one, both are equal.
FEW_TEXTS = 0.5
# Factor of persons who write texts that are alike, but not equally many: E[n^2] / E[n]^2 for
# numbers n spread evenly from 0 on.
UNEVEN_TEXTS = 4 / 3
HEAD = ("expected", "of what")
BY_WORDS = ("own words", "shared words", "of what")
BETWEEN = "reach of 90% intervals of differences between two groups, but for errors of topics"
NOISE = "noise of a share (one deviation)"
SAME_TOPICS = "the same, where some write far more of the same topics"
OTHER_TOPICS = (
    "the same, where some write far more of others (a few who write very much stay hidden, and may "
    "shift it further)"
)
BY_TOPICS = "of which by errors of the topics found; in differences in proportion to these"
LOWER_ENDS = (
    "Lower ends: persons write about four texts each, of different groups. If they write one each, "
    "noise is twice as large: say so (--texts-per-person 1), and there is less."
)
UNEVEN = "Upper ends: persons write equal texts, of one group, but not equally many."
BEFORE_FIT = [
    "Own words: each topic has its own. Shared words: topics share most, as in short texts.",
    "Errors of topics, which their fit tells, add to that; in differences they are in proportion "
    "to these.",
    "A run stops before it pays for shares that noise would hide, or that topics found tell little "
    "of, as they are hard to tell apart.",
]
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
    hidden: float = 0.0  # how far hidden topics may move the share


class GroupForecast(NamedTuple):
    """Noise and intervals that shares by group are expected to have, if texts are spread evenly."""

    shares: TopicShares  # not fitted
    topics: Sequence[TopicError]
    n_units: int
    for_persons: bool
    bound: int  # on texts of a person, as --texts-per-person says; else 0

    def in_words(self, n_topics: int, verdict: str, doubt: str = "") -> str:
        """Table of how far intervals reach, and noise moves shares.

        A `verdict`, and a `doubt` if there is one, are given if the topics are found already.
        """
        # Before the fit each of `topics` stands for a kind of them.
        kinds = [self] if verdict else [self._replace(topics=[one]) for one in self.topics]
        rows_of_kinds = [kind._rows() for kind in kinds]  # whose words are the same for all
        reaches = [[reach for reach, _ in rows] for rows in rows_of_kinds]
        said = [words for _, words in rows_of_kinds[0]]
        rows, head = [*zip(*reaches, said, strict=True)], HEAD if verdict else BY_WORDS
        noun = "the topics found" if verdict else "topics"
        title = (
            f"{verdict}{': ' * bool(verdict)}shares of {noun} ({1 / n_topics:.1%} on average) in "
            f"each of {counted(len(self.shares.values), 'group')}, if texts are spread evenly"
        )
        notes = [f"{doubt}."] * bool(doubt) if verdict else [*BEFORE_FIT]
        notes += [LOWER_ENDS, UNEVEN] * (self._ends[0] < 1)
        return as_text(Table(title[0].upper() + title[1:], head, rows, notes, head))

    def _rows(self) -> list[tuple[str, str]]:
        """Reaches of intervals and noise of shares of `topics`, each with its words."""
        return [
            (self._reach(), "reach of 90% intervals of shares to either side"),
            (
                self._reach(noise=False, errors=False),
                "of which by chance alone, which no epsilon makes smaller",
            ),
            *self._of_topics(),
            (self._reach(errors=False, apart=True), BETWEEN),
            *self._of_noise(),
        ]

    @property
    def _ends(self) -> tuple[float, float]:
        """Factors on noise, and on the variance by chance: least and largest for usual persons."""
        if self.for_persons and not self.bound:
            return FEW_TEXTS, UNEVEN_TEXTS
        return 1.0, max(self.bound, 1)

    def _of_noise(self) -> list[tuple[str, str]]:
        """Noise of shares, and what it is for persons who write more, or less."""
        factors = {f"{NOISE}; more in small groups": self._ends}
        if self.bound > 1:
            each = f"{NOISE}, if each person writes {self.bound:,} texts"
            factors = {each: (1.0, 1.0), "the same, if each writes one": (self.bound, self.bound)}
        elif self._ends[0] < 1:
            factors |= {SAME_TOPICS: (2, 2), OTHER_TOPICS: (16, 16)}
        return [(self.moved(*factor), words) for words, factor in factors.items()]

    def _of_topics(self) -> list[tuple[str, str]]:
        """Reach of intervals by errors of topics alone, where these are found."""
        reaches = [LEVEL_REACH * one.mixed + one.hidden for one in self.topics]
        return [(_range(min(reaches), max(reaches)), BY_TOPICS)] if any(reaches) else []

    def moved(self, least: float, most: float) -> str:
        """Range over topics of the noise of shares, from `least` times it to `most` times."""
        noise, factors = self._noise_of_shares(), [one.noise for one in self.topics]
        return _range(noise * least * min(factors), noise * most * max(factors))

    @property
    def are_narrow(self) -> bool:
        """True if no interval of the topics found is wider than their average share."""
        return 2 * max(self._reaches(self._ends)) <= 1 / len(self.topics)

    def blurs(self) -> bool:
        """Return True if intervals of the topics found are on average wider at any epsilon."""
        return 2 * self._least_reach() > 1 / len(self.topics)

    def _least_reach(self, *, errors: bool = True) -> float:
        """Average over topics of the least that intervals reach at any epsilon."""
        return fmean(self._reaches(self._ends[:1], noise=False, errors=errors))

    def on_width(self) -> str:
        """Say how far intervals reach if they are wider than the average share, and why; or ""."""
        if self.are_narrow:
            return ""
        likely, reach = "may reach up to", max(self._reaches(self._ends))
        why = "by noise, chance, and errors of topics together"
        if self.blurs():
            likely, reach = "will reach about", self._least_reach()
            by_chance = self._least_reach(errors=False)
            why = "few texts are in each" if 2 * by_chance**2 > reach**2 else HARD
            why = f"whatever epsilon they get, as {why}"
        return WIDE.format(likely, 100 * min(reach, 1), why, 100 / len(self.topics))

    def _reach(self, *, noise: bool = True, errors: bool = True, apart: bool = False) -> str:
        """Range over topics of how far 90 % intervals reach; options as of `_reaches`."""
        reaches = self._reaches(self._ends, noise=noise, errors=errors, apart=apart)
        return _range(min(reaches), max(reaches))

    def _reaches(
        self, ends: Sequence[float], *, noise: bool = True, errors: bool = True, apart: bool = False
    ) -> list[float]:
        """Reaches of 90 % intervals for each topic and each factor of `ends`, by chance.

        Without `noise` no epsilon makes them smaller; `errors` are those of topics. Those of two
        groups `apart` are of their difference.
        """
        of_noise, reaches = self._noise_of_shares() * noise, []
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

    def _noise_of_shares(self) -> float:
        """Noise of shares, as `TopicShares.expected_noise` has it."""
        return self.shares.expected_noise(self.n_units, self.for_persons)


@lru_cache(1)
def topics_seen(model: PrivateSpectralLDA) -> list[TopicError]:
    """Return what widens intervals of the topics of a fitted model that noise does not hide."""
    seen = ~model.hidden()
    parts = noise_by_topic(model), chance_by_topic(model), *errors_of_topics(model)
    found = zip(*parts, strict=True)
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
