"""The command that shows a ledger."""

import contextlib
import json
import os
from pathlib import Path

import pytest

from sktensor_dp import BudgetAccountant
from sktensor_dp.cli import main as command
from sktensor_dp.privacy.accountant import LedgerEntry
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost


def main(arguments: list[str]) -> int:
    return command(["budget", *arguments])


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "budget.sqlite")
    survey = BudgetAccountant(2.0, 1e-6, path=path, scope="survey")
    entries = [LedgerEntry("Model", "moment", 3, PrivacyCost(mu=0.125), "document")]
    survey.charge(entries).released("moment", 0.5, 4.0)
    BudgetAccountant(1.0, 0.0, path=path, scope="clinic").spend(0.25, 0)
    return path


def test_table(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", path]) == 0
    shown = capsys.readouterr().out
    where, clinic, survey = shown.split("\n\n")
    assert where == f"ledger {path}"
    assert clinic.startswith("clinic: epsilon 0.25 of 1 is spent at delta 0, by 1 fit\n")
    assert survey.startswith("survey: epsilon ")
    row = survey.splitlines()[2].split()
    assert row[2:] == ["Model", "moment", "document", "3", "0.5", "4", "0.125", row[-1]]
    # 3 * 0.125 ** 2 of the mu ** 2 that (2, 1e-6) allows.
    assert float(row[-1].rstrip("%")) == pytest.approx(
        300 * 0.125**2 / gaussian_mu(2.0, 1e-6) ** 2, abs=0.05
    )


def test_json_and_one_scope(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", path, "--json", "--scope", "survey"]) == 0
    (statement,) = json.loads(capsys.readouterr().out)
    assert statement["spent"] == BudgetAccountant(path=path, scope="survey").total()[0]
    assert statement["entries"][0]["sigma"] == 4.0


def test_showing_changes_nothing(path: str) -> None:
    before = Path(path).read_bytes()
    main(["show", path])
    assert Path(path).read_bytes() == before


def test_errors_have_exit_codes(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    missing = path + ".missing"
    assert main(["show", missing]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert not os.path.exists(missing)
    assert main(["show", path, "--scope", "none"]) == 2
    assert "it has 'clinic', 'survey'" in capsys.readouterr().err
    for wrong in (["show"], [], ["spend", path]):
        with pytest.raises(SystemExit) as caught:
            main(wrong)
        assert caught.value.code == 2
    Path(path).write_bytes(b"SQLite format 3\0" + bytes(4096))
    assert main(["show", path]) == 1
    assert "cannot be used" in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = BudgetAccountant(1.0, path=path, scope="\x1b[2Jscope\n")
    hostile.charge([LedgerEntry("\x1b]0;title\x07", "a\nb\r", 1, PrivacyCost(mu=0.1))])
    assert main(["show", path]) == 0
    shown = capsys.readouterr().out
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert len(shown.splitlines()) == 1 + 3 * (1 + 4)


def test_a_relative_path_is_shown_in_full(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same name is another ledger, and another budget, in another folder."""
    with contextlib.chdir(Path(path).parent):
        assert main(["show", Path(path).name]) == 0
        assert capsys.readouterr().out.startswith(f"ledger {path}\n")
        assert main(["show", Path(path).name, "--json"]) == 0
    assert {part["path"] for part in json.loads(capsys.readouterr().out)} == {path}


def test_a_folder_stands_for_its_ledger(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(Path(path).parent)]) == 0
    assert capsys.readouterr().out.startswith(f"ledger {path}\n")
