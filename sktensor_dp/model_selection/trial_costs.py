"""What each use of the data in a trial of a search may cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.model_selection.splits import Splits
from sktensor_dp.privacy.accountant import BudgetAccountant, LedgerEntry
from sktensor_dp.privacy.calibration import gaussian_delta, gaussian_epsilon
from sktensor_dp.privacy.composition import Composition, Part
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport

# With several splits: share of a final fit on all rows, and of the rest what the scores of
# a unit get for every part that the fits on it get.
REFIT, SCORE_PER_FIT = 0.5, 1 / 9

NOT_PLANNED = (
    "Steps that set a part of delta aside, such as private vocabularies, have to be in the "
    "estimator, or in a list of candidates for a parameter of a step, from the beginning."
)


class TrialAccountant(BudgetAccountant):
    """Lets one fit spend what the plan gives it, in the kind of noise that was planned."""

    # It is asked before anything is read, so what it refuses depends on public numbers.
    # The search has been charged: fits elsewhere are none of its business.
    _holds_others = False

    def __init__(self, allowed: PrivacyCost) -> None:
        super().__init__()
        self._allowed = allowed

    def charge(self, entries: Sequence[LedgerEntry], ticket: str | None = None) -> Any:
        """Check the kind of a charge and its size, and record it."""
        asked = [entry.cost for entry in entries for _ in range(entry.uses)]
        cost = PrivacyCost.total([self.cost, *asked])
        # Of each kind: a trial of mixed kinds has another profile than either.
        if not cost.is_within(self._allowed):
            raise BudgetError(
                "A fit of the search asked for more than its share, or for another kind of noise "
                f"than was planned. Fits of pure noise need delta=0. {NOT_PLANNED}"
            )
        return super().charge(entries, ticket)


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
