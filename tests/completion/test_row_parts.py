"""Concurrences of rows without noise, where units keep to parts of rows."""

import numpy as np
import pytest

from sktensor_dp.completion.row_parts import concurrences_by_parts


def concurrences_beyond_chance(near, weights):
    """Sums of rows that are compared where `near`, less those by chance."""
    sums = near * np.multiply.outer(weights, weights)
    np.fill_diagonal(sums, 0.0)
    for _ in range(200):  # all weights as given
        roots = np.sqrt(weights / sums.sum(axis=1))
        sums *= np.multiply.outer(roots, roots)
    shares = weights / weights.sum()
    beyond = (1 - shares)[:, None] * sums - np.multiply.outer(weights, shares)
    np.fill_diagonal(beyond, 0.0)
    return (beyond + beyond.T) / 2


def noisy(beyond, sigma, rng):
    noise = sigma * rng.standard_normal(beyond.shape)
    np.fill_diagonal(noise, 0.0)
    return beyond + (noise + noise.T) / 2


@pytest.mark.parametrize("shares", [[1, 1, 1, 1], [4, 3, 2, 1]])
def test_noise_within_parts_is_taken_off(shares, seed):
    parts, rng = np.repeat(np.arange(4), 8), np.random.default_rng(seed)
    weights = 150.0 * np.array(shares)[parts]
    beyond = concurrences_beyond_chance(np.equal.outer(parts, parts), weights)
    seen = noisy(beyond, 10.0, rng)
    found, left = concurrences_by_parts(seen, weights, 10.0)
    assert np.linalg.norm(found - beyond) < np.linalg.norm(seen - beyond) / 4
    assert left < 0.5
    # Hardly any row has more of a part than others of its own part have.
    sums = found @ np.eye(4)[parts]
    apart = sums - np.stack([sums[parts == part].mean(axis=0) for part in range(4)])[parts]
    raw = seen @ np.eye(4)[parts]
    of_noise = raw - np.stack([raw[parts == part].mean(axis=0) for part in range(4)])[parts]
    assert np.linalg.norm(apart) < np.linalg.norm(of_noise) / 2


def test_chains_have_no_parts(seed):
    n, rng = 24, np.random.default_rng(seed)
    weights, rows = np.full(n, 400.0), np.arange(n)
    beyond = concurrences_beyond_chance(np.abs(np.subtract.outer(rows, rows)) <= 2, weights)
    _, left = concurrences_by_parts(noisy(beyond, 10.0, rng), weights, 10.0)
    assert left > 0.95


def test_rows_by_chance_have_one_part(seed):
    n, rng = 24, np.random.default_rng(seed)
    weights = rng.uniform(100, 400, n)
    beyond = concurrences_beyond_chance(np.ones((n, n)), weights)
    seen = noisy(beyond, 10.0, rng)
    found, left = concurrences_by_parts(seen, weights, 10.0)
    assert np.linalg.norm(found - beyond) < np.linalg.norm(seen - beyond) / 2
    assert left == 1
