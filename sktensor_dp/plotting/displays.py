"""Figures of released values, in the way of scikit-learn's displays; they cost no privacy."""

import math
import textwrap
import unicodedata
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from sktensor_dp.checks.ranges import named_ranges
from sktensor_dp.estimator.base import names_of_columns
from sktensor_dp.tensor.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Names = Sequence[str] | NDArray[np.generic] | None

# One colour for all bars, whose length shows the value; another for what is drawn over them.
FIRST, SECOND, TEXT, MUTED, WIDE = "#2f6690", "#b3541e", "#1f2933", "#52606d", "#c3cad1"
# Words are text, not markup: a dollar sign must not start a formula.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
SMALL: dict[str, Any] = {"fontsize": 10, "color": MUTED, **PLAIN}
LONGEST = 36  # characters of a name beside bars


def new_figure(**options: Any) -> Any:
    """Figure that leaves its charts the room they need."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plotting needs matplotlib: pip install matplotlib") from None
    return Figure(layout="constrained", facecolor="white", **options)


def styled(ax: "Axes", title: str, **labels: str) -> None:
    """Give axes the look that all figures share."""
    ax.set(**labels)
    ax.set_title(title, loc="left", fontsize=12, fontweight="bold", color=TEXT, **PLAIN)
    ax.tick_params(labelsize=10, labelcolor=MUTED, color=MUTED)
    ax.xaxis.label.set(color=MUTED, fontsize=10)
    ax.yaxis.label.set(color=MUTED, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#cbd2d9")
    ax.grid(color="#e4e7eb", linewidth=0.7)
    ax.set_axisbelow(True)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=10, frameon=False)


def draw_bars(
    ax: "Axes", values: ArrayLike, names: Sequence[str], low: object = None, high: object = None
) -> None:
    """Draw bars with names, the first on top, and intervals where they are known."""
    lengths, places = np.asarray(values, dtype=np.float64), np.arange(len(names))
    ax.barh(places, lengths, color=FIRST, height=0.68)
    ax.set_yticks(places, [shortened(name) for name in names], **PLAIN)
    ax.set_ylim(len(names) - 0.4, -0.6)
    if low is not None and high is not None:
        reach = np.maximum([lengths - np.asarray(low), np.asarray(high) - lengths], 0.0)
        ax.errorbar(lengths, places, xerr=reach, fmt="none", ecolor=SECOND, capsize=2)


def finish_bars(ax: "Axes") -> None:
    """Remove lines and ticks beside the names of bars, and keep few ticks below."""
    ax.tick_params(axis="y", length=0, labelcolor=TEXT)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False, axis="y")
    ax.locator_params(axis="x", nbins=4)


def shortened(word: object, most: int = LONGEST) -> str:
    """Return the word on one line and not too long for its chart."""
    plain = "".join(c if c.isprintable() else " " for c in str(word))
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def wrapped(footer: str, inches: float) -> str:
    """Footer with its lines wrapped to the width of a chart in `inches`."""
    per_inch = 9  # letters, of any but the widest texts at this size
    return "\n".join(textwrap.fill(line, int(per_inch * inches)) for line in footer.splitlines())


def say_below(figure: "Figure", footer: str) -> None:
    """Write a footer below all charts, and enlarge the figure by its lines after the first."""
    lines = wrapped(footer, figure.get_figwidth())
    figure.supxlabel(lines, **SMALL)
    line_height = 0.17  # inches
    figure.set_figheight(figure.get_figheight() + line_height * lines.count("\n"))


def save_svg(figure: "Figure", path: str | Path) -> None:
    """Write a figure as SVG that looks the same everywhere: letters are drawn as shapes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Figure, for example ``display.figure_``.
    path : str or Path
        Where to write; missing folders are made.

    Examples
    --------
    >>> import os
    >>> from sktensor_dp.plotting import BarDisplay, save_svg
    >>> save_svg(BarDisplay(["ship"], [0.5], title="Topic 1").plot().figure_, os.devnull)
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes; tables hold the words too.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        # No date and no version of matplotlib, by which files of equal figures would differ.
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


@dataclass
class Display:
    """Data of a figure, and the axes that ``plot`` drew it in."""

    axes_: "list[Axes]" = field(default_factory=list, init=False, repr=False)

    @property
    def ax_(self) -> "Axes | None":
        """First of the axes that ``plot`` drew in; None before."""
        return self.axes_[0] if self.axes_ else None

    @property
    def figure_(self) -> Any:
        """Figure of the axes drawn into; None before ``plot``."""
        return self.axes_[0].figure if self.axes_ else None


@dataclass
class BarDisplay(Display):
    """Numbers by name, as a chart of bars.

    Attributes
    ----------
    names : list of str
        Names of the bars, the first on top.
    values : ndarray of shape (n_bars,)
        Their lengths.
    title, quantity, footer : str
        Title of the figure and of the lengths, and what stands below a new figure.

    Examples
    --------
    >>> from sktensor_dp.plotting import BarDisplay
    >>> display = BarDisplay(["ship", "sail"], [0.5, 0.25], title="Topic 1").plot()
    >>> [float(bar.get_width()) for bar in display.ax_.patches]
    [0.5, 0.25]
    """

    names: list[str]
    values: Floats
    title: str = ""
    quantity: str = "value"
    footer: str = ""

    def plot(self, ax: "Axes | None" = None) -> "BarDisplay":
        """Draw into axes, or into a new figure."""
        size = (6.4, 1.3 + 0.32 * len(self.names))
        axes: Axes = new_figure(figsize=size).subplots() if ax is None else ax
        self.axes_ = [axes]
        draw_bars(axes, self.values, self.names)
        styled(axes, self.title, xlabel=self.quantity)
        finish_bars(axes)
        if self.footer and ax is None:
            say_below(self.figure_, self.footer)
        return self


@dataclass
class TopicsDisplay(Display):
    """Leading words of every topic, with intervals of its ``components_interval``.

    Attributes
    ----------
    titles, words : list of str and list of lists of str
        Title and leading words of each topic, in the order in which they are drawn; there are no
        words where noise hides it, as the title says.
    values, low, high : lists of arrays of numbers
        Probabilities of the words, and intervals; None draws no intervals.
    footer : str
        Line below all charts.

    Examples
    --------
    >>> from sktensor_dp.plotting import TopicsDisplay
    >>> display = TopicsDisplay(["Topic 1"], [["ship", "sail"]], [[0.5, 0.25]]).plot()
    >>> [float(bar.get_width()) for bar in display.axes_[0].patches]
    [0.5, 0.25]
    """

    titles: list[str]
    words: list[list[str]]
    values: Sequence[ArrayLike]
    low: Sequence[ArrayLike] | None = None
    high: Sequence[ArrayLike] | None = None
    footer: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        feature_names: Names = None,
        *,
        n_words: int = 10,
        level: float = 0.9,
        footer: str | None = None,
        ax: "Sequence[Axes] | None" = None,
    ) -> "TopicsDisplay":
        """Draw the topics of a fitted model.

        Parameters
        ----------
        estimator : PrivateSpectralLDA
            Fitted.
        feature_names : sequence of str of length n_features_in_, default=None
            The words; by default ``feature_names_in_``, or the numbers of the columns.
        n_words : int, default=10
            Words of each topic that set it apart; of a single topic the most probable ones.
        level : float, default=0.9
            Coverage of the intervals.
        footer : str, default=None
            Line below all charts; by default how many units there are, and the guarantee of this
            fit alone. With a private vocabulary pass ``in_brief`` of both together.
        ax : sequence of matplotlib axes, default=None
            Where to draw each topic; by default in a new figure.

        Returns
        -------
        TopicsDisplay

        Raises
        ------
        ValueError
            If there are not as many axes as topics.
        """
        topics, shares = np.asarray(estimator.components_), estimator._shares
        names = names_of_columns(estimator, feature_names, topics.shape[1])
        relevance = 0.6 if len(topics) > 1 else 1.0  # a single topic is the word frequencies
        chosen = estimator.top_words(n_words, range(topics.shape[1]), relevance)
        leading = [np.array(row, int) for row in chosen]
        low, high = (_taken(end, leading) for end in estimator.components_interval(level))
        if footer is None:
            footer = (
                "%: share of the words, no result to report\n"
                f"this fit alone: {estimator.privacy_report_.in_brief}"
            )
        titles = [
            f"Topic {n} · {share:.1%}{'' if row else ' · hidden'}"
            for n, (share, row) in enumerate(zip(shares, chosen, strict=True), start=1)
        ]
        words = [[str(names[word]) for word in row] for row in leading]
        return cls(titles, words, _taken(topics, leading), low, high, footer).plot(ax)

    def plot(self, ax: "Sequence[Axes] | None" = None) -> "TopicsDisplay":
        """Draw into axes, one for each topic, or into a new figure.

        Parameters
        ----------
        ax : sequence of matplotlib axes, default=None
            One for each topic; ValueError for another number.

        Returns
        -------
        self : TopicsDisplay

        Raises
        ------
        ValueError
            If there are not as many axes as topics.
        """
        short = [[shortened(word, 18) for word in words] for words in self.words]
        self.axes_ = list(ax) if ax is not None else _grid(short, self.titles, self.footer)
        if len(self.axes_) != len(self.words):
            raise ValueError(
                f"ax must have one axes for each of {len(self.words)} topics, got "
                f"{len(self.axes_)}."
            )
        ends = self.values if self.high is None else self.high
        largest = max(float(np.max(ends_of_topic, initial=0.0)) for ends_of_topic in ends)
        most_words = max(map(len, short))
        for place, axes in enumerate(self.axes_):
            low, high = (None if end is None else end[place] for end in (self.low, self.high))
            draw_bars(axes, self.values[place], short[place], low, high)
            styled(axes, self.titles[place])
            finish_bars(axes)
            axes.set_xlim(0.0, 1.05 * max(largest, np.finfo(float).tiny))
            axes.set_ylim(most_words - 0.4, -0.6)
        return self


@dataclass
class MixtureDisplay(Display):
    """Averages and spreads of groups, one chart for each column.

    Attributes
    ----------
    shares : ndarray of shape (n_groups,)
        Sizes of the groups, as shares of all.
    means, spreads : ndarray of shape (n_groups, n_columns)
        Averages and standard deviations.
    names, footer : list of str and str
        Names of the columns, and a line below all charts.
    ranges : ndarray of shape (n_columns, 2) or None
        Ends of the axes.
    low, high : ndarray of shape (n_groups, n_columns) or None
        Ends of 90% intervals of averages; NaN where there is none.

    Examples
    --------
    >>> from sktensor_dp.plotting import MixtureDisplay
    >>> shares, means = [0.7, 0.3], [[60, 5], [20, 9]]
    >>> display = MixtureDisplay(shares, means, [[9, 1], [8, 2]], ["age", "visits"]).plot()
    >>> [axes.get_title(loc="left") for axes in display.axes_]
    ['age', 'visits']
    """

    shares: Floats
    means: Floats
    spreads: Floats
    names: list[str]
    ranges: Floats | None = None
    footer: str = ""
    low: Floats | None = None
    high: Floats | None = None

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, feature_names: Names = None, ranges: Any = None
    ) -> "MixtureDisplay":
        """Draw the groups of a fitted mixture.

        Parameters
        ----------
        estimator : PrivateGaussianMixture
            Fitted.
        feature_names : sequence of str of length n_features_in_, default=None
            By default ``feature_names_in_``, or the numbers of the columns.
        ranges : array-like of shape (n_features_in_, 2) or mapping of columns, default=None
            Ends of the columns' ranges, where :func:`~sktensor_dp.scale_by_ranges`
            scaled them; the display is in the columns' units then.

        Returns
        -------
        MixtureDisplay

        Warns
        -----
        NotEnoughDataWarning
            As for ``means_interval`` of the estimator.

        Raises
        ------
        ValueError
            If names or `ranges` are not those of the columns.
        """
        means, spreads = np.asarray(estimator.means_), np.sqrt(estimator.variances_)
        names, ranges = named_ranges(estimator, feature_names, ranges)
        ends: list[Floats | None] = [None, None]
        with suppress(ValueError):  # there may be no intervals
            ends = [*estimator.means_interval(0.9)]
        if ranges is not None:
            middle, half = ranges.mean(axis=1), np.diff(ranges)[:, 0] / 2
            ends = [None if end is None else middle + half * np.clip(end, -1, 1) for end in ends]
            means, spreads = middle + half * means, half * spreads
        footer = f"this fit: {estimator.privacy_report_.in_brief}"
        return cls(estimator.weights_, means, spreads, names, ranges, footer, *ends).plot()

    def plot(self) -> "MixtureDisplay":
        """Draw into a new figure."""
        means, spreads = np.asarray(self.means), np.asarray(self.spreads)
        places = range(len(self.shares))
        labels = [f"group {n} · {share:.0%}" for n, share in enumerate(self.shares, start=1)]
        titles = [shortened(name) for name in self.names]
        lines = [*labels, ""]  # the last one for the height of the axis
        has_intervals = self.low is not None and not np.isnan(self.low).all()
        caption = "dot: average; " + "line with ends: its 90% interval; " * has_intervals
        footer = f"{caption}grey: one standard deviation of the group\n{self.footer}".rstrip()
        self.axes_ = _grid([lines] * len(titles), titles, footer)
        for column, axes in enumerate(self.axes_):
            centres, reach = means[:, column], spreads[:, column]
            if self.low is not None and self.high is not None:  # below the bar
                ends = np.array([centres - self.low[:, column], self.high[:, column] - centres])
                axes.errorbar(
                    centres, np.array(places) + 0.3, xerr=np.maximum(ends, 0.0), fmt="none",
                    ecolor=SECOND, elinewidth=1.2, capsize=2,
                )  # fmt: skip
            axes.errorbar(centres, places, xerr=reach, fmt="none", ecolor=WIDE, elinewidth=6)
            axes.plot(centres, places, "o", color=FIRST, markersize=5)
            axes.set_yticks(places, labels)
            axes.set_ylim(len(labels) - 0.4, -0.6)  # the first group on top
            styled(axes, titles[column])
            finish_bars(axes)
            if self.ranges is not None:
                axes.set_xlim(*self.ranges[column])
        return self


def _width(words: Sequence[str]) -> float:
    """Upper bound, in inches at a size of 10 points, on the width of the longest word."""

    def width_of(letter: str) -> float:
        if unicodedata.east_asian_width(letter) in "WF":
            return 0.17
        return 0.14 if letter.isupper() or letter in "mw@%…—" else 0.085

    return max((sum(map(width_of, word)) for word in words), default=0.0)


def _taken(rows: Floats, places: "list[NDArray[np.intp]]") -> list[Floats]:
    """Values of each row at its own places."""
    return [row[own] for row, own in zip(rows, places, strict=True)]


def _grid(words: list[list[str]], titles: Sequence[str], footer: str) -> "list[Axes]":
    """Axes of a new figure, with the footer in free cells of the grid, or below all."""
    widest = 13.0  # inches of a figure of several charts: a slide, or the window of a laptop
    n_charts, n_lines = len(words), max(map(len, words))
    # Titles are larger and bold.
    width = max(2.0, 1.4 * _width(titles)) + max(map(_width, words))
    most_columns = max(min(5, int(widest / width)), 1)
    # Numbers of columns, the best first, that leave no cell free.
    full = [n for n in (4, 3, 5) if n_charts % n == 0 and n <= most_columns]
    n_columns = min(full[0] if full else min(most_columns, 4), n_charts)
    n_rows = math.ceil(n_charts / n_columns)
    height = 0.8 + 0.22 * n_lines
    figure = new_figure(figsize=(width * n_columns, n_rows * height + 0.5))
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06, wspace=0.03, hspace=0.02)
    cells = figure.add_gridspec(n_rows, n_columns)
    charts = [figure.add_subplot(cells[n // n_columns, n % n_columns]) for n in range(n_charts)]
    n_free = n_rows * n_columns - n_charts
    lines = wrapped(footer, width * n_free) if n_free else ""
    if n_free and len(lines.splitlines()) * 0.18 < height:
        rest = figure.add_subplot(cells[n_rows - 1, n_columns - n_free :])
        rest.set_axis_off()
        rest.text(0.0, 0.9, lines, va="top", transform=rest.transAxes, **SMALL)
    elif footer:
        say_below(figure, footer)
    return charts
