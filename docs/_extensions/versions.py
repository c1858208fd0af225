"""Write the tables of docs/versions.md: lowest versions, and those that the tests run with.

Arguments are the interpreters of `make test`, `make test-oldest` and `make test-newest`.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "versions.md"
SHOWN = ("numpy", "scipy", "scikit-learn", "pandas", "polars", "pyarrow")
RUNS = (
    "all tests but the slow ones, of which a tenth",
    "all tests but the slow ones, with the lowest versions that the metadata allow",
    "all tests but the slow ones, with what pip installs",
)
ASKED = (
    "import json, sys; from importlib.metadata import version; "
    "print(json.dumps(['.'.join(map(str, sys.version_info[:2])), "
    "*(version(name) for name in sys.argv[1:])]))"
)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_table(page: str, new: str) -> str:
    """Page with the table that has the header of `new` replaced by it."""
    header = re.escape(new.splitlines()[0])
    replaced, n = re.subn(rf"(?m)^{header}\n(?:\|.*\n)+", lambda _: new, page)
    assert n == 1, f"the page has no table {new.splitlines()[0]}"
    return replaced


def main(interpreters: list[str]) -> None:
    """Write both tables."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    extras = [line for name in ("plots", "frames") for line in optional[name]]
    lowest = [re.split(r"(?:\[.*\])?>=", line) for line in [*project["dependencies"], *extras]]
    rows, left = [], [c.rpartition(" ")[2] for c in project["classifiers"] if ":: 3." in c]
    for interpreter, run in zip(interpreters, RUNS, strict=True):
        asked = subprocess.run(
            [interpreter, "-c", ASKED, *SHOWN], check=True, capture_output=True, text=True
        )
        python, *found = json.loads(asked.stdout)
        rows.append([python, ", ".join(found), run])
    known = {row[0] for row in rows}
    rows += [[python, "", "not run before each change"] for python in left if python not in known]
    page = with_table(PAGE.read_text("utf-8"), table(["needed", "lowest"], lowest))
    page = with_table(page, table(["Python", ", ".join(SHOWN), "run"], rows))
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
