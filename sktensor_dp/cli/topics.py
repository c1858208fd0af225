"""The command ``topics``: a vocabulary, then topics."""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from sktensor_dp import datasets
from sktensor_dp.checks.display import as_text, counted, rounded_up
from sktensor_dp.cli.document_shares import TextLabels, name_of, write_shares
from sktensor_dp.cli.folder import Folder, runs_with
from sktensor_dp.cli.manifest import Manifest
from sktensor_dp.cli.public_lists import (
    FORMS,
    ListedGroups,
    groups_ahead,
    public_values,
    stop_words,
    vocabulary,
)
from sktensor_dp.cli.run import HOPEFUL, Run
from sktensor_dp.cli.topic_tables import (
    all_words,
    differences_of_groups,
    groups_on_screen,
    leading_words,
    on_short,
    shares_by_group,
    topics_on_screen,
)
from sktensor_dp.cli.written_tables import table_of
from sktensor_dp.estimator.base import name_columns
from sktensor_dp.estimator.forecast import VERDICTS, least_epsilon, least_number
from sktensor_dp.exceptions import DoubtfulParameterWarning, NotEnoughDataError
from sktensor_dp.plotting import TopicsDisplay
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.private_check import SEVERAL_ROWS, sigma_of_length
from sktensor_dp.spectral_lda import PrivateSpectralLDA
from sktensor_dp.spectral_lda.fitted import AS_MANY, on_more
from sktensor_dp.spectral_lda.plan import OF_ORDINARY_TEXTS, OFTEN, most_of
from sktensor_dp.spectral_lda.share_forecast import FoundTopics
from sktensor_dp.spectral_lda.share_forecast_table import ShareForecastTable
from sktensor_dp.spectral_lda.shares import TopicShares
from sktensor_dp.text import PrivateCountVectorizer
from sktensor_dp.text.plan import WordForecast
from sktensor_dp.topic_page import topics_of, write_topic_page
from sktensor_dp.topic_page.page import Topic

# Number of words of a text that is assumed if nobody says it; and the least number of different
# words that texts are assumed to have, whether the run may use as many or not.
LENGTH, WORDS = 100, 2000
# Fraction of the budget for shares of topics by group, with --by; and of its rest for words: topics
# get what is left.
BY_FRACTION, WORDS_FRACTION = 0.2, 0.3


class Topics(Run):
    """A vocabulary, then topics."""

    noun, option, free_option = "topic", "topics", "shares"
    one_row_option = "--one-row-each"
    has_lengths = True
    enough = "Enough (nine of ten runs see four fifths of the topics or more)"
    mistake = "--text names another column"
    added, added_settings = "shares", ("by", "texts_per_person", "values")

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self._stop_words: list[str] | str | None = None
        self._names: list[str] = []
        self._public_words: dict[str, float] = {}
        self._ids: list[str] = []  # with --id
        self._group_of_text: list[str] = []  # with --by
        self._topics: list[Topic] = []  # once they are found
        self._without_shares = ""  # why no shares by group are made of the topics found
        if options.command == "forecast":
            if options.by_values is not None:
                self._listed_groups = ListedGroups(groups_ahead(options.by_values))
                options.by = "group"
            return
        if options.person is None:
            self.unit, self.ledger_unit = "text", "document"
        if options.stop_words in (None, "", "english"):
            options.stop_words, self._stop_words = None, "english"
        elif options.stop_words != "none":
            of_lists = stop_words(options.stop_words, options.encoding)
            self._stop_words, options.stop_words = of_lists  # whose names are stated
        if options.by is not None:
            values = public_values(options.by_values, options.encoding)
            self._listed_groups = ListedGroups(values)
        if options.vocabulary is not None:
            self._public_words = self._read_vocabulary()

    def _read_vocabulary(self) -> dict[str, float]:
        """Public words of --vocabulary, and their frequencies."""
        of_file = self.options.vocabulary, self.options.encoding
        return vocabulary(*of_file, self._stop_words, self.options.words)

    def take_settings(self, asked: Mapping[str, str], models: Mapping[str, Any]) -> None:
        """Take settings of words and topics that are not given.

        Public lists are those of the models, as their files may be gone.
        """
        options, given = self.options, self.options.given
        for name, read in (("topics", int), ("words", int), ("delta", float)):
            if name not in given:
                setattr(options, name, read(asked[name]))
        if "stop_words" not in given:
            options.stop_words = asked.get("stop_words")
            self._stop_words = models["words"].stop_words
        if "vocabulary" in given:
            self._public_words = self._read_vocabulary()
        elif "vocabulary" in asked:
            options.vocabulary, words = Path(asked["vocabulary"]), models["words"].vocabulary
            frequencies = models["topics"].word_frequencies
            of_words = [0.0] * len(words) if frequencies is None else frequencies
            self._public_words = dict(zip(words, map(float, of_words), strict=True))

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make a model for each step; public words cost nothing."""
        if self.options.file is not None or self.options.command == "forecast":
            of_list = " of --vocabulary" if self._public_words else ""
            of_groups = [] if self.options.by is None else ["texts of a group of --by-values"]
            self.tests = [f"texts of two words{of_list} or more", *of_groups]
            self.may_fail = [*self.tests, *[SEVERAL_ROWS] * bool(self.options.one_row_each)]
        common: dict[str, Any] = {"accountant": accountant, "neighbours": self.neighbours}
        budgets = self.split()
        for_shares = budgets.pop() if self._has_groups() else None
        # Where shares are added to words and topics, these are loaded below, and have no budgets.
        for_topics: Mapping[str, Any] = budgets.pop() if budgets else {}
        if budgets:
            words = {"max_features": self.options.words, **common, **budgets[0]}
        else:
            words = {"vocabulary": list(self._public_words), "neighbours": self.neighbours}
        topics: dict[str, Any] = {"n_components": self.options.topics, **common, **for_topics}
        if any(self._public_words.values()):
            topics["word_frequencies"] = list(self._public_words.values())
        self.models = {
            "words": PrivateCountVectorizer(stop_words=self._stop_words, **words),
            "topics": PrivateSpectralLDA(**topics),
        }
        if for_shares is not None:
            texts = self.options.texts_per_person or (1 if self.options.one_row_each else "auto")
            self.models["shares"] = TopicShares(
                self._listed_groups.values, texts_per_person=texts, **common, **for_shares
            )
        self.models |= self.used.models  # fitted by an earlier run, in place of new ones
        if self.used.adds and math.isinf(self._found().factor):
            raise NotEnoughDataError(
                "Of the topics of the finished run in this folder none can be seen above the noise,"
                " or there is one alone: their shares say nothing. --again learns all anew. "
                "Nothing was spent."
            )

    def steps(self) -> list[tuple[str, float]]:
        """Words unless public, topics, shares by group if asked; or shares alone, to be added."""
        if self.used.adds:
            return super().steps()
        after = BY_FRACTION if self._has_groups() else 0.0
        steps = [("gaussian", 1 - after)]
        if not self._public_words:
            words = WORDS_FRACTION * (1 - after)
            steps = [("vocabulary", words), ("gaussian", (1 - WORDS_FRACTION) * (1 - after))]
        return [*steps, ("gaussian", after)] if after else steps

    def _has_groups(self) -> bool:
        """Return True if the run makes shares by group."""
        return self.options.by is not None and not (self.used.applies or self._without_shares)

    def read(self) -> None:
        """Read texts, who wrote each, and if asked its name and group."""
        options = self.options
        if options.file is None:
            self._texts = datasets.load_docstrings()
        elif options.file.is_dir() and options.person is None and options.by is None:
            self._texts = datasets.load_texts(options.file, options.text, **self.reading_options())
        else:
            columns = [(options.text, "text")]
            columns += [] if options.id is None else [(options.id, "id")]
            columns += [] if options.by is None else [(options.by, "group")]
            self._texts, *others = self.columns(columns)
            if options.by is not None:
                self._group_of_text = [*map(self._listed_groups.group_of, others.pop())]
            self._ids = others.pop() if others else []
        if len({*self._ids}) < len(self._ids):
            raise ValueError(
                f"column {options.id!r} of --id has one name for several texts: name a column of "
                "different ones, or leave it out, and texts are numbered"
            )
        self.count(self._texts)

    def matches(self) -> Iterator[NDArray[np.bool_]]:
        """Yield masks of texts: of those with two words or more, and with --by of a listed group.

        One word shows no pair. Without public words those joined by hyphens count as one, so that
        ids and dates are no texts.
        """
        if self._public_words:
            yield self.lengths() > 1
        else:
            split = self.models["words"].build_analyzer()
            yield np.fromiter((len(split(text.replace("-", ""))) > 1 for text in self._texts), bool)
        if self.options.by is not None:
            listed = {*self._listed_groups.values}
            yield np.fromiter((group in listed for group in self._group_of_text), bool)

    def causes(self) -> dict[str, tuple[str, str]]:
        """Likely causes by test: where most texts fail it, and where some do."""
        one_word = 'Messages of one word, such as "ok", show no topic: leave out their rows.'
        no_text = (
            "Is --text the column of the texts? Those without blanks between words, as in Chinese, "
            "must be cut into words before."
        )
        if self._public_words:
            no_text = "Is --text the column of the texts, and --vocabulary in their language?"
        no_group = "Is --by the column of --by-values, and are these written as there?"
        if self.options.by is not None and self._listed_groups.part:
            no_group += f" Dates count if written as {FORMS}, and not as 01/31/2025."
        some_groups = (
            "Does --by-values lack some of the groups? If on purpose, go on: texts of others count "
            "for none."
        )
        causes = (no_text, one_word), (no_group, some_groups)
        return dict(zip(self.tests, causes, strict=False))

    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each text: of --vocabulary, or all but stop words."""
        words = self.models["words"]
        if self._public_words:
            return np.asarray(words.transform(self._texts).sum(axis=1), dtype=np.int64).ravel()
        split = words.build_analyzer()
        return np.fromiter((len(split(text)) for text in self._texts), np.int64)

    def check_ahead(self) -> list[str]:
        """Say what a check leaves, and how often it stops texts as long as assumed, by noise."""
        if not (sigma := self.sigmas_ahead()[0]):
            return []
        said = [self.left_by_check(), *self.asks_for_rows()]
        if self.options.anyway:
            return said
        least = self._least_length(1)
        noise = sigma_of_length(self.length, sigma)
        often = 0.0 if least is None else NormalDist(self.length, noise).cdf(least - 0.5)
        if not 0.02 < often < 0.98:
            return said
        return [
            *said,
            f"It measures how long texts are, with noise of a deviation of {noise:.2g} words, and "
            f"stops the run below {least}: of texts of {self.length} words in {often:.0%} of runs.",
            "Fewer topics leave it less to noise.",
        ]

    def _least_length(self, least: int) -> int | None:
        """Length of texts, `least` or more, from which on the run would not be stopped."""
        return least_number(
            lambda n: self.changed(words_per_text=n).verdict() in HOPEFUL, least, 10**4
        )

    def settings(self) -> Mapping[str, object]:
        """Options of the run, and how many words were used of those allowed."""
        words = self._allowed()
        if self._names and not self._public_words:
            words = f"{len(self._names):,} were kept, of {words}"
        settings = {**super().settings(), "words": words}
        if self.options.by is not None and (part := self._listed_groups.part):
            settings["by"] = f"{settings['by']}, of a date, as {FORMS}, its {part}"
        if self.options.stop_words and self._stop_words:
            n_words = counted(len(self._stop_words), "word")
            settings["stop words"] = f"{n_words} of {self.options.stop_words}"
        return settings

    def _allowed(self) -> str:
        """Words that may be used."""
        if self._public_words:
            return f"{len(self._public_words):,} public ones"
        return f"at most {self.options.words:,}"

    def verdict(self) -> str:
        """Verdict of the forecast; "too few" where noise would hide how many texts groups have."""
        if self.used.adds:
            return self._of_groups().verdict
        if self._has_groups():
            least = math.sqrt(self.options.topics)  # for numbers of texts
            if not self.models["shares"].shows(self.n_units, least, self.unit == "person"):
                return VERDICTS[-1]
        return super().verdict()

    def forecast(self) -> Any:
        """Forecast of topics of the words that the vocabulary is expected to have."""
        words = len(self._public_words) or self._forecast_of_words().n_words
        return self._forecast_of(self.options.topics, words)

    def _forecast_of(self, n_topics: int, n_kept: int) -> Any:
        """Forecast of some topics, of words that were kept."""
        n_features = len(self._public_words) or max(self.options.words, WORDS)
        return self.forecaster("topics", n_components=n_topics).forecast(
            self.n_units, n_features, document_length=self.length, n_kept=max(n_kept, 1)
        )  # fmt: skip

    @property
    def length(self) -> int:
        """Number of words of a text: as the check released it, or a public guess."""
        if self.checked is not None and self.checked.length is not None:
            return max(round(self.checked.length), 1)
        return int(self.options.words_per_text or LENGTH)

    def verdict_by_guess(self) -> str:
        """Verdicts for the guessed length of texts and another length; "" if they are the same."""
        if self.options.command == "topics" and self.options.file is None:
            return ""  # the built-in texts are as long as is assumed
        guess, verdict = self.length, self.verdict()
        # If the guess is too few, longer texts may do; if it is not, shorter ones may not.
        other = guess * 10 if self.too_few() else guess // 10
        if other < 3:
            return ""
        by_other = self.changed(words_per_text=other).verdict()
        if by_other == verdict:
            return ""
        has = "all of a person's texts have" if self.unit == "person" else "a text has"
        return (
            f"{verdict} if {has} about {guess} words, {by_other} with about {other:,} "
            "(--words-per-text)"
        )

    def assumption(self) -> str:
        """Say how strong topics, and how long texts are assumed to be."""
        return (
            "topics are as strong as those of ordinary texts, and all texts of a person have about "
            f"{self.length} words (--words-per-text)"
        )

    def ways_by_guess(self) -> list[str]:
        """Ways to keep the run from stopping: fewer groups, another guess, or public words."""
        if self.used.adds:
            return ["fewer groups"]
        if self.checked is not None and self.checked.length is not None:
            return self._free_ways()
        least = self._least_length(self.length)
        of_length = [] if least is None else [f"--words-per-text {least} if texts are so long"]
        return [*of_length, *self._free_ways()]

    def forecast_lines(self) -> list[str]:
        """Forecast of topics, of words unless they are public, and of shares by group if asked."""
        of_groups = []
        if self._has_groups():
            # A run that goes on warns of doubts, and one that stops says why.
            expected = self._of_groups().in_words(doubts=bool(self.options.forecast))
            of_groups = [expected, *self._listed_groups.doubts()]
        if self.used.adds:  # topics are those of an earlier run
            return [self.models["topics"].in_brief, *of_groups]
        of_words = [] if self._public_words else [self._forecast_of_words().in_brief(self.unit)]
        likely = f"{self.forecast().likely}{self._on_epsilon()}"
        return [likely, *super().forecast_lines(), OF_ORDINARY_TEXTS, *of_groups, *of_words]

    def numbers_needed(self) -> str:
        """Say from how many units on some and most topics are seen."""
        if not self.least():
            return super().numbers_needed()
        some, most = math.ceil(self.options.topics / 3), most_of(self.options.topics)
        needed = [
            f"{10 * chance:.0f} of 10 runs see {topics} or more from {rounded_up(n)} on"
            for topics, chance in ((some, OFTEN), (most, 0.5), (most, 0.9))
            if (n := self._least_number(topics, chance))
        ]
        return ", ".join(needed)

    def is_likely(self) -> bool:
        """Return True if half of all runs see most topics, or an earlier run found them."""
        return super().is_likely() and (self.used.adds or self._sees_most())

    def _sees_most(self) -> bool:
        """Return True if half of all runs see most topics."""
        return self.forecast().chance(most_of(self.options.topics)) >= 0.5

    def sought(self) -> str:
        """Say with which epsilon or number half of all runs see most topics, and what is enough."""
        most, find = most_of(self.options.topics), self.options.find
        least = self._least_epsilon() if find == "epsilon" else self._least_number(most, 0.5)
        if least is None:
            return self.enough
        return f"Half of all runs see {most} or more with --{find} {least}. {self.enough}"

    def _on_epsilon(self) -> str:
        """Say from which epsilon on half of all runs see most topics, if it is open."""
        if self.is_enough() or not (epsilon := self._least_epsilon()):
            return ""
        most = most_of(self.options.topics)
        return f" Half of all runs with as many see {most} or more from --epsilon {epsilon:g} on."

    def _least_number(self, topics: int, chance: float) -> int | None:
        """Least number of units with which a run sees so many topics or more with a `chance`."""
        return least_number(lambda n: self.changed(n).forecast().chance(topics) >= chance)

    def _least_epsilon(self) -> float | None:
        """Least epsilon with which half of all runs see most topics."""
        return least_epsilon(lambda x: self.changed(epsilon=x)._sees_most())

    def _of_groups(self) -> ShareForecastTable:
        """Forecast of shares by group, of the topics found or of those asked for."""
        shares, for_persons = self.models["shares"], self.unit == "person"
        if self.used.adds or self._topics:
            return ShareForecastTable.of_found(
                shares, self._found(), self.n_units, for_persons=for_persons
            )
        return ShareForecastTable.before_fit(
            shares, self.options.topics, self.n_units, for_persons=for_persons
        )

    def _found(self) -> FoundTopics:
        """Topics found, for forecasts of their shares."""
        return _found_topics(self.models["topics"])

    def _forecast_of_words(self) -> WordForecast:
        """Forecast of words that are not public."""
        words: PrivateCountVectorizer = self.forecaster("words")
        return words.forecast(self.n_units, document_length=self.length)

    def helps(self, most_epsilon: float) -> list[str]:
        """Changes that would show more; fewer topics where noise hides some of those found."""
        hides = any(topic.hidden for topic in self._topics)
        ways = [*super().helps(most_epsilon), *self._free_ways()]
        return [way for way in ways if hides or f"--{self.option}" not in way]

    def _free_ways(self) -> list[str]:
        """Changes that would show more and cost nothing: public words, or their frequencies."""
        if any(self._public_words.values()):
            return []
        if self._public_words:
            return ["public frequencies in the file of --vocabulary, which cost nothing"]
        return ["public words with frequencies, which cost nothing (--vocabulary)"]

    def n_seen(self) -> int:
        """Number of topics above the noise."""
        return sum(not topic.hidden for topic in self._topics)

    def fit(self) -> Iterator[str]:
        """Find words, then topics, then if asked their shares by group."""
        words, model = self.models["words"], self.models["topics"]
        groups = {} if self.groups is None else {"groups": self.groups}
        try:
            if "words" not in self.used.models:
                words.fit(self._texts, **groups)
                yield "words"
        except NotEnoughDataError as error:
            few = math.ceil(self._forecast_of_words().threshold)
            error.args = (
                f"No word was found: of {self.unit}s of {counted(self.length, 'word')} each "
                f"about {few:,} have to use one. Is --text the column of "
                f"the texts? If so, a larger --epsilon or more {self.unit}s would help.",
            )
            raise
        self._counts = words.transform(self._texts)
        self._names = [str(word) for word in words.get_feature_names_out()]
        if "topics" not in self.used.models:
            model.set_params(n_components=self._supported())
            model.fit(self._counts, **groups)
            name_columns(model, self._names)
            yield "topics"
        self._topics = topics_of(model, self._names)
        if not self._has_groups() or "shares" in self.used.models:
            return
        self._without_shares = self._why_no_shares()
        if not self._without_shares:
            self.models["shares"].fit(
                model, self._counts, self._group_of_text, **groups, anyway=self.options.anyway
            )
            yield "shares"

    def _why_no_shares(self) -> str:
        """Say why no shares of the topics found are made; "" if they are."""
        none = "no shares by group were made, nor paid for"
        if math.isinf(self._found().factor):
            return f"So {none}; that epsilon is left."
        expected = self._of_groups()
        why = expected.why_not()
        if self.options.anyway or not why:
            if doubt := expected.doubt:
                warn(f"{doubt}.", DoubtfulParameterWarning, stacklevel=1)
            return ""
        return (
            f"{why}, so {none}. The same command with --anyway pays for them alone, by the epsilon "
            f"{self.models['shares'].epsilon:.2g} that is left."
        )

    def why_not(self) -> str:
        """Say why shares by group of topics found before would say little or nothing; else ""."""
        why = self._of_groups().why_not() if self.used.adds else ""
        return why and f"{why}."

    def on_hidden(self) -> list[str]:
        """Add why shares by group are not made, where noise hides topics or would hide shares."""
        return [*super().on_hidden(), *filter(None, [self._without_shares])]

    def _supported(self) -> int:
        """Number of topics that the released words may tell apart, at most as many as asked for."""
        asked, n_words = self.options.topics, len(self._names)
        if self.options.anyway:
            return min(asked, n_words)
        most = int(self._forecast_of(asked, n_words).n_likely[1])
        if most < 2:
            shown = ", ".join(map(repr, self._names[:5]))
            raise NotEnoughDataError(
                f"Too few words were found to tell topics apart: {n_words}, such as {shown}. Is "
                "--text the column of the texts? To go on all the same: --anyway."
            )
        return most

    def lines(self) -> list[str]:
        """Topics with their shares and words."""
        title = f"Topics, of {counted(len(self._names), 'word')} ({self._allowed()})"
        model = self.models["topics"]
        of_topics = as_text(topics_on_screen(title, self._topics, self.unit, on_short(model)))
        if not self._has_groups():
            return [of_topics, *[AS_MANY] * (model.n_components_seen_ == model.n_components)]
        return [of_topics, "", groups_on_screen(self.models["shares"], self.file_name)]

    def for_officer(self) -> str:
        """Say how many topics there are, and of how many groups their shares can be seen."""
        model = self.models["topics"]
        said = [super().for_officer(), on_more(model.n_components_seen_, model.n_components)]
        said += on_short(model)
        if self._has_groups():
            said.append(self.models["shares"].in_brief)
        return " ".join(filter(None, said))

    def write_and_draw(self, folder: Folder, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write the page, leading words, all words, and if asked shares by group and of texts."""
        model, names = self.models["topics"], self._names
        about: dict[str, Any] = {"report": report, "warnings": warnings}
        if self._has_groups():  # all that were made of these topics
            about["shares"] = {
                _heading(made, "" if where == folder.path else where.name): TopicShares.load(
                    where / "shares.model"
                )
                for where, made in runs_with(folder.path, ["topics.model"])
                if made.protected.get("shares.model")
            }
        folder.add("topics.html", lambda path: write_topic_page(path, model, names, **about))
        folder.add("topics.csv", table_of(leading_words(model, self._topics, names)))
        folder.add("topic_words.csv", table_of(all_words(model, self._topics, names)))
        if self._has_groups():
            of_groups = shares_by_group(self.models["shares"], self.file_name)
            folder.add("topics_by_group.csv", table_of(of_groups))
            differences = differences_of_groups(self.models["shares"], self.file_name)
            folder.add("topic_differences.csv", table_of(differences))
        if self.options.shares:
            self.write_document_shares(folder)
        footer = (
            "%: share of the words, no result to report; bar: share of a word in its topic; line: "
            f"90% interval, {model._intervals_count}"
        )
        footer = "\n".join([footer, *self.on_hidden(), report.in_brief])
        return TopicsDisplay.from_estimator(model, names, footer=footer).figure_

    def write_document_shares(self, folder: Folder) -> str:
        """Write the topics of each text, and how many of its words are in the vocabulary.

        Return the name of the file; ValueError if the one that is there names its texts, and this
        run only numbers them.
        """
        # Texts of another file than that of the models have a name of their own, to replace none.
        name = name_of(self.file_name if self.used.source else "")
        labels = TextLabels(self._ids, self.options.id or "text")
        write_shares(folder, name, self.models["topics"], self._counts, labels)
        return name


@lru_cache(1)
def _found_topics(model: PrivateSpectralLDA) -> FoundTopics:
    """Topics of a model, computed once for many forecasts."""
    return FoundTopics.of(model)


def _heading(made: Manifest, place: str) -> str:
    """Heading of shares by group that a run made; `place` is the folder of an earlier one."""
    return f"Topics by {made.asked['by']} of {made.asked['file']}{place and f' ({place})'}"
