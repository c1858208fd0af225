"""Tables that a run writes, as CSV."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isnan
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from sktensor_dp.datasets.own_files import as_cell
from sktensor_dp.tensor.arrays import Floats

PAIRED = 100  # largest number of items, or columns, of which each two are compared


def table_of(rows: Iterable[Sequence[object]]) -> Callable[[Path], None]:
    """Writer of a table: six digits, NaN as empty, yes or no, no text that runs as a formula."""

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            for row in rows:
                csv.writer(file).writerow(map(_cell, row))

    return write


def differences(
    named: Mapping[str, Sequence[str]], found: Floats, errors: Floats, most: float = inf
) -> list[list[object]]:
    """Rows of a table of differences, with 90% intervals; columns of names come first.

    No difference is larger than `most`, and nine times in ten all that are clear differ, if errors
    are normal. Without an error it is unknown whether one is clear.
    """
    n_known = max(int(np.isfinite(errors).sum()), 1)
    reach, reach_of_all = (float(ndtri(1 - 0.05 / n)) * errors for n in (1, n_known))  # Bonferroni
    clear = (np.abs(found) > reach_of_all).astype(object)
    clear[np.isnan(errors)] = "unknown"
    numbers = (*np.clip([found, found - reach, found + reach], -most, most), clear)
    columns = (*named.values(), *(one.tolist() for one in numbers))
    head = [*named, "difference", "low", "high", "clear"]
    return [head, *map(list, zip(*columns, strict=True))]


def _cell(value: object) -> object:
    """Value as it is written into a table."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.6g}"
    return as_cell(value) if isinstance(value, str) else value
