"""What each tuned constant and mechanism is worth: the change of the error without it, in percent.

Each is set to its neutral value in turn, with seeded noise; positive numbers say that it helps.
Every family of estimators has a module, and a run in full writes its table
to a file of its own name beside it, for the results page.

    python -m benchmarks ablations
    python -m benchmarks ablations --quick
"""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Cell, Report

__all__ = ["FAMILIES", "SEEDS", "Ablation", "change", "constant", "show", "write"]

# Modules that measure a family of estimators each, and benches of these names.
FAMILIES = (
    "ablations_of_words", "ablations_of_components", "ablations_of_topics",
    "ablations_of_completions", "ablations_of_mixtures",
)  # fmt: skip
SEEDS = 5
TITLE = "Change of the error without each part, percent"


@dataclass(frozen=True)
class Ablation:
    """Neutral values of attributes of modules, and the units whose fits they may change."""

    name: str
    units: tuple[str, ...] = ()
    neutral: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def made(self) -> Iterator[None]:
        """Fits without the part."""
        if not self.neutral:
            yield
            return
        (place, value), *others = self.neutral.items()
        module, attribute = place.rsplit(".", 1)
        rest = Ablation(self.name, self.units, dict(others))
        with patch.object(import_module(f"sktensor_dp.{module}"), attribute, value), rest.made():
            yield


def constant(place: str, neutral: float, units: tuple[str, ...] = ()) -> Ablation:
    """Ablation of a tuned constant, of ``package.NAME`` in that package's defaults."""
    package, name = place.split(".")
    return Ablation(f"{name} = {neutral:g}", units, {f"{package}.defaults.{name}": neutral})


def change(error: NDArray[np.float64], whole: NDArray[np.float64]) -> tuple[float, float]:
    """Mean change over seeds, in percent, and its standard error."""
    percent = 100 * (error / whole - 1)
    spread = float(percent.std(ddof=1)) if len(percent) > 1 else math.nan
    return float(percent.mean()), spread / math.sqrt(len(percent))


def show(
    report: Report, module: str, ablations: Sequence[Ablation], columns: list[str],
    rows: list[list[Cell]],
) -> None:  # fmt: skip
    """Show rows by part, where it changes something or nowhere; a full run writes them."""
    shown: list[list[Cell]] = []
    for ablation in ablations:
        own = [row for row in rows if row[0] == ablation.name]
        shown += [row for row in own if row[-2]] or own[:1]
    columns = [*columns, "change", "standard error"]
    report.table(TITLE, columns, shown)
    if not report.quick:
        write(Path(module).with_suffix(".csv"), columns, shown)


def write(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Write a table for the results page."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([f"{cell:.3g}" if isinstance(cell, float) else cell for cell in row])
