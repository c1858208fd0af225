"""Trials of a private search: fits and scores of candidates, of which the best is released."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterSampler

from sktensor_dp.checks.errors import Result, call_untrusted
from sktensor_dp.data.labels import Labels
from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.model_selection.costs import (
    StoppedAtCharge,
    StoppingAccountant,
    TrialAccountant,
    as_parameters,
    part_of,
    set_budgets,
)
from sktensor_dp.model_selection.pipeline_steps import (
    candidates_in_words,
    candidates_of,
    configured,
    key_until_charge,
    parameters_in_words,
    private_steps,
)
from sktensor_dp.model_selection.scores import (
    RowScores,
    held_out_chunk,
    release_score,
    word_counter,
)
from sktensor_dp.model_selection.splits import Mask, Split, take
from sktensor_dp.privacy.composition import Part
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.selection_cost import secret_trials
from sktensor_dp.queries.held_out import HeldOutScores


@dataclass(frozen=True, eq=False)
class Trial:
    """Outcome of one trial: all that the search releases if it wins."""

    score: float
    params: dict[str, Any]
    model: BaseEstimator
    parts: tuple[Part, ...]
    warnings: tuple[warnings.WarningMessage, ...]
    failure: str | None = None  # why it could not be fitted; its score is then minus infinity


@dataclass(frozen=True, eq=False)
class Request:
    """Request of a search, from its parameters alone."""

    steps: dict[str, PrivateEstimatorMixin]  # private ones, by name
    distributions: Sequence[Mapping[str, object]]  # of the candidates
    scoring: str  # score of each row
    delta: float  # of the search, at which the epsilon of each fit is stated; 0 for pure noise
    stop: float  # probability that a trial is the last
    cost: PrivacyCost  # of a trial's fit; its score costs as much, and sets no delta aside
    entry: LedgerEntry  # of the charge for the whole search

    @property
    def last(self) -> PrivateEstimatorMixin:
        """Private step that scores."""
        return [*self.steps.values()][-1]

    @property
    def neighbours(self) -> str:
        """Relation of neighbouring data, the same for all steps."""
        return self.last.neighbours

    @property
    def number_is_private(self) -> bool:
        """True where the number of units is private."""
        return self.neighbours == "add_remove"

    def found(self, best: Trial, bounds: tuple[float, float]) -> str:
        """Sentences on candidates, and on the `best`, with its released score and its noise."""
        candidates = "; or ".join(map(candidates_in_words, self.distributions))
        released = best.parts[-1].composition.rows[-1]  # after a count of units, if there is one
        low, high = bounds
        return (
            f"Candidates: {candidates}. The best: {parameters_in_words(best.params)}. Its score "
            f"({self.scoring}, from {low:.4g} to {high:.4g}) is {np.clip(best.score, *bounds):.4g} "
            f"on held-out units, with noise of deviation {released.sigma:.2g}; as the best of "
            "several it is too high on average."
        )


@dataclass(frozen=True, eq=False)
class Trials:
    """Data and settings of one search, from which its trials are run."""

    estimator: BaseEstimator  # that candidates are made of
    step_fractions: Mapping[str, float] | None  # of the cost of a fit, by step
    request: Request
    X: Any
    y: Any
    labels: Labels | None  # (n_rows,): of the group of each row, where units are groups
    units_in_data: bool  # whether a column of X, and no `groups`, says which unit a row is of
    split: Split
    bounds: tuple[float, float]  # that all scores are clipped to
    n_features: int | None  # columns of X, where the step that scores is given them

    def refuse_before_charge(self) -> None:
        """Begin fits of candidates: what they refuse before their charge is refused unpaid.

        They are all candidates, or some where these are many or drawn from distributions.
        """
        parts = [np.ones(self.split.n_units, dtype=bool)]
        if self.labels is None and not self.request.number_is_private:
            parts.append(~self.split.held_out)  # by public positions, not by secret coins
        # Errors before the charge (or None), by a candidate's parameters of the steps until then.
        refused: dict[tuple[object, ...], NotEnoughDataError | None] = {}
        for params in candidates_of(self.request.distributions):
            key = key_until_charge(params, self.estimator)
            if key in refused:
                continue
            model = configured(self.estimator, params, np.random.RandomState(0))
            refused[key] = None
            for chosen in parts:
                accountant = StoppingAccountant(self.request.cost)
                try:
                    self._guarded(partial(self._fitted, model, chosen, accountant), "A fit")
                except StoppedAtCharge:
                    pass
                except NotEnoughDataError as error:  # a trial may lose by it
                    refused[key] = error
        if None not in refused.values():
            raise NotEnoughDataError(str(next(iter(refused.values()))))
        self._refuse_too_many_components()

    def _refuse_too_many_components(self) -> None:
        """Raise ValueError where a candidate asks for more components than there are columns."""
        name, last = [*self.request.steps.items()][-1]
        if self.n_features is not None and last._public_facts().capped_by_columns:
            full = f"{name}__n_components" if name else "n_components"
            candidates = candidates_of(self.request.distributions)
            n_components = max(params.get(full, 1) for params in candidates)
            if n_components > self.n_features:
                raise ValueError(
                    f"{full!r} must be at most {self.n_features}, the number of columns, in every "
                    f"candidate: no more are fitted. Got {n_components}."
                )

    def run_all(self) -> Trial:
        """Best of a random number of trials."""
        best: Trial | None = None
        for bits in secret_trials(self.request.stop):
            # Fits collect their own warnings; other warnings, one for each trial, would show their
            # number.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trial = self._guarded(partial(self.run, bits), "A trial of the search")
            if best is None or trial.score > best.score:
                best = trial
        assert best is not None
        if best.failure is not None:
            raise NotEnoughDataError(f"No trial of the search could be fitted. {best.failure}")
        return best

    def _guarded(self, make: Callable[[], Result], doing: str) -> Result:
        """Call `make`; its errors are raised again without data and name the action `doing`."""
        private = self.labels is not None or self.request.number_is_private
        return call_untrusted(make, doing, rows_private=private)

    def run(self, bits: Sequence[int]) -> Trial:
        """Draw a candidate by its own secret `bits`, fit it, and score it on held-out units."""
        # Any error but that of too little data ends the search at once, as if it had the highest
        # score: that is a selection of the best too.
        rng = secret_random_state(bits)
        (params,) = ParameterSampler(self.request.distributions, 1, random_state=rng)
        template = configured(self.estimator, params, rng)
        held_out, accountant = self.split.held_out, TrialAccountant(self.request.cost)
        try:
            model, warned = self._fitted(template, ~held_out, accountant)
            score, report, doubts = self._scored(model, held_out)
        except NotEnoughDataError as error:
            # The error follows from released values or public numbers, so it is an output like any
            # other.
            return Trial(-math.inf, params, model=None, parts=(), warnings=(), failure=str(error))
        reports = [step.privacy_report_ for step in private_steps(model).values()]
        parts = (part_of(reports, "fit"), part_of([report], "score"))
        return Trial(score, params, model, parts, (*warned, *doubts))

    def _fitted(
        self, template: BaseEstimator, chosen: Mask, accountant: TrialAccountant
    ) -> tuple[BaseEstimator, list[warnings.WarningMessage]]:
        """Clone of `template` fitted to the `chosen` units, and warnings of its fit.

        It costs all that `accountant` allows.
        """
        model = clone(template)
        steps = private_steps(model)
        set_budgets(steps, accountant.allowed, self.step_fractions, self.request.delta)
        rows = self.split.rows(chosen)
        X, y = take(self.X, rows), take(self.y, rows)
        groups = {}  # keyword arguments of fit, for the private steps
        if self.units_in_data:
            # Sets the model's shape; units in X are numbered anew, if they have numbers.
            X = model._set_to_units(X, int(chosen.sum()))
        elif self.labels is not None:
            groups = {f"{name}__groups" if name else "groups": self.labels[rows] for name in steps}
        for step in steps.values():  # not an enclosing block: the search is charged there
            step.set_params(accountant=accountant)
        # Groups are passed by names of steps; requests for routing would interfere.
        unrouted = config_context(enable_metadata_routing=False)
        with unrouted, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, **groups) if y is None else model.fit(X, y, **groups)
        for step in steps.values():
            step.set_params(accountant=None)
        if self.units_in_data:  # it may be fitted to all units again
            model.set_params(shape=template.get_params()["shape"])
        return model, caught

    def _scored(
        self, model: BaseEstimator, chosen: Mask
    ) -> tuple[float, PrivacyReport, list[warnings.WarningMessage]]:
        """Noisy score of a model on the `chosen`, held-out units; its report, and warnings."""
        step, words = [*private_steps(model).values()][-1], word_counter(self.estimator)
        # The session calls these scores on the held-out rows.
        query = HeldOutScores(RowScores(self.request.scoring, model, words), *self.bounds)
        rows = self.split.rows(chosen)
        labels = None if self.labels is None else self.labels[rows]
        n_units = int(chosen.sum()) if self.units_in_data else None
        chunks = held_out_chunk(take(self.X, rows), take(self.y, rows), labels, n_units)
        # A unit is in the fit or in the score of a trial: each may cost all (parallel composition).
        cost = replace(self.request.cost, delta=0.0)
        epsilon, delta = as_parameters(cost, self.request.delta)
        plan = ReleasePlan(epsilon, delta, (PlannedRelease(query.name, cost),))
        # Nobody pays here: the search was charged for all of its trials.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            score, report = release_score(
                query, chunks, plan, spender="PrivateSearchCV", unit=step.privacy_report_.unit,
                accountant=None, neighbours=self.request.neighbours,
            )  # fmt: skip
        return score, report, caught


def secret_random_state(bits: Sequence[int]) -> np.random.RandomState:
    """Generator of one trial's draws other than noise, seeded by secret `bits` of its own."""
    # The winner's draws are published. Trials share no generator, so these draws show nothing of
    # other trials.
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(list(bits))))
