"""Build the sites of several commits side by side: ``make docs-versions VERSIONS="0.1.0 main"``.

The first one is what the root leads to. The names are tags or branches without a slash.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "docs" / "_build" / "versions"
LEAD = '<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={}">\n'


def build(name: str, output: Path) -> None:
    """Build the site of a commit, with a menu of all versions; a warning is an error."""
    with tempfile.TemporaryDirectory() as folder:
        files = subprocess.run(["git", "archive", name], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=files.stdout, check=True)
        command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "docs"]
        environment = {**os.environ, "SITE_VERSION": name, "PYTHONPATH": folder}
        subprocess.run([*command, str(output)], cwd=folder, check=True, env=environment)


def main(names: list[str]) -> None:
    """Build all, and write the list that the menu reads."""
    for name in names:
        build(name, OUTPUT / name)
    listed = [{"version": name, "url": f"/{name}/"} for name in names]
    (OUTPUT / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", "utf-8")
    (OUTPUT / "index.html").write_text(LEAD.format(f"{names[0]}/index.html"), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
