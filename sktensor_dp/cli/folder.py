"""Output folder of the command: its files, and one ledger for all runs that write to it."""

import json
import os
import re
import shutil
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil, inf, isfinite, isinf
from pathlib import Path

from sktensor_dp.checks.display import plain
from sktensor_dp.cli.manifest import (
    MANIFEST,
    STATEMENT,
    UNFINISHED,
    Manifest,
    digest_of,
    write_whole,
)
from sktensor_dp.cli.total import at_enough_delta, on_given_back, summary_of
from sktensor_dp.exceptions import BudgetError
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.ledger import Ledger
from sktensor_dp.privacy.ledger_entries import Balance, LedgerEntry, Spending, check_one_unit
from sktensor_dp.privacy.plan import ROUNDING, PrivacyCost
from sktensor_dp.private_check import InputCheck

LEDGER, SCOPE = "budget.sqlite", "all runs of this folder"
OTHER_FOLDERS = (
    "Another --output folder has a budget of its own; what people lose who are in both adds up, "
    "and nobody counts it"
)
KEPT_CHECK = ".check.json"  # check that is paid for
BEGUN = ".begun"  # number of charges before the runs that stopped and did not keep all results
EARLIER = re.compile(r"earlier-(\d+)")


class Folder:
    """Folder that git ignores, with the budget of everything that was ever written to it.

    Attributes
    ----------
    path : Path
        The folder.
    ledger : BudgetAccountant
        Its ledger; one in memory until a first run keeps its budget.
    made : Manifest
        Files that this run made, and the settings that it was asked for.
    earlier : Path or None
        Where the files of the run before were moved to.
    """

    def __init__(
        self, path: Path, first_budget: float, delta: float, budget: float | None,
        raised: float | None,
    ) -> None:  # fmt: skip
        """Open the ledger with the budget that its first run set; `raised` alone enlarges it."""
        self.path, self._file = path, path / LEDGER
        if budget is not None and raised is not None:
            raise ValueError("Give --budget or --raise-budget, not both. Nothing was spent.")
        self.made = Manifest()
        self.earlier: Path | None = None
        wanted = budget if raised is None else raised
        self._existed, self._budget_written = os.path.lexists(self._file), False
        if self._existed:
            # A ledger that was made elsewhere keeps its own scope.
            self.ledger = BudgetAccountant(path=self._file)
            self._balance_before = Ledger(self._file).balance()
            if raised is None and budget is not None and budget > self._balance_before.epsilon:
                raise BudgetError(
                    f"The budget of {path} is {self._balance_before.epsilon:g}, and --budget "
                    f"{budget:g} is more. If it is decided that everyone may lose that much: "
                    f"--raise-budget {budget:g}. Nothing was spent."
                )
        else:
            self.ledger = BudgetAccountant(first_budget, delta)
            self._balance_before = Balance(first_budget, delta, Spending())
        # Budget that the run will have once it begins, and the balance with it.
        self._budget = self._balance_before.epsilon if wanted is None else wanted
        self._balance = replace(self._balance_before, epsilon=self._budget)
        # False where the first run of the folder is to set the budget, by what it costs.
        self._has_budget = self._existed or wanted is not None
        self._spent_before, _ = self.ledger.total()
        self._n_paid_before = self._n_paid()
        self._n_before_stopped = len(self.ledger.entries)
        with suppress(OSError, ValueError):  # no run has stopped
            self._n_before_stopped = int((path / BEGUN).read_text(encoding="utf-8"))

    def is_limited(self) -> bool:
        """Return True if the budget is finite."""
        return isfinite(self._budget)

    @classmethod
    def of_last_run(cls, path: Path) -> "Folder":
        """Folder with the files that its last run made, to add to them."""
        # Nothing is charged: budget and delta of a new ledger, in memory, are not used.
        folder = cls(path, first_budget=inf, delta=0.5, budget=None, raised=None)
        folder.made = Manifest.of(path)
        return folder

    def write_budget(self) -> None:
        """Write a new or changed budget, before a run's first charge."""
        if self._budget_written:
            return
        self._budget_written = True
        if not self._existed:
            budget = self._budget, self._balance_before.delta
            self.ledger = BudgetAccountant(*budget, path=self._file, scope=SCOPE)
        elif self._budget != self._balance_before.epsilon:
            Ledger(self._file).change_budget(self._balance_before.epsilon, self._budget)

    def begin(self) -> None:
        """Mark the charges to come as those of a run that may stop; before a run's first charge."""
        write_whole(self.path / BEGUN, str(self._n_before_stopped))

    def end(self) -> None:
        """Take the mark of `begin` away, once all that the run pays for is kept."""
        (self.path / BEGUN).unlink(missing_ok=True)

    def finish(self) -> None:
        """List the run as one that wrote all its files."""
        self.made.finished = True
        self.made.write(self.path)

    def keep_check(self, check: InputCheck, asked: Mapping[str, str]) -> None:
        """Keep a check that is paid for, for runs with the same settings `asked`."""
        kept = {"asked": asked, "check": check.to_json()}
        write_whole(self.path / KEPT_CHECK, json.dumps(kept))

    def kept_check(self, asked: Mapping[str, str], files: Iterable[Path]) -> InputCheck | None:
        """Return the check that was kept, if it is of the same settings and of unchanged files."""
        file = self.path / KEPT_CHECK
        try:
            kept, since = json.loads(file.read_text(encoding="utf-8")), file.stat().st_mtime
            states = [one.stat() for path in files for one in (path, *path.rglob("*"))]
            is_current = all(max(one.st_mtime, one.st_ctime) <= since for one in states)
            if self._existed and is_current and kept["asked"] == asked:
                return InputCheck.from_json(kept["check"])
        except (OSError, ValueError, TypeError, KeyError):
            pass  # there is none, or it is damaged: another one is paid for
        return None

    def affordable(
        self, charge: Callable[[float], LedgerEntry], epsilon: float, delta: float, *, goes_on: bool
    ) -> float:
        """Return `epsilon` if the budget covers it; else what is left, or BudgetError.

        What is left is for a run whose `epsilon` would fit but for stopped runs, and for one that
        `goes_on` where releases were given back. Runs of another unit, or with a delta above the
        budget's, are refused.
        """
        entry, protected_before = charge(epsilon), self._balance.spent.units
        try:
            check_one_unit(protected_before, frozenset([entry.protects]), by_fits=True)
        except BudgetError as error:
            error.args = (
                f"Earlier runs in {self.path} protect one {' and one '.join(protected_before)}, "
                f"this one would protect one {entry.protects}, and the two do not add up to one "
                "promise. If columns of --person name the same people, give them one name in all "
                "files. Groups of one row for each person take it, too, with --one-row-each. "
                f"{OTHER_FOLDERS}. Nothing was spent.",
            )
            raise
        if self.is_limited() and delta > (limit := self._balance.delta) * (1 + ROUNDING):
            raise BudgetError(
                f"--delta {plain(delta)} is above that of the budget of {self.path}, at which runs "
                f"there add up: say --delta {plain(limit)} or less. {OTHER_FOLDERS}. Nothing was "
                "spent."
            )
        if self.covers(entry):
            return epsilon
        left = self.left(charge, epsilon)
        finished = Spending().plus(self.ledger.entries[: self._n_before_stopped])
        gave_back = goes_on and any(one.gives_back for one in self.ledger.entries)
        if left and (gave_back or self.covers(entry, beside=finished)):
            return left
        if goes_on:  # the rest of that run has one cost: it cannot ask for less
            epsilon, left = entry.cost.epsilon_at(self._balance.delta), 0.0
        with_run = PrivacyCost.total([(self._balance.spent.cost, 1), (entry.cost, 1)])
        needed = with_run.epsilon_at(self._balance.delta)
        less = "Ask for less (--epsilon), or decide" if left else "Decide"
        if isfinite(needed):
            most = f"{ceil(100 * needed) / 100:g}"
            advice = f"{less} on more for all runs together: --raise-budget {most}"
        elif isinf(epsilon):
            advice = f"No budget covers a run without noise. {OTHER_FOLDERS}"
        else:
            advice = (
                f"No budget at delta {plain(self._balance.delta)} would be enough: delta is what "
                f"is short. Ask for less (--delta). {OTHER_FOLDERS}"
            )
        is_lost = self._n_before_stopped < len(self.ledger.entries)
        lost = ", in part by a run that stopped before it kept its results" if is_lost else ""
        rest = "too little" if self._spent_before < self._budget else "nothing"
        rest = f"--epsilon {left:g}" if left else rest
        raise BudgetError(
            f"epsilon {epsilon:g} does not fit in the budget of {self.path}: "
            f"{self._spent_before:.4g} of {self._budget:g} is spent{lost}, and {rest} is left "
            f"(epsilons of runs add up to less than their sum). {advice}."
            f"{on_given_back(self.ledger)} Nothing was spent."
        )

    def left(self, charge: Callable[[float], LedgerEntry], epsilon: float) -> float:
        """Largest epsilon up to `epsilon` that the budget covers after all charges.

        It is a multiple of a thousandth of `epsilon`, or of the budget if that is less; `charge` is
        that of a run by epsilon.
        """
        n_steps, step = 1000, min(epsilon, self._budget) / 1000
        spent = Spending().plus(self.ledger.entries)

        def is_short(n: int) -> bool:
            return not self._balance.covers(spent.plus([charge(n * step)]))

        return bisect_left(range(1, n_steps + 1), True, key=is_short) * step

    def covers(self, entry: LedgerEntry, beside: Spending | None = None) -> bool:
        """Return True if the budget covers one more run `beside` others, or none is set yet."""
        if not (self._has_budget or self._budget_written):
            return True
        spent = Spending().plus(self.ledger.entries) if beside is None else beside
        return self._balance.covers(spent.plus([entry]))

    def spending(self, charge: LedgerEntry, epsilon: float, why: str, paid: Collection[str]) -> str:
        """Say what a run is about to spend, `why` it is less than asked for, and the sum after."""
        names = " and ".join(f"{name}.model" for name in paid)
        used = f"{names} of {self.path} are used: they are paid for" if paid else ""
        if epsilon == 0:  # all models are paid for
            return used
        spends = f"this run spends epsilon {epsilon:.4g}"
        if why:
            spends += f" ({why})"
        if self._n_paid_before:
            spends += f", earlier runs spent {self._spent_before:.4g}: together "
            spends += f"{self._sum_with(charge):.4g}"
        if self.is_limited():
            spends += f" of {self._budget:g}"
        return "; ".join(filter(None, [used, spends]))

    def _sum_with(self, charge: LedgerEntry) -> float:
        """Epsilon of all charges so far and one more, as `summary` will have it."""
        after = replace(self._balance, spent=self._balance.spent.plus([charge]))
        return at_enough_delta(after.spent_epsilon, after.delta, after.spent.cost)[0]

    def spent_by_run(self) -> bool:
        """Return True if this run was charged."""
        return self._n_paid() > self._n_paid_before

    def _n_paid(self) -> int:
        """Number of charges of more than nothing."""
        return sum(one.cost != PrivacyCost() for one in self.ledger.entries)

    def summary(self) -> str:
        """Say what all runs of the folder cost together."""
        return summary_of(self.ledger, several=self._n_paid_before > 0)

    def where(self) -> str:
        """Say where the files of this run are; empty if there are none."""
        names = ", ".join(self.made.names)
        return f"{self.path}: {names}" if names else ""

    def add(self, name: str, write: Callable[[Path], object], *, private: bool = False) -> None:
        """Write a file by `write`, listed in the manifest before; a digest follows if protected."""
        made = self.made
        if not made.names:
            self.keep_earlier()
        if private:
            made.private = [*dict.fromkeys([*made.private, name])]
        else:
            made.protected[name] = UNFINISHED
        made.write(self.path)
        # Whenever the process ends, a protected file is there as a whole: as it is, or as it was.
        unfinished = self.path / (name if private else f".{name}")
        try:
            if private:
                unfinished.touch(mode=0o600)  # no other user reads it
            write(unfinished)
            os.replace(unfinished, self.path / name)
        except BaseException:
            # What was not written to its end is none of the files of this run.
            unfinished.unlink(missing_ok=True)
            if private:
                made.private.remove(name)
            elif (self.path / name).exists():  # from before
                made.protected[name] = digest_of(self.path / name)
            else:
                made.protected.pop(name)
            made.write(self.path)
            raise
        if not private:
            made.protected[name] = digest_of(self.path / name)
            made.write(self.path)

    def add_text(self, name: str, text: str) -> None:
        """Make a file of text."""
        self.add(name, lambda path: path.write_text(text, encoding="utf-8"))

    def keep_earlier(self, used: Collection[str] = ()) -> None:
        """Move the files of the previous run, which were paid for, to a folder of their own.

        Copies of those `used` stay, as files of this run, even if the process ends meanwhile.
        """
        before = Manifest.of(self.path)
        found = [name for name in before.names if (self.path / name).exists()]
        if not found:
            return
        matches = [EARLIER.fullmatch(path.name) for path in self.path.iterdir()]
        number = 1 + max((int(match[1]) for match in matches if match), default=0)
        self.earlier, copy = self.path / f"earlier-{number}", self.path / ".earlier"
        shutil.rmtree(copy, ignore_errors=True)  # of a process that ended here
        copy.mkdir()
        for name in {*found, MANIFEST}.difference(before.private):
            shutil.copy2(self.path / name, copy / name)
        copy.rename(self.earlier)
        # While files go, list them as unfinished.
        kept = {name: digest for name, digest in before.protected.items() if name in used}
        self.made.protected = {**dict.fromkeys(before.protected, UNFINISHED), **kept}
        self.made.private = before.private
        self.made.write(self.path)
        for name in set(found).difference(kept):
            if name in before.private:
                (self.path / name).rename(self.earlier / name)  # no copy of raw data
            else:
                (self.path / name).unlink()
        self.made.protected, self.made.private = kept, []
        self.made.write(self.path)


def earlier_runs(folder: Path) -> list[Path]:
    """Folders of the earlier runs of a folder that have a statement, in order."""
    found = [path.parent for path in folder.glob(f"earlier-*/{STATEMENT}")]
    numbered = [path for path in found if EARLIER.fullmatch(path.name)]
    return sorted(numbered, key=lambda path: int(path.name.partition("-")[2]))


def runs_with(path: Path, names: Sequence[str]) -> Iterator[tuple[Path, Manifest]]:
    """Yield runs of a folder, the last first, that have the same files of these names as it."""
    last = Manifest.of(path).protected
    for folder in (path, *earlier_runs(path)):
        made = Manifest.of(folder)
        if all(made.protected.get(name, UNFINISHED) == last.get(name) for name in names):
            yield folder, made
