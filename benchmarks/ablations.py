"""What each tuned constant and mechanism is worth: the change of the error without it, in percent.

Each is set to its neutral value in turn, with seeded noise; positive numbers say that it helps.
Every family of estimators has a module, and a table of its name.

    python -m benchmarks ablations
    python -m benchmarks ablations --quick
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Cell

__all__ = ["FAMILIES", "SEEDS", "Ablation", "change", "changes", "constant", "shown"]

# Modules that measure a family of estimators each, and benches of these names.
FAMILIES = (
    "ablations_of_words", "ablations_of_components", "ablations_of_topics",
    "ablations_of_completions", "ablations_of_persons", "ablations_of_mixtures",
    "ablations_of_checks",
)  # fmt: skip
SEEDS = 5
TITLE = "Change of the error without each part, percent"


@dataclass(frozen=True)
class Ablation:
    """Neutral values of attributes of modules and classes, and the units whose fits they change."""

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
        rest = Ablation(self.name, self.units, dict(others))
        with patch(f"sktensor_dp.{place}", value), rest.made():
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


def changes(
    ablations: Iterable[Ablation], errors: Callable[[], NDArray[np.float64]]
) -> Iterator[tuple[str, float, float]]:
    """Name of each part, and the change of `errors` (by seed) without it, with its error."""
    whole = errors()
    for ablation in ablations:
        with ablation.made():
            found = errors()
        yield ablation.name, *change(found, whole)


def shown(ablations: Sequence[Ablation], rows: list[list[Cell]]) -> list[list[Cell]]:
    """Rows by part, where it changes something or nowhere."""
    found: list[list[Cell]] = []
    for ablation in ablations:
        own = [row for row in rows if row[0] == ablation.name]
        found += [row for row in own if row[-2]] or own[:1]
    return found
