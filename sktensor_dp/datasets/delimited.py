"""Rows of CSV and TSV files, read strictly: what no writer of such a file writes is refused.

A quote that is not closed would make one document of all that follow, up to the next
quote: one person's words would decide how many documents there are.
"""

import csv
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

# Offered where none is given, the usual one first.
_DELIMITERS = (",", ";", "\t")
_MOST_LISTED = 10


def read_delimited(
    lines: Iterable[str], name: str, delimiter: str | None, quoted: bool, blank: list[int]
) -> tuple[list[str], Iterator[list[str]]]:
    """Return the header and the rows of a file, each as long as the header.

    A malformed row is refused by its line; nothing of it is shown. Lines between rows that are
    none are added to `blank`.
    """
    lines = iter(lines)
    first = next(lines, "")
    if delimiter is None:
        delimiter = _delimiter_of(first, name)
    records = _records(chain([first], lines), name, delimiter, quoted)
    _, header = next(records, (1, []))
    if not header:
        raise ValueError(f"path: {name!r} is empty: it should start with a header")
    return header, _rows(records, header, name, quoted, blank)


def _rows(
    records: Iterator[tuple[int, list[str]]],
    header: list[str],
    name: str,
    quoted: bool,
    blank: list[int],
) -> Iterator[list[str]]:
    waiting: list[int] = []
    for line, row in records:
        # A blank line is an empty row where there is one column, and no row elsewhere.
        if not row and len(header) > 1:
            waiting.append(line)
            continue
        if row and len(row) != len(header):
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            raise ValueError(
                f"path: the row at line {line} of {name!r} has {cells}, the header has "
                f"{len(header)}. {_advice(quoted)}"
            )
        blank += waiting
        waiting = []
        yield row or [""]


def say_skipped(name: str, what: str, lines: Sequence[int]) -> None:
    """Warn of lines that are no rows, by their numbers."""
    if not lines:
        return
    listed = ", ".join(map(str, lines[:_MOST_LISTED]))
    more = f" and {len(lines) - _MOST_LISTED} more" if len(lines) > _MOST_LISTED else ""
    number = f"1 {what} is" if len(lines) == 1 else f"{len(lines)} {what}s are"
    warnings.warn(f"{name!r}: {number} skipped: line {listed}{more}", UserWarning, stacklevel=2)


def _delimiter_of(first: str, name: str) -> str:
    """Delimiter that occurs most often in the first line, outside quotes."""
    header = re.sub(r'"[^"]*"', "", first)
    best = max(_DELIMITERS, key=header.count)
    if best != ",":
        shown = "semicolons (delimiter=';')" if best == ";" else "tabs (delimiter='\\t')"
        warnings.warn(
            f"{name!r} is read as separated by {shown}, as its first line is",
            UserWarning,
            stacklevel=2,
        )
    return best


def _records(
    lines: Iterable[str], name: str, delimiter: str, quoted: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the lines of the file at which they begin."""
    taken: list[str] = []

    def remembered() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    with unlimited_fields():
        reader = csv.reader(
            remembered(),
            delimiter=delimiter,
            strict=True,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        )
        well_formed = _well_formed(delimiter)
        first = 1
        while True:
            taken.clear()
            failed = False
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                failed = True
            if quoted and not failed and any('"' in line for line in taken):
                failed = not well_formed.fullmatch("".join(taken))
            if failed:
                raise ValueError(
                    f"path: {name!r} is not well-formed: the quotes of the row that begins at "
                    f"line {first} are unbalanced or stand inside a cell. {_advice(quoted)}"
                )
            yield first, row
            first = reader.line_num + 1


def _advice(quoted: bool) -> str:
    if quoted:
        return (
            "Cells that hold quotes, delimiters or line breaks have to be quoted, and quotes in "
            "them doubled; if the file quotes nothing, pass quoting='none'."
        )
    return (
        "Without quoting, no cell can hold a delimiter or a line break; if the file quotes "
        "cells, pass quoting='standard'."
    )


def _well_formed(delimiter: str) -> re.Pattern[str]:
    """Pattern of a row of RFC 4180; the csv module lets quotes stand inside a cell."""
    mark = re.escape(delimiter)
    cell = rf'(?:"(?:[^"]|"")*+"|[^"{mark}\r\n]*+)'
    return re.compile(rf"{cell}(?:{mark}{cell})*+(?:\r\n|\r|\n)?")


@contextmanager
def unlimited_fields() -> Iterator[None]:
    """A block in which cells of any length are read."""
    # The largest value that fits a C long on every platform.
    previous = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(previous)
