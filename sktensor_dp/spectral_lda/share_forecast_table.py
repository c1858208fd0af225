"""Table and sentences of a forecast of shares by group, whose numbers are in share_forecast.py."""

import math
from typing import Any, Self

from sktensor_dp.checks.display import Table, as_text, counted
from sktensor_dp.estimator.forecast import VERDICTS
from sktensor_dp.spectral_lda.share_forecast import (
    LEVEL_REACH,
    FoundTopics,
    ShareForecast,
    TopicError,
)

# Factors on the noise of shares by group: of topics that have words of their own, and of topics
# that share most words, as in forums and newsgroups.
NOISE_FACTORS = 1.0, 10.0
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
    "noise is twice as large: say so (--one-row-each; texts_per_person=1 in "
    "Python), and there is less."
)
UNEVEN = "Upper ends: persons write equal texts, of one group, but not equally many."
BEFORE_FIT = [
    "Own words: each topic has its own. Shared words: topics share most, as in short texts.",
    "Errors of topics, which their fit tells, add to that, in drawn texts often 3 to 5 points; in "
    "differences they are in proportion to these.",
    "A run stops before it pays for shares that noise would hide, or that topics found tell little "
    "of, as they are hard to tell apart.",
]


class ShareForecastTable(ShareForecast):
    """Table of noise and intervals that shares by group are expected to have."""

    @classmethod
    def before_fit(cls, shares: Any, n_topics: int, n_units: float, *, for_persons: bool) -> Self:
        """Forecast for topics that are not found yet, of own words and of shared ones."""
        share = 1 / n_topics
        deviation = math.sqrt(share * (1 - share))
        # Topics that share words blur noise and chance alike.
        topics = [TopicError(factor, factor * deviation) for factor in NOISE_FACTORS]
        return cls(shares, topics, n_units, for_persons, n_asked=n_topics)

    @classmethod
    def of_found(
        cls, shares: Any, found: FoundTopics, n_units: float, *, for_persons: bool
    ) -> Self:
        """Forecast for the topics of a fitted model."""
        return cls(shares, found.seen, n_units, for_persons, found)

    @property
    def verdict(self) -> str:
        """Verdict on shares of the topics found; "" before a fit.

        It is "likely too few" if noise would hide all shares, "enough" if no interval is wider
        than the average share, else "may be enough".
        """
        if self.found is None:
            return ""
        if not self.shares.shows(self.n_units, self.found.factor, self.for_persons):
            return VERDICTS[2]
        return VERDICTS[0] if self.are_narrow else VERDICTS[1]

    @property
    def doubt(self) -> str:
        """Say why shares of the topics found would say little or nothing, or may; else ""."""
        return "" if self.found is None else self.why_not() or self.on_width()

    def __str__(self) -> str:
        return self.in_words()

    def __repr__(self) -> str:
        return self.in_words()

    def in_words(self, *, doubts: bool = True) -> str:
        """Table of how far intervals reach, and noise moves shares; with `doubts`, if any."""
        # Before the fit each of `topics` stands for a kind of them.
        kinds = [self] if self.found else [self._replace(topics=[one]) for one in self.topics]
        rows_of_kinds = [kind._rows() for kind in kinds]  # whose words are the same for all
        reaches = [[reach for reach, _ in rows] for rows in rows_of_kinds]
        said = [words for _, words in rows_of_kinds[0]]
        rows, head = [*zip(*reaches, said, strict=True)], HEAD if self.found else BY_WORDS
        noun = f"{self.verdict}: shares of the topics found" if self.found else "shares of topics"
        title = (
            f"{noun} ({self.average_share:.1%} on average) in each of "
            f"{counted(len(self.shares.values), 'group')}, if texts are spread evenly"
        )
        notes = [f"{self.doubt}."] * bool(doubts and self.doubt) if self.found else [*BEFORE_FIT]
        notes += [LOWER_ENDS, UNEVEN] * (self.ends[0] < 1)
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

    def _of_noise(self) -> list[tuple[str, str]]:
        """Noise of shares, and what it is for persons who write more, or less."""
        factors = {f"{NOISE}; more in small groups": self.ends}
        if self.bound > 1:
            each = f"{NOISE}, if each person writes {self.bound:,.0f} texts"
            factors = {each: (1.0, 1.0), "the same, if each writes one": (self.bound, self.bound)}
        elif self.ends[0] < 1:
            factors |= {SAME_TOPICS: (2, 2), OTHER_TOPICS: (16, 16)}
        return [(self._moved(*factor), words) for words, factor in factors.items()]

    def _of_topics(self) -> list[tuple[str, str]]:
        """Reach of intervals by errors of topics alone, where these are found."""
        reaches = [LEVEL_REACH * one.mixed + one.hidden for one in self.topics]
        return [(_range(min(reaches), max(reaches)), BY_TOPICS)] if any(reaches) else []

    def _moved(self, least: float, most: float) -> str:
        """Range over topics of the noise of shares, from `least` times it to `most` times."""
        noise, factors = self.noise_of_shares(), [one.noise for one in self.topics]
        return _range(noise * least * min(factors), noise * most * max(factors))

    def _reach(self, *, noise: bool = True, errors: bool = True, apart: bool = False) -> str:
        """Range over topics of how far 90 % intervals reach; options as of `reaches`."""
        reaches = self.reaches(self.ends, noise=noise, errors=errors, apart=apart)
        return _range(min(reaches), max(reaches))


def _range(low: float, high: float) -> str:
    """Say from where to where a number of at most 1 may be, as percentages."""
    return " to ".join(dict.fromkeys(f"{min(end, 1):.1%}" for end in (low, high)))
