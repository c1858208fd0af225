"""Trials of a private search: what each may cost, and how one is made."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone

from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.model_selection.candidates import draw_candidate, secret_random_state
from sktensor_dp.model_selection.splits import Integers, Splits
from sktensor_dp.model_selection.stateless_steps import asked_row_by_row
from sktensor_dp.model_selection.steps import check_relation, configured, private_steps
from sktensor_dp.model_selection.trial_costs import (
    TrialAccountant,
    TrialCosts,
    as_parameters,
    part_of,
    shared_among,
)
from sktensor_dp.model_selection.unit_rows import held_out, take
from sktensor_dp.model_selection.unit_scores import (
    UnitScores,
    checked_score_bounds,
    release_score,
    word_counter,
)
from sktensor_dp.privacy.composition import Part
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.selection import secret_trials
from sktensor_dp.queries.reading import call_foreign
from sktensor_dp.queries.scores import HeldOutScores


@dataclass(frozen=True, eq=False)
class Trial:
    """Everything that one trial would release if it won; one that failed loses to all others."""

    score: float
    params: dict[str, Any]
    model: Any
    parts: tuple[Part, ...]
    warnings: tuple[warnings.WarningMessage, ...]
    failure: str | None = None


@dataclass(frozen=True, eq=False)
class Trials:
    """How to make a trial on the data of one search."""

    search: Any  # the estimator, and what was given for it
    X: Any
    y: Any
    labels: NDArray[Any] | None  # (n_rows,): of the group of each row, where units are groups
    distributions: Sequence[Any]  # of the candidates
    scoring: str | Callable[..., Any]  # score of each unit
    splits: Splits  # training units and held-out ones, rows or groups
    costs: TrialCosts  # of every use of the data
    delta: float  # at which fits are told their budget, and 0 for pure ones

    def best(self, stop: float) -> Trial:
        """Return the best of a secret number of trials, with a model of all rows."""
        best: Trial | None = None
        for bits in secret_trials(stop):
            # Fits keep their own warnings; one from elsewhere in each trial would count them.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trial = self._guarded(partial(self.run, bits), "A trial of the search")
            if best is None or trial.score > best.score:
                best = trial
        assert best is not None
        if best.failure is not None:
            raise NotEnoughDataError(f"No trial of the search could be fitted. {best.failure}")
        return self._guarded(partial(self.refitted, best), "The last fit")

    def _guarded(self, make: Callable[[], Trial], doing: str) -> Trial:
        private = self.labels is not None or self.search.neighbours == "add_remove"
        return call_foreign(make, doing, rows_private=private)

    def run(self, bits: Sequence[int]) -> Trial:
        """Draw a candidate, fit it and score it, all by secret randomness of this trial alone."""
        # An error leaves the search at once, as if trials that fail had the highest score:
        # that, too, is a selection of the best.
        rng = secret_random_state(bits)
        params = draw_candidate(self.distributions, rng)
        template = configured(self.search.estimator, params, self.search.public_steps, rng)
        try:
            return self._made(template, params)
        except NotEnoughDataError as error:
            # So say released values or public numbers: an output like any other.
            return Trial(-math.inf, params, None, (), (), str(error))

    def _made(self, template: Any, params: dict[str, Any]) -> Trial:
        """Fit and score what a candidate has configured."""
        scores: list[float] = []
        parts: list[Part] = []
        caught: list[warnings.WarningMessage] = []
        for train, test in self.splits.pairs:
            model, told = self._fitted(template, train, self.costs.fit)
            score, report = self._scored(model, test)
            scores.append(score)
            caught += told
            parts += [self._part_of(model, "fit"), part_of([report], "score")]
        return Trial(float(np.mean(scores)), params, model, tuple(parts), tuple(caught))

    def refitted(self, trial: Trial) -> Trial:
        """Return the winner with a model of all rows, if there were several splits."""
        # A trial is the fits, the scores and this; it is made for the winner alone, since its
        # result does not change who wins.
        if self.costs.refit is None:
            return trial
        everything = np.arange(self.splits.n_units)
        model, told = self._fitted(clone(trial.model), everything, self.costs.refit)
        parts = (*trial.parts, self._part_of(model, "refit"))
        return Trial(trial.score, trial.params, model, parts, (*trial.warnings, *told))

    def number(self, trial: Trial) -> int:
        """Number of units as it may be told: the public one, or one that the trial released."""
        if self.search.neighbours != "add_remove":
            return self.splits.n_units
        if self.costs.refit is not None:
            return trial.parts[-1].n_units
        return sum(part.n_units for part in trial.parts)

    def _fitted(self, template: Any, units: Integers, cost: PrivacyCost) -> tuple[Any, list[Any]]:
        """Fit a clone under a budget of its own, and tell what it warned of."""
        model = clone(template)
        steps = private_steps(model, self.search.public_steps)
        costs = shared_among(cost, steps, self.search.step_shares)
        for name, step in steps.items():
            if not step._releases_nothing:
                epsilon, delta = as_parameters(costs[name], self.delta, step._delta_set_aside)
                step.set_params(epsilon=epsilon, delta=delta)
            # What a distribution draws is known now.
            check_relation(step, self.search.neighbours)
        # The innermost accountant is the one that is charged: an enclosing block, which the
        # whole search has been charged to, is not asked again.
        own = TrialAccountant(cost)
        rows = self.splits.rows(units)
        told = {}
        if self.labels is not None:
            told = {f"{name}__groups" if name else "groups": self.labels[rows] for name in steps}
        # Names of steps say where groups go; requests that they may carry would be for others.
        unrouted = config_context(enable_metadata_routing=False)
        guarded = asked_row_by_row(model, self.search.public_steps)
        with own, unrouted, warnings.catch_warnings(record=True) as caught, guarded:
            warnings.simplefilter("always")
            X, y = take(self.X, rows), take(self.y, rows)
            model.fit(X, **told) if y is None else model.fit(X, y, **told)
        # Where the number is private no other step could have changed it.
        numbers = {step.privacy_report_.n_units for step in self._steps(model)}
        if self.search.neighbours != "add_remove" and numbers != {len(units)}:
            raise ValueError(
                "A step of the estimator changed the number of rows: the units that the private "
                "step protects are not those of the search."
            )
        return model, caught

    def _part_of(self, model: Any, role: str) -> Part:
        return part_of([step.privacy_report_ for step in self._steps(model)], role)

    def _scored(self, model: Any, units: Integers) -> tuple[float, PrivacyReport]:
        """Score a model on held-out units, with noise."""
        step, words = self._steps(model)[-1], word_counter(self.search.estimator)
        low, high = checked_score_bounds(
            self.search.score_bounds, self.scoring, step, "score_bounds", texts=words is not None
        )
        query = HeldOutScores(UnitScores(self.scoring, model, words), low, high)
        rows = self.splits.rows(units)
        labels = None if self.labels is None else self.labels[rows]
        chunks = held_out(take(self.X, rows), take(self.y, rows), labels)
        name, (epsilon, delta) = "held_out_scores", as_parameters(self.costs.score, self.delta)
        plan = ReleasePlan(epsilon, delta, (PlannedRelease(name, self.costs.score),))
        return release_score(
            query, chunks, plan, spender="PrivateSearchCV", unit=step.privacy_report_.unit,
            accountant=None, neighbours=self.search.neighbours,
        )  # fmt: skip

    def _steps(self, model: Any) -> list[Any]:
        return list(private_steps(model, self.search.public_steps).values())
