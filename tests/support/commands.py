"""A file of posts by persons, and what the command answers."""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sktensor_dp import PrivacyReport, load_statement

SECRET = "unmistakable"
N_TEXTS, N_PERSONS = 5973, 2811


# A number with the wrong form of its noun.
PLURAL_OF_ONE = re.compile(
    r"(?<![\d.,] )(?<![\d.,])\b1 (topics|rows|documents|words|columns|units|persons|texts|groups|"
    r"components|items|ratings|files|features|entries|axes|runs|samples|batches)\b"
)


@dataclass
class Answer:
    """What the command printed."""

    out: str
    err: str


Command = Callable[..., Answer]


def kept_from_the_officer(answer: Answer) -> list[str]:
    """Warnings of results that a run printed, and that its page for the officer does not have.

    Warnings of other packages may be about rows: no page shows them.
    """
    written = re.search(r"^Written to (.*): .*for-the-officer\.md", answer.out, re.MULTILINE)
    if not written:
        return []
    page = Path(written[1], "for-the-officer.md").read_text("utf-8")
    *_, after = answer.err.rpartition("\nLearning ")
    said = re.findall("^warning: (.*)$", after, re.MULTILINE)
    is_page = "nothing is protected" not in page  # else it says that alone
    return [one for one in said if is_page and one not in page and "numpy says" not in one]


def write_posts(path: Path, n_texts: int = N_TEXTS, n_persons: int = N_PERSONS) -> Path:
    """Two subjects, one of them for each person; every post holds a word that no other does."""
    path.write_text(_posts(n_texts, n_persons), encoding="utf-8")
    return path


@cache
def _posts(n_texts: int, n_persons: int) -> str:
    rng = np.random.default_rng(0)
    words = np.array([f"{stem}{i}" for stem in ("alpha", "omega") for i in range(20)])
    rows = []
    for number in range(n_texts):
        text = " ".join(rng.choice(words[20 * (number % n_persons % 2) :][:20], size=12))
        rows.append(f"author{number % n_persons},{text} {SECRET}{number}\n")
    return "author,post\n" + "".join(rows)


# A small fit; nothing is known of whether so little data is enough.
SMALL = ("--topics", 2, "--words", 40, "--anyway")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stated(folder: Path) -> PrivacyReport:
    return load_statement((folder / "statement.json").read_text(encoding="utf-8"))
