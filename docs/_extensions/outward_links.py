"""Lists the links of pages and docstrings that lead out: ``make docs-links``.

Whether they still lead somewhere has to be seen with a network. This follows none of them.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"https?://[^\s)>\]\"'`,]+[^\s)>\]\"'`,.;:]")
# Names of XML that nobody follows, and addresses of the reader's own machine.
NO_LINK = re.compile(r"https?://(www\.w3\.org/|127\.0\.0\.1|localhost)")


def outward(root: Path = ROOT) -> dict[str, list[str]]:
    """Addresses, each with the files that name it."""
    files = [*root.glob("*.md"), root / "pyproject.toml", root / "CITATION.cff"]
    files += [path for path in (root / "docs").rglob("*.md") if "_build" not in path.parts]
    for folder in ("sktensor_dp", "examples"):
        files += (root / folder).rglob("*.py")
    found: dict[str, list[str]] = {}
    for path in sorted(files):
        for address in set(LINK.findall(path.read_text(encoding="utf-8"))):
            if not NO_LINK.match(address):
                found.setdefault(address, []).append(path.relative_to(root).as_posix())
    return dict(sorted(found.items()))


if __name__ == "__main__":
    for address, pages in outward().items():
        print(address, *pages, sep="\n    ")
