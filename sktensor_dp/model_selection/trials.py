"""Trials of a private search: one candidate drawn, fitted and scored in each."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone

from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.model_selection.costs import (
    TrialAccountant,
    TrialCosts,
    as_parameters,
    divided_among,
    part_of,
)
from sktensor_dp.model_selection.rows import held_out, take
from sktensor_dp.model_selection.scores import (
    UnitScores,
    checked_score_bounds,
    release_score,
    word_counter,
)
from sktensor_dp.model_selection.splits import Mask, Splits
from sktensor_dp.model_selection.steps import configured, private_steps
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
    """Trials on the data of one search."""

    search: Any  # estimator, bounds of scores, fractions of steps
    X: Any
    y: Any
    labels: NDArray[Any] | None  # (n_rows,): of the group of each row, where units are groups
    distributions: Sequence[Mapping[str, Any]]  # of the candidates
    scoring: str  # score of each row
    splits: Splits
    costs: TrialCosts
    delta: float  # at which fits are told their budget, and 0 for pure ones
    neighbours: str

    def best(self, stop: float) -> Trial:
        """Best of a secret number of trials, with a model of all rows where there are folds."""
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
        private = self.labels is not None or self.neighbours == "add_remove"
        return call_foreign(make, doing, rows_private=private)

    def run(self, bits: Sequence[int]) -> Trial:
        """Draw a candidate, fit it and score it, all by secret randomness of this trial alone."""
        # An error leaves the search at once, as if trials that fail had the highest score:
        # that, too, is a selection of the best.
        rng = secret_random_state(bits)
        params = draw_candidate(self.distributions, rng)
        template = configured(self.search.estimator, params, rng)
        scores: list[float] = []
        parts: list[Part] = []
        caught: list[warnings.WarningMessage] = []
        try:
            for train, test in self.splits.pairs:
                model, told = self._fitted(template, train, self.costs.fit)
                score, report = self._scored(model, test)
                scores.append(score)
                caught += told
                parts += [_fit_part(model, "fit"), part_of([report], "score")]
        except NotEnoughDataError as error:
            # So say released values or public numbers: an output like any other.
            return Trial(-math.inf, params, None, (), (), str(error))
        mean = math.fsum(scores) / len(scores)
        return Trial(mean, params, model, tuple(parts), tuple(caught))

    def refitted(self, trial: Trial) -> Trial:
        """Fit the best of several splits on all rows."""
        if self.costs.refit is None:
            return trial
        everything = np.ones(len(self.splits.parts), dtype=bool)
        model, told = self._fitted(trial.model, everything, self.costs.refit)
        parts = (*trial.parts, _fit_part(model, "refit"))
        return replace(trial, model=model, parts=parts, warnings=(*trial.warnings, *told))

    def _fitted(self, template: Any, chosen: Mask, cost: PrivacyCost) -> tuple[Any, list[Any]]:
        """Fit a clone to units under a budget of its own; return its warnings too."""
        model = clone(template)
        steps = private_steps(model)
        costs = divided_among(cost, steps, self.search.step_fractions)
        for name, step in steps.items():
            if not step._releases_nothing:
                epsilon, delta = as_parameters(costs[name], self.delta, step._delta_set_aside)
                step.set_params(epsilon=epsilon, delta=delta)
        rows = self.splits.rows(chosen)
        told = {}
        if self.labels is not None:
            told = {f"{name}__groups" if name else "groups": self.labels[rows] for name in steps}
        # The innermost accountant is the one that is charged: an enclosing block, which the
        # whole search has been charged to, is not asked again. Names of steps say where groups go;
        # requests that they may carry would be for others.
        unrouted = config_context(enable_metadata_routing=False)
        with TrialAccountant(cost), unrouted, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            X, y = take(self.X, rows), take(self.y, rows)
            model.fit(X, **told) if y is None else model.fit(X, y, **told)
        return model, caught

    def _scored(self, model: Any, chosen: Mask) -> tuple[float, PrivacyReport]:
        """Score a model on held-out units, with noise."""
        step, words = [*private_steps(model).values()][-1], word_counter(self.search.estimator)
        low, high = checked_score_bounds(
            self.search.score_bounds, self.scoring, step, "score_bounds", texts=words is not None
        )
        query = HeldOutScores(UnitScores(self.scoring, model, words), low, high)
        rows = self.splits.rows(chosen)
        labels = None if self.labels is None else self.labels[rows]
        chunks = held_out(take(self.X, rows), take(self.y, rows), labels)
        name, (epsilon, delta) = "held_out_scores", as_parameters(self.costs.score, self.delta)
        plan = ReleasePlan(epsilon, delta, (PlannedRelease(name, self.costs.score),))
        return release_score(
            query, chunks, plan, spender="PrivateSearchCV", unit=step.privacy_report_.unit,
            accountant=None, neighbours=self.neighbours,
        )  # fmt: skip


def _fit_part(model: Any, role: str) -> Part:
    return part_of([step.privacy_report_ for step in private_steps(model).values()], role)


def secret_random_state(bits: Sequence[int]) -> np.random.RandomState:
    """Generator of all that one trial draws besides noise, from secret bits of its own."""
    # What the winning trial drew is published; trials share no generator, so it tells
    # nothing of what others drew.
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(list(bits))))


def draw_candidate(
    distributions: Sequence[Mapping[str, Any]], rng: np.random.RandomState
) -> dict[str, Any]:
    """Draw a mapping evenly, and from it a value for every name, independently."""
    chosen = distributions[rng.randint(len(distributions))]
    return {
        name: values.rvs(random_state=rng)
        if hasattr(values, "rvs")
        else values[rng.randint(len(values))]
        for name, values in sorted(chosen.items())
    }
