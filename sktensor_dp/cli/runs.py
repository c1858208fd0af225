"""Fits of the commands ``topics``, ``ratings`` and ``groups``, and what they write."""

import argparse
import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from sktensor_dp import datasets
from sktensor_dp.cli.folder import Folder
from sktensor_dp.completion import PrivateCPCompletion, RowIndex
from sktensor_dp.completion.model import shared_model
from sktensor_dp.datasets.texts import (
    SEPARATOR,
    SUFFIXES,
    as_cell,
    decoded,
    existing_path,
    read_columns,
    suffix_of,
)
from sktensor_dp.estimator.forecast import least_number
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.gaussian_mixture import PrivateGaussianMixture
from sktensor_dp.model_selection import scale_by_ranges
from sktensor_dp.plotting import ComponentDisplay, MixtureDisplay, TopicsDisplay
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.tables import Table, as_text, plain
from sktensor_dp.queries.labels import as_labels, distinct, normalise_labels
from sktensor_dp.spectral_lda import PrivateSpectralLDA
from sktensor_dp.text import PrivateCountVectorizer, PrivateOneHotEncoder
from sktensor_dp.text.plan import WordForecast
from sktensor_dp.topic_page import topics_of, write_topic_page

FRACTIONS = (0.3, 0.7)  # of the budget: for words, and for topics
CATEGORIES_FRACTIONS = (0.1, 0.9)  # for categories, and for groups
CATEGORIES = 5  # of a column, which forecasts assume
# Texts are split at signs, which leaves "don" of "don't", and "www" and "com" of addresses.
PIECES = (
    "ain aren couldn didn didnt doesn doesnt don dont hadn hasn haven isn ll shouldn ve wasn "
    "weren wouldn com htm html http https org www"
)
ENGLISH = sorted(ENGLISH_STOP_WORDS.union(PIECES.split()))
# Options that do not say what was learned from, or that a run says itself; those of columns.
ASIDE = {
    *("budget", "raise_budget", "forecast", "anyway", "output", "open", "command"),
    *("delimiter", "quoting", "encoding", "decimal", "category"),
}
COLUMNS = {"text", "person", "item", "rating", "title"}
CENTRES = (
    "A group is taken for a cloud of any shape (a Gaussian), an average for its centre.",
    "A cloud of another form may be several groups; noise moves averages and shares.",
)
# Releases in words of people.
MEASURED = {
    "word_frequencies": "how often each word is used",
    "pair_moments": "which words go together",
    "whitened_triple_moments": "what sets topics apart",
    "second_moments": "how columns vary together",
    "mixture_statistics": "averages of groups, in standard deviations",
}
ESTIMATES = "These numbers are estimates, with noise."
# Verdicts on ratings, by the part of the items' differences that can be seen.
SEEN = (("enough", 0.8), ("may be enough", 0.4), ("likely too few", 0.05))
# Verdicts on K topics, by the number of words over K ** 1.5: of few words topics cannot be told
# apart. ``python -m benchmarks forecasts_of_words`` finds nine in ten runs to be as these say.
ENOUGH_WORDS = (("enough", 10.0), ("may be enough", 4.0), ("likely too few", 1.0))
VERDICTS = ("too few", "likely too few", "may be enough", "enough")
HOPEFUL = VERDICTS[2:]  # others stop a run
SHARES = "PRIVATE-document-shares.csv"


class Run:
    """One kind of fit by the options of its command.

    Attributes
    ----------
    unit, ledger_unit : str
        Unit of privacy: for people, and as estimators charge it.
    found : str
        What is found; the option that says how many is `option`.
    n_units : int
        Public number of units, once the file is read.
    models : dict of str to estimator
        By the names of their files.
    """

    unit, ledger_unit = "person", "person"
    found: str
    option: str
    n_units = 0
    models: dict[str, Any]

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make the models."""
        raise NotImplementedError

    def forecast(self) -> Any:
        """Forecast of the fit."""
        raise NotImplementedError

    def n_seen(self) -> int:
        """Number of what was found above the noise."""
        *_, model = self.models.values()
        return int(model.n_components_)

    @property
    def units(self) -> str:
        """Number of units in words, such as "2,880 persons"."""
        return f"{self.n_units:,} {self.unit}{'s' * (self.n_units != 1)}"

    def cost(self, epsilon: float) -> PrivacyCost:
        """Cost of a whole run at `epsilon`; finding words or categories takes a part of delta."""
        delta = self.options.delta
        reserved = delta / 10 if self.has_threshold() and math.isfinite(epsilon) else 0.0
        return PrivacyCost(gaussian_mu(epsilon, delta - reserved), 0.0, reserved)

    def has_threshold(self) -> bool:
        """Return whether a first step finds words or categories."""
        return False

    def split(self, fractions: Sequence[float]) -> list[Any]:
        """Parts of the budget for that step and for the next one."""
        whole = BudgetAccountant(self.options.epsilon, self.options.delta)
        return whole.split(fractions, thresholds=1)

    def settings(self) -> dict[str, Any]:
        """Columns used, and other public settings: the options given."""
        given = {n: value for n, value in vars(self.options).items() if value and n not in ASIDE}
        return {
            name.replace("_", " "): f"column {value!r}" if name in COLUMNS else in_words(value)
            for name, value in given.items()
        }

    def how(self) -> dict[str, Any]:
        """How the file is to be read."""
        options = self.options
        quoting, encoding = options.quoting or "auto", options.encoding or "utf-8"
        return {"delimiter": options.delimiter, "quoting": quoting, "encoding": encoding}

    def persons(self, labels: Any) -> tuple[Any, int]:
        """Labels of persons as a fit takes them, and the number of different ones."""
        found = normalise_labels(labels) if self.options.normalise_labels else labels
        found = as_labels(found, len(labels), "the column of --person")
        return found, len(distinct(found)[0])

    def fit(self) -> Iterator[str]:
        """Fit the models, and yield the name of each as soon as it is fitted."""
        raise NotImplementedError

    def write(self, folder: Folder, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write tables and pages, and return a figure; ImportError without matplotlib."""
        raise NotImplementedError

    def given(self, accountant: BudgetAccountant | None) -> dict[str, Any]:
        """Parameters of every model."""
        spent = {"epsilon": self.options.epsilon, "delta": self.options.delta}
        return {**spent, "accountant": accountant, "verbose": 1}

    def verdict(self) -> str:
        """Verdict of the forecast on the whole run."""
        return str(self.forecast().verdict)

    def too_few(self) -> bool:
        """Return whether nothing of use can be expected."""
        return self.verdict() not in HOPEFUL

    def is_enough(self) -> bool:
        """Return whether nine of ten runs find what is asked for."""
        return self.verdict() == "enough"

    def changed(self, n_units: int | None = None, **options: Any) -> Self:
        """Make the same run for another number of units, or with other options, built anew."""
        other = copy(self)
        other.n_units = self.n_units if n_units is None else n_units
        other.options = argparse.Namespace(**{**vars(self.options), **options})
        other.build()
        return other

    def least(self) -> str:
        """Number of units, in words, from which what is asked for may be found."""
        n = least_number(lambda n: self.changed(n).verdict() in HOPEFUL)
        step = 10 ** max(len(str(n)) - 2, 0)
        return f"about {-(-n // step) * step:,}" if n else "more than a billion"

    def expected(self) -> list[str]:
        """Forecast in lines: a verdict, then how noise compares with each quantity."""
        forecast = self.forecast()
        said = (
            f"{self.verdict().capitalize()}: {self.units} for {forecast.n_components} "
            f"{self.found}, which need {self.least()} at the very least."
        )
        head = "what is measured", "signal over noise (above 1: visible)"
        # Of several equal steps each adds to what the others show: they are left out.
        ratios = {MEASURED.get(r.name): f"{r.ratio:.3g}" for r in forecast.releases}
        rows = [(name, ratio) for name, ratio in ratios.items() if name]
        return [as_text(Table(said, head, rows, left=head))]

    def hidden(self) -> list[str]:
        """Sentences that say which of what was asked for noise hides."""
        asked, seen = getattr(self.options, self.option), self.n_seen()
        if seen >= asked or math.isinf(self.options.epsilon):
            return []
        return [f"{seen} of {asked} {self.found} can be seen above the noise."]

    def doubts(self) -> str:
        """Say what noise hides, and what would help; "" if nothing."""
        ways = [f"more {self.unit}s", "a larger --epsilon"]
        if self.n_seen():
            ways.append(f"a smaller --{self.option}")
        hidden = self.hidden()
        return " ".join([*hidden, f"What would help: {', or '.join(ways)}."]) if hidden else ""


class Topics(Run):
    """A vocabulary, then topics."""

    found = option = "topics"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self._stop_words: Any = None
        self._names: list[str] = []
        self._known: dict[str, float] = {}
        if options.command == "forecast":
            return
        if options.person is None:
            self.unit, self.ledger_unit = "text", "document"
        if options.stop_words != "none":
            own = options.stop_words
            self._stop_words = public_names(Path(own)) if own else ENGLISH
        if options.vocabulary is not None:
            words = datasets.load_word_frequencies(options.vocabulary)
            # As texts are split into words.
            split = PrivateCountVectorizer(stop_words=self._stop_words).build_analyzer()
            kept = [word for word in words if split(word) == [word]][: options.words]
            if not kept:
                raise ValueError("--vocabulary has no word but stop words")
            self._known = {word: words[word] for word in kept}

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make both models; public words cost nothing."""
        options, given = self.options, self.given(accountant)
        first, second = self.split(FRACTIONS)
        words = {"max_features": options.words, **given, **first}
        topics = {**given, **second}
        if self._known:
            words = {"vocabulary": list(self._known)}
            topics = {**given, "word_frequencies": list(self._known.values())}
        self.models = {
            "words": PrivateCountVectorizer(stop_words=self._stop_words, **words),
            "topics": PrivateSpectralLDA(n_components=options.topics, **topics),
        }

    def has_threshold(self) -> bool:
        """Return whether words have to be found."""
        return not self._known

    def read(self) -> None:
        """Read texts, and who wrote each."""
        options, self._groups = self.options, None
        if options.file is None:
            self._texts = datasets.load_docstrings()
        elif options.person is None:
            self._texts = datasets.load_texts(options.file, options.text, **self.how())
        else:
            columns = (options.text, "text"), (options.person, "person")
            self._texts, labels = read_columns(options.file, columns, **self.how())
            self._groups, self.n_units = self.persons(labels)
        if self._groups is None:
            self.n_units = len(self._texts)

    def settings(self) -> dict[str, Any]:
        """Options, and how many words there are of those allowed."""
        found = f"{len(self._names):,} were kept, of " if self._names else ""
        return {**super().settings(), "words": f"{found}at most {self.options.words:,}"}

    def forecast(self) -> Any:
        """Forecast of topics in texts of a hundred words."""
        return self.models["topics"].forecast(self.n_units, self.options.words)

    def verdict(self) -> str:
        """Verdict on topics of the words that can be expected, the worse of two."""
        n_words, _ = self._words_expected()
        least = n_words / self.options.topics**1.5
        of_words = next((said for said, words in ENOUGH_WORDS if least >= words), "too few")
        return min(of_words, super().verdict(), key=VERDICTS.index)

    def expected(self) -> list[str]:
        """Forecast of topics, and of words unless they are public."""
        n_words, fewest = self._words_expected()
        lines, k = super().expected(), self.options.topics
        if fewest > 1:
            lines.append(
                f"Words that fewer than about {math.ceil(fewest):,} {self.unit}s use are left out: "
                f"of ordinary texts about {n_words:,} are kept."
            )
        if n_words < (needed := math.ceil(ENOUGH_WORDS[0][1] * k**1.5)):
            lines.append(f"To find all {k} topics takes about {needed:,} words.")
        return lines

    def _words_expected(self) -> tuple[int, float]:
        """Number of words, and of units that have to use one: 1 for public words."""
        if self._known:
            return len(self._known), 1.0
        forecast = self.models["words"].forecast(self.n_units)
        return forecast.n_words, forecast.threshold

    def n_seen(self) -> int:
        """Number of topics that noise does not hide."""
        return sum(not topic.below_noise for topic in self._topics)

    def fit(self) -> Iterator[str]:
        """Find words, then topics."""
        words, model = self.models.values()
        groups = {} if self._groups is None else {"groups": self._groups}
        try:
            words.fit(self._texts, **groups)
        except NotEnoughDataError as error:
            few = math.ceil(self._words_expected()[1])
            error.args = (
                f"No word was found that about {few:,} {self.unit}s use. Is --text the column of "
                f"the texts? If so, a larger --epsilon or more {self.unit}s would help.",
            )
            raise
        yield "words"
        counts = words.transform(self._texts)
        # No more topics than words that were found.
        model.set_params(n_components=min(self.options.topics, counts.shape[1]))
        model.fit(counts, **groups)
        yield "topics"
        self._names = [str(word) for word in words.get_feature_names_out()]
        self._topics = topics_of(model, self._names)
        self._shares = model.transform(counts) if self.options.shares else None

    def lines(self) -> list[str]:
        """Topics with their shares and words."""
        head = ("topic", "share", "within (90%)", "words that set it apart")
        below = ["Intervals show noise; another run may split topics, or find others."]
        rows = [
            (
                f"{topic.number}{'*' * topic.below_noise}", f"{topic.weight:.1%}",
                " to ".join(f"{end:.1%}" for end in topic.interval or ()),
                " ".join(topic.distinctive[:8]),
            )
            for topic in self._topics
        ]  # fmt: skip
        if any(topic.below_noise for topic in self._topics):
            below.append(
                "* hidden by noise: it cannot be told from the words of all texts; do not report it"
            )
        said = f"Topics, of {len(self._names):,} words (at most {self.options.words:,})"
        return [as_text(Table(said, head, rows, below, head))]

    def write(self, folder: Folder, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write the page, leading words, all words, and if asked the shares of texts."""
        model, names = self.models["topics"], self._names
        folder.add(
            "topics.html",
            lambda path: write_topic_page(path, model, names, report=report, warnings=warnings),
        )
        leading = (
            [topic.number, topic.weight, *ends, rank, word, "yes" if topic.below_noise else "no"]
            for topic in self._topics
            for ends in [topic.interval or (math.nan, math.nan)]
            for rank, word in enumerate(topic.words, start=1)
        )
        columns = ["topic", "share", "low", "high", "rank", "word", "hidden"]
        folder.add("topics.csv", table_of([columns, *leading]))
        head = [f"topic_{topic.number}" for topic in self._topics]
        table = zip(names, np.column_stack([model.unigram_, model.components_.T]), strict=True)
        rows = ([word, *row] for word, row in table)
        folder.add("topic_words.csv", table_of([["word", "all_texts", *head], *rows]))
        if self._shares is not None:
            shares = ([text, *row] for text, row in enumerate(self._shares, start=1))
            folder.add(SHARES, table_of([["text", *head], *shares]), private=True)
        footer = (
            "bar: share of a word in its topic; line: where noise may have moved it from (90%); "
            "grey: hidden by noise"
        )
        footer = "\n".join([footer, *self.hidden(), report.in_brief])
        return TopicsDisplay.from_estimator(model, names, footer=footer).figure_


class Ratings(Run):
    """Items by what persons say of them."""

    found, option = "directions of taste", "rank"
    n_items = 0
    _items: dict[str, str]  # titles by the names that are rated

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        low, high = options.bounds
        if not -math.inf < low < high < math.inf:
            raise ValueError("--bounds LOW HIGH needs two numbers, the lower one first")
        self._items = {}

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make the completion."""
        bounds, given = tuple(self.options.bounds), self.given(accountant)
        model = PrivateCPCompletion(self.options.rank, bounds=bounds, unit_mode=0, **given)
        self.models = {"ratings": model}

    def read(self) -> None:
        """Read who rated what, how, and the public list of items."""
        options = self.options
        if (options.items in (None, options.file)) != options.items_are_public:
            raise ValueError(
                "--items FILE must name a public list of all items; or say --items-are-public, if "
                "it is no secret which of them were rated"
            )
        columns = [(options.person, "person"), (options.item, "item"), (options.rating, "numbers")]
        decimal = options.decimal or "."
        labels, what, self._values = read_columns(
            options.file, columns, **self.how(), decimal=decimal
        )
        if np.isnan(self._values).any():
            raise ValueError(
                f"some rows of {options.file.name!r} have no {options.rating!r}: leave such rows "
                "out of the file"
            )
        if options.title is not None and options.items is None:
            raise ValueError("--title needs --items FILE, which has the titles")
        titles = [(options.title, "title")] if options.title is not None else []
        if options.items is None:
            names = [sorted(set(what))]
        elif suffix_of(options.items) in SUFFIXES:
            names = public_columns(options.items, [(options.item, "item"), *titles])
        else:
            names = [public_names(options.items)]
        if not all(map(is_writable, (*names[0], *names[-1]))):
            raise ValueError(
                "some names of items have characters that no file can hold (surrogates): replace "
                "them in the file"
            )
        self._items = dict(zip(names[0], names[-1], strict=True))
        who, self.n_units = self.persons(labels)
        self._entries, self.n_items = np.array([who, what], object).T, len(self._items)

    def forecast(self, **changes: Any) -> Any:
        """Forecast for a public guess of how many ratings a person has."""
        n, each = self.n_units, min(self.options.each, self.n_items)
        model = clone(self.models["ratings"]).set_params(**changes)
        return model.forecast(n * each, (n, self.n_items))

    def verdict(self) -> str:
        """Verdict by the part of the items' differences that noise leaves to be seen."""
        noise, now, exact = (
            self.forecast(epsilon=epsilon).of_biases ** 2
            for epsilon in (1e-9, self.options.epsilon, math.inf)
        )
        # So many persons that no noise hides anything are enough.
        seen = (noise - now) / (noise - exact) if noise > exact else 1.0
        return next((said for said, least in SEEN if seen >= least), "too few")

    def too_few(self) -> bool:
        """Return whether nothing better than the average rating can be expected."""
        return self.verdict() == "too few"

    def hidden(self) -> list[str]:
        """Sentences on the order of items, where it is chance, and on directions of taste."""
        order = ["The order of items is chance: noise hides how they differ."]
        return order * self._order_is_chance() + super().hidden()

    def _order_is_chance(self) -> bool:
        (items,) = shared_model(self.models["ratings"]).effects
        return bool(items.is_hidden)

    def is_enough(self) -> bool:
        """Return whether the typical error that is asked for can be expected."""
        return bool(self.forecast().of_model <= self.options.error)

    def expected(self) -> list[str]:
        """Forecast of errors, and which items count: with other names nothing is found."""
        forecast, each = self.forecast(), self.options.each
        of_taste = "enough" if forecast.finds_components else "too few"
        verdict = f"{self.verdict()} for the average of an item, {of_taste} for directions of taste"
        errors = {
            "the average of all ratings": forecast.of_mean,
            "the average of each item": forecast.of_biases,
            "directions of taste too": forecast.of_model,
        }
        if not forecast.of_model < forecast.of_biases:
            del errors["directions of taste too"]
        listed = [
            f"{self.n_items:,} items, such as {name!r}; ratings of any other are left out."
            for name in list(self._items)[:1]
        ]
        assumed = f"{self.units}; about {each} ratings each are assumed, --each"
        said = f"{verdict.capitalize()} ({assumed}). Items that many rated need fewer."
        head, rows = ("predicted by", "typical error"), [(n, f"{e:.3g}") for n, e in errors.items()]
        below = [f"if ratings are typically {forecast.of_mean:.3g} away from their average"]
        return [*listed, as_text(Table(said, head, rows, below, head))]

    def fit(self) -> Iterator[str]:
        """Learn what is common to items."""
        model, names = self.models["ratings"], list(self._items)
        index = RowIndex.from_public(names)
        model.set_params(shape=(self.n_units, self.n_items), row_names=(None, index))
        model.fit(self._entries, self._values)
        yield "ratings"
        expected = model.predict_rows(None)
        order = np.argsort(-expected, kind="stable")
        self._best, self._names = expected[order], [names[row] for row in order]

    def lines(self) -> list[str]:
        """Best items for somebody who has rated nothing."""
        best = zip(self._best[:10], self._names[:10], strict=True)
        rows = [(f"{value:.2f}", *self._shown(name)) for value, name in best]
        head = ("rating", "item", "title")[: len(rows[0])]
        return [as_text(Table(self._heading(), head, rows, [ESTIMATES], head))]

    def write(self, folder: Folder, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write the items in order."""
        best = zip(self._names, self._best, strict=True)
        rows = [[value, *self._shown(name)] for name, value in best]
        head = ["expected_rating", "item", "title"][: len(rows[0])]
        folder.add("items.csv", table_of([head, *rows]))
        low, high = self.options.bounds
        names = [self._items[name] for name in self._names[:15]]
        said = f"expected rating, of {low:g} to {high:g}"
        footer = "\n".join([ESTIMATES, *self.hidden(), report.in_brief])
        display = ComponentDisplay(
            names, self._best[:15], title=self._heading(), quantity=said, footer=footer
        ).plot()
        display.axes_[0].set_xlim(low, high)
        return display.figure_

    def _heading(self) -> str:
        """Say what the list of items is: no ranking where noise hides how they differ."""
        chance = self._order_is_chance()
        return "Items, in an order that may be chance" if chance else "Best for a newcomer"

    def _shown(self, name: str) -> tuple[str, ...]:
        """Name of an item, and its title where there are any."""
        return (name,) if self.options.title is None else (name, self._items[name])


class Groups(Run):
    """Groups of similar rows of numbers."""

    found = option = "groups"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        options.groups = options.groups or 3
        self._sought: list[str] = []  # columns whose categories are to be found
        if options.command == "forecast":
            self._columns = [""] * options.columns
            return
        if options.person is None:
            self.unit, self.ledger_unit = "row", "sample"
        self._numbers = [column for column, _, _ in options.range]
        self._bounds = [public_range(*given) for given in options.range]
        given = options.category or ()
        self._sought = [column for column, *values in given if not values]
        self._categories = [(column, value) for column, *values in given for value in values]
        assumed = [(column, str(n)) for column in self._sought for n in range(CATEGORIES)]
        self._arrange([*self._categories, *assumed])
        if len({options.person, *self._numbers}) <= len(self._numbers):
            raise ValueError("--range names a column twice, or that of persons, which is no number")
        named = [*self._sought, *dict.fromkeys(column for column, _ in self._categories)]
        if len({*named}) < len(named) or len({*self._columns}) < len(self._columns):
            raise ValueError(
                "--category names a category twice, or a column both with and without values"
            )

    def _arrange(self, categories: Sequence[tuple[str, str]]) -> None:
        """Name the columns: numbers, then one of 0 and 1 for each category."""
        self._columns = [*self._numbers, *(f"{column}={value}" for column, value in categories)]
        self._ranges = np.array(self._bounds + [(0.0, 1.0)] * len(categories))
        self._scaler = scale_by_ranges(dict(enumerate(self._ranges)))

    def has_threshold(self) -> bool:
        """Return whether categories have to be found."""
        return bool(self._sought)

    def settings(self) -> dict[str, Any]:
        """Options, and how cells and rows count."""
        rows = {"an empty cell": "is missing: the row counts by its other cells"}
        if self.options.person is not None:
            rows["rows of one person"] = "weigh as much as one row, in equal parts"
        categories = [
            f"{column!r} is {' or '.join(map(repr, values))}" if values
            else f"{column!r}, whose values are found within the budget"
            for column, *values in self.options.category or ()
        ]  # fmt: skip
        listed = {"category": ", ".join(categories)} if categories else {}
        return {**super().settings(), **listed, **rows}

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make the mixture; rows scaled by their ranges are no longer than `data_norm`."""
        norm, given = math.sqrt(len(self._columns)), self.given(accountant)
        self.models = {}
        if self._sought:
            first, second = self.split(CATEGORIES_FRACTIONS)
            self.models["categories"] = PrivateOneHotEncoder(**{**given, **first})
            given.update(second)
        self.models["groups"] = PrivateGaussianMixture(self.options.groups, data_norm=norm, **given)

    def read(self) -> None:
        """Read the columns; cells of categories that are missing are None."""
        options, columns = self.options, [(name, "numbers") for name in self._numbers]
        missing = options.missing or ("NA", "NaN")
        kinds = [*dict.fromkeys(column for column, _ in self._categories), *self._sought]
        columns += [(name, "text") for name in kinds]
        persons = [] if options.person is None else [(options.person, "person")]
        decimal = options.decimal or "."
        found = read_columns(
            options.file, [*columns, *persons], **self.how(), decimal=decimal,
            missing=missing,
        )  # fmt: skip
        labels = found.pop() if persons else None
        self._groups, self.n_units = None, len(found[0])
        if labels is not None:
            self._groups, self.n_units = self.persons(labels)
        self._values, texts = found[: len(self._numbers)], found[len(self._numbers) :]
        self._texts = {}
        for name, cells in zip(kinds, texts, strict=True):
            # A public category may be called NA, as Namibia is.
            absent = {"", *(missing if name in self._sought else ())}
            known = [None if cell.strip() in absent else cell for cell in cells]
            self._texts[name] = np.array(known, object)

    def forecast(self) -> Any:
        """Forecast for groups of one size."""
        return self.models["groups"].forecast(self.n_units, len(self._columns))

    def expected(self) -> list[str]:
        """Forecast, and for which groups it holds."""
        apart = "This is for groups of one size, well apart; smaller or closer ones need more."
        lines = [*super().expected(), apart]
        if self._sought:
            fewest = math.ceil(self._of_categories().threshold)
            lines.append(
                f"Values of {', '.join(map(repr, self._sought))} that fewer than about {fewest:,} "
                f"{self.unit}s have are left out; {CATEGORIES} for each column are assumed here."
            )
        return lines

    def verdict(self) -> str:
        """Verdict on groups, and on categories."""
        few = self._sought and not self._of_categories().enough
        return "too few" if few else super().verdict()

    def _of_categories(self) -> WordForecast:
        """Forecast of the step that finds categories."""
        grouped, encoder = self.options.person is not None, self.models["categories"]
        found: WordForecast = encoder.forecast(self.n_units, len(self._sought), grouped=grouped)
        return found

    def doubts(self) -> str:
        """Ask for ranges where averages lie at their ends, or all in their middle."""
        means = self.models["groups"].means_
        # Counts of what is rare lie at 0, where their range begins.
        low = np.where(self._ranges[:, 0] == 0, 0, means.min(axis=0))
        ends = np.maximum(means.max(axis=0), -low)
        middles = np.abs(means).max(axis=0)
        doubted = [
            f"the averages of {name} lie {where} of its range: is --range right?"
            for name, end, middle in zip(self._numbers, ends, middles, strict=False)
            for where, holds in (("at the end", end >= 0.98), ("all in the middle", middle <= 0.04))
            if holds
        ]
        return " ".join(filter(None, ["; ".join(doubted), super().doubts()]))

    def fit(self) -> Iterator[str]:
        """Find categories, then the groups, and give their averages in units of the columns."""
        categories = self._categories
        if self._sought:
            encoder = self.models["categories"]
            texts = np.column_stack([self._texts[column] for column in self._sought])
            encoder.fit(texts, groups=self._groups)
            yield "categories"
            found = zip(self._sought, encoder.categories_, strict=True)
            categories = [*categories, *((column, v) for column, values in found for v in values)]
            self._arrange(categories)
            self.models["groups"].set_params(data_norm=math.sqrt(len(self._columns)))
        one_hot = [
            np.where(self._texts[column] == None, np.nan, self._texts[column] == value)  # noqa: E711
            for column, value in categories
        ]
        table = np.column_stack([*self._values, *one_hot]).astype(float)
        X = self._scaler.transform(table)
        model = self.models["groups"].fit(X, groups=self._groups)
        yield "groups"
        low, high = self._ranges.T
        self._shares = model.weights_
        self._spreads = np.sqrt(model.variances_) * (high - low) / 2
        self._means = self._scaler.inverse_transform(np.clip(model.means_, -1, 1))

    def lines(self) -> list[str]:
        """Shares and averages of the groups."""
        rows = [
            (*(("", "") if place else (str(group), f"{share:.1%}")), name, f"{mean:.3g}")
            for group, (share, means) in enumerate(zip(self._shares, self._means, strict=True), 1)
            for place, (name, mean) in enumerate(zip(self._columns, means, strict=True))
        ]
        head, notes = ("group", "share", "column", "average"), (*CENTRES, *self._places())
        return [as_text(Table("Groups", head, rows, notes, ("column",)))]

    def _places(self) -> list[str]:
        """Sentences on groups that together have one peak."""
        places = self.models["groups"].places_
        together = [np.flatnonzero(places == place) + 1 for place in range(places.max() + 1)]
        return [
            f"Groups {' and '.join(map(str, numbers))} overlap to one peak: parts of one cloud."
            for numbers in together if len(numbers) > 1
        ]  # fmt: skip

    def write(self, folder: Folder, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write shares and averages."""
        table = np.column_stack([self._shares, self._means])
        rows = ([number, *row] for number, row in enumerate(table, start=1))
        folder.add("groups.csv", table_of([["group", "share", *self._columns], *rows]))
        footer = "dot: average; grey: one standard deviation of the group\n" + "\n".join(
            [*CENTRES, *self._places(), *self.hidden(), report.in_brief]
        )
        return (
            MixtureDisplay(
                self._shares, self._means, self._spreads, self._columns, self._ranges, footer
            )
            .plot()
            .figure_
        )


def in_words(value: Any) -> str:
    """Value of an option: a number, a file, words, or lists of them."""
    if isinstance(value, list):
        if isinstance(value[0], list):
            return ", ".join(f"{name!r} {low} to {high}" for name, low, high in value)
        if isinstance(value[0], float):
            return " to ".join(map(in_words, value))
        return ", ".join(map(repr, value))
    if isinstance(value, Path):
        return value.name
    return plain(value) if isinstance(value, float) else str(value)


def public_names(path: Path) -> list[str]:
    """Lines of a public list."""
    lines = decoded(existing_path(path), encoding_of(path)).splitlines()
    return [line for line in lines if line.strip()]


def public_columns(path: Path, columns: Sequence[tuple[str, str]]) -> list[Any]:
    """Columns of a public table, whose encoding and delimiter are looked up in it."""
    delimiter, encoding = None, "utf-8"
    if suffix_of(path) in (".csv", ".tsv"):
        encoding = encoding_of(path)
        head = decoded(path, encoding).partition("\n")[0]
        if not SEPARATOR.fullmatch(head):
            delimiter = max("\t,;|", key=head.count)
    return read_columns(path, columns, delimiter, "auto", encoding)


def encoding_of(path: Path) -> str:
    """Encoding of a public file: utf-8, or that of older Windows programs."""
    try:
        decoded(existing_path(path), "utf-8")
    except ValueError:
        return "cp1252"
    return "utf-8"


def public_range(column: str, *ends: str) -> tuple[float, float]:
    """Ends of the range of a column."""
    try:
        low, high = map(float, ends)
        if -math.inf < low < high < math.inf:
            return low, high
    except ValueError:
        pass
    raise ValueError(f"--range {column} {' '.join(ends)}: LOW and HIGH are two numbers, LOW < HIGH")


RUNS: dict[str, type[Any]] = {"topics": Topics, "ratings": Ratings, "groups": Groups}


def table_of(rows: Iterable[Sequence[Any]]) -> Callable[[Path], None]:
    """Writer of a table, with six digits of numbers, and of texts none that runs as a formula."""

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            for row in rows:
                csv.writer(file).writerow(map(_cell, row))

    return write


def is_writable(text: str) -> bool:
    """Return whether a file can hold the text: one of JSON may hold half of a character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _cell(value: Any) -> Any:
    """Value as it is written into a table."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return as_cell(value) if isinstance(value, str) else value
