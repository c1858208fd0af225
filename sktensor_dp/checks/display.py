"""Render reports and forecasts as text or plain values."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

Row = Sequence[str]
# Columns of costs; a release has a value in those of its kind of noise.
COSTS = ("mu", "epsilon", "delta")
WIDTH = 80  # of a terminal, in characters


@dataclass(frozen=True)
class Table:
    """Title, columns, rows and notes of a table, as text for people."""

    title: str  # the main thing, in a sentence
    head: Row  # names of columns
    rows: Sequence[Row]  # cells
    notes: Sequence[str] = ()  # what else is to be said, below
    left: Collection[str] = ()  # columns of words; those of numbers stand to the right

    @property
    def widths(self) -> list[int]:
        """Number of characters of each column."""
        columns = zip(self.head, *self.rows, strict=True)
        return [max(map(len, map(printable, column))) for column in columns]

    @property
    def fits(self) -> bool:
        """True if a terminal shows all columns side by side."""
        return sum(self.widths) + 2 * (len(self.head) - 1) <= WIDTH


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
    """Format a table; names from a file can neither control the terminal nor forge lines.

    Columns of numbers beyond a screen's width follow below, beside the first column again.
    """
    head, left = table.head, table.left
    cells, widths = [list(map(printable, row)) for row in (head, *table.rows)], table.widths
    lines = [printable(table.title)]
    for block in _blocks(widths, can_part={*left} <= {*head[:1]}):
        for row in cells:
            padded = [
                row[place].ljust(widths[place]) if head[place] in left
                else row[place].rjust(widths[place])
                for place in block
            ]  # fmt: skip
            lines.append("  ".join(padded).rstrip())
    return "\n".join([*lines, *map(printable, table.notes)])


def _blocks(widths: Sequence[int], *, can_part: bool) -> list[list[int]]:
    """Places of columns that stand side by side: all, unless they `can_part` and are too wide."""
    blocks, width = [[0]], widths[0]
    for place, own in enumerate(widths[1:], start=1):
        width += 2 + own
        if can_part and width > WIDTH and len(blocks[-1]) > 1:
            blocks.append([0])
            width = widths[0] + 2 + own
        blocks[-1].append(place)
    return blocks


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
