"""Figures of what was released: topics and how the privacy budget was spent.

Everything drawn here is a function of released values and public parameters, so
a figure costs no privacy. Figures are made without pyplot: no global state is
touched, and no window opens.
"""

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.plotting.topics import TopicsDisplay
from sktensor_dp.plotting.word_bars import MUTED, PLAIN, TEXT

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
