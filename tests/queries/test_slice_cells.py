"""Slices with few cells: the same sums as entry by entry, and of each unit by itself."""

from dataclasses import replace

import numpy as np
import pytest

from sktensor_dp.queries.slices import MOST_CELLS, ReleasedEffects, SharedFactorSums, SliceChunks
from sktensor_dp.queries.sums import sums_by_row
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects

N_UNITS, SHARED = 40, (6, 5)


def query(rng, mode, full_core):
    effects = tuple(
        SharedEffects(rng.normal(size=n), rng.uniform(0, 1, n), rng.normal(size=n), 1.0)
        for n in SHARED
    )
    components = SharedComponents(tuple(rng.normal(size=(n, 2)) for n in SHARED), full_core)
    return SharedFactorSums(mode, (N_UNITS, *SHARED), 0.1, effects, components, 0.5, 0.7)


def chunk_of(X, y):
    return SliceChunks(X, y, (N_UNITS, *SHARED), 0, (-2.0, 2.0))


def entries(rng):
    X = np.column_stack([rng.integers(0, n, 500) for n in (N_UNITS, *SHARED)])
    X[X[:, 0] == 3, 0] = 4  # a unit without entries
    return X, rng.uniform(-2, 2, 500)


def entry_by_entry(asked, mode, X, y):
    """The same sums over more cells than lie in tables: other rows of the last mode are empty."""
    shape = (N_UNITS, SHARED[0], MOST_CELLS // SHARED[0] + 1)

    def wider(array):
        return np.append(array, np.ones((shape[2] - SHARED[1], *array.shape[1:])), axis=0)

    first, last = asked.effects
    last = replace(last, **{
        name: wider(value) for name, value in vars(last).items() if np.ndim(value) == 1
    })  # fmt: skip
    factors = asked.components.factors[0], wider(asked.components.factors[1])
    components = replace(asked.components, factors=factors)
    asked = replace(asked, shape=shape, effects=(first, last), components=components)
    found = asked.total(SliceChunks(X, y, shape, 0, (-2.0, 2.0)))
    n_rows = SHARED[mode]
    return np.append(found[:n_rows], found[shape[1 + mode] :], axis=0)


@pytest.mark.parametrize("full_core", [False, True])
def test_cells_and_entries_have_the_same_sums(full_core, seed):
    rng = np.random.default_rng(seed)
    X, y = entries(rng)
    for mode in range(2):
        asked = query(rng, mode, full_core)
        by_cells = asked.total(chunk_of(X, y))
        by_entries = entry_by_entry(asked, mode, X, y)
        # Ridge regressions of condition 1e3 at most.
        np.testing.assert_allclose(by_cells, by_entries, atol=1e-9)


def test_what_a_unit_adds_does_not_depend_on_the_others(seed):
    rng = np.random.default_rng(seed)
    X, y = entries(rng)
    asked, chunk = query(rng, 0, False), chunk_of(X, y)
    released = ReleasedEffects(asked.effects, asked.level, asked.noise_variance)
    _, means, covariances = released.posteriors(chunk, asked.components)
    for unit in (0, 7, N_UNITS - 1):
        alone = chunk_of(X[X[:, 0] == unit], y[X[:, 0] == unit])
        _, *own = released.posteriors(alone, asked.components)
        np.testing.assert_array_equal(own[0][unit], means[unit])
        np.testing.assert_array_equal(own[1][unit], covariances[unit])


@pytest.mark.parametrize("n", [50, 20_000])
def test_split_sums_are_nearly_exact(n, seed):
    """All terms in one row: beyond 2^14 of them, sums one after the other would err."""
    rng = np.random.default_rng(seed)
    rows, terms = np.zeros(n, dtype=np.intp), rng.uniform(-1, 1, (n, 2))
    sums = sums_by_row(rows, terms, 3)
    exact = [np.sum(column.astype(np.longdouble)) for column in terms.T]
    # One rounding of a sum below n, and a few of numbers 2^-38 as large.
    np.testing.assert_allclose(sums[0], np.array(exact, float), rtol=0, atol=n * 2e-16)
    assert not sums[1:].any()
