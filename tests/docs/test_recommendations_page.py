"""From a file of ratings to ten recommendations: eight lines, and what these need."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "recommendations.md"
# Whoever installs no more than [plots,frames] has none of these.
OTHER_EXTRAS = ("dask", "distributed", "opendp", "dp_accounting", "implicit", "selenium")
BLOCKED = "import sys; sys.modules.update(dict.fromkeys({!r}))\n"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_eight_lines_are_eight() -> None:
    lines = [line for line in blocks()[1].splitlines() if line.strip()]
    assert len(lines) <= 8
    assert all(";" not in line and len(line) <= 100 for line in lines)


def test_from_a_file_to_recommendations_without_other_extras(tmp_path: Path) -> None:
    """The eight lines as a program of their own, after one that wrote the files."""
    data, lines = blocks()[:2]
    program = BLOCKED.format(OTHER_EXTRAS) + data + "\n" + lines
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    films = re.findall(r"'((?:crime|comedy|war) \d\d)'", found.stdout)
    assert len(set(films)) == len(films) == 10
    rated = set(re.findall(r"^user 7,([^,]+),", (tmp_path / "ratings.csv").read_text(), re.M))
    assert not rated & set(films)
