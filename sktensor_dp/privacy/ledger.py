"""Where charges are kept: exact sums of costs, and the ledger of one process.

Costs are added as integers in units of 1e-40, each rounded up once, so sums do not
depend on their order and a thousand charges of a thousandth are exactly one.
"""

import json
import math
import operator
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

from sktensor_dp.exceptions import BudgetError, LedgerError
from sktensor_dp.privacy.calibration import (
    concentrated_epsilon,
    concentrated_rho,
    epsilon_of_rho,
    gaussian_epsilon,
    gaussian_mu,
    pure_rho,
)
from sktensor_dp.privacy.plan import ROUNDING, PrivacyCost, ReleasePlan, budget_fractions
from sktensor_dp.privacy.tables import Shown, Table, as_frame, finite, printable

# Finer than any cost a plan assigns, so rounding up stays far below ROUNDING.
UNIT = 10**40

# What marks a unit that is hidden when it is added or removed, in files too: versions that do
# not know it take it for another unit, and refuse to add up the two.
COMES_AND_GOES = ", added or removed"
KINDS = {
    "document": frozenset(["row"]),
    "sample": frozenset(["row"]),
    "row": frozenset(["row", "entry"]),
}


@dataclass(frozen=True)
class LedgerEntry:
    """One charge: who spent how much on what.

    Attributes
    ----------
    spender : str
        The estimator, or ``"caller"``.
    release : str
        Name in the catalogue of releases.
    uses : int
        How many releases the charge pays for.
    cost : PrivacyCost
        Of each use.
    unit : str
        Unit of privacy; empty where it is not known.
    sensitivity, sigma : float or None
        Of the release once it was made (the largest sensitivity where one charge
        pays for several; that of a stream's first batch), None before. Not part of
        comparisons, nor are the next.
    when : datetime or None
        When the charge was committed, UTC.
    fit : int
        Entries with the same number were charged as one step.
    neighbours : str
        ``"replace_one"``: the cost is that of replacing a unit. ``"add_remove"``: that of
        adding or removing one.
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

    @property
    def protects(self) -> str:
        """The unit and what may happen to it, in one name; empty where it is not known."""
        return self.unit + COMES_AND_GOES * bool(self.unit and self.neighbours == "add_remove")

    def __post_init__(self) -> None:
        # SQLite would keep an integer of numpy's as bytes, and leave it out of sums.
        object.__setattr__(self, "uses", operator.index(self.uses))
        if self.uses < 0:
            raise ValueError(f"uses must be >= 0, got {self.uses}: it would hand budget back.")


def _decimal_units(value: float) -> int:
    """Units of a number as it is printed: 0.01 is one hundredth."""
    return math.ceil(Fraction(Decimal(repr(float(value)))) * UNIT)


def _square_units(value: float) -> int:
    above, below = float(value).as_integer_ratio()
    return -(-above * above * UNIT // (below * below))


def _as_float(units: int) -> float:
    try:
        return units / UNIT
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Spending:
    """What has been spent: exact sums of costs, and what they protect."""

    # In units of 1e-40.
    mu_squared: int = 0
    epsilon: int = 0
    delta: int = 0
    pure_rho: int = 0  # of pure releases, for concentrated differential privacy
    unbounded: bool = False  # whether an infinite cost was among them
    units: frozenset[str] = frozenset()  # what the charges that name a unit of privacy protect

    def plus(self, entries: Sequence[LedgerEntry]) -> "Spending":
        """Return the spending after further charges."""
        finite = [(e.cost, e.uses) for e in entries if not any(map(math.isinf, e.cost.amounts))]
        return Spending(
            self.mu_squared + sum(uses * _square_units(cost.mu) for cost, uses in finite),
            self.epsilon + sum(uses * _decimal_units(cost.epsilon) for cost, uses in finite),
            self.delta + sum(uses * _decimal_units(cost.delta) for cost, uses in finite),
            self.pure_rho
            + sum(uses * _decimal_units(pure_rho(cost.epsilon)) for cost, uses in finite),
            self.unbounded or len(finite) < len(entries),
            self.units.union(entry.protects for entry in entries if entry.unit),
        )

    @property
    def cost(self) -> PrivacyCost:
        """The sums as floating-point numbers."""
        mu = math.inf if self.unbounded else math.sqrt(_as_float(self.mu_squared))
        return PrivacyCost(mu, _as_float(self.epsilon), _as_float(self.delta))

    @property
    def rho(self) -> float:
        """The whole as rho of concentrated differential privacy."""
        rho = _as_float(self.mu_squared) / 2 + _as_float(self.pure_rho)
        return math.inf if self.unbounded else rho

    def epsilon_at(self, delta: float) -> float:
        """Smallest known epsilon at ``delta``: the smaller of two valid bounds."""
        cost = self.cost
        added = cost.epsilon_at(delta)
        if cost.epsilon == 0:
            return added
        return min(added, concentrated_epsilon(self.rho, delta - cost.delta))

    def within(self, epsilon: float, delta: float) -> bool:
        """Whether a budget covers it."""
        return self.epsilon_at(delta) <= epsilon * (1 + ROUNDING)

    def gaussian_left(self, k: int, epsilon: float, delta: float) -> float:
        """Epsilon at delta that a budget leaves for each of k fits with Gaussian noise."""
        cost, spare, square = self.cost, delta - self.cost.delta, 0.0
        if math.isinf(epsilon):
            return epsilon
        if epsilon > cost.epsilon and spare > 0:
            most = gaussian_mu(epsilon - cost.epsilon, spare)
            square = (most - cost.mu) * (most + cost.mu)
        if cost.epsilon > 0:
            square = max(square, 2 * (concentrated_rho(epsilon, spare) - self.rho))
        square = min(max(square, 0.0), sys.float_info.max)
        return gaussian_epsilon(math.sqrt(square / k), delta)

    def pure_left(self, k: int, epsilon: float, delta: float) -> float:
        """Epsilon that a budget leaves for each of k fits with pure noise."""
        if math.isinf(epsilon):
            return epsilon
        rho = concentrated_rho(epsilon, delta - self.cost.delta) - self.rho
        return max(0.0, (epsilon - self.cost.epsilon_at(delta)) / k, epsilon_of_rho(rho / k))


# Raises an error unless spending may go from the first to the second.
Admission = Callable[[Spending, Spending], None]


class Ledger(Protocol):
    """Keeps charges; every method is one step for all threads and processes."""

    def spending(self) -> Spending:
        """Return what has been spent."""

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return every charge, in order."""

    def charge(self, entries: Sequence[LedgerEntry], admit: Admission, ticket: str) -> int:
        """Record charges if ``admit`` does not raise; return their common number.

        They pay for a further batch of a stream too: the one that shows the ticket.
        """

    def redeem(self, ticket: str, later: str) -> bool:
        """Exchange a ticket for another one; False if it is not, or no longer, known."""

    def describe(self, fit: int, release: str, sensitivity: float, sigma: float) -> None:
        """Add to a charge what became known when its release was made."""


class MemoryLedger:
    """Charges of one process."""

    def __init__(self) -> None:
        self._entries: list[LedgerEntry] = []
        self._spent = Spending()
        self._lock = threading.RLock()
        self._fits = 0
        self._tickets: set[str] = set()
        self._process = os.getpid()

    def spending(self) -> Spending:
        """Return what has been spent."""
        return self._spent

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return every charge, in order."""
        with self._lock:
            return tuple(self._entries)

    def charge(self, entries: Sequence[LedgerEntry], admit: Admission, ticket: str) -> int:
        """Record charges if ``admit`` does not raise; return their common number."""
        self._check_process()
        with self._lock:
            after = self._spent.plus(entries)
            admit(self._spent, after)
            self._fits += 1
            now = datetime.now(UTC)
            self._entries.extend(replace(entry, when=now, fit=self._fits) for entry in entries)
            self._spent = after
            self._tickets.add(ticket)
            return self._fits

    def redeem(self, ticket: str, later: str) -> bool:
        """Exchange a ticket for another one; False if it is not, or no longer, known."""
        self._check_process()
        with self._lock:
            if ticket not in self._tickets:
                return False
            self._tickets.add(later)
            self._tickets.remove(ticket)
            return True

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(
                "This process was forked from the one that made the BudgetAccountant, which would "
                "not see the charge. Give the accountant a file that processes can share: "
                "BudgetAccountant(epsilon, delta, path='budget.sqlite')."
            )

    def describe(self, fit: int, release: str, sensitivity: float, sigma: float) -> None:
        """Add to a charge what became known when its release was made."""
        with self._lock:
            # Numbers of charges only grow, and the one asked for is among the last.
            for place in range(len(self._entries) - 1, -1, -1):
                entry = self._entries[place]
                if entry.fit < fit:
                    break
                if (entry.fit, entry.release) == (fit, release):
                    self._entries[place] = replace(entry, sensitivity=sensitivity, sigma=sigma)


def told_apart(protects: str) -> tuple[str, str]:
    """The unit of a name, and its neighbours."""
    if protects.endswith(COMES_AND_GOES):
        return protects.removesuffix(COMES_AND_GOES), "add_remove"
    return protects, "replace_one"


def check_one_unit(before: frozenset[str], after: frozenset[str]) -> None:
    """Refuse a unit of privacy, or neighbours, of another kind than others of the ledger."""
    # A ledger in which kinds are mixed goes on to take each of them.
    for unit in sorted(after - before):
        known = any(_kinds(other) == _kinds(unit) for other in before)
        if known or all(_kinds(other) & _kinds(unit) for other in after):
            continue
        others = " and ".join(map(repr, sorted(after - {unit})))
        relations = {told_apart(one)[1] for one in after}
        if len(relations) > 1:
            raise BudgetError(
                f"This would protect one {unit!r}, but other fits of this budget protect one "
                f"{others}: neighbours='replace_one' tells how many units there are, and protects "
                "none that is added or removed. Nothing was charged. Give all fits the same "
                "neighbours, or each kind a BudgetAccountant of its own. BudgetAccountant(..., "
                "units='any') adds them up: each guarantee then holds for its own neighbours. "
                "(Where a unit is replaced, a fit with 'add_remove' costs twice its mu or epsilon.)"
            )
        raise BudgetError(
            f"This would protect one {unit!r}, but other fits of this budget protect one "
            f"{others}: their costs add up to no promise about either. Nothing was charged. "
            "Give all fits the same groups= (or none of them), or each unit a "
            "BudgetAccountant of its own. BudgetAccountant(..., units='any') adds them up: "
            "each guarantee then holds for its own unit alone."
        )


def _kinds(unit: str) -> frozenset[str]:
    """What a unit may be of: rows have many names, and some rows are entries of a tensor."""
    unit, relation = told_apart(unit)
    kinds = frozenset(["group"]) if unit.startswith("group of") else KINDS.get(unit, {unit})
    mark = COMES_AND_GOES if relation == "add_remove" else ""
    return frozenset(kind + mark for kind in kinds)


def charges_of(
    plan: ReleasePlan, spender: str, unit: str = "", neighbours: str = "replace_one"
) -> list[LedgerEntry]:
    """Ledger entries for every release of a plan."""
    # Neighbours that are told in words replace something, too.
    relation = "add_remove" if neighbours == "add_remove" else "replace_one"
    return [
        LedgerEntry(
            spender, planned.name, planned.uses, planned.cost, unit,
            neighbours=relation,
        )
        for planned in plan.releases
    ]  # fmt: skip


class Receipt:
    """Proof that a fit was charged; takes down what its releases were."""

    # `ticket` stands for the next batch of the stream, if the fit is a batch of one: it is worth
    # one batch, whichever copy of the model shows it first. `fit` is 0 for a batch that an earlier
    # charge pays for, whose releases that charge has told of.

    def __init__(self, ledger: Ledger, fit: int, ticket: str) -> None:
        self._ledger = ledger
        self.fit, self.ticket = fit, ticket
        self._largest: dict[str, float] = {}

    def released(self, name: str, sensitivity: float, sigma: float) -> None:
        """Take down sensitivity and sigma, public numbers, of a release about to be made."""
        # Of several uses the ledger keeps the one of largest sensitivity (the cost fixes the ratio
        # of the two), so equal ones cost one write.
        if self.fit and not sensitivity <= self._largest.get(name, -math.inf):
            self._ledger.describe(self.fit, name, sensitivity, sigma)
            self._largest[name] = sensitivity


HEAD = ["when", "fit", "estimator", "release", "unit", "uses"]
TEXTS = ("when", "estimator", "release", "unit")
COSTS = ["mu", "epsilon", "delta"]
NUMBERS = ["sensitivity", "sigma", *COSTS, "fraction"]
LEGEND = (
    "fraction: of the budget, all uses together; of its mu^2 for Gaussian releases, of its epsilon "
    "for others"
)
# Who scores each fold by itself, and what a sum of such charges does not say.
SCORER = "PrivateScorer"
FOLDS = (
    "Each score was charged for the rows that it was given. Over folds the total is a guarantee if "
    "nobody decides in which fold others are, as with PrivateKFold; with GroupKFold, which goes by "
    "sizes of groups, or with StratifiedKFold it protects nobody."
)


@dataclass(frozen=True, repr=False)
class Statement(Shown):
    """The state of one budget.

    Attributes
    ----------
    scope : str
        Name of the data set.
    epsilon, delta : float
        Budget.
    spent : float
        Composed epsilon at ``delta``.
    entries : tuple of LedgerEntry
        Every charge.
    path : str or None
        Absolute path of the file it is kept in; None in memory.

    Examples
    --------
    >>> print(Statement("survey", 2.0, 1e-6, 0.5, ()))
    survey: epsilon 0.5 of 2 is spent at delta 1e-06, by 0 fits
    when  fit  estimator  release  unit  uses  sensitivity  sigma  mu  epsilon  delta  fraction
    """

    scope: str
    epsilon: float
    delta: float
    spent: float
    entries: tuple[LedgerEntry, ...]
    path: str | None = None

    _page = "budget.html"

    @property
    def summary(self) -> str:
        """Total and budget in one sentence."""
        fits = len({entry.fit for entry in self.entries})
        return (
            f"{printable(self.scope)}: epsilon {self.spent:.6g} of {self.epsilon:g} is spent at "
            f"delta {self.delta:g}, by {fits} {'fit' if fits == 1 else 'fits'}"
        )

    @property
    def where(self) -> str:
        """Which ledger this is: its file."""
        return "ledger in memory" if self.path is None else f"ledger {printable(self.path)}"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per planned release as plain Python objects."""
        costs = [(entry.cost, entry.uses) for entry in self.entries]
        fractions = budget_fractions(costs, self.epsilon, self.delta)
        return [
            {
                "when": None if entry.when is None else entry.when.isoformat(timespec="seconds"),
                "fit": entry.fit,
                "estimator": entry.spender,
                "release": entry.release,
                "unit": entry.protects,
                "uses": entry.uses,
                "sensitivity": entry.sensitivity,
                "sigma": entry.sigma,
                **asdict(entry.cost),
                "fraction": fraction,
            }
            for entry, fraction in zip(self.entries, fractions, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects; infinity as the string ``"inf"``."""
        return finite(
            {
                "scope": self.scope,
                "path": self.path,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "spent": self.spent,
                "entries": self.rows(),
            }
        )

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the rows as a table.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Of which library.

        Raises
        ------
        ImportError
            If that library is not installed.
        """
        whens = [None if e.when is None else e.when.astimezone(UTC) for e in self.entries]
        rows = [{**row, "when": when} for row, when in zip(self.rows(), whens, strict=True)]
        return as_frame(rows, HEAD + NUMBERS, backend)

    def _table(self) -> Table:
        def text(name: str, value: Any) -> str:
            # A release has one kind of cost; the others are not 0 but not asked for.
            if value is None or (name in COSTS and value == 0):
                return ""
            if name == "fraction":
                return f"{value:.1%}"
            return f"{value:.4g}" if name in NUMBERS else printable(str(value))

        rows = [[text(*cell) for cell in row.items()] for row in self.rows()]
        notes = [LEGEND] if self.entries else []
        if any(entry.spender == SCORER for entry in self.entries):
            notes.append(FOLDS)
        return Table(self.summary, HEAD + NUMBERS, rows, notes, TEXTS)
