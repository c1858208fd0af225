"""Slices with few cells: the same sums as entry by entry, and of each unit by itself."""

import numpy as np
import pytest

from sktensor_dp.queries import observed_entries
from sktensor_dp.queries.observed_entries import SliceChunks
from sktensor_dp.queries.slices import SharedFactorSums
from sktensor_dp.queries.sums import SplitSums
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects

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


@pytest.mark.parametrize("full_core", [False, True])
def test_cells_and_entries_have_the_same_sums(full_core, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X, y = entries(rng)
    for mode in range(2):
        asked = query(rng, mode, full_core)
        by_cells = asked.total(chunk_of(X, y))
        with monkeypatch.context() as patch:
            patch.setattr(observed_entries, "MOST_CELLS", 0)
            by_entries = asked.total(chunk_of(X, y))
        # Ridge regressions of condition 1e3 at most.
        np.testing.assert_allclose(by_cells, by_entries, atol=1e-9)


def test_what_a_unit_adds_does_not_depend_on_the_others(seed):
    rng = np.random.default_rng(seed)
    X, y = entries(rng)
    asked, chunk = query(rng, 0, False), chunk_of(X, y)
    _, means, covariances = asked._released.posteriors(chunk, asked.components)
    for unit in (0, 7, N_UNITS - 1):
        alone = chunk_of(X[X[:, 0] == unit], y[X[:, 0] == unit])
        _, *own = asked._released.posteriors(alone, asked.components)
        np.testing.assert_array_equal(own[0][unit], means[unit])
        np.testing.assert_array_equal(own[1][unit], covariances[unit])


@pytest.mark.parametrize("n", [50, 20_000])
def test_split_sums_are_nearly_exact(n, seed):
    """All terms in one row: beyond 2^14 of them, sums one after the other would err."""
    rng = np.random.default_rng(seed)
    rows, terms = np.zeros(n, dtype=np.intp), rng.uniform(-1, 1, (n, 2))
    sums = SplitSums(rows, 3, 2, 1.0)
    for first in range(0, n, 999):
        sums.add(rows[first : first + 999], terms[first : first + 999].copy())
    exact = [np.sum(column.astype(np.longdouble)) for column in terms.T]
    # One rounding of a sum below n, and a few of numbers 2^-38 as large.
    np.testing.assert_allclose(sums.value()[0], np.array(exact, float), rtol=0, atol=n * 2e-16)
    assert not sums.value()[1:].any()
