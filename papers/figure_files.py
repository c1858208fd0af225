"""Style, files, tables and progress of the scripts that redraw figures of papers."""

import argparse
import csv
import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "MARKERS",
    "PAPERS",
    "figure_parser",
    "log_ticks",
    "new_figure",
    "present",
    "print_table",
    "progress",
    "read_rows",
    "styled",
    "write_figure",
]

Rows = list[dict[str, Any]]

PAPERS = Path(__file__).resolve().parents[1] / "docs" / "papers"

# Okabe & Ito: told apart with any colour vision; markers tell them apart without colour.
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "grey": "#6b7680",
    "black": "#1f2933",
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.labelcolor": "#1f2933",
    "axes.edgecolor": "#9aa5b1",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.7,
    "xtick.color": "#52606d",
    "ytick.color": "#52606d",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    # Letters stay text, and equal figures are equal files.
    "svg.fonttype": "none",
    "svg.hashsalt": "sktensor_dp",
}


def figure_parser(doc: str | None, quick: str) -> argparse.ArgumentParser:
    """Return a parser of what every script that draws a figure takes; `quick` says how little."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=PAPERS, help="folder (default docs/papers)")
    return parser


def present(
    draw: Callable[[Rows], Figure], rows: Rows, folder: Path, name: str, title: str, table: Rows
) -> None:
    """Draw what was measured, write it, and print a table of it and the files."""
    with styled():
        figure = draw(rows)
    files = write_figure(figure, rows, folder, name)
    print_table(title, table)
    print("\nWritten:", *(f"\n  {file}" for file in files))


@contextmanager
def styled() -> Iterator[None]:
    """Draw inside this block."""
    with mpl.rc_context(STYLE):
        yield


def new_figure(n_rows: int, n_columns: int, size: tuple[float, float]) -> Any:
    """Return a figure that pyplot knows nothing of, and its axes in two dimensions."""
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def log_ticks(axis: Any, values: Iterable[float]) -> None:
    """Put ticks at these values only, written out, on a logarithmic axis."""
    values = list(values)
    axis.set_ticks(values, [f"{value:,g}" if value < 1000 else f"{value:,.0f}" for value in values])
    axis.set_ticks([], minor=True)


def write_figure(
    figure: Figure, rows: Sequence[Mapping[str, Any]], folder: Path, name: str
) -> list[Path]:
    """Write the figure as SVG and what it shows as CSV; return both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    svg, table = folder / f"{name}.svg", folder / f"{name}.csv"
    target = io.StringIO()
    with styled():
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    # The writer leaves blanks at the ends of lines.
    lines = (line.rstrip() for line in target.getvalue().splitlines())
    svg.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _shown(value) for key, value in row.items()} for row in rows)
    return [svg, table]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV that was written beside a figure, numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(file)]


def print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a table under a title, columns aligned."""
    cells = [list(rows[0]), *([_shown(value, 3) for value in row.values()] for row in rows)]
    widths = [max(len(str(cell)) for cell in column) for column in zip(*cells, strict=True)]
    print(f"\n{title}")
    for line in cells:
        print("  " + "  ".join(str(c).ljust(w) for c, w in zip(line, widths, strict=True)).rstrip())


def progress(items: Sequence[Any], label: str) -> Iterator[Any]:
    """Yield the items, and say at the end how long they took."""
    start = time.monotonic()
    yield from items
    print(f"{label}: {len(items)} items, {time.monotonic() - start:.0f} s", file=sys.stderr)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _shown(value: Any, digits: int = 5) -> Any:
    return f"{value:.{digits}g}" if isinstance(value, float) else value
