"""The command ``groups``: groups of similar rows of numbers."""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.checks.display import Table, as_text
from sktensor_dp.cli.folder import Folder
from sktensor_dp.cli.public_lists import listed_name
from sktensor_dp.cli.run import MISSING, Run
from sktensor_dp.cli.written_tables import PAIRED, differences, table_of
from sktensor_dp.estimator.base import name_columns
from sktensor_dp.gaussian_mixture import PrivateGaussianMixture
from sktensor_dp.gaussian_mixture.fitted import doubts_of_ends, move_to_units
from sktensor_dp.gaussian_mixture.intervals import (
    half_widths_of_differences,
    half_widths_of_sums,
    intervals_of,
    on_groups,
    reach_of,
)
from sktensor_dp.gaussian_mixture.plan import OF_ONE_SIZE, no_intervals_by, strength
from sktensor_dp.gaussian_mixture.recipe import UNEVEN
from sktensor_dp.model_selection import scale_by_ranges
from sktensor_dp.plotting import MixtureDisplay
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.private_check import SEVERAL_ROWS
from sktensor_dp.tensor.arrays import Floats

CENTRES = (
    "A group is modelled as a Gaussian, an elliptic cloud around its average.",
    "A cloud of another shape may be several groups; noise moves averages and shares.",
)
MAY_BE_MORE = (
    "There may be more groups than were asked for: another run may ask for one or two more, and "
    "joins those that the data does not support."
)
ASK_FOR_MORE = "Ask for one or two more than there may be: those without support are joined."
ASK_FOR_ALL = (
    "Ask for as many as there may be: one fit in five misses one, and more asked for do not help."
)
HIDERS = (
    "Few values, many equal ones or a long tail in a column hide groups or intervals: name it by "
    "--nonnormal, or --log-range. Leave out columns that no group may differ in: each brings as "
    "much noise as one that groups differ in."
)
SCORES = "A range of few whole numbers ({}): if these are scores, name the column by --nonnormal."
LONG_SCORES = (
    "Whole ends of a range ({}): if most values of such a score are in its middle, a range three "
    "times as wide shows more groups."
)
MOST_LEVELS, MOST_OF_LONG = 7, 20  # whole numbers in the ranges of such scores
NORM_SEEN = 200  # rows times mu from which on a histogram shows the rows' norms above its noise
OF_RANGE = 0.25  # typical distance of numbers from their average, as a part of the range
NOT_GIVEN = "not given"  # value of a category in missing cells, if it is listed
CATEGORY = (
    "The average of a category is the share of rows that have it{}, of those with a listed one. A "
    "row with a missing cell counts by its other cells, unless 'not given' is listed. Of a column "
    "of several categories the last average is what the others leave of 1."
)
CLAMPED = (
    "Averages and intervals are of numbers clamped to their ranges: a tail beyond is not counted."
)
INTERVALS = (
    "Intervals count noise, chance, and log-normal tails as far as released numbers show them, but "
    "not how missing numbers differ from others, which fill them along straight lines. {} "
    "--log-range helps with a tail if all numbers are above 0.",
    "Another run may find other groups: intervals of shares and averages are for the groups shown.",
)
OF_ONE = "They are wide where a column has many zeros or a long tail."
OF_SEVERAL = "A long tail in one column widens those of all, or leaves none."
ENDS = ("", "_low", "_high")  # columns of an average and of its interval


class Groups(Run):
    """Groups of similar rows of numbers."""

    noun, option = "group", "groups"
    mistake = "a range is in other units, or a code such as -9 stands for missing values"
    one_row_option = "--one-row-each"
    least_passing = 0.0  # missing cells stop a run only where no row is certain to have a value

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        options.groups = options.groups or 3
        self._deviation = options.deviation or OF_RANGE
        if options.command == "forecast":
            self._columns = self._numeric = [f"column {n}" for n in range(options.columns)]
            self.may_fail = [f"{column} given" for column in self._columns]
            self.tests = [*self.may_fail, *self._columns]
            self._nonnormal, self._is_last = list[int](), np.zeros(options.columns, bool)
            self._scores = self._long_scores = list[str]()
            return
        if options.person is None:
            self.unit, self.ledger_unit = "row", "sample"
        logs = [("--log-range", *given) for given in options.log_range or ()]
        ranges = [*(("--range", *given) for given in options.range or ()), *logs]
        if not ranges:
            raise ValueError("--range COLUMN LOW HIGH must be given, for each column to use")
        self._numeric, self._n_logs = [column for _, column, *_ in ranges], len(logs)
        self._bounds = [public_range(*given) for given in ranges]
        options.category = [[*map(listed_name, one)] for one in options.category or ()]
        self._categorical = {column: values for column, *values in options.category}
        self._categories = [(one, value) for one, *values in options.category for value in values]
        self._arrange()
        self._refuse_columns()
        given = [f"{column} given" for column in [*self._numeric, *self._categorical]]
        self.may_fail = [*given, *[SEVERAL_ROWS] * bool(options.one_row_each)]
        n_plain = len(self._numeric) - self._n_logs
        within = [f"{column} in its range" for column in self._numeric[:n_plain]]
        within += [f"{column} in its log range, so above 0" for column in self._numeric[n_plain:]]
        within += [f"{column} listed by --category" for column in self._categorical]
        self.tests = [*given, *within]

    def _refuse_columns(self) -> None:
        """Raise ValueError for columns named twice or not used, and for lists without values."""
        options = self.options
        own_codes = tuple(f"{column}=" for column in [*self._numeric, *self._categorical])
        for code in options.missing or ():
            if "=" in code and not code.startswith(own_codes):
                raise ValueError(f"--missing {code}: COLUMN=CELL names no column that is used")
        named = [options.person, *self._numeric]
        if len({*named}) < len(named):
            raise ValueError("--range or --log-range name a column twice, or that of persons")
        for column, values in self._categorical.items():
            if not values or (len(values) == 1 and "," in values[0]):
                raise ValueError(
                    f"--category {column} VALUE...: name all of its public values after it, with "
                    "blanks between them and no commas"
                )
        if both := {*self._categorical}.intersection([options.person, *self._numeric]):
            raise ValueError(
                f"--category {min(both)}: --range, --log-range or --person has it, too: use it once"
            )
        if unknown := {*(options.nonnormal or ())} - {*self._numeric}:
            raise ValueError(f"--nonnormal {min(unknown)}: no --range or --log-range names it")
        given = [column for column, *_ in options.category]
        if len({*given}) < len(given) or len({*self._columns}) < len(self._columns):
            raise ValueError("--category names a column or a category twice: list all values once")

    def _arrange(self) -> None:
        """Set names, ranges and scaler of the columns: plain numbers, logarithms, categories."""
        self._columns = [*self._numeric, *map("=".join, self._categories)]
        self._ranges = np.array(self._bounds + [(0.0, 1.0)] * len(self._categories))
        self._of_logs = np.zeros(len(self._columns), bool)
        self._of_logs[len(self._numeric) - self._n_logs : len(self._numeric)] = True
        self._ranges[self._of_logs] = np.log10(self._ranges[self._of_logs])
        # Shares of the categories of a column add up to 1: the last one follows from the others.
        lasts = [
            len(values) > 1 and value == values[-1]
            for _, *values in self.options.category for value in values
        ]  # fmt: skip
        self._is_last = np.append(np.zeros(len(self._numeric), bool), np.array(lasts, bool))
        # A column with a range such as 0 to 1 may hold its ends alone: it counts as nonnormal.
        plain = self._bounds[: len(self._numeric) - self._n_logs]
        binary = [name for name, (low, high) in zip(self._numeric, plain, strict=False)
                  if low.is_integer() and high - low == 1]  # fmt: skip
        categories = self._columns[len(self._numeric) :]
        nonnormal = {*binary, *(self.options.nonnormal or ()), *categories}
        levels = {
            name: high - low for name, (low, high) in zip(self._numeric, plain, strict=False)
            if low.is_integer() and high.is_integer() and name not in nonnormal
        }  # fmt: skip
        self._scores = [name for name, n in levels.items() if n < MOST_LEVELS]
        self._long_scores = [n for n in levels if MOST_LEVELS <= levels[n] <= MOST_OF_LONG]
        fitted = np.array(self._columns, object)[~self._is_last]
        is_nonnormal = np.array([name in nonnormal for name in fitted])
        self._nonnormal = np.flatnonzero(is_nonnormal).tolist()
        # Of several groups these columns have a third of the range of others: rows are shorter, and
        # the start, which is by the others, has less noise.
        margins = is_nonnormal * (self.options.groups > 1)
        ranges = self._ranges[~self._is_last]
        self._fitted_ranges = ranges + np.outer(margins * np.diff(ranges)[:, 0], [-1, 1])
        self._scaler = scale_by_ranges(dict(enumerate(self._fitted_ranges)))

    def settings(self) -> Mapping[str, object]:
        """Options of the run, and how cells and rows count."""
        rows = {
            "an empty cell": "is missing: the row counts by its other cells",
            "a number outside its range": "counts as the nearest end",
        }
        if self.options.person is not None and not self.options.one_row_each:
            rows["rows of one person"] = "weigh as much as one row, in equal parts, empty or not"
        categories = [
            f"{column!r} is {' or '.join(map(repr, values))}"
            for column, values in self._categorical.items()
        ]
        listed = {"category": ", ".join(categories)} if categories else {}
        if numeric := [self._numeric[one] for one in self._nonnormal if one < len(self._numeric)]:
            listed["nonnormal"] = ", ".join(numeric)
        return {**super().settings(), **listed, **rows}

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make the mixture.

        Rows scaled by their ranges are no longer than the root of the number of columns, which
        clips no mean of one group. Most are far shorter: a start of more groups needs their norm.
        """
        budget, norm = self.split()[0], math.sqrt(self._n_fitted)
        seen = self.n_units * strength(budget["epsilon"], budget["delta"]) >= NORM_SEEN
        model = PrivateGaussianMixture(
            self.options.groups, data_norm="auto" if seen and self.options.groups > 1 else norm,
            neighbours=self.neighbours, accountant=accountant,
            nonnormal_features=dict.fromkeys(self._nonnormal, (-1 / 3, 1 / 3)) or None, **budget,
        )  # fmt: skip
        self.models = {"groups": model, **self.used.models}

    @property
    def _n_fitted(self) -> int:
        """Number of columns of the fit: all but the last category of each column of several."""
        return len(self._columns) - int(self._is_last.sum())

    def codes(self, column: str) -> list[str]:
        """Codes of missing values of a column: those of all columns, and its own."""
        codes = self.options.missing or ()
        prefix = f"{column}="
        of_all = [code for code in codes if "=" not in code] or MISSING
        return [*of_all, *(code.removeprefix(prefix) for code in codes if code.startswith(prefix))]

    def read(self) -> None:
        """Read the columns; cells of categories that are missing are `NOT_GIVEN`."""
        columns = [(name, "numbers") for name in self._numeric]
        contents = self.columns([*columns, *((name, "text") for name in self._categorical)])
        self.count(contents[0])
        self._values = contents[: len(self._numeric)]
        self._texts = {}
        for name, cells in zip(self._categorical, contents[len(self._numeric) :], strict=True):
            # A public category may have the name NA, as Namibia has in tables of countries.
            absent = {"", *self.codes(name)} - {*self._categorical[name]}
            values = [NOT_GIVEN if cell.strip() in absent else listed_name(cell) for cell in cells]
            self._texts[name] = np.array(values, object)

    def matches(self) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of rows for each of `tests`.

        First come, by column, the cells that are given; then, by column, those that are missing, or
        in its range or listed categories.
        """
        missing = [*map(np.isnan, self._values)]
        missing += [self._texts[column] == NOT_GIVEN for column in self._categorical]
        declared = [
            (low <= values) & (values <= high)
            for values, (low, high) in zip(self._values, self._bounds, strict=True)
        ]
        declared += [np.isin(self._texts[one], values) for one, values in self._categorical.items()]
        yield from (~mask for mask in missing)
        yield from (fits | mask for fits, mask in zip(declared, missing, strict=True))

    def causes(self) -> dict[str, tuple[str, str]]:
        """Likely causes by test: where most rows fail it, and where some do."""
        missing = (
            "Nearly all cells of {} are missing. Leave it out, or name another column; if they are "
            "missing by design, run with --no-check."
        )
        zeros = ", or has it many zeros, which have no log"
        of_logs = {*self._numeric[len(self._numeric) - self._n_logs :]}
        causes: dict[str, tuple[str, str]] = {}
        for test, column in self.columns_of_tests().items():
            if test in self.may_fail:
                causes[test] = missing, missing
            elif column in self._categorical:
                causes[test] = (
                    "Are the values of --category {} written as in the file?",
                    "--category {} must list every value that the column can have.",
                )
            else:
                causes[test] = (
                    f"Is the range of {{}} in other units than the column"
                    f"{zeros if column in of_logs else ''}?",
                    "Are some cells of {} in other units, as mg/dl beside mmol/l, or codes, such "
                    "as -9? --missing declares codes. Or is the range too narrow, or narrow on "
                    "purpose? Choose a wider one, or --no-check.",
                )
        return causes

    def columns_of_tests(self) -> dict[str, str]:
        """Column that each test is of."""
        return dict(zip(self.tests, 2 * [*self._numeric, *self._categorical], strict=True))

    def forecast(self) -> Any:
        """Forecast for groups of one size, of columns that are scaled to ranges of length 2."""
        model = self.forecaster("groups")
        return model.forecast(self.n_units, self._n_fitted, deviation=2 * self._deviation)

    def _expected_reach(self) -> float:
        """Expected reach of 90% intervals to either side of averages, as a part of the range."""
        return float(ndtri(0.95) * self.forecast().mean_error / 2)  # scaled ranges have length 2

    def is_enough(self) -> bool:
        """Return True if nine of ten runs are expected to find groups, with intervals as asked."""
        within = self.options.within
        if within is None:
            return super().is_enough()
        return super().is_enough() and not self._no_intervals() and self._expected_reach() <= within

    def _no_intervals(self) -> str:
        """Public reason why there will be no intervals; empty if there will be some."""
        return no_intervals_by(self.models["groups"], self.n_units, self._n_fitted)

    def sought(self) -> str:
        """Say what is enough, and how wide intervals are to be."""
        if self.options.within is None:
            return super().sought()
        reach = f"{self.options.within:g} of a column's range to either side"
        return f"{super().sought()}, with intervals that reach {reach},"

    def assumption(self) -> str:
        """Say what is assumed of groups and intervals."""
        several = "groups are of one size and well apart, and " if self.options.groups > 1 else ""
        return f"{several}{self._of_deviation()}"

    def _of_deviation(self) -> str:
        """Say how far numbers are assumed to be from the average of their group."""
        option = " (--deviation)" * (self.options.command == "forecast")
        distance = f"typically {self._deviation:g} of the range from their group's average"
        return f"numbers are {distance}{option}"

    def forecast_lines(self) -> list[str]:
        """Forecast, with the reach of intervals and how many groups to ask for."""
        why_none = self._no_intervals()
        lines = super().forecast_lines()
        if why_none:
            lines.append(f"No intervals around averages: {why_none}.")
        else:
            twice = " (of shares of categories twice)" * (len(self._columns) > len(self._numeric))
            lines += [
                f"{self._expected_reach():.3g} of a column's range to either side: expected "
                f"reach of 90% intervals of averages{twice}.",
                f"Assumed: {self._of_deviation()}.",
                "Intervals reach further where groups overlap, and of a column that few rows have: "
                "ten times as far and more where a tenth has it.",
            ]
        if self.options.groups > 1:
            lines.append(OF_ONE_SIZE.format(unit=self.unit))
            lines.append(ASK_FOR_MORE if self.is_enough() else ASK_FOR_ALL)
            lines.append(HIDERS)
            for said, names in ((SCORES, self._scores), (LONG_SCORES, self._long_scores)):
                lines += [said.format(", ".join(names))] * bool(names)
        return lines

    def n_seen(self) -> int:
        """Number of groups whose share is above 0 by its interval, or is known without one."""
        return super().n_seen() - int(self._hidden.sum())

    def on_hidden(self) -> list[str]:
        """Say, also without noise, that fewer groups were found, or which noise hides."""
        return [self.on_seen()] if self.n_seen() < self.n_asked() else []

    def helps(self, most_epsilon: float) -> list[str]:
        """Changes that would show more: fewer groups only where noise hides some."""
        ways = [way for way in super().helps(most_epsilon) if self.option not in way]
        if self._hidden.any():
            ways.insert(0, f"a smaller --{self.option}")
        return [*ways, "another run, as starts are random"]

    def on_seen(self) -> str:
        """Say, from released numbers, how many groups there are and what they gain over one."""
        return on_groups(self.models["groups"], self._intervals)

    def verdict_by_guess(self) -> str:
        """Verdict on several groups, with its condition."""
        condition = self.forecast().verdict_is_for
        return f"{self.verdict()}{condition}" if condition else ""

    def doubts(self, most_epsilon: float) -> str:
        """Name columns that part groups alone, or lie at the end of a range."""
        return " ".join(filter(None, [*self._on_ends(), super().doubts(most_epsilon)]))

    def _on_ends(self) -> list[str]:
        """List of a sentence on columns at the end of their range; else empty."""
        return [*filter(None, [doubts_of_ends(self.models["groups"], self._fitted_ranges)])]

    def fit(self) -> Iterator[str]:
        """Find the groups, and give their averages in units of the columns."""
        model = self.models["groups"]
        if not self.used.models:
            model.fit(self._scaler.transform(self._table()), groups=self.groups)
            names = np.array(self._named("log10"), object)
            name_columns(model, names[~self._is_last].tolist())
            move_to_units(model, self._fitted_ranges)
            yield "groups"
        self._take_averages(model)

    def _table(self) -> Floats:
        """Numbers, logarithms of some, and 0 or 1 for each category but the last of a column."""
        tiniest = 1e-300  # of numbers whose logs are taken, which must be above 0
        one_hot = [self._texts[column] == value for column, value in self._categories]
        table = np.column_stack([*self._values, *one_hot]).astype(float)
        table[:, self._of_logs] = np.log10(np.maximum(table[:, self._of_logs], tiniest))
        for place, (column, _) in enumerate(self._categories, start=len(self._numeric)):
            is_listed = np.isin(self._texts[column], self._categorical[column])
            table[~is_listed, place] = math.nan
        low, high = self._ranges[~self._is_last].T
        return np.clip(table[:, ~self._is_last], low, high)

    def _take_averages(self, model: PrivateGaussianMixture) -> None:
        """Set shares of groups, averages with intervals, and spreads, in units of the columns."""
        self._shares = model.weights_
        self._intervals = intervals_of(model, 0.9)
        (low, high), self._ends_of_shares, doubt, self._hidden = self._intervals
        self._on_intervals = [doubt] if doubt else []
        if not np.isnan(low).all():
            tails = OF_SEVERAL if model.n_components_ > 1 else OF_ONE
            self._on_intervals += [one.format(tails) for one in INTERVALS]
        found = np.stack([model.means_, low, high, np.sqrt(model.variances_)])
        means, low, high, self._spreads = self._with_last(model, found)
        # As fitted: some are logs.
        self._means, *self._drawn_ends = (
            np.clip(one, *self._ranges.T) for one in (means, low, high)
        )
        self._averages, low, high = map(self._in_units, (means, low, high))
        self._ends = [np.minimum(low, self._averages), np.maximum(high, self._averages)]

    def _with_last(self, model: PrivateGaussianMixture, found: Floats) -> Floats:
        """Means, ends of intervals and spreads (4, k, n), with those of the last categories."""
        is_fitted = ~self._is_last
        whole = np.empty((*found.shape[:2], len(is_fitted)))
        whole[..., is_fitted] = found
        columns = np.array([*self._numeric, *(column for column, _ in self._categories)])
        for last in np.flatnonzero(self._is_last):
            others = np.flatnonzero((columns == columns[last])[is_fitted])
            mean = np.clip(1 - model.means_[:, others].sum(axis=1), 0, 1)
            reach = half_widths_of_sums(model, 0.9, others)
            whole[..., last] = mean, mean - reach, mean + reach, np.sqrt(mean * (1 - mean))
        return whole

    def _in_units(self, means: Floats) -> Floats:
        """Averages within their ranges, geometric means of those that are logarithms."""
        averages = np.clip(means, *self._ranges.T)
        averages[:, self._of_logs] = 10 ** averages[:, self._of_logs]
        return averages

    def lines(self) -> list[str]:
        """Shares and averages of the groups."""
        rows: list[tuple[str, ...]] = []
        for group, share in enumerate(self._shares):
            low, high = (end[group] for end in self._ends_of_shares)
            within = f" ({low:.1%} to {high:.1%})" if low < high else ""
            cells = (str(group + 1), f"{share:.1%}{within}")
            for place, name in enumerate(self._columns):
                low, high = (end[group, place] for end in self._ends)
                interval = "not known" if math.isnan(low) else f"{low:.4g} to {high:.4g}"
                rows.append((*cells, name, f"{self._averages[group, place]:.4g}", interval))
                cells = ("", "")  # once for each group
        head = ("group", "share (90%)", "column", "average", "within (90%)")
        several_rows = self.options.person is not None and not self.options.one_row_each
        all_seen = [self.on_seen(), MAY_BE_MORE] if self.n_seen() == self.n_asked() > 1 else []
        notes = [*all_seen, *CENTRES, CLAMPED, *self.on_rows(), *self._on_intervals]
        if self._n_logs:
            logs = ", ".join(self._numeric[-self._n_logs :])
            notes.append(f"Averages of {logs} are geometric means.")
        if len(self._columns) > len(self._numeric):
            notes.append(CATEGORY.format(", averaged over persons" if several_rows else ""))
        notes += [*self._on_persons(), *self._one_peak()]
        return [as_text(Table("Groups", head, rows, notes, ("column",)))]

    def for_officer(self) -> str:
        """Say how many groups there are, and what their intervals show."""
        said = [super().for_officer(), CLAMPED, *self._on_intervals, *self._on_persons()]
        return " ".join(filter(None, said))

    def _on_persons(self) -> Sequence[str]:
        """Sentences on how persons count some of whose cells are missing; empty where none may."""
        notes = self.models["groups"].privacy_report_.notes
        return [note for note in notes if not (self.options.one_row_each and note == UNEVEN)]

    def _one_peak(self) -> list[str]:
        """Sentences on groups that together have one peak."""
        places = self.models["groups"].places_
        together = [np.flatnonzero(places == place) + 1 for place in np.unique(places)]
        return [
            f"Groups {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} overlap to one peak: "
            "perhaps parts of one cloud, perhaps kinds that are close."
            for numbers in together if len(numbers) > 1
        ]  # fmt: skip

    def write_and_draw(self, folder: Folder, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write shares and averages with the ends of their intervals."""
        averages = np.stack([self._averages, *self._ends], axis=2)  # (n_groups, n_columns, 3)
        shares = np.column_stack([self._shares, *self._ends_of_shares])
        table = np.column_stack([shares, averages.reshape(len(averages), -1)])
        rows = ([number, *row] for number, row in enumerate(table, start=1))
        names = self._named("geometric mean")
        head = ["group", *(f"{name}{end}" for name in ("share", *names) for end in ENDS)]
        folder.add("groups.csv", table_of([head, *rows]))
        if self._pairs() and self._n_fitted <= PAIRED:
            folder.add("group_differences.csv", table_of(self._differences()))
        doubts = [*self._one_peak(), *self.on_rows(), *self._on_ends(), *self.on_hidden()]
        footer = "\n".join([*CENTRES, *doubts, report.in_brief])
        names = self._named("log10")
        display = MixtureDisplay(
            self._shares, self._means, self._spreads, names, self._ranges, footer, *self._drawn_ends
        )
        return display.plot().figure_

    def _pairs(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Pairs of averages (group, column) to compare: of two groups, or of columns of one range.

        Columns of one range, as of two visits, are compared within each group.
        """
        k, columns = self.models["groups"].n_components_, range(self._n_fitted)
        kinds = [*zip(self._of_logs, *self._ranges.T, strict=True)]
        pairs = combinations(range(len(self._numeric)), 2)
        alike = [(a, b) for a, b in pairs if kinds[a] == kinds[b]]
        return [
            *(((j, a), (i, a)) for i, j in combinations(range(k), 2) for a in columns),
            *(((i, b), (i, a)) for i in range(k) for a, b in alike),
        ]

    def _differences(self) -> list[list[object]]:
        """Rows of differences of averages; of logs they are logs of ratios."""
        model, names = self.models["groups"], np.array(self._named("log10"), object)
        names = names[~self._is_last]
        first, second = np.array(self._pairs()).transpose(1, 2, 0)
        means = np.clip(model.means_, *self._ranges[~self._is_last].T)
        reach, _ = half_widths_of_differences(model, 0.9, first, second, np.ones(len(names)))
        (group, column), (other, other_column) = first, second
        named = {
            "group": [*map(str, group + 1)], "column": names[column].tolist(),
            "other_group": [*map(str, other + 1)], "other_column": names[other_column].tolist(),
        }  # fmt: skip
        found = means[group, column] - means[other, other_column]
        return differences(named, found, reach / reach_of(0.9))

    def _named(self, of_logs: str) -> list[str]:
        """Names of the columns, with `of_logs` in brackets where they are logarithms."""
        return [
            f"{name} ({of_logs})" if of_log else name
            for name, of_log in zip(self._columns, self._of_logs, strict=True)
        ]


def public_range(option: str, column: str, *ends: str) -> tuple[float, float]:
    """Ends of a column's range as numbers; ValueError for others."""
    least, positive = (0, ", LOW > 0") if option == "--log-range" else (-math.inf, "")
    try:
        low, high = map(float, ends)
        if least < low < high < math.inf:
            return low, high
    except ValueError:
        pass  # text, or another number of ends: the same error as for wrong numbers
    raise ValueError(
        f"{option} {column} {' '.join(ends)}: LOW and HIGH are two numbers, LOW < HIGH{positive}"
    )
