"""Displays: what they draw is what was released, where they are told to draw."""

import sys

import numpy as np
import pytest
from browsing import WORDS, model

from sktensor_dp import PrivateGaussianMixture
from sktensor_dp.plotting import BarDisplay, MixtureDisplay, TopicsDisplay, save_svg

pytest.importorskip("matplotlib", reason="matplotlib is optional")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

HOSTILE = ["$x_1^{2$", "<script>", "two\nlines\ttabs", "w" * 60, r"\frac", "mañana", "词语", ""]


def test_topics_are_drawn_in_the_order_of_their_shares():
    found = model()
    display = TopicsDisplay.from_estimator(found, WORDS, n_words=4)
    order = range(len(found.components_))
    assert display.words == found.top_words(4, WORDS, relevance=0.6)
    low, high = found.components_interval()
    places = zip(display.axes_, order, display.words, strict=True)
    for number, (axes, topic, words) in enumerate(places, start=1):
        assert axes.get_title(loc="left").startswith(f"Topic {number} · ")
        hidden = bool(found.hidden()[topic])
        assert axes.get_title(loc="left").endswith("· hidden") is hidden
        assert hidden is not bool(words)
        if hidden:
            continue
        columns = [list(WORDS).index(word) for word in words]
        drawn = [bar.get_width() for bar in axes.patches]
        assert drawn == found.components_[topic][columns].tolist()
        (bars,) = axes.containers[1].lines[2]
        ends = np.array(bars.get_segments())[:, :, 0]
        assert np.allclose(ends, np.stack([low[topic][columns], high[topic][columns]], axis=1))
    footer = "%: share of the words, no result to report\n"
    footer += "this fit alone: 12,345 documents, epsilon 1.5, delta 1e-6"
    assert display.footer == footer


def test_topics_are_drawn_where_they_are_told_to():
    found = model()
    axes = Figure().subplots(len(found.components_))
    display = TopicsDisplay.from_estimator(found, n_words=3, ax=axes)
    assert display.axes_ == list(axes)
    assert display.words[0] == [str(WORD) for WORD in map(int, display.words[0])]
    with pytest.raises(ValueError, match="one axes for each of"):
        display.plot(axes[:1])


def test_hostile_words_are_drawn_as_they_are(tmp_path):
    words, values = [HOSTILE, HOSTILE], np.full((2, len(HOSTILE)), 0.1)
    display = TopicsDisplay(["$\\unknown$", "$"], words, values, footer="$x^").plot()
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels[:4] == [HOSTILE[0], HOSTILE[1], "two lines tabs", "w" * 17 + "…"]
    # Without a date in it: the same picture is the same file.
    save_svg(display.figure_, tmp_path / "new" / "a.svg")
    save_svg(BarDisplay(HOSTILE, values[0], title="$").plot().figure_, tmp_path / "b.svg")
    for name in ("new/a.svg", "b.svg"):
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert "<svg" in written
        assert "<script" not in written
        assert "<dc:date" not in written


@pytest.mark.parametrize("n_topics", [1, 20])
def test_charts_share_one_scale_and_no_text_leaves_the_figure(n_topics):
    words = [["w" * 60 + str(i) for i in range(10)]] * n_topics
    values = np.random.default_rng(0).dirichlet(np.ones(10), size=n_topics)
    titles = [f"Topic {n} · 12.3%" for n in range(n_topics)]
    display = TopicsDisplay(titles, words, values, footer="of all").plot()
    assert len({axes.get_xlim() for axes in display.axes_}) == 1
    assert display.ax_.get_xlim()[1] >= values.max()
    canvas = FigureCanvasAgg(display.figure_)
    canvas.draw()
    width = display.figure_.get_size_inches()[0] * display.figure_.dpi
    shown = [text for axes in display.axes_ for text in axes.get_yticklabels()]
    for text in shown:
        box = text.get_window_extent(canvas.get_renderer())
        assert -0.5 <= box.x0 < box.x1 <= width
    bars = [axes.get_window_extent() for axes in display.axes_]
    assert min(box.width for box in bars) > 40


def test_groups_are_drawn_with_their_spreads():
    mixture = PrivateGaussianMixture(2, covariance_type="spherical", data_norm=9.0)
    mixture.means_ = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mixture.weights_, mixture.covariances_ = np.array([0.7, 0.3]), np.array([1.0, 4.0])
    mixture.privacy_report_, mixture.n_features_in_ = model().privacy_report_, 3
    display = MixtureDisplay.from_estimator(mixture, ["age", "stays", "weight"])
    assert [axes.get_title(loc="left") for axes in display.axes_] == ["age", "stays", "weight"]
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["group 1 · 70%", "group 2 · 30%"]
    spreads, *_ = display.axes_[1].containers
    assert np.allclose(np.array(spreads.lines[2][0].get_segments())[:, :, 0], [[1, 3], [3, 7]])
    (points,) = (line for line in display.axes_[1].lines if line.get_marker() == "o")
    assert points.get_xdata().tolist() == [2.0, 5.0]
    ranges = {
        "age": (0, 120),
        "stays": (0, 20),
        "weight": (-1, 1),
    }  # of -1 to 1, which these columns were scaled to
    display = MixtureDisplay.from_estimator(mixture, ranges=ranges)
    assert display.axes_[1].get_xlim() == (0, 20)
    assert np.allclose(display.means[:, :2], [[120, 30], [300, 60]])
    assert np.allclose(display.spreads, [[60, 10, 1], [120, 20, 2]])


def test_cells_without_a_chart_say_how_to_read_the_others():
    words, values = [["a", "b"]] * 7, np.full((7, 2), 0.5)
    display = TopicsDisplay([f"Topic {n}" for n in range(7)], words, values, footer="how").plot()
    *charts, rest = display.figure_.axes
    assert charts == display.axes_
    assert [text.get_text() for text in rest.texts] == ["how"]


def test_a_long_footer_stays_in_the_figure():
    footer = "Noise hides how these items differ: whatever order they have is chance. " * 3
    charts = [
        BarDisplay(["w" * 60] * 3, [1.0, 0.5, 0.2], footer=footer).plot(),
        TopicsDisplay(["one"], [["word"]], [[0.5]], footer=footer).plot(),
        # A free cell of one line.
        MixtureDisplay([1.0], [[0.5] * 7], [[0.1] * 7], ["column"] * 7, footer=footer).plot(),
    ]
    for display in charts:
        canvas = FigureCanvasAgg(display.figure_)
        canvas.draw()
        box = display.figure_._supxlabel.get_window_extent(canvas.get_renderer())
        assert 0 <= box.x0 < box.x1 <= canvas.get_width_height()[0]


def test_missing_matplotlib_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        BarDisplay(["a"], [1.0]).plot()
