"""Displays: what they draw is what was released, where they are told to draw."""

import numpy as np
import pytest
from browsing import WORDS, model

from sktensor_dp import PrivateCPCompletion, PrivateSpectralLDA, PrivateTensorPowerMethod
from sktensor_dp.plotting import (
    BudgetDisplay,
    ComponentDisplay,
    FactorDisplay,
    SpectrumDisplay,
    TopicsDisplay,
    UtilityDisplay,
    figure_png,
)

pytest.importorskip("matplotlib", reason="matplotlib is optional")
from matplotlib.figure import Figure


@pytest.fixture
def axes():
    return Figure().subplots()


def test_components_are_drawn_with_their_intervals(axes):
    found = model()
    display = ComponentDisplay.from_estimator(found, 1, WORDS, n_features=4, ax=axes)
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    assert [label.get_text() for label in axes.get_yticklabels()] == found.top_words(4, WORDS)[1]
    lengths = [bar.get_width() for bar in axes.patches]
    assert lengths == sorted(found.components_[1], reverse=True)[:4]
    order = np.argsort(-found.components_[1], kind="stable")[:4]
    low, high = found.components_interval()
    assert np.allclose(display.low, low[1][order])
    assert np.allclose(display.high, high[1][order])
    assert figure_png(display.figure_).startswith(b"\x89PNG")


def test_topics_are_drawn_in_the_order_of_their_shares():
    found = model()
    display = TopicsDisplay.from_estimator(found, WORDS, n_words=4)
    order = np.argsort(-found.topic_prior_, kind="stable")
    assert display.words == [found.top_words(4, WORDS, relevance=0.6)[topic] for topic in order]
    low, high = found.components_interval()
    for axes, topic, words in zip(display.axes_, order, display.words, strict=True):
        assert axes.get_title(loc="left").startswith(f"Topic {topic + 1} ")
        columns = [list(WORDS).index(word) for word in words]
        drawn = [bar.get_width() for bar in axes.patches]
        assert drawn == found.components_[topic][columns].tolist()
        (bars,) = axes.containers[1].lines[2]
        ends = np.array(bars.get_segments())[:, :, 0]
        assert np.allclose(ends, np.stack([low[topic][columns], high[topic][columns]], axis=1))
    assert figure_png(display.figure_).startswith(b"\x89PNG")


def test_topics_are_drawn_where_they_are_told_to():
    found = model()
    found.components_std_ = None
    axes = Figure().subplots(len(found.components_))
    display = TopicsDisplay.from_estimator(found, n_words=3, ax=axes)
    assert display.axes_ == list(axes)
    assert display.low is None
    assert display.words[0] == [str(WORD) for WORD in map(int, display.words[0])]
    with pytest.raises(ValueError, match="one axes for each of"):
        display.plot(axes[:1])


def test_words_are_no_formulas():
    display = ComponentDisplay(["$x^", "a_b$"], np.array([0.5, 0.2]), None, None, "$").plot()
    assert figure_png(display.figure_)


def test_components_without_known_noise_have_no_intervals():
    power = PrivateTensorPowerMethod(2)
    power.components_ = np.array([[0.6, -0.8], [0.8, 0.6]])
    display = ComponentDisplay.from_estimator(power, 0)
    assert display.low is None
    assert display.names == ["1", "0"]


def test_spectrum_is_counted_against_its_noise(axes):
    found = model()
    found.spectrum_, found.noise_edge_ = np.array([4.0, 2.0, 0.5]), 1.0
    display = SpectrumDisplay.from_estimator(found, ax=axes)
    assert display.n_above == 2 == found.suggest_n_components()
    assert np.array_equal(axes.lines[0].get_ydata(), found.spectrum_)
    found.spectrum_ = None
    with pytest.raises(ValueError, match="must have a released spectrum_"):
        SpectrumDisplay.from_estimator(found)


def test_budget_is_that_of_the_report(axes):
    found = model()
    display = BudgetDisplay.from_estimator(found, ax=axes)
    assert display.names == ["moments"]
    assert axes.patches[0].get_width() == pytest.approx(100 * found.privacy_report_.fractions[0])


def test_profiles_of_factors_are_columns(axes):
    class Completion:
        factors_ = (np.empty((0, 2)), np.arange(6.0).reshape(3, 2))

    display = FactorDisplay.from_estimator(Completion, 1, [1], ax=axes)
    assert np.array_equal(axes.lines[0].get_ydata(), [1.0, 3.0, 5.0])
    assert display.factor.shape == (3, 1)
    with pytest.raises(ValueError, match="mode must be one whose factors were released"):
        FactorDisplay.from_estimator(Completion, 0)


@pytest.mark.parametrize(
    "estimator",
    [PrivateSpectralLDA(3), PrivateTensorPowerMethod(3, moment="gaussian_mixture", data_norm=5.0)],
)
def test_utility_follows_the_forecast(estimator, axes):
    display = UtilityDisplay.from_estimator(estimator, [10_000, 1_000_000], n_features=50, ax=axes)
    forecast = estimator.forecast(1_000_000, 50)
    for release in forecast.releases:
        assert display.ratios[release.name][1] == release.ratio
    assert len(axes.lines) == len(display.ratios) + 1


@pytest.mark.parametrize("unit", [{}, {"unit_mode": 0}])
def test_errors_of_completions_follow_the_forecast(unit, axes):
    model, sizes = PrivateCPCompletion(2, bounds=(1, 5), **unit), [2000, 2_000_000]
    display = UtilityDisplay.from_estimator(model, sizes, shape=(300, 40), ax=axes)
    for place, n in enumerate(sizes):
        forecast = model.forecast(n, (300, 40))
        assert display.ratios["the mean"][place] == forecast.of_mean
        assert display.ratios["mean and biases"][place] == pytest.approx(
            forecast.of_biases if np.isfinite(forecast.of_biases) else np.nan, nan_ok=True
        )
    assert axes.get_ylabel() == "expected RMSE"
    found = [n for n in sizes if model.forecast(n, (300, 40)).finds_components]
    assert axes.get_title() == (
        f"components from {min(found):,} entries on" if found else "no components expected"
    )


@pytest.mark.parametrize("sizes", [{}, {"n_features": 5, "shape": (3, 3)}])
def test_utility_needs_one_kind_of_size(sizes):
    with pytest.raises(ValueError, match="one of n_features and shape must be given"):
        UtilityDisplay.from_estimator(PrivateSpectralLDA(2), [100], **sizes)
