"""What a report or a statement is written as: text, HTML, a data frame, plain values."""

import html
import math
from collections.abc import Collection, Sequence
from typing import Any

__all__ = ["as_frame", "as_html", "as_text", "finite", "printable"]

Row = Sequence[str]


def as_text(
    title: str, head: Row, rows: Sequence[Row], notes: Sequence[str], left: Collection[str]
) -> str:
    """Title, aligned columns (to the left where `left` names them) and notes."""
    table = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if name in left else cell.rjust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        ).rstrip()
        for row in table
    ]
    return "\n".join([title, *lines, *notes])


def as_html(title: str, head: Row, rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Title, table and notes, escaped."""

    def cells(row: Row, tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return (
        f"<div><p><strong>{html.escape(title)}</strong></p>"
        f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"
        f"{below}</div>"
    )


def as_frame(
    rows: list[dict[str, Any]], columns: list[str] | None = None, times: Sequence[str] = ()
) -> Any:
    """Rows as a pandas DataFrame, or ImportError where there is no pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_frame needs pandas; install it with: pip install pandas") from error
    frame = pd.DataFrame(rows, columns=columns)
    for name in times:
        frame[name] = pd.to_datetime(frame[name], utc=True)
    return frame


def finite(value: Any) -> Any:
    """Plain values with infinity as the string ``"inf"``, which JSON has no number for."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list) else value


def printable(text: str) -> str:
    """Text of a file for a terminal, which would act on control characters."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
