"""A budget that several fits draw on, in this process or in many."""

import json
import math
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, replace
from functools import partial
from itertools import accumulate, chain, repeat
from numbers import Real
from typing import TYPE_CHECKING, Any

from sktensor_dp.checks.display import COSTS, Table, TableDisplay, cell, counted, finite, plain
from sktensor_dp.checks.parameters import Number, check_sizes, shown
from sktensor_dp.exceptions import BudgetError, LedgerError, PrivacyLeakWarning
from sktensor_dp.privacy.budget_parts import (
    USES_DELTA,
    SplitPart,
    as_charges,
    divided,
    so_far,
    told_apart,
    unpaid_parts,
)
from sktensor_dp.privacy.ledger_entries import (
    KINDS,
    PERSON,
    Balance,
    BudgetChange,
    LedgerEntry,
    Spending,
    check_one_unit,
    column_of,
    person_of,
    without_column,
)
from sktensor_dp.privacy.plan import ROUNDING, FitBudget, PrivacyCost, ReleasePlan, budget_fractions

if TYPE_CHECKING:
    from sktensor_dp.privacy.ledger import Receipt

# Columns of the table of charges.
HEAD = ["when", "fit", "estimator", "planned release", "unit", "planned uses"]
TEXTS = ("when", "estimator", "planned release", "unit")
NUMBERS = ["sensitivity", "sigma", *COSTS, "fraction"]
LEGEND = (
    "Each line is a charge for what a fit planned, made before its first noise: a line without "
    "sigma was not released, and a fit may make more of one release and fewer of another at the "
    "same cost. What was released is in the report of the fit, and in its statement.json. "
    "fraction: of the budget, all uses together; of its mu^2 for Gaussian releases, of its epsilon "
    "for others"
)
GIVEN_BACK = (
    "planned uses below 0: releases that a fit did not make and gave back. The total still counts "
    "them; later fits spend them first, as remaining() says"
)
# Name of private scorers, which are charged for each fold, and a note on the sum of their charges.
SCORER = "PrivateScorer"
CHECK = "check_inputs"  # likewise of checks of inputs
FOLDS = (
    "Each score was charged for the rows that it was given. Over folds the total is a guarantee if "
    "nobody decides in which fold others are, as with PrivateKFold; with GroupKFold, which goes by "
    "sizes of groups, or with StratifiedKFold it protects nobody."
)

# Beginning of the error for a later batch of a stream that is charged like a first one.
UNPAID = (
    "Earlier batches of this stream do not pay for this one: a copy of the model, or its file, "
    "went on from the same batch and goes on at no cost, or they were of other persons or of "
    "another budget. "
)
# No ledger can check this, as which rows are whose stands in the data.
ONE_LABEL = (
    "The total holds for a person who has one label in all of these fits, if nobody's rows decide "
    "which rows of others a fit is given: of folds, with PrivateKFold and groups, not with KFold."
)


def _checked(name: str, value: object, rule: str, allowed: Callable[[float], bool]) -> float:
    """Return `value` as a float, or raise ValueError with `rule` where `allowed` is False."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
    if allowed(number):
        return number
    # Very long integers cannot be printed, and anything but a short number may be data.
    long = isinstance(value, int) and abs(value) > 1e9
    short = isinstance(value, Real | str) and not long and len(repr(value)) < 30
    raise ValueError(
        f"{name} must {rule}; got {repr(value) if short else f'a {type(value).__name__}'}."
    )


def _rows(now: Balance, entries: Sequence[LedgerEntry]) -> list[dict[str, object]]:
    """Charges as dicts, with a value for each column of the table."""
    costs = [(entry.cost, entry.uses) for entry in entries]
    fractions = budget_fractions(costs, now.epsilon, now.delta)
    rows: list[dict[str, object]] = []
    for entry, fraction in zip(entries, fractions, strict=True):
        sign = -1 if entry.gives_back else 1
        rows.append({
            "when": None if entry.when is None else entry.when.isoformat(timespec="seconds"),
            "fit": entry.fit, "estimator": entry.spender, "release": entry.release,
            "unit": entry.protects, "uses": sign * entry.uses, "sensitivity": entry.sensitivity,
            "sigma": entry.sigma, **asdict(entry.cost),
            "fraction": None if fraction is None else sign * fraction,
        })  # fmt: skip
    return rows


def charges_by_fit(entries: Iterable[LedgerEntry]) -> list[list[LedgerEntry]]:
    """Charges of each fit, in the order of the ledger, without what fits gave back."""
    fits: dict[int, list[LedgerEntry]] = {}
    for entry in entries:
        if not entry.gives_back:
            fits.setdefault(entry.fit, []).append(entry)
    return [*fits.values()]


def _cost_of(entries: Sequence[LedgerEntry]) -> PrivacyCost:
    """Cost of charges together."""
    return PrivacyCost.total((one.cost, one.uses) for one in entries)


# Open ``with BudgetAccountant(...)`` blocks of the calling thread, the innermost last.
OPENED: "ContextVar[tuple[BudgetAccountant | None, ...]]" = ContextVar("opened", default=(None,))
# Open blocks of all threads of this process: fits without accountant in other threads are refused.
# Appending and removing are atomic.
HELD: "list[BudgetAccountant]" = []


class BudgetAccountant(TableDisplay):
    """Budget (epsilon, delta) that all fits over the same data share.

    Every fit that is given the accountant is checked and charged *before* its noise is drawn. A
    fit that would exceed the budget is refused and leaves data and budget untouched; a fit that
    fails later keeps its charge.

    Parameters
    ----------
    epsilon : float or None, default=None
        Budget, > 0. Infinity only records. None takes the budget that an existing file has;
        without a `path`, infinity.
    delta : float or None, default=None
        The delta at which the total is stated, in [0, 1). None takes that of an existing
        file, otherwise 1e-6.
    path : str or path-like, optional
        An SQLite file to keep the ledger in; with an `epsilon` it is made if it does not exist.
        Threads, processes and later sessions that name the file share the budget. Without a path
        the ledger ends with the process.
    scope : str or None, default=None
        Name of the data set, which the file keeps: it has one, and refuses another. None takes
        that of an existing file, otherwise ``"default"``.
    units : {"one", "any", "person"} or name of a column, default="one"
        ``"one"`` refuses a fit whose unit of privacy or `neighbours` are of another kind than
        those charged before, or whose ``groups=`` is not a column (a Series) of the name that an
        earlier one had. ``"person"`` refuses the first fit, too, unless it protects persons
        (``groups=``) that are replaced. Another name, such as ``"patient"``: the same, of the
        persons that this column names. A file keeps both, as a charge of nothing.
        ``"any"`` adds costs up whatever they
        protect: the total is for one unit of each kind together. A file does not keep this choice.

    Attributes
    ----------
    entries : tuple of LedgerEntry
        Every charge so far, in order.
    changes : tuple of BudgetChange
        Every change of the budget (`when`, and epsilon, `old` and `new`), in order.
    path : str or None
        Absolute path of the file.

    Raises
    ------
    LedgerError
        If the file cannot be used; a :class:`BudgetError`, like all refusals.
    BudgetError
        If `units` is ``"person"`` or a column, and a file has fits that protect others.
    ValueError
        If epsilon or delta is outside its range, or if one of them, or the scope, differs from
        that of an existing file.

    Notes
    -----
    Clones of an estimator share its accountant, so ``GridSearchCV`` and ``cross_val_score`` are
    charged for every fit. Only an accountant with a ``path`` may be pickled into worker processes
    (``n_jobs=2``). A ``with`` block is seen by the thread that opened it: pass ``accountant=`` to
    fits in generators, in other threads or in processes.

    **Privacy.** Gaussian releases compose exactly: their ``mu ** 2`` add up. Epsilons of pure noise
    are added, or composed as concentrated differential privacy where that gives less. Fits of one
    kind may be planned in view of earlier results; where kinds are mixed, fix in advance what will
    be charged (:meth:`split`; see ``docs/proofs/composition.md``).

    Examples
    --------
    >>> from sktensor_dp import BudgetAccountant
    >>> budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
    >>> budget.spend(0.5, 0)
    BudgetAccountant(epsilon=2.0, delta=1e-06): spent epsilon 0.5
    >>> budget.total()
    (0.5, 1e-06)
    """

    _part_of_search = False  # whether a search pays for all fits that it charges

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        path: str | os.PathLike[str] | None = None,
        scope: str | None = None,
        units: str = "one",
    ) -> None:
        if epsilon is not None:
            epsilon = _checked("epsilon", epsilon, "be > 0, and a number", lambda x: x > 0)
        if delta is not None:
            rule = "lie in [0, 1), and be a number"
            delta = _checked("delta", delta, rule, lambda x: 0 <= x < 1)
        if not isinstance(scope, str | None):
            raise TypeError(f"scope must be a str, got {type(scope).__name__}.")
        if not (isinstance(units, str) and units and units.isprintable()):
            raise ValueError(
                f"units must be 'one', 'any', 'person' or the name of a column, got {units!r}."
            )
        # Imported here, so that importing the package does not load SQLite.
        from sktensor_dp.privacy.ledger import Ledger

        self._ledger = Ledger(path, scope)
        self.scope, self.delta = self._ledger.open(epsilon, delta)
        self.path: str | None = None if path is None else str(self._ledger.file)
        self.units = units
        self._splits: list[list[SplitPart]] = []  # that `split` gave
        self._refused = ""  # why the last search of scikit-learn was refused, if it was
        charged = self._ledger.balance().spent.units
        if units == PERSON:  # persons of any column are persons
            charged = frozenset(map(without_column, charged))
        person = PERSON if units == PERSON else person_of(units)
        if units not in ("one", "any") and person not in charged:
            self.charge([LedgerEntry("caller", "units", uses=1, cost=PrivacyCost(), unit=person)])

    @property
    def epsilon(self) -> float:
        """Budget, as it stands in the ledger now."""
        return self._ledger.balance().epsilon

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every charge so far, in order."""
        return self._ledger.contents().entries

    @property
    def changes(self) -> tuple[BudgetChange, ...]:
        """Every change of the budget, in order."""
        return self._ledger.contents().changes

    @property
    def cost(self) -> PrivacyCost:
        """Cost of everything charged so far: mu composed, epsilon and delta added."""
        return self._ledger.balance().spent.cost

    def total(self) -> tuple[float, float]:
        """Return what has been spent, as (epsilon, delta) at this budget's delta.

        Returns
        -------
        tuple of float
            The composed epsilon, and ``self.delta``; zeros before any charge. It is above the
            budget where that was lowered later.
        """
        now = self._ledger.balance()
        return now.spent_epsilon, now.delta * any(now.spent.cost.amounts)

    def remaining(self, k: int = 1, kind: str = "gaussian") -> FitBudget:
        """Return what each of ``k`` further fits of one kind of noise may ask for.

        It counts what is charged, not the parts of :meth:`split` that no fit has spent yet.

        Parameters
        ----------
        k : int, default=1
            Number of fits to come.
        kind : {"gaussian", "pure", "vocabulary", "search"}, default="gaussian"
            Kind of these fits. ``"pure"``: fits with ``delta=0``, and completions that protect
            single entries, searched over or not. ``"vocabulary"``: fits of
            :class:`~sktensor_dp.PrivateCountVectorizer`, which set half of their delta aside.
            ``"search"``: other :class:`~sktensor_dp.PrivateSearchCV`, which use all of it up, as
            :meth:`spend` does. ``"gaussian"``: all others.

        Returns
        -------
        FitBudget
            A dict ``{"epsilon": ..., "delta": ...}`` for the constructor of each fit, as of
            :meth:`split`. Its delta is ``self.delta``, of which fits with Gaussian or pure noise
            set nothing aside; for ``"pure"`` pass ``delta=0`` in its place. For vocabularies and
            searches it is an equal fraction of what is left, or less where earlier fits need most
            of it. Epsilon is 0 where nothing is left.

        Examples
        --------
        >>> budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
        >>> kinds = ("gaussian", "pure", "vocabulary", "search")
        >>> [round(budget.remaining(10, kind)["epsilon"], 3) for kind in kinds]
        [0.577, 0.2, 0.646, 0.2]
        """
        check_sizes(k=k)
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {shown(kind)}.")
        epsilon, delta = self._ledger.balance().left(int(k), kind)
        return {"epsilon": epsilon, "delta": delta}

    def check(self, epsilon: float, delta: float) -> bool:
        """Return True if (epsilon, delta) can still be spent.

        Parameters
        ----------
        epsilon, delta : float
            Guarantee to be spent, each >= 0.

        Returns
        -------
        bool
            True. Nothing is recorded.

        Raises
        ------
        BudgetError, ValueError
            If it cannot be spent; if epsilon or delta is negative or no number.
        """
        cost = PrivacyCost(epsilon=epsilon, delta=delta)
        self.check_charge([LedgerEntry("caller", "spend", uses=1, cost=cost)])
        return True

    def spend(self, epsilon: float, delta: float) -> "BudgetAccountant":
        """Record a cost that arose outside this library.

        Parameters
        ----------
        epsilon, delta : float
            Guarantee of the release made elsewhere, each >= 0; nothing more is assumed of it.

        Returns
        -------
        self : BudgetAccountant

        Raises
        ------
        BudgetError, ValueError
            As :meth:`check`; nothing is recorded then.
        """
        cost = PrivacyCost(epsilon=epsilon, delta=delta)
        self.charge([LedgerEntry("caller", "spend", uses=1, cost=cost)])
        return self

    def change_budget(self, epsilon: float) -> "BudgetAccountant":
        """Change the budget's epsilon for everyone who shares it; the change is listed.

        Parameters
        ----------
        epsilon : float
            New budget, > 0. Charges stay, also those that exceed it.

        Returns
        -------
        self : BudgetAccountant

        Raises
        ------
        BudgetError, ValueError
            If somebody changes it at the same time; if epsilon is outside its range.

        Examples
        --------
        >>> budget = BudgetAccountant(epsilon=2.0).change_budget(3.0)
        >>> budget.epsilon, len(budget.changes)
        (3.0, 1)
        """
        epsilon = _checked("epsilon", epsilon, "be > 0, and a number", lambda x: x > 0)
        self._ledger.change_budget(self.epsilon, epsilon)
        return self

    def charge(self, entries: Sequence[LedgerEntry], ticket: str | None = None) -> "Receipt":
        """Check and record charges in one step: all of them, or none.

        With a ``path`` they have reached the disk when this returns.

        Parameters
        ----------
        entries : sequence of LedgerEntry
            The charges.
        ticket : str, optional
            Ticket from the receipt of the previous batch of a stream, if the charge of the first
            batch is to pay for this one too. It is used up.

        Returns
        -------
        Receipt
            Stores sensitivity and sigma of releases, and holds the ticket of the next batch.

        Raises
        ------
        BudgetError
            If they exceed what is left, or take what an unspent part of :meth:`split` needs, or
            protect another kind of unit than earlier charges.
        """
        if ticket is not None:
            return self._ledger.charge(entries, partial(self._check, unpaid=UNPAID), ticket)
        # Check parts of `split` first: once the ledger is locked, nobody can read its charges.
        self.check_charge(entries)
        return self._ledger.charge(entries, self._check, None)

    def check_charge(self, entries: Sequence[LedgerEntry]) -> None:
        """Raise the BudgetError that :meth:`charge` would, and record nothing."""
        self._check_split(entries)  # a repeated step is told so, however little is left
        self._check(self._ledger.balance(), entries)

    def check_together(self, entries: Sequence[LedgerEntry], reason: str) -> None:
        """Raise BudgetError, beginning with `reason`, if the budget does not cover several fits."""
        self._check(self._ledger.balance(), entries, reason, "Divide it by split(), or ")

    def _check_groups(self, groups: Any) -> None:
        """Raise BudgetError unless `groups` are labels of the persons that the budget protects."""
        units = self._ledger.balance().spent.units if self.units != "any" else frozenset()
        columns = sorted({*map(column_of, units)} - {""})
        wrong = getattr(groups, "name", None) not in columns if columns else groups is None
        if any(unit.startswith(PERSON) for unit in units) and wrong:
            rule = f"the column {columns[0]!r}" if columns else "given"
            raise BudgetError(
                f"groups must be {rule}, whose persons this budget protects. Nothing was charged."
            )

    def _check_plan(self, plan: ReleasePlan) -> None:
        """Raise BudgetError for a plan of a delta or kind that the budget did not provide for."""
        self._check_part(plan.epsilon, plan.delta, plan.cost)
        unlimited = math.isinf(self.epsilon) or plan.cost.mu == 0
        if unlimited or not 0 < self.delta * (1 + ROUNDING) < plan.delta:
            return
        raise BudgetError(
            f"delta must be {plain(self.delta)} or less, that of the budget: at this delta the fit "
            f"would cost epsilon={plan.cost.epsilon_at(self.delta):.3g}, not {plan.epsilon:g}. "
            "Nothing was charged."
        )

    def _check_part(self, epsilon: float, delta: float, cost: PrivacyCost) -> None:
        """Raise BudgetError for a fit that was given a part of `split` for fits of another kind."""
        several = chain.from_iterable(parts for parts in self._splits if len(parts) > 1)
        parts = [part for part in several if (part.epsilon, part.delta) == (epsilon, delta)]
        if math.isinf(epsilon) or not (parts and any(cost.amounts)):
            return
        kind = Spending().kind_of(Spending().plus([LedgerEntry("caller", "spend", 1, cost)]))
        if not any(part.kind == kind or part.pays(cost) for part in parts):
            raise BudgetError(
                f"split() made this part for a fit of kind {parts[-1].kind!r}, and this one is of "
                f"kind {kind!r}: fits with the other parts could not be paid, or would leave some. "
                "Nothing was charged. Give each fit its own part, of split(kinds=) 'vocabulary' "
                "for one that finds words or categories, 'search' for a PrivateSearchCV, "
                "'gaussian' for others."
            )

    def _check_split(self, entries: Sequence[LedgerEntry]) -> None:
        """Raise BudgetError for a part of `split` that takes what an unpaid part needs.

        Checks of inputs, which are small, may be repeated.
        """
        if any(entry.spender == CHECK for entry in entries):
            return
        cost_of_fit = _cost_of(entries)
        splits = [parts for parts in self._splits if any(part.pays(cost_of_fit) for part in parts)]
        if not splits:
            return
        now, paid, _ = self._ledger.contents()
        costs = [cost_of_fit, *map(_cost_of, charges_by_fit(paid))]
        payable: list[SplitPart] = []  # by what is left now
        for part in unpaid_parts(splits[-1], costs):
            if now.covers(now.spent.plus(as_charges([*payable, part]))):
                payable.append(part)
        if payable and not now.covers(now.spent.plus([*entries, *as_charges(payable)])):
            epsilons = ", ".join(f"{part.epsilon:.3g}" for part in payable)
            raise BudgetError(
                f"This would leave too little for {counted(len(payable), 'part')} of split(), of "
                f"epsilon {epsilons}, that no fit has spent, as where another part is "
                "spent twice: split() divides the whole budget, of which "
                f"{now.spent_epsilon:.4g} is spent. Nothing more was charged. If this "
                "step was fitted before, it still is: fit those after it alone, as by "
                "pipeline[1:].fit(pipeline[0].transform(X)). Otherwise ask for remaining(k), "
                "or for parts of what is left by split(..., of='rest')."
            )

    def earlier_fit(self, entries: Sequence[LedgerEntry]) -> LedgerEntry | None:
        """First charge of the last equal fit; None if :meth:`split` has parts for more."""
        alike = [fit[0] for fit in charges_by_fit(self.entries) if fit == list(entries)]
        cost = _cost_of(entries)
        # Parts of each split that are for such a fit; without a split one fit is meant.
        n_meant = [sum(part.pays(cost) for part in parts) for parts in self._splits]
        return alike[-1] if len(alike) >= max([1, *n_meant]) else None

    def _check_search(self, entries: Sequence[LedgerEntry]) -> None:
        """Raise BudgetError if a search cannot be paid, or leaves an epsilon without any delta."""
        for entry in entries:
            self._check_part(entry.cost.epsilon, entry.cost.delta, entry.cost)
        self.check_charge(entries)
        now = self._ledger.balance()
        after = now.spent.plus(entries)
        if now.strands(after):
            left, _ = replace(now, spent=after).left(1, "pure")
            raise BudgetError(
                "This search would use all of the budget's delta up, and leave an epsilon of "
                f"{left:.3g}, which fits with Gaussian noise could not spend. Nothing was charged. "
                f"Ask for delta={(now.delta - now.spent.cost.delta) / 2:.3g} if others follow, or "
                "plan it by split(kinds=) or remaining(kind='search'), which gives all that is "
                "left."
            )

    def split(
        self,
        fractions: Sequence[float],
        kinds: Sequence[str] | None = None,
        of: str = "budget",
        times: Sequence[int] | None = None,
    ) -> list[FitBudget]:
        """Divide the whole budget, or the rest of it, among fits so that they use it up exactly.

        A fit with one part, such as a repeated one, that leaves too little for the parts that no
        fit has spent is refused. Nothing else is: parts are not kept in the file, and fits that ask
        for :meth:`remaining` may spend them, here and in other programs. Parts of equal fractions
        differ in the sixth digit, by which each is known once it is spent.

        Parameters
        ----------
        fractions : sequence of float
            Fraction of each fit, together 1: of epsilon for pure noise and searches, and of the
            ``mu ** 2`` of the rest for others.
        kinds : sequence of {"gaussian", "pure", "vocabulary", "search"}, optional
            Kind of each fit, as for :meth:`remaining`; all are ``"gaussian"`` by default. A fit
            that is given a part of another kind is refused.
        of : {"budget", "rest"}, default="budget"
            What is divided: the whole budget, whatever is spent, so that a program which is run
            again gets the same parts; or what is left of it.
        times : sequence of int, optional
            Number of equal fits that share each fraction, as those of a ``GridSearchCV`` do; each
            is given the same part. 1 by default: a part is spent once.

        Returns
        -------
        list of FitBudget
            A dict ``{"epsilon": ..., "delta": ...}`` for each fraction, for the constructor.

        Raises
        ------
        BudgetError, ValueError
            If nothing is left of it; if a parameter is none of those above.

        Examples
        --------
        >>> budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
        >>> words, topics = budget.split([0.1, 0.9], ["vocabulary", "gaussian"])
        >>> round(words["epsilon"], 3), round(topics["epsilon"], 3)
        (0.644, 1.888)
        >>> parts = budget.spend(1.0, 0).split([0.1, 0.9], of="rest")
        >>> [round(part["epsilon"], 3) for part in parts]
        [0.291, 0.945]
        """
        rule = "be numbers > 0 that add up to 1"
        several = isinstance(fractions, Collection) and not isinstance(fractions, Mapping)
        if not several or len(fractions) == 0:
            raise ValueError(f"fractions must {rule}, such as [0.3, 0.7]; got {shown(fractions)}.")
        fractions = [_checked("fractions", f, rule, lambda x: 0 < x < math.inf) for f in fractions]
        whole = math.fsum(fractions)
        if round(whole, 9) != 1:
            raise ValueError(f"fractions must {rule}, such as [0.3, 0.7]; their sum is {whole:g}.")
        kinds = ["gaussian"] * len(fractions) if kinds is None else kinds
        if len(kinds) != len(fractions) or not set(kinds) <= set(KINDS):
            raise ValueError(f"kinds must be one of {KINDS} for each fit; got {shown(kinds)}.")
        if of not in ("budget", "rest"):
            raise ValueError(f"of must be 'budget' or 'rest', got {shown(of)}.")
        times, most = [1] * len(fractions) if times is None else [*times], 10**6
        if len(times) != len(fractions) or not all(
            map(Number(1, most, integer=True).accepts, times)
        ):
            raise ValueError(
                f"times must be an int from 1 to {most:,} for each fit; got {shown(times)}."
            )
        of_each = [part / n for part, n in zip(told_apart(fractions), times, strict=True)]
        fractions = [*chain.from_iterable(map(repeat, of_each, times))]
        kinds = [*chain.from_iterable(map(repeat, kinds, times))]
        parts = divided(self._ledger.balance(), fractions, kinds, whole, of_rest=of == "rest")
        self._splits.append(parts)  # to be left to these fits
        # One of the equal parts that each entry of `times` stands for.
        firsts = [parts[last - n] for n, last in zip(times, accumulate(times), strict=True)]
        return [{"epsilon": part.epsilon, "delta": part.delta} for part in firsts]

    def to_json(self) -> str:
        """Return budget, its changes, total and charges as JSON; infinity as ``"inf"``."""
        now, entries, changes = self._ledger.contents()
        listed = [
            {**asdict(change), "when": change.when.isoformat(timespec="seconds")}
            for change in changes
        ]
        stated = finite({
            "scope": self.scope, "path": self.path, "epsilon": now.epsilon, "delta": now.delta,
            "spent": now.spent_epsilon, "changes": listed, "entries": _rows(now, entries),
        })  # fmt: skip
        return json.dumps(stated, indent=2)

    def _table(self) -> Table:
        """Table of the charges, with budget and total in its title."""
        now, entries, changes = self._ledger.contents()
        fits = len({entry.fit for entry in entries if entry.cost != PrivacyCost()})
        title = (
            f"{self.scope}: epsilon {now.spent_epsilon:.6g} of {now.epsilon:g} is spent at "
            f"delta {plain(self.delta)}, by {counted(fits, 'fit')}"
        )
        rows = [[cell(*item) for item in row.items()] for row in _rows(now, entries)]
        notes = [str(change) for change in changes]
        if entries:
            notes.append(LEGEND)
        if any(entry.gives_back for entry in entries):
            notes.append(GIVEN_BACK)
        if any(entry.spender == SCORER for entry in entries):
            notes.append(FOLDS)
        if fits > 1 and any(unit.startswith(PERSON) for unit in now.spent.units):
            notes.append(ONE_LABEL)
        return Table(title, HEAD + NUMBERS, rows, notes, TEXTS)

    def _check(
        self, now: Balance, entries: Sequence[LedgerEntry], unpaid: str = "", advice: str = ""
    ) -> None:
        """Raise BudgetError if charges exceed the budget, or protect another kind of unit.

        Where they exceed it, the message begins with `unpaid` and ends with `advice`, or else says
        what a fit may ask for.
        """
        after = now.spent.plus(entries)
        if self.units != "any":
            has_charges = now.spent.cost != PrivacyCost() or not now.spent.units
            units = frozenset(entry.protects for entry in entries if entry.unit)
            check_one_unit(now.spent.units, units, by_fits=has_charges)
        if not now.covers(after):
            raise BudgetError(f"{unpaid}{self._shortage(now, after, advice)}")

    @staticmethod
    def _shortage(now: Balance, after: Spending, advice: str) -> str:
        """Say which of epsilon and delta is short for the spending `after` a charge."""
        lacks_delta, spent = now.lacks_delta(after), now.spent_epsilon
        # Where delta is short, epsilon is compared as if no delta were set aside.
        without_delta = after
        if lacks_delta and now.delta > 0:
            without_delta = replace(after, amounts=after.amounts._replace(delta=0))
        lacks_epsilon_too = now.delta > 0 and not now.covers(without_delta)
        kind = now.spent.kind_of(after)
        more = "more " if spent > 0 else ""
        nothing = f"Nothing {more}was charged. {advice or now.advice(kind)}"
        delta_too = "; delta is short, too" if lacks_delta else ""
        if not lacks_delta or spent == now.epsilon or lacks_epsilon_too:
            return (
                f"Epsilon is what is short: the budget is {now.epsilon:g}, of which {spent:.6g} is "
                f"spent, and this would bring it to {without_delta.epsilon_at(now.delta):.6g} at "
                f"delta {plain(now.delta)}{delta_too}. {nothing}use a larger budget."
            )
        return (
            f"Delta is what is short: of the budget's {plain(now.delta)}, "
            f"{now.spent.cost.delta:.3g} is used up; of its epsilon {now.epsilon:g}, {spent:.6g}. "
            f"{USES_DELTA.get(kind, 'Gaussian noise needs some')}. "
            f"{nothing}use a budget of larger delta."
        )

    def _so_far(self) -> str:
        """Sentence that says what is spent; empty if nothing is, or the ledger is not readable."""
        with suppress(LedgerError):
            return so_far(self._ledger.balance())
        return ""

    def __enter__(self) -> "BudgetAccountant":
        OPENED.set((*OPENED.get(), self))
        HELD.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self in HELD:
            HELD.remove(self)
        # Remove this block, not the last one: a generator that yields inside a block may leave it
        # after other blocks were entered. If it leaves in another context, there is nothing to
        # remove.
        blocks = OPENED.get()
        places = [place for place, other in enumerate(blocks) if other is self]
        if not places:
            return
        OPENED.set((*blocks[: places[-1]], *blocks[places[-1] + 1 :]))
        if blocks[-1] is not self:
            warnings.warn(
                "A block of a BudgetAccountant was left before a later one: fits since then "
                "were charged to the later one. Pass accountant= where blocks are interleaved.",
                PrivacyLeakWarning,
                stacklevel=2,
            )

    def __copy__(self) -> "BudgetAccountant":
        return self

    __sklearn_clone__ = __copy__

    def __deepcopy__(self, memo: dict[int, object]) -> "BudgetAccountant":
        return self

    def __getstate__(self) -> dict[str, object]:
        if self.path is None:
            raise TypeError(
                "A BudgetAccountant without a path lives in one process and cannot be pickled: "
                "charges made in workers would be lost. Give it a file that processes can share, "
                "as in BudgetAccountant(epsilon, delta, path='budget.sqlite'), use n_jobs=None (or "
                "joblib's threading backend), or set accountant=None before pickling an estimator."
            )
        return dict(self.__dict__)

    def __repr__(self) -> str:
        kept = "" if self.path is None else f", path={self.path!r}, scope={self.scope!r}"
        try:
            now = self._ledger.balance()
            budget, spent = f"epsilon={now.epsilon!r}, ", f"spent epsilon {now.spent_epsilon:.6g}"
        except LedgerError:
            # An error in repr would hide the error that is being displayed.
            budget, spent = "", "ledger not readable"
        return f"BudgetAccountant({budget}delta={self.delta!r}{kept}): {spent}"
