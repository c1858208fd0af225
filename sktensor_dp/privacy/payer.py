"""Payer of the releases of a session, and checks before it; session.py charges before noise."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sktensor_dp.checks.callers import SEARCH, VALIDATION, Tool, locals_of, tools_around
from sktensor_dp.checks.frames import column_names
from sktensor_dp.exceptions import BudgetError, LedgerError
from sktensor_dp.privacy.accountant import HELD, OPENED, BudgetAccountant
from sktensor_dp.privacy.ledger_entries import PERSON, LedgerEntry, charges_of, person_of
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.sklearn_folds import (
    SearchAround,
    are_given_groups,
    check_folds,
    refuse_mixed_rows,
    search_around,
)

if TYPE_CHECKING:
    from sktensor_dp.privacy.ledger import Receipt
    from sktensor_dp.privacy.report import PrivacyReport

# Number of fits and searches of this thread, as a context, whose releases have begun.
BEGUN_FITS: "ContextVar[int]" = ContextVar("begun", default=0)
# Makes the report of the session that this fit opened last.
REPORT: "ContextVar[Callable[[], PrivacyReport] | None]" = ContextVar("report", default=None)
# Name of the column that says whose row it is, in a fit; public, as names of columns are.
UNIT_COLUMN: "ContextVar[object]" = ContextVar("column", default=None)


@dataclass(frozen=True)
class Payer:
    """Accountant that pays for a plan (None: nobody), and the name of the spender."""

    spender: str = ""  # as ledgers name it
    accountant: BudgetAccountant | None = None
    # Ticket of an earlier batch of a disjoint stream: if the ledger holds it, that batch's charge
    # pays for this one too (parallel composition).
    ticket: str | None = None
    paid_by_earlier_batch: bool = False  # for a batch disjoint from this one, in the same fit
    # Whether the tool of scikit-learn that cloned the estimator, maybe in another process, was
    # given groups.
    given_groups: bool = False
    column: object = None  # that says whose row it is; by default that of the fit around it

    @cached_property
    def tools(self) -> list[Tool]:
        """Functions of scikit-learn that are being run around this payment, looked up once."""
        return tools_around()

    def charge(self, plan: ReleasePlan, neighbours: str, unit: str) -> "Receipt | None":
        """Check and charge a whole plan; None if nobody pays, or an earlier batch has paid."""
        return self.charge_entries(self.charges(plan, neighbours, unit))

    def charge_entries(self, entries: Sequence[LedgerEntry]) -> "Receipt | None":
        """Check and charge entries; None if nobody pays, or an earlier batch has paid."""
        receipt, entries = None, self._named(entries)
        self._check_tools(entries)
        if self.accountant is not None and not self.paid_by_earlier_batch:
            receipt = self.accountant.charge(entries, self.ticket)
        BEGUN_FITS.set(BEGUN_FITS.get() + 1)
        return receipt

    def add_charge_to(self, error: BaseException, report: "PrivacyReport") -> None:
        """Add to an error that the charge of this fit stays, and the `report` of what it paid."""
        add_report(error, report)
        if self.accountant is not None:
            kept = "What was charged for this fit stays charged."
            add_sentence(error, kept, self.accountant._so_far())

    def check_charges(self, entries: Sequence[LedgerEntry]) -> None:
        """Raise BudgetError for entries of a ledger that the accountant would refuse."""
        if self.accountant is not None:
            self.accountant.check_charge(entries)

    def charges(self, plan: ReleasePlan, neighbours: str, unit: str = "") -> list[LedgerEntry]:
        """Charges of a plan, of a `unit` if known, as the ledger would have them.

        BudgetError for a delta, or a kind of noise, that the accountant did not provide for.
        """
        if self.accountant is not None:
            self.accountant._check_plan(plan)
        return self._named(charges_of(plan, self.spender, unit, neighbours))

    def _check_tools(self, entries: Sequence[LedgerEntry]) -> None:
        """Refuse charges by tools of scikit-learn that do not keep units whole."""
        if self.accountant is not None and not self.accountant._part_of_search:
            refuse_mixed_rows(self.tools)
            units, given_groups = self.accountant.units, self.given_groups
            check_folds(self.tools, entries, units, given_groups=given_groups)

    def check_several(self, own: Sequence[LedgerEntry], later: Sequence[LedgerEntry] = ()) -> None:
        """Raise BudgetError, at the first of several fits, unless the budget can pay them all.

        The fits are this one and those of `later` steps of a pipeline, or all fits and scores of a
        search of scikit-learn. Tools that part units are refused for a single fit, too.
        """
        self._check_tools(own)
        budget, search = self.accountant, search_around(self.tools)
        if budget is None or budget._part_of_search or not (later or search):
            return
        if search is not None and not search.is_first:
            if budget._refused:  # with error_score=nan the search goes on after the refusal
                raise BudgetError(budget._refused)
            return
        reason = "The steps of this pipeline, which are paid one by one, cannot be paid together. "
        charges = [*own, *later]
        if search is not None:
            reason = f"scikit-learn begins {search.n_fits} such fits here, which must all be paid. "
            charges = [replace(one, uses=one.uses * search.n_fits) for one in charges]
            charges += _charges_of_scores(search, budget)
        budget._refused = ""
        try:
            budget.check_together(charges, reason)
        except BudgetError as error:
            budget._refused = str(error)
            raise

    def warnings_of_repetition(self, own: Sequence[LedgerEntry]) -> tuple[Warning, ...]:
        """Warning if an equal fit was paid before; none for fits by tools of scikit-learn."""
        if self.accountant is None or self.accountant._part_of_search or not own:
            return ()
        if locals_of(self.tools, VALIDATION, (SEARCH[0], None)):
            return ()
        earlier = None
        with suppress(LedgerError):  # the charge will be refused
            earlier = self.accountant.earlier_fit(own)
        if earlier is None or earlier.when is None:
            return ()
        return (
            UserWarning(
                f"This budget paid for the same releases of a {self.spender} on "
                f"{earlier.when:%Y-%m-%d at %H:%M:%S} UTC: this fit makes new ones and pays again. "
                "Of the same data keep the first model, as by save()."
            ),
        )

    def _named(self, entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
        """Entries of persons with the name of the column that says whose each row is."""
        person = person_of(self.column or UNIT_COLUMN.get())
        return [replace(one, unit=person) if one.unit == PERSON else one for one in entries]


NOBODY = Payer()

# Attribute of estimators whose fits need an accountant: the reason, as a clause of the error.
NEEDS_PAYER = "_needs_payer"
# Attribute of estimators that a tool of scikit-learn cloned: whether it was given groups.
IN_GROUPS = "_in_groups"
PICKLED = "it was pickled, as for n_jobs=2, inside a `with BudgetAccountant(...)` block"
PAID = "an accountant paid for the fit that it holds, which is kept in no file of a model"


def _charges_of_scores(search: SearchAround, budget: BudgetAccountant) -> list[LedgerEntry]:
    """Charges of all scores of a search by private scorers that `budget` pays."""
    charges = []
    scorers: Any = [one for one in search.scorers if isinstance(one, HasAccountant)]
    for scorer in scorers:
        if scorer._accountant_to_charge() is budget:
            plan = ReleasePlan.split(scorer.epsilon, scorer.delta, {"score": 1.0})
            of_one = charges_of(plan, type(scorer).__name__)
            charges += [replace(one, uses=search.n_scores) for one in of_one]
    return charges


def attribute_of_payment(paid: bool) -> dict[str, str]:
    """Attribute that marks an estimator as `paid` for: its later fits need an accountant, too."""
    return {NEEDS_PAYER: PAID} if paid else {}


class UnitMark(NamedTuple):
    """Mark of word counts: the units that the vocabulary behind them protects."""

    persons: bool
    neighbours: str
    n_units: int | None  # of the vocabulary, where it is public and the counts are of all units


UNIT_MARK = "_sktensor_dp_unit"  # attribute of counts with their `UnitMark`


def add_sentence(error: BaseException, sentence: str, spent: str) -> None:
    """Add a sentence, and what is `spent`, to the message of an error, or else as a note."""
    match error.args:
        case [str(message)] if spent:
            end = "" if message[-1:] in ".?" else "."
            error.args = (f"{message}{end} {sentence}{spent}",)
        case []:  # of an interrupt: notebooks show its message, and may not show notes
            error.args = (f"{sentence}{spent}",)
        case _:
            error.add_note(f"{sentence}{spent}")


def add_report(error: BaseException, report: "PrivacyReport") -> None:
    """Make the report of what was paid an attribute of an error."""
    with suppress(AttributeError):  # of an error that takes none
        error.privacy_report_ = report  # type: ignore[attr-defined]


def around_fit(method: Any) -> Any:
    """Decorate a method that fits: set `UNIT_COLUMN`; say in errors what was released and spent."""

    @wraps(method)
    def run(self: Any, *args: object, **options: object) -> Any:
        n_begun = BEGUN_FITS.get()
        X = args[0] if args else options.get("X")
        column = column_of_units(self, X, options.get("groups"))
        tokens = UNIT_COLUMN.set(column or UNIT_COLUMN.get()), REPORT.set(None)
        try:
            return method(self, *args, **options)
        except BaseException as error:
            # Errors inside the session have its report already.
            if (report := REPORT.get()) is not None and not hasattr(error, "privacy_report_"):
                add_report(error, report())
            _add_spending(error, self, X, has_begun=BEGUN_FITS.get() > n_begun)
            raise
        finally:
            UNIT_COLUMN.reset(tokens[0])
            REPORT.reset(tokens[1])

    return run


def _add_spending(error: BaseException, estimator: Any, X: object, *, has_begun: bool) -> None:
    """Add to an error of a fit to X what is released and spent, and how to go on."""
    spent, left = "", 0.0
    with suppress(BudgetError):
        if isinstance(payer := estimator._accountant_to_charge(), BudgetAccountant):
            spent, left = payer._so_far(), payer.remaining()["epsilon"]
    # Methods that fit call each other: say each sentence once.
    said = "".join([str(error), *getattr(error, "__notes__", ())])
    nothing = f"This {type(estimator).__name__} released nothing."
    # Refusals by the budget say themselves what was charged.
    if not has_begun and not isinstance(error, BudgetError) and nothing not in said:
        add_sentence(error, nothing, spent)
    # Counts over a private vocabulary: say how to use it without paying for it again.
    mark, paid = getattr(X, UNIT_MARK, None), "The vocabulary of X is paid for:"
    if spent and mark is not None and paid not in said:
        groups = ", groups=groups" if mark.persons else ""
        how = f" fit this step alone, by fit(vectorizer.transform(texts){groups})."
        none = " nothing of the budget is left to fit this step to it."
        add_sentence(error, paid, how if left else none)


def column_of_units(estimator: object, X: object, groups: Any) -> object:
    """Name of `groups`, a column, or of the ``unit_mode`` column of a table; None without one."""
    if hasattr(groups, "to_frame"):
        return groups.name
    mode: Any = getattr(estimator, "unit_mode", None)
    names = column_names(X) if isinstance(mode, int) else None
    return names[mode] if names is not None and 0 <= mode < len(names) else None


class HasAccountant:
    """Mixin that finds the accountant to charge, and refuses to run where one may be missed."""

    # Methods behind ``available_if`` are no functions: `partial_fit` carries the decorator itself,
    # and `fit_transform` calls `fit`.

    accountant: BudgetAccountant | None

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and name.startswith(("fit", "partial_fit")):
                setattr(cls, name, around_fit(method))

    def _accountant_to_charge(self) -> BudgetAccountant | None:
        """Accountant to charge: that of the parameter, else of the surrounding block, else None."""
        if self.accountant is not None:
            return self.accountant
        block = OPENED.get()[-1]  # the innermost `with` block of this thread
        why_needed = vars(self).get(NEEDS_PAYER)
        if HELD:  # open blocks of any thread
            why_needed = (
                "another thread holds a `with BudgetAccountant(...)` block open, seen there alone"
            )
        if block is not None or why_needed is None:
            return block
        raise BudgetError(
            f"This {type(self).__name__} has no accountant, and {why_needed}: nobody would be "
            "charged. Nothing was charged or released. Pass the accountant of the search or "
            "block, as accountant=, or BudgetAccountant(path='budget.sqlite'), a file that "
            "threads, processes and later sessions share. For data of other people, "
            "accountant=BudgetAccountant() only records."
        )

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        # Blocks of any thread: what goes to workers may be pickled in another thread.
        inside = bool(HELD) and self.accountant is None
        return {**state, NEEDS_PAYER: PICKLED} if inside else state

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()  # type: ignore[misc]
        marks = {n: v for n, v in vars(self).items() if n in (NEEDS_PAYER, IN_GROUPS)}
        if locals_of(tools := tools_around(), SEARCH, VALIDATION):
            marks[IN_GROUPS] = are_given_groups(tools)
        vars(made).update(marks)
        return made
