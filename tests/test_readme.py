"""The readme's example runs as printed, and does what the text around it says."""

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from sktensor_dp import NotEnoughDataWarning
from sktensor_dp.cli.arguments import parse

README = Path(__file__).parents[1] / "README.md"


PAGES = [README, *(README.parent / "docs" / f"{name}.md" for name in ("components", "completion"))]


def examples(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(example: str) -> dict[str, object]:
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # Whether the released moments show all that is asked for is up to the noise.
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        exec(compile(example, "example", "exec"), names)
    return names


def test_the_first_lines_print_what_stands_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    run(examples(README)[0])
    # Means of 10,000 rows are known to .01, noise moves them by .03: far from .5.
    below = README.read_text(encoding="utf-8").split("```python\n")[1].split("```")[2]
    assert capsys.readouterr().out == below.removeprefix("\n")


def test_topics_run_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(examples(README)[1])
    assert np.allclose(np.asarray(names["shares"]).sum(axis=1), 1)
    epsilon, delta = names["budget"].total()  # type: ignore[attr-defined]
    assert (round(epsilon, 9), delta) == (4.0, 1e-6)
    printed = capsys.readouterr().out
    assert "differential privacy for replacing one document" in printed
    assert "pair_moments" in printed


def test_commands_of_pages_are_understood() -> None:
    pages = [README, *(README.parent / "docs").rglob("*.md")]
    texts = [page.read_text("utf-8").replace("\\\n", " ") for page in pages]
    lines = [line.split("#")[0] for text in texts for line in text.splitlines()]
    found = {line.strip().removeprefix("$ ") for line in lines}
    commands = [line.split()[1:] for line in found if line.startswith("sktensor-dp ")]
    assert len(commands) >= 8
    for arguments in commands:
        if "--help" not in arguments:
            assert parse(arguments).command == arguments[0]


def test_stream_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(examples(PAGES[1])[0])
    assert names["model"].is_complete_  # type: ignore[attr-defined]
    overlaps = np.abs(names["model"].components_ @ np.asarray(names["directions"]).T)  # type: ignore[attr-defined]
    # Twelve runs with fresh noise had .9999 or more.
    assert overlaps.max(axis=0).min() > 0.9
    assert capsys.readouterr().out.startswith("22 ")


def test_completion_runs_as_printed() -> None:
    run(examples(PAGES[2])[0])


def test_examples_are_short() -> None:
    for page in PAGES:
        for example in examples(page):
            assert len(ast.parse(example).body) <= 10


def test_links_lead_somewhere() -> None:
    for page in [*README.parent.glob("*.md"), *README.parent.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            # The gallery is made with the site.
            there = "gallery/" in target or (page.parent / target).exists()
            assert there, f"{page.name} links to {target}"
