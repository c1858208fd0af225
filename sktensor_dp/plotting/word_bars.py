"""Bar charts of words, side by side in one figure that is as large as its words need."""

import math
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# One hue for all bars: length carries the value, so colour need not be told apart. Another one
# for what is drawn over them.
FIRST, SECOND = "#2f6690", "#b3541e"
TEXT = "#1f2933"
MUTED = "#52606d"
_MAX_WORD_CHARACTERS = 20
_BARS_WIDTH = 1.75  # inches, enough for the title above
# Inches in 9 point type: most letters, the wide Latin ones, and those of East Asian scripts.
_LETTER_WIDTHS = (0.08, 0.125, 0.16)
_LINE_HEIGHT = 0.2  # inches per bar, for words in 9 point type
# Vocabulary is text, never markup: a dollar sign must not start a formula.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}


def new_figure(**options: Any) -> Any:
    """Figure that leaves its charts the room they need."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plotting needs matplotlib: pip install matplotlib") from None
    return Figure(layout="constrained", facecolor="white", **options)


def charts_for(words: list[list[str]], n_columns: int | None) -> "list[Axes]":
    """Axes of a new figure, one for each list of words, on one scale."""
    n_rows, n_columns = _grid_shape(len(words), n_columns)
    figure = new_figure(figsize=_figure_size(n_rows, n_columns, words))
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06, wspace=0.02, hspace=0.02)
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True).ravel()
    for unused in grid[len(words) :]:
        unused.remove()
    return list(grid[: len(words)])


def _grid_shape(n_topics: int, n_columns: int | None) -> tuple[int, int]:
    if n_columns is None:
        n_columns = 3 if n_topics in (3, 5, 6, 9) else 4
    elif n_columns < 1:
        raise ValueError(f"n_columns must be at least 1, got {n_columns!r}")
    n_columns = min(n_columns, n_topics)
    return math.ceil(n_topics / n_columns), n_columns


def _figure_size(n_rows: int, n_columns: int, words: list[list[str]]) -> tuple[float, float]:
    """Width and height in inches that leave every word and title its room."""
    width = _BARS_WIDTH + max(_word_width(word) for row in words for word in row) + 0.2
    height = 0.62 + _LINE_HEIGHT * len(words[0])
    return n_columns * width, n_rows * height + 0.7


def _word_width(word: str) -> float:
    """Upper estimate in inches; the layout engine measures, but cannot widen the figure."""
    plain, wide, full = _LETTER_WIDTHS
    return sum(
        full
        if unicodedata.east_asian_width(c) in "WF"
        else wide
        if c.isupper() or c in "mw@%…—"
        else plain
        for c in word
    )


def draw_bars(axes: "Axes", values: Floats, words: list[str], label: str) -> None:
    """Draw values of words, the first on top."""
    positions = np.arange(len(words))
    axes.barh(positions, np.maximum(values, 0.0), height=0.68, color=FIRST)
    axes.set_yticks(positions, words, fontsize=9, color=TEXT, **PLAIN)
    axes.set_ylim(len(words) - 0.4, -0.6)
    axes.set_title(label, loc="left", fontsize=10, fontweight="bold", color=TEXT, **PLAIN)
    axes.locator_params(axis="x", nbins=3)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8, labelcolor=MUTED, color=MUTED, labelbottom=True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#cbd2d9")
    axes.grid(axis="x", color="#e4e7eb", linewidth=0.7)
    axes.set_axisbelow(True)


def draw_intervals(axes: "Axes", values: Floats, low: Floats, high: Floats) -> None:
    """Draw how far noise may have moved the values of bars."""
    reach = np.maximum([values - low, high - values], 0.0)
    axes.errorbar(values, np.arange(len(values)), xerr=reach, fmt="none", ecolor=SECOND, capsize=2)


def shortened(word: str) -> str:
    """Return the word on one line and not too long for its chart."""
    word = "".join(c if c.isprintable() else " " for c in str(word))
    if len(word) > _MAX_WORD_CHARACTERS:
        word = word[: _MAX_WORD_CHARACTERS - 1] + "…"
    return word
