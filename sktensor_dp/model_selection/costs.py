"""Budget of a search: cost of each fit and score in a trial, and the report on the whole search."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.calibration import gaussian_delta, gaussian_epsilon
from sktensor_dp.privacy.composition import Composition, Part
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.selection_cost import failure_of_trials, trial_cost
from sktensor_dp.privacy.unsafe import open_blocks

NOT_PLANNED = (
    "Steps that set a part of delta aside, such as private vocabularies, have to be known before "
    "the first trial: list the candidates that make a step one."
)


class TrialAccountant(BudgetAccountant):
    """Accountant of one fit of a search: allows its planned cost and kind of noise, no more."""

    # A trial's plan is checked before any query, so a refusal depends on public numbers. The search
    # is charged as a whole, so this accountant does not affect other fits.
    _part_of_search = True

    def __init__(self, allowed: PrivacyCost) -> None:
        super().__init__()
        self.allowed = allowed

    def charge(self, entries: Sequence[LedgerEntry], ticket: str | None = None) -> Any:
        """Record the charges in `entries`, or raise BudgetError if they exceed the allowed cost."""
        charges = [(entry.cost, entry.uses) for entry in entries]
        cost = PrivacyCost.total([(self.cost, 1), *charges])
        # Compare each kind of cost by itself: a fit that swaps one kind of noise for another has
        # another privacy profile than was planned.
        if not cost.is_within(self.allowed):
            raise BudgetError(
                "A fit of the search asked for more than its part, or for another kind of noise "
                f"than was planned. Fits of pure noise need delta=0. {NOT_PLANNED}"
            )
        return super().charge(entries, ticket)


class StoppedAtCharge(BaseException):
    """End of a fit that is begun to see what it refuses before its charge; nothing went wrong."""


class StoppingAccountant(TrialAccountant):
    """Accountant that stops a fit of a search where it would be charged."""

    def charge(self, entries: Sequence[LedgerEntry], ticket: str | None = None) -> Any:
        """Raise BudgetError as a trial would; else StoppedAtCharge, if there are `entries`."""
        super().charge(entries, ticket)
        if entries:
            raise StoppedAtCharge


def part_of(reports: Sequence[PrivacyReport], role: str) -> Part:
    """Part of a composition of the `role` "fit" or "score", by its steps' reports."""
    # All steps fit the same units: one number, public or as the last of them released it.
    n_units = reports[-1].n_units
    if len(reports) == 1:
        return Part(role, n_units, reports[0].composition)
    steps = tuple(Part("step", n_units, report.composition) for report in reports)
    return Part(role, n_units, Composition("sequence", parts=steps))


def divided_among(
    cost: PrivacyCost, steps: Mapping[str, BaseEstimator], fractions: Mapping[str, float] | None
) -> dict[str, PrivacyCost]:
    """Cost of each private step of a fit by name, in proportion to `fractions` (None: equal)."""
    # Steps that release nothing need no budget; those that set a delta aside share the delta.
    facts = {name: step._public_facts() for name, step in steps.items()}
    weights = {name: 1.0 if fractions is None else float(fractions[name]) for name in steps}
    weights |= {name: 0.0 for name in steps if facts[name].releases_nothing}
    total = math.fsum(weights.values()) or 1.0
    n_setting_aside = sum(fact.delta_set_aside > 0 for fact in facts.values())
    costs = {}
    for name, weight in weights.items():
        delta = cost.delta / n_setting_aside if facts[name].delta_set_aside > 0 else 0.0
        costs[name] = cost.part(weight / total, delta)
    return costs


def set_budgets(
    steps: Mapping[str, BaseEstimator],
    cost: PrivacyCost,
    fractions: Mapping[str, float] | None,
    total_delta: float,
) -> None:
    """Set epsilon and delta of each private step of a fit by its part of the fit's `cost`."""
    # A step's plan takes epsilon and delta apart again: its releases cost this part together.
    for name, part in divided_among(cost, steps, fractions).items():
        facts = steps[name]._public_facts()
        if not facts.releases_nothing:
            epsilon, delta = as_parameters(part, total_delta, facts.delta_set_aside)
            steps[name].set_params(epsilon=epsilon, delta=delta)


def cost_of_trials(
    private: Mapping[str, BaseEstimator],
    tried: Iterable[BaseEstimator],
    epsilon: float,
    delta: float,
    stop: float,
) -> tuple[float, PrivacyCost]:
    """Delta of a search, and cost of a trial's fit: its score, of other units, costs as much.

    Delta is 0 if one of the estimator's `private` steps has pure noise. A trial sets a part of it
    aside if any of the steps `tried`, which candidates may have, does.
    """
    sets_aside = max(step._public_facts().delta_set_aside for step in tried) > 0
    if any(step._public_facts().has_pure_noise for step in private.values()):
        delta = 0.0
    if sets_aside and delta == 0 and math.isfinite(epsilon):
        raise ValueError(
            "delta must be > 0, and no step's noise pure: a step of the estimator, such as a "
            "private vocabulary, sets a part of delta aside."
        )
    failure = failure_of_trials(delta, stop) if sets_aside else 0.0
    return float(delta), trial_cost(epsilon, delta, stop, failure)


def report_of_search(
    reports: Sequence[PrivacyReport],
    parts: tuple[Part, ...],
    found: str,
    *,
    epsilon: float,
    delta: float,
    n_trials: float,
) -> PrivacyReport:
    """Privacy report of a whole search, of `n_trials` on average, from its winner's reports.

    `parts` are the fit and the score of a trial, `found` a note on candidates and the best one.
    """
    note = (
        "These are the releases of one trial. Trials with candidates drawn at random were "
        f"repeated a secret number of times, geometrically distributed with mean {n_trials:g}, and "
        "the best was released alone: the guarantee is that of the whole search. A unit is in the "
        "fit or in the score; fractions of each add up to 100 %."
    )
    last = reports[-1]
    notes = dict.fromkeys(text for report in reports for text in report.notes)
    # The number of units: public, or as the trial released it.
    n_units = sum(part.n_units for part in parts)
    trial = Part("trial", n_units, Composition("parallel", parts=parts))
    whole = Composition(
        "selection", parts=(trial,), n_trials=n_trials, epsilon=epsilon, delta=delta
    )
    return PrivacyReport(
        epsilon=epsilon, delta=delta, unit=last.unit, neighbours=last.neighbours, n_units=n_units,
        seeded=any(report.seeded for report in reports), composition=whole,
        notes=(*notes, note, found),
    )  # fmt: skip


def report_of_failure(entry: LedgerEntry, n_units: int, delta: float) -> PrivacyReport:
    """Privacy report of a search that was charged as a whole, and found nothing."""
    unused = (PlannedRelease(entry.release, entry.cost, entry.uses),)
    return PrivacyReport(
        epsilon=entry.cost.epsilon_at(delta), delta=delta, unit=entry.unit,
        neighbours=entry.neighbours, n_units=n_units, seeded=bool(open_blocks()),
        composition=Composition("releases", unused=unused),
    )  # fmt: skip


def as_parameters(cost: PrivacyCost, delta: float, set_aside: float = 0.0) -> tuple[float, float]:
    """Parameters (epsilon, delta) of a fit whose plan costs just `cost`.

    The fit sets the fraction `set_aside` of its delta aside, and spends the rest on noise.
    """
    if delta == 0:
        return cost.epsilon, 0.0
    if math.isinf(cost.mu):
        return math.inf, delta
    if set_aside > 0:
        if cost.delta == 0:
            raise BudgetError(NOT_PLANNED)
        # The fit sets ``set_aside * delta`` aside, which must not exceed `cost.delta`: its delta is
        # at most ``cost.delta / set_aside``, and what it does not set aside is for noise.
        most_for_noise = cost.delta / set_aside - cost.delta
        epsilon, delta_for_noise = as_parameters(PrivacyCost(mu=cost.mu), most_for_noise)
        return epsilon, delta_for_noise / (1 - set_aside)
    # From this delta on no epsilon would be needed; half of it needs one above 0.
    delta = min(delta, gaussian_delta(cost.mu, 0.0) / 2)
    return gaussian_epsilon(cost.mu, delta), delta
