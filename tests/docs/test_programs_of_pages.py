"""Programs on the pages for readers run as printed, from the first block of a page to its last."""

import contextlib
import re
import warnings
from pathlib import Path

import pytest

from sktensor_dp import NotEnoughDataWarning

pytestmark = pytest.mark.nightly

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("start", "tutorials", "privacy", "how_to")
GUIDE = ("completion", "vocabulary", "budget", "statement", "model_files", "audit")
PAGES = [
    *sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md")),
    *(DOCS / f"{name}.md" for name in GUIDE),
]


def programs(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


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
