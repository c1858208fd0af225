"""Scripts of people, the file of one of them, and runs without some packages."""

import csv
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PEOPLE = Path(__file__).parent
THEMES = (
    ["ship", "sail", "harbour", "captain", "crew", "storm", "cargo", "deck"],
    ["tax", "budget", "levy", "minister", "vote", "law", "senate", "reform"],
    ["goal", "league", "coach", "match", "season", "striker", "referee", "cup"],
)


def write_comments(path: Path, *more: str) -> None:
    """A file of comments, each on one of three themes, and whatever else is to stand in it."""
    rng = np.random.default_rng(0)
    comments = [
        " ".join(rng.choice(THEMES[theme], size=12)) for theme in rng.integers(3, size=6000)
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["comment"], *([comment] for comment in (*comments, *more))])


class _Missing:
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def without(names: Sequence[str], path: str) -> None:
    """Run a script as if packages were missing."""
    sys.meta_path.insert(0, _Missing(names))
    runpy.run_path(path, run_name="__main__")
