"""Who pays for a fit: its accountant, or the ``with BudgetAccountant(...)`` block it stands in."""

import copy
from typing import Any, Self

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.accountant import HELD, OPENED, BudgetAccountant

# Set in pickles that were made while a block was open.
PICKLED_INSIDE = "_pickled_inside_block"


class Payable:
    """Finds the accountant to charge, and remembers in pickles that a block was open."""

    accountant: BudgetAccountant | None

    def _payer(self) -> BudgetAccountant | None:
        """Accountant to charge: the parameter, or that of the surrounding block."""
        if self.accountant is not None:
            return self.accountant
        block = OPENED.get()[-1]
        if block is not None or not (HELD or PICKLED_INSIDE in vars(self)):
            return block
        where = (
            "another thread holds a `with BudgetAccountant(...)` block open"
            if HELD
            else "it was pickled, as for n_jobs=2, inside a `with BudgetAccountant(...)` block"
        )
        raise BudgetError(
            f"This {type(self).__name__} has no accountant, and {where}. A block is seen only by "
            "the thread that opened it, so it would not be charged. Nothing was charged or "
            "released. Pass the accountant itself: accountant=BudgetAccountant(epsilon, delta, "
            "path='budget.sqlite'), whose file threads and processes share."
        )

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        # Whichever thread pickles: what goes to workers is pickled in a thread of its own.
        inside = bool(HELD) and self.accountant is None
        return {**state, PICKLED_INSIDE: True} if inside else state

    def __sklearn_clone__(self) -> Self:
        of_estimators = getattr(super(), "__sklearn_clone__", None)
        if of_estimators is None:  # a scorer
            made = type(self).__new__(type(self))
            vars(made).update(copy.deepcopy(vars(self)))
            return made
        made = of_estimators()
        if PICKLED_INSIDE in vars(self):
            vars(made)[PICKLED_INSIDE] = True
        return made
