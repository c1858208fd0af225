"""Whatever befalls the file or the process: no release without its charge, and none is lost."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ledger_processes import run_script
from small_completions import X0, Y0, build

from sktensor_dp import BudgetAccountant, BudgetError
from sktensor_dp.exceptions import LedgerError
from sktensor_dp.privacy import ledger
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.plan import PrivacyCost

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.sqlite"


def fit(budget: BudgetAccountant) -> None:
    build(accountant=budget, perturbation="output").fit(X0, Y0)


def alter(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def refuse(path: Path, event: str) -> None:
    """Let the file refuse a kind of change."""
    alter(path, f"CREATE TRIGGER t BEFORE {event} BEGIN SELECT RAISE(ABORT, 'full'); END")


def test_noise_is_watched(path, drawn):
    fit(BudgetAccountant(5.0, path=path))
    assert drawn


# Files not usable


def zeros_in_the_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100 : len(content) // 2] = bytes(len(content) // 2 - 100)
    path.write_bytes(content)


FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "garbage": (lambda path: path.write_bytes(os.urandom(8192)), "not a database"),
    "zeros": (zeros_in_the_middle, "cannot be used"),
    "truncated": (lambda path: os.truncate(path, 4096), "cannot be used"),
    "empty": (lambda path: os.truncate(path, 0), "not a ledger"),
    "gone": (lambda path: path.unlink(), "does not exist"),
    "newer": (lambda path: alter(path, "PRAGMA user_version = 2"), "newer version"),
    "foreign": (lambda path: alter(path, "PRAGMA application_id = 7"), "not a ledger"),
    "balance gone": (lambda path: alter(path, "DELETE FROM balance"), "fewer charges"),
    "sum": (
        lambda path: alter(path, "UPDATE balance SET spent_epsilon = 'none'"),
        "sum in it is not readable",
    ),
    "table": (lambda path: alter(path, "DROP TABLE charges"), "no such table"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "folder"),
    # After the charge, and before noise.
    "no release": (lambda path: refuse(path, "UPDATE ON releases"), "full"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_cannot_be_used_stops_the_fit(fault, path, drawn):
    budget = BudgetAccountant(5.0, path=path)
    budget.spend(0.5, 0)
    spoil, message = FAULTS[fault]
    spoil(path)
    with pytest.raises(LedgerError, match=message):
        fit(budget)
    assert drawn == []
    assert "not readable" in repr(budget) or fault in ("table", "no release")


FOREIGN = (lambda path: (path.unlink(), alter(path, "CREATE TABLE mine (x)")), "not a ledger")
SPOILT = {
    name: FAULTS[name]
    for name in FAULTS.keys() - {"gone", "empty", "balance gone", "table", "no release"}
}


@pytest.mark.parametrize("fault", sorted([*SPOILT, "another database"]))
def test_a_spoilt_file_is_not_opened_and_not_altered(fault, path):
    BudgetAccountant(5.0, path=path).spend(0.5, 0)
    spoil, message = SPOILT.get(fault, FOREIGN)
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(LedgerError, match=message):
        BudgetAccountant(5.0, path=path)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_folders_are_not_made(tmp_path):
    for path, message in (
        (tmp_path / "missing" / "budget.sqlite", "folder does not exist"),
        (tmp_path, "name a file"),
    ):
        with pytest.raises(LedgerError, match=message):
            BudgetAccountant(5.0, path=path)


def test_an_older_copy_is_noticed(path, drawn):
    """By the next charge, and by a release whose charge is not in the file."""
    budget = BudgetAccountant(5.0, path=path)
    budget.spend(0.5, 0)
    older = path.read_bytes()
    receipt = budget.charge([LedgerEntry("a", "x", 1, PrivacyCost(mu=0.1))])
    path.write_bytes(older)
    for call in (lambda: fit(budget), lambda: receipt.announce("x", 1.0, 10.0)):
        with pytest.raises(LedgerError, match="fewer charges"):
            call()
    assert drawn == []


@contextmanager
def opened(wrap: Callable[[Any], Any], mode: str = "") -> Iterator[None]:
    """Let every connection to a file go through a function first, or have another mode."""
    connect = sqlite3.connect

    def wrapped(file: Any, **options: Any) -> sqlite3.Connection:
        file = re.sub(r"mode=\w+", f"mode={mode}", file) if mode else file
        connection = connect(file, **options)
        wrap(connection)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", wrapped)
        yield


def test_a_file_that_cannot_be_written_can_be_read(path, drawn):
    BudgetAccountant(5.0, path=path).spend(0.5, 0)
    with opened(lambda _: None, mode="ro"):
        budget = BudgetAccountant(path=path)
        assert budget.total()[0] == 0.5
        with pytest.raises(LedgerError, match=r"(?s)readonly.*Nothing may be released"):
            fit(budget)
    assert drawn == []


def test_a_full_disk_stops_the_fit(path, drawn):
    budget = BudgetAccountant(5.0, path=path)

    def spend_often() -> None:
        for _ in range(100):
            budget.spend(0.001, 0)

    while os.path.getsize(path) < 20 * 4096:
        budget.spend(0.001, 0)
        alter(path, f"UPDATE releases SET spender = '{'x' * 4000}'")
    before = len(budget.entries)
    with opened(lambda connection: connection.execute("PRAGMA max_page_count = 1")):
        # A page that is half full may still take a charge or some; one of a hundred is refused.
        for call in (spend_often, lambda: fit(budget)):
            with pytest.raises(LedgerError, match="full"):
                call()
        after = len(budget.entries), budget.total()
    assert drawn == []
    assert (len(budget.entries), budget.total()) == after
    assert after[0] - before < 100


def test_a_lock_that_is_never_given_up_ends_in_an_error(path, drawn, monkeypatch):
    budget = BudgetAccountant(5.0, path=path)
    monkeypatch.setattr(ledger, "PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"):
            fit(budget)
    assert drawn == []
    assert budget.entries == ()


# Transactions


@pytest.mark.parametrize(
    "event", [None, "INSERT ON charges", "INSERT ON releases", "UPDATE ON balance"]
)
def test_a_charge_that_fails_half_way_leaves_nothing(event, path):
    budget = BudgetAccountant(5.0, path=path)
    budget.spend(0.5, 0)
    before = budget.entries, budget.total()
    if event is not None:
        refuse(path, event)
    with pytest.raises(BudgetError):
        budget.spend(0.25 if event else 25.0, 0)
    assert (budget.entries, budget.total()) == before


def test_the_balance_is_read_under_the_lock_for_writing(path):
    """While a charge is being checked nobody else can charge."""
    budget, said = BudgetAccountant(1.0, 0.0, path=path), []
    with opened(lambda connection: connection.set_trace_callback(said.append)):
        budget.spend(0.8, 0)
    locked = said.index("BEGIN IMMEDIATE")
    charged = next(n for n, one in enumerate(said) if one.startswith("INSERT INTO charges"))
    balances = [n for n, one in enumerate(said) if "FROM balance" in one]
    assert [n for n in balances if locked < n < charged]
    assert not {"COMMIT", "ROLLBACK"} & set(said[locked:charged])


def test_commits_wait_for_the_disk(path):
    with closing(ledger.connect(path, "rwc")) as connection:
        names = ("journal_mode", "synchronous", "fullfsync")
        settings = [connection.execute(f"PRAGMA {n}").fetchone()[0] for n in names]
    assert settings == ["truncate", 3, 1]  # 3 is EXTRA


@pytest.mark.parametrize(
    ("change", "told"), [("spent_epsilon = '1'", "sums"), ("epsilon = 9", "changes")]
)
def test_sums_and_budgets_that_do_not_follow_are_found(change, told, path):
    BudgetAccountant(5.0, path=path).spend(0.5, 0)
    kept = ledger.Ledger(path)
    for old, new in ((5.0, 6.0), (6.0, 2.0)):
        kept.change_budget(old, new)
    kept.verify()
    alter(path, f"UPDATE balance SET {change}")
    with pytest.raises(LedgerError, match=told):
        kept.verify()


# Kill -9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_what_left_a_killed_process_was_charged(path):
    # No seed repeats where a fit is when it is killed.
    answer = run_script("kill", str(path), "--kills", "10")
    assert answer["shortfalls"] == []
    # Kills came while fits were running, not before or between them: about two in three do,
    # and none of ten with probability 2e-5.
    assert answer["mid_fit"] >= 1
    ledger.Ledger(path, "default").verify()
