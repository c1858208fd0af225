"""Components of units: sums against a loop, of each unit by itself, whatever numbers come."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.data.person_entries import PersonChunks
from sktensor_dp.queries.person_entries import (
    MOMENT_WEIGHT,
    ReleasedEffects,
    SharedFactorSums,
    clipped_moments,
)
from sktensor_dp.tensor.defaults import POPULARITY_VARIANCE, SLOPE_VARIANCE
from sktensor_dp.tensor.normal_equations import unpack_rows
from sktensor_dp.tensor.shared_parameters import SharedEffects
from sktensor_dp.tensor.unit_parameters import (
    FREE_LEVEL,
    CellEntries,
    CellUnits,
    EntryEffects,
    summable,
)

N_UNITS, SHARED, N_CELLS, RANK = 60, (3, 4), 12, 3
LIMITS = (-2.0, 2.0)


def query(rng, size=1.0, scale=0.7, noise=0.5, level=0.1, n_units=N_UNITS):
    effects = tuple(
        SharedEffects(
            scale * rng.normal(size=n), scale**2 * rng.uniform(0, 1, n), rng.normal(size=n), 1.0
        )
        for n in SHARED
    )
    components = size * rng.normal(size=(N_CELLS, RANK))
    about = ReleasedEffects(effects, level, noise * scale**2)
    return SharedFactorSums((n_units, *SHARED), about, components, scale)


def entries(rng, share, n_units=N_UNITS):
    """About that share of the cells, some twice; a unit without entries."""
    X = np.argwhere(rng.random((n_units, *SHARED)) < share)
    X = np.concatenate([X, X[: len(X) // 9]])
    X = X[X[:, 0] != 3]
    return X, rng.uniform(-2, 2, len(X))


def chunk_of(X, y, n_units=N_UNITS, limits=LIMITS):
    return PersonChunks(X, y, (n_units, *SHARED), 0, limits)


def check_units(asked, X, y, limit=2.0):
    """No warning, and each unit has sums in the unit ball and a moment in that of its weight."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in (X[:, 0] == u for u in range(0, N_UNITS, 7)):
            found = asked.total(chunk_of(X[one], y[one], limits=(-limit, limit)))
            assert np.isfinite(found).all()
            assert np.linalg.norm(found[:N_CELLS]) <= 1 + 1e-12
            assert np.linalg.norm(found[N_CELLS:]) <= MOMENT_WEIGHT * (1 + 1e-12)
        assert np.isfinite(asked.total(chunk_of(X, y, limits=(-limit, limit)))).all()


def unit_part(asked, X, y):
    """Contribution of one unit, by least squares with rows for the priors."""
    found = np.zeros((N_CELLS + RANK, RANK))
    cells, places = np.unique(np.ravel_multi_index(X[:, 1:].T, SHARED), return_inverse=True)
    values = np.bincount(places, y) / np.bincount(places)
    rows = np.unravel_index(cells, SHARED)
    b, var, f = (
        sum(getattr(of, part)[row] for of, row in zip(asked.about.effects, rows, strict=True))
        for part in ("means", "variances", "popularity")
    )
    noise, level = asked.about.noise_variance, asked.about.level
    prior = [FREE_LEVEL * noise, SLOPE_VARIANCE, POPULARITY_VARIANCE * noise, *np.ones(RANK)]
    design = np.column_stack([np.ones(len(b)), b, f, asked.components[cells]])
    precision = np.diag(1 / np.array(prior)) + design.T / (noise + var) @ design
    mean = np.linalg.solve(precision, design.T @ ((values - level - b) / (noise + var)))
    covariance = np.linalg.inv(precision)[3:, 3:]
    left = (values - level - b - design[:, :3] @ mean[:3]) / asked.scale
    left, weights = np.clip(left, -1, 1), mean[3:]
    found[cells] = np.outer(left / np.linalg.norm(left), weights / np.linalg.norm(weights))
    moment = (np.outer(weights, weights) + covariance) / RANK
    found[N_CELLS:] = MOMENT_WEIGHT * moment / max(np.linalg.norm(moment), 1)
    return found


@pytest.mark.parametrize("share", [0.1, 0.8])
@pytest.mark.parametrize(("n_units", "cache"), [(60, 2**19), (1600, 2**19), (200, 1)])
def test_totals_are_those_of_a_loop(share, n_units, cache, seed, cache_of):
    rng = np.random.default_rng(seed)
    asked, (X, y) = query(rng, n_units=n_units), entries(rng, share, n_units)
    expected = sum(unit_part(asked, X[X[:, 0] == u], y[X[:, 0] == u]) for u in np.unique(X[:, 0]))
    cache_of(cache)
    # Ridge regressions of condition 1e6 at most.
    np.testing.assert_allclose(asked.total(chunk_of(X, y, n_units)), expected, atol=1e-9)


@pytest.mark.parametrize("size", [1e-19, 1e-4, 1.0, 1e6, 1e19])
@pytest.mark.parametrize("scale", [1e-50, 1e-9, 1.0, 1e9, 1e50])
@pytest.mark.parametrize(("noise", "level", "limit"), [(0.5, 0.1, 2.0), (1e-20, 1e20, 1e20)])
def test_units_stay_within_their_balls_whatever_is_released(size, scale, noise, level, limit, seed):
    """Up to the limits of what is let in, in any unit of measurement."""
    rng = np.random.default_rng(seed)
    X, y = entries(rng, 0.5)
    level *= scale * rng.choice([-1.0, 1.0])
    asked = query(rng, size=size * scale, scale=scale, noise=noise, level=level)
    check_units(asked, X, limit * scale / 2 * y, limit * scale)


def test_directions_that_are_all_alike_leave_units_finite(seed):
    """Pivots of many such columns are rounding, and what is divided by them may overflow."""
    rng = np.random.default_rng(seed)
    alike = 1e18 * np.outer(rng.normal(size=N_CELLS), rng.normal(size=14))
    alike *= 1 + 1e-13 * rng.normal(size=alike.shape)
    asked = replace(query(rng, scale=1.0, noise=1.1e-20), components=alike)
    check_units(asked, *entries(rng, 0.5))


def test_units_of_tiny_weights_send_nothing_or_length_one(seed):
    """Of weights near 1e-160 the squares have few digits: a length is off by a tenth or more."""
    rng = np.random.default_rng(seed)
    X, y = entries(rng, 0.4)
    one = X[:, 0] == X[0, 0]
    for exponent in np.arange(-165, -90, 5) + rng.random(15):
        asked = query(rng, size=10.0**exponent)
        length = np.linalg.norm(asked.total(chunk_of(X[one], y[one]))[:N_CELLS])
        assert length == 0 or length == pytest.approx(1, abs=1e-12)
        assert (length > 0) or exponent < -95


def known_of(cells, X):
    """Means, roots and residuals of units with entries where X is not 0."""
    matrix = sp.csr_matrix(X)
    units = CellUnits(cells, level=0.1, noise_variance=0.5)
    block = CellEntries(matrix, units.offsets)
    means, roots = units.posteriors(block)
    residuals = block.residuals(means[:3], units.terms[:2], 2.0)
    of_units = np.split(residuals, matrix.indptr[1:-1])
    return np.concatenate([means, *roots]).T, of_units, block.lengths(residuals)


@pytest.mark.parametrize("n_units", [1, 2, 41])
def test_what_a_unit_has_does_not_depend_on_the_others(n_units, seed):
    rng = np.random.default_rng(seed)
    shared = [rng.normal(size=N_CELLS), rng.uniform(0, 1, N_CELLS), rng.normal(size=N_CELLS)]
    cells = EntryEffects(*shared, rng.normal(size=(N_CELLS, RANK)))
    X = rng.normal(size=(N_UNITS, N_CELLS)) * (rng.random((N_UNITS, N_CELLS)) < 0.5)
    chosen = rng.choice(N_UNITS, n_units, replace=False)
    for found, whole in zip(known_of(cells, X[chosen]), known_of(cells, X), strict=True):
        for one, unit in zip(found, chosen, strict=True):
            np.testing.assert_array_equal(one, whole[unit])


def test_sums_of_rounded_rows_are_exact(seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(1000, 7)) * 10.0 ** rng.uniform(-60, 60, (1, 7))
    table *= 10.0 ** rng.uniform(-9, 0, table.shape)
    rounded, pattern = summable(table), rng.random((30, 1000)) < 0.5
    # A bit for each doubling of the number of rows is lost, of the largest number.
    largest = np.abs(table).max(axis=0)
    assert (np.abs(rounded - table) <= 1000 * 2.0**-51 * largest).all()
    matrix = sp.csr_matrix(pattern.astype(float))
    sparse = sp.csr_matrix(pattern[:, ::-1].astype(float)) @ rounded[::-1]
    found = CellEntries(matrix, np.zeros(1000)).pattern_sums(rounded)
    np.testing.assert_array_equal(found, sparse.T)


def test_moments_have_no_obtuse_angles(seed):
    """Of roots and weights of any size: no length is above 1, and no product below 0."""
    rng = np.random.default_rng(seed)
    sizes, n = 10.0 ** rng.uniform(-9, 9, 150), 150
    roots = [rng.uniform(-1, 1, (RANK - k, n)) * 10.0 ** rng.uniform(-9, 0, n) for k in range(RANK)]
    # Nearly of rank one, so that rounding shows.
    weights = rng.normal(size=(RANK, n)) * sizes
    packed, shares = clipped_moments(roots, weights)
    moments = unpack_rows((packed * shares).T / MOMENT_WEIGHT, RANK).reshape(n, -1)
    # Of matrices of length 1 at most in double precision.
    assert (moments @ moments.T).min() > -1e-15
    assert np.linalg.norm(moments, axis=1).max() <= 1 + 1e-12
    assert np.linalg.eigvalsh(moments.reshape(n, RANK, RANK)).min() > -1e-15
