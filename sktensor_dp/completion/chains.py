"""Sentences on persons who keep to few rows of a chain, or to one row: errors may leave that out.

In a chain rows are compared by persons of neighbouring rows, such as waves of a rotating panel.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.display import rounded_up
from sktensor_dp.completion.model import SharedModel
from sktensor_dp.completion.panel import Panel
from sktensor_dp.completion.person_forecast import norm_in_rows
from sktensor_dp.completion.plan import MOST_COMPARED, MOST_CONCURRENT, PersonPlan, plan_persons
from sktensor_dp.estimator.forecast import least_epsilon, least_number
from sktensor_dp.exceptions import NotEnoughDataWarning

BY_CHANCE = "Errors are for persons whose {rows} are as by chance. "
PANEL = "For persons who keep to few {rows} next to each other, as waves of a rotating panel, "
NOT_MEASURED = (
    "Errors are for persons whose {rows} are as by chance, not for those who keep to few, as those "
    "of one ward, whose differences from others may come out turned round, or waves of a rotating "
    "panel"
)
PARTS = (
    " Where each keeps to a part, as one ward, nobody compares parts: differences of {rows} of two "
    "parts err by about a third of the width of the bounds, whatever budget and number of persons; "
    "those within a part by up to four times as much as said here, and more in parts of few."
)
HIDDEN = "they are larger than stated"
MEASURED = "they are several times larger, or need several times as many persons"
IN_VAIN = ": noise hides how persons compare "
KEPT = (
    "Persons keep to few {}, by released concurrences: errors count that, and exceed forecasts. "
    "Where they are large, averages need not be alike."
)
FROM = "; from {} on this is measured."
NEEDS_DELTA = "; with a delta above 0 this is measured where persons are enough."
OF_PANEL = (
    "Errors of {rows} are for persons who stay in {stays} next to each other: the change from the "
    "first to the last errs by {error:.2g}."
)
HIDDEN_PANEL = (
    "For persons who stay in {stays} {rows} next to each other changes will come out several times "
    "too small, and errors do not say all of it, as noise hides how persons compare {rows}"
)
ALONE = (
    "is of persons with one of them alone: differences are those between averages of different "
    "persons, and hold only if who has which does not depend on how high a person rates. Errors "
    "do not count that."
)
IF_ALONE = " Where each person has one alone, differences are between averages of different people."
TOO_MANY = f"; of more than {MOST_CONCURRENT:,} {{rows}} this is not measured."


def of_modes(modes: Sequence[int], n_shared: int, by: str = "of") -> str:
    """Words for some of `n_shared` modes, such as "of mode 1"; "" if there is one shared mode."""
    return f"{by} mode {f' and {by} mode '.join(map(str, modes))}" if n_shared > 1 else ""


def words_for_rows(modes: Sequence[int], n_shared: int, rows: str = "rows") -> str:
    """Words for rows of some of `n_shared` modes: "rows of mode 1", or "rows" of the only one."""
    return f"{rows} {of_modes(modes, n_shared)}".strip()


def on_noise(modes: Sequence[int], n_shared: int) -> tuple[str, ...]:
    """Sentences, if any, on those of `n_shared` modes in which noise hides chains."""
    said = f"{NOT_MEASURED}{IN_VAIN}{{rows}}."
    return (said.format(rows=words_for_rows(modes, n_shared)),) if modes else ()


def on_alone(shares: Mapping[int, float], n_shared: int) -> tuple[str, ...]:
    """Sentences on those of `n_shared` modes of which persons with one row have most weight.

    `shares` are the shares of these persons by mode.
    """
    return tuple(
        f"Of the weight that tells {words_for_rows([mode], n_shared)} apart {share:.0%} {ALONE}"
        for mode, share in shares.items()
    )


def warnings_of_alone(notes: Sequence[str]) -> tuple[Warning, ...]:
    """Sentences of `on_alone` among the `notes` of a fit, as warnings."""
    return tuple(NotEnoughDataWarning(note) for note in notes if note.endswith(ALONE))


def on_items(notes: Sequence[str]) -> list[str]:
    """Sentences on chains by released numbers among the `notes` of a fit, with rows as "items"."""
    of_items = on_kept([1], 1) + on_noise([1], 1)
    said = [note for note in notes if note in of_items or note.endswith(ALONE)]
    return [note.replace("rows", "items") for note in said]


def are_unmeasured(notes: Sequence[str]) -> bool:
    """True if `notes` of a fit of items say that its releases left out how persons compare them."""
    of_items = NOT_MEASURED.format(rows="rows")
    return any(note.startswith(of_items) and note not in on_noise([1], 1) for note in notes)


def on_unmeasured(notes: Sequence[str], part: float) -> tuple[str, list[str]]:
    """Sentence of a fit's `notes` that it did not measure how persons compare items, and ways out.

    "" and no ways without one. The fit had this `part` of the epsilon that they name.
    """
    begin, end = FROM.split("{}")
    note = next((note.replace("rows", "items") for note in notes if are_unmeasured([note])), "")
    if not note.endswith(end):
        return note, []
    said, _, numbers = note.removesuffix(end).rpartition(begin)
    ways = [
        f"epsilon {float(way.split()[1]) / part:.3g}" if way.startswith("epsilon") else way
        for way in numbers.split(" or ")
    ]
    return said + FROM.format(" or ".join(ways)), ways


def on_kept(modes: Sequence[int], n_shared: int) -> tuple[str, ...]:
    """Sentence, if any, on those of `n_shared` modes that persons were found to keep to."""
    return (KEPT.format(words_for_rows(modes, n_shared)),) if modes else ()


@dataclass(frozen=True)
class Chains:
    """Public numbers that decide whether a fit of a `model` measures how persons compare rows."""

    model: Any
    shape: tuple[int, ...]
    part: float = 1.0  # epsilon of the fit over the epsilon that sentences name
    each: float = 1.0  # entries of a unit
    stays: int | None = None  # in how many rows of the last mode a unit stays, if it is said

    @property
    def _shared(self) -> NDArray[np.intp]:
        """Numbers of all modes but the units'."""
        return np.delete(np.arange(len(self.shape)), self.model.unit_mode)

    def on_errors(self, modes: Sequence[int], rows: str = "rows") -> str:
        """Sentences on errors in `modes`, whose chains a fit did not measure; "" without modes."""
        return self._on_hidden(np.isin(self._shared, modes), rows)

    def _on_hidden(self, hidden: NDArray[np.bool_], rows: str) -> str:
        """Sentences on errors in the shared modes of a mask `hidden`; "" if none is in it."""
        if not hidden.any():
            return ""
        said = NOT_MEASURED + self._way_out(hidden)
        modes = self._shared
        return said.format(rows=words_for_rows(modes[hidden].tolist(), len(modes), rows))

    def on_fit(
        self, model: SharedModel, plan: PersonPlan, notes: Sequence[str]
    ) -> tuple[list[str], tuple[Warning, ...]]:
        """Notes on modes whose chains a fit did not measure; warnings, too, unless all are hidden.

        `notes` are all those of the fit: sentences of `on_noise` among them become warnings, too.
        """
        shared = self._shared.tolist()
        unknown = {
            mode: effects for mode, effects in zip(shared, model.effects, strict=True)
            if effects.covariances is None and len(effects.means) > 2
        }  # fmt: skip
        unmeasured = [
            mode for mode, planned, in_doubt
            in zip(shared, plan.with_concurrences, plan.in_doubt, strict=True)
            if mode in unknown and (in_doubt or not planned)
        ]  # fmt: skip
        said = [note for note in (self.on_errors(unmeasured),) if note]
        # Where noise hides all differences, another warning says so.
        if all(effects.is_hidden for effects in unknown.values()):
            return said, ()
        in_vain = [note for note in notes if IN_VAIN in note]
        return said, tuple(map(NotEnoughDataWarning, [*said, *in_vain]))

    def on_forecast(self, rows: str = "rows") -> str:
        """Sentences on expected errors, which do not count chains of rows.

        "" where modes have two rows, or units have at least half of the rows of each mode.
        """
        if self.model.unit_mode is None:
            return ""
        hidden, measured = self._hidden_and_measured()
        if not measured.any():
            return said + IF_ALONE if (said := self._on_hidden(hidden, rows)) else ""
        if not hidden.any():
            return f"{BY_CHANCE}{PANEL}{MEASURED}.{PARTS}{IF_ALONE}".format(rows=rows)
        of_hidden = f"{self._in_modes(hidden)} {HIDDEN}{self._way_out(hidden)}"
        said = f"{PANEL}{self._in_modes(measured)} {MEASURED}; {of_hidden}{PARTS}"
        by_chance = BY_CHANCE.format(rows=f"{rows} of each mode")
        return by_chance + said.format(rows=rows) + IF_ALONE

    def on_panel(self, error: float, rows: str = "rows") -> str:
        """Sentence on the `error` of the change from the first row of the last mode to the last."""
        n_shared = len(self.shape) - 1  # which is the number of the last mode
        rows = words_for_rows([n_shared], n_shared, rows)
        if not self.panel_is_hidden:
            return OF_PANEL.format(rows=rows, stays=self.stays, error=error)
        last = np.arange(n_shared) == n_shared - 1
        return (HIDDEN_PANEL + self._way_out(last)).format(rows=rows, stays=self.stays)

    @property
    def panel_is_hidden(self) -> bool:
        """True if noise hides how units compare the rows they stay in; False without `stays`."""
        if self.stays is None:
            return False
        _, measured = self._planned(self.model.epsilon, self.shape[self.model.unit_mode])
        return not measured[-1]

    def _hidden_and_measured(self) -> NDArray[np.bool_]:
        """Masks (2, n_shared) of modes that may have chains: first those not measured by a fit."""
        mode = self.model.unit_mode
        _, measured = self._planned(self.model.epsilon, self.shape[mode])
        lengths = np.delete(self.shape, mode)
        least_rows, _ = self._rows_each()
        are_few = least_rows < MOST_COMPARED * lengths
        if self.stays is not None:
            are_few[-1] = True
        return (lengths > 2) & are_few & np.stack([~measured, measured])

    def _rows_each(self) -> NDArray[np.float64]:
        """Numbers (2, n_shared) of rows that a unit has entries in: least possible, by chance."""
        lengths = np.delete(self.shape, self.model.unit_mode)
        n_cells = math.prod(lengths.tolist())
        each = min(max(self.each, 1.0), float(n_cells))
        norms = np.array([norm_in_rows(each, n_rows, n_cells) for n_rows in lengths.tolist()])
        return np.stack([each * lengths / n_cells, (each / norms) ** 2])

    def _in_modes(self, mask: NDArray[np.bool_]) -> str:
        """Words for the shared modes in `mask`, such as "in mode 1"."""
        modes = self._shared
        return of_modes(modes[mask].tolist(), len(modes), "in")

    def _planned(self, epsilon: float, n_units: int) -> tuple[bool, NDArray[np.bool_]]:
        """True if a fit of `n_units` at `epsilon` seeks components; mask of modes it measures."""
        model, shape = self.model, list(self.shape)
        shape[model.unit_mode] = n_units
        rank, chooses = int(np.max(model.rank)), model._chooses_bounds
        plan = plan_persons(shape, rank, model.unit_mode, epsilon, model.delta, chooses)
        lengths = np.delete(shape, model.unit_mode).tolist()
        of_modes = enumerate(zip(lengths, *self._rows_each().tolist(), strict=True))
        measured = np.array([
            plan.payment_for_concurrences(
                place, n_rows, n_units * math.sqrt(by_chance), at_least
            ).is_released
            for place, (n_rows, at_least, by_chance) in of_modes
        ])  # fmt: skip
        if self.stays is not None:
            entries = self.each if len(shape) > 2 else None
            measured[-1] = Panel(shape[-1], self.stays, n_units, entries).is_known(plan)
        return plan.seeks_components, measured

    @property
    def are_measured(self) -> bool:
        """True if it is expected to be known how units compare rows of each mode."""
        return not self._hidden_and_measured()[0].any()

    @property
    def are_sure(self) -> bool:
        """True if that is released of each mode, whatever rows units have."""
        return replace(self, each=1.0).are_measured

    def ways_out(self) -> list[str]:
        """Numbers of persons, and epsilon, from which on all modes of few rows are measured."""
        few = np.delete(self.shape, self.model.unit_mode) <= MOST_CONCURRENT
        return self._ways_out(few) if self.model.delta > 0 and few.any() else []

    def _way_out(self, hidden: NDArray[np.bool_]) -> str:
        """End of a sentence: how many persons or what epsilon would measure the `hidden` modes."""
        if self.model.delta == 0:
            return NEEDS_DELTA
        few = hidden & (np.delete(self.shape, self.model.unit_mode) <= MOST_CONCURRENT)
        if not few.any():
            return TOO_MANY
        ways = self._ways_out(few)
        return FROM.format(" or ".join(ways)) if ways else "."

    def _ways_out(self, few: NDArray[np.bool_]) -> list[str]:
        """Least numbers from which on modes `few` are measured."""
        model, n_units = self.model, self.shape[self.model.unit_mode]
        n = _least_measured(
            few, lambda n: self._planned(model.epsilon, n), lambda test: least_number(test, n_units)
        )
        epsilon = _least_measured(
            few,
            lambda whole: self._planned(max(self.part * whole, model.epsilon), n_units),
            least_epsilon,
        )
        ways = [] if n is None else [f"{rounded_up(n)} persons"]
        return ways + ([] if epsilon is None else [f"epsilon {epsilon:g}"])


def _least_measured(
    few: NDArray[np.bool_], planned: Callable[[Any], tuple[bool, NDArray[np.bool_]]],
    least: Callable[[Any], Any],
) -> Any:  # fmt: skip
    """Least number from which on ``planned(number)`` measures the modes `few`; None without."""
    # From some number on components are sought, which leaves less budget to concurrences: modes
    # have to be measured there, too.
    seeking = least(lambda number: planned(number)[0])

    def is_measured(number: Any) -> bool:
        """True if the modes are measured at this number and from where components are sought."""
        numbers = {number, number if seeking is None else max(number, seeking)}
        return all(planned(one)[1][few].all() for one in numbers)

    return least(is_measured)
