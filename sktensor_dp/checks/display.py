"""Render reports and forecasts as text or plain values."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

Row = Sequence[str]
# Columns of costs; a release has a value in those of its kind of noise.
COSTS = ("mu", "epsilon", "delta")


@dataclass(frozen=True)
class Table:
    """Title, columns, rows and notes of a table, as text for people."""

    title: str  # the main thing, in a sentence
    head: Row  # names of columns
    rows: Sequence[Row]  # cells
    notes: Sequence[str] = ()  # what else is to be said, below
    left: Collection[str] = ()  # columns of words; those of numbers stand to the right


class TableDisplay:
    """Mixin that displays an object as the table that its ``_table`` returns."""

    def _table(self) -> Table:
        """Table that the object is displayed as."""
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(self._table())

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # IPython calls this, also for classes whose repr is one line.
        printer.text(repr(self) if cycle else str(self))


def cell(name: str, value: object) -> str:
    """Text of a release's `value` in column `name`; empty for None and for a cost of 0."""
    if value is None or (name in COSTS and value == 0):
        return ""
    if name == "fraction":
        return f"{value:.1%}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def as_text(table: Table) -> str:
    """Format a table; names from a file can neither control the terminal nor forge lines."""
    head, left = table.head, table.left
    cells = [list(map(printable, row)) for row in (head, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [printable(table.title)]
    for row in cells:
        padded = [
            cell.ljust(width) if name in left else cell.rjust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join([*lines, *map(printable, table.notes)])


def finite(value: object) -> Any:
    """Copy of plain values in which infinities and NaN are strings, as JSON needs."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list) else value


def counted(n: float, noun: str) -> str:
    """Number of things, such as "1 topic", "2 axes" or "2,880 directions of taste"."""
    head, _, rest = noun.partition(" ")
    if n != 1:
        for end, ends in (("axis", "axes"), ("y", "ies"), ("ch", "ches"), ("", "s")):
            if head.endswith(end):
                head = head.removesuffix(end) + ends
                break
    return f"{n:,} {head} {rest}".rstrip()


def rounded_up(n: int) -> str:
    """Text "about n", with `n` rounded up to two significant digits."""
    step = 10 ** max(len(str(n)) - 2, 0)
    return f"about {-(-n // step) * step:,}"


def plain(number: float) -> str:
    """Number as people write it: 1e-6, not 1e-06."""
    return f"{number:g}".replace("e-0", "e-")


def printable(text: str) -> str:
    """Text with control characters replaced, so that a file's text cannot control the terminal."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
