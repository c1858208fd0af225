"""All topics of a model in one figure, as a display."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.plotting.word_bars import charts_for, displayed, draw_bars, draw_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


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
        words = [[displayed(word) for word in row] for row in self.words]
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
