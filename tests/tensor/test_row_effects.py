"""Mean and biases from noisy sums over rows."""

import numpy as np
from small_tensors import rms

from sktensor_dp.tensor.row_effects import fit_row_sums
from sktensor_dp.tensor.sorted_entries import SortedEntries


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


def test_exact_sums_give_the_biases(seed):
    entries, truth, weights, _ = additive(seed)
    assert min(counts.min() for counts in entries.counts) == 0
    sums = sums_of(entries, truth, weights)
    model = fit_row_sums(entries, sums, weights, 0.0, 1e-4, max_iter=100)
    fitted = model.predict(entries.coordinates)
    assert np.isfinite(fitted).all()
    # Shrinkage by 1e-4 / n in .36; the mean alone errs by at least .8.
    assert rms(fitted - truth) < 0.01
    assert all(b[-1] == 0 for b in model.biases)  # never seen
    assert model.rank == 0


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
    assert error < 0.9 * rms(3.0 + entries.at_entries(raw) - truth)


def test_nothing_but_noise_leaves_the_mean(seed):
    entries, _, weights, rng = additive(seed)
    sums = [50.0 * rng.standard_normal(n) for n in entries.shape]
    model = fit_row_sums(entries, sums, weights, 50.0**2, 1.0)
    # Unshrunk, a row's mean is noise of deviation 50 / 45, and 1.9 over the three modes.
    assert rms(entries.at_entries(model.biases)) < 0.7


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
    expected = (5 * left / V) / (25 / V + 1 / model.bias_scales[0])
    np.testing.assert_allclose(model.biases[0], expected, atol=1e-3)
    np.testing.assert_allclose(model.biases[1], 0.0)
