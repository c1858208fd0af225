"""Programs on the pages for readers run as printed, from the first block of a page to its last."""

import ast
import contextlib
import re
import warnings
from pathlib import Path

import pytest

from sktensor_dp import NotEnoughDataWarning

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("start", "tutorials", "privacy", "how_to")
GUIDE = (
    *("completion", "vocabulary", "budget", "statement", "model_files", "audit"),
    *("tuning", "scale", "topics"),
)


def programs(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


PAGES = [
    *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))),
    *(DOCS / f"{name}.md" for name in GUIDE),
]


@pytest.mark.nightly
@pytest.mark.parametrize("page", [page for page in PAGES if programs(page)], ids=lambda p: p.stem)
def test_programs_run_as_printed(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "\n".join(programs(page))
    with warnings.catch_warnings(), contextlib.chdir(tmp_path):
        # Whether released moments show all that is asked for is up to the noise.
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        exec(compile(program, page.name, "exec"), {})
    assert ("print(" in program) == bool(capsys.readouterr().out)


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_a_short_program_recommends_ten_films_that_were_not_rated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``tests/smoke_people.py`` runs them without other extras than [plots,frames]."""
    data, lines = programs(DOCS / "how_to" / "recommendations.md")[:2]
    assert len(ast.parse(lines).body) <= 12
    with contextlib.chdir(tmp_path):
        exec(compile(data + lines, "recommendations", "exec"), {})
    films = re.findall(r"'((?:crime|comedy|war) \d\d)'", capsys.readouterr().out)
    assert len(set(films)) == len(films) == 10
    rated = re.findall(r"^user 7,([^,]+),", (tmp_path / "ratings.csv").read_text(), re.M)
    assert not set(rated) & set(films)


def test_the_page_of_figures_shows_every_one_and_leads_to_its_page() -> None:
    papers = DOCS / "papers"
    page = (papers / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"\[!\[[^\]]+\]\(([\w-]+\.svg)\)\]\(([\w-]+\.md)\)", page)
    assert sorted(name for name, _ in shown) == sorted(path.name for path in papers.glob("*.svg"))
    for name, target in shown:
        assert f"({name})" in (papers / target).read_text(encoding="utf-8")
