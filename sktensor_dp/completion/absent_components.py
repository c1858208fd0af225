"""Warnings of completions: that no components, or no differences of rows, are found, and why."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sktensor_dp.completion.model import SharedModel, count_components
from sktensor_dp.completion.plan import ASSUMED, EntryPlan, PersonPlan
from sktensor_dp.estimator.forecast import Question
from sktensor_dp.exceptions import NotEnoughDataWarning

SLOW = (
    "The core has so many numbers that this fit will take minutes or more: its time grows with the "
    "square of the product of the ranks. Interrupted, it has spent its budget; a smaller rank is "
    "faster."
)


def expected_warnings(
    model: Any, plan: EntryPlan | PersonPlan, ranks: Sequence[int], n_units: int,
    shape: tuple[int, ...],
) -> list[Warning]:  # fmt: skip
    """Warnings by public numbers: that no components can be found, or of a slow fit."""
    # Numbers of a core of which a sweep takes two seconds; time grows with their square.
    slow_core = 2500
    if max(ranks) > 0 and not plan.seeks_components:
        return [components_not_sought(model, n_units, shape)]
    # Only a model of entries has a core of its own; that of persons is shared.
    fits_core = plan.seeks_components and isinstance(plan, EntryPlan) and model._full_core
    return [UserWarning(SLOW)] if fits_core and math.prod(ranks) > slow_core else []


def warnings_of_noise(
    model: Any, attributes: Mapping[str, Any], plan: EntryPlan | PersonPlan, n_units: int,
    n_observed: int, shape: tuple[int, ...],
) -> tuple[Warning, ...]:  # fmt: skip
    """Warnings, where no components were found, of that and of rows that noise hides."""
    if count_components(attributes) > 0:
        return ()
    found: list[Warning] = []
    shared: SharedModel = attributes["_shared"]
    if plan.seeks_components and np.max(model.rank) > 0:
        stopped = isinstance(plan, PersonPlan) and attributes["n_iter_"] < plan.n_sweeps
        found.append(_components_not_seen(model, n_units, n_observed, shape, stopped=stopped))
    modes = np.delete(range(len(shared.effects) + 1), shared.unit_mode)
    of_modes = zip(modes, shared.effects, strict=True)
    hidden = " and of mode ".join(str(mode) for mode, one in of_modes if one.is_hidden)
    if hidden and math.isfinite(model.epsilon):
        said = (
            f"Biases of rows of mode {hidden} differ by noise more than by values: at epsilon="
            f"{model.epsilon:g} their standard errors (bias_errors_) are larger than "
            "differences. An order by value may be chance."
        )
        found.append(NotEnoughDataWarning(said))
    return tuple(found)


def components_not_sought(model: Any, n_units: int, shape: tuple[int, ...]) -> Warning:
    """Warning, by public numbers, that no components are sought."""
    unchanged = "; component_share= of forecast() does not change it."
    if model.unit_mode is None:
        n_observed, noun = n_units, "entries"
        more = f" That follows from public numbers alone{unchanged}"
        if model.perturbation == "auto":
            more += " With perturbation='input' they are sought all the same."
    else:
        share, noun = ASSUMED.observed_share, "units"
        n_observed = math.ceil(share * math.prod(shape))
        more = (
            f" That follows from public numbers, for units with entries in {share:.0%} of cells"
            f"{unchanged} A search in vain would make biases err by more."
        )
    said = f"Components are not sought: {n_units:,} {noun} would show strong ones alone at"
    if model.unit_mode is not None and model.delta == 0:
        said, more = (
            "Components are not sought: no release shows those of units at delta=0,",
            "",
        )
    return _without_components(model, said, n_observed, shape, more)


def _components_not_seen(
    model: Any, n_units: int, n_observed: int, shape: tuple[int, ...], *, stopped: bool
) -> Warning:
    """Warning that `n_observed` entries, of units as released, show no components. If the
    search `stopped`, biases got the rest of its budget.
    """
    noun, more, seen = "entries", "", "none above noise and chance at"
    if model.unit_mode is not None:
        noun, each = "units", f"{n_observed / n_units:,.3g}"
        more = f" By released sums a unit, with entries or without, has about {each} on average."
    if stopped:
        seen = "less of any than better biases gain, which got the rest of the budget of"
    said = f"No components can be seen: {n_units:,} {noun} show {seen}"
    return _without_components(model, said, n_observed, shape, more)


def _without_components(
    model: Any, said: str, n_observed: int, shape: tuple[int, ...], more: str
) -> Warning:
    """Warning that says why there are no components, and `more`, and what would help."""
    # Asked without an accountant, which is charged already.
    forecast = Question.of(model, n_observed=n_observed, shape=shape).forecast({}, {})
    return NotEnoughDataWarning(
        f"{said} epsilon={model.epsilon:g}. Predictions are made of the mean and the biases of "
        "rows, so that everybody is recommended nearly the same, and transform returns 0. "
        f"{forecast.advice()}{more} See forecast(). rank=0 asks for none."
    )
