"""Measured numbers on pages come from files: a page has none that its files lack."""

import ast
import csv
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks import report
from benchmarks.__main__ import BENCHES
from sktensor_dp import BudgetAccountant
from sktensor_dp.spectral_lda.plan import OF_ORDINARY_TEXTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDE = re.findall(r"^(\w+)$", (DOCS / "guide.md").read_text("utf-8"), re.MULTILINE)
PAGES = [DOCS / f"{name}.md" for name in (*GUIDE, "results", "peers")] + sorted(
    (DOCS / "how_to").glob("*.md")
)
INCLUDE = re.compile(r"```\{results\} (\S+)\n(?::data: .+\n)?```")
# A decimal fraction, or a number with a unit, of what was measured.
NUMBER = re.compile(
    r"(?<![\w./=-])(\d[\d,]*\.\d+|\.\d+"
    r"|\d[\d,]*(?= (?:s|seconds?|minutes?|ms|MB|GB|KiB|MiB|GiB|times)\b))"
)
# What is not measured: a table that tests of the search compute anew, e, limits and versions.
PUBLIC = {
    # Definitions that are cited, and a worked case.
    "tuning.md": {*re.findall(r"\.\d+", (DOCS / "tuning.md").read_text("utf-8"))},
    "statement.md": {"2.7", "16"},
    "how_it_works.md": {"0.1"},
    "topics_over_time.md": {"0.33", "3.5"},
    "model_files.md": {"2", "16"},
}


def included(page: Path) -> set[Path]:
    return {(page.parent / name).resolve() for name in INCLUDE.findall(page.read_text("utf-8"))}


def prose(page: Path) -> str:
    """Text without programs, code, targets of links, and values of epsilon, delta and mu."""
    text = re.sub(
        r"```.*?```|^    .*$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|\*\*Versions\.\*\*.*", "", text)
    return re.sub(r"SP 800-226|(epsilon|delta|mu) (=|is) [\d.e-]+", "", text)


def test_pages_have_no_measured_number_that_their_files_lack() -> None:
    lacking = {}
    for page in PAGES:
        cells = "\n".join(file.read_text("utf-8") for file in included(page))
        allowed = set(NUMBER.findall(cells)) | PUBLIC.get(page.name, set())
        if more := set(NUMBER.findall(prose(page))) - allowed:
            lacking[page.name] = more
    assert lacking == {}


def test_a_number_that_no_file_has_is_seen() -> None:
    text = "Errors are .123 or 4.5, in 12 seconds and 1,200 MiB; 3 topics at epsilon, 1e-6."
    assert NUMBER.findall(text) == [".123", "4.5", "12", "1,200"]


def test_the_paper_has_numbers_of_files_and_cites_what_it_lists() -> None:
    paper, references = (
        (ROOT / "paper" / f"paper.{end}").read_text("utf-8") for end in ("md", "bib")
    )
    body = paper.split("\n---\n")[1]
    named = re.findall(r"`(docs/results/\w+\.csv)`", body)
    cells = re.split(r"[,\n]", "\n".join((ROOT / name).read_text("utf-8") for name in named))
    assert set(NUMBER.findall(re.sub(r"`[^`]*`", "", body))) <= set(cells)
    assert set(re.findall(r"@(\w+)", body)) == set(re.findall(r"^@\w+\{(\w+),", references, re.M))
    assert 1000 <= len(body.split()) <= 1500


def test_forecasts_are_as_right_as_readme_and_command_say() -> None:
    """Nine of ten fits that see any are in the range, six of seven as the verdict says.

    A range of all numbers cannot fail: those that leave some out hold for as many. README has runs
    of 3,000 units.
    """
    assert "of ten saw as many" in OF_ORDINARY_TEXTS
    held: list[bool] = []
    for of, name in (("", "found"), ("_of_words", "topics found")):
        with (DOCS / "results" / f"forecasts{of}.csv").open(encoding="utf-8") as file:
            rows = [*csv.DictReader(file)]
        ends = [[int(row[end]) for end in ("likely from", name, "likely to")] for row in rows]
        holds = np.array([low <= found <= high for low, found, high in ends])
        sees_any = np.array([found > 0 for _, found, _ in ends])
        may_fail = [
            not low <= min(2, k) <= k <= high
            for (low, _, high), k in zip(ends, (int(row["topics"]) for row in rows), strict=True)
        ]
        assert holds[sees_any].mean() > 0.9
        held += [*holds[sees_any & may_fail]]
        assert np.mean([int(row["kept"]) for row in rows]) > 6 / 7
    assert np.mean(held) > 0.9
    found: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row["units"] == "3000":
            found.setdefault((row["epsilon"], row["topics"]), []).append(int(row["topics found"]))
    assert found["4", "3"] == [3] * 4
    assert (min(found["4", "10"]), max(found["4", "10"])) == (4, 10)
    assert found["1", "3"].count(3) == 2


def test_as_many_busy_people_are_hidden_as_the_page_of_shares_says() -> None:
    """Once, twice and three times 15 / mu are where four of five releases show some."""
    with (DOCS / "results" / "busy_people.csv").open(encoding="utf-8") as file:
        first, *rows = csv.DictReader(file)
    hidden = {(row["busy people"], row["texts of each"]): float(row["all hidden"]) for row in rows}
    for texts, number in (("60", 15), ("30 to 90", 30), ("10 to 200", 45)):
        assert hidden[f"{number} / mu", texts] < 0.2
    assert hidden["20 / mu", "30 to 90"] > 0.2 < hidden["30 / mu", "10 to 200"]
    assert float(first["4 times too large"]) == pytest.approx(0.01, abs=0.005)


def written() -> dict[str, set[tuple[str, ...]]]:
    """Heads of files by the calls that write them; columns are literal or a constant there."""
    heads: dict[str, set[tuple[str, ...]]] = {}
    for path in (ROOT / "benchmarks").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "report.table":
                continue
            given = {word.arg: word.value for word in call.keywords}
            if "file" not in given:
                continue
            columns = call.args[1]
            if isinstance(columns, ast.Name):
                found = getattr(import_module(f"benchmarks.{path.stem}"), columns.id)
            else:
                found = ast.literal_eval(columns)
            head = (*(["data"] if "group" in given else []), *found, "source")
            heads.setdefault(ast.literal_eval(given["file"]), set()).add(head)
    return heads


def test_every_file_is_what_a_benchmark_writes() -> None:
    """`equal_fits` is computed anew below."""
    heads = {}
    for file in (DOCS / "results").glob("*.csv"):
        head, *rows = csv.reader(file.read_text("utf-8").splitlines())
        assert {len(row) for row in rows} == {len(head)}, file.name
        heads[file.stem] = {tuple(head)}
        for command in {row[-1].split(":")[0] for row in rows if head[-1] == "source"}:
            assert command.removeprefix("python -m benchmarks ") in BENCHES, file.name
    del heads["equal_fits"]
    assert heads == written()


def test_every_file_is_shown() -> None:
    """Forecasts and their fits are too many rows for a page."""
    shown = {file for page in DOCS.rglob("*.md") for file in included(page)}
    shown -= {DOCS / "papers" / "claims.csv"}
    kept = {DOCS / "results" / f"forecasts{of}.csv" for of in ("", "_of_words")}
    assert set((DOCS / "results").glob("*.csv")) == shown | kept


def test_a_full_run_writes_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    for quick in (True, False):
        run = report.Report("topics", quick=quick)
        for name, error in (("a", 0.1234567), ("b", 2.0)):
            run.table(name, ["error"], [[error]], file="x", group=name, how="one seed")
        run.save(tmp_path / "json")
        assert (tmp_path / "x.csv").exists() != quick
    source = "python -m benchmarks topics: one seed"
    rows = list(csv.reader((tmp_path / "x.csv").read_text("utf-8").splitlines()))
    assert rows == [["data", "error", "source"], ["a", "0.1235", source], ["b", "2", source]]


def test_what_equal_fits_may_ask_for() -> None:
    """The one table that is computed, not measured."""
    _, *rows = csv.reader((DOCS / "results" / "equal_fits.csv").read_text("utf-8").splitlines())
    for kind, row in zip(("gaussian", "pure"), rows, strict=True):
        budget = BudgetAccountant(2.0, 1e-6)
        found = [budget.remaining(k, kind=kind)["epsilon"] for k in (1, 4, 10, 50)]
        assert [float(cell) for cell in row[1:]] == pytest.approx(found, abs=0.005)
