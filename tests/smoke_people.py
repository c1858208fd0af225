"""Three people's work, each in a script of its own, with the extras ``[plots,frames]`` alone.

``python smoke_people.py``, in an environment that has the wheel with them, takes somebody's
comments from a file to a table and a page, does what a user of scikit-learn does, and takes
somebody's ratings from a file to recommendations. ``tests/examples/test_people.py`` does the same.
"""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "how_to" / "recommendations.md"
# Of other extras, or of those who work on the package: a script must not need them.
ELSEWHERE = (
    "pytest", "dask", "distributed", "opendp", "dp_accounting", "polars", "hypothesis", "mpmath",
    "jsonschema", "selenium", "tensorly", "IPython", "rich",
)  # fmt: skip

sys.path.insert(0, str(TESTS / "support"))
from people import PEOPLE, THEMES, write_comments  # noqa: E402

Run = Callable[[Path, Path], str]  # of a script in a folder: what it prints


def run(script: Path, folder: Path) -> str:
    where = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=folder, env=where, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def comments(folder: Path, run: Run) -> None:
    """Leave a table, a page and a picture."""
    secret = "xylophone" * 2
    write_comments(folder / "comments.csv", f"ship {secret} sail")
    printed = run(PEOPLE / "comments.py", folder)
    assert "epsilon 4 of 4 is spent" in printed
    table, page = pd.read_csv(folder / "topics.csv"), (folder / "topics.html").read_text("utf-8")
    # Every topic is a theme: its leading words are of one, each of another.
    leading = [set(words.split()[:5]) for words in table["words"]]
    assert all(any(words <= set(theme) for words in leading) for theme in THEMES)
    # Shares are a third each; noise at this epsilon moves them by less than a tenth.
    assert (abs(table["share"] - 1 / 3) < 0.1).all()
    assert secret not in page + printed + table.to_csv()
    assert "ε = 4 at δ = 1e-6" in page
    assert "<svg" in (folder / "topics.svg").read_text("utf-8")
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)


def scikit_learn(folder: Path, run: Run) -> None:
    """Pipelines, searches, tables, clones."""
    printed = run(PEOPLE / "scikit_learn.py", folder)
    for part in ("\nTrue\n", "second_moments", "3 groups by the released gains"):
        assert part in printed
    private, public = map(float, re.findall(r"score (\S+), without privacy (\S+)", printed)[0])
    # A single Gaussian, or one spread as data_norm=200 makes it, is worse by .5 at least.
    assert public - 0.3 < private <= public + 0.01


def ratings(folder: Path, run: Run) -> None:
    """Recommend ten films that were not rated, by the first lines of a page."""
    page = PAGE.read_text(encoding="utf-8")
    data, lines = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[:2]
    assert len(ast.parse(lines).body) <= 12
    (folder / "ratings.py").write_text(data + lines, encoding="utf-8")
    films = re.findall(r"'((?:crime|comedy|war) \d\d)'", run(folder / "ratings.py", folder))
    assert len(set(films)) == len(films) == 10
    rated = re.findall(r"^user 7,([^,]+),", (folder / "ratings.csv").read_text("utf-8"), re.M)
    assert not set(rated) & set(films)


PERSONS = (comments, scikit_learn, ratings)


def main() -> None:
    """Run all three."""
    assert not [name for name in ELSEWHERE if importlib.util.find_spec(name)]
    for person in PERSONS:
        with tempfile.TemporaryDirectory() as folder:
            person(Path(folder), run)
        print(f"{person.__name__.replace('_', '-')}: well", flush=True)


if __name__ == "__main__":
    main()
