"""What three people do, in an environment that has the wheel with ``[plots,frames]`` alone.

``python smoke_people.py`` runs somebody's comments from a file to a table and a page, what a user
of scikit-learn does, and somebody's ratings from a file to recommendations, each as a script of
its own in an empty folder.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "how_to" / "recommendations.md"
# Of other extras, or of those who work on the package: a script must not need them.
ELSEWHERE = ("pytest", "dask", "polars", "opendp", "jsonschema", "dp_accounting", "tensorly")

sys.path.insert(0, str(TESTS / "support"))
from people import PEOPLE, write_comments  # noqa: E402


def run(script: str, folder: Path) -> str:
    """What a script prints, which has nothing but what is installed."""
    where = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script],
        cwd=folder, env=where, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def comments(folder: Path) -> None:
    """Leave a table and a page."""
    write_comments(folder / "comments.csv")
    assert "epsilon 4 of 4 is spent" in run(str(PEOPLE / "comments.py"), folder)
    assert (folder / "topics.csv").read_text(encoding="utf-8").count("\n") == 4
    assert "</html>" in (folder / "topics.html").read_text(encoding="utf-8")


def scikit_learn(folder: Path) -> None:
    """Pipelines, searches, tables, clones."""
    assert "components by the released evidence" in run(str(PEOPLE / "scikit_learn.py"), folder)


def ratings(folder: Path) -> None:
    """The lines of the page on recommendations, after those that write its files."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (folder / "ratings.py").write_text("\n".join(blocks[:2]), encoding="utf-8")
    films = re.findall(r"'((?:crime|comedy|war) \d\d)'", run("ratings.py", folder))
    assert len(set(films)) == 10


def main() -> None:
    """Run all three."""
    assert not [name for name in ELSEWHERE if importlib.util.find_spec(name)]
    for person in (comments, scikit_learn, ratings):
        with tempfile.TemporaryDirectory() as folder:
            person(Path(folder))
        print(f"{person.__name__.replace('_', '-')}: well", flush=True)


if __name__ == "__main__":
    main()
