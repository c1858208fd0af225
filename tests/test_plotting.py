import itertools
import subprocess
import sys

import numpy as np
import pytest

from sktensor_dp.plotting import figure_png, plot_topics

pytest.importorskip("matplotlib", reason="matplotlib is optional")
from matplotlib.backends.backend_agg import FigureCanvasAgg

HOSTILE = ["$x_1^{2$", "<script>", "two\nlines\ttabs", "w" * 60, r"\frac", "mañana", "词语", ""]


def random_topics(n_topics, n_features=40, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_features, 0.2), size=n_topics)


def visible_texts(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [text for axes in figure.axes for text in axes.get_yticklabels()]
    texts += [
        label
        for axes in figure.axes
        for label in axes.get_xticklabels()
        if label.get_position()[0] <= axes.get_xlim()[1]  # labels beyond are not drawn
    ]
    texts += [axes.title for axes in figure.axes] + [axes._left_title for axes in figure.axes]
    texts += [text for text in (figure._suptitle, figure._supxlabel) if text is not None]
    shown = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in shown]


@pytest.mark.nightly
@pytest.mark.parametrize("n_topics", [1, 2, 3, 5, 7, 10, 20])
@pytest.mark.parametrize("long_words", [False, True])
def test_no_text_overlaps_or_leaves_the_figure(n_topics, long_words, seed):
    names = [("w" * 60 if long_words else "word") + str(i) for i in range(40)]
    weights = np.random.default_rng(seed).random(n_topics) + 0.01
    figure = plot_topics(random_topics(n_topics, seed=seed), names, weights, title="All topics")
    boxes = visible_texts(figure)
    width, height = figure.get_size_inches() * figure.dpi
    # Half a pixel: boxes are rounded to whole pixels of glyphs.
    for text, box in boxes:
        assert box.x0 >= -0.5, text
        assert box.y0 >= -0.5, text
        assert box.x1 <= width + 0.5, text
        assert box.y1 <= height + 0.5, text
    for (text, box), (other, other_box) in itertools.combinations(boxes, 2):
        common_x = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
        common_y = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
        # Neighbouring lines of text may touch by the pixel of a descender.
        assert common_x <= 0.5 or common_y <= 1.0, (text, other)


def test_topics_fall_by_weight_and_words_by_probability():
    topics = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
    figure = plot_topics(topics, ["a", "b", "c"], weights=[1.0, 4.0], n_words=2)
    second, first = figure.axes[1], figure.axes[0]
    assert first.get_title(loc="left") == "Topic 2 · 80.0 %"
    assert second.get_title(loc="left") == "Topic 1 · 20.0 %"
    assert [label.get_text() for label in first.get_yticklabels()] == ["a", "c"]
    assert [label.get_text() for label in second.get_yticklabels()] == ["b", "c"]
    np.testing.assert_allclose([bar.get_width() for bar in first.patches], [0.5, 0.3])
    assert first.get_ylim()[0] > first.get_ylim()[1]  # the most probable word on top


def test_without_weights_topics_keep_their_order():
    figure = plot_topics(random_topics(3), [f"w{i}" for i in range(40)])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Topic 1", "Topic 2", "Topic 3"]


def test_charts_share_one_scale():
    figure = plot_topics(random_topics(5), [f"w{i}" for i in range(40)])
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    assert figure.axes[0].get_xlim()[1] >= random_topics(5).max()


def test_hostile_words_are_drawn_as_they_are():
    topics = np.full((2, len(HOSTILE)), 1 / len(HOSTILE))
    figure = plot_topics(topics, HOSTILE, title="$\\unknown$")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[0] == HOSTILE[0]
    assert labels[2] == "two lines tabs"
    assert labels[3] == "w" * 19 + "…"
    assert figure_png(figure).startswith(b"\x89PNG")


def test_all_zero_topics_still_draw():
    assert figure_png(plot_topics(np.zeros((2, 3)), ["a", "b", "c"])).startswith(b"\x89PNG")


def test_pyplot_is_left_alone():
    code = """
import sys
from sktensor_dp.plotting import figure_png, plot_topics
figure_png(plot_topics([[0.7, 0.3]], ["a", "b"]))
assert "matplotlib.figure" in sys.modules and "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_png_is_reproducible():
    arguments = (random_topics(2), [f"w{i}" for i in range(40)])
    assert figure_png(plot_topics(*arguments)) == figure_png(plot_topics(*arguments))


def test_missing_matplotlib_names_the_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot_topics([[1.0]], ["a"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0, 2.0], ["a", "b"]), {}, "components must have shape"),
        ((np.zeros((0, 2)), ["a", "b"]), {}, "components must have shape"),
        (([[1.0, 2.0]], ["a"]), {}, "feature_names must name the 2 columns"),
        (([[1.0]], ["a"]), {"n_words": 0}, "n_words must be at least 1"),
        (([[1.0]], ["a"]), {"n_columns": 0}, "n_columns must be at least 1"),
        (([[1.0]], ["a"]), {"weights": [1.0, 2.0]}, r"weights must have shape \(1,\)"),
        (([[1.0]], ["a"]), {"weights": [-1.0]}, "weights must be non-negative"),
        (([[1.0]], ["a"]), {"weights": [0.0]}, "weights must be non-negative"),
        (([[1.0]], ["a"]), {"weights": [np.nan]}, "weights must be non-negative"),
    ],
)
def test_wrong_arguments_are_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plot_topics(*arguments, **options)
