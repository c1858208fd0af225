"""The command ``ratings``: items by ratings of persons."""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.checks.composed import encodable
from sktensor_dp.checks.display import Table, as_text, counted
from sktensor_dp.cli.folder import Folder
from sktensor_dp.cli.public_lists import listed_name, public_columns, public_names
from sktensor_dp.cli.run import Run
from sktensor_dp.cli.written_tables import PAIRED, differences, table_of
from sktensor_dp.completion import PrivateCPCompletion, RowIndex
from sktensor_dp.completion.chains import Chains, on_items, on_unmeasured
from sktensor_dp.completion.forecast import EVEN_ODDS, WORSE, CompletionForecast, if_equal, up_to
from sktensor_dp.completion.panel import Panel
from sktensor_dp.datasets.own_files import SUFFIXES, suffix_of
from sktensor_dp.estimator.base import name_columns
from sktensor_dp.estimator.forecast import least_epsilon, least_number
from sktensor_dp.plotting import BarDisplay
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.report import PrivacyReport

LISTED, LOWEST = 20, 5  # items on the screen, and of those left the lowest; the table has all
DIFFERENCES = "item_differences.csv"
TITLE = "Average ratings of items"
AVERAGES = "items.csv"
ESTIMATES = "These numbers are estimates, with noise."
OF_ERRORS = (
    "Standard errors count noise and sampling. A part of {:.2g} is the same for all items, and "
    "cancels in differences{}."
)
OF_INTERVALS = (
    "has intervals that hold at least 90% of the time, unless people stop for what they answered: "
    "errors also count what noise may hide, as how skewed ratings are"
)
# What averages of items are not.
SELECTION = (
    "An average is for persons who rate equally high on the whole: the plain average of an item "
    "differs if those who rate it are harsher or kinder. Averages over everybody would be lower "
    "where people rate what they like, and lower or higher where they stop after some of their "
    "answers, such as low ones: by more than these errors, also of differences. Items that few "
    "rate are drawn to the mean, and err by more if they are far better or worse. An average over "
    "many, as of one shop, is drawn to it by {:.0%}, which these errors do not say: average_rows() "
    "of ratings.model, in Python, takes that back. Where each person keeps to one shop and it is "
    "not measured, averages of shops may come out alike or turned round, and no error says so, nor "
    "average_rows()."
)
FOR_OFFICER = (
    "Averages are of those who rate an item: where people rate what they like, or stop after some "
    "of their answers, those over everybody are others, by more than standard errors say."
)
NO_INTERVALS = (
    f"{DIFFERENCES} {{}} no intervals, and {{}} not say which differences are clear{{}}: noise "
    "hides how persons compare items."
)
TOO_MANY = (
    f"Of more than {PAIRED} items there is no {DIFFERENCES}: average_rows(rows, less=others) of "
    "ratings.model, in Python, compares those that you choose."
)
ORDER = (
    "Items are in order of how likely each is to be chosen and liked, not of the rating shown: for "
    "that, --by-rating."
)
# Standard errors beyond which an item's place on a direction has one sign with 95% probability.
SURE = float(ndtri(0.95))
OF_SIDES = (
    "Named are up to three items of a side, if noise and chance would hardly turn them to the "
    f"other (in 1 of 20). {AVERAGES} has the places of all, also of those that are noise."
)
NONE_SOUGHT = "No direction will be sought: all is spent on averages, as with --rank 0."
NO_RANK = (
    "--rank 0 is better here: no direction is expected{}, and an average then errs by {:.2g}, not "
    "by {:.2g}."
)
AT_A_COST = (
    ": an average errs by about {:.2g} if none is found, by {:.2g} if some are, as strong ones may "
    "be, and by {:.2g} with --rank 0"
)
BY_NOISE = "Averages of items {}differ by noise and chance more than by ratings"
OF_AVERAGES = {
    "enough": "Enough to tell averages of items apart, for gaps by chance",
    "may be enough": BY_NOISE.format("may "),
    "likely too few": f"Likely too few: a{BY_NOISE.format('will ')[1:]}",
}


class Ratings(Run):
    """Items by ratings of persons."""

    noun, option = "direction", "rank"
    mistake = "--person and --item are exchanged, or names are not those of the list"
    _items: dict[str, str]  # titles by the names that are rated

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        low, high = options.bounds
        if not -math.inf < low < high < math.inf:
            raise ValueError("--bounds LOW HIGH needs two numbers, the lower one first")
        self._items, self._named_again = {}, ""
        listed = [] if options.items_are_public else ["items in --items"]
        self.may_fail = ["ratings given"]
        self.tests = [*self.may_fail, *listed, "ratings within --bounds"]

    def build(self, accountant: BudgetAccountant | None = None) -> None:
        """Make the completion."""
        common: dict[str, Any] = {"accountant": accountant, **self.split()[0]}
        bounds = tuple(self.options.bounds)
        model = PrivateCPCompletion(self.options.rank, bounds=bounds, unit_mode=0, **common)
        self.models = {"ratings": model, **self.used.models}

    def read(self) -> None:
        """Read who rated what, how, and the public list of items."""
        options = self.options
        rated, self._values = read_ratings(self)
        if options.items_are_public and options.items not in (None, options.file):
            raise ValueError("Give --items FILE or --items-are-public, not both")
        if not options.items_are_public and options.items in (None, options.file):
            raise ValueError(
                "--items FILE must name a public list of all items; or say --items-are-public, if "
                "it is no secret which of them were rated"
            )
        if options.title is not None and options.items is None:
            raise ValueError("--title needs --items FILE, which has the titles")
        names, shown = _public_items(options, rated)
        if any(encodable(name) != name for name in (*names, *shown)):
            raise ValueError(
                "some names of items have characters that no file can hold (surrogates): replace "
                "them in the file"
            )
        self._items = dict(zip(names, shown, strict=True))
        for name, title in zip(names, shown, strict=True):
            if title != self._items[name]:  # which is the last one
                raise ValueError(
                    f"--items has several titles for {name!r}: is --item the column of its names?"
                )
        self.n_items = len(self._items)
        if options.items is not None and (n_again := len(names) - self.n_items):
            self._named_again = f" {counted(n_again, 'row')} of --items named an item again."
        self._entries = np.array([self.groups, rated], object).T
        self._is_given = ~np.isnan(self._values)
        self.count(rated)

    def settings(self) -> Mapping[str, object]:
        """Options of the run, and how ratings count."""
        counts = {
            "several ratings of one item by a person": (
                "count as their average (to part them, as by month, join item and month in one "
                "column, and in --items, and say --rank 0; months that persons keep to are better "
                "a mode of their own, in Python)"
            ),
            "a rating that is missing": "is left out",
            "a rating outside --bounds": "counts as the nearest end",
        }
        return {**super().settings(), **counts}

    def matches(self) -> Iterator[NDArray[np.bool_]]:
        """Yield masks of ratings, by test: given; of a listed item; within bounds or missing."""
        yield self._is_given
        if not self.options.items_are_public:
            yield np.fromiter(map(self._items.__contains__, self._entries[:, 1]), bool)
        low, high = self.options.bounds
        yield (low <= self._values) & (self._values <= high) | ~self._is_given

    def causes(self) -> dict[str, tuple[str, str]]:
        """Likely causes by test: where most ratings fail it, and where some do."""
        missing = "Is --rating the column of the ratings, and are so many of them missing?"
        unlisted = "Leave out rows of other items than those of --items, or list them there."
        exchanged = "Are --person and --item exchanged, or has --items other names of items?"
        coded = "Are some of another scale, or codes of missing ones, such as -9 (--missing)?"
        beyond = "Is --rating the column of the ratings, and are --bounds those of its scale?"
        return {
            "ratings given": (missing, missing),
            "items in --items": (exchanged, unlisted),
            "ratings within --bounds": (beyond, coded),
        }

    def forecast(self, **changes: object) -> Any:
        """Forecast for a public guess of how many ratings a person has."""
        n, stays, each = self.n_units, self.options.stays, float(self._each())
        model, (low, high) = self.forecaster("ratings", **changes), self.options.bounds
        deviation = self.options.deviation
        if deviation is None and low == math.floor(low) == high - 1:
            # Whole numbers one apart are two values, such as no and yes: half the range.
            deviation = 0.5
        share = self.options.direction_share
        return model.forecast(
            max(round(n * each), 1), (n, self.n_items), deviation=deviation, component_share=share,
            stays=stays,
        )  # fmt: skip

    def _each(self) -> float:
        """Number of ratings of a person, by a public guess."""
        stays, n_items = self.options.stays, self.n_items
        if stays is None:
            return float(min(self.options.each, n_items))
        if stays >= n_items:
            raise ValueError(f"--stays N must be less than the number of items, {n_items}")
        return Panel(n_items, stays, self.n_units).rows_each

    def _how_many(self) -> str:
        """Say how many ratings a person is assumed to have; "{}" stands before the option."""
        if self.options.stays is not None:
            return f"ratings of {self.options.stays} items next to each other{{}}--stays"
        return f"about {counted(self.options.each, 'rating')}{{}}--each"

    def on_hidden(self) -> list[str]:
        """List of sentences: that noise hides how averages of items differ, or directions."""
        averages = [f"{BY_NOISE.format('')}."] if self._averages_are_hidden() else []
        return [*averages, *super().on_hidden(), *self._on_no_intervals()]

    def _on_no_intervals(self) -> list[str]:
        """List of sentences on differences without intervals, and what gives them; or empty."""
        if self._effects.covariances is not None or not 2 < self.n_items <= PAIRED:
            return []
        notes = self.models["ratings"].privacy_report_.notes
        _, ways = on_unmeasured(notes, self._chains().part)
        said = NO_INTERVALS.format("has", "does", "")
        return [said + self._for_intervals(ways, rank_0_is_sure=self._chains(rank=0).are_sure)]

    def _on_no_intervals_ahead(self) -> list[str]:
        """Sentences as of `_on_no_intervals`, by what is assumed of persons."""
        if not 2 < self.n_items <= PAIRED:
            return []
        stays = self.options.stays
        chains, condition = self._chains(stays), ""
        if chains.are_measured and stays is None:
            chains = replace(chains, each=chains.each / 2)
            condition = f", if persons rate about {counted(round(chains.each), 'item')} each"
        if chains.are_measured:
            return []
        alone = replace(chains, model=self._chains(rank=0).model)
        said = NO_INTERVALS.format("will have", "will", condition)
        return [said + self._for_intervals(chains.ways_out(), rank_0_is_sure=alone.are_measured)]

    def _for_intervals(self, ways: list[str], *, rank_0_is_sure: bool) -> str:
        """End of a sentence on missing intervals: `ways` to them, and rank 0 if that is sure."""
        ways = [f"--{way}" if way.startswith("epsilon") else way for way in ways]
        if rank_0_is_sure and self.options.rank > 0 and self._seeks_directions():
            ways.insert(0, "--rank 0")
        return f" It has them with {', or with '.join(ways)}." if ways else ""

    def on_seen(self) -> str:
        """Say how many directions the data supports, if any were sought."""
        if self.n_asked() and not self._seeks_directions():
            return "No direction was sought: all was spent on averages."
        return super().on_seen()

    def helps(self, most_epsilon: float) -> list[str]:
        """Changes that would show averages of items, if noise hides them, or else directions."""
        if self._averages_are_hidden():
            if self._effects.tells_parts:  # which persons keep to
                return [f"to compare items that the same persons rate ({DIFFERENCES})"]
            return self._for_averages() or super().helps(most_epsilon)
        # The forecast is for one direction, and says nothing of what shows a further one.
        if self.n_seen():
            return []
        helps = self._for_directions()
        if self._seeks_directions():
            helps = [*helps, "--rank 0, which spends all on averages"]
        return helps

    def _seeks_directions(self) -> bool:
        plan, _ = self.models["ratings"]._plan(self.n_units, (self.n_units, self.n_items))
        return bool(plan.seeks_components)

    def _for_averages(self) -> list[str]:
        """Changes by each of which averages of all items are expected to be told apart."""

        def is_enough(epsilon: float) -> bool:
            return self.changed(epsilon=epsilon).verdict() == "enough"

        if is_enough(self.options.epsilon):  # items differ by less than the forecast expects
            return []
        n, epsilon = self.least({"enough"}), least_epsilon(is_enough)
        ways = [f"{n} persons"] if n else []
        return ways if epsilon is None else [*ways, f"--epsilon {epsilon:g}"]

    def _for_directions(self) -> list[str]:
        """Changes by each of which one direction could be seen, the smallest first."""
        words = {
            "epsilon": "--epsilon {:g}", "units": "{:,.0f} persons",
            "each": "{:,.0f} ratings of each person",
        }  # fmt: skip
        least = self.forecast().what_helps()
        return [words[name].format(number) for name, number in least.items()]

    @property
    def _effects(self) -> Any:
        """Released effects of items, with their errors."""
        (effects,) = self.models["ratings"]._shared.effects
        return effects

    def _averages_are_hidden(self) -> bool:
        return bool(self._effects.is_hidden)

    def is_enough(self) -> bool:
        """Return True if the forecast errors are at most those asked for."""
        forecast, (error, average_error) = self.forecast(), self._targets()
        if self._chains(self.options.stays).panel_is_hidden:  # then errors ahead are too small
            return False
        if math.inf > error >= (own := _of_own_averages(forecast)):
            raise ValueError(
                f"--error must be below {own:.3g}: if ratings are typically {forecast.of_mean:.3g} "
                "from their average (--deviation), each person's own average, for which nothing is "
                "released, has no larger typical error"
            )
        return bool(forecast.of_model <= error and forecast.average_error(1) <= average_error)

    def _targets(self) -> tuple[float, float]:
        """Errors of predictions and of averages asked for; infinity for none."""
        return self.options.error or math.inf, self.options.average_error or math.inf

    def sought(self) -> str:
        """Name the errors asked for."""
        error, average_error = self._targets()
        sought = [f"a typical error of {error:g}"] * math.isfinite(error)
        if math.isfinite(average_error):
            sought.append(
                f"a standard error of {average_error:g} of averages of items that are rated as "
                f"often as others, by persons {self._whose_items()},"
            )
        said = " and ".join(sought)
        return said[0].upper() + said[1:]

    def _whose_items(self) -> str:
        """Say which items a person is assumed to rate."""
        if self.options.stays is None:
            return "whose items are as by chance"
        return f"who rate {self.options.stays} items next to each other"

    def assumption(self) -> str:
        """Say what is assumed of ratings, how many there are, and how much directions hold."""
        forecast = self.forecast()
        share = f", and {_of_share(forecast)} (--direction-share)" if self.options.rank > 0 else ""
        return (
            f"ratings are typically {forecast.of_mean:.3g} from their average (--deviation), each "
            f"person has {self._how_many().format(' (')}){share}"
        )

    def forecast_lines(self) -> list[str]:
        """Forecast of errors, and an item of the list: names of other kinds would match nothing."""
        forecast = self.forecast()
        listed = []
        if self._items:
            shown = ", titled ".join(map(repr, self._name_and_title(next(iter(self._items)))))
            listed.append(
                f"{counted(self.n_items, 'item')}, such as {shown}; ratings of any other are left "
                f"out.{self._named_again}"
            )
        assumed = self._how_many().format(", " if self.options.stays else " each, ")
        of_direction = ""
        if self.options.rank > 0:
            assumed += "; --direction-share"
            of_direction = f"; {self._on_direction()}"
        title = (
            f"{OF_AVERAGES[self.verdict()]}{of_direction} ({self.units} at epsilon "
            f"{self.options.epsilon:.3g}; assumed: {assumed})"
        )
        is_assumed = self.options.deviation is None
        errors = {
            f"the average of all ratings{' (assumed, --deviation)' * is_assumed}": forecast.of_mean,
            "a person's own average, nothing released": _of_own_averages(forecast),
            "averages of items too": forecast.of_biases,
        }
        if forecast.of_model < forecast.of_biases:
            errors["directions too"] = forecast.of_model
        head = ("predicted by", "typical error")
        rows = [(model, f"{error:.3g}") for model, error in errors.items()]
        notes = [*self._on_no_intervals_ahead(), *self._on_averages_ahead()]
        notes += self._on_directions_ahead()
        return [*self._better_alone(), *listed, as_text(Table(title, head, rows, notes, head))]

    def _better_alone(self) -> list[str]:
        """List of a sentence where the search for directions makes all worse; else empty."""
        forecast = self.forecast()
        error, alone = forecast.average_error(1), forecast.alone.average_error(1)
        if self.options.rank == 0 or forecast.finds_components or error < WORSE * alone:
            return []
        return [NO_RANK.format(if_equal(self.options.rank), alone, error)]

    def _on_direction(self) -> str:
        """Say if a direction of the assumed strength is expected, or else of which other."""
        forecast = self.forecast()
        number, equal = up_to(max(forecast.n_components, 1))
        several = "s" * (forecast.n_components > 1)
        what = f"{number.lower()} direction{several} in which persons differ"
        if forecast.finds_components:
            return f"may be enough for {what}, if {_of_share(forecast)}{equal}"

        def is_found(percent: int) -> bool:
            return bool(self.changed(direction_share=percent / 100).forecast().finds_components)

        if (percent := least_number(is_found, 1, 90)) is None:
            return f"too few for {what}"
        assumed, share = forecast.component_share, percent / 100
        return (
            f"may be enough for {what}, if directions hold {share:.2g} of the variance of ratings "
            f"or more ({assumed:.3g} is assumed)"
        )

    def _on_averages_ahead(self) -> list[str]:
        """Sentences on the expected errors of averages of items, and what would tell them apart."""
        forecast = self.forecast()
        alone, if_found = forecast.alone.average_error(1), forecast.average_error(1, if_found=True)
        assumed = (
            f"if ratings are typically {forecast.of_mean:.3g} away from their average, and items "
            f"differ by {forecast.bias_deviation:.3g}"
        )
        if self.options.deviation is None:
            assumed += (
                " (--deviation): else errors are others. Two answers, as -1 and 1, are about half "
                "the width of bounds from their average"
            )
        notes = [
            assumed,
            "Expected standard error of the average of an item that is rated as often as others: "
            f"{forecast.average_error(1):.2g}, of which {forecast.mean_error:.2g} is the same for "
            "all. That is if persons rate equally many: where most rate far fewer than the mean, "
            "it was up to half as much again.",
            *filter(None, [forecast.on_chains(self._chains(self.options.stays), "items")]),
        ]
        if forecast.finds_components and if_found > alone:
            notes.append(
                f"That is if a direction is found; if none is, or with --rank 0, about {alone:.2g}."
            )
        if self.verdict() != "enough" and self.options.stays is None:
            n = counted(math.ceil(forecast.entries_to_tell), self.unit)
            notes.append(
                f"The average of an item that {n} or more rated errs by less than items differ."
            )
            if ways := ", or ".join(self._for_averages()):
                notes.append(f"Averages of most items are expected to be told apart with {ways}.")
        return notes

    def _on_directions_ahead(self) -> list[str]:
        """Sentences on directions that are sought and not expected, and what they cost averages."""
        forecast = self.forecast()
        if self.options.rank == 0 or forecast.finds_components:
            return []
        alone, if_found = forecast.alone.average_error(1), forecast.average_error(1, if_found=True)
        sought = "Directions are sought all the same"
        if if_found > alone:
            sought += AT_A_COST.format(forecast.average_error(1), if_found, alone)
        notes = [f"{sought}." if self._seeks_directions() else NONE_SOUGHT]
        if ways := ", or ".join(self._for_directions()):
            notes.append(f"One could be seen with {ways}: the least{EVEN_ODDS.format('persons')}.")
        return notes

    def fit(self) -> Iterator[str]:
        """Fit the model that all items share."""
        model, index = self.models["ratings"], RowIndex.from_public(list(self._items))
        if not self.used.models:
            model.set_params(shape=(self.n_units, self.n_items), row_names=(None, index))
            # A missing rating is one of no listed item: its person counts all the same.
            entries, low = self._entries.copy(), self.options.bounds[0]
            entries[~self._is_given, 1] = ""
            model.fit(entries, np.where(self._is_given, self._values, low))
            name_columns(model, [self.options.person, self.options.item])
            yield "ratings"
        best = model.recommend(of=None, n=self.n_items, by=order_of(self.options))
        self._names, self._averages = best.rows[0].tolist(), best.values[0]
        order = index.encode(self._names)
        self._errors = np.hypot(model.mean_error_, model.bias_errors_[1][order])
        # Places of items on directions, (n_items, n_directions), and which side noise may not turn.
        self._directions, self._is_sure = np.zeros((2, len(order), 0))
        if n_found := int(model.n_components_):
            self._directions = model.factors_[1][order, :n_found]
            errors = model._shared.components.errors[order, :n_found]
            self._is_sure = np.abs(self._directions) > SURE * errors

    def lines(self) -> list[str]:
        """Averages of items, for somebody without ratings, and items at both ends of directions."""
        rows = [
            (f"{rating:.2f}", f"{error:.2g}", *self._name_and_title(name))
            for rating, error, name in zip(
                self._averages[:LISTED], self._errors, self._names, strict=False
            )
        ]
        head = ("rating", "standard error", "item", "title")[: len(rows[0])]
        n_left = self.n_items - LISTED
        left = [f"{n_left:,} more items are in {AVERAGES}.", self._lowest()] if n_left > 0 else []
        many = [TOO_MANY] if self.n_items > PAIRED else []
        notes = [*left, *self._notes(), self._errors_in_words(), *many]
        averages = as_text(Table(TITLE, head, rows, notes, head))
        ends = []
        for number, weights in enumerate((self._directions * self._is_sure).T, start=1):
            # A direction is as true with all signs turned: most items are on the first side.
            signed = weights if np.sum(weights > 0) >= np.sum(weights < 0) else -weights
            order = np.argsort(-signed)
            from_end = order[::-1]
            sides = [order[signed[order] > 0][:3], from_end[signed[from_end] < 0][:3]]
            titles = [[self._items[self._names[row]] for row in side] for side in sides]
            ends.append((str(number), *(", ".join(side) or "none" for side in titles)))
        if not ends:
            return [averages]
        title = (
            "Directions in which persons differ: who rates one side higher rates the other lower"
        )
        head = ("direction", "one side", "the other side")
        return [averages, "\n" + as_text(Table(title, head, ends, [OF_SIDES], left=head))]

    def _lowest(self) -> str:
        """Items with the lowest averages, the lowest first."""
        lowest = np.argsort(self._averages)[:LOWEST]
        said = [
            f"{self._averages[row]:.2f} {self._items[self._names[row]]} ({self._errors[row]:.2g})"
            for row in lowest
        ]
        return f"Lowest averages (standard errors in brackets): {', '.join(said)}."

    def write_and_draw(self, folder: Folder, report: PrivacyReport, warnings: Sequence[str]) -> Any:
        """Write the items in order, with their places in each direction."""
        best = zip(self._averages, self._errors, self._names, self._directions, strict=True)
        rows = [
            [rating, error, *self._name_and_title(name), *places]
            for rating, error, name, places in best
        ]
        head = ["expected_rating", "standard_error", self.options.item]
        head += [] if self.options.title is None else [self.options.title]
        head += [f"direction_{number}" for number in range(1, self._directions.shape[1] + 1)]
        folder.add(AVERAGES, table_of([head, *rows]))
        if 1 < self.n_items <= PAIRED:
            folder.add(DIFFERENCES, table_of(self._differences()))
        low, high = self.options.bounds
        titles = [self._items[name] for name in self._names[:15]]
        quantity = f"expected rating, of {low:g} to {high:g}"
        footer = "\n".join([*self._notes(), *self.on_hidden(), report.in_brief])
        display = BarDisplay(
            titles, self._averages[:15], title=TITLE, quantity=quantity, footer=footer
        ).plot()
        display.axes_[0].set_xlim(low, high)
        return display.figure_

    def _differences(self) -> list[list[object]]:
        """Rows of differences of each two items: the later one in the list less the other."""
        names = np.array([*self._items], object)
        later, other = np.tril_indices(self.n_items, -1)
        named = {"item": names[later].tolist(), "other_item": names[other].tolist()}
        effects = self._effects
        found, errors = effects.means[later] - effects.means[other], np.full(len(later), math.nan)
        # Without covariances errors would be those of independent effects: they stay NaN.
        if effects.covariances is not None:
            errors = effects.errors_of_differences(later, other)
        low, high = self.models["ratings"].bounds_
        return differences(named, found, errors, high - low)

    def _notes(self) -> list[str]:
        """Sentences on the numbers, their order, directions if all are seen, and failing rows."""
        order = [] if self.options.by_rating else [ORDER]
        seen = [] if super().on_hidden() else [self.on_seen()]
        return [ESTIMATES, *order, *seen, *self.on_rows()]

    def _errors_in_words(self) -> str:
        """Say what standard errors count, and how much of them all items share."""
        of_averages = SELECTION.format(float(np.mean(self._effects.drawn)))
        notes = self.models["ratings"].privacy_report_.notes
        unmeasured, _ = on_unmeasured(notes, self._chains().part)
        said = [*self._counted_errors(), of_averages, unmeasured, *on_items(notes)]
        return " ".join(filter(None, said))

    def _counted_errors(self) -> list[str]:
        """List of a sentence on standard errors, and where differences have intervals."""
        has_intervals = 1 < self.n_items <= PAIRED and self._effects.covariances is not None
        where = f" ({DIFFERENCES} {OF_INTERVALS})" * has_intervals
        return [OF_ERRORS.format(self.models["ratings"].mean_error_, where)]

    def _chains(self, stays: int | None = None, rank: int | None = None) -> Chains:
        """Public numbers by which a fit, of this rank or another, measures how persons compare."""
        model = self.models["ratings"]
        part = 1.0 if math.isinf(model.epsilon) else model.epsilon / self.options.epsilon
        if rank is not None:
            model = self.forecaster("ratings", rank=rank)
        return Chains(model, (self.n_units, self.n_items), part, self._each(), stays)

    def for_officer(self) -> str:
        """Say what was found, and what averages and their standard errors are."""
        of_chains = on_items(self.models["ratings"].privacy_report_.notes)
        said = [super().for_officer(), *self._counted_errors(), FOR_OFFICER, *of_chains]
        return " ".join(filter(None, said))

    def _name_and_title(self, name: str) -> tuple[str, ...]:
        """Name of an item, followed by its title if items have titles."""
        return (name,) if self.options.title is None else (name, self._items[name])


def order_of(options: argparse.Namespace) -> str:
    """Order of items, as `recommend` of a completion takes it."""
    return "value" if options.by_rating else "choice"


def _of_share(forecast: CompletionForecast) -> str:
    """Say how much of the variance of ratings directions are assumed to hold."""
    share = f"{forecast.component_share:.3g}"
    return f"directions hold {share} of the variance of ratings"


def _of_own_averages(forecast: CompletionForecast) -> float:
    """Typical error of persons' own averages, without averages of items."""
    # To the squared error with averages of items comes what these explain of items' differences.
    _, error_of_items = forecast.bias_errors
    explained = forecast.bias_deviation**2 - error_of_items**2
    return math.sqrt(forecast.of_biases**2 + explained)


def _public_items(options: argparse.Namespace, rated: list[str]) -> tuple[list[str], list[str]]:
    """Names of items, and titles to show or else names: in the order of --items, or sorted."""
    titles: list[list[str]] = []  # one list, or none
    if options.items is None:
        cells = sorted(set(rated))
    elif suffix_of(options.items) in SUFFIXES:
        columns = [(options.item, "item")]
        columns += [(options.title, "title")] if options.title is not None else []
        cells, *titles = public_columns(options.items, columns, options.encoding)
    else:
        cells = public_names(options.items, options.encoding)
    names = list(map(listed_name, cells))
    return names, titles[0] if titles else names


def read_ratings(run: Run, **reading_options: object) -> tuple[list[str], Any]:
    """Read items and ratings from the file of a run; the run keeps the persons."""
    options = run.options
    columns = [(options.item, "item"), (options.rating, "numbers")]
    cells, values = run.columns(columns, **reading_options)
    names = {cell: listed_name(cell) for cell in set(cells)}
    return [names[cell] for cell in cells], values
