"""Output folder of the command: its files, and one ledger for all runs that write to it."""

import csv
import json
import os
import re
import shutil
import sqlite3
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from math import ceil, inf, isfinite, isinf, isnan
from pathlib import Path

from sktensor_dp.checks.display import plain, printable
from sktensor_dp.cli.manifest import (
    MANIFEST,
    STATEMENT,
    UNFINISHED,
    Manifest,
    digest_of,
    write_whole,
)
from sktensor_dp.datasets.own_files import as_cell
from sktensor_dp.exceptions import BudgetError
from sktensor_dp.input_check import InputCheck
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.ledger import Ledger
from sktensor_dp.privacy.ledger_entries import (
    PERSON,
    Balance,
    LedgerEntry,
    Spending,
    check_one_unit,
)
from sktensor_dp.privacy.odds import odds_in_hundred
from sktensor_dp.privacy.plan import ROUNDING, PrivacyCost

LEDGER, SCOPE = "budget.sqlite", "all runs of this folder"
APART = (
    "Another --output folder has a budget of its own; what people lose who are in both adds up, "
    "and nobody counts it"
)
CHECKED = ".check.json"  # check that is paid for
BEGUN = ".begun"  # number of charges before the runs that have not kept all they pay for
LOCK = ".run"  # file that a run locks while it writes to the folder
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
        # Else the first run of a folder sets the budget: what it costs.
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
        write_whole(self.path / CHECKED, json.dumps(kept))

    def kept_check(self, asked: Mapping[str, str], files: Iterable[Path]) -> InputCheck | None:
        """Return the check that was kept, if it is of the same settings and of unchanged files."""
        file = self.path / CHECKED
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
        """Return `epsilon`, or what is left of the budget if only runs that stopped made it too
        small; else raise BudgetError.

        `charge` gives the charge of a run of this `delta` at an epsilon; one that `goes_on` takes
        the epsilon of another run, and no option.
        """
        entry, protected_before = charge(epsilon), self._balance.spent.units
        try:
            check_one_unit(protected_before, frozenset([entry.protects]), by_fits=True)
        except BudgetError as error:
            error.args = (
                f"Earlier runs in {self.path} protect one {' and one '.join(protected_before)}, "
                f"this one would protect one {entry.protects}, and the two do not add up to one "
                "promise. If columns of --person name the same people, give them one name in all "
                f"files. {APART}. Nothing was spent.",
            )
            raise
        if self.is_limited() and delta > (limit := self._balance.delta) * (1 + ROUNDING):
            raise BudgetError(
                f"--delta {plain(delta)} is above that of the budget of {self.path}, at which runs "
                f"there add up: say --delta {plain(limit)} or less. {APART}. Nothing was spent."
            )
        if self.covers(entry):
            return epsilon
        left = self.left(charge, epsilon)
        finished = Spending().plus(self.ledger.entries[: self._n_before_stopped])
        if left and self.covers(entry, beside=finished):
            return left
        if goes_on:
            epsilon, left = entry.cost.epsilon_at(self._balance.delta), 0.0
        with_run = PrivacyCost.total([(self._balance.spent.cost, 1), (entry.cost, 1)])
        needed = with_run.epsilon_at(self._balance.delta)
        less = "Ask for less (--epsilon), or decide" if left else "Decide"
        if isfinite(needed):
            most = f"{ceil(100 * needed) / 100:g}"
            advice = f"{less} on more for all runs together: --raise-budget {most}"
        elif isinf(epsilon):
            advice = f"No budget covers a run without noise. {APART}"
        else:
            advice = (
                f"No budget at delta {plain(self._balance.delta)} would be enough: delta is what "
                f"is short. Ask for less (--delta). {APART}"
            )
        is_lost = self._n_before_stopped < len(self.ledger.entries)
        lost = ", in part by a run that stopped before it kept its results" if is_lost else ""
        rest = "too little" if self._spent_before < self._budget else "nothing"
        rest = f"--epsilon {left:g}" if left else rest
        raise BudgetError(
            f"epsilon {epsilon:g} does not fit in the budget of {self.path}: "
            f"{self._spent_before:.4g} of {self._budget:g} is spent{lost}, and {rest} is left "
            f"(epsilons of runs add up to less than their sum). {advice}. Nothing was spent."
        )

    def left(self, charge: Callable[[float], LedgerEntry], epsilon: float) -> float:
        """Largest multiple of a thousandth of `epsilon` that the budget covers after all charges.

        `charge` is that of a run by epsilon.
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

    def spending(self, epsilon: float, why: str, paid: Collection[str]) -> str:
        """Say what a run is about to spend of the budget, and `why` where it was asked for more."""
        names = " and ".join(f"{name}.model" for name in paid)
        used = f"{names} of {self.path} are used: they are paid for" if paid else ""
        if epsilon == 0:  # all models are paid for
            return used
        spends = f"this run spends epsilon {epsilon:.4g}"
        if why:
            spends += f" ({why})"
        if self.is_limited():
            spends += f" of {self._budget:g}"
        if self._n_paid_before:
            spends += f", of which earlier runs spent {self._spent_before:.4g}"
        return "; ".join(filter(None, [used, spends]))

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

        Those `used` stay here, too, as files of this run: whenever the process ends, they are.
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


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Make an output folder, and hold it for one run; ValueError if others hold or filled it."""
    existed = os.path.lexists(path)
    if path.is_dir() and not (path / LOCK).exists():
        _refuse_others(path)  # adds nothing to their folder
    if existed and not path.is_dir():
        what = "a file" if path.exists() else "a link to nothing"
        raise ValueError(f"--output names a folder, and {path} is {what}. Nothing was spent.")
    path.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path, prefix=".probe-"):
        pass  # OSError where nothing can be written
    if not (ignored := path / ".gitignore").exists():
        ignored.write_text("*\n", encoding="utf-8")
    is_own = False  # made and held by this run
    try:
        # The lock ends with its process, however that ends.
        with closing(sqlite3.connect(path / LOCK, timeout=0, isolation_level=None)) as lock:
            with suppress(sqlite3.OperationalError):
                lock.execute("BEGIN EXCLUSIVE")
            if not lock.in_transaction:
                raise ValueError(
                    f"Another run is writing to {path}: wait until it has ended, or name another "
                    "folder, whose budget is its own. Nothing was spent."
                )
            is_own = not existed
            _refuse_others(path)
            try:
                yield
            finally:
                if (path / LEDGER).is_file():
                    _remove_journal(path / LEDGER)
    finally:
        # A refused run leaves no folder that it made.
        if is_own and {one.name for one in path.iterdir()} == {LOCK, ignored.name}:
            shutil.rmtree(path)


def _remove_journal(ledger: Path) -> None:
    """Remove the empty journal that SQLite leaves beside a ledger."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(ledger)) as open_ledger:
        # Changing the mode under a lock deletes the journal, and never one in use. Where the file
        # is no ledger, the run has said so.
        open_ledger.executescript("PRAGMA journal_mode = TRUNCATE; PRAGMA journal_mode = DELETE")


def _refuse_others(folder: Path) -> None:
    """Raise ValueError for files that the command did not make, or that were changed since."""
    made = Manifest.of(folder)
    own = {LEDGER, f"{LEDGER}-journal", *made.private, *([MANIFEST] if made.names else [])}

    def is_own(path: Path) -> bool:
        """True for what runs of this command wrote into the folder, unchanged since."""
        if path.name.startswith(".") or (EARLIER.fullmatch(path.name) and path.is_dir()):
            return True
        # This command makes no links, but a ledger may be one.
        if path.name != LEDGER and (path.is_symlink() or not path.is_file()):
            return False
        digest = made.protected.get(path.name)
        if path.name in own or digest == UNFINISHED:
            return True
        return digest is not None and digest == digest_of(path)

    others = [printable(path.name) for path in sorted(folder.iterdir()) if not is_own(path)]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise ValueError(
            f"{folder} holds files that the command did not make, or that were changed "
            f"since: {', '.join(others[:3])}{more}. Name another --output folder, or move "
            "them away. Nothing was spent."
        )


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


def summary_of(ledger: BudgetAccountant, *, several: bool) -> str:
    """Say what all fits of a ledger cost together, which are of `several` runs."""
    epsilon, delta = total_of(ledger)
    if isinf(epsilon):
        return "One run in this folder added no noise: nothing is protected."
    limit = "no limit is set" if isinf(ledger.epsilon) else f"the budget is {ledger.epsilon:g}"
    said = (
        f"All runs in this folder: epsilon {epsilon:.4g} at delta {plain(delta)}; {limit}. Runs "
        "elsewhere on the same people are not counted."
    )
    if not several:
        return said
    if any(entry.unit.startswith(PERSON) for entry in ledger.entries):
        said += " That holds if a person has the same label in all of them."
    one, ten, fifty = (f"{low} to {high}" for _, low, high in odds_in_hundred(epsilon))
    return (
        f"{said} Whoever thought something 1, 10 or 50 in 100 likely may, after all runs, "
        f"think it {one}, {ten} or {fifty} in 100 likely."
    )


def total_of(ledger: BudgetAccountant) -> tuple[float, float]:
    """Epsilon and delta of all runs in a folder together."""
    epsilon, delta, cost = *ledger.total(), ledger.cost
    if isinf(epsilon) and isfinite(cost.mu):
        # Every vocabulary sets a part of delta aside: many of them exceed the delta of one run, and
        # the total is said at a delta that is larger by all parts.
        delta += cost.delta
        epsilon = cost.epsilon_at(delta)
    return epsilon, delta


def table_of(rows: Iterable[Sequence[object]]) -> Callable[[Path], None]:
    """Writer of a table: six digits of numbers, NaN as empty, no text that runs as a formula."""

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            for row in rows:
                csv.writer(file).writerow(map(_cell, row))

    return write


def _cell(value: object) -> object:
    """Value as it is written into a table."""
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.6g}"
    return as_cell(value) if isinstance(value, str) else value
