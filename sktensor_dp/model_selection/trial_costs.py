"""Which units a trial of a search fits and holds out, and what each use of them may cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, ShuffleSplit, check_cv

from sktensor_dp.estimator.parameters import Number, shown
from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.accountant import BudgetAccountant, LedgerEntry
from sktensor_dp.privacy.calibration import gaussian_delta, gaussian_epsilon
from sktensor_dp.privacy.composition import Composition, Part
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.secret_parts import secret_halves, secret_parts

Integers = NDArray[np.intp]
Split = tuple[Integers, Integers]

MOST_FOLDS = 10_000
# With several splits: share of a final fit on all rows, and of the rest what the scores of
# a unit get for every part that the fits on it get.
REFIT, SCORE_PER_FIT = 0.5, 1 / 9

NOT_PLANNED = (
    "Steps that set a part of delta aside, such as private vocabularies, have to be in the "
    "estimator, or in a list of candidates for a parameter of a step, from the beginning."
)


GENERATED = (
    "cv must be None, an int, a splitter such as KFold(5), or a list of (train, test) of "
    "public positions. A generator, such as split(X, y) of a splitter returns, is refused: "
    "positions that were chosen by labels would tell of these."
)


@dataclass(frozen=True, eq=False)
class Splits:
    """Training and held-out units of every split of a search."""

    pairs: tuple[Split, ...]  # by their places
    # In how many fits and in how many scores a unit may be; public.
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
        if not cost.is_within(self._allowed):
            raise BudgetError(
                "A fit of the search asked for more than its share, or for another kind of noise "
                f"than was planned. Fits of pure noise need delta=0. {NOT_PLANNED}"
            )
        return super().charge(entries)


@dataclass(frozen=True)
class TrialCosts:
    """What each use of the data in a trial may cost."""

    # Of one fit on training rows, of one score on held-out rows; fits alone may set a part of delta
    # aside.
    fit: PrivacyCost
    score: PrivacyCost
    refit: PrivacyCost | None  # of a fit on all rows; None if the model of the only split is kept

    @classmethod
    def shared(cls, trial: PrivacyCost, splits: Splits) -> "TrialCosts":
        """Share out the cost of a trial, so that no unit is in more than it pays for."""
        # A unit that is in some training sets and some held-out ones costs the sum of those
        # uses, and nothing for others (parallel composition, at public positions or by coins).
        fits, scores = np.array(splits.uses).T
        several = splits.several
        per_fit = 1 / max(int(fits.max()), 1)
        per_score = (SCORE_PER_FIT if several else 1.0) / max(int(scores.max()), 1)
        most = float((fits * per_fit + scores * per_score).max())
        rest = 1 - REFIT if several else 1.0
        failure = trial.delta / (max(int(fits.max()), 1) + several)
        return cls(
            trial.part(rest * per_fit / most, failure),
            trial.part(rest * per_score / most, 0.0),
            trial.part(REFIT, failure) if several else None,
        )

    def composed(self, splits: Splits, parts: Sequence[Part], n_units: int) -> Composition:
        """How the parts of a trial add up."""
        split = tuple(part for part in parts if part.role != "refit")
        kinds = splits.memberships
        alone = all(sum(count for _, count in kind) == 1 for kind in kinds)
        whole = (
            Composition("parallel", parts=split)
            if alone
            else Composition("overlapping", parts=split, memberships=kinds)
        )
        if self.refit is None:
            return whole
        return Composition("sequence", parts=(Part("splits", n_units, whole), parts[-1]))


def part_of(reports: Sequence[PrivacyReport], role: str) -> Part:
    """Part of a trial that fits or scores of some reports are, made on the same units."""
    # A report of elsewhere may not say how its rows add up; the plan was one of releases.
    found = [one.composition or Composition("releases", one.rows) for one in reports]
    number = reports[-1].n_units
    if len(found) == 1:
        return Part(role, number, found[0])
    steps = tuple(Part("step", number, node) for node in found)
    return Part(role, number, Composition("sequence", parts=steps))


def shared_among(
    cost: PrivacyCost, steps: Mapping[str, Any], shares: Mapping[str, float] | None
) -> dict[str, PrivacyCost]:
    """What each private step gets of the cost of a fit, by its name."""
    # A step that learns nothing from the data needs nothing.
    weights = {
        name: 0.0 if step._releases_nothing else 1.0 if shares is None else float(shares[name])
        for name, step in steps.items()
    }
    whole = math.fsum(weights.values()) or 1.0
    failing = [name for name, step in steps.items() if step._delta_set_aside > 0]
    return {
        name: cost.part(weight / whole, cost.delta / len(failing) if name in failing else 0.0)
        for name, weight in weights.items()
    }


def report_of_search(
    reports: Sequence[PrivacyReport],
    trial: Composition,
    n_units: int,
    *,
    epsilon: float,
    delta: float,
    n_trials: float,
) -> PrivacyReport:
    """Report of a search whose best trial composes in a way, and had fits of some reports."""
    note = (
        "These are the releases of one trial. Trials with candidates drawn at random were "
        f"repeated a secret number of times, geometrically distributed with mean {n_trials:g}, and "
        "the best was released alone: the guarantee is that of the whole search."
    )
    one, notes = reports[-1], dict.fromkeys(note for one in reports for note in one.notes)
    sampler = min((each.sampler for each in reports), key=("float", "grid", "exact").index)
    whole = Composition(
        "selection", parts=(Part("trial", n_units, trial),), n_trials=n_trials, epsilon=epsilon,
        delta=delta,
    )  # fmt: skip
    return PrivacyReport(
        epsilon, delta, one.unit, one.neighbours, n_units, sampler,
        any(each.seeded for each in reports), whole.all_rows(), (*notes, note), whole,
    )  # fmt: skip


def as_parameters(cost: PrivacyCost, delta: float, set_aside: float = 0.0) -> tuple[float, float]:
    """Epsilon and delta that buy a cost, for a fit that sets a share of its delta aside."""
    if delta == 0:
        return cost.epsilon, 0.0
    if math.isinf(cost.mu):
        return math.inf, delta
    if set_aside > 0:
        if cost.delta == 0:
            raise BudgetError(NOT_PLANNED)
        left = cost.delta / set_aside - cost.delta
        epsilon, left = as_parameters(PrivacyCost(mu=cost.mu), left)
        return epsilon, left / (1 - set_aside)
    # Beyond this delta no epsilon is needed at all.
    delta = min(delta, gaussian_delta(cost.mu, 0.0) / 2)
    return gaussian_epsilon(cost.mu, delta), delta
