"""Figures in the way of scikit-learn's displays: ``from_estimator``, ``ax=``, and what was drawn.

All of it is drawn from released values and public numbers, so that a figure costs no privacy.
"""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sktensor_dp.plotting.word_bars import (
    FIRST,
    MUTED,
    PLAIN,
    SECOND,
    TEXT,
    charts_for,
    draw_bars,
    draw_intervals,
    new_figure,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Floats = NDArray[np.float64]


@dataclass
class Display:
    """Data of a figure, and after ``plot`` where it was drawn."""

    _where: "Axes | None" = field(default=None, init=False, repr=False)

    @property
    def ax_(self) -> "Axes | None":
        """Axes that it was drawn in."""
        return self._where

    @property
    def figure_(self) -> Any:
        """Figure of these axes."""
        return None if self._where is None else self._where.figure

    def _axes(self, ax: "Axes | None") -> "Axes":
        self._where = drawn = new_figure().subplots() if ax is None else ax
        return drawn


def _draw_bars(ax: "Axes", values: Floats, names: list[str], label: str, title: str) -> None:
    """Draw bars with names, the first on top."""
    places = np.arange(len(names))
    ax.barh(places, values, color=FIRST, height=0.7)
    ax.set_yticks(places, names, **PLAIN)
    ax.invert_yaxis()
    ax.set(xlabel=label)
    ax.set_title(title, **PLAIN)


@dataclass
class ComponentDisplay(Display):
    """Leading words, or largest coordinates, of one component, with intervals for its noise.

    Attributes
    ----------
    names : list of str
        What the bars are called, the first on top.
    values : ndarray of shape (n_bars,)
        Their lengths.
    low, high : ndarray of shape (n_bars,) or None
        Intervals, where the noise is known.
    title : str
        What is drawn.

    Examples
    --------
    >>> from sktensor_dp.plotting import ComponentDisplay
    >>> display = ComponentDisplay(["ship", "sail"], [0.5, 0.25], None, None, "Topic 1").plot()
    >>> [float(bar.get_width()) for bar in display.ax_.patches]
    [0.5, 0.25]
    """

    names: list[str]
    values: Floats
    low: Floats | None
    high: Floats | None
    title: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        component: int = 0,
        feature_names: Sequence[str] | NDArray[Any] | None = None,
        *,
        n_features: int = 10,
        level: float = 0.9,
        ax: "Axes | None" = None,
    ) -> "ComponentDisplay":
        """Draw a row of ``components_`` of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            With ``components_``: topics, means, unit vectors.
        component : int, default=0
            Which row.
        feature_names : sequence of str of length n_features_in_, default=None
            By default ``feature_names_in_``, or the numbers of the columns.
        n_features : int, default=10
            How many bars, the largest in size.
        level : float, default=0.9
            Of the intervals, where the estimator has ``components_std_``.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        ComponentDisplay
            What was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        values = np.asarray(estimator.components_)[component]
        if feature_names is None:
            numbers = [str(column) for column in range(len(values))]
            feature_names = getattr(estimator, "feature_names_in_", numbers)
        order = np.argsort(-np.abs(values), kind="stable")[:n_features]
        std, low, high = getattr(estimator, "components_std_", None), None, None
        if std is not None:
            reach = float(ndtri((1 + level) / 2)) * std[component][order]
            low, high = np.maximum(values[order] - reach, 0.0), values[order] + reach
        names = [str(feature_names[column]) for column in order]
        return cls(names, values[order], low, high, f"Component {component}").plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "ComponentDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        values = np.asarray(self.values)
        label = "probability" if (values >= 0).all() else "value"
        _draw_bars(ax, values, self.names, label, self.title)
        if self.low is not None and self.high is not None:
            draw_intervals(ax, values, self.low, self.high)
        return self


@dataclass
class SpectrumDisplay(Display):
    """Eigenvalues of the released second moment against what noise alone may reach.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_eigenvalues,)
        The largest first.
    noise_edge : float
        What noise alone may lift one to.

    Examples
    --------
    >>> from sktensor_dp.plotting import SpectrumDisplay
    >>> display = SpectrumDisplay([3.0, 1.0, 0.2], 0.5).plot()
    >>> display.n_above
    2
    """

    eigenvalues: Floats
    noise_edge: float

    @property
    def n_above(self) -> int:
        """Number of eigenvalues above the noise."""
        return int((np.asarray(self.eigenvalues) > self.noise_edge).sum())

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: "Axes | None" = None) -> "SpectrumDisplay":
        """Draw the spectrum that a topic model has released.

        Parameters
        ----------
        estimator : PrivateSpectralLDA
            Fitted.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        SpectrumDisplay
            What was drawn.

        Raises
        ------
        ValueError
            If the estimator has no ``spectrum_``.
        """
        spectrum = getattr(estimator, "spectrum_", None)
        if spectrum is None:
            raise ValueError(f"{type(estimator).__name__} must have a released spectrum_.")
        return cls(spectrum, float(estimator.noise_edge_ or 0.0)).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "SpectrumDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        places = np.arange(1, len(self.eigenvalues) + 1)
        ax.plot(places, self.eigenvalues, "o-", color=FIRST, label="released eigenvalue")
        ax.axhline(self.noise_edge, color=SECOND, linestyle="--", label="reached by noise alone")
        ax.set(xlabel="component", ylabel="eigenvalue", title=f"{self.n_above} above the noise")
        ax.legend()
        return self


@dataclass
class BudgetDisplay(Display):
    """Fraction of a budget spent on each release.

    Attributes
    ----------
    names : list of str
        Releases.
    shares : ndarray of shape (n_releases,)
        Of the budget, with all their uses.
    title : str
        The guarantee.

    Examples
    --------
    >>> from sktensor_dp.plotting import BudgetDisplay
    >>> BudgetDisplay(["pairs", "counts"], [0.75, 0.25], "epsilon = 1").plot().names
    ['pairs', 'counts']
    """

    names: list[str]
    shares: Floats
    title: str

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: "Axes | None" = None) -> "BudgetDisplay":
        """Draw the releases of a fitted estimator, by its ``privacy_report_``.

        Parameters
        ----------
        estimator : fitted estimator
            Any of this package.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        BudgetDisplay
            What was drawn.
        """
        report = estimator.privacy_report_
        shares = np.array([share or 0.0 for share in report.fractions])
        title = f"epsilon = {report.epsilon:.4g}, delta = {report.delta:.3g}"
        return cls([row.name for row in report.rows], shares, title).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "BudgetDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        shares = 100 * np.asarray(self.shares)
        _draw_bars(ax, shares, self.names, "share of the budget, %", self.title)
        return self


@dataclass
class FactorDisplay(Display):
    """Profiles of a completion's factors along one mode.

    Attributes
    ----------
    factor : ndarray of shape (n_rows, n_profiles)
        Columns are drawn over the rows' numbers.
    mode : int
        Which mode it is of.

    Examples
    --------
    >>> from sktensor_dp.plotting import FactorDisplay
    >>> display = FactorDisplay([[1.0, 0.0], [0.5, 2.0]], 1).plot()
    >>> len(display.ax_.lines)
    2
    """

    factor: Floats
    mode: int

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        mode: int = 0,
        components: Sequence[int] | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> "FactorDisplay":
        """Draw columns of ``factors_[mode]`` of a fitted completion.

        Parameters
        ----------
        estimator : PrivateCPCompletion or PrivateTuckerCompletion
            Fitted.
        mode : int, default=0
            A mode that was released; units' own factors are not.
        components : sequence of int, default=None
            Which columns; all by default.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        FactorDisplay
            What was drawn.

        Raises
        ------
        ValueError
            If the factors of the mode were not released.
        """
        factor = estimator.factors_[mode]
        if factor is None or np.size(factor) == 0:
            raise ValueError(f"mode must be one whose factors were released, got {mode!r}.")
        chosen = slice(None) if components is None else list(components)
        return cls(np.asarray(factor)[:, chosen], mode).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "FactorDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        factor = np.asarray(self.factor)
        for column, profile in enumerate(factor.T):
            ax.plot(np.arange(len(factor)), profile, marker=".", label=f"component {column}")
        ax.set(xlabel=f"row of mode {self.mode}", ylabel="factor")
        ax.legend()
        return self


@dataclass
class TopicsDisplay:
    """Leading words of every topic, with intervals for the noise of the fit.

    Attributes
    ----------
    titles : list of str
        One for each topic that is drawn, in this order; numbers count rows of ``components_``
        from one.
    words : list of lists of str
        Leading words of each.
    values : ndarray of shape (n_topics, n_words)
        Their probabilities.
    low, high : ndarray of shape (n_topics, n_words) or None
        Intervals, where the noise is known.

    Examples
    --------
    >>> from sktensor_dp.plotting import TopicsDisplay
    >>> display = TopicsDisplay(["Topic 0"], [["ship", "sail"]], [[0.5, 0.25]]).plot()
    >>> [float(bar.get_width()) for bar in display.axes_[0].patches]
    [0.5, 0.25]
    """

    titles: list[str]
    words: list[list[str]]
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    _where: "list[Axes]" = field(default_factory=list, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        feature_names: Sequence[str] | NDArray[Any] | None = None,
        *,
        n_words: int = 10,
        relevance: float = 0.6,
        level: float = 0.9,
        n_columns: int | None = None,
        ax: "Sequence[Axes] | None" = None,
    ) -> "TopicsDisplay":
        """Draw the topics of a fitted model, those of the largest share first.

        Parameters
        ----------
        estimator : PrivateSpectralLDA
            Fitted.
        feature_names : sequence of str of length n_features_in_, default=None
            The words; by default ``feature_names_in_``, or the numbers of the columns.
        n_words : int, default=10
            Words of each topic.
        relevance : float, default=0.6
            As of ``top_words``: below 1, words that set a topic apart come first.
        level : float, default=0.9
            Of the intervals.
        n_columns : int, default=None
            Charts side by side. By default, what gives a page-like shape.
        ax : sequence of matplotlib axes, default=None
            Where to draw each topic; by default in a new figure.

        Returns
        -------
        TopicsDisplay
            What was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there are not as many axes as topics.
        """
        topics = np.asarray(estimator.components_)
        numbers = [str(column) for column in range(topics.shape[1])]
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", numbers)
        order = np.argsort(-np.asarray(estimator.topic_prior_), kind="stable")
        share = estimator.topic_prior_ / np.sum(estimator.topic_prior_)
        leading = estimator.top_words(n_words, numbers, relevance=relevance)
        top = np.array([leading[topic] for topic in order], dtype=np.intp)
        low = high = None
        if getattr(estimator, "components_std_", None) is not None:
            low, high = (
                np.take_along_axis(end[order], top, axis=1)
                for end in estimator.components_interval(level)
            )
        return cls(
            [f"Topic {topic + 1} · {100 * share[topic]:.1f} %" for topic in order],
            [[str(feature_names[word]) for word in row] for row in top],
            np.take_along_axis(topics[order], top, axis=1), low, high,
        ).plot(ax, n_columns=n_columns)  # fmt: skip

    def plot(
        self, ax: "Sequence[Axes] | None" = None, *, n_columns: int | None = None
    ) -> "TopicsDisplay":
        """Draw into axes, one for each topic, or into a new figure.

        Parameters
        ----------
        ax : sequence of Axes, default=None
            As many as topics.
        n_columns : int, default=None
            Of a new figure.

        Returns
        -------
        TopicsDisplay
            Itself.

        Raises
        ------
        ValueError
            If there are not as many axes as topics.
        """
        words = [[shortened(word) for word in row] for row in self.words]
        self._where = charts_for(words, n_columns) if ax is None else list(ax)
        if len(self._where) != len(words):
            raise ValueError(
                f"ax must have one axes for each of {len(words)} topics, got {len(self._where)}."
            )
        values = np.asarray(self.values)
        largest = float(np.max(values if self.high is None else self.high))
        for place, axes in enumerate(self._where):
            draw_bars(axes, values[place], words[place], self.titles[place])
            if self.low is not None and self.high is not None:
                draw_intervals(axes, values[place], self.low[place], self.high[place])
            axes.set_xlim(0.0, 1.05 * max(largest, np.finfo(float).tiny))
        return self

    @property
    def axes_(self) -> "list[Axes]":
        """Axes that topics were drawn in."""
        return self._where

    @property
    def figure_(self) -> Any:
        """Figure of the axes; None before ``plot``."""
        return self._where[0].figure if self._where else None


@dataclass
class UtilityDisplay(Display):
    """Forecast against the size of the data; nothing is spent.

    Signal over noise of every release; of completions the expected errors.

    Attributes
    ----------
    n_samples : ndarray of shape (n_sizes,)
        Sizes of the data to come: samples, or observed entries.
    ratios : dict of str to ndarray of shape (n_sizes,)
        Of each release; above 1 the signal stands out. Of completions the expected errors,
        by what predicts.
    quantity : str, default="signal / noise"
        What is drawn; ``"expected RMSE"`` of completions.
    title : str, default=""
        From how many entries on a completion can find components.

    Examples
    --------
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> from sktensor_dp.plotting import UtilityDisplay
    >>> model = PrivateSpectralLDA(5, epsilon=1.0)
    >>> display = UtilityDisplay.from_estimator(model, [1000, 100_000], n_features=500)
    >>> bool(display.ratios["pair_moments"][1] > display.ratios["pair_moments"][0])
    True
    """

    n_samples: Floats
    ratios: dict[str, Floats]
    quantity: str = "signal / noise"
    title: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        n_samples: Sequence[int],
        *,
        n_features: int | None = None,
        shape: Sequence[int] | None = None,
        ax: "Axes | None" = None,
    ) -> "UtilityDisplay":
        """Draw what ``estimator.forecast`` says at several sizes; nothing is spent.

        Parameters
        ----------
        estimator : estimator with ``forecast``
            Fitted or not: only its parameters are read.
        n_samples : sequence of int
            Sizes of the data to come: numbers of samples, or of observed entries.
        n_features : int, optional
            Number of features; not of completions.
        shape : sequence of int, optional
            Of the tensor, for completions.
        ax : matplotlib axes, default=None
            Where to draw; by default in a new figure.

        Returns
        -------
        UtilityDisplay
            What was drawn.

        Raises
        ------
        ValueError
            If neither or both of `n_features` and `shape` are given.
        """
        if (n_features is None) == (shape is None):
            raise ValueError("one of n_features and shape must be given: of completions the shape.")
        if shape is not None:
            return _of_completion(cls, estimator, n_samples, shape).plot(ax)
        found = [estimator.forecast(n, n_features).releases for n in n_samples]
        names = dict.fromkeys(release.name for releases in found for release in releases)
        ratios = {
            name: np.array(
                [next((r.ratio for r in releases if r.name == name), np.nan) for releases in found]
            )
            for name in names
        }
        return cls(np.asarray(n_samples, dtype=np.float64), ratios).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "UtilityDisplay":
        """Draw into axes, or into a new figure."""
        ax = self._axes(ax)
        for name, ratio in self.ratios.items():
            ax.loglog(self.n_samples, ratio, marker="o", label=name)
        of_entries = self.quantity != "signal / noise"
        if not of_entries:
            ax.axhline(1.0, color=MUTED, linestyle="--")
        ax.set(xlabel="entries" if of_entries else "samples", ylabel=self.quantity)
        ax.set_title(self.title)
        ax.legend()
        return self


def _of_completion(
    kind: type[UtilityDisplay], estimator: Any, n_observed: Sequence[int], shape: Sequence[int]
) -> UtilityDisplay:
    """Expected errors at several numbers of entries."""
    found = [estimator.forecast(n, shape) for n in n_observed]
    errors = {
        "the mean": np.array([one.of_mean for one in found], dtype=np.float64),
        "mean and biases": np.array([one.of_biases for one in found], dtype=np.float64),
    }
    # Where biases are not released their error is infinite, which no axis has.
    errors = {name: np.where(np.isfinite(each), each, np.nan) for name, each in errors.items()}
    enough = [n for n, one in zip(n_observed, found, strict=True) if one.finds_components]
    title = f"components from {min(enough):,} entries on" if enough else "no components expected"
    sizes = np.asarray(n_observed, dtype=np.float64)
    return kind(sizes, errors, "expected RMSE", title)


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
    topics = _check_topics(components, feature_names, n_words)
    shares = _check_weights(weights, len(topics))
    order = np.arange(len(topics)) if shares is None else np.argsort(-shares, kind="stable")
    top = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    words = [[str(feature_names[word]) for word in row] for row in top[order]]
    titles = [f"Topic {topic + 1}" for topic in order]
    if shares is not None:
        titles = [
            f"{title} · {100 * shares[topic]:.1f} %"
            for title, topic in zip(titles, order, strict=True)
        ]
    values = np.take_along_axis(topics, top, axis=1)[order]
    figure: Figure = TopicsDisplay(titles, words, values).plot(n_columns=n_columns).figure_
    figure.supxlabel("probability of the word in the topic", fontsize=9, color=MUTED, **PLAIN)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, color=TEXT, **PLAIN)
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


def _check_topics(
    components: ArrayLike, feature_names: Sequence[str] | NDArray[Any], n_words: int
) -> NDArray[np.float64]:
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


def _check_weights(weights: ArrayLike | None, n_topics: int) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_topics,):
        raise ValueError(f"weights must have shape ({n_topics},), got {values.shape}")
    if not np.all(values >= 0) or not 0 < values.sum() < np.inf:
        raise ValueError("weights must be non-negative, finite and not all zero")
    return values / values.sum()
