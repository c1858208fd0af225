"""The command that shows a ledger."""

import io
import json
from pathlib import Path

import pytest

from sktensor_dp import BudgetAccountant
from sktensor_dp.cli import main
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.plan import PrivacyCost


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "budget.sqlite"
    survey = BudgetAccountant(2.0, 1e-6, path=path, scope="survey")
    entries = [LedgerEntry("Model", "moment", 3, PrivacyCost(mu=0.125), "document")]
    survey.charge(entries).announce("moment", 0.5, 4.0)
    return path


def test_a_ledger_is_shown_by_its_name_its_path_or_its_folder(command, path):
    before = path.read_bytes()
    shown = command("budget", "show", path).out
    where, survey = shown.split("\n\n")
    # In full: the same name is another ledger, and another budget, in another folder.
    assert where == f"ledger {path}"
    assert survey.startswith("survey: epsilon ")
    row = survey.splitlines()[2].split()
    assert row[2:] == ["Model", "moment", "document", "3", "0.5", "4", "0.125", row[-1]]
    # 3 * 0.125 ** 2 of the mu ** 2 that (2, 1e-6) allows.
    assert float(row[-1].rstrip("%")) == pytest.approx(
        300 * 0.125**2 / gaussian_mu(2.0, 1e-6) ** 2, abs=0.05
    )
    assert command("budget", "show", path.name).out == shown
    assert command("budget", "show", path.parent).out == shown
    part = json.loads(command("budget", "show", path.name, "--json").out)
    assert part["path"] == str(path)
    assert part["spent"] == BudgetAccountant(path=path).total()[0]
    assert part["entries"][0]["sigma"] == 4.0
    assert path.read_bytes() == before


def test_errors_have_exit_codes(command, path):
    missing = Path(f"{path}.missing")
    done = command("budget", "show", missing, status=1)
    assert "does not exist" in done.err
    assert not missing.exists()
    path.write_bytes(b"SQLite format 3\0" + bytes(4096))
    done = command("budget", "show", path, status=1)
    assert "cannot be used" in done.err


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_what_a_console_cannot_show_is_replaced(encoding, path, monkeypatch):
    path.unlink()
    BudgetAccountant(1.0, path=path, scope="\u043c\u043e\u0440\u0435")
    console = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", console)
    assert main(["budget", "show", str(path)]) == 0
    console.flush()
    assert b"????: epsilon 0 of 1" in console.buffer.getvalue()


def test_control_characters_do_not_reach_the_terminal(command, path):
    path.unlink()
    hostile = BudgetAccountant(1.0, path=path, scope="\x1b[2Jscope\n")
    hostile.charge([LedgerEntry("\x1b]0;title\x07", "a\nb\r", 1, PrivacyCost(mu=0.1))])
    shown = command("budget", "show", path).out
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert len(shown.splitlines()) == 1 + (1 + 4)
