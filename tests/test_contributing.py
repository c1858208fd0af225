"""CONTRIBUTING.md names tests and files that exist, for every kind of addition."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def test_the_files_that_the_page_names_exist() -> None:
    named = re.findall(r"`((?:tests|docs|sktensor_dp)/[\w/.*]+)`", PAGE.read_text("utf-8"))
    assert len(named) > 10
    assert [path for path in named if not list(PAGE.parent.glob(path))] == []
