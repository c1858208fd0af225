"""A run of the command: one kind of fit, its forecast, and what it writes."""

import argparse
import hashlib
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.display import Table, as_text, counted, plain, rounded_up
from sktensor_dp.cli.folder import Folder
from sktensor_dp.data.labels import Labels, as_labels, distinct, normalise_labels
from sktensor_dp.datasets.own_files import read_columns
from sktensor_dp.estimator.forecast import VERDICTS, least_number
from sktensor_dp.privacy.accountant import BudgetAccountant, FitBudget
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.ledger_entries import PERSON, LedgerEntry, person_of
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.private_check import (
    SEVERAL_ROWS,
    USELESS,
    InputCheck,
    fraction_of_check,
    most_failing,
    sigmas_of_check,
    stopped_by_noise,
)

# Options of one call of the command, on which nothing that it learns depends.
ONE_CALL = {
    "budget", "raise_budget", "forecast", "anyway", "again", "output", "command", "given",
}  # fmt: skip
# Options that are not listed as settings: those, and others that a run states in its own words.
UNSTATED = ONE_CALL | {"delimiter", "quoting", "encoding", "decimal", "category", "no_check", "id"}
# Options that may differ between a run and one that goes on from it.
CHANGEABLE = ONE_CALL | {
    "shares", "id", "words_per_text", "deviation", "direction_share", "title", "by_rating",
    "by_values", "no_check", "one_row_each",
}  # fmt: skip
COLUMNS = {"text", "person", "item", "rating", "title", "by"}  # options that name columns
# How missing values are written, unless --missing says otherwise.
MISSING = ("NA", "NaN")
# Names of releases in plain words.
MEASURED = {
    "word_frequencies": "how often each word is used",
    "pair_moments": "which words go together",
    "whitened_triple_moments": "what sets topics apart",
    "second_moments": "how columns vary together",
    "mixture_statistics": "averages of groups, in standard deviations",
}
BUILT_IN = "built-in texts"  # name of data without a file
HOPEFUL = VERDICTS[:2]  # others stop a run


@lru_cache(1)
def _unspent(epsilon: float, delta: float) -> BudgetAccountant:
    """Budget that is divided for each of many forecasts, and never spent from."""
    return BudgetAccountant(epsilon, delta)


@dataclass(frozen=True)
class Used:
    """Models that an earlier run paid for, and how a run uses them.

    Attributes
    ----------
    models : mapping of str to estimator
        By the names of their files.
    source : str
        Name of the file that they were learned from, if another one than that of this run.
    stated : mapping of str to str
        Settings of that run, to state with those of this one.
    adds : bool
        True if this run adds a last model to them: its whole epsilon is for that model.
    applies : bool
        True if this run writes the file of `free_option` by them, and nothing else.
    """

    models: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    stated: Mapping[str, str] = field(default_factory=dict)
    adds: bool = False
    applies: bool = False


class Run:
    """One kind of fit by the options of its command.

    Attributes
    ----------
    unit, ledger_unit : str
        Unit of privacy: for people, and as estimators charge it.
    noun : str
        What is found, such as a topic; the option that says how many is `option`.
    n_units, n_items : int
        Public number of units, once the file is read, and of items; a guess where it is private.
    models : dict of str to estimator
        By the names of their files.
    """

    unit, ledger_unit = "person", "person"
    noun: str
    option: str
    enough = "Enough"  # answer to --find, see `sought`
    mistake: str  # in options or data, which a check would find
    n_units = n_items = 0
    models: dict[str, Any]
    tests: Sequence[str] = ()  # of rows against public lists and ranges, in words
    may_fail: Sequence[str] = ()  # those of `tests` that a fraction `least_passing` has to pass
    least_passing = 0.5
    one_row_option = ""  # that says that persons have one row each
    groups: Labels | None = None  # of persons
    free_option = ""  # of a file that costs nothing once a run is finished
    has_lengths = False  # True where the check releases the typical length of a unit
    used = Used()
    added = ""  # model that may be added to those of a finished run, and settings for it alone
    added_settings: Collection[str] = ()

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.checked: InputCheck | None = None
        self.neighbours = "add_remove" if options.add_remove else "replace_one"
        if options.add_remove:
            self.n_units = options.persons

    def read(self) -> None:
        """Read the file."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        """Say what was found."""
        raise NotImplementedError

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make the models anew, by the options and sizes that are known so far."""
        raise NotImplementedError

    def use(self, used: Used) -> None:
        """Use models that an earlier run paid for in place of new ones."""
        self.used = used
        self.build()

    def forecast(self) -> Any:
        """Forecast of the fit."""
        raise NotImplementedError

    def forecaster(self, name: str, **changes: object) -> Any:
        """Copy of a model, with changes, whose forecast no accountant refuses."""
        model = self.models[name]
        return type(model)(**{**model.get_params(deep=False), "accountant": None, **changes})

    def n_asked(self) -> int:
        """Number of components, groups or topics asked for."""
        return int(vars(self.options)[self.option])

    def n_seen(self) -> int:
        """Number of components, groups or topics above the noise."""
        *_, model = self.models.values()
        return int(model.n_components_)

    @property
    def added_to(self) -> list[str]:
        """Names of all models but `added`, which may be fitted later, beside them."""
        return [name for name in self.models if name != self.added]

    @property
    def is_paid(self) -> bool:
        """True if an earlier run paid for all models."""
        return self.used.models.keys() == self.models.keys()

    @property
    def number_is_private(self) -> bool:
        """True if the number of units is private, and `n_units` a guess."""
        return self.neighbours == "add_remove"

    @property
    def epsilon(self) -> float:
        """Epsilon that the run spends: less than that of its options where a part is paid for."""
        epsilon = float(self.options.epsilon)
        if not (self.used.models or self.checked):
            return epsilon
        return self.charge(epsilon).cost.epsilon_at(self.options.delta)

    @property
    def file_name(self) -> str:
        """Path of the data file from where the output folder lies, wherever the command is run."""
        # No digest: whoever has the folder could compare it with guesses at the data.
        file, output = self.options.file, self.options.output
        if file is None:
            return BUILT_IN
        with suppress(ValueError):  # on another drive of Windows
            file = Path(os.path.relpath(file, os.path.dirname(os.path.abspath(output))))
        return file.as_posix()

    @property
    def units(self) -> str:
        """Number of units in words, such as "2,880 persons"."""
        number = counted(self.n_units, self.unit)
        return f"{number}{' (assumed, the true number is private)' * self.number_is_private}"

    def charge(self, epsilon: float) -> LedgerEntry:
        """Charge of a run at `epsilon`, or of those of its steps that are not paid for.

        A model that is added to paid ones gets all of `epsilon`.
        """
        if self.used.models and (self.is_paid or not self.used.adds):
            models = self.changed(epsilon=epsilon).models
            unpaid = [model for name, model in models.items() if name not in self.used.models]
            costs = [(PrivacyCost(mu=gaussian_mu(one.epsilon, one.delta)), 1) for one in unpaid]
            cost = PrivacyCost.total(costs)
        else:
            cost = self._whole_cost(epsilon) if self.checked is None else self._after_check(epsilon)
        unit = self.ledger_unit if self.ledger_unit != PERSON else person_of(self.options.person)
        return LedgerEntry(
            "sktensor-dp", "run", uses=1, cost=cost, unit=unit, neighbours=self.neighbours
        )

    def _after_check(self, epsilon: float) -> PrivacyCost:
        """Cost of all steps after a check, which leaves them the rest of mu squared."""
        cost, rest = self._whole_cost(epsilon), 1 - self._fraction_of_check(epsilon)
        return replace(cost, mu=cost.mu * math.sqrt(rest))

    def _whole_cost(self, epsilon: float) -> PrivacyCost:
        """Cost of all steps; finding words uses a part of delta."""
        delta, finds_words = self.options.delta, "vocabulary" in dict(self.steps())
        # As `BudgetAccountant.split` reserves for one vocabulary.
        reserved = delta / 10 if finds_words and math.isfinite(epsilon) else 0.0
        return PrivacyCost(mu=gaussian_mu(epsilon, delta - reserved), delta=reserved)

    def steps(self) -> list[tuple[str, float]]:
        """Steps that this run pays for: what kind of fit, and which fraction of the budget."""
        return [("gaussian", 1.0)]

    def split(self) -> list[FitBudget]:
        """Budgets of the steps."""
        return self._budgets()[0]

    @property
    def _for_check(self) -> FitBudget | None:
        """Budget of a check before the steps; None without one."""
        return self._budgets()[1]

    def _budgets(self) -> tuple[list[FitBudget], FitBudget | None]:
        """Budgets of the steps, and of a check before them if there is one."""
        kinds, steps = zip(*self.steps(), strict=True)
        budget = _unspent(self.options.epsilon, self.options.delta)
        if (fraction := self._fraction_of_check(self.options.epsilon)) > 0:
            fractions = [*(step * (1 - fraction) for step in steps), fraction]
            *parts, for_check = budget.split(fractions, [*kinds, "gaussian"])
            if for_check["epsilon"] > 0:  # at epsilon 0 delta alone would pay for the check
                return parts, for_check
        return budget.split(steps, kinds), None

    def _fraction_of_check(self, epsilon: float) -> float:
        """Fraction of the budget for a check; 0 without one, or if noise would hide its result."""
        if not (self.tests and self.n_units) or (self.options.no_check and self.checked is None):
            return 0.0
        mu = self._whole_cost(epsilon).mu
        return fraction_of_check(self.n_units, mu, *self._n_released(), self.neighbours)

    def _n_released(self) -> tuple[int, int]:
        """Number of means that the check releases, and of its tests that no row may fail."""
        n_released = len(self.tests) + (self.unit == "person") + self.has_lengths
        return n_released, len({*self.tests} - {*self.may_fail})

    def sigmas_ahead(self) -> tuple[float, float]:
        """Deviations of the noise of a check to come, as of `sigmas_of_check`; 0 without one."""
        if self.checked is not None or (for_check := self._for_check) is None:
            return 0.0, 0.0
        mu = gaussian_mu(**for_check)
        return sigmas_of_check(self.n_units, mu, *self._n_released(), self.neighbours)

    def matches(self) -> Iterator[NDArray[np.bool_]]:
        """Yield for each of `tests` whether each row passes it."""
        yield from ()

    def causes(self) -> dict[str, tuple[str, str]]:
        """Likely causes by test: where most rows fail it, and where some do."""
        return {}

    def columns_of_tests(self) -> dict[str, str]:
        """Column that each test is of, for "{}" in its causes."""
        return {}

    def lengths(self) -> NDArray[np.int64] | None:
        """Length of each row, if the check is to release the typical one for the forecast."""
        return None

    def ways_by_guess(self) -> list[str]:
        """Say which other guesses, if the forecast depends on some, would not stop the run."""
        return []

    def unchecked(self) -> str:
        """Say that noise would hide the result of a check; "" if it would not, or none is due."""
        unneeded = self.options.no_check or (self.used.models and not self.used.adds)
        if not self.tests or self._for_check or self.checked or unneeded:
            return ""
        return (
            f"No check can say what rows can be used: noise would hide the result for {self.units} "
            f"at epsilon {self.options.epsilon:g}. If {self.mistake}, all of it is spent for "
            "nothing"
        )

    def take_check(self, folder: Folder, asked: Mapping[str, str]) -> None:
        """Take the result of a check of the same settings that the folder keeps, if it has one."""
        files = {one for one in vars(self.options).values() if isinstance(one, Path)}
        self.checked = folder.kept_check(self.of_check(asked), files - {self.options.output})
        if self.checked is not None:
            self.checked.may_fail = self.may_fail

    def check(self, folder: Folder) -> None:
        """Check what rows can be used, and keep the result: no later run pays for it again."""
        if self.checked is None and (for_check := self._for_check):
            matches = dict(zip(self.tests, self.matches(), strict=True))
            check = InputCheck(
                self.ledger_unit, self.neighbours, **for_check, accountant=folder.ledger,
                may_fail=self.may_fail, least=self.least_passing, causes=self.causes(),
                columns=self.columns_of_tests(),
            )  # fmt: skip
            check.release(matches, self.groups, self.lengths())
            folder.keep_check(check, self.of_check(folder.made.asked))
            self.checked = check

    def check_ahead(self) -> list[str]:
        """Say when a check before the fit would stop it; nothing where there is no check."""
        (_, n_strict), (sigma, of_all) = self._n_released(), self.sigmas_ahead()
        if not (n_strict and sigma):
            return []
        most, least = most_failing(of_all, self.n_units), self.least_passing + 2 * sigma
        often = stopped_by_noise(of_all, self.n_units)
        stops = f"It stops the run where over about {most:.1%} of rows are not as declared"
        said = [
            self.left_by_check(),
            f"{stops}: fewer, as of a code such as -9, may pass, and move averages.",
            f"Noise alone stops about {often} of runs.",
        ]
        if sigma > USELESS:
            return said
        said.append(f"It stops, too, where under {least:.1%} of rows have a value of a column.")
        if rows := self.asks_for_rows():
            said += [
                *rows,
                "These numbers are private, so that nothing free tells ids of rows from persons: "
                f"are {self.units} about as many as you expect?",
            ]
        return said

    def asks_for_rows(self) -> list[str]:
        """List of a sentence that a check stops where persons have one row each; else empty."""
        if not self.options.person or SEVERAL_ROWS in self.may_fail:
            return []
        ways = f": {self.one_row_option} says that each has one" if self.one_row_option else ""
        return [f"It stops, too, where hardly any person has several rows{ways}."]

    def price_of_check(self) -> float:
        """Epsilon by which a check lowers what is left to the fit."""
        left = self._after_check(self.options.epsilon).epsilon_at(self.options.delta)
        return float(self.options.epsilon - left)

    def left_by_check(self) -> str:
        """Say what a check to come leaves to the fit."""
        left = self.options.epsilon - self.price_of_check()
        return (
            f"A check comes first, after which epsilon {left:.4g} is left (--no-check leaves it "
            "out)."
        )

    def refusal(self) -> str:
        """Say why the check stops the run: few rows match, or --persons is a wrong guess."""
        if (check := self.checked) is None:
            return ""
        if refusal := check.refusal:
            option = SEVERAL_ROWS in check.too_few and self.one_row_option
            says_so = f" {option} says that each has, and a check does not ask for it."
            return refusal + says_so * bool(option)
        most = max(round(check.n_units + 2 * check.count_sigma), 1)
        if (
            not self.number_is_private
            or self.options.anyway
            or (not check.is_hidden and self.changed(most).verdict() in HOPEFUL)
        ):
            return ""
        return (
            f"--persons {self.n_units} does not fit the data: {counted(most, self.unit)} at most "
            "were counted, but for noise. Say about how many there are."
        )

    def on_rows(self) -> list[str]:
        """List of a sentence on rows that fail the check, which move averages; else empty."""
        return [str(self.checked)] if self.checked is not None and self.checked.failing else []

    def settings(self) -> Mapping[str, object]:
        """Columns used, and other public settings: the options given."""
        stated = {
            name.replace("_", " "): f"column {value!r}" if name in COLUMNS else in_words(value)
            for name, value in vars(self.options).items() if value and name not in UNSTATED
        }  # fmt: skip
        if self.options.one_row_each:
            stated["one row each"] = "as the run was told, not checked"
        if self.options.no_check:
            stated["checked first"] = "no, by --no-check"
        if self.checked is not None:
            stated["checked first"] = f"{self.checked}".removesuffix(".")
            if self.options.no_check and (failed := self.checked.failed):
                stated["checked first"] += f". Accepted by --no-check: {failed}"
        return {**stated, "file": self.file_name, **self.used.stated}

    def asked_settings(self) -> dict[str, str]:
        """Settings, in words, by which a later run is compared with this one.

        Parameters of models, public lists among them, are two digests: one of the model that is
        `added`, under "values", and one of all others, under "lists".
        """
        asked = {
            name: in_words(value, " or " if name == "category" else " to ")
            for name, value in vars(self.options).items() if value and name not in CHANGEABLE
        }  # fmt: skip
        # Told by other settings, or parts of the budget, which depend on the number of rows.
        aside = dict.fromkeys(("accountant", "n_components", "epsilon", "delta"))
        parameters: dict[str, dict[str, Any]] = {"lists": {}, "values": {}}
        for name, one in self.models.items():
            own = {**one.get_params(deep=False), **aside}
            if name == self.added:  # in whatever order they were listed
                own["values"] = sorted(own["values"])
            parameters["values" if name == self.added else "lists"][name] = own
        digests = {
            name: hashlib.sha256(repr(own).encode()).hexdigest()
            for name, own in parameters.items() if own
        }  # fmt: skip
        return {**asked, "file": self.file_name, "number": self.units, **digests}

    def of_check(self, asked: Mapping[str, str]) -> dict[str, str]:
        """Settings, of those `asked` for, on which the result of a check depends."""
        aside = {"epsilon", self.option, *self.used.stated}
        return {name: value for name, value in asked.items() if name not in aside}

    def take_settings(self, asked: Mapping[str, str], models: Mapping[str, Any]) -> None:
        """Take settings that are not given from the run that made `models`, to add to it."""
        raise NotImplementedError

    def reading_options(self) -> dict[str, Any]:
        """Options for reading the file."""
        options = self.options
        quoting, encoding = options.quoting or "auto", options.encoding or "utf-8"
        return {"delimiter": options.delimiter, "quoting": quoting, "encoding": encoding}

    def codes(self, _column: str) -> Collection[str]:
        """Forms in which missing values of a column are written."""
        return self.options.missing or MISSING

    def columns(
        self, wanted: Sequence[tuple[str | None, str]], **reading_options: object
    ) -> list[Any]:
        """Read columns of the file, by name and content; keep labels of persons for the fit."""
        options = self.options
        person = [] if options.person is None else [(options.person, "person")]
        reading = {
            **self.reading_options(), "decimal": options.decimal or ".", "missing": self.codes,
            # Codes of --missing are of values: a person may have such a name.
            "nobody": ("", *MISSING),
            "may_be_empty": self.number_is_private,  # it may be 0
            **reading_options,
        }  # fmt: skip
        contents = read_columns(options.file, [*wanted, *person], **reading)
        if person:
            labels = contents.pop()
            if options.normalise_labels:
                labels = normalise_labels(labels)
            self.groups = as_labels(labels, len(labels), "the column of --person")
        return contents

    def count(self, rows: Sized) -> None:
        """Count the units in `rows`, unless their number is private."""
        if not self.number_is_private:
            self.n_units = len(rows if self.groups is None else distinct(self.groups)[0])

    def fit(self) -> Iterator[str]:
        """Fit models that are not paid for, yield the name of each, and set what `lines` says."""
        raise NotImplementedError

    def write_and_draw(self, folder: Folder, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write tables and pages, and return a figure; ImportError without matplotlib."""
        raise NotImplementedError

    def write_document_shares(self, folder: Folder) -> str:
        """Write the file of `free_option`; return its name."""
        raise NotImplementedError

    def verdict(self) -> str:
        """Verdict of the forecast on the whole run."""
        return str(self.forecast().verdict)

    def too_few(self) -> bool:
        """Return True if nothing useful can be expected."""
        return self.verdict() not in HOPEFUL

    def why_not(self) -> str:
        """Say why what an earlier run found leaves nothing useful to pay for; "" if it does not."""
        return ""

    def verdict_by_guess(self) -> str:
        """Verdicts by sizes that were guessed, if these decide; "" where no size is guessed."""
        return ""

    def is_enough(self) -> bool:
        """Return True if nine of ten runs are expected to find what is asked for."""
        return self.verdict() == "enough"

    def changed(self, n_units: int | None = None, **options: object) -> Self:
        """Copy of the run for another number of units, or with other options."""
        other = copy(self)
        other.n_units = self.n_units if n_units is None else n_units
        other.options = argparse.Namespace(**{**vars(self.options), **options})
        other.build()
        return other

    def least(self, verdicts: Collection[str] = HOPEFUL) -> str:
        """Least number of units, in words, with one of the `verdicts`; "" if none has."""
        n = least_number(lambda n: self.changed(n).verdict() in verdicts)
        return rounded_up(n) if n else ""

    def is_likely(self) -> bool:
        """Return True if a stopped run may advise these settings."""
        return self.verdict() in HOPEFUL

    def numbers_needed(self) -> str:
        """Say from how many units on results can be expected."""
        least = self.least()
        if not least:
            return f"more {self.unit}s would not be enough"
        return f"may be enough from {least} on"

    def sought(self) -> str:
        """Say what holds from the least epsilon or number on, in an answer to --find."""
        return self.enough

    def assumption(self) -> str:
        """Say what a forecast assumes of the data."""
        raise NotImplementedError

    def forecast_lines(self) -> list[str]:
        """Forecast in lines: a verdict, then how noise compares with each quantity."""
        forecast = self.forecast()
        verdict = (self.verdict_by_guess() or self.verdict()).capitalize()
        found = counted(forecast.n_components, self.noun)
        at = f"at epsilon {self.options.epsilon:.3g}"
        title = f"{verdict}: {self.units} for at most {found} {at}; {self.numbers_needed()}."
        head = "what is measured", "signal over noise (above 1: visible)"
        # Steps of topics are not in MEASURED, as each adds to what pairs and words show; those of
        # groups are, as they are all there is.
        ratios = {release.name: f"{release.ratio:.3g}" for release in forecast.releases}
        rows = [(MEASURED[name], ratio) for name, ratio in ratios.items() if name in MEASURED]
        return [as_text(Table(title, head, rows, left=head))]

    def on_hidden(self) -> list[str]:
        """List of a sentence on how many can be seen, if noise hides some; else empty."""
        if self.n_seen() >= self.n_asked() or math.isinf(self.options.epsilon):
            return []
        return [self.on_seen()]

    def on_seen(self) -> str:
        """Say, from released numbers, how much of the requested result the data supports."""
        if not self.n_asked():
            return f"No {self.noun} was asked for."
        more = "" if self.n_seen() >= self.n_asked() else "; there may be no more"
        found = f"{self.n_seen()} of {counted(self.n_asked(), self.noun)}"
        return f"{found} can be seen above the noise{more}."

    def for_officer(self) -> str:
        """Say for the officer what the results show, but for what `doubts` say."""
        return "" if self.on_seen() in self.on_hidden() else self.on_seen()

    def helps(self, most_epsilon: float) -> list[str]:
        """Changes that would show more; another run may spend `most_epsilon`."""
        ways = [f"more {self.unit}s"]
        if self.options.epsilon < most_epsilon:
            ways.append("a larger --epsilon")
        if self.n_seen():
            ways.append(f"a smaller --{self.option}")
        return ways

    def doubts(self, most_epsilon: float) -> str:
        """Text on rows that fail the check, on what noise hides, and what would help."""
        hidden = self.on_hidden()
        if hidden and (helps := ", or ".join(self.helps(most_epsilon))):
            hidden.append(f"What would help: {helps}.")
        unfit = "" if self.checked is None else self.checked.unfit
        return " ".join(filter(None, [unfit, *hidden]))


def in_words(value: object, between: str = " to ") -> str:
    """Value of an option: a number, a file, words, or lists of them."""
    if isinstance(value, list) and isinstance(value[0], list):  # ranges or categories of columns
        return ", ".join(f"{column!r} {between.join(values)}" for column, *values in value)
    if isinstance(value, list) and isinstance(value[0], float):  # one range
        return " to ".join(map(in_words, value))
    if isinstance(value, list):
        return ", ".join(map(repr, value))
    if isinstance(value, Path):
        return value.name
    if value is True:
        return "yes"
    return plain(value) if isinstance(value, float) else str(value)
