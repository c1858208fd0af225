"""Sums over units of a matrix: as entry by entry, of each unit by itself, whatever numbers."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.statistics import observed_entries, slice_blocks
from sktensor_dp.statistics.observed_entries import SliceChunks
from sktensor_dp.statistics.slice_queries import MOMENT_WEIGHT, SharedFactorSums
from sktensor_dp.tensor import cell_units
from sktensor_dp.tensor.cell_units import CellUnits, exact_pattern_product, summable
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects
from sktensor_dp.tensor.unit_parameters import EntryEffects

N_UNITS, N_CELLS, RANK = 60, 11, 3


def query(rng, full_core=False, size=1.0, scale=0.7, noise=0.5, level=0.1, whole=False):
    effects = SharedEffects(
        scale * rng.normal(size=N_CELLS), scale**2 * rng.uniform(0, 1, N_CELLS),
        rng.normal(size=N_CELLS), 1.0,
    )  # fmt: skip
    components = SharedComponents((size * rng.normal(size=(N_CELLS, RANK)),), full_core)
    return SharedFactorSums(
        0, (N_UNITS, N_CELLS), level, (effects,), components, noise * scale**2, scale, whole
    )


def entries(rng, share):
    """About that share of the cells, some twice; a unit without entries."""
    X = np.argwhere(rng.random((N_UNITS, N_CELLS)) < share)
    X = np.concatenate([X, X[: len(X) // 9]])
    X = X[X[:, 0] != 3]
    return X, rng.uniform(-2, 2, len(X))


def chunk_of(X, y):
    return SliceChunks(X, y, (N_UNITS, N_CELLS), 0, (-2.0, 2.0))


@pytest.mark.parametrize("full_core", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.8])
@pytest.mark.parametrize("at_once", [7, 750])
def test_blocks_and_entries_have_the_same_sums(full_core, share, at_once, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    asked, (X, y) = query(rng, full_core), entries(rng, share)
    monkeypatch.setattr(slice_blocks, "UNITS_AT_ONCE", at_once)
    found = asked.total(chunk_of(X, y))
    monkeypatch.setattr(observed_entries, "MOST_CELLS", 0)
    # Ridge regressions of condition 1e3 at most.
    np.testing.assert_allclose(found, asked.total(chunk_of(X, y)), atol=1e-9)


def test_a_whole_unit_sends_residuals_and_weights_of_length_one(seed):
    """In the same directions as a unit whose clip nothing reaches."""
    rng = np.random.default_rng(seed)
    # Residuals are below 10 scales of .7 each, and weights shorter than one.
    wide, (X, y) = replace(query(rng, size=0.01), scale=7.0), entries(rng, 0.4)
    for u in range(N_UNITS):
        of_unit = chunk_of(X[X[:, 0] == u], y[X[:, 0] == u])
        clipped, found = (q.total(of_unit) for q in (wide, replace(wide, whole=True)))
        length = np.linalg.norm(clipped[:N_CELLS])
        assert (length > 0) == (u in X[:, 0])
        # One in any case, but for the last bits.
        np.testing.assert_allclose(
            found[:N_CELLS], clipped[:N_CELLS] / max(length, 1e-300), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_array_equal(found[N_CELLS:], clipped[N_CELLS:])


@pytest.mark.parametrize("size", [1e-18, 1e-4, 1.0, 1e18])
def test_whole_units_stay_within_one_whatever_is_released(size, seed):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-9, 9)
    asked = query(rng, size=size * scale, scale=scale, whole=True)
    X, y = entries(rng, 0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for u in range(0, N_UNITS, 7):
            found = asked.total(chunk_of(X[X[:, 0] == u], y[X[:, 0] == u]))
            assert np.isfinite(found).all()
            assert np.linalg.norm(found[:N_CELLS]) <= 1 + 1e-12


@pytest.mark.parametrize("shape", [(9, 4, 3), (9, observed_entries.MOST_CELLS + 1)])
def test_whole_units_are_rows_of_a_matrix_with_few_columns(shape):
    none = [SharedEffects(np.zeros(n), np.zeros(n), np.zeros(n), 1.0) for n in shape[1:]]
    components = SharedComponents(tuple(np.ones((n, 1)) for n in shape[1:]), full_core=False)
    with pytest.raises(ValueError, match="whole needs a matrix"):
        SharedFactorSums(0, shape, 0.0, tuple(none), components, 1.0, 1.0, whole=True)


def posteriors(cells, matrix):
    units = CellUnits(cells, level=0.1, noise_variance=0.5)
    left = matrix.copy()
    left.data -= units.offsets[left.indices]
    means, covariances = units.posteriors(left)
    return means, covariances, units.plain_terms(means, left.indices, np.diff(left.indptr))


@pytest.mark.parametrize("n_units", [1, 2, 41])
def test_what_a_unit_has_does_not_depend_on_the_others(n_units, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    shared = [rng.normal(size=N_CELLS), rng.uniform(0, 1, N_CELLS), rng.normal(size=N_CELLS)]
    cells = EntryEffects(*shared, rng.normal(size=(N_CELLS, RANK)))
    X = rng.normal(size=(N_UNITS, N_CELLS)) * (rng.random((N_UNITS, N_CELLS)) < 0.5)
    means, covariances, _ = posteriors(cells, sp.csr_matrix(X))
    chosen = rng.choice(N_UNITS, n_units, replace=False)
    for share in (0.0, 1.1):  # a product by BLAS, or one of sparse matrices
        monkeypatch.setattr(cell_units, "_DENSE_SHARE", share)
        found = posteriors(cells, sp.csr_matrix(X[chosen]))
        np.testing.assert_array_equal(found[0], means[:, chosen])
        np.testing.assert_array_equal(found[1], covariances[:, :, chosen])
        of_each = [posteriors(cells, sp.csr_matrix(X[[unit]]))[2] for unit in chosen]
        np.testing.assert_array_equal(found[2], np.concatenate(of_each))


def test_sums_of_rounded_rows_are_exact(seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(1000, 7)) * 10.0 ** rng.uniform(-60, 60, (1, 7))
    table *= 10.0 ** rng.uniform(-9, 0, table.shape)
    rounded, pattern = summable(table), rng.random((30, 1000)) < 0.5
    # A bit for each doubling of the number of rows is lost, of the largest number.
    largest = np.abs(table).max(axis=0)
    assert (np.abs(rounded - table) <= 1000 * 2.0**-51 * largest).all()
    found = exact_pattern_product(sp.csr_matrix(pattern.astype(float)), rounded)
    sparse = sp.csr_matrix(pattern[:, ::-1].astype(float)) @ rounded[::-1]
    np.testing.assert_array_equal(found, sparse)


@pytest.mark.parametrize("size", [1e-19, 1e-6, 1e6, 1e20])
@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_no_finite_numbers_warn_or_overflow(size, scale, seed):
    """At the limits of what is let in, in any unit of measurement."""
    rng = np.random.default_rng(seed)
    X, y = entries(rng, 0.5)
    hostile = query(
        rng, size=0.1 * size * scale, scale=scale, noise=1e-20,
        level=float(rng.choice([-1e20, 1e20])) * scale,
    )  # fmt: skip
    limit = 1e20 * scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = hostile.total(SliceChunks(X, limit * y, (N_UNITS, N_CELLS), 0, (-limit, limit)))
    assert np.isfinite(found).all()
    # Each unit has sums in the unit ball and a moment in a ball of its weight.
    assert np.linalg.norm(found[:N_CELLS]) <= N_UNITS * (1 + 1e-9)
    assert np.linalg.norm(found[N_CELLS:]) <= N_UNITS * (1 + 1e-9) * MOMENT_WEIGHT


def test_no_entries_at_all_are_a_data_set():
    nothing = np.zeros((0, 2), dtype=np.intp)
    assert not query(np.random.default_rng(0)).total(chunk_of(nothing, np.zeros(0))).any()


def test_moments_have_no_obtuse_angles(seed):
    """Indefinite matrices, as rounding may leave them."""
    rng = np.random.default_rng(seed)
    given = rng.normal(size=(3, 3, 150)) * 10.0 ** rng.uniform(-9, 9, 150)
    moments = [slice_blocks.sum_of_moments(given[:, :, [n]], 1.0).ravel() for n in range(150)]
    products = np.array(moments) @ np.array(moments).T
    # Of matrices of length 1 at most in double precision.
    assert products.min() > -1e-12
    assert np.linalg.norm(moments, axis=1).max() <= 1 + 1e-12
    together = slice_blocks.sum_of_moments(given, 1.0)
    np.testing.assert_allclose(together.ravel(), np.sum(moments, axis=0), atol=1e-11)


@pytest.mark.parametrize("shape", [(7, 4), (3, 2, 5)])
def test_entries_are_sorted_by_unit_place_and_value(shape, seed):
    rng = np.random.default_rng(seed)
    n, unit_mode = int(rng.integers(0, 90)), int(rng.integers(len(shape)))
    X = np.column_stack([rng.integers(0, length, n) for length in shape])
    values = rng.choice([0.1, 0.2, 0.3], n) * rng.choice([1.0, 1.7], n)
    others = [X[:, mode] for mode in range(len(shape)) if mode != unit_mode]
    expected = np.lexsort([values, *others, X[:, unit_mode]])
    found = observed_entries._by_unit(X, values, shape, unit_mode)
    # Equal entries are alike.
    np.testing.assert_array_equal(X[found], X[expected])
    np.testing.assert_array_equal(values[found], values[expected])
