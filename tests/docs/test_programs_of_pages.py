"""Programs of the readme and of pages run as printed; commands, links and figures are there."""

import ast
import contextlib
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sktensor_dp import NotEnoughDataWarning
from sktensor_dp.cli.arguments import parse
from sktensor_dp.datasets import load_docstrings

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
FIRST = (README, DOCS / "components.md", DOCS / "completion.md")
FOLDERS = ("start", "tutorials", "privacy", "how_to")
GUIDE = (
    *("completion", "vocabulary", "budget", "statement", "model_files", "audit"),
    *("tuning", "scale", "topics", "mixtures"),
)
PAGES = [
    *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))),
    *(DOCS / f"{name}.md" for name in GUIDE),
]
Printed = pytest.CaptureFixture[str]


def programs(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(program: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        # Whether released moments show all that is asked for, or more, is up to the noise.
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        warnings.filterwarnings("ignore", "At least .* can be seen", UserWarning)
        exec(compile(program, "program", "exec"), names)
    return names


def test_topics_run_as_printed(capsys, monkeypatch):
    # Of one package: to read all that are printed takes longer than everything else.
    texts = load_docstrings(["sklearn"])
    monkeypatch.setattr("sktensor_dp.datasets.load_docstrings", lambda: texts)
    names = run(programs(README)[0])
    assert np.allclose(np.asarray(names["shares"]).sum(axis=1), 1)
    epsilon, delta = names["budget"].total()
    assert (round(epsilon, 9), delta) == (4.0, 1e-6)
    printed = capsys.readouterr().out
    assert "differential privacy for replacing one document" in printed
    assert "pair_moments" in printed
    quoted = README.read_text("utf-8").split("```")[5].split(" ...\n")[0].strip()
    assert quoted == printed.split("\n")[0]


def test_a_stream_and_a_completion_run_as_printed(capsys: Printed) -> None:
    names = run(programs(FIRST[1])[0])
    assert names["model"].is_complete_
    overlaps = np.abs(names["model"].components_ @ np.asarray(names["directions"]).T)
    # Twelve runs with fresh noise had .9999 or more.
    assert overlaps.max(axis=0).min() > 0.9
    assert capsys.readouterr().out.startswith("22 ")
    run(programs(FIRST[2])[0])


def test_first_programs_are_short() -> None:
    assert all(len(ast.parse(program).body) <= 11 for page in FIRST for program in programs(page))


@pytest.mark.nightly
@pytest.mark.parametrize("page", [page for page in PAGES if programs(page)], ids=lambda p: p.stem)
def test_programs_run_as_printed(page: Path, tmp_path: Path, capsys: Printed) -> None:
    program = "\n".join(programs(page))
    with contextlib.chdir(tmp_path):
        run(program)
    assert ("print(" in program) == bool(capsys.readouterr().out)


def test_commands_of_pages_are_understood() -> None:
    texts = [page.read_text("utf-8").replace("\\\n", " ") for page in [README, *DOCS.rglob("*.md")]]
    lines = {line.split("#")[0].strip() for text in texts for line in text.splitlines()}
    found = [line.removeprefix("$ ").split() for line in lines]
    commands = [words[1:] for words in found if words[:1] == ["sktensor-dp"] and words[1:]]
    assert len(commands) >= 8
    for arguments in commands:
        if "--help" not in arguments:
            assert parse(arguments).command == arguments[0]


def test_links_lead_somewhere() -> None:
    for page in [*README.parent.glob("*.md"), *DOCS.glob("**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            # The gallery is made with the site.
            there = "gallery/" in target or (page.parent / target).exists()
            assert there, f"{page.name} links to {target}"


def test_the_page_of_figures_shows_every_one_and_leads_to_its_page() -> None:
    papers = DOCS / "papers"
    page = (papers / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"\[!\[[^\]]+\]\(([\w-]+\.svg)\)\]\(([\w-]+\.md)\)", page)
    assert sorted(name for name, _ in shown) == sorted(path.name for path in papers.glob("*.svg"))
    for name, target in shown:
        assert f"({name})" in (papers / target).read_text(encoding="utf-8")
