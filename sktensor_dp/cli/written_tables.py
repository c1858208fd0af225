"""Tables that a run writes, as CSV."""

import csv
from collections.abc import Callable, Iterable, Sequence
from math import isnan
from pathlib import Path

from sktensor_dp.datasets.own_files import as_cell


def table_of(rows: Iterable[Sequence[object]]) -> Callable[[Path], None]:
    """Writer of a table: six digits of numbers, NaN as empty, no text that runs as a formula."""

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            for row in rows:
                csv.writer(file).writerow(map(_cell, row))

    return write


def _cell(value: object) -> object:
    """Value as it is written into a table."""
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.6g}"
    return as_cell(value) if isinstance(value, str) else value
