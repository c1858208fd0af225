"""The command that checks privacy statements."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from ways_to_fit import report_of

from sktensor_dp.cli import main as command
from sktensor_dp.cli.officer import chance_beyond
from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.statement import MOST_BYTES, load_statement, schema_text


def main(arguments: list[str]) -> int:
    return command(["report", *arguments])


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "statement.json"
    path.write_text(report_of("topics").to_json(), "utf-8")
    return str(path)


def test_a_sound_statement_is_explained(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", path]) == 0
    shown, errors = capsys.readouterr()
    assert errors == ""
    assert shown.startswith(
        f"{path}: adds up. (epsilon = 1, delta = 1e-6)-differential privacy for replacing one "
        "document of 120\n"
    )
    described = "pair_moments: weighted mean second moment of counts"
    for words in ("Unit: document", "costs add up", "2 norm_histogram", described, "How long"):
        assert words in shown


@pytest.mark.parametrize("name", ["search, transformed", "components, stream"])
def test_compositions_are_drawn_as_trees(
    name: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(path).write_text(report_of(name).to_json(), "utf-8")
    assert main(["show", path]) == 0
    shown = capsys.readouterr().out
    if name == "components, stream":
        assert "parallel: a unit is in one part only" in shown
        assert re.search(r"\d+ batch of \d+ units", shown)
    else:
        for words in ("selection: the best", "overlapping:", "1 refit of 120 units", "These "):
            assert words in shown


def test_an_altered_statement_is_refused(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    stated = json.loads(Path(path).read_text("utf-8"))
    stated["guarantee"]["epsilon"] = 0.5
    Path(path).write_text(json.dumps(stated), "utf-8")
    assert main(["check", path]) == 1
    shown, errors = capsys.readouterr()
    assert shown == ""
    assert errors.startswith(f"{path}: REFUSED\n  guarantee.epsilon states 0.5, but")


def test_a_page_for_the_officer_is_made_of_any_statement(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(path).parent
    first, second = report_of("topics"), report_of("topics")
    both = first.followed_by(second, delta=first.delta)
    Path(path).write_text(replace(both, unit="person").to_json(), "utf-8")
    assert main(["page", path]) == 0
    assert "for-the-officer.html" in capsys.readouterr().out
    page = (folder / "for-the-officer.md").read_text("utf-8")
    assert f"epsilon is {both.epsilon:.4g}, delta 1 in 1,000,000." in page
    assert "Each of 120 persons, with everything of theirs" in page
    for of_a_run in ("this folder", "budget.sqlite", "{", "}"):
        assert of_a_run not in page
    assert "<h2>How strongly</h2>" in (folder / "for-the-officer.html").read_text("utf-8")
    # What is there, such as the fuller page of a run, stays.
    assert main(["page", path]) == 1
    assert "move it away" in capsys.readouterr().err
    assert (folder / "for-the-officer.md").read_text("utf-8") == page


@pytest.mark.parametrize(
    ("way", "said"), [("CPCompletion, range chosen", "range of values"), ("topics", "cut off")]
)
def test_a_page_says_that_ranges_were_found_privately(path: str, way: str, said: str) -> None:
    Path(path).write_text(report_of(way).to_json(), "utf-8")
    assert main(["page", path]) == 0
    page = Path(path).with_name("for-the-officer.md").read_text("utf-8")
    assert re.search(f"- found from noisy numbers, within the budget: .*{said}", page)


def test_a_page_says_what_is_public_and_what_is_compared(path: str) -> None:
    page = Path(path).with_name("for-the-officer.md")
    for neighbours, said in {
        "add_remove": "about 120 documents were analysed",
        "tables that differ in a cell": "compares tables that differ in a cell",
    }.items():
        changed = replace(report_of("topics"), neighbours=neighbours)
        Path(path).write_text(changed.to_json(), "utf-8")
        assert main(["page", path]) == 0
        assert said in page.read_text("utf-8")
        page.unlink()
        page.with_suffix(".html").unlink()


@pytest.mark.parametrize(
    ("mu", "epsilon", "chance"),
    [(1e-300, 1.0, 0), (1e-3, 100.0, 0), (50.0, 0.1, 1), (5.0, 1e-9, 1)],
)
def test_no_claim_is_too_odd_for_a_chance(mu: float, epsilon: float, chance: int) -> None:
    assert chance_beyond(mu, epsilon) == chance


def test_each_of_several_files_is_checked(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = path + ".wrong"
    Path(wrong).write_bytes(b"{")
    assert main(["check", path, wrong, path + ".missing", path]) == 1
    shown, errors = capsys.readouterr()
    assert shown.count("adds up") == len(shown.splitlines()) == 2
    assert "not JSON" in errors
    assert "cannot be read" in errors
    assert main(["check", path, path]) == 0


def test_a_limit_refuses_what_is_beyond_it_and_what_protects_nothing(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", path, "--at-most", "1"]) == 0
    assert main(["check", path, "--at-most", "0.9"]) == 1
    assert "at most 0.9 is asked for" in capsys.readouterr().err
    Path(path).write_text(replace(report_of("topics"), seeded=True).to_json(), "utf-8")
    assert main(["check", path]) == 0
    assert "adds up. NOT PRIVATE" in capsys.readouterr().out
    assert main(["check", path, "--at-most", "1"]) == 1
    assert "protects nothing" in capsys.readouterr().err


def test_wrong_arguments_end_with_2(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ([], ["check"], ["other", path], ["check", path, "--at-most", "nan"]):
        with pytest.raises(SystemExit) as caught:
            main(wrong)
        assert caught.value.code == 2
    assert "\nsee sktensor-dp report check --help\n" in capsys.readouterr().err


def test_unreadable_and_endless_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tmp_path)]) == 1
    assert "cannot be read" in capsys.readouterr().err
    # Sparse: no more of it is read than a statement may have.
    huge = tmp_path / "huge"
    with open(huge, "wb") as file:
        file.truncate(100 * MOST_BYTES)
    assert main(["check", str(huge)]) == 1
    assert "longer than" in capsys.readouterr().err


def test_names_cannot_forge_lines(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Newlines and controls in a statement that adds up do not reach the terminal."""
    evil = "x\n/other.json: adds up.\x1b[2J"
    row = ReleaseRecord(evil, evil, 0.1, 0.5, 0.2, 0.0, 0.0, 1, "gaussian")
    whole = Composition("releases", rows=(row,))
    forged = PrivacyReport(whole.epsilon_at(0.1), 0.1, evil, evil, 20, False, whole, (evil,))
    Path(path).write_text(forged.to_json(), "utf-8")
    assert main(["show", path]) == 0
    shown = capsys.readouterr().out
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert not any(line.startswith("/other") for line in shown.splitlines())


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == schema_text()


def test_statements_are_read_from_python() -> None:
    original = report_of("topics")
    assert load_statement(original.to_json()) == original
