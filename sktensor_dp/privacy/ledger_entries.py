"""Charges and their exact sums, in integers of 1e-40: what a ledger adds up."""

import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from scipy.special import ndtri

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.calibration import gaussian_epsilon, gaussian_mu
from sktensor_dp.privacy.plan import ROUNDING, THRESHOLD_FRACTION, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.zcdp import (
    epsilon_of_rho,
    pure_rho,
    zcdp_epsilon_at_delta,
    zcdp_rho_at_delta,
)

# Far finer than any planned cost, so that rounding up stays far below ROUNDING.
UNIT = 10**40

# Suffix of the unit's name, in files too, for units that are added or removed. A version that does
# not know the suffix takes it for another unit and refuses to add both up.
ADDED_OR_REMOVED = ", added or removed"
# Two names for one unit: a row of a table.
ROWS = ("document", "sample")
# Persons may have the name of the column that says whose row it is: "person: patient".
PERSON = "person"
# Kinds of fits. They differ by noise, and by how much of their own delta they use up: fits with
# Gaussian or pure noise nothing, vocabularies a half, searches all.
KINDS = ("gaussian", "pure", "vocabulary", "search")


@dataclass(frozen=True)
class LedgerEntry:
    """Charge in a ledger: who spent how much on which release.

    Attributes
    ----------
    spender, release : str
        The estimator, or ``"caller"``, and the release's name in the catalogue, or that of what
        was paid for as a whole, such as ``"private_selection"``.
    uses, cost : int, PrivacyCost
        Number of releases that the charge pays for, and the cost of each.
    unit, neighbours : str
        Unit of privacy, empty where it is not known; and whether the cost is that of replacing one
        (``"replace_one"``), or of adding or removing one (``"add_remove"``).
    sensitivity, sigma : float or None
        Sensitivity and noise of the release, None before it is made; the largest of several.
    when, fit : datetime or None, int
        When the charge was committed, UTC; entries of the same `fit` were charged as one step.
    gives_back : bool
        True if the `fit` gave the cost of these releases back to the budget, as it did not make
        them.
    """

    spender: str
    release: str
    uses: int
    cost: PrivacyCost
    unit: str = ""
    sensitivity: float | None = field(default=None, compare=False)
    sigma: float | None = field(default=None, compare=False)
    when: datetime | None = field(default=None, compare=False)
    fit: int = field(default=0, compare=False)
    neighbours: str = "replace_one"
    gives_back: bool = False

    @property
    def protects(self) -> str:
        """Unit of privacy, marked if it is added or removed; empty if unknown."""
        is_added = bool(self.unit) and self.neighbours == "add_remove"
        return self.unit + (ADDED_OR_REMOVED if is_added else "")

    def __post_init__(self) -> None:
        # SQLite would store an integer of numpy as bytes and leave it out of sums.
        object.__setattr__(self, "uses", operator.index(self.uses))
        if self.uses < 0:
            raise ValueError(f"uses must be >= 0, got {self.uses}: it would hand budget back.")


class Amounts(NamedTuple):
    """Amounts of each kind of cost, in units of 1e-40."""

    mu_squared: int = 0
    epsilon: int = 0
    delta: int = 0
    pure_rho: int = 0  # of pure releases, for concentrated differential privacy

    @classmethod
    def of(cls, entry: LedgerEntry) -> "Amounts":
        """Amounts of all uses of a charge of finite cost, each rounded up."""
        mu, epsilon, delta = entry.cost.amounts
        rho = _decimal_units(pure_rho(epsilon))
        each = _square_units(mu), _decimal_units(epsilon), _decimal_units(delta), rho
        return cls(*(entry.uses * amount for amount in each))

    @property
    def cost(self) -> PrivacyCost:
        """Amounts as a `PrivacyCost` in floats."""
        return PrivacyCost(
            math.sqrt(_as_float(self.mu_squared)), _as_float(self.epsilon), _as_float(self.delta)
        )

    def plus(self, other: "Amounts") -> "Amounts":
        """Sum of both."""
        return Amounts(*map(operator.add, self, other))

    def minus(self, other: "Amounts") -> "Amounts":
        """Difference of both."""
        return Amounts(*map(operator.sub, self, other))


def _decimal_units(value: float) -> int:
    """Number in units of 1e-40, rounded up; read as the decimal that Python prints."""
    return math.ceil(Fraction(Decimal(repr(float(value)))) * UNIT)


def _square_units(value: float) -> int:
    """Square of a number in units of 1e-40, rounded up."""
    return math.ceil(Fraction(float(value)) ** 2 * UNIT)


def _as_float(units: int) -> float:
    """Number of units of 1e-40 as a float; infinity where it overflows."""
    try:
        return units / UNIT
    except OverflowError:
        return math.inf


def _best_part(whole: float, value: Callable[[float], float]) -> float:
    """Part ``whole / 2^n`` with the largest `value`; 0 if `whole` is 0."""
    halved = (whole * 2.0**-n for n in range(40))  # to a millionth of a millionth
    return max((part for part in halved if part > 0), key=value, default=0.0)


NOTHING = Amounts()


@dataclass(frozen=True)
class Spending:
    """Exact sums of the costs charged to a ledger, and the units of privacy that they protect."""

    amounts: Amounts = NOTHING  # largest sums so far, which no giving back lowers
    # Part of these that fits gave back: later charges take it first, each kind of cost for itself.
    given_back: Amounts = NOTHING
    unbounded: bool = False  # whether an infinite cost was among them
    units: frozenset[str] = frozenset()  # what the charges that name a unit of privacy protect

    def plus(self, entries: Sequence[LedgerEntry]) -> "Spending":
        """Sum of this spending and of further charges, in their order, as a new one."""
        amounts, given_back = self.amounts, self.given_back
        finite = [entry for entry in entries if all(map(math.isfinite, entry.cost.amounts))]
        for entry in finite:
            of_entry = Amounts.of(entry)
            if entry.gives_back:
                given_back = given_back.plus(of_entry)
                continue
            taken = Amounts(*map(min, given_back, of_entry))
            given_back = given_back.minus(taken)
            amounts = amounts.plus(of_entry.minus(taken))
        if any(map(operator.lt, amounts, given_back)):
            raise ValueError("more would be given back than was charged.")
        return Spending(
            amounts, given_back, self.unbounded or len(finite) < len(entries),
            self.units.union(entry.protects for entry in entries if entry.unit),
        )  # fmt: skip

    @property
    def cost(self) -> PrivacyCost:
        """Sums as a `PrivacyCost` in floats."""
        cost = self.amounts.cost
        return replace(cost, mu=math.inf) if self.unbounded else cost

    @property
    def rho(self) -> float:
        """Rho of the zero-concentrated differential privacy of everything spent."""
        rho = _as_float(self.amounts.mu_squared) / 2 + _as_float(self.amounts.pure_rho)
        return math.inf if self.unbounded else rho

    def epsilon_at(self, delta: float) -> float:
        """Smallest known epsilon at `delta`, by basic or by concentrated composition."""
        cost = self.cost
        added = cost.epsilon_at(delta)
        if cost.epsilon == 0:
            return added
        return min(added, zcdp_epsilon_at_delta(self.rho, delta - cost.delta))

    def within(self, epsilon: float, delta: float) -> bool:
        """Return True if a budget (epsilon, delta) covers the spending, but for rounding."""
        return self.epsilon_at(delta) <= epsilon * (1 + ROUNDING)

    def _square_left(self, epsilon: float, delta: float) -> float:
        """Squared mu that a budget leaves for Gaussian noise, with what was given back."""
        if not self.within(epsilon, delta):  # a budget that was lowered
            return 0.0
        cost, square_left = self.cost, 0.0
        spare = delta - cost.delta
        if epsilon > cost.epsilon and spare > 0:
            # Squares of all mu add up to that of the largest one.
            largest = gaussian_mu(epsilon - cost.epsilon, spare)
            square_left = (largest - cost.mu) * (largest + cost.mu)
        if cost.epsilon > 0:  # or by concentrated composition, where mu costs rho = mu^2 / 2
            square_left = max(square_left, 2 * (zcdp_rho_at_delta(epsilon, spare) - self.rho))
        square_left = max(square_left, 0.0) + _as_float(self.given_back.mu_squared)
        return min(square_left, sys.float_info.max)

    def gaussian_left(self, k: int, epsilon: float, delta: float) -> float:
        """Epsilon that a budget leaves for each of `k` further fits with Gaussian noise."""
        if math.isinf(epsilon):
            return epsilon
        return gaussian_epsilon(math.sqrt(self._square_left(epsilon, delta) / k), delta)

    def vocabulary_left(self, k: int, epsilon: float, delta: float) -> tuple[float, float]:
        """Epsilon and delta that a budget leaves for each of `k` further vocabularies."""
        # Vocabularies share the delta that is left; each sets a fraction aside for its threshold.
        delta_each = max(delta - self.cost.delta, 0.0) / k
        if math.isinf(epsilon):
            return math.inf, delta_each
        most = THRESHOLD_FRACTION * delta_each
        aside, square = self.aside_left(k, most, epsilon, delta)
        delta_each = aside / THRESHOLD_FRACTION
        return gaussian_epsilon(math.sqrt(square / k), delta_each - aside), delta_each

    def aside_left(self, k: int, most: float, epsilon: float, delta: float) -> tuple[float, float]:
        """Delta, at most `most`, that each of `k` further fits sets aside; squared mu left for all.

        The delta is the one with which vocabularies have the lowest thresholds.
        """

        def square_beside(aside: float) -> float:
            """Squared mu that is left if each fit sets this much of delta aside."""
            return self._with_delta(k * _decimal_units(aside))._square_left(epsilon, delta)

        # A threshold is in proportion to this quantile over mu: maximise the inverse.
        aside = _best_part(most, lambda x: math.sqrt(square_beside(x)) / -float(ndtri(x)))
        return aside, square_beside(aside)

    def search_left(self, k: int, epsilon: float, delta: float) -> tuple[float, float]:
        """Epsilon and delta that a budget leaves for each of `k` further searches."""

        def epsilon_left(delta_each: float) -> float:
            """Epsilon that is left for each if all take this much of delta."""
            later = self._with_delta(k * _decimal_units(delta_each))
            return later.pure_left(k, epsilon, delta)

        def mu_of_search(delta_each: float) -> float:
            """Strength of each, as the mu of Gaussian noise of this epsilon and delta."""
            each = epsilon_left(delta_each)
            return gaussian_mu(each, delta_each) if each else 0.0

        # Searches share the delta that is left, but for what earlier Gaussian noise needs.
        delta_each = _best_part(max(delta - self.cost.delta, 0.0) / k, mu_of_search)
        return epsilon_left(delta_each), delta_each

    def pure_left(self, k: int, epsilon: float, delta: float) -> float:
        """Epsilon that a budget leaves for each of `k` further fits with pure noise."""
        if math.isinf(epsilon):
            return epsilon
        # Pure costs add up by epsilons or by zCDP: take the sum that leaves more. One that exceeds
        # the budget covers no further cost, whatever was given back.
        spare, most, each = delta - self.cost.delta, epsilon * (1 + ROUNDING), [0.0]
        if (added := self.cost.epsilon_at(delta)) <= most:
            left = max(epsilon - added, 0.0) + _as_float(self.given_back.epsilon)
            each.append(left / k)
        if zcdp_epsilon_at_delta(self.rho, spare) <= most:
            rho = max(zcdp_rho_at_delta(epsilon, spare) - self.rho, 0.0)
            each.append(epsilon_of_rho((rho + _as_float(self.given_back.pure_rho)) / k))
        return max(each)

    def _with_delta(self, more: int) -> "Spending":
        """Return the spending with `more` delta, in units of 1e-40, set aside."""
        amounts = self.amounts._replace(delta=self.amounts.delta + more)
        return replace(self, amounts=amounts)

    def kind_of(self, after: "Spending") -> str:
        """Kind of the charges that were added from this spending to the later one, `after`."""
        before, now = (one.amounts.minus(one.given_back) for one in (self, after))
        uses_delta = now.delta > before.delta
        if now.mu_squared > before.mu_squared or after.unbounded:
            return "vocabulary" if uses_delta else "gaussian"
        return "search" if uses_delta else "pure"


@dataclass(frozen=True)
class BudgetChange:
    """Change of a budget.

    Attributes
    ----------
    when : datetime
        When it was committed, UTC.
    old, new : float
        The epsilon before and after.
    """

    when: datetime
    old: float
    new: float

    def __str__(self) -> str:
        return f"On {self.when:%Y-%m-%d %H:%M} the budget became {self.new:g}; it was {self.old:g}"


@dataclass(frozen=True)
class Balance:
    """Budget (epsilon, delta) of a ledger, and what was spent, at one moment."""

    epsilon: float
    delta: float
    spent: Spending

    def covers(self, spending: Spending) -> bool:
        """Return True if the budget covers a spending."""
        return spending.within(self.epsilon, self.delta)

    @property
    def spent_epsilon(self) -> float:
        """Spent epsilon, at the budget's delta; all of the budget if it is spent up to rounding."""
        spent = self.spent.epsilon_at(self.delta)
        return self.epsilon if math.isclose(spent, self.epsilon, rel_tol=ROUNDING) else spent

    def left(self, k: int, kind: str) -> tuple[float, float]:
        """Epsilon and delta that each of `k` further fits of one of the `KINDS` may ask for."""
        budget, delta = (self.epsilon, self.delta), self.delta
        if kind == "pure" or self.delta == 0:
            epsilon = self.spent.pure_left(k, *budget)
        elif kind == "gaussian":
            epsilon = self.spent.gaussian_left(k, *budget)
        elif kind == "search":
            epsilon, delta = self.spent.search_left(k, *budget)
        else:
            epsilon, delta = self.spent.vocabulary_left(k, *budget)
        is_pure = kind in ("pure", "search") or self.delta == 0
        all_given_back = self.spent.given_back
        given_back = all_given_back.epsilon if is_pure else all_given_back.mu_squared
        is_used_up = not given_back and self.spent_epsilon == self.epsilon < math.inf
        return 0.0 if is_used_up else epsilon, delta

    def advice(self, kind: str) -> str:
        """Clause of an error: what a fit of this kind may ask for, or else one of pure noise."""
        # To three digits, rounded down, so that 0.99999... of rounding is 1.
        rounded = Context(prec=3, rounding=ROUND_DOWN).create_decimal_from_float
        for possible in (kind if self.delta else "pure", "pure"):
            left = self.left(k=1, kind=possible)
            epsilon, delta = (float(rounded(amount * (1 + ROUNDING))) for amount in left)
            if epsilon > 0:
                noise = "pure noise (delta=0)" if possible == "pure" else f"delta={delta:g}"
                return (
                    f"Ask for {noise}, with epsilon={epsilon:g} at most (see remaining(kind="
                    f"{possible!r})), or "
                )
        return "Nothing is left: "

    def strands(self, after: Spending) -> bool:
        """Return True if `after` uses up all of delta, and leaves epsilon to pure noise alone."""
        is_used_up = after.cost.delta >= self.delta * (1 - ROUNDING)
        is_same = after.amounts.delta == self.spent.amounts.delta
        if math.isinf(self.epsilon) or is_same or not is_used_up:
            return False
        epsilon_left, _ = replace(self, spent=after).left(k=1, kind="pure")
        return epsilon_left > ROUNDING * self.epsilon

    def lacks_delta(self, after: Spending) -> bool:
        """Return True if spending `after` exceeds the budget by its delta, whatever its epsilon."""
        if after.unbounded:
            return False
        exceeds = after.cost.delta > self.delta * (1 + ROUNDING)
        if after.cost.delta >= self.delta and (exceeds or after.amounts.mu_squared > 0):
            return True  # Gaussian noise needs some delta of its own
        # True if the earlier charges alone would no longer fit at the delta that is left.
        uses_delta = after.amounts.delta > self.spent.amounts.delta
        earlier = self.spent.amounts._replace(delta=after.amounts.delta)
        earlier_at_new_delta = replace(self.spent, amounts=earlier)
        return uses_delta and self.covers(self.spent) and not self.covers(earlier_at_new_delta)


def unit_and_neighbours(protects: str) -> tuple[str, str]:
    """Split a name that `LedgerEntry.protects` made into unit and neighbours."""
    if protects.endswith(ADDED_OR_REMOVED):
        return protects.removesuffix(ADDED_OR_REMOVED), "add_remove"
    return protects, "replace_one"


def check_one_unit(before: frozenset[str], asked: frozenset[str], *, by_fits: bool) -> None:
    """Raise BudgetError if charges `asked` protect other units, or neighbours, than those `before`.

    `by_fits` is False where no fit was charged: `before` is then what the budget was made for.
    """
    subject = "other fits of this budget protect" if by_fits else "this budget was made to protect"
    after = before | asked
    # A ledger with mixed kinds of units accepts further charges of each of them.
    columns = {column_of(unit) for unit in after} - {""}
    new_columns = columns - {column_of(unit) for unit in before}
    if new_columns and len(columns) > 1:
        others = " and ".join(map(repr, sorted(columns - {min(new_columns)})))
        raise BudgetError(
            f"This would protect those whom column {min(new_columns)!r} names, but {subject} those "
            f"of {others}: their costs add up to no promise about either. "
            "Nothing was charged. Where both columns name the same people, give both one name; "
            "else each needs a BudgetAccountant of its own. BudgetAccountant(..., units='any') "
            "adds them up: each guarantee then holds for its own column alone."
        )
    if columns and any(unit_and_neighbours(unit)[0] == PERSON for unit in asked):
        name = min(columns)
        raise BudgetError(
            f"Labels of persons must be a column of the name {name!r}, such as groups=table"
            f"[{name!r}], or for a completion the column of the table X at unit_mode, as {subject} "
            "those whom it names; these have no name, as arrays, and may be anybody's. Nothing was "
            "charged."
        )
    kinds_before, kinds = {*map(_kind_of_unit, before)}, {*map(_kind_of_unit, after)}
    new = [unit for unit in sorted(after - before) if _kind_of_unit(unit) not in kinds_before]
    if not new or len(kinds) == 1:
        return
    unit = new[0]
    noun, _ = _kind_of_unit(unit)
    if columns and noun == "row":
        raise BudgetError(
            f"This would protect one {unit!r}, but {subject} those whom column {min(columns)!r} "
            f"names: pass groups=table[{min(columns)!r}] to this fit. Nothing was charged."
        )
    advice = "Give all fits the same groups= (or none of them) and the same neighbours="
    if not by_fits:
        advice = "Pass groups=, labels of persons"
    if noun in {noun_before for noun_before, _ in kinds_before}:  # only neighbours differ
        advice = "Give all fits the same neighbours="
        if not by_fits:
            advice = (
                "A budget made with units= is for neighbours='replace_one': give fits that; or "
                "make one without units=, whose first fit decides what it protects"
            )
    others = " and ".join(map(repr, sorted({*map(without_column, after - {unit})})))
    raise BudgetError(
        f"This would protect one {unit!r}, but {subject} one {others}: "
        f"their costs add up to no promise about either. Nothing was charged. {advice}; or "
        "give each kind a BudgetAccountant of its own. BudgetAccountant(..., units='any') adds "
        "them up: each guarantee then holds for its own unit and neighbours alone."
    )


def _kind_of_unit(unit: str) -> tuple[str, str]:
    """Kind of a unit, such as "row" or "person", and its neighbours, from its name."""
    unit, relation = unit_and_neighbours(without_column(unit))
    return "row" if unit in ROWS else unit, relation


def without_column(unit: str) -> str:
    """Unit and neighbours, without the column that says whose row it is."""
    return unit.replace(f": {column_of(unit)}", "")


def column_of(unit: str) -> str:
    """Name of the column that says whose row it is; empty where it is not known."""
    return unit_and_neighbours(unit)[0].partition(": ")[2]


def person_of(column: object) -> str:
    """Name of persons as units, with that of the column of their labels if it can be shown."""
    shown = isinstance(column, str) and column.isprintable()
    return f"{PERSON}: {column}" if shown and column else PERSON


def charges_of(
    plan: ReleasePlan, spender: str, unit: str = "", neighbours: str = "replace_one"
) -> list[LedgerEntry]:
    """Ledger entries for all releases of a plan, one for each."""
    # A relation described in words (`fit_tensor`) replaces something too.
    relation = "add_remove" if neighbours == "add_remove" else "replace_one"
    return [
        LedgerEntry(
            spender, planned.name, planned.uses, planned.cost, unit,
            neighbours=relation,
        )
        for planned in plan.planned
    ]  # fmt: skip
