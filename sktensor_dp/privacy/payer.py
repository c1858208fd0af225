"""Who pays for the releases of a session, which charges on entry (`privacy/session.py`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sktensor_dp.privacy.accountant import BEGUN, COLUMN, BudgetAccountant, tell
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.spending import PERSON, LedgerEntry, charges_of, person_of

if TYPE_CHECKING:
    from sktensor_dp.privacy.ledger import Receipt


@dataclass(frozen=True)
class Payer:
    """Accountant that pays for a plan (None: nobody), and the name of the spender."""

    spender: str = ""  # as ledgers name it
    accountant: BudgetAccountant | None = None
    # Ticket of an earlier batch of a disjoint stream: if the ledger holds it, that batch's charge
    # pays for this one too (parallel composition).
    ticket: str | None = None
    paid_by_earlier_batch: bool = False  # for a batch disjoint from this one, in the same fit
    column: object = None  # that says whose row it is; by default that of the fit around it

    def charge(self, plan: ReleasePlan, unit: str, neighbours: str) -> "Receipt | None":
        """Check and charge a whole plan; None if there is no accountant or the ticket pays."""
        if self.accountant is not None:
            self.accountant._check_delta(plan)
        return self.charge_entries(charges_of(plan, self.spender, unit, neighbours))

    def charge_entries(self, entries: Sequence[LedgerEntry]) -> "Receipt | None":
        """Check and charge entries of a ledger; None as for :meth:`charge`."""
        # `telling_spending`, which wraps each method that fits, sets COLUMN and reads BEGUN.
        receipt, entries = None, self._named(entries)
        if self.accountant is not None and not self.paid_by_earlier_batch:
            receipt = self.accountant.charge(entries, self.ticket)
        BEGUN.set(BEGUN.get() + 1)
        return receipt

    def tell(self, error: BaseException) -> None:
        """Add to an error that the charge of this fit stays."""
        if self.accountant is not None:
            kept = "What was charged for this fit stays charged."
            tell(error, kept, self.accountant._so_far())

    def check(self, plan: ReleasePlan, neighbours: str, unit: str = "") -> None:
        """Raise BudgetError for a plan that the accountant would refuse, of a `unit` if known."""
        if self.accountant is not None:
            self.accountant._check_delta(plan)
            charges = charges_of(plan, self.spender, unit, neighbours)
            self.accountant.check_charge(self._named(charges))

    def _named(self, entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
        """Entries of persons with the name of the column that says whose each row is."""
        person = person_of(self.column or COLUMN.get())
        return [replace(one, unit=person) if one.unit == PERSON else one for one in entries]


NOBODY = Payer()
