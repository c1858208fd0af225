"""Biases of rows: from noisy sums, features and shared releases."""

import math

import numpy as np
import pytest
from internals import leading_pairs
from scipy.stats import norm
from small_tensors import rms

from sktensor_dp.tensor.entry_biases import fit_row_sums, incidence_features, standardised
from sktensor_dp.tensor.shared_parameters import clipped_variance, mean_response, shared_effects
from sktensor_dp.tensor.sorted_entries import SortedEntries

GAIN, SCALE, N_UNITS = 0.4, 0.25, 1000


def additive(seed, shape=(60, 50, 40), n=6000):
    rng = np.random.default_rng([seed, *shape])
    coordinates = np.column_stack([rng.integers(0, m - 1, n) for m in shape])
    entries = SortedEntries(coordinates, shape)
    biases = [0.6 * rng.standard_normal(m) for m in shape]
    truth = 3.0 + entries.at_entries(biases)
    weights = np.array([c[k] ** -0.5 for c, k in zip(entries.counts, coordinates.T, strict=True)])
    return entries, truth, weights / weights.sum(axis=0), rng


def sums_of(entries, values, weights, center=0.0):
    return [entries.row_sums(w * (values - center), m) for m, w in enumerate(weights)]


def test_noise_is_shrunk(seed):
    entries, truth, weights, rng = additive(seed)
    values = truth + rng.standard_normal(len(truth))
    std = 30.0
    sums = [s + std * rng.standard_normal(len(s)) for s in sums_of(entries, values, weights, 3.0)]
    model = fit_row_sums(entries, sums, weights, std**2, 1.0, center=3.0)
    error = rms(model.predict(entries.coordinates) - truth)
    # Rows' weights sum to some 45: noise of .65 in a row's mean, biases of .6. Shrinkage
    # leaves .44 of it in each of three modes, .77 in all, against 1.04 and 1.13.
    raw = [
        s / np.maximum(entries.row_sums(w, m), 1e-9)
        for m, (s, w) in enumerate(zip(sums, weights, strict=True))
    ]
    assert error < 0.95 * rms(truth - truth.mean())
    # Of sums that are nothing but noise the mean is that of the prior.
    hidden = fit_row_sums(entries, sums, weights, 1e12, 1.0, center=3.0, mean_variance=1.0)
    assert abs(hidden.mean - 3.0) < 1e-3
    assert error < 0.9 * rms(3.0 + entries.at_entries(raw) - truth)


def test_ordinary_ridge_where_it_has_a_closed_form():
    """One mode with weights: b = W u / (W^2 / V + 1 / beta) / V, a mode of one row aside."""
    entries = SortedEntries(np.argwhere(np.ones((4, 1))).repeat(5, axis=0), (4, 1))
    rng = np.random.default_rng(0)
    values = rng.standard_normal(4)[entries.coordinates[:, 0]]
    weights = [np.ones(20), np.zeros(20)]
    model = fit_row_sums(
        entries, sums_of(entries, values, weights), weights, 2.0, 1.0, max_iter=500
    )
    V = 5 * 1.0 + 2.0
    left = entries.row_sums(values, 0) - 5 * model.mean
    expected = (5 * left / V) / (25 / V + 1 / model.bias_prior_variances[0])
    np.testing.assert_allclose(model.biases[0], expected, atol=1e-3)
    np.testing.assert_allclose(model.biases[1], 0.0)


def two_circles(seed):
    """People of two circles, who mostly have entries with items of their own circle."""
    rng = np.random.default_rng(seed)
    people, items = np.arange(400) % 2, np.arange(300) % 2
    chance = np.where(people[:, None] == items, 0.1, 0.01)
    X = np.argwhere(rng.random((400, 300)) < chance)
    return SortedEntries(X, (400, 300)), people, items, rng


@pytest.mark.parametrize("often", [1, 60], ids=["double", "single precision"])
@pytest.mark.parametrize("mode", [0, 1])
def test_vectors_of_both_sides_are_pairs(often, mode, seed):
    """Of the table of counts over roots of its margins, but for the trivial first ones."""
    X = np.tile(two_circles(seed)[0].coordinates, (often, 1))
    entries = SortedEntries(X, (400, 300))
    near, far = leading_pairs(entries, mode)
    table = np.zeros(entries.shape)
    np.add.at(table, tuple(X.T), 1.0)
    own, theirs = (1 / np.sqrt(n + n.mean()) for n in (table.sum(axis=1), table.sum(axis=0)))
    scaled = own[:, None] * table * theirs
    scaled = scaled.T if mode else scaled
    singular = np.linalg.svd(scaled)[1][1 : near.shape[1] + 1]
    # All of them, whatever their gaps: up to 600 rows they are exact, but for single precision.
    close = {"rtol": 1e-6 if often == 1 else 1e-4}
    np.testing.assert_allclose(np.einsum("na,nm,ma->a", near, scaled, far), singular, **close)
    np.testing.assert_allclose(scaled @ far, near * singular, atol=close["rtol"])


def errors_with_and_without(entries, truth, std, rng):
    weights = [np.full(entries.n_entries, 0.5)] * 2
    sums = [entries.row_sums(0.5 * truth, m) for m in range(2)]
    sums = [s + std * rng.standard_normal(len(s)) for s in sums]
    return [
        rms(fit_row_sums(entries, sums, weights, std**2, 0.1, features=features).predict(
            entries.coordinates) - truth)
        for features in (incidence_features(entries), None)
    ]  # fmt: skip


def test_biases_are_shrunk_to_what_features_say(seed):
    entries, _, items, rng = two_circles(seed)
    truth = np.where(items[entries.coordinates[:, 1]] > 0, 1.0, -1.0)
    found, plain = errors_with_and_without(entries, truth, 15.0, rng)
    # Noise of 15 in a sum of ten halves: alone a row of the items says little of 1, and
    # three hundred of them together know it to 15 / 11 / sqrt(150) = .11.
    assert found < 0.8 * plain


def test_features_of_noise_are_given_no_weight(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n, 6000) for n in (200, 150)])
    truth = rng.standard_normal(150)[X[:, 1]]
    found, plain = errors_with_and_without(SortedEntries(X, (200, 150)), truth, 5.0, rng)
    # Eight coefficients of 150 rows are fitted to nothing: a part in twenty of what is shrunk.
    assert found < 1.1 * plain


@pytest.mark.parametrize("shape", [(60, 50), (30, 20, 10)])
def test_the_mean_is_of_all_values_however_far_from_the_middle(shape, seed):
    """Else biases of one mode take it, and rows without entries are at the middle of the bounds."""
    entries, truth, weights, _ = additive(seed, shape)
    model = fit_row_sums(entries, sums_of(entries, truth, weights), weights, 1e-9, 0.01)
    for counts, biases in zip(entries.counts, model.biases, strict=True):
        assert abs(counts @ biases) < 0.1 * entries.n_entries  # it was 3


def test_rows_of_equal_numbers_of_entries_have_no_constant_feature():
    """Its rounding error, scaled to 1, would be a second mean."""
    for shape in ((1000, 12), (50, 12, 7)):
        entries = SortedEntries(np.argwhere(np.ones(shape, bool)), shape)
        for features in incidence_features(entries):
            assert not features[:, -1].any()  # logarithms of numbers of entries
            np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-9)


def test_rows_without_entries_have_none():
    X = np.array([[0, 0], [0, 1], [1, 1]])
    entries = SortedEntries(X, (3, 2))
    features = incidence_features(entries)
    assert not features[0][2].any()
    given = standardised(np.array([[0.0, 1.0], [5.0, 1.0], [9.0, 1.0]]), entries.counts[0])
    np.testing.assert_allclose(entries.counts[0] @ given, 0.0, atol=1e-12)
    assert np.isfinite(given).all()
    assert not given[2].any()
    assert not given[:, 1].any()


def noisy_sums(seed, noise, n_rows=800):
    rng = np.random.default_rng(seed)
    weights = np.exp(rng.uniform(0.0, np.log(100.0), n_rows))
    effects = np.sqrt(SCALE) * rng.standard_normal(n_rows)
    sums = GAIN * weights * effects + noise * rng.standard_normal(n_rows)
    return effects, weights, sums, weights + noise * rng.standard_normal(n_rows)


def fitted_effects(sums, weights, noise):
    found, _ = shared_effects(
        sums,
        weights,
        noise_std=noise,
        weight_each=N_UNITS / max(np.sum(weights), N_UNITS),
        response=GAIN,
        effect_variance=0.1,
    )
    return found


def test_rare_rows_near_a_bound_vary_as_far_as_it_leaves_room(seed):
    """Where most values are the best one, rare rows are worse and farther apart."""
    rng = np.random.default_rng(seed)
    noise, half = 3.0, 2.0
    weights = np.exp(rng.uniform(0.0, np.log(500.0), 800))
    logits = 0.5 + 0.12 * np.log(weights) + 0.25 * rng.standard_normal(800)
    middle = half * np.tanh(1.0)
    effects = half * np.tanh(logits) - middle
    sums = GAIN * weights * effects + noise * rng.standard_normal(800)
    known = {"noise_std": noise, "weight_each": 0.0, "response": GAIN, "effect_variance": 0.1}
    reported = weights + noise * rng.standard_normal(800)
    found, _ = shared_effects(sums, reported, **known, middle=middle, half=half)
    rare = weights < 10
    assert rms((found.means - effects)[rare] / np.sqrt(found.variances[rare])) < 1.2


def test_effects_are_near_the_best_estimate(seed):
    noise = 3.0
    effects, weights, sums, reported = noisy_sums(seed, noise)
    fitted = fitted_effects(sums, reported, noise)
    # The posterior mean with weights, variances and scale known.
    each = min(N_UNITS / reported.sum(), 1.0)
    slope = GAIN * weights
    best = slope * SCALE / (slope**2 * SCALE + noise**2 + weights * each) * sums
    # It leaves some .7 of 0's error; ratios divided by noisy weights are far worse.
    error = rms(fitted.means - effects)
    assert error < 1.15 * rms(best - effects)
    assert error < 0.9 * rms(effects)
    assert fitted.prior_variance == pytest.approx(SCALE, rel=0.5)
    # Posterior variances say what the error is.
    assert np.mean(fitted.variances) == pytest.approx(error**2, rel=0.3)


@pytest.mark.parametrize("slope", [0.1, -0.1])
def test_effects_that_follow_weights_are_drawn_to_their_line(seed, slope):
    """Where popular rows are better, rare ones are worse than the mean of all."""
    _, weights, _, _ = noisy_sums(seed, 3.0)
    rng, rare = np.random.default_rng(seed), weights < 3
    effects = slope * np.sqrt(weights) + 0.2 * rng.standard_normal(len(weights))
    effects -= weights @ effects / weights.sum()
    sums = GAIN * weights * effects + 3.0 * rng.standard_normal(len(weights))
    reported = weights + 3.0 * rng.standard_normal(len(weights))
    fitted = fitted_effects(sums, reported, 3.0)
    off = (fitted.means - effects)[rare]
    assert np.mean(np.abs(off) < 1.96 * np.sqrt(fitted.variances[rare])) > 0.8
    assert abs(off.mean()) < 0.35 * abs(effects[rare].mean())
    assert fitted.prior_variance < 0.5 * np.var(effects)


@pytest.mark.parametrize("shift", [0.0, 0.7, -2.0])
def test_means_of_clipped_residuals(shift):
    clip, deviation = 0.4, 1.2
    x, step = np.linspace(-12, 12, 200_001, retstep=True)

    def mean(values, at):
        return values @ norm.pdf(x, at, deviation) * step

    clipped = np.clip(x, -clip, clip) / clip
    response, slope = mean_response(clip, np.array([shift]), np.array([deviation]))
    assert response == pytest.approx(mean(clipped, shift), abs=1e-6)
    assert slope == pytest.approx(mean(clipped * (x - shift), shift) / deviation**2, abs=1e-6)
    assert clipped_variance(clip / deviation) == pytest.approx(mean(clipped**2, 0.0), abs=1e-6)


def test_popularity_follows_the_weights(seed):
    _, weights, sums, reported = noisy_sums(seed, 3.0)
    fitted = fitted_effects(sums, reported, 3.0)
    heavy = weights > 30.0
    expected = 0.5 * np.log(weights / reported.mean())
    # Weights over 30 with noise 3: errors of .05, and a grid of steps of .07.
    np.testing.assert_allclose(fitted.popularity[heavy], expected[heavy], atol=0.35)
    assert rms(fitted.popularity[heavy] - expected[heavy]) < 0.1


def test_noise_alone_is_shrunk_away(seed):
    rng = np.random.default_rng(seed)
    sums, weights = 20.0 * rng.standard_normal((2, 500))
    fitted = fitted_effects(sums, weights, 20.0)
    # Of a prior deviation of .32 almost nothing follows the sums.
    assert rms(fitted.means) < 0.1


def test_a_small_variance_is_the_likeliest():
    """A dozen EM steps from a large variance are far from it where entries hide effects."""
    sums = math.sqrt(GAIN**2 * 0.05 + 0.02) * np.random.default_rng(0).standard_normal(2000)
    found, _ = shared_effects(
        sums, np.ones(2000), noise_std=0.0, weight_each=0.02, response=GAIN, effect_variance=1.0
    )
    likeliest = (np.mean(sums**2) - 0.02) / GAIN**2
    assert found.prior_variance == pytest.approx(likeliest, rel=0.02)


def test_exact_sums(seed):
    effects, weights, _, _ = noisy_sums(seed, 0.0)
    weights[:3] = 0.0
    fitted = fitted_effects(GAIN * weights * effects, weights, 0.0)
    each = N_UNITS / weights.sum()
    variance = weights * each + 1e-100
    slope = GAIN * weights
    gain = slope**2 * fitted.prior_variance / (slope**2 * fitted.prior_variance + variance)
    middles = fitted.prior_means
    np.testing.assert_allclose(fitted.means, middles + gain * (effects - middles), atol=1e-10)
    np.testing.assert_array_equal(fitted.means[:3], middles[:3])
    # How far means are drawn to a curve may add to variances.
    assert (fitted.variances[:3] >= fitted.prior_variance * (1 - 1e-12)).all()
    assert np.isfinite(fitted.popularity).all()
