"""Noise variances of rows: sums with weights, what they gain, and where they must not matter."""

import numpy as np
import pytest

from sktensor_dp.tensor.cp_completion import RowNoise, complete_cp
from sktensor_dp.tensor.entry_passes import passes_over
from sktensor_dp.tensor.sorted_entries import SortedEntries

SHAPE, RANK = (300, 24), 3


def sensors(seed, deviations):
    """Signal of a table of unit variance, and noisy values at four fifths of its cells."""
    rng = np.random.default_rng([seed, 4])
    rows, columns = (rng.standard_normal((n, RANK)) for n in SHAPE)
    signal = rows @ columns.T / np.sqrt(RANK)
    where = np.argwhere(rng.random(SHAPE) < 0.8)
    noise = deviations[where[:, 1]] * rng.standard_normal(len(where))
    return signal, where, signal[tuple(where.T)] + noise


def error(model, signal, columns):
    cells = np.column_stack(np.unravel_index(np.arange(signal.size), signal.shape))
    found = model.predict(cells).reshape(signal.shape)
    return np.sqrt(np.mean((found - signal)[:, columns] ** 2))


def test_weights_and_totals():
    rng = np.random.default_rng(0)
    shape = (4, 5, 3)
    entries = SortedEntries(rng.integers(0, shape, (60, 3)), shape)
    noise = RowNoise(entries, 1, passes_over(entries))
    shared = noise.update(np.array([1.0, 2.0, 4.0, 80.0, 0.5]), 1.0, 0.0)
    precisions, at = noise.precisions[1], entries.coordinates
    # The variances' geometric mean over the entries is the shared one.
    assert np.log(precisions) @ entries.counts[1] == pytest.approx(0.0, abs=1e-12)
    counts = entries.counts[1]
    expected = (20 + np.array([1.0, 2.0, 4.0, 80.0, 0.5])) / (20 + counts)
    np.testing.assert_allclose(shared / precisions, expected)
    assert noise.mean_variance(shared) == pytest.approx(counts @ expected / 60)
    for mode in (0, 2):
        np.testing.assert_allclose(
            noise.totals[mode], entries.row_sums(precisions[at[:, 1]], mode), rtol=1e-12
        )
        values = rng.standard_normal(60)
        np.testing.assert_allclose(
            noise.weighted(entries.sort(values, mode), mode),
            entries.sort(values * precisions[at[:, 1]], mode),
        )
    np.testing.assert_allclose(noise.totals[1], counts)
    assert noise.weighted(values, 1) is values
    ones = noise.weighted_rows([np.ones((n, 2)) for n in shape])
    assert (ones[0] == 1).all()
    assert (ones[2] == 1).all()
    np.testing.assert_allclose(ones[1], np.column_stack([precisions] * 2))


def test_no_variance_below_the_known_noise():
    entries = SortedEntries(np.argwhere(np.ones((50, 2))), (50, 2))
    noise = RowNoise(entries, 1, passes_over(entries))
    shared = noise.update(np.array([0.0, 500.0]), 1.0, 0.7)
    assert (shared / noise.precisions[1])[0] == pytest.approx(0.7)


def test_quiet_columns_are_found_among_loud_ones(seed):
    """A third of the columns hold little noise; one variance for all drowns them."""
    deviations = np.where(np.arange(SHAPE[1]) % 3 == 0, 0.05, 1.5)
    signal, where, values = sensors(seed, deviations)
    entries = SortedEntries(where, SHAPE)
    own = complete_cp(entries, values, RANK, noise_mode=1, max_iter=100, random_state=0)
    one = complete_cp(entries, values, RANK, max_iter=100, random_state=0)
    quiet, loud = deviations < 1, deviations > 1
    # With known columns, rows from about six quiet entries of deviation .05 have errors
    # near .05 * sqrt(3 / 6); a missing third of draws is worse than that by a few times.
    # Zeros err by 1.
    assert error(own, signal, quiet) < 0.3
    assert error(own, signal, quiet) < 0.6 * error(one, signal, quiet)
    assert error(own, signal, loud) < error(one, signal, loud)
    share = np.mean(deviations[where[:, 1]] ** 2)
    # 4,000 squares of loud noise have a relative deviation of sqrt(2 / 4000) = .022; the
    # prior takes 20 of 260 entries' worth of a column's excess: 7 %.
    assert own.noise_variance == pytest.approx(share, rel=0.2)


def test_equal_noise_is_left_equal(seed):
    signal, where, values = sensors(seed, np.full(SHAPE[1], 0.5))
    entries = SortedEntries(where, SHAPE)
    own = complete_cp(entries, values, RANK, noise_mode=1, random_state=0)
    one = complete_cp(entries, values, RANK, random_state=0)
    everywhere = slice(None)
    # Variances from 240 entries each err by sqrt(2 / 240) = 9 %: a change of weights of
    # that size costs less than a hundredth of the error.
    assert error(own, signal, everywhere) < 1.03 * error(one, signal, everywhere)


def test_exact_values_stay_exact(seed):
    signal, where, values = sensors(seed, np.zeros(SHAPE[1]))
    entries = SortedEntries(where, SHAPE)
    model = complete_cp(entries, values, RANK, noise_mode=1, max_iter=200, random_state=0)
    assert error(model, signal, slice(None)) < 1e-4
