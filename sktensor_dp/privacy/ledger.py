"""The ledger of a budget: an SQLite database, in a file or in memory.

No connection to a file, and no lock of a file, is shared by threads or crosses a fork: each
operation opens a connection of its own, under a gate that forks wait for.
"""

import json
import math
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sktensor_dp.exceptions import BudgetError, LedgerError
from sktensor_dp.privacy.ledger_entries import (
    Amounts,
    Balance,
    BudgetChange,
    LedgerEntry,
    Spending,
    unit_and_neighbours,
    without_column,
)
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost

APPLICATION = int.from_bytes(b"skdp", "big")
VERSION = 1
PATIENCE = 60.0  # seconds to wait for other processes; a charge takes milliseconds

# Exact sums are stored as text: SQLite's integers have too few digits.
SCHEMA = (
    # One row: a second budget in the file would be opened by one mistyped letter.
    """CREATE TABLE balance (
        scope TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
        spent_mu_squared TEXT NOT NULL, spent_epsilon TEXT NOT NULL,
        spent_delta TEXT NOT NULL, spent_pure_rho TEXT NOT NULL, given_back TEXT NOT NULL,
        unbounded INTEGER NOT NULL, units TEXT NOT NULL, n_changes INTEGER NOT NULL)""",
    """CREATE TABLE budgets (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        changed TEXT NOT NULL, old REAL NOT NULL, new REAL NOT NULL)""",
    """CREATE TABLE charges (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        committed TEXT NOT NULL, ticket TEXT NOT NULL,
        gives_back INTEGER REFERENCES charges(id))""",
    """CREATE TABLE releases (
        charge INTEGER NOT NULL REFERENCES charges(id), position INTEGER NOT NULL,
        spender TEXT NOT NULL, name TEXT NOT NULL, uses INTEGER NOT NULL, unit TEXT NOT NULL,
        mu REAL NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
        sensitivity REAL, sigma REAL, PRIMARY KEY (charge, position)) WITHOUT ROWID""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)

# Raises an error unless a balance may be charged with the entries.
Admission = Callable[[Balance, Sequence[LedgerEntry]], None]


class Contents(NamedTuple):
    """Balance of a ledger, and charges and changes of its budget in order."""

    balance: Balance
    entries: tuple[LedgerEntry, ...]
    changes: tuple[BudgetChange, ...]


_gate = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release
    )


def connect(file: Path, mode: str) -> sqlite3.Connection:
    """Open a ledger file, durable at each commit; `mode` is ``"rw"``, or ``"rwc"`` to create it."""
    uri = f"{file.as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
    try:
        # A rollback journal keeps everything in one file, which can be copied and moved. A commit
        # truncates the journal, which costs a tenth of deleting it.
        (journal,) = connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
        if journal != "truncate":
            raise sqlite3.OperationalError(f"the journal mode is {journal} and cannot be changed")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _explanation(file: Path | None, error: Exception) -> str:
    """Message that says why the ledger could not be used, and that nothing may be released."""
    if file is None:
        return f"The ledger in memory cannot be used: {error}. Nothing may be released."
    if file.is_dir():
        reason = "it is a folder; path must name a file"
    elif not file.parent.is_dir():
        reason = "its folder does not exist"
    elif not file.exists():
        reason = "it does not exist (any more; an accountant with an epsilon makes it)"
    else:
        reason = str(error)
    return (
        f"The ledger {str(file)!r} cannot be used: {reason}. Nothing may be released until it "
        "can be read and written again; if it is damaged, restore it together with every "
        "charge made since, or count its budget as spent."
    )


def _prepare(file: Path | None, connection: sqlite3.Connection, create: bool) -> None:
    """Create the tables in an empty database; LedgerError if it is no ledger of a known version."""

    def stamp() -> list[int]:
        names = ("application_id", "user_version")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if create and tables == 0 and stamp() == [0, 0]:
        for statement in SCHEMA:
            connection.execute(statement)
    application, version = stamp()
    if application != APPLICATION:
        raise LedgerError(f"{str(file)!r} is not a ledger of budgets; it was left as it is.")
    if version > VERSION:
        raise LedgerError(
            f"The ledger {str(file)!r} has format {version}, but this version of sktensor-dp "
            f"knows formats up to {VERSION}. Install a newer version; nothing was charged."
        )


def _check_encodes(name: str, text: Any, encode: Callable[[Any], bytes]) -> None:
    """Raise ValueError if text cannot be encoded; unlike the encoder's error it holds no text."""
    try:
        encode(text)
        return
    except UnicodeEncodeError:
        pass
    raise ValueError(f"{name} must be text that can be written; it holds half of a character.")


class Ledger:
    """Ledger of one data set, its scope, in an SQLite database; each change is one transaction."""

    def __init__(self, path: str | os.PathLike[str] | None, scope: str | None = None) -> None:
        if scope is not None:
            _check_encodes("scope", scope, str.encode)
        self.file: Path | None = None
        if path is not None:
            _check_encodes("path", path, os.fsencode)
            # Resolve links, so that the path names the same file from every folder.
            self.file = Path(os.path.realpath(path))
            if os.path.islink(path) and not self.file.exists():
                raise LedgerError(
                    f"{os.fsdecode(path)!r} is a link to {str(self.file)!r}, which does not exist: "
                    "the target of a link is relative to its folder. No budget was opened; nothing "
                    "was charged."
                )
        self.scope = scope
        # Largest number of committed changes that was seen in the file: one with fewer is an older
        # copy. Threads that share the ledger commit in any order.
        self._seen = 0
        if self.file is None:
            self._process = os.getpid()
            self._in_memory = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False
            )
            weakref.finalize(self, self._in_memory.close)

    def open(self, epsilon: float | None, delta: float | None) -> tuple[str, float]:
        """Find the budget or create it; return its scope and delta. None takes what is stored."""
        if self.file is None and epsilon is None:
            epsilon = math.inf
        mode = "rw" if epsilon is None else "rwc"
        with self.transaction("BEGIN IMMEDIATE", mode) as connection:
            select = "SELECT scope, epsilon, delta FROM balance"
            kept = connection.execute(select).fetchone()
            if kept is None:
                if epsilon is None:
                    raise sqlite3.DatabaseError("it holds no budget")
                new = self.scope or "default", float(epsilon), 1e-6 if delta is None else delta
                nothing = "'0', '0', '0', '0', '[]', 0, '[]', 0"
                connection.execute(f"INSERT INTO balance VALUES (?, ?, ?, {nothing})", new)
                kept = connection.execute(select).fetchone()
            for name, given, stored in zip(
                ("scope", "epsilon", "delta"), (self.scope, epsilon, delta), kept, strict=True
            ):
                if given is not None and given != stored:
                    raise ValueError(
                        f"{name} is {given!r}, but the ledger {str(self.file)!r} holds one budget, "
                        f"with {name}={stored!r}. Leave {name} out to use it, or name another file "
                        "for data of other people. change_budget() changes an epsilon."
                    )
            self._balance(connection)  # raises an error if it is not readable
        scope, _, delta = kept
        self.scope = str(scope)
        return self.scope, float(delta)

    def change_budget(self, old: float, new: float) -> None:
        """Change the budget's epsilon, unless it is no longer `old`; charges stay."""
        with self.transaction("BEGIN IMMEDIATE") as connection:
            stored = self._balance(connection).epsilon
            if stored != old:
                raise BudgetError(
                    f"The budget was epsilon {old:g} and has become {stored:g} in the meantime. "
                    "Nothing was changed or charged."
                )
            connection.execute(
                "INSERT INTO budgets (changed, old, new) VALUES (?, ?, ?)",
                (datetime.now(UTC).isoformat(), old, float(new)),
            )
            change = "UPDATE balance SET epsilon = ?, n_changes = n_changes + 1"
            connection.execute(change, (float(new),))
            n_changes = self._seen + 1
        self._seen = max(self._seen, n_changes)

    def balance(self) -> Balance:
        """Budget, and exact sums of everything charged to it."""
        with self.transaction() as connection:
            return self._balance(connection)

    def contents(self) -> Contents:
        """Everything in the ledger as of one moment."""
        with self.transaction() as connection:
            entries, changes = self._entries(connection), self._changes(connection)
            return Contents(self._balance(connection), entries, changes)

    def verify(self) -> None:
        """Raise LedgerError if the file is damaged, or its sums are not those of its charges."""
        with self.transaction() as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
        balance, entries, changes = self.contents()
        # Each change starts from the budget of the one before; the last leads to today's budget.
        budgets = [*(change.old for change in changes), balance.epsilon]
        if balance.spent != Spending().plus(entries):
            wrong = "its sums are not those of its charges"
        elif changes and budgets[1:] != [change.new for change in changes]:
            wrong = "its budget is not that of its changes"
        else:
            return
        raise LedgerError(_explanation(self.file, sqlite3.DatabaseError(wrong)))

    def charge(
        self, entries: Sequence[LedgerEntry], admit: Admission, ticket: str | None = None
    ) -> "Receipt":
        """Record charges unless `admit` raises, or redeem the ticket of an earlier batch."""
        # One charge pays for all batches of a stream: each batch shows the ticket that the previous
        # one got.
        new_ticket = os.urandom(16).hex()
        if ticket is not None and self._redeem(ticket, new_ticket, entries):
            return Receipt(self, fit=0, ticket=new_ticket, entries=entries)
        # BEGIN IMMEDIATE takes the lock for writing before the balance is read.
        with self.transaction("BEGIN IMMEDIATE") as connection:
            before = self._balance(connection)
            after = before.spent.plus(entries)
            admit(before, entries)
            fit = self._insert(connection, entries, new_ticket)
            n_changes = self._store_sums(connection, after)
        self._seen = max(self._seen, n_changes)
        return Receipt(self, fit, new_ticket, entries)

    def give_back(self, fit: int, ticket: str, entry: LedgerEntry) -> str:
        """Record that a fit gives the cost of `entry` back; return what replaces its `ticket`."""
        new_ticket = os.urandom(16).hex()
        with self.transaction("BEGIN IMMEDIATE") as connection:
            before = self._balance(connection)
            entries = self._entries(connection)
            # A charge of which something was given back pays for no further batch, and one that
            # paid for a further batch gives nothing back: its ticket is another.
            redeem = "UPDATE charges SET ticket = ? WHERE ticket = ? AND id = ?"
            if connection.execute(redeem, (new_ticket, ticket, fit)).rowcount != 1:
                raise ValueError("a charge that pays for another batch gives nothing back.")
            # Raises an error if the fit would give back more than it was charged.
            Spending().plus([*(one for one in entries if one.fit == fit), entry])
            self._insert(connection, [entry], os.urandom(16).hex(), gives_back=fit)
            n_changes = self._store_sums(connection, before.spent.plus([entry]))
        self._seen = max(self._seen, n_changes)
        return new_ticket

    def _store_sums(self, connection: sqlite3.Connection, spent: Spending) -> int:
        """Store the sums of all charges; return the number of changes of the file."""
        given_back = json.dumps(list(map(str, spent.given_back)))
        connection.execute(
            "UPDATE balance SET spent_mu_squared = ?, spent_epsilon = ?, spent_delta = ?, "
            "spent_pure_rho = ?, given_back = ?, unbounded = ?, units = ?, "
            "n_changes = n_changes + 1",
            (*map(str, spent.amounts), given_back, int(spent.unbounded),
             json.dumps(sorted(spent.units))),
        )  # fmt: skip
        return self._seen + 1

    def _redeem(self, ticket: str, new_ticket: str, entries: Sequence[LedgerEntry]) -> bool:
        """Replace a valid `ticket` by `new_ticket`; return False if it is not valid.

        A valid ticket is known, unused, and pays for the unit of `entries`.
        """
        # A charge for persons pays for those of any column, who may be the same people.
        protected = {entry.protects for entry in entries}
        units = sorted(protected.union(map(without_column, protected)))
        with self.transaction("BEGIN IMMEDIATE") as connection:
            self._current_row(connection)  # refuses an older copy of the file
            redeem = (
                "UPDATE charges SET ticket = ? WHERE ticket = ? AND id IN (SELECT charge FROM "
                f"releases WHERE unit IN ({', '.join('?' * len(units))}))"
            )
            n_redeemed = connection.execute(redeem, (new_ticket, ticket, *units)).rowcount
            # Count the change: an older copy of the file would accept the ticket again.
            count = "UPDATE balance SET n_changes = n_changes + ?"
            connection.execute(count, (n_redeemed,))
            n_changes = self._seen + n_redeemed
        self._seen = max(self._seen, n_changes)  # another thread may have seen more
        return n_redeemed > 0

    def store_release(self, fit: int, release: str, sensitivity: float, sigma: float) -> None:
        """Store sensitivity and sigma of a charged release before it is made."""
        with self.transaction("BEGIN IMMEDIATE") as connection:
            self._current_row(connection)  # refuses an older copy of the file
            count = "SELECT COUNT(*) FROM charges WHERE id = ?"
            if connection.execute(count, (fit,)).fetchone() != (1,):
                raise sqlite3.DatabaseError("it does not hold the charge of this release")
            connection.execute(
                "UPDATE releases SET sensitivity = ?, sigma = ? WHERE charge = ? AND name = ?",
                (float(sensitivity), float(sigma), fit, release),
            )

    @contextmanager
    def transaction(self, begin: str = "BEGIN", mode: str = "rw") -> Iterator[sqlite3.Connection]:
        """Run a block as one transaction; errors of the database become :class:`LedgerError`."""
        if self.file is None and os.getpid() != self._process:
            raise LedgerError(
                "This process was forked from the one that made the BudgetAccountant, which would "
                "not see the charge. Give the accountant a file that processes can share: "
                "BudgetAccountant(epsilon, delta, path='budget.sqlite')."
            )
        try:
            with _gate, self._connected(mode) as connection:
                try:
                    connection.execute(begin)
                    _prepare(self.file, connection, create=mode == "rwc")
                    yield connection
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(_explanation(self.file, error)) from error

    def _connected(self, mode: str) -> AbstractContextManager[sqlite3.Connection]:
        """Connection to the file, or the one in memory."""
        if self.file is None:
            return nullcontext(self._in_memory)
        return closing(connect(self.file, mode))

    def _current_row(self, connection: sqlite3.Connection) -> tuple[Any, ...]:
        """Return budget and sums; raise an error if the file is an older copy of the ledger."""
        row = connection.execute(
            "SELECT epsilon, delta, spent_mu_squared, spent_epsilon, spent_delta, spent_pure_rho, "
            "given_back, unbounded, units, scope, n_changes FROM balance"
        ).fetchone()
        # Without a row it has fewer changes than any ledger.
        *sums, scope, n_changes = ("", -1) if row is None else row
        if self.scope not in (None, scope) or n_changes < self._seen:
            raise sqlite3.DatabaseError("it was replaced by a file with fewer charges")
        self._seen = n_changes
        return tuple(sums)

    def _balance(self, connection: sqlite3.Connection) -> Balance:
        """Stored budget and sums as a `Balance`."""
        row = self._current_row(connection)
        of_budget, at_delta, *sums, given_back, unbounded, units = row
        try:
            spent = Spending(
                Amounts(*map(int, sums)), Amounts(*map(int, json.loads(given_back))),
                bool(unbounded), frozenset(map(str, json.loads(units))),
            )  # fmt: skip
            return Balance(float(of_budget), float(at_delta), spent)
        except (TypeError, ValueError):
            raise sqlite3.DatabaseError("a sum in it is not readable") from None

    def _changes(self, connection: sqlite3.Connection) -> tuple[BudgetChange, ...]:
        """Stored changes of the budget, in order."""
        rows = connection.execute("SELECT changed, old, new FROM budgets ORDER BY id")
        try:
            return tuple(
                BudgetChange(datetime.fromisoformat(when), float(old), float(new))
                for when, old, new in rows
            )
        except (TypeError, ValueError):
            raise sqlite3.DatabaseError("a change of the budget in it is not readable") from None

    def _entries(self, connection: sqlite3.Connection) -> tuple[LedgerEntry, ...]:
        """Stored charges, in order."""
        rows = connection.execute(
            "SELECT gives_back IS NOT NULL, committed, COALESCE(gives_back, id), spender, name, "
            "uses, unit, mu, epsilon, delta, sensitivity, sigma FROM charges JOIN releases ON "
            "charge = id ORDER BY id, position"
        )
        entries = []
        try:
            for gives_back, when, fit, spender, release, uses, protects, *cost in rows:
                *cost, sensitivity, sigma = cost
                unit, neighbours = unit_and_neighbours(protects)
                entries.append(
                    LedgerEntry(
                        spender, release, uses, PrivacyCost(*cost), unit, sensitivity, sigma,
                        when=datetime.fromisoformat(when), fit=fit, neighbours=neighbours,
                        gives_back=bool(gives_back),
                    )
                )  # fmt: skip
        except (TypeError, ValueError):
            raise sqlite3.DatabaseError("a charge in it is not readable") from None
        return tuple(entries)

    def _insert(
        self, connection: sqlite3.Connection, entries: Sequence[LedgerEntry], ticket: str,
        gives_back: int | None = None,
    ) -> int:  # fmt: skip
        """Store entries as one charge, in the caller's transaction; return the charge's number."""
        cursor = connection.execute(
            "INSERT INTO charges (committed, ticket, gives_back) VALUES (?, ?, ?)",
            (datetime.now(UTC).isoformat(), ticket, gives_back),
        )
        fit = cursor.lastrowid
        assert fit is not None
        connection.executemany(
            "INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            [
                (fit, position, e.spender, e.release, e.uses, e.protects, *e.cost.amounts)
                for position, e in enumerate(entries)
            ],
        )
        return fit


class Receipt:
    """Receipt of a fit's charge: what the ledger learns of its releases, or gets back."""

    # `ticket` pays for one further batch of a stream, whichever copy of the model uses it first;
    # other fits do not keep it, and none is left where something was given back. `fit` is 0 for a
    # batch that an earlier charge pays for, whose releases are described already.

    def __init__(
        self, ledger: Ledger, fit: int, ticket: str, entries: Sequence[LedgerEntry]
    ) -> None:
        self._ledger, self._entries = ledger, entries
        self.fit = fit
        self.ticket: str | None = ticket
        self._own_ticket = ticket  # to give back by
        self._largest: dict[str, float] = {}

    def announce(self, name: str, sensitivity: float, sigma: float) -> None:
        """Store sensitivity and sigma, public numbers, of a release that is about to be made."""
        # With several uses the ledger keeps the largest sensitivity (the cost fixes its ratio to
        # sigma). Equal ones are written once.
        if self.fit and not sensitivity <= self._largest.get(name, -math.inf):
            self._ledger.store_release(self.fit, name, sensitivity, sigma)
            self._largest[name] = sensitivity

    def give_back(self, release: PlannedRelease) -> None:
        """Give the cost of a charged release that is not made back to the budget."""
        # Later batches of a stream may still be paid by its charge.
        if self.fit and self._entries:
            name, uses, cost = release.name, release.uses, release.cost
            first = self._entries[0]
            entry = replace(first, release=name, uses=uses, cost=cost, gives_back=True)
            self.ticket = None
            self._own_ticket = self._ledger.give_back(self.fit, self._own_ticket, entry)
