"""Sums of residuals about what units fit to their own entries, against a loop over units."""

import math

import numpy as np
import pytest
from slice_entries import BOUNDS, SHAPE, entries

from sktensor_dp.privacy.curators.entries import SliceCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.slices import ReleasedEffects, SharedRowSums, SliceChunks
from sktensor_dp.tensor.defaults import LEVEL_VARIANCE, POPULARITY_VARIANCE, SLOPE_VARIANCE
from sktensor_dp.tensor.shared_parameters import SharedEffects

LEVEL, SCALE, NOISE = 0.4, 0.8, 0.5


def released(rng):
    effects = tuple(
        SharedEffects(rng.standard_normal(n), rng.random(n), rng.standard_normal(n), 1.0)
        for n in SHAPE[1:]
    )
    return ReleasedEffects(effects, LEVEL, NOISE)


def units_of(X, y):
    """Entries of each unit that has some, equal coordinates merged by their mean."""
    for u in np.unique(X[:, 0]):
        merged = {}
        for x, v in zip(X[X[:, 0] == u], np.clip(y[X[:, 0] == u], *BOUNDS), strict=True):
            merged.setdefault(tuple(x), []).append(v)
        yield np.array(list(merged)), np.array([np.mean(v) for v in merged.values()])


def fitted_residuals(X, y, about):
    """Of one unit, by least squares with rows for the priors."""
    parts = [
        sum(getattr(of, name)[X[:, m]] for m, of in enumerate(about.effects, 1))
        for name in ("effects", "variances", "popularity")
    ]
    b, variances, popularity = parts
    left = y - np.mean(BOUNDS) - LEVEL - b
    design = np.column_stack([np.ones(len(b)), b, popularity])
    weights = 1 / np.sqrt(NOISE + variances)
    prior = np.sqrt([LEVEL_VARIANCE * NOISE, SLOPE_VARIANCE, POPULARITY_VARIANCE * NOISE])
    table = np.vstack([weights[:, None] * design, np.diag(1 / prior)])
    own = np.linalg.lstsq(table, np.append(weights * left, np.zeros(3)), rcond=None)[0]
    return left - design @ own


@pytest.mark.parametrize("mode", [1, 2])
def test_sums_about_what_units_fit(mode, seed):
    X, y = entries(seed)
    about = released(np.random.default_rng(seed))
    expected = np.zeros((2, SHAPE[mode]))
    for rows, values in units_of(X, y):
        part = np.zeros_like(expected)
        terms = np.clip(fitted_residuals(rows, values, about) / SCALE, -1, 1)
        np.add.at(part[0], rows[:, mode], terms)
        np.add.at(part[1], rows[:, mode], 1)
        expected += part / np.linalg.norm(part[1])
    chunk = SliceChunks(X, y, SHAPE, 0, BOUNDS)
    # Level, shrinkage and effects beside it are of the other kind of residual.
    query = SharedRowSums(mode, SHAPE, 9.0, SCALE, 1.0, about=about)
    # Regressions on three numbers of size one, by two ways.
    np.testing.assert_allclose(query.total(chunk), expected, atol=1e-9)
    plan = ReleasePlan.split(math.inf, 1e-6, {"shared_row_sums": 1.0})
    with SliceCurator(chunk, plan, spender="test", unit="unit", accountant=None) as curator:
        rows = curator.shared_row_sums(mode, 9.0, SCALE, 1.0, about=about)
    np.testing.assert_allclose([rows.sums, rows.counts], expected, atol=1e-9)
