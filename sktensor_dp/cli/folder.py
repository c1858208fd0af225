"""Output folder of the command: results, and one ledger for all runs that write to it."""

import sqlite3
from bisect import bisect_left
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from math import ceil, isfinite, isinf
from pathlib import Path

from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.ledger import Ledger, scopes_of
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.spending import Balance, LedgerEntry, Spending
from sktensor_dp.privacy.tables import plain
from sktensor_dp.topic_page import odds_in_hundred

LEDGER, SCOPE = "budget.sqlite", "all runs of this folder"


class Folder:
    """Folder that git ignores, with the budget of everything that was ever written to it."""

    def __init__(
        self, path: Path, first: float, delta: float, budget: float | None, raised: float | None
    ) -> None:
        """Open the ledger with the budget that its first run set; `raised` alone enlarges it."""
        self.path, self._file = path, path / LEDGER
        path.mkdir(parents=True, exist_ok=True)
        (path / ".gitignore").write_text("*\n", encoding="utf-8")
        wanted = budget if raised is None else raised
        self._known = self._file.exists() and SCOPE in scopes_of(self._file)
        if self._known:
            self.ledger = BudgetAccountant(path=self._file, scope=SCOPE)
            self._before = Ledger(self._file, SCOPE).balance()
            if raised is None and budget is not None and budget > self._before.epsilon:
                raise BudgetError(
                    f"The budget of {path} is {self._before.epsilon:g}, and --budget {budget:g} is "
                    "more. If it is decided that everyone may lose that much: --raise-budget "
                    f"{budget:g}. Nothing was spent."
                )
        else:
            self.ledger = BudgetAccountant(first, delta)
            self._before = Balance(first, delta, Spending())
        # As it will be once the run begins.
        self._budget = self._before.epsilon if wanted is None else wanted
        self._spent, self._n_before = self.ledger.total()[0], len(self.ledger.entries)

    def keep(self) -> BudgetAccountant:
        """Write down a new or changed budget, before the first charge of a run."""
        if not self._known:
            budget = self._budget, self._before.delta
            self.ledger = BudgetAccountant(*budget, path=self._file, scope=SCOPE)
        elif self._budget != self._before.epsilon:
            Ledger(self._file, SCOPE).change_budget(self._before.epsilon, self._budget)
        return self.ledger

    def check(self, cost: Callable[[float], PrivacyCost], unit: str, epsilon: float) -> None:
        """Refuse a run that does not fit in as a whole; `cost` is that of a run by its epsilon."""
        others = self._before.spent.units - {unit}
        if others:
            raise BudgetError(
                f"Earlier runs in {self.path} protect one {min(others)}, this one would protect "
                f"one {unit}, and the two do not add up to one promise. Choose another --output "
                "folder for it. Nothing was spent."
            )

        balance = replace(self._before, epsilon=self._budget)

        def is_beyond(value: float) -> bool:
            entry = LedgerEntry("sktensor-dp", "run", 1, cost(value), unit)
            return not balance.covers(balance.spent.plus([entry]))

        if not is_beyond(epsilon):
            return
        hundredths = range(1, ceil(100 * min(epsilon, self._budget)) + 1)
        left = bisect_left(hundredths, True, key=lambda n: is_beyond(n / 100)) / 100
        both = PrivacyCost.total([(balance.spent.cost, 1), (cost(epsilon), 1)])
        needed = both.epsilon_at(balance.delta)
        less = "Ask for less (--epsilon), or decide" if left else "Decide"
        advice = (
            f"{less} on more for all runs together: --raise-budget {ceil(100 * needed) / 100:g}"
            if isfinite(needed)
            else f"No budget at delta {plain(balance.delta)} would be enough: delta is what is "
            "short. Ask for less (--delta), or choose another --output folder"
        )
        raise BudgetError(
            f"epsilon {epsilon:g} does not fit in the budget of {self.path}: "
            f"{self._spent:.4g} of {self._budget:g} is spent, and "
            f"{f'--epsilon {left:g}' if left else 'nothing'} is left (epsilons of runs add up to "
            f"less than their sum). {advice}. Nothing was spent."
        )

    def spending(self, epsilon: float) -> str:
        """Say what a run is about to spend of the budget."""
        before = f", of which earlier runs spent {self._spent:.4g}" * (self._n_before > 0)
        of = f" of {self._budget:g}" * isfinite(self._budget)
        return f"this run spends epsilon {epsilon:g}{of}{before}"

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
        said = f"All runs in this folder: epsilon {epsilon:.4g} at delta {plain(delta)}; {of}."
        if not self._n_before:
            return said
        odds = [f"{low} to {high}" for _, low, high in odds_in_hundred(epsilon)]
        return (
            f"{said} Whoever thought something 1, 10 or 50 in 100 likely may, after all runs, "
            f"think it {odds[0]}, {odds[1]} or {odds[2]} in 100 likely."
        )

    def results(self) -> list[Path]:
        """Files of the last run, without the ledger."""
        files = (path for path in sorted(self.path.glob("[!.]*")) if path.is_file())
        return [path for path in files if not path.name.startswith(LEDGER)]

    def keep_earlier(self) -> Path | None:
        """Move the results of an earlier run, which were paid for, to a folder of their own."""
        if not (found := self.results()):
            return None
        number = 1 + sum(1 for _ in self.path.glob("earlier-*"))
        target = self.path / f"earlier-{number}"
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
