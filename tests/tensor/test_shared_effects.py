"""Effects of shared rows by empirical Bayes."""

import numpy as np
import pytest
from small_tensors import rms

from sktensor_dp.tensor.shared_parameters import shared_effects

GAIN, SCALE, N_UNITS = 0.4, 0.25, 1000


def noisy_sums(seed, noise, n_rows=800):
    """Weights from 1 to 100, evenly on the logarithmic scale."""
    rng = np.random.default_rng(seed)
    weights = np.exp(rng.uniform(0.0, np.log(100.0), n_rows))
    effects = np.sqrt(SCALE) * rng.standard_normal(n_rows)
    sums = GAIN * weights * effects + noise * rng.standard_normal(n_rows)
    return effects, weights, sums, weights + noise * rng.standard_normal(n_rows)


def fit(sums, weights, noise, **kwargs):
    return shared_effects(
        sums, weights, noise_std=noise, n_units=N_UNITS, gain=GAIN, effect_variance=0.1, **kwargs
    )


def test_effects_are_near_the_best_estimate(seed):
    noise = 3.0
    effects, weights, sums, reported = noisy_sums(seed, noise)
    fitted = fit(sums, reported, noise)
    # The posterior mean with weights, variances and scale known.
    each = min(N_UNITS / reported.sum(), 1.0)
    slope = GAIN * weights
    best = slope * SCALE / (slope**2 * SCALE + noise**2 + weights * each) * sums
    # It leaves some .7 of 0's error; ratios divided by noisy weights are far worse.
    error = rms(fitted.effects - effects)
    assert error < 1.15 * rms(best - effects)
    assert error < 0.9 * rms(effects)
    assert fitted.scale == pytest.approx(SCALE, rel=0.5)
    # Posterior variances say what the error is.
    assert np.mean(fitted.variances) == pytest.approx(error**2, rel=0.3)


def test_popularity_follows_the_weights(seed):
    _, weights, sums, reported = noisy_sums(seed, 3.0)
    fitted = fit(sums, reported, 3.0)
    heavy = weights > 30.0
    expected = 0.5 * np.log(weights / reported.mean())
    # Weights over 30 with noise 3: errors of .05, and a grid of steps of .07.
    np.testing.assert_allclose(fitted.popularity[heavy], expected[heavy], atol=0.35)
    assert rms(fitted.popularity[heavy] - expected[heavy]) < 0.1


def test_noise_alone_is_shrunk_away(seed):
    rng = np.random.default_rng(seed)
    sums, weights = 20.0 * rng.standard_normal((2, 500))
    fitted = fit(sums, weights, 20.0)
    # Of a prior deviation of .32 almost nothing follows the sums.
    assert rms(fitted.effects) < 0.1


def test_exact_sums(seed):
    effects, weights, _, _ = noisy_sums(seed, 0.0)
    weights[:3] = 0.0
    fitted = fit(GAIN * weights * effects, weights, 0.0)
    each = N_UNITS / weights.sum()
    variance = weights * each + 1e-100
    slope = GAIN * weights
    expected = slope * fitted.scale / (slope**2 * fitted.scale + variance) * slope * effects
    np.testing.assert_allclose(fitted.effects, expected, atol=1e-10)
    np.testing.assert_array_equal(fitted.effects[:3], 0.0)
    np.testing.assert_allclose(fitted.variances[:3], fitted.scale)
    assert np.isfinite(fitted.popularity).all()
