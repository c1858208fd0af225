"""Figures of what was released: topics and how the privacy budget was spent.

Everything drawn here is a function of released values and public parameters, so
a figure costs no privacy. Figures are made without pyplot: no global state is
touched, and no window opens.
"""

import io
import math
import unicodedata
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

__all__ = ["figure_png", "plot_topics"]

# One hue for all bars: length carries the value, so colour need not be told apart.
_BAR_COLOUR = "#2f6690"
_TEXT_COLOUR = "#1f2933"
_MUTED_COLOUR = "#52606d"
_MAX_WORD_CHARACTERS = 20
_BARS_WIDTH = 1.75  # inches, enough for the title above
# Inches in 9 point type: most letters, the wide Latin ones, and those of East Asian scripts.
_LETTER_WIDTHS = (0.08, 0.125, 0.16)
_LINE_HEIGHT = 0.2  # inches per bar, for words in 9 point type
# Vocabulary is text, never markup: a dollar sign must not start a formula.
_PLAIN_TEXT: dict[str, Any] = {"parse_math": False, "usetex": False}


def plot_topics(
    components: ArrayLike,
    feature_names: Sequence[str] | NDArray[Any],
    weights: ArrayLike | None = None,
    *,
    n_words: int = 10,
    n_columns: int | None = None,
    title: str | None = None,
) -> "Figure":
    """Draw the most probable words of each topic, one small bar chart per topic.

    All charts share one scale, so bars can be compared between topics.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        Topics as released: row i holds the word probabilities of topic i.
    feature_names : sequence of str of length n_features
        The words.
    weights : array-like of shape (n_components,), default=None
        Non-negative weights of the topics, of any scale: ``topic_prior_``, for
        instance. Topics are drawn by falling weight, and titles show its share
        of the total. Without weights, topics keep their order.
    n_words : int, default=10
        Number of words per topic.
    n_columns : int, default=None
        Number of charts side by side. By default, what gives a page-like shape.
    title : str, default=None
        Title of the whole figure.

    Returns
    -------
    matplotlib.figure.Figure
        Topic numbers in titles count rows of `components` from one.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If shapes do not match, a weight is negative, or a number is below one.

    Examples
    --------
    >>> from sktensor_dp.plotting import plot_topics
    >>> topics = [[0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> figure = plot_topics(topics, ["ship", "sail", "tax"], [1, 3], n_words=2)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Topic 2 · 75.0 %', 'Topic 1 · 25.0 %']
    """
    figure_class, layout_class = _import_figure()
    topics = _check_topics(components, feature_names, n_words)
    shares = _check_weights(weights, len(topics))
    order = np.arange(len(topics)) if shares is None else np.argsort(-shares, kind="stable")
    top = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    words = [[_displayed(feature_names[word]) for word in row] for row in top]
    n_rows, n_columns = _grid_shape(len(topics), n_columns)
    layout = layout_class(w_pad=0.08, h_pad=0.06, wspace=0.02, hspace=0.02)
    figure = figure_class(
        figsize=_figure_size(n_rows, n_columns, words), layout=layout, facecolor="white"
    )
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True).ravel()
    for axes, topic in zip(grid, order, strict=False):
        label = f"Topic {topic + 1}"
        if shares is not None:
            label += f" · {100 * shares[topic]:.1f} %"
        _draw_bars(axes, topics[topic, top[topic]], words[topic], label)
    grid[0].set_xlim(0.0, 1.05 * max(float(topics.max()), np.finfo(float).tiny))
    for axes in grid[len(topics) :]:
        axes.remove()
    figure.supxlabel(
        "probability of the word in the topic", fontsize=9, color=_MUTED_COLOUR, **_PLAIN_TEXT
    )
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, color=_TEXT_COLOUR, **_PLAIN_TEXT)
    return figure


def figure_png(figure: "Figure", dpi: int = 144) -> bytes:
    """Render a figure as a PNG image.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    dpi : int, default=144
        Dots per inch.

    Returns
    -------
    bytes
        The content of a PNG file, without a time stamp or a version in it.

    Examples
    --------
    >>> from sktensor_dp.plotting import figure_png, plot_topics
    >>> figure_png(plot_topics([[0.7, 0.3]], ["ship", "sail"]))[1:4]
    b'PNG'
    """
    target = io.BytesIO()
    with warnings.catch_warnings():
        # Scripts that the font lacks are drawn as boxes; the words are in the tables too.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        figure.savefig(target, format="png", dpi=dpi, metadata={"Software": None})
    return target.getvalue()


def _import_figure() -> tuple[type["Figure"], type["ConstrainedLayoutEngine"]]:
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise ImportError("plotting needs matplotlib: pip install matplotlib") from None
    return Figure, ConstrainedLayoutEngine


def _check_topics(
    components: ArrayLike, feature_names: Sequence[str] | NDArray[Any], n_words: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    topics = np.asarray(components, dtype=np.float64)
    if topics.ndim != 2 or topics.size == 0:
        raise ValueError(
            f"components must have shape (n_components, n_features), got {topics.shape}"
        )
    if len(feature_names) != topics.shape[1]:
        raise ValueError(
            f"feature_names must name the {topics.shape[1]} columns of components, "
            f"got {len(feature_names)} names"
        )
    if n_words < 1:
        raise ValueError(f"n_words must be at least 1, got {n_words!r}")
    return topics


def _check_weights(
    weights: ArrayLike | None, n_topics: int
) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    if weights is None:
        return None
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_topics,):
        raise ValueError(f"weights must have shape ({n_topics},), got {values.shape}")
    if not np.all(values >= 0) or not 0 < values.sum() < np.inf:
        raise ValueError("weights must be non-negative, finite and not all zero")
    return values / values.sum()


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


def _draw_bars(
    axes: "Axes", values: np.ndarray[Any, np.dtype[np.float64]], words: list[str], label: str
) -> None:
    positions = np.arange(len(words))
    axes.barh(positions, np.maximum(values, 0.0), height=0.68, color=_BAR_COLOUR)
    axes.set_yticks(positions, words, fontsize=9, color=_TEXT_COLOUR, **_PLAIN_TEXT)
    axes.set_ylim(len(words) - 0.4, -0.6)
    axes.set_title(
        label, loc="left", fontsize=10, fontweight="bold", color=_TEXT_COLOUR, **_PLAIN_TEXT
    )
    axes.locator_params(axis="x", nbins=3)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(
        axis="x", labelsize=8, labelcolor=_MUTED_COLOUR, color=_MUTED_COLOUR, labelbottom=True
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#cbd2d9")
    axes.grid(axis="x", color="#e4e7eb", linewidth=0.7)
    axes.set_axisbelow(True)


def _displayed(word: str) -> str:
    """Return the word on one line and not too long for its chart."""
    word = "".join(c if c.isprintable() else " " for c in str(word))
    if len(word) > _MAX_WORD_CHARACTERS:
        word = word[: _MAX_WORD_CHARACTERS - 1] + "…"
    return word
