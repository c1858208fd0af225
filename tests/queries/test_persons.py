"""Totals of queries on units of entries against loops over units, in any order and in any parts."""

import math

import numpy as np
import pytest
from person_entries import SHAPE, N, entries

from sktensor_dp.data.persons import PersonChunks, PersonReader
from sktensor_dp.queries.persons import ReleasedEffects, SharedFactorSums, SharedRowSums, UnitLevels
from sktensor_dp.tensor.defaults import LEVEL_VARIANCE, POPULARITY_VARIANCE, SLOPE_VARIANCE
from sktensor_dp.tensor.shared_parameters import SharedEffects

# Narrower than what there is, so that values are clamped.
BOUNDS, MIDDLE, HALF = (1.5, 3.5), 2.5, 1.0
LEVEL, SCALE, NOISE = 0.4, 0.8, 0.5


def chunk_of(X, y, **part):
    return PersonChunks(X, y, SHAPE, 0, BOUNDS, **part)


def units_of(X, y):
    """Places and values of each unit that has some, equal coordinates merged by their mean."""
    for u in np.unique(X[:, 0]):
        merged = {}
        for x, v in zip(X[X[:, 0] == u], np.clip(y[X[:, 0] == u], *BOUNDS) - MIDDLE, strict=True):
            merged.setdefault(tuple(x), []).append(v)
        yield np.array(list(merged)), np.array([np.mean(v) for v in merged.values()])


def released(rng):
    effects = tuple(
        SharedEffects(rng.standard_normal(n), rng.random(n), rng.standard_normal(n), 1.0)
        for n in SHAPE[1:]
    )
    return ReleasedEffects(effects, LEVEL, NOISE)


def fitted_residuals(X, values, about):
    """Residuals of one unit about its level, by least squares with rows for the priors."""
    b, variances, popularity = (
        sum(getattr(of, name)[X[:, m]] for m, of in enumerate(about.effects, 1))
        for name in ("effects", "variances", "popularity")
    )
    left = values - LEVEL - b
    design = np.column_stack([np.ones(len(b)), b, popularity])
    weights = 1 / np.sqrt(NOISE + variances)
    prior = np.sqrt([LEVEL_VARIANCE * NOISE, SLOPE_VARIANCE, POPULARITY_VARIANCE * NOISE])
    table = np.vstack([weights[:, None] * design, np.diag(1 / prior)])
    own = np.linalg.lstsq(table, np.append(weights * left, np.zeros(3)), rcond=None)[0]
    return left - own[0]


def test_unit_levels(seed):
    X, y = entries(seed)
    expected = sum(np.array([v.mean(), v.std(), HALF]) for _, v in units_of(X, y))
    np.testing.assert_allclose(UnitLevels(HALF).total(chunk_of(X, y)), expected, atol=1e-12)


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize(("order", "most"), [(1, 1.0), (1, 0.4), (2, 1.0), (2, 0.4)])
def test_shared_row_sums(mode, order, most, seed):
    """About what units fit to effects."""
    (X, y), about = entries(seed), released(np.random.default_rng(seed))
    expected = np.zeros((2, SHAPE[mode]))
    for places, values in units_of(X, y):
        left = fitted_residuals(places, values, about)
        part = np.zeros_like(expected)
        np.add.at(part[0], places[:, mode], np.clip(left / SCALE, -1, 1))
        np.add.at(part[1], places[:, mode], 1)
        longer = np.linalg.norm(part[0]) / (most * np.linalg.norm(part[1]))
        part[0] /= max(longer, 1)
        expected += part / np.linalg.norm(part[1], order)
    query = SharedRowSums(mode, SHAPE, about, SCALE, order, most)
    # Regressions on three numbers of size one, by two ways.
    np.testing.assert_allclose(query.total(chunk_of(X, y)), expected, atol=1e-9)


def test_parts_of_whole_units_add_up_and_nothing_adds_nothing(seed):
    """What units without entries would add to a sum, parts would leave out."""
    X, y = entries(seed)
    whole, reader = chunk_of(X, y), PersonReader(SHAPE, 0, BOUNDS)
    pieces = [reader.split(X[rows], y[rows], 4) for rows in np.array_split(np.arange(N), 4)]
    parts = [reader.gather([piece[place] for piece in pieces]) for place in range(4)]
    assert sum(part.n_units for part in parts) == len(np.unique(X[:, 0])) < SHAPE[0]
    assert sum(len(part.values) for part in parts) == len(whole.values) < N
    rng = np.random.default_rng(seed)
    about = released(rng)
    components = rng.standard_normal((math.prod(SHAPE[1:]), 2))
    for query in (
        UnitLevels(HALF), SharedRowSums(1, SHAPE, about, 1.0), SharedRowSums(2, SHAPE, about, 1.0),
        SharedFactorSums(SHAPE, about, components, 1.0),
    ):  # fmt: skip
        # Rounding of sums of 900 terms of size one.
        found = np.sum([query.total(part) for part in parts], axis=0)
        np.testing.assert_allclose(found, query.total(whole), rtol=0, atol=1e-11)
        assert not query.total(chunk_of(X[:0], y[:0])).any()
