"""The page of the papers' figures shows every one, and each leads to the page that has it."""

import re
from pathlib import Path

PAPERS = Path(__file__).parents[2] / "docs" / "papers"


def test_gallery_has_every_figure_once() -> None:
    page = (PAPERS / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"\[!\[[^\]]+\]\(([\w-]+\.svg)\)\]\(([\w-]+\.md)\)", page)
    assert sorted(name for name, _ in shown) == sorted(path.name for path in PAPERS.glob("*.svg"))
    for name, target in shown:
        assert f"({name})" in (PAPERS / target).read_text(encoding="utf-8")
