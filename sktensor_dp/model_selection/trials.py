"""Trials of a private search: what each may cost, and how one is made."""

import math
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, check_cv

from sktensor_dp.estimator.parameters import Number, shown
from sktensor_dp.exceptions import BudgetError
from sktensor_dp.model_selection.candidates import draw_candidate, secret_random_state
from sktensor_dp.model_selection.steps import check_relation, configured, private_prefix, step_at
from sktensor_dp.model_selection.unit_rows import held_out, take
from sktensor_dp.model_selection.unit_scores import UnitScores, checked_score_bounds, release_score
from sktensor_dp.privacy.accountant import BudgetAccountant, LedgerEntry
from sktensor_dp.privacy.calibration import gaussian_delta, gaussian_epsilon
from sktensor_dp.privacy.composition import Composition, Part
from sktensor_dp.privacy.plan import ROUNDING, PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.secret_parts import secret_halves, secret_parts
from sktensor_dp.statistics.scores import HeldOutScores

__all__ = [
    "Splits",
    "Trial",
    "TrialCosts",
    "Trials",
    "check_parts",
    "public_splits",
    "secret_splits",
]

Integers = NDArray[np.intp]
Split = tuple[Integers, Integers]

# With several splits: share of a final fit on all rows, and of the rest what the scores of
# a unit get for every part that the fits on it get.
REFIT, SCORE_PER_FIT = 0.5, 1 / 9
MOST_FOLDS = 10_000

GENERATED = (
    "cv must be None, an int, a splitter such as KFold(5), or a list of (train, test) of "
    "public positions. A generator, such as split(X, y) of a splitter returns, is refused: "
    "positions that were chosen by labels would tell of these."
)


@dataclass(frozen=True, eq=False)
class Splits:
    """Training and held-out units of every split of a search.

    Attributes
    ----------
    pairs : tuple of (training units, held-out units)
        By their places.
    uses : tuple of (int, int)
        In how many fits and in how many scores a unit may be; public.
    """

    pairs: tuple[Split, ...]
    uses: tuple[tuple[int, int], ...]

    @property
    def several(self) -> bool:
        """Whether the model of none is kept."""
        return len(self.pairs) > 1

    @property
    def memberships(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """In how many fits and scores a unit may be, largest numbers only."""
        found = set(self.uses)
        largest = [
            (a, b) for a, b in found if not any(c >= a and d >= b for c, d in found - {(a, b)})
        ]
        return tuple(
            tuple((role, count) for role, count in (("fit", a), ("score", b)) if count)
            for a, b in sorted(largest, reverse=True)
        )


class TrialAccountant(BudgetAccountant):
    """Lets one fit spend what the plan gives it, in the kind of noise that was planned."""

    # It is asked before anything is read, so what it refuses depends on public numbers.

    def __init__(self, allowed: PrivacyCost) -> None:
        super().__init__()
        self._allowed = allowed

    def charge(self, entries: Sequence[LedgerEntry]) -> Any:
        """Check the kind of a charge and its size, and record it."""
        asked = [entry.cost for entry in entries for _ in range(entry.uses)]
        cost = PrivacyCost.total([self.cost, *asked])
        # Of each kind: a trial of mixed kinds has another profile than either.
        most = self._allowed
        if (
            cost.delta > 0
            or cost.mu > (1 + ROUNDING) * most.mu
            or cost.epsilon > (1 + ROUNDING) * most.epsilon
        ):
            raise BudgetError(
                "A fit of the search asked for more than its share, or for another kind of noise "
                "than was planned. Fits of pure noise need delta=0; fits that need a failure "
                "probability of their own cannot be searched over."
            )
        return super().charge(entries)


@dataclass(frozen=True)
class TrialCosts:
    """What each use of the data in a trial may cost.

    Attributes
    ----------
    fit, score : PrivacyCost
        Of one fit on training rows, of one score on held-out rows.
    refit : PrivacyCost or None
        Of a fit on all rows; None if the model of the only split is kept.
    memberships : tuple
        In how many fits and scores units are, as :class:`Composition` has it.
    """

    fit: PrivacyCost
    score: PrivacyCost
    refit: PrivacyCost | None
    memberships: tuple[tuple[tuple[str, int], ...], ...] = ()

    @classmethod
    def shared(cls, trial: PrivacyCost, splits: Splits) -> "TrialCosts":
        """Share out the cost of a trial, so that no unit is in more than it pays for."""
        # A unit that is in some training sets and some held-out ones costs the sum of those
        # uses, and nothing for others (parallel composition, at public positions or by coins).
        fits, scores = np.array(splits.uses).T
        memberships, several = splits.memberships, splits.several
        per_fit = 1 / max(int(fits.max()), 1)
        per_score = (SCORE_PER_FIT if several else 1.0) / max(int(scores.max()), 1)
        most = float((fits * per_fit + scores * per_score).max())
        rest = 1 - REFIT if several else 1.0
        return cls(
            _part(trial, rest * per_fit / most),
            _part(trial, rest * per_score / most),
            _part(trial, REFIT) if several else None,
            memberships,
        )

    def composed(self, parts: Sequence[Part], n_units: int) -> Composition:
        """How the parts of a trial add up."""
        split = tuple(part for part in parts if part.role != "refit")
        alone = all(sum(count for _, count in kind) == 1 for kind in self.memberships)
        whole = Composition(
            "parallel" if alone else "overlapping",
            parts=split,
            memberships=() if alone else self.memberships,
        )
        if self.refit is None:
            return whole
        return Composition("sequence", parts=(Part("splits", n_units, whole), parts[-1]))


@dataclass(frozen=True, eq=False)
class Trial:
    """Everything that one trial would release if it won."""

    score: float
    params: dict[str, Any]
    model: Any
    parts: tuple[Part, ...]
    warnings: tuple[warnings.WarningMessage, ...]


@dataclass(frozen=True, eq=False)
class Trials:
    """How to make a trial on the data of one search.

    Attributes
    ----------
    estimator, X, y : object
        As given to the search.
    places : ndarray of shape (n_rows,) or None
        Of the group of each row in the order of labels, where units are groups.
    distributions : sequence of mappings
        Of the candidates.
    scoring : str or callable
        Score of each unit.
    score_bounds : pair of float or None
        What it is clipped to.
    public_steps : collection of str
        Steps that may learn from the data.
    splits : Splits
        Training units and held-out ones, rows or groups.
    n_units : int
        Number of all units, which `neighbours` may make private.
    neighbours : str
        Of the search, and of every fit.
    costs : TrialCosts
        Of every use of the data.
    delta : float
        At which fits are told their budget, and 0 for pure ones.
    """

    estimator: Any
    X: Any
    y: Any
    places: Integers | None
    distributions: Sequence[Any]
    scoring: str | Callable[..., Any]
    score_bounds: Sequence[float] | None
    public_steps: Collection[str]
    splits: Splits
    n_units: int
    neighbours: str
    costs: TrialCosts
    delta: float

    def run(self, bits: Sequence[int]) -> Trial:
        """Draw a candidate, fit it and score it, all by secret randomness of this trial alone."""
        # An error leaves the search at once, as if trials that fail had the highest score:
        # that, too, is a selection of the best.
        rng = secret_random_state(bits)
        params = draw_candidate(self.distributions, rng)
        template = configured(self.estimator, params, self.public_steps, rng)
        scores, parts, caught = [], [], []
        for train, test in self.splits.pairs:
            model, told = self._fitted(template, train, self.costs.fit)
            score, report = self._scored(model, test)
            scores.append(score)
            caught += told
            parts += [self._part_of(model, "fit"), _part_of(report, "score")]
        return Trial(float(np.mean(scores)), params, model, tuple(parts), tuple(caught))

    def refitted(self, trial: Trial) -> Trial:
        """Return the winner with a model of all rows, if there were several splits."""
        # A trial is the fits, the scores and this; it is made for the winner alone, since its
        # result does not change who wins.
        if self.costs.refit is None:
            return trial
        everything = np.arange(self.n_units)
        model, told = self._fitted(clone(trial.model), everything, self.costs.refit)
        parts = (*trial.parts, self._part_of(model, "refit"))
        return Trial(trial.score, trial.params, model, parts, (*trial.warnings, *told))

    def number(self, trial: Trial) -> int:
        """Number of units as it may be told: the public one, or one that the trial released."""
        if self.neighbours != "add_remove":
            return self.n_units
        if self.costs.refit is not None:
            return trial.parts[-1].n_units
        return sum(part.n_units for part in trial.parts)

    def _rows(self, units: Integers) -> Integers:
        """Rows of units at public positions."""
        return units if self.places is None else np.flatnonzero(np.isin(self.places, units))

    def _fitted(self, template: Any, units: Integers, cost: PrivacyCost) -> tuple[Any, list[Any]]:
        """Fit a clone under a budget of its own, and tell what it warned of."""
        epsilon, delta = _as_parameters(cost, self.delta)
        model = clone(template)
        self._step(model).set_params(epsilon=epsilon, delta=delta)
        # What a distribution draws is known now.
        check_relation(self._step(model), self.neighbours)
        # The innermost accountant is the one that is charged: an enclosing block, which the
        # whole search has been charged to, is not asked again.
        own = TrialAccountant(cost)
        rows = self._rows(units)
        told = {}
        if self.places is not None:
            prefix = private_prefix(model, self.public_steps)
            # In the order of labels, like these.
            told = {f"{prefix}groups": self.places[rows]}
        # Names of steps say where groups go; requests that they may carry would be for others.
        unrouted = config_context(enable_metadata_routing=False)
        with own, unrouted, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            X, y = take(self.X, rows), take(self.y, rows)
            model.fit(X, **told) if y is None else model.fit(X, y, **told)
        step = self._step(model)
        # Where the number is private no other step could have changed it.
        if self.neighbours != "add_remove" and step.privacy_report_.n_units != len(units):
            raise ValueError(
                "A step of the estimator changed the number of rows: the units that the private "
                "step protects are not those of the search."
            )
        return model, caught

    def _part_of(self, model: Any, role: str) -> Part:
        return _part_of(self._step(model).privacy_report_, role)

    def _scored(self, model: Any, units: Integers) -> tuple[float, PrivacyReport]:
        """Score a model on held-out units, with noise."""
        step = self._step(model)
        low, high = checked_score_bounds(self.score_bounds, self.scoring, step, "score_bounds")
        query = HeldOutScores(UnitScores(self.scoring, model), low, high)
        rows = self._rows(units)
        labels = None if self.places is None else self.places[rows]
        chunks = held_out(take(self.X, rows), take(self.y, rows), labels)
        name, (epsilon, delta) = "held_out_scores", _as_parameters(self.costs.score, self.delta)
        plan = ReleasePlan(epsilon, delta, (PlannedRelease(name, self.costs.score),))
        return release_score(
            query, chunks, plan, spender="PrivateSearchCV", unit=step.privacy_report_.unit,
            accountant=None, neighbours=self.neighbours,
        )  # fmt: skip

    def _step(self, model: Any) -> Any:
        return step_at(model, private_prefix(model, self.public_steps))


def public_splits(cv: Any, test_size: float, n_units: int, random_state: Any) -> Splits:
    """Split by positions, which are chosen without looking at any unit."""
    if hasattr(cv, "__next__"):
        raise ValueError(GENERATED)
    if cv is None:
        cv = ShuffleSplit(1, test_size=test_size, random_state=random_state)
    elif isinstance(cv, int):
        cv = KFold(cv, shuffle=True, random_state=random_state)
    # A splitter is shown the number of units and nothing else.
    parts = check_cv(cv).split(np.zeros((n_units, 1)))
    pairs = [(_positions(train, n_units), _positions(test, n_units)) for train, test in parts]
    if not pairs or any(train.size == 0 or test.size == 0 for train, test in pairs):
        raise ValueError(f"cv must leave rows on both sides of every split of {n_units}.")
    fits, scores = np.zeros(n_units, dtype=int), np.zeros(n_units, dtype=int)
    for train, test in pairs:
        np.add.at(fits, train, 1)
        np.add.at(scores, test, 1)
    uses = np.unique(np.stack([fits, scores], axis=1), axis=0)
    return Splits(tuple(pairs), tuple((int(a), int(b)) for a, b in uses))


def check_parts(cv: Any) -> None:
    """Refuse splits by positions where units come and go."""
    if cv is not None and not Number(2, MOST_FOLDS, integer=True).accepts(cv):
        raise ValueError(
            f"cv must be None or an int from 2 to {MOST_FOLDS} where neighbours='add_remove': a "
            "unit that is added or removed would move others to other positions, so each goes to "
            f"a part by a secret coin of its own. Got {shown(cv)}. Nothing was charged."
        )


def secret_splits(cv: int | None, test_size: float, n_units: int) -> Splits:
    """Split by a secret coin for each unit; parts may be empty, and their sizes are private."""
    if cv is None:
        held_out = secret_halves(n_units, test_size)
        return Splits((_apart(held_out, 1),), ((1, 0), (0, 1)))
    folds = secret_parts(n_units, int(cv))
    return Splits(tuple(_apart(folds, fold) for fold in range(int(cv))), ((int(cv) - 1, 1),))


def _apart(parts: Integers, held_out: int) -> Split:
    return np.flatnonzero(parts != held_out), np.flatnonzero(parts == held_out)


def _positions(rows: Any, n_units: int) -> Integers:
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp)
    # A row that is there twice would count twice.
    return np.unique(np.arange(n_units)[rows])


def _part_of(report: PrivacyReport, role: str) -> Part:
    # A report of elsewhere may not say how its rows add up; the plan was one of releases.
    return Part(role, report.n_units, report.composition or Composition("releases", report.rows))


def _part(cost: PrivacyCost, share: float) -> PrivacyCost:
    return PrivacyCost(mu=cost.mu * math.sqrt(share), epsilon=cost.epsilon * share)


def _as_parameters(cost: PrivacyCost, delta: float) -> tuple[float, float]:
    """Epsilon and delta that buy a cost."""
    if delta == 0:
        return cost.epsilon, 0.0
    if math.isinf(cost.mu):
        return math.inf, delta
    # Beyond this delta no epsilon is needed at all.
    delta = min(delta, gaussian_delta(cost.mu, 0.0) / 2)
    return gaussian_epsilon(cost.mu, delta), delta
