"""What a release consists of agrees with the package: version, pages, supported versions."""

import re
import tomllib
from pathlib import Path

import sktensor_dp

ROOT = Path(__file__).parents[1]


def test_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == sktensor_dp.__version__  # type: ignore[index]
    newest = re.search(
        r"^## (?:\[)?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert newest is not None
    assert newest[1] == sktensor_dp.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]


def test_readme_is_short_and_its_first_screen_has_a_result() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 120
    first = (
        "pip install sktensor-dp",
        "```python",
        "[0.5 0.3 0.2]",
        "![",
        "make demo",
        "make test",
    )
    places = [next(n for n, line in enumerate(lines) if line.startswith(word)) for word in first]
    assert places == sorted(places)
    assert places[-1] < 40


def test_files_of_a_release_are_in_the_source_distribution() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all((ROOT / name).exists() for name in included)
    assert {path.name for path in ROOT.glob("*.md")} <= set(included)
