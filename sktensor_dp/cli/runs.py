"""Fits of the commands ``topics``, ``ratings`` and ``groups``, and what they write."""

import argparse
import csv
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.metrics.pairwise import euclidean_distances

from sktensor_dp import datasets
from sktensor_dp.completion import PrivateCPCompletion, RowIndex
from sktensor_dp.datasets.texts import decoded, existing_path, read_columns
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.plotting import ComponentDisplay, MixtureDisplay, TopicsDisplay
from sktensor_dp.power_method import PrivateTensorPowerMethod
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.spectral_lda import PrivateSpectralLDA
from sktensor_dp.text import PrivateCountVectorizer
from sktensor_dp.topic_page import topic_map, topics_of, write_topic_page

FRACTIONS = (0.3, 0.7)  # of the budget: for words, and for topics
# Texts are split at apostrophes, which leaves "don" of "don't".
CONTRACTED = (
    "ain aren couldn didn didnt doesn doesnt don dont hadn hasn haven isn ll shouldn ve wasn "
    "weren wouldn"
)
ENGLISH = sorted(ENGLISH_STOP_WORDS.union(CONTRACTED.split()))
# What columns hold, and the options that name them.
ROLES = {"texts": "text", "persons": "person", "items": "item", "ratings": "rating"}
ESTIMATES = "These numbers are estimates, with noise."
UNKNOWN = (math.nan, math.nan)
SHARES = "PRIVATE-document-shares.csv"
# Fits that show how far noise moves averages of groups, and the deviations of 90 % of it.
N_BOOTSTRAPS, REACH = 20, 1.645


class Run:
    """One kind of fit by the options of its command.

    Attributes
    ----------
    unit, ledger_unit : str
        Unit of privacy: for people, and as estimators charge it.
    found, option : str
        What is found, and the option that says how many.
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
    forecast: Callable[[], Any]
    n_found: Callable[[], tuple[int, int]]

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    @property
    def units(self) -> str:
        """Number of units in words, such as "2,880 persons"."""
        return f"{self.n_units:,} {self.unit}{'s' * (self.n_units != 1)}"

    def cost(self, epsilon: float) -> PrivacyCost:
        """Cost of a whole run at `epsilon`."""
        return PrivacyCost(gaussian_mu(epsilon, self.options.delta))

    def settings(self) -> dict[str, Any]:
        """Columns used, and other public settings, in words."""
        columns = {what: getattr(self.options, name, None) for what, name in ROLES.items()}
        used = {what: f"column {name!r}" for what, name in columns.items() if name is not None}
        return {**used, self.found: getattr(self.options, self.option)}

    def how(self) -> dict[str, Any]:
        """How the file is to be read."""
        options = self.options
        quoting, encoding = options.quoting or "auto", options.encoding or "utf-8"
        return {"delimiter": options.delimiter, "quoting": quoting, "encoding": encoding}

    def given(self, accountant: BudgetAccountant | None) -> dict[str, Any]:
        """Parameters of every model."""
        spent = {"epsilon": self.options.epsilon, "delta": self.options.delta}
        return {**spent, "accountant": accountant, "verbose": 1}

    def too_few(self) -> bool:
        """Return whether nothing of use can be expected."""
        return bool(self.forecast().verdict == "too few")

    def is_enough(self) -> bool:
        """Return whether nine of ten runs find all that is asked for."""
        return bool(self.forecast().enough) and not self.too_few()

    def expected(self) -> list[str]:
        """Forecast in lines: a verdict, then how noise compares with each quantity."""
        forecast = self.forecast()
        # One step of several, each of which adds to what the others show.
        shown = [r for r in forecast.releases if r.name != "expected_counts"]
        return [
            f"{forecast.verdict.capitalize()}: {self.units} for {forecast.n_components} "
            f"{self.found}, which need about {forecast.n_samples_needed:,} at the very least.",
            f"{'what is measured':24}  signal over noise (above 1: visible)",
            *(f"{r.name.replace('_', ' '):24}  {r.ratio:.3g}" for r in shown),
        ]

    def doubts(self, noisy: bool) -> str:
        """Say what to doubt of results, and "" if nothing."""
        return self._missing() if noisy else ""

    def _missing(self) -> str:
        """Say that noise hides some of what was asked for, and what would help."""
        asked, n_found, n_hidden = getattr(self.options, self.option), *self.n_found()
        hidden = f", {n_hidden} of them marked as hidden by noise" if n_hidden else ""
        were = "was" if n_found == 1 else "were"
        seen = f"Of {asked} {self.found} asked for, {n_found} {were} found{hidden}."
        if n_found >= asked and not n_hidden:
            seen = f"Some of the {asked} {self.found} may be noise."
        return (
            f"{seen} More {self.unit}s, a larger --epsilon or a smaller --{self.option} would help."
        )


class Topics(Run):
    """A vocabulary, then topics."""

    found = option = "topics"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self._stop_words: Any = None
        self._known: dict[str, float] = {}
        if options.command == "forecast":
            return
        if options.person is None:
            self.unit, self.ledger_unit = "text", "document"
        if options.stop_words != "none":
            own = options.stop_words
            self._stop_words = public_names(Path(own), self.how()["encoding"]) if own else ENGLISH
        if options.vocabulary is not None:
            self._known = self._public_words()

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make both models; public words cost nothing."""
        options, given = self.options, self.given(accountant)
        whole = BudgetAccountant(options.epsilon, options.delta)
        first, second = whole.split(FRACTIONS, thresholds=1)
        words = {"max_features": options.words, **given, **first}
        topics = {**given, **second}
        if self._known:
            words = {"vocabulary": list(self._known)}
            topics = {**given, "word_frequencies": list(self._known.values())}
        self.models = {
            "words": PrivateCountVectorizer(stop_words=self._stop_words, **words),
            "topics": PrivateSpectralLDA(n_components=options.topics, **topics),
        }

    def cost(self, epsilon: float) -> PrivacyCost:
        """Cost of choosing words and of topics together; words take a part of its delta."""
        delta = self.options.delta
        reserved = 0.0 if self._known or math.isinf(epsilon) else delta / 10
        return PrivacyCost(gaussian_mu(epsilon, delta - reserved), 0.0, reserved)

    def read(self) -> None:
        """Read texts, and who wrote each."""
        options, self._groups = self.options, None
        if options.file is None:
            self._texts = datasets.load_docstrings()
        elif options.person is None:
            self._texts = datasets.load_texts(options.file, options.text, **self.how())
        else:
            columns = (options.text, "text"), (options.person, "person")
            self._texts, self._groups = read_columns(options.file, columns, **self.how())
        self.n_units = len(set(self._groups) if self._groups else self._texts)

    def forecast(self) -> Any:
        """Forecast of topics in texts of a hundred words."""
        return self.models["topics"].forecast(self.n_units, self.options.words)

    def too_few(self) -> bool:
        """Return whether no topic, or no word, can be expected."""
        return super().too_few() or not (self._known or self._words_forecast().enough)

    def expected(self) -> list[str]:
        """Forecast of topics, and of words unless they are public."""
        if self._known:
            return super().expected()
        words = self._words_forecast()
        few = "" if words.enough else f"Too few: {self.units} are not enough to keep any word. "
        kept = f"{few}A word is kept if about {words.threshold:,.0f} {self.unit}s use it."
        return [*super().expected(), kept]

    def _words_forecast(self) -> Any:
        return self.models["words"].forecast(self.n_units)

    def n_found(self) -> tuple[int, int]:
        """Numbers of topics found, and of those that noise hides."""
        return len(self._topics), sum(topic.below_noise for topic in self._topics)

    def fit(self) -> None:
        """Find words, then topics."""
        words, model = self.models.values()
        groups = {} if self._groups is None else {"groups": self._groups}
        counts = words.fit(self._texts, **groups).transform(self._texts)
        model.fit(counts, **groups)
        self._names = [str(word) for word in words.get_feature_names_out()]
        self._topics = topics_of(model, self._names)
        self._shares = model.transform(counts) if self.options.shares else None

    def lines(self) -> list[str]:
        """Topics with their shares and words."""
        found = ["topic   share  within (90 %)   words that set it apart"]
        for topic in self._topics:
            words = "".join(c if c.isprintable() else "?" for c in " ".join(topic.distinctive[:8]))
            mark = "*" if topic.below_noise else " "
            within = " to ".join(f"{end:.1%}" for end in topic.interval or ())
            found.append(f"{topic.number:>5}{mark} {topic.weight:>6.1%}  {within:14}  {words}")
        if any(topic.below_noise for topic in self._topics):
            found.append("* hidden by noise: it cannot be told from the words of all texts")
        return found

    def write(self, folder: Path, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write the page, leading words, all words, and if asked the shares of texts."""
        model, names = self.models["topics"], self._names
        write_topic_page(folder / "topics.html", model, names, report=report, warnings=warnings)
        image = topic_map(model, names, report.in_brief)
        (folder / "topic-map.svg").write_text(image, encoding="utf-8")
        columns = ["topic", "share", "low", "high", "rank", "word", "hidden"]
        leading = (
            [topic.number, *shares, rank, word, "yes" if topic.below_noise else "no"]
            for topic in self._topics
            for shares in [[f"{x:.6f}" for x in (topic.weight, *(topic.interval or UNKNOWN))]]
            for rank, word in enumerate(topic.words, start=1)
        )
        write_rows(folder / "topics.csv", columns, leading)
        head = [f"topic_{topic.number}" for topic in self._topics]
        table = np.column_stack([model.unigram_, model.components_.T])
        write_rows(folder / "topic_words.csv", ["word", "all_texts", *head], table, names)
        if self._shares is not None:
            texts = range(1, len(self._shares) + 1)
            write_rows(folder / SHARES, ["text", *head], self._shares, texts)
        footer = (
            "bar: share of a word in its topic; line: where noise may have moved it from (90 %); "
            f"grey: hidden by noise\n{report.in_brief}"
        )
        return TopicsDisplay.from_estimator(model, names, footer=footer).figure_

    def _public_words(self) -> dict[str, float]:
        """Commonest words of a public list, as texts are split into words."""
        words = datasets.load_word_frequencies(self.options.vocabulary)
        split = PrivateCountVectorizer(stop_words=self._stop_words).build_analyzer()
        kept = [word for word in words if split(word) == [word]][: self.options.words]
        if not kept:
            raise ValueError("--vocabulary has no word but stop words")
        return {word: words[word] for word in kept}


class Ratings(Run):
    """Items by what persons say of them."""

    ledger_unit = "slice"
    found, option = "directions of taste", "rank"
    n_items = 0
    _items: Sequence[str] = ()

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        low, high = options.bounds
        if not -math.inf < low < high < math.inf:
            raise ValueError("--bounds LOW HIGH needs two numbers, the lower one first")

    def settings(self) -> dict[str, Any]:
        """Columns and their bounds."""
        low, high = self.options.bounds
        return {**super().settings(), "ratings there can be": f"{low:g} to {high:g}"}

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
        who, what, self._values = read_columns(options.file, columns, **self.how())
        if np.isnan(self._values).any():
            raise ValueError(
                f"some rows of {options.file.name!r} have no {options.rating!r}: leave such rows "
                "out of the file"
            )
        items = sorted(set(what))
        if options.items is not None and options.items.suffix == ".csv":
            (items,) = read_columns(options.items, [(options.item, "item")], **self.how())
        elif options.items is not None:
            items = public_names(options.items, self.how()["encoding"])
        self._items = list(dict.fromkeys(items))
        self._entries = np.column_stack([who, what]).astype(object)
        self.n_units, self.n_items = len(set(who)), len(self._items)

    def forecast(self) -> Any:
        """Forecast for a public guess of how many ratings a person has."""
        n, each = self.n_units, min(self.options.each, self.n_items)
        return self.models["ratings"].forecast(n * each, (n, self.n_items))

    def too_few(self) -> bool:
        """Return whether nothing better than the average rating can be expected."""
        return bool(self.forecast().mean_is_all)

    def is_enough(self) -> bool:
        """Return whether the typical error that is asked for can be expected."""
        return bool(self.forecast().of_model <= self.options.error)

    def expected(self) -> list[str]:
        """Forecast of errors, and which items count: with other names nothing is found."""
        forecast, each = self.forecast(), self.options.each
        verdict = "Enough for what is liked on average, and too few for directions of taste"
        if forecast.mean_is_all:
            verdict = "Too few: noise hides all but the average of all ratings"
        elif forecast.finds_components:
            verdict = "Enough for what is liked on average, and for directions of taste"
        listed = (
            f"{self.n_items:,} items, such as {name}; ratings of any other are left out."
            for name in self._items[:1]
        )
        errors = {
            "the average of all ratings": forecast.of_mean,
            "the average of each item": forecast.of_biases,
            "directions of taste too": forecast.of_model,
        }
        if not forecast.of_model < forecast.of_biases:
            del errors["directions of taste too"]
        return [
            *listed,
            f"{verdict} ({self.units}; about {each} ratings each are assumed, --each).",
            f"{'predicted by':28}  typical error",
            *(f"{name:28}  {error:.3g}" for name, error in errors.items()),
            f"if ratings are typically {forecast.of_mean:.3g} away from their average",
        ]

    def n_found(self) -> tuple[int, int]:
        """Numbers of directions of taste found, and of hidden ones."""
        return int(self.models["ratings"].n_components_), 0

    def fit(self) -> None:
        """Learn what is common to items."""
        model = self.models["ratings"]
        names = RowIndex.from_public(self._items)
        model.set_params(shape=(self.n_units, self.n_items), row_names=(None, names))
        model.fit(self._entries, self._values)
        expected = model.predict_rows(None)
        order = np.argsort(-expected, kind="stable")
        self._best, self._names = expected[order], [self._items[row] for row in order]

    def lines(self) -> list[str]:
        """Best items for somebody who has rated nothing."""
        best = zip(self._best[:10], self._names[:10], strict=True)
        title = "rating  best for a newcomer, of whom nothing is known"
        return [title, *(f"{value:6.2f}  {name}" for value, name in best), ESTIMATES]

    def write(self, folder: Path, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write the items in order."""
        head = ["item", "expected_rating"]
        write_rows(folder / "items.csv", head, self._best[:, None], self._names)
        names, values, (low, high) = self._names[:15], self._best[:15], self.options.bounds
        title = "Best for a newcomer"
        label = f"expected rating, of {low:g} to {high:g}\n{ESTIMATES}\n{report.in_brief}"
        display = ComponentDisplay(names, values, title=title, quantity=label).plot()
        display.axes_[0].set_xlim(low, high)
        return display.figure_


class Groups(Run):
    """Groups of similar rows of numbers."""

    found = option = "groups"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        if options.command == "forecast":
            self._columns = [""] * options.columns
            return
        if options.person is None:
            self.unit, self.ledger_unit = "row", "sample"
        self._columns = [column for column, _, _ in options.range]
        self._ranges = np.array([public_range(*given) for given in options.range])
        if options.person in self._columns:
            raise ValueError(f"--range {options.person}: the column of persons is no quantity")
        if len(set(self._columns)) < len(self._columns):
            raise ValueError("--range names a column twice")
        if options.groups > len(self._columns):
            raise ValueError(
                f"{options.groups} groups cannot be told apart by {len(self._columns)} column(s): "
                f"add columns (--range), or ask for --groups {len(self._columns)}"
            )

    def settings(self) -> dict[str, Any]:
        """Columns, their ranges, and how cells and rows count."""
        used = (
            f"column {name!r} from {low:g} to {high:g}"
            for name, (low, high) in zip(self._columns, self._ranges, strict=True)
        )
        rows = {"an empty cell": "counts as the middle of the range"}
        if self.options.person is not None:
            rows["rows of one person"] = "weigh as much as one row, in equal parts"
        return {"numbers": ", ".join(used), **super().settings(), **rows}

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make the mixture; rows scaled by their ranges are no longer than `data_norm`."""
        norm, given = math.sqrt(len(self._columns)), self.given(accountant)
        model = PrivateTensorPowerMethod(
            self.options.groups, moment="gaussian_mixture", data_norm=norm, **given
        )
        self.models = {"groups": model}

    def read(self) -> None:
        """Read the columns, each scaled from its range to -1 to 1."""
        options, columns = self.options, [(name, "numbers") for name in self._columns]
        self._groups = None
        if options.person is not None:
            columns.append((options.person, "person"))
        found = read_columns(options.file, columns, **self.how())
        if options.person is not None:
            self._groups = found.pop()
        X = np.column_stack(found)
        low, high = self._ranges.T
        self._X = np.nan_to_num((2 * np.clip(X, low, high) - low - high) / (high - low))
        self.n_units = len(set(self._groups) if self._groups else X)

    def forecast(self) -> Any:
        """Forecast for groups that are far apart."""
        return self.models["groups"].forecast(self.n_units, len(self._columns))

    def expected(self) -> list[str]:
        """Forecast, and for which groups it holds."""
        apart = "This is for groups four standard deviations apart; closer ones need more."
        return [*super().expected(), apart]

    def doubts(self, noisy: bool) -> str:
        """Ask for ranges where averages lie at their ends, or all in their middle."""
        scaled = (2 * self._means - self._ranges.sum(axis=1)) / np.ptp(self._ranges, axis=1)
        doubted = [
            f"the averages of {name} lie {where} of its range: is --range right?"
            for name, places in zip(self._columns, np.abs(scaled).T, strict=True)
            for where, holds in (
                ("at the end", (places >= 0.98).any()),
                ("all in the middle", (places <= 0.04).all()),
            )
            if holds
        ]
        return "; ".join(doubted) or super().doubts(noisy)

    def n_found(self) -> tuple[int, int]:
        """Numbers of groups found, and of hidden ones."""
        return int(self.models["groups"].n_components_), 0

    def fit(self) -> None:
        """Find the groups, and give their averages in units of the columns."""
        model = self.models["groups"].fit(self._X, groups=self._groups)
        low, high = self._ranges.T

        def in_units(scaled: Any) -> Any:
            return (low + high + np.clip(scaled, -1, 1) * (high - low)) / 2

        reach = REACH * self._deviations(model)
        self._means = in_units(model.components_)
        self._low, self._high = (in_units(model.components_ + way * reach) for way in (-1, 1))
        self._spreads = np.sqrt(model.covariances_)[:, None] * (high - low) / 2

    def _deviations(self, model: Any) -> Any:
        """Deviations of averages by noise and by chance, of fits to what the groups predict.

        They read drawn rows alone, and cost no privacy.
        """
        again = clone(model).set_params(accountant=None, verbose=0)
        moved = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotEnoughDataWarning)
            for _ in range(N_BOOTSTRAPS):
                drawn = again.fit(model.sample(self.n_units)[0]).components_
                if len(drawn) == len(model.components_):
                    places = linear_sum_assignment(euclidean_distances(model.components_, drawn))
                    moved.append(drawn[places[1]] - model.components_)
        return np.sqrt(np.mean(np.square(moved), axis=0)) if moved else 2.0

    def lines(self) -> list[str]:
        """Shares and averages of the groups."""
        weights = self.models["groups"].weights_
        longest = max(map(len, self._columns))
        found = [f"group   share  {'column':{longest}}  average  noise may have moved it from"]
        for row, share in enumerate(weights):
            first = f"{row + 1:>5}  {share:>6.1%}"
            for place, name in enumerate(self._columns):
                mean, low, high = (
                    f"{ends[row, place]:.4g}" for ends in (self._means, self._low, self._high)
                )
                found.append(f"{first:13}  {name:{longest}}  {mean:>7}  {low} to {high}")
                first = ""
        return found

    def write(self, folder: Path, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write shares, averages and their intervals."""
        shares, ends = self.models["groups"].weights_, (self._means, self._low, self._high)
        suffixes = ("", "_low", "_high")
        head = [f"{name}{suffix}" for suffix in suffixes for name in self._columns]
        table = np.column_stack([shares, *ends])
        names = range(1, len(table) + 1)
        write_rows(folder / "groups.csv", ["group", "share", *head], table, names)
        footer = (
            "dot: average; line: where noise may have moved it from (90 %); grey: where most "
            f"{self.unit}s of the group are\n{report.in_brief}"
        )
        return MixtureDisplay(
            shares, self._means, self._spreads, self._columns, self._ranges, footer, *ends[1:]
        ).plot().figure_  # fmt: skip


def public_names(path: Path, encoding: str) -> list[str]:
    """Lines of a public list."""
    lines = decoded(existing_path(path), encoding).splitlines()
    return [line for line in lines if line.strip()]


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


def write_rows(
    path: Path, head: Sequence[str], rows: Iterable[Any], names: Iterable[Any] | None = None
) -> None:
    """Write a table with a header; rows of numbers have a name each."""
    if names is not None:
        named = zip(names, rows, strict=True)
        rows = ([name, *(f"{value:.6g}" for value in row)] for name, row in named)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])
