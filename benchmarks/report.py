"""Tables and bars of a benchmark, printed as they come and kept as JSON."""

import csv
import json
import math
import os
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import sktensor_dp

__all__ = ["Bar", "Report"]

Cell = str | float | int
RESULTS = Path(__file__).parents[1] / "docs" / "results"


@dataclass(frozen=True)
class Bar:
    """A measured number against its bar.

    Attributes
    ----------
    what : str
        Name.
    measured, limit : float
        What was measured and what was asked for.
    at_least : bool
        Whether the limit is a lower one.
    judged : bool
        False at reduced size, where bars say nothing.
    """

    what: str
    measured: float
    limit: float
    at_least: bool = False
    judged: bool = True

    @property
    def met(self) -> bool:
        """Whether the measured number is on the right side of the limit."""
        if self.at_least:
            return self.measured >= self.limit
        return self.measured <= self.limit

    def __str__(self) -> str:
        verdict = "not judged (--quick)" if not self.judged else "met" if self.met else "NOT MET"
        bound = ">=" if self.at_least else "<="
        return f"{verdict:8s} {self.what}: {self.measured:.4g} (bar {bound} {self.limit:g})"


class Report:
    """What one benchmark printed.

    Parameters
    ----------
    name : str
        Of the benchmark, and of its file.
    quick : bool
        Whether it runs at reduced size.
    """

    def __init__(self, name: str, *, quick: bool) -> None:
        self.name = name
        self.quick = quick
        self.bars: list[Bar] = []
        self._tables: list[dict[str, Any]] = []
        self._results: dict[str, tuple[list[str], list[list[str]]]] = {}
        self._started = time.perf_counter()
        print(f"\n== {name}{' (reduced size)' if quick else ''}")
        for key, value in self._environment().items():
            print(f"  {key}: {value}")

    def note(self, text: str) -> None:
        """Print a line."""
        print(f"  {text}", flush=True)

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        file: str = "",
        group: str = "",
        how: str = "",
    ) -> None:
        """Print a table and keep it.

        A run in full writes it to ``docs/results/file.csv``. Tables that share a file have a
        `group`, their first column; `how` says which seeds, and what of them.
        """
        if file:
            head, body = self._results.setdefault(file, ([], []))
            head[:] = [*(["data"] if group else []), *columns, "source"]
            command = f"python -m benchmarks {self.name}"
            source = f"{command}: {how}" if how else command
            for row in rows:
                body.append([*([group] if group else []), *map(_as_text, row), source])
        self._tables.append(
            {"title": title, "columns": list(columns), "rows": [list(row) for row in rows]}
        )
        text = [list(columns)] + [[_as_text(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*text, strict=True)]
        print(f"\n  {title}")
        for row in text:
            first, *others = (
                cell.ljust(width) if position == 0 else cell.rjust(width)
                for position, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            print("    " + "  ".join([first, *others]))
        sys.stdout.flush()

    def bar(self, what: str, measured: float, limit: float, *, at_least: bool = False) -> None:
        """Judge a number by its bar, print the verdict and keep it."""
        bar = Bar(f"{self.name}: {what}", float(measured), limit, at_least, not self.quick)
        self.bars.append(bar)
        self.note(str(bar))

    def save(self, folder: Path) -> None:
        """Write everything to ``folder/name.json``, and tables of pages to their files."""
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "name": self.name,
            "quick": self.quick,
            "environment": self._environment(),
            "seconds": round(time.perf_counter() - self._started, 1),
            "tables": self._tables,
            "bars": [{**asdict(bar), "met": bar.met if bar.judged else None} for bar in self.bars],
        }
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(_without_infinity(content), indent=2) + "\n", "utf-8")
        for file, (head, body) in () if self.quick else self._results.items():
            with (RESULTS / f"{file}.csv").open("w", encoding="utf-8", newline="") as out:
                csv.writer(out, lineterminator="\n").writerows([head, *body])

    @staticmethod
    def _environment() -> dict[str, Any]:
        versions = {
            module.__name__: module.__version__ for module in (sktensor_dp, np, scipy, sklearn)
        }
        named = ", ".join(f"{name} {version}" for name, version in versions.items())
        return {
            "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
            "versions": f"Python {platform.python_version()}, {named}",
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, "
            f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}",
        }


def _as_text(cell: Cell) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _without_infinity(value: Any) -> Any:
    """JSON has no infinity: write it as a string."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_infinity(item) for item in value]
    return value
