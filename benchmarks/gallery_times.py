"""How long each example of the gallery takes, slowest first.

``python -m benchmarks.gallery_times`` runs every example as a reader would, one after the other,
each in a process and an empty folder of its own, and prints the seconds of processor time with
all that the process imports. It ends with 1 if one takes over a minute of one core, which is
stricter than a minute on two. ``--match`` names a part of the examples.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["BAR", "main", "seconds"]

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "examples" / "gallery"
# Of processor time, whose sum over cores it is.
BAR = 60.0


def seconds(script: Path) -> tuple[float, float]:
    """Processor time and time on the clock of one example."""
    where = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-W", "ignore", str(script)],
            cwd=folder, env=where, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.monotonic() - begun


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="", help="part of a name")
    options = parser.parse_args(arguments)
    scripts = [path for path in sorted(GALLERY.glob("*/plot_*.py")) if options.match in str(path)]
    found = []
    for number, script in enumerate(scripts, start=1):
        found.append((*seconds(script), script.relative_to(GALLERY)))
        print(f"{number} of {len(scripts)}", end="\r", file=sys.stderr, flush=True)
    print(f"{'example':<46}{'CPU s':>7}{'clock s':>9}")
    for spent, clock, name in sorted(found, reverse=True):
        print(f"{name!s:<46}{spent:7.1f}{clock:9.1f}{'  over the bar' if spent > BAR else ''}")
    return int(any(spent > BAR for spent, _, _ in found))


if __name__ == "__main__":
    sys.exit(main())
