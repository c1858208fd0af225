"""Output folder of the command: results, and one ledger for all runs that write to it."""

import sqlite3
from contextlib import closing
from math import ceil, isfinite, isinf
from pathlib import Path

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.plotting.displays import plain
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.ledger import Ledger, scopes_of
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.spending import LedgerEntry

LEDGER, SCOPE = "budget.sqlite", "all runs of this folder"


class Folder:
    """Folder that git ignores, with the budget of everything that was ever written to it."""

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, path / LEDGER
        path.mkdir(parents=True, exist_ok=True)
        ignored = path / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n", encoding="utf-8")

    def open(self, first: float, delta: float, budget: float | None, raised: float | None) -> None:
        """Open the ledger with the budget that its first run set; `raised` alone enlarges it."""
        wanted = budget if raised is None else raised
        if not (self._file.exists() and SCOPE in scopes_of(self._file)):
            limit = first if wanted is None else wanted
            self.ledger = BudgetAccountant(limit, delta)
            if wanted is not None:
                self.keep()
        else:
            self.ledger = BudgetAccountant(path=self._file, scope=SCOPE)
            if wanted is not None and wanted != self.ledger.epsilon:
                if wanted > self.ledger.epsilon and raised is None:
                    raise BudgetError(
                        f"The budget of {self.path} is {self.ledger.epsilon:g}, and --budget "
                        f"{wanted:g} is more. If it is decided that everyone may lose that much: "
                        f"--raise-budget {wanted:g}. Nothing was read or spent."
                    )
                Ledger(self._file, SCOPE).set_budget(wanted)
                self.ledger.epsilon = wanted
        self.spent_before, self._n_before = self.ledger.total()[0], len(self.ledger.entries)

    def keep(self) -> BudgetAccountant:
        """Write the budget down; one that nobody chose only when something is spent of it."""
        if self.ledger.path is None:
            epsilon, delta = self.ledger.epsilon, self.ledger.delta
            self.ledger = BudgetAccountant(epsilon, delta, path=self._file, scope=SCOPE)
        return self.ledger

    def check(self, cost: PrivacyCost, unit: str, epsilon: float) -> None:
        """Refuse a run that does not fit in as a whole, before anything is read."""
        others = {entry.unit for entry in self.ledger.entries if entry.unit} - {unit}
        if others:
            raise BudgetError(
                f"Earlier runs in {self.path} protect one {min(others)}, this one would protect "
                f"one {unit}, and the two do not add up to one promise. Choose another --output "
                "folder for it. Nothing was read or spent."
            )
        fits = True
        try:
            self.ledger.check_charge([LedgerEntry("sktensor-dp", "run", 1, cost, unit)])
        except BudgetError:
            fits = False
        if not fits:
            both = PrivacyCost.total([self.ledger.cost, cost]).epsilon_at(self.ledger.delta)
            raise BudgetError(
                f"epsilon {epsilon:g} does not fit in the budget of {self.path}: "
                f"{self.spent_before:.4g} of {self.ledger.epsilon:g} is spent, so about "
                f"{self.ledger.remaining()[0]:.3g} is left. Ask for less (--epsilon), or decide on "
                f"more for all runs together: --raise-budget "
                f"{ceil(100 * both) / 100 if isfinite(both) else both:g}. "
                "Nothing was read or spent."
            )

    def spent_by_run(self) -> bool:
        """Return whether this run was charged."""
        return len(self.ledger.entries) > self._n_before

    def summary(self) -> str:
        """Say what all runs of the folder cost together."""
        epsilon, delta, cost = *self.ledger.total(), self.ledger.cost
        if isinf(epsilon) and isfinite(cost.mu):
            # Every vocabulary takes a part of delta: many of them use up that of one run.
            delta += cost.delta
            epsilon = cost.epsilon_at(delta)
        if isinf(epsilon):
            return "One run in this folder added no noise: nothing is protected."
        limit = self.ledger.epsilon
        of = "no limit is set" if isinf(limit) else f"the budget is {limit:g}"
        return f"All runs in this folder: epsilon {epsilon:.4g} at delta {plain(delta)}; {of}."

    def keep_earlier(self) -> Path | None:
        """Move the results of an earlier run, which were paid for, to a folder of their own."""
        kept = {LEDGER, f"{LEDGER}-journal", ".gitignore"}
        found = [path for path in self.path.iterdir() if path.is_file() and path.name not in kept]
        if not found:
            return None
        number = 1
        while (target := self.path / f"earlier-{number}").exists():
            number += 1
        target.mkdir()
        for path in found:
            path.rename(target / path.name)
        return target

    def tidy(self) -> None:
        """Take away the empty journal that SQLite leaves beside the ledger."""
        if self._file.exists():
            with closing(sqlite3.connect(self._file)) as connection:
                # A journal is deleted where the mode changes under a lock, never under a writer.
                connection.executescript(
                    "PRAGMA journal_mode = TRUNCATE; PRAGMA journal_mode = DELETE"
                )
