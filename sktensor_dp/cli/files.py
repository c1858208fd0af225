"""Public lists that the command reads, and tables that it writes."""

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sktensor_dp.datasets.files import (
    SEPARATOR,
    as_cell,
    decoded,
    existing_path,
    read_columns,
    suffix_of,
)


def public_names(path: Path) -> list[str]:
    """Lines of a public list."""
    lines = decoded(existing_path(path), encoding_of(path)).splitlines()
    return [line for line in lines if line.strip()]


def public_columns(path: Path, columns: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Columns of a public table, whose encoding and delimiter are looked up in it."""
    delimiter, encoding = None, "utf-8"
    if suffix_of(path) in (".csv", ".tsv"):
        encoding = encoding_of(path)
        head = decoded(path, encoding).partition("\n")[0]
        if not SEPARATOR.fullmatch(head):
            delimiter = max("\t,;|", key=head.count)
    return read_columns(path, columns, delimiter, "auto", encoding)


def encoding_of(path: Path) -> str:
    """Encoding of a public file: utf-8, or that of older Windows programs."""
    try:
        decoded(existing_path(path), "utf-8")
    except ValueError:
        return "cp1252"
    return "utf-8"


def table_of(rows: Iterable[Sequence[object]]) -> Callable[[Path], None]:
    """Writer of a table: six digits of numbers, NaN as empty, no text that runs as a formula."""

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            for row in rows:
                csv.writer(file).writerow(map(_cell, row))

    return write


def is_writable(text: str) -> bool:
    """Return True if a file can hold the text: JSON may hold unpaired surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _cell(value: object) -> object:
    """Value as it is written into a table."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return as_cell(value) if isinstance(value, str) else value
