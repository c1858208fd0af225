"""Parts of a budget, one for each fit to come, as `BudgetAccountant.split` gives them."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.calibration import gaussian_epsilon, gaussian_mu
from sktensor_dp.privacy.ledger_entries import Balance, LedgerEntry, Spending
from sktensor_dp.privacy.plan import ROUNDING, THRESHOLD_FRACTION, PrivacyCost

PART_ROUNDING = 1e-6  # relative difference up to which costs are taken for those of one part
GAUSSIAN_KINDS = ("gaussian", "vocabulary")
# How fits of two kinds use a part of delta up.
USES_DELTA = {
    "vocabulary": "A vocabulary sets half of its delta aside",
    "search": "A guarantee of an epsilon and a delta, as of a search, uses its delta up",
}


class SplitPart(NamedTuple):
    """Part of a budget that `BudgetAccountant.split` gave, and what a fit with it costs."""

    epsilon: float
    delta: float
    cost: PrivacyCost
    kind: str

    def pays(self, cost: PrivacyCost) -> bool:
        """Return True if a fit with this part costs `cost`, but for rounding."""
        # A part of any kind may be spent as pure noise.
        pure = PrivacyCost(epsilon=self.epsilon)
        return any(
            all(map(partial(math.isclose, rel_tol=PART_ROUNDING), own.amounts, cost.amounts))
            for own in (self.cost, pure)
        )


def unpaid_parts(parts: Sequence[SplitPart], costs: Iterable[PrivacyCost]) -> list[SplitPart]:
    """Parts of a split that no fit of these costs takes; each fit takes one."""
    unpaid = list(parts)
    for cost in costs:
        if (part := next((part for part in unpaid if part.pays(cost)), None)) is not None:
            unpaid.remove(part)
    return unpaid


def as_charges(parts: Sequence[SplitPart]) -> list[LedgerEntry]:
    """Charges of fits that spend these parts."""
    return [LedgerEntry("caller", "spend", uses=1, cost=part.cost) for part in parts]


def told_apart(fractions: Sequence[float]) -> list[float]:
    """Move equal fractions apart, with the same sum, so that costs say which part was spent."""
    rounded = [round(fraction, 9) for fraction in fractions]
    changed = []
    for place, fraction in enumerate(fractions):
        rank, n_alike = rounded[:place].count(rounded[place]), rounded.count(rounded[place])
        changed.append(fraction * (1 + 10 * PART_ROUNDING * (rank - (n_alike - 1) / 2)))
    return changed


def so_far(now: Balance) -> str:
    """Sentence that says what is spent; empty if nothing is."""
    if spent := now.spent_epsilon:
        return f" Of the budget, epsilon {spent:.6g} of {now.epsilon:g} is spent."
    return ""


def divided(
    now: Balance, fractions: Sequence[float], kinds: Sequence[str], whole: float, *, of_rest: bool
) -> list[SplitPart]:
    """Parts of the budget, or of its rest, for fits that get `fractions`, whose sum is `whole`."""
    spent = now.spent if of_rest else Spending()
    # Gaussian noise has the delta that vocabularies and searches leave.
    n_using = sum(kind in USES_DELTA for kind in kinds)
    delta_left = max(now.delta - spent.cost.delta, 0.0)
    delta_used = _delta_used(n_using, delta_left, now, spent)
    gaussian_delta = delta_left - delta_used * n_using
    spent_on_gaussian = gaussian_epsilon(spent.cost.mu, gaussian_delta)
    epsilon_left = _epsilon_left(now, spent, spent_on_gaussian, kinds)
    epsilons = [epsilon_left * fraction / whole for fraction in fractions]
    if delta_left == 0 or math.isinf(epsilon_left):  # costs are pure epsilons
        return [
            SplitPart(epsilon, delta_left, PrivacyCost(epsilon=epsilon), kind)
            for epsilon, kind in zip(epsilons, kinds, strict=True)
        ]
    # Epsilons of pure noise and searches are added to that of all Gaussian noise together.
    pairs = list(zip(fractions, kinds, strict=True))
    gaussian_fraction = math.fsum(part for part, kind in pairs if kind in GAUSSIAN_KINDS)
    mu = 0.0  # of all parts with Gaussian noise together
    if gaussian_fraction:
        epsilon_on_gaussian = spent_on_gaussian + epsilon_left * (gaussian_fraction / whole)
        with_spent = gaussian_mu(epsilon_on_gaussian, gaussian_delta)
        square_left = (with_spent - spent.cost.mu) * (with_spent + spent.cost.mu)
        mu = math.hypot(math.sqrt(max(square_left, 0.0)), spent.given_back.cost.mu)
    deltas = {
        "pure": now.delta, "search": delta_used, "gaussian": gaussian_delta,
        "vocabulary": delta_used / THRESHOLD_FRACTION,  # of which it sets `delta_used` aside
    }  # fmt: skip
    parts = []
    for (fraction, kind), epsilon in zip(pairs, epsilons, strict=True):
        delta, aside = deltas[kind], delta_used if kind in USES_DELTA else 0.0
        cost = PrivacyCost(epsilon=epsilon, delta=aside)
        if kind in GAUSSIAN_KINDS:
            cost = PrivacyCost(mu * math.sqrt(fraction / gaussian_fraction), delta=aside)
            epsilon = gaussian_epsilon(cost.mu, delta - aside)
        parts.append(SplitPart(epsilon, delta, cost, kind))
    return parts


def _epsilon_left(
    now: Balance, spent: Spending, spent_on_gaussian: float, kinds: Sequence[str]
) -> float:
    """Epsilon that `spent` leaves of the budget; BudgetError if nothing for these `kinds`."""
    if spent == Spending() or math.isinf(now.epsilon):
        return now.epsilon
    epsilon_left = max(now.epsilon - spent.cost.epsilon - spent_on_gaussian, 0.0)
    is_given_back = spent.given_back.mu_squared > 0 and set(kinds) <= {"gaussian"}
    is_given_back &= now.covers(spent)  # not of a budget that was lowered
    if epsilon_left <= now.epsilon * ROUNDING and not is_given_back:
        raise BudgetError(f"Nothing is left to divide of the budget.{so_far(now)}")
    return epsilon_left


def _delta_used(n: int, left: float, now: Balance, spent: Spending) -> float:
    """Delta that each of `n` vocabularies and searches uses up, of the delta that is `left`."""
    # A tenth (a choice) or less, so that all use up at most THRESHOLD_FRACTION together.
    most = left / max(10, n / THRESHOLD_FRACTION)
    if not (spent.amounts.mu_squared and n):
        return most
    return spent.aside_left(n, most, now.epsilon, now.delta)[0]
