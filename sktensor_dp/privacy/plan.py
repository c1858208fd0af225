"""Plan of a fit's releases, and their costs: public numbers only."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TypedDict

from sktensor_dp.privacy.calibration import gaussian_epsilon, gaussian_misses, gaussian_mu

# Tolerance for the rounding of a budget that is split and added up again.
ROUNDING = 1e-9
# Name of the count of units, where their number is private, and its fraction of the budget.
COUNT, COUNT_FRACTION = "unit_count", 0.01
# Fraction of its delta that a vocabulary sets aside for its threshold.
THRESHOLD_FRACTION = 0.5
# Fraction of a budget for the histogram by which a norm or a range is chosen.
HISTOGRAM_FRACTION = 0.02
# Name of the undivided rest of a plan with a private number of units, until the count is released.
BY_COUNT = "shared_out_by_unit_count"


class FitBudget(TypedDict):
    """Budget of one fit, as keyword arguments of an estimator: epsilon and delta."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class PrivacyCost:
    """Cost of releases: `mu` of Gaussian noise, `epsilon` of pure noise, and `delta`."""

    # Gaussian parts compose by adding `mu ** 2`, pure parts by adding epsilon, and failure
    # probabilities by adding delta; the three then add up (basic composition between kinds).

    mu: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        # A negative cost would give budget back, and NaN would exceed no budget.
        for name, value in zip(("mu", "epsilon", "delta"), self.amounts, strict=True):
            if not (isinstance(value, Real) and value >= 0):
                raise ValueError(f"{name} must be >= 0, got {value!r}.")
            # Other scalar types of numpy are less precise, and SQLite stores them as bytes.
            object.__setattr__(self, name, float(value))

    @property
    def amounts(self) -> tuple[float, float, float]:
        """Cost as the tuple (mu, epsilon, delta)."""
        return self.mu, self.epsilon, self.delta

    @classmethod
    def total(cls, costs: Iterable[tuple["PrivacyCost", int]]) -> "PrivacyCost":
        """Compose costs, each with its uses: squares of mu, epsilons and deltas are each added."""
        # 0 * inf is NaN.
        spent = [(cost, uses) for cost, uses in costs if uses > 0]
        return cls(
            math.sqrt(_fsum(uses * (cost.mu * cost.mu) for cost, uses in spent)),
            _fsum(uses * cost.epsilon for cost, uses in spent),
            _fsum(uses * cost.delta for cost, uses in spent),
        )

    def part(self, fraction: float, delta: float) -> "PrivacyCost":
        """Cost with a `fraction` of this mu**2 and of this epsilon, and with the given `delta`."""
        # 0 * inf is NaN.
        if fraction == 0:
            return PrivacyCost(delta=delta)
        return PrivacyCost(self.mu * math.sqrt(fraction), self.epsilon * fraction, delta)

    def is_within(self, allowed: "PrivacyCost") -> bool:
        """Return True if no amount is above that of `allowed`, but for rounding."""
        pairs = zip(self.amounts, allowed.amounts, strict=True)
        return all(amount <= limit * (1 + ROUNDING) for amount, limit in pairs)

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon for which this cost is (epsilon, delta)-DP; may be infinite."""
        if self.delta > delta * (1 + ROUNDING):
            return math.inf
        return self.epsilon + gaussian_epsilon(self.mu, max(delta - self.delta, 0.0))

    def misses(self, false_positive_rate: float, delta: float) -> float:
        """Least false-negative rate of a test between neighbours.

        With a pure epsilon all of the cost counts as ``epsilon_at(delta)``, with `delta`.
        """
        if self.epsilon == 0:
            # With probability delta the release has no noise.
            noisy = 1 - self.delta
            if false_positive_rate >= noisy:
                return 0.0
            return noisy * gaussian_misses(self.mu, false_positive_rate / noisy)
        # Kairouz, Oh & Viswanath (2015): with rates of false positives and of misses,
        # e^epsilon false + misses and false + e^epsilon misses are both at least 1 - delta.
        # exp(700) does not overflow.
        ratio = math.exp(-min(self.epsilon_at(delta), 700.0))
        by_false = 1 - delta - false_positive_rate / ratio
        by_misses = ratio * (1 - delta - false_positive_rate)
        return max(0.0, by_false, by_misses)


def _fsum(values: Iterable[float]) -> float:
    """Exactly rounded sum; infinity where it overflows."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class PlannedRelease:
    """Release (noisy answer) of a plan, made up to `uses` times at `cost` each."""

    name: str
    cost: PrivacyCost
    uses: int = 1


@dataclass(frozen=True)
class ReleasePlan:
    """Releases of one fit and their costs, fixed and charged before any query is computed."""

    epsilon: float
    delta: float
    planned: tuple[PlannedRelease, ...]

    @classmethod
    def split(
        cls,
        epsilon: float,
        delta: float,
        fractions: Mapping[str, float],
        uses: Mapping[str, int] | None = None,
        reserved_delta: Mapping[str, float] | None = None,
    ) -> "ReleasePlan":
        """Divide (epsilon, delta) in proportion to `fractions`: mu**2, or epsilon if delta is 0."""
        epsilon, delta = float(epsilon), float(delta)
        # All uses of a release share its fraction. Each use also spends the `reserved_delta` of the
        # release: mu is found at `delta` less all of these.
        uses, reserved = dict(uses or {}), dict(reserved_delta or {})
        fractions = {name: fraction for name, fraction in fractions.items() if fraction > 0}
        whole = math.fsum(fractions.values())
        set_aside = math.fsum(reserved.get(name, 0.0) * uses.get(name, 1) for name in fractions)
        mu = gaussian_mu(epsilon, delta - set_aside) if delta > 0 else 0.0
        releases = []
        for name, fraction in fractions.items():
            times = uses.get(name, 1)
            part = fraction / whole / times
            cost = PrivacyCost(epsilon=epsilon * part)
            if delta > 0:
                cost = PrivacyCost(mu=mu * math.sqrt(part), delta=reserved.get(name, 0.0))
            releases.append(PlannedRelease(name, cost, times))
        return cls(epsilon, delta, tuple(releases))

    def charged(self, neighbours: str) -> "ReleasePlan":
        """Plan as charged: that of :meth:`before_count` with ``"add_remove"``, else this one."""
        counts_units = neighbours == "add_remove" and bool(self.planned)
        return self.before_count() if counts_units else self

    def before_count(self) -> "ReleasePlan":
        """Plan for a private number of units: 1 % for its count, and the rest undivided."""
        whole = self.cost
        # The count needs no delta of its own.
        count = PlannedRelease(COUNT, whole.part(COUNT_FRACTION, delta=0.0))
        rest = PlannedRelease(BY_COUNT, whole.part(1 - COUNT_FRACTION, delta=whole.delta))
        return replace(self, planned=(count, rest))

    def after_count(self, plan: "ReleasePlan") -> "ReleasePlan":
        """Divide the rest of a plan that :meth:`before_count` made among the releases of `plan`.

        Each costs 99 % of what it costs in `plan`, which may depend on the count. RuntimeError if
        they cost more than the rest.
        """
        count, rest = self.planned
        parts = tuple(
            replace(release, cost=release.cost.part(1 - COUNT_FRACTION, release.cost.delta))
            for release in plan.planned
        )
        charged, needed = rest.cost, replace(plan, planned=parts).cost
        # The kind of noise, and the delta set aside, must not depend on a release.
        kinds = {(cost.mu > 0, cost.epsilon > 0, cost.delta) for cost in (charged, needed)}
        if len(kinds) > 1 or not needed.is_within(charged):
            raise RuntimeError("the plan made by a count is not covered by what was charged.")
        return replace(self, planned=(count, *parts))

    def with_count(self) -> "ReleasePlan":
        """Plan with a count of the units before this plan's releases."""
        return self.before_count().after_count(self)

    @property
    def cost(self) -> PrivacyCost:
        """Cost of the whole plan."""
        return PrivacyCost.total((release.cost, release.uses) for release in self.planned)

    def unused(self, left: Mapping[str, int]) -> tuple[PlannedRelease, ...]:
        """Releases paid for and not made, from the number of uses `left` by name."""
        return tuple(
            replace(one, uses=left[one.name]) for one in self.planned if left[one.name] > 0
        )

    def cost_of(self, name: str) -> PrivacyCost:
        """Cost of one use of the release called `name`."""
        return next(release.cost for release in self.planned if release.name == name)


def with_histogram(name: str, fractions: Mapping[str, float]) -> dict[str, float]:
    """Add a histogram `name`, by which a range is chosen, at HISTOGRAM_FRACTION of the new sum."""
    ratio = HISTOGRAM_FRACTION / (1 - HISTOGRAM_FRACTION)
    return {name: ratio * math.fsum(fractions.values()), **fractions}


def budget_fractions(
    costs: Sequence[tuple[PrivacyCost, int]], epsilon: float, delta: float
) -> list[float | None]:
    """Fraction of (epsilon, delta) that each (cost, uses) takes; None if epsilon is inf or 0."""
    if not 0 < epsilon < math.inf:
        return [None] * len(costs)
    # The part of delta that no cost sets aside is for the tails of Gaussian noise.
    tails = delta - math.fsum(cost.delta * uses for cost, uses in costs)
    whole = PrivacyCost(gaussian_mu(epsilon, tails) if 0 < tails < 1 else 0.0, epsilon)
    return [fraction_of(cost, uses, whole) for cost, uses in costs]


def fraction_of(cost: PrivacyCost, uses: int, whole: PrivacyCost) -> float | None:
    """Fraction of mu**2, plus that of epsilon, of `whole` that `uses` of a cost take.

    None if it is not finite.
    """
    ratios = []
    for part, total in ((cost.mu, whole.mu), (cost.epsilon, whole.epsilon)):
        if part > 0 and not (total > 0 and math.isfinite(part) and math.isfinite(total)):
            return None
        ratios.append(part / total if part > 0 else 0.0)
    of_mu, of_epsilon = ratios
    # Multiply: a power of a float raises an error where it overflows. 0 * inf is NaN.
    fraction = uses * (of_mu * of_mu + of_epsilon)
    if not math.isfinite(fraction):
        return None
    # May exceed 1 if the budget was lowered after the charge.
    return 1.0 if math.isclose(fraction, 1.0, rel_tol=ROUNDING) else fraction
