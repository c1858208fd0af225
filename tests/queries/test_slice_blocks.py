"""Sums over units of a matrix: as entry by entry, of each unit by itself, whatever numbers."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.queries.slices import (
    MOMENT_WEIGHT,
    MOST_CELLS,
    SharedFactorSums,
    SliceChunks,
    UnitSums,
    by_unit,
)
from sktensor_dp.tensor.normal_equations import products_of_roots, unpack_rows
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.unit_parameters import (
    CellEntries,
    CellUnits,
    EntryEffects,
    cell_posteriors,
    summable,
)

N_UNITS, N_CELLS, RANK = 60, 11, 3


def query(
    rng, full_core=False, size=1.0, scale=0.7, noise=0.5, level=0.1, whole=False, n_units=N_UNITS
):
    effects = SharedEffects(
        scale * rng.normal(size=N_CELLS), scale**2 * rng.uniform(0, 1, N_CELLS),
        rng.normal(size=N_CELLS), 1.0,
    )  # fmt: skip
    components = SharedComponents((size * rng.normal(size=(N_CELLS, RANK)),), full_core)
    return SharedFactorSums(
        0, (n_units, N_CELLS), level, (effects,), components, noise * scale**2, scale, whole
    )


def entries(rng, share, n_units=N_UNITS):
    """About that share of the cells, some twice; a unit without entries."""
    X = np.argwhere(rng.random((n_units, N_CELLS)) < share)
    X = np.concatenate([X, X[: len(X) // 9]])
    X = X[X[:, 0] != 3]
    return X, rng.uniform(-2, 2, len(X))


def chunk_of(X, y, n_units=N_UNITS, n_cells=N_CELLS):
    return SliceChunks(X, y, (n_units, n_cells), 0, (-2.0, 2.0))


def entry_by_entry(asked, X, y):
    """The same sums over more cells than lie in tables, most of which have no entries."""
    n_units, n_cells = asked.shape[0], MOST_CELLS + 1

    def wider(array):
        return np.append(array, np.ones((n_cells - N_CELLS, *array.shape[1:])), axis=0)

    (effects,), (factor,) = asked.effects, asked.components.factors
    effects = replace(effects, **{
        name: wider(value) for name, value in vars(effects).items() if np.shape(value) == (N_CELLS,)
    })  # fmt: skip
    components = replace(asked.components, factors=(wider(factor),))
    asked = replace(asked, shape=(n_units, n_cells), effects=(effects,), components=components)
    found = asked.total(chunk_of(X, y, n_units, n_cells))
    return np.append(found[:N_CELLS], found[n_cells:], axis=0)


def alone(asked, X, y):
    """Sums of one unit, the only one there is."""
    asked = replace(asked, shape=(1, N_CELLS))
    return asked.total(chunk_of(X * [0, 1], y, 1))


@pytest.mark.parametrize("full_core", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.8])
@pytest.mark.parametrize(("n_units", "cache"), [(60, 2**19), (1600, 2**19), (200, 1)])
def test_blocks_and_entries_have_the_same_sums(full_core, share, n_units, cache, seed, cache_of):
    rng = np.random.default_rng(seed)
    asked, (X, y) = query(rng, full_core, n_units=n_units), entries(rng, share, n_units)
    expected = entry_by_entry(asked, X, y)
    cache_of(cache)
    # Ridge regressions of condition 1e3 at most.
    np.testing.assert_allclose(asked.total(chunk_of(X, y, n_units)), expected, atol=1e-9)


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
    if seed % 2:
        by = rng.choice([-1.0, 0.0, 1e-300, 1.0], (RANK, RANK))
        asked = replace(asked, turned=by)
    X, y = entries(rng, 0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for u in range(0, N_UNITS, 7):
            found = asked.total(chunk_of(X[X[:, 0] == u], y[X[:, 0] == u]))
            assert np.isfinite(found).all()
            assert np.linalg.norm(found[:N_CELLS]) <= 1 + 1e-12


def test_whole_units_of_tiny_weights_send_nothing_or_length_one(seed):
    """Of weights near 1e-160 the squares have few digits: a length is off by a tenth or more."""
    rng = np.random.default_rng(seed)
    X, y = entries(rng, 0.4)
    one = X[:, 0] == X[0, 0]
    for exponent in np.arange(-165, -90, 5) + rng.random(15):
        tiny = 10.0**exponent * rng.uniform(0.1, 1, (RANK, RANK))
        asked = replace(query(rng, whole=True), turned=tiny)
        length = np.linalg.norm(asked.total(chunk_of(X[one], y[one]))[:N_CELLS])
        assert length == 0 or length == pytest.approx(1, abs=1e-12)
        assert (length > 0) or exponent < -95


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_what_is_turned_keeps_its_length_and_is_of_each_unit_alone(share, seed):
    """Against the products of each unit, in blocks of any size: the same bits."""
    rng = np.random.default_rng(seed)
    by = rng.uniform(-1, 1, (RANK, RANK))
    plain, (X, y) = query(rng, whole=True), entries(rng, share)
    asked = replace(plain, turned=by)
    for u in range(0, N_UNITS, 7):
        own = X[:, 0] == u
        found, usual = (q.total(chunk_of(X[own], y[own])) for q in (asked, plain))
        expected = usual[:N_CELLS] @ by.T
        # Sums have rank one: their length is that of the weights.
        expected /= max(np.linalg.norm(expected), 1e-300)
        np.testing.assert_allclose(found[:N_CELLS], expected, atol=1e-9)
        np.testing.assert_array_equal(found[N_CELLS:], usual[N_CELLS:])
        # Alone, and beside units without entries.
        np.testing.assert_array_equal(alone(asked, X[own], y[own]), found)


@pytest.mark.parametrize(
    ("turned", "whole", "message"),
    [
        (np.eye(RANK), False, "turned needs whole units"),
        (np.eye(RANK + 1), True, "shape \\(r, r\\) for r components"),
        (np.full((RANK, RANK), np.nan), True, "turned must hold numbers"),
        (2 * np.eye(RANK), True, "turned must hold numbers"),
    ],
)
def test_what_units_are_turned_by_is_checked(turned, whole, message):
    with pytest.raises(ValueError, match=message):
        replace(query(np.random.default_rng(0), whole=whole), turned=turned)


@pytest.mark.parametrize("shape", [(9, 4, 3), (9, MOST_CELLS + 1)])
def test_whole_units_are_rows_of_a_matrix_with_few_columns(shape):
    none = [SharedEffects(np.zeros(n), np.zeros(n), np.zeros(n), 1.0) for n in shape[1:]]
    components = SharedComponents(tuple(np.ones((n, 1)) for n in shape[1:]), full_core=False)
    with pytest.raises(ValueError, match="whole needs a matrix"):
        SharedFactorSums(0, shape, 0.0, tuple(none), components, 1.0, 1.0, whole=True)


@pytest.mark.parametrize("whole", [False, True, "turned"])
def test_units_in_a_table_add_what_they_add_entry_by_entry(whole, seed):
    """To the last bit, one by one; where most cells are taken they lie in a table."""
    rng = np.random.default_rng(seed)
    asked, (X, y) = query(rng, whole=bool(whole)), entries(rng, 0.5)
    if whole == "turned":
        asked = replace(asked, turned=rng.uniform(-1, 1, (RANK, RANK)))
    for u in range(0, N_UNITS, 5):
        own = X[:, 0] == u
        if own.sum() < N_CELLS / 3:
            continue
        # Beside units without entries, few cells of all are taken.
        assert chunk_of(X[own], y[own]).cell_table is None
        assert chunk_of(X[own] * [0, 1], y[own], 1).cell_table is not None
        found = asked.total(chunk_of(X[own], y[own]))
        np.testing.assert_array_equal(alone(asked, X[own], y[own]), found)


def known_of(cells, X, in_table):
    """Means, roots and residuals of units with entries where X is not 0."""
    matrix = sp.csr_matrix(X)
    units = CellUnits(cells, level=0.1, noise_variance=0.5)
    table = (np.ascontiguousarray(X.T), np.ascontiguousarray(X.T != 0)) if in_table else None
    block = CellEntries(matrix, units.offsets, table)
    means, roots = units.posteriors(block)
    residuals = block.residuals(means[:3], units.terms[:2], 2.0)
    lengths = block.lengths(residuals)
    residuals = residuals.T[X != 0] if in_table else residuals
    return means, np.concatenate(roots), np.split(residuals, matrix.indptr[1:-1]), lengths


@pytest.mark.parametrize("n_units", [1, 2, 41])
def test_what_a_unit_has_does_not_depend_on_the_others(n_units, seed):
    rng = np.random.default_rng(seed)
    shared = [rng.normal(size=N_CELLS), rng.uniform(0, 1, N_CELLS), rng.normal(size=N_CELLS)]
    cells = EntryEffects(*shared, rng.normal(size=(N_CELLS, RANK)))
    X = rng.normal(size=(N_UNITS, N_CELLS)) * (rng.random((N_UNITS, N_CELLS)) < 0.5)
    means, roots, residuals, lengths = known_of(cells, X, False)
    chosen = rng.choice(N_UNITS, n_units, replace=False)
    for in_table in (False, True):
        found = known_of(cells, X[chosen], in_table)
        np.testing.assert_array_equal(found[0], means[:, chosen])
        np.testing.assert_array_equal(found[1], roots[:, chosen])
        wanted = [residuals[unit] for unit in chosen]
        np.testing.assert_array_equal(np.concatenate(found[2]), np.concatenate(wanted))
        np.testing.assert_array_equal(found[3], lengths[chosen])


def test_roots_are_those_of_the_covariances(seed):
    rng = np.random.default_rng(seed)
    shared = [rng.normal(size=N_CELLS), rng.uniform(0, 1, N_CELLS), rng.normal(size=N_CELLS)]
    cells = EntryEffects(*shared, rng.normal(size=(N_CELLS, RANK)))
    X = rng.normal(size=(N_UNITS, N_CELLS)) * (rng.random((N_UNITS, N_CELLS)) < 0.5)
    means, roots, _, _ = known_of(cells, X, in_table=False)
    expected = cell_posteriors(sp.csr_matrix(X), cells, level=0.1, noise_variance=0.5)
    np.testing.assert_allclose(means.T, expected[0], atol=1e-9)
    packed = products_of_roots(np.split(roots, [3, 5]), np.zeros((RANK, N_UNITS)))
    np.testing.assert_allclose(unpack_rows(packed.T, RANK), expected[1][:, 3:, 3:], atol=1e-9)


def test_sums_of_rounded_rows_are_exact(seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(1000, 7)) * 10.0 ** rng.uniform(-60, 60, (1, 7))
    table *= 10.0 ** rng.uniform(-9, 0, table.shape)
    rounded, pattern = summable(table), rng.random((30, 1000)) < 0.5
    # A bit for each doubling of the number of rows is lost, of the largest number.
    largest = np.abs(table).max(axis=0)
    assert (np.abs(rounded - table) <= 1000 * 2.0**-51 * largest).all()
    matrix, columns = sp.csr_matrix(pattern.astype(float)), (1.0 * pattern.T, pattern.T)
    sparse = sp.csr_matrix(pattern[:, ::-1].astype(float)) @ rounded[::-1]
    for places in (None, columns):
        block = CellEntries(matrix, np.zeros(1000), places)
        np.testing.assert_array_equal(block.pattern_sums(rounded), sparse.T)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("size", [1e-19, 1e-6, 1e6, 1e20])
@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_no_finite_numbers_warn_or_overflow(size, scale, whole, seed):
    """At the limits of what is let in, in any unit of measurement."""
    rng = np.random.default_rng(seed)
    X, y = entries(rng, 0.5)
    hostile = query(
        rng, size=0.1 * size * scale, scale=scale, noise=1e-20,
        level=float(rng.choice([-1e20, 1e20])) * scale, whole=whole,
    )  # fmt: skip
    limit = 1e20 * scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = hostile.total(SliceChunks(X, limit * y, (N_UNITS, N_CELLS), 0, (-limit, limit)))
    assert np.isfinite(found).all()
    # Each unit has sums in the unit ball and a moment in a ball of its weight.
    assert np.linalg.norm(found[:N_CELLS]) <= N_UNITS * (1 + 1e-9)
    assert np.linalg.norm(found[N_CELLS:]) <= N_UNITS * (1 + 1e-9) * MOMENT_WEIGHT


@pytest.mark.parametrize("how", ["plain", "whole"])
def test_directions_that_are_all_alike_leave_units_finite(how, seed):
    """Pivots of many such columns are rounding, and what is divided by them may overflow."""
    rng = np.random.default_rng(seed)
    alike = 1e18 * np.outer(rng.normal(size=N_CELLS), rng.normal(size=14))
    alike *= 1 + 1e-13 * rng.normal(size=alike.shape)
    asked = replace(
        query(rng, scale=1.0, noise=1.1e-20), whole=how != "plain",
        components=SharedComponents((alike,), full_core=False),
    )  # fmt: skip
    X, y = entries(rng, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for u in range(0, N_UNITS, 12):
            found = asked.total(chunk_of(X[X[:, 0] == u], y[X[:, 0] == u]))
            assert np.isfinite(found).all()
            assert np.linalg.norm(found[:N_CELLS]) <= 1 + 1e-12
            assert np.linalg.norm(found[N_CELLS:]) <= MOMENT_WEIGHT * (1 + 1e-12)


def test_no_entries_at_all_are_a_data_set():
    nothing = np.zeros((0, 2), dtype=np.intp)
    assert not query(np.random.default_rng(0)).total(chunk_of(nothing, np.zeros(0))).any()


def test_moments_have_no_obtuse_angles(seed):
    """Of roots and weights of any size: no length is above 1, and no product below 0."""
    rng = np.random.default_rng(seed)
    sizes, n = 10.0 ** rng.uniform(-9, 9, 150), 150
    roots = [rng.uniform(-1, 1, (RANK - k, n)) * 10.0 ** rng.uniform(-9, 0, n) for k in range(RANK)]
    # Nearly of rank one, so that rounding shows.
    weights = rng.normal(size=(RANK, n)) * sizes
    units = CellUnits(cells_of_nothing(), level=0.0, noise_variance=1.0)
    sums = UnitSums(units, 1.0, 1.0, 1.0)
    packed, shares = sums.moments(roots, weights)
    moments = unpack_rows((packed * shares).T, RANK).reshape(n, -1)
    # Of matrices of length 1 at most in double precision.
    assert (moments @ moments.T).min() > -1e-15
    assert np.linalg.norm(moments, axis=1).max() <= 1 + 1e-12
    assert np.linalg.eigvalsh(moments.reshape(n, RANK, RANK)).min() > -1e-15


def cells_of_nothing():
    zeros = np.zeros(N_CELLS)
    return EntryEffects(zeros, zeros, zeros, np.zeros((N_CELLS, RANK)))


@pytest.mark.parametrize("shape", [(7, 4), (3, 2, 5), (70_000, 9), (2**20, 2**9), (2**30, 2**30)])
def test_entries_are_sorted_by_unit_place_and_value(shape, seed):
    rng = np.random.default_rng(seed)
    n, unit_mode = int(rng.integers(0, 90)), int(rng.integers(len(shape)))
    # Few places, some of them far apart.
    rows = [rng.integers(0, length, 5) for length in shape]
    X = np.column_stack([few[rng.integers(0, 5, n)] for few in rows])
    values = rng.choice([0.1, 0.2, 0.3], n) * rng.choice([1.0, 1.7], n)
    others = [X[:, mode] for mode in range(len(shape)) if mode != unit_mode]
    expected = np.lexsort([values, *others, X[:, unit_mode]])
    found = by_unit(X, values, shape, unit_mode)
    # Equal entries are alike.
    np.testing.assert_array_equal(X[found], X[expected])
    np.testing.assert_array_equal(values[found], values[expected])
