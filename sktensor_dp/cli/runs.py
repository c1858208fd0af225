"""Fits of the commands ``topics``, ``ratings`` and ``groups``, and what they write."""

import argparse
import csv
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from sktensor_dp import datasets
from sktensor_dp.completion import PrivateCPCompletion, RowIndex
from sktensor_dp.datasets.texts import as_numbers, existing_path, read_columns
from sktensor_dp.plotting import ComponentDisplay, MixtureDisplay, TopicsDisplay, footer_of
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
CONTRACTED = "ain aren couldn didn doesn don hadn hasn haven isn ll shouldn ve wasn weren wouldn"
ENGLISH = sorted(ENGLISH_STOP_WORDS.union(CONTRACTED.split()))
# What a run finds, and the option that says how many.
FOUND = {
    "topics": ("topics", "--topics"),
    "ratings": ("directions of taste", "--rank"),
    "groups": ("groups", "--groups"),
}
# Words of estimators, which are called from Python, and of the command.
SAID = {
    "fit more groups, or pass a vocabulary": "or give --vocabulary",
    " groups)": " {unit}s)",
    "that documents hold": "that the column of texts holds",
    "documents": "{unit}s",
    "Documents are": "Texts are",
    "samples": "{unit}s",
    "larger epsilon": "larger --epsilon",
    "raise epsilon": "raise --epsilon",
    ", a smaller data_norm or": " or",
    "fewer n_components": "fewer {option}",
    "components": "{found}",
    ": see forecast()": "",
    " Say otherwise by arguments of forecast().": "",
    "\nNoise: perturbation='sufficient_statistics'.": "",
    "Mean and biases can": "What is liked on average, but no direction of taste, can",
    "Components can": "Directions of taste can",
    "expected RMSE": "typical error",
}
SHARES = "PRIVATE-document-shares.csv"


class Run:
    """One kind of fit by the options of its command.

    Attributes
    ----------
    unit, ledger_unit : str
        Unit of privacy: for people, and as estimators charge it.
    n_units : int
        Their public number, once the file is read.
    models : dict of str to estimator
        By the names of their files.
    """

    unit, ledger_unit = "person", "slice"
    n_units = 0
    models: dict[str, Any]
    forecasts: Callable[[], list[Any]]

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def cost(self) -> PrivacyCost:
        """Cost of the whole run."""
        return PrivacyCost(gaussian_mu(self.options.epsilon, self.options.delta))

    def how(self) -> dict[str, Any]:
        """How the file is to be read."""
        options = self.options
        quoting, encoding = options.quoting or "auto", options.encoding or "utf-8"
        return {"delimiter": options.delimiter, "quoting": quoting, "encoding": encoding}

    def in_words(self, text: str) -> str:
        """Say what an estimator says in words of the command."""
        kind = getattr(self.options, "kind", self.options.command)
        found, option = FOUND[kind]
        for said, meant in SAID.items():
            text = text.replace(said, meant.format(unit=self.unit, found=found, option=option))
        return text

    def expected(self) -> str:
        """Forecasts in words of the command."""
        text = self.in_words("\n".join(map(str, self.forecasts())))
        legend = "Ratio: signal over noise; what is above 1 can be seen."
        return f"{text}\n{legend}" if "  ratio" in text else text

    def given(self, accountant: BudgetAccountant | None) -> dict[str, Any]:
        """Parameters of every model."""
        spent = {"epsilon": self.options.epsilon, "delta": self.options.delta}
        return {**spent, "accountant": accountant, "verbose": 1}


class Topics(Run):
    """A vocabulary, then topics."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.unit, self.ledger_unit = "person", "person"
        self._stop_words: Any = None
        self._known: dict[str, float] = {}
        if options.command == "forecast":
            return
        if options.person is None:
            self.unit, self.ledger_unit = "text", "document"
        if options.stop_words != "none":
            own = options.stop_words
            self._stop_words = public_names(Path(own)) if own else ENGLISH
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

    def cost(self) -> PrivacyCost:
        """Cost of choosing words and of topics together; words take a part of its delta."""
        epsilon, delta = self.options.epsilon, self.options.delta
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

    def forecasts(self) -> list[Any]:
        """Forecasts of words, unless they are public, and of topics in texts of a hundred."""
        words, topics = self.models.values()
        found = [] if self._known else [words.forecast(self.n_units)]
        return [*found, topics.forecast(self.n_units, self.options.words)]

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
        found = ["topic   share  words that set it apart"]
        for topic in self._topics:
            words = "".join(c if c.isprintable() else "?" for c in " ".join(topic.distinctive[:8]))
            mark = "*" if topic.below_noise else " "
            found.append(f"{topic.number:>5}{mark} {topic.weight:>6.1%}  {words}")
        if any(topic.below_noise for topic in self._topics):
            found.append("* hidden by noise: it cannot be told from the words of all texts")
        return found

    def write(self, folder: Path, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write the page, leading words, all words, and if asked the shares of texts."""
        model, names = self.models["topics"], self._names
        write_topic_page(folder / "topics.html", model, names, report=report, warnings=warnings)
        image = topic_map(model, names, footer_of(report))
        (folder / "topic-map.svg").write_text(image, encoding="utf-8")
        leading = (
            [topic.number, f"{topic.weight:.6f}", rank, word, "yes" if topic.below_noise else "no"]
            for topic in self._topics
            for rank, word in enumerate(topic.words, start=1)
        )
        write_rows(folder / "topics.csv", ["topic", "share", "rank", "word", "hidden"], leading)
        head = [f"topic_{topic.number}" for topic in self._topics]
        table = np.column_stack([model.unigram_, model.components_.T])
        write_rows(folder / "topic_words.csv", ["word", "all_texts", *head], table, names)
        if self._shares is not None:
            texts = range(1, len(self._shares) + 1)
            write_rows(folder / SHARES, ["text", *head], self._shares, texts)
        footer = f"bar: share of a word in its topic; line: range of the noise; {footer_of(report)}"
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

    n_items = 0
    _items: Sequence[str] = ()

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        low, high = options.bounds
        if not -math.inf < low < high < math.inf:
            raise ValueError("--bounds LOW HIGH needs two numbers, the lower one first")

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
            raise ValueError(f"some rows of {options.file.name!r} have no {options.rating!r}")
        items = sorted(set(what))
        if options.items is not None and options.items.suffix == ".csv":
            (items,) = read_columns(options.items, [(options.item, "item")], **self.how())
        elif options.items is not None:
            items = public_names(options.items)
        self._items = list(dict.fromkeys(items))
        self._entries = np.column_stack([who, what]).astype(object)
        self.n_units, self.n_items = len(set(who)), len(self._items)

    def forecasts(self) -> list[Any]:
        """Forecast for a public guess of how many ratings a person has."""
        n, each = self.n_units, min(self.options.each, self.n_items)
        return [self.models["ratings"].forecast(n * each, (n, self.n_items))]

    def expected(self) -> str:
        """Forecast, and which items count: with other names than in the data nothing is found."""
        listed = "".join(
            f"{self.n_items:,} items, such as {name}; ratings of any other are left out.\n"
            for name in self._items[:1]
        )
        return listed + super().expected()

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
        return [title, *(f"{value:6.2f}  {name}" for value, name in best)]

    def write(self, folder: Path, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write the items in order."""
        head = ["item", "expected_rating"]
        write_rows(folder / "items.csv", head, self._best[:, None], self._names)
        names, values = self._names[:15], self._best[:15]
        title = "Best for a newcomer"
        label = f"expected rating\n{footer_of(report)}"
        return ComponentDisplay(names, values, title=title, quantity=label).plot().figure_


class Groups(Run):
    """Groups of similar rows of numbers."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.unit, self.ledger_unit = "person", "person"
        if options.command == "forecast":
            self._columns = [""] * options.columns
            return
        if options.person is None:
            self.unit, self.ledger_unit = "row", "sample"
        self._columns = [column for column, _, _ in options.range]
        ends = [as_numbers(Path("--range"), column, ends) for column, *ends in options.range]
        self._ranges = np.array(ends)
        low, high = self._ranges.T
        if not (np.isfinite(self._ranges).all() and (low < high).all()):
            raise ValueError("--range COLUMN LOW HIGH needs two numbers, the lower one first")
        if len(set(self._columns)) < len(self._columns):
            raise ValueError("--range names a column twice")

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

    def forecasts(self) -> list[Any]:
        """Forecast for groups that are far apart."""
        return [self.models["groups"].forecast(self.n_units, len(self._columns))]

    def fit(self) -> None:
        """Find the groups, and give their averages in units of the columns."""
        model = self.models["groups"].fit(self._X, groups=self._groups)
        low, high = self._ranges.T
        self._means = (low + high + np.clip(model.components_, -1, 1) * (high - low)) / 2
        self._spreads = np.sqrt(model.covariances_)[:, None] * (high - low) / 2
        self._shares = model.weights_

    def lines(self) -> list[str]:
        """Shares and averages of the groups."""
        found = ["group   share  averages"]
        for number, (share, means) in enumerate(zip(self._shares, self._means, strict=True), 1):
            named = zip(self._columns, means, strict=True)
            averages = ", ".join(f"{name} {mean:.4g}" for name, mean in named)
            found.append(f"{number:>5}  {share:>6.1%}  {averages}")
        return found

    def write(self, folder: Path, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write shares, averages and spreads."""
        head = ["group", "share", *self._columns, *(f"spread_of_{name}" for name in self._columns)]
        table = np.column_stack([self._shares, self._means, self._spreads])
        write_rows(folder / "groups.csv", head, table, range(1, len(table) + 1))
        numbers = self._shares, self._means, self._spreads
        # A group has one variance for all columns once they are scaled by their ranges.
        spread = "dot: average; bar: typical distance from it, the same part of every range"
        footer = f"{spread}\n{footer_of(report)}"
        return MixtureDisplay(*numbers, self._columns, self._ranges, footer).plot().figure_


def public_names(path: Path) -> list[str]:
    """Lines of a public list."""
    lines = existing_path(path).read_text(encoding="utf-8-sig").splitlines()
    return [line for line in lines if line.strip()]


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
