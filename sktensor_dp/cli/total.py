"""Cost of all runs of a folder together, in numbers and words."""

from math import isfinite, isinf

from sktensor_dp.checks.display import plain
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.ledger_entries import PERSON
from sktensor_dp.privacy.odds import odds_in_hundred
from sktensor_dp.privacy.plan import PrivacyCost


def summary_of(ledger: BudgetAccountant, *, several: bool) -> str:
    """Say what all runs of a folder cost together, and what that means if they are `several`."""
    epsilon, delta = total_of(ledger)
    if isinf(epsilon):
        return "One run in this folder added no noise: nothing is protected."
    limit = "no limit is set" if isinf(ledger.epsilon) else f"the budget is {ledger.epsilon:g}"
    said = (
        f"All runs in this folder: epsilon {epsilon:.4g} at delta {plain(delta)}; {limit}. Runs "
        "elsewhere on the same people are not counted."
    )
    said += on_given_back(ledger)
    if not several:
        return said
    if any(one.gives_back for one in ledger.entries):
        said += (
            " A run may state more than that: with the run whose words it uses it counts costs of "
            "releases that were not made, though later ones spend them."
        )
    if any(entry.unit.startswith(PERSON) for entry in ledger.entries):
        said += " That holds if a person has the same label in all of them."
    one, ten, fifty = (f"{low} to {high}" for _, low, high in odds_in_hundred(epsilon))
    return (
        f"{said} Whoever thought something 1, 10 or 50 in 100 likely may, after all runs, "
        f"think it {one}, {ten} or {fifty} in 100 likely."
    )


def on_given_back(ledger: BudgetAccountant) -> str:
    """Say, after a blank, which run may spend what others gave back; "" if none is left of it."""
    left = ledger.remaining()["epsilon"]
    if not (any(one.gives_back for one in ledger.entries) and isfinite(left) and left > 0):
        return ""
    return (
        " Releases that would have shown no more were not made: a run of another --topics, with "
        "all else the same or a smaller --epsilon, uses the same words and may still spend epsilon "
        f"{left:.3g}."
    )


def total_of(ledger: BudgetAccountant) -> tuple[float, float]:
    """Epsilon and delta of all runs in a folder together."""
    return at_enough_delta(*ledger.total(), ledger.cost)


def at_enough_delta(epsilon: float, delta: float, cost: PrivacyCost) -> tuple[float, float]:
    """Composed `epsilon` of a `cost` at `delta`, or both at a delta that covers all parts of it."""
    if isinf(epsilon) and isfinite(cost.mu):
        # Every vocabulary sets a part of delta aside: many of them exceed the delta of one run, and
        # the total is said at a delta that is larger by all parts.
        delta += cost.delta
        epsilon = cost.epsilon_at(delta)
    return epsilon, delta
