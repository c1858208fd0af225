"""Scripts of people, as from an installation with no extras but ``[plots,frames]``."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from people import PEOPLE, THEMES, write_comments

pytest.importorskip("matplotlib", reason="it is of the extra 'plots'")

TESTS = Path(__file__).parents[1]
# What other extras bring.
ELSEWHERE = (
    "dask", "distributed", "opendp", "dp_accounting", "polars", "hypothesis", "mpmath",
    "jsonschema", "selenium", "tensorly", "IPython", "rich",
)  # fmt: skip


def run(name: str, folder: Path) -> str:
    """What a script prints, in a process that cannot import anything else."""
    start = f"from people import without; without({ELSEWHERE!r}, {str(PEOPLE / name)!r})"
    where = {
        **os.environ,
        "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS / 'support'}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", start],
        cwd=folder, env=where, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_file_of_comments_becomes_a_table_and_a_page(tmp_path):
    secret = "xylophone" * 2
    write_comments(tmp_path / "comments.csv", f"ship {secret} sail")
    printed = run("comments.py", tmp_path)
    assert "epsilon 4 of 4 is spent" in printed
    table, page = pd.read_csv(tmp_path / "topics.csv"), (tmp_path / "topics.html").read_text()
    # Every topic is a theme: its leading words are of one, each of another.
    leading = [set(words.split()[:5]) for words in table["words"]]
    found = {
        index for index, theme in enumerate(THEMES) if any(words <= set(theme) for words in leading)
    }
    assert found == {0, 1, 2}
    # Shares are a third each; noise at this epsilon moves them by less than a tenth.
    assert (abs(table["share"] - 1 / 3) < 0.1).all()
    assert secret not in page + printed + table.to_csv()
    assert "ε = 4 at δ = 1e-6" in page
    assert "<svg" in (tmp_path / "topics.svg").read_text()
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])


def test_what_a_user_of_scikit_learn_does(tmp_path):
    printed = run("scikit_learn.py", tmp_path)
    assert "privatetensorpowermethod0" in printed
    assert "\nTrue\n" in printed
    assert "best candidate  value" in printed
    assert "3 components by the released evidence" in printed
    private, public = map(float, re.findall(r"score (\S+), without privacy (\S+)", printed)[0])
    # A single Gaussian, or one spread as data_norm=200 makes it, is worse by .5 at least.
    assert public - 0.3 < private <= public + 0.01
    assert "second_moments" in printed
