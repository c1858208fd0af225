"""Warnings of completions that find no components or no differences of rows, or are slow."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sktensor_dp.completion.model import SharedModel, count_components
from sktensor_dp.completion.plan import ASSUMED, EntryPlan, PersonPlan, trial_sweeps
from sktensor_dp.estimator.forecast import Question
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.queries.person_entries import MOST_CELLS

OF_PARTS = (
    " Units keep to few rows, which more of them would not change. Differences of rows that the "
    "same units have err by less: see average_rows(rows, less=others) and bias_covariances_."
)
SLOW = (
    "The core has so many numbers that this fit will take minutes or more: its time grows with the "
    "square of the product of the ranks. Interrupted, it has spent its budget; a smaller rank is "
    "faster."
)


def expected_warnings(
    model: Any, plan: EntryPlan | PersonPlan, ranks: Sequence[int], n_units: int,
    shape: tuple[int, ...],
) -> list[Warning]:  # fmt: skip
    """Warning, before a fit, that it seeks no components, or that it will be slow."""
    # A sweep over a core of this size takes two seconds; time grows with its square.
    slow_core = 2500
    if max(ranks) > 0 and not plan.seeks_components:
        return [warning_of_unsought(model, n_units, shape)]
    # A fit of persons computes its core from shared factors.
    has_large_core = model._full_core and math.prod(ranks) > slow_core
    if has_large_core and isinstance(plan, EntryPlan) and plan.solves_for_core(len(shape)):
        return [UserWarning(SLOW)]
    return []


def warnings_of_noise(
    model: Any, attributes: Mapping[str, Any], plan: EntryPlan | PersonPlan, n_units: int,
    n_observed: int, shape: tuple[int, ...],
) -> tuple[Warning, ...]:  # fmt: skip
    """Warnings that components, or differences of rows, were not found; none with components.

    `n_observed` is the number of entries; with a ``unit_mode`` an estimate from released sums.
    """
    if count_components(attributes) > 0:
        return ()
    warnings: list[Warning] = []
    shared: SharedModel = attributes["_shared"]
    if plan.seeks_components and np.max(model.rank) > 0:
        n_trial = trial_sweeps(plan.n_sweeps) if isinstance(plan, PersonPlan) else 0
        stopped = attributes["n_iter_"] <= n_trial
        warnings.append(_warning_of_unseen(model, n_units, n_observed, shape, stopped=stopped))
    modes = np.delete(range(len(shared.effects) + 1), shared.unit_mode)
    of_modes = zip(modes, shared.effects, strict=True)
    all_hidden = [(str(mode), effects) for mode, effects in of_modes if effects.is_hidden]
    hidden = " and of mode ".join(mode for mode, _ in all_hidden)
    if hidden and math.isfinite(model.epsilon):
        said = (
            f"Biases of rows of mode {hidden} differ by noise more than by values: at epsilon="
            f"{model.epsilon:g} their standard errors (bias_errors_) are larger than their "
            "differences. The order of rows by bias may be chance."
        )
        if any(effects.tells_parts for _, effects in all_hidden):
            said += OF_PARTS
        warnings.append(NotEnoughDataWarning(said))
    return tuple(warnings)


def warning_of_unsought(model: Any, n_units: int, shape: tuple[int, ...]) -> Warning:
    """Warning that no components are sought, by public numbers or by the caller's choice."""
    more = " The decision follows from public numbers alone"
    unchanged = "; component_share= of forecast() does not change it."
    if model.unit_mode is None:
        n_observed, why = n_units, f"{n_units:,} entries would show strong ones alone at"
        more += unchanged
        if model.perturbation == "auto":
            more += " With perturbation='input' they are sought all the same."
        else:  # the caller chose "sufficient_statistics"
            why, more = f"perturbation={model.perturbation!r} shows none, here at", ""
    else:
        observed = ASSUMED.observed_share
        n_observed = math.ceil(observed * math.prod(shape))
        why = f"{n_units:,} units would show strong ones alone at"
        more += (
            f", for units with entries in {observed:.0%} of cells{unchanged} A search in vain "
            "would make biases err by more."
        )
        n_cells = math.prod(shape) // shape[model.unit_mode]
        if model.delta == 0:
            why, more = "no release shows those of units at delta=0,", ""
        elif n_cells > MOST_CELLS:
            why, more = f"other modes have over {MOST_CELLS:,} combinations of rows,", ""
    said = f"Components are not sought: {why}"
    return _without_components(model, said, n_observed, shape, more)


def _warning_of_unseen(
    model: Any, n_units: int, n_observed: int, shape: tuple[int, ...], *, stopped: bool
) -> Warning:
    """Warning that a search found no components; `stopped` if the trial ended it early.

    `n_observed` is as for `warnings_of_noise`.
    """
    noun, more = "entries", ""
    if model.unit_mode is not None:
        noun, each = "units", n_observed / n_units
        more = (
            f" By released sums units have about {each:,.3g} entries on average, counting those "
            "without any."
        )
    seen = "none above noise and chance at"
    if stopped:
        seen = (
            "that better biases gain more, for which the rest of the search's budget was spent, at"
        )
    said = f"No components can be seen: {n_units:,} {noun} show {seen}"
    return _without_components(model, said, n_observed, shape, more)


def _without_components(
    model: Any, said: str, n_observed: int, shape: tuple[int, ...], more: str
) -> Warning:
    """Warning that begins with `said`, then says what would help, and ends with `more`."""
    # A question has no accountant: this fit may have spent its budget already.
    forecast = Question.of(model, n_observed=n_observed, shape=shape).forecast({}, {})
    of_none = "PrivateCPCompletion(0)" if model._full_core else "rank=0"
    return NotEnoughDataWarning(
        f"{said} epsilon={model.epsilon:g}. Predictions are made of the mean and the biases of "
        "rows, so that everybody is recommended nearly the same, and transform returns 0. "
        f"{forecast.advice()}{more} See forecast(). {of_none} asks for none."
    )
