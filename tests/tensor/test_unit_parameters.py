"""Parameters of units from their own entries, and components with shared factors."""

import numpy as np
import pytest

from sktensor_dp.tensor.defaults import POPULARITY_VARIANCE, SLOPE_VARIANCE
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.unit_parameters import (
    EntryEffects,
    effects_at_entries,
    fold_in_units,
    predict_units,
)


def test_effects_add_up_over_modes():
    one = SharedEffects(np.array([1.0, 2.0]), np.array([0.1, 0.2]), np.array([3.0, 4.0]), 1.0)
    two = SharedEffects(np.array([10.0, 20.0]), np.array([1.0, 2.0]), np.array([5.0, 6.0]), 1.0)
    at = effects_at_entries([one, two], np.array([[0, 1], [1, 1], [1, 0]]))
    np.testing.assert_allclose(at.effects, [21.0, 22.0, 12.0])
    np.testing.assert_allclose(at.variances, [2.1, 2.2, 1.2])
    np.testing.assert_allclose(at.popularity, [9.0, 10.0, 9.0])


def test_fold_in_is_ridge_regression_of_each_unit(seed):
    rng = np.random.default_rng(seed)
    n, level, noise = 200, 3.0, 0.8
    units = rng.integers(0, 6, n)  # of eight; the last two have no entry
    shared = EntryEffects(rng.standard_normal(n), rng.uniform(0, 1, n), rng.standard_normal(n))
    values = level + rng.standard_normal(n)
    known = {"n_units": 8, "level": level, "noise_variance": noise, "level_variance": 0.7}
    found = fold_in_units(units, values, shared, **known)
    priors = np.array([0.7, SLOPE_VARIANCE, POPULARITY_VARIANCE * noise])
    for unit in range(6):
        own = units == unit
        Z = np.column_stack([np.ones(own.sum()), shared.effects[own], shared.popularity[own]])
        w = 1 / (noise + shared.variances[own])
        expected = np.linalg.solve(
            (Z.T * w) @ Z + np.diag(1 / priors),
            (Z.T * w) @ (values[own] - level - shared.effects[own]),
        )
        np.testing.assert_allclose(found[unit], expected, atol=1e-10)
    np.testing.assert_array_equal(found[6:], 0.0)
    predicted = predict_units(found, units, shared, level=level)
    a, t, p = found[units].T
    np.testing.assert_allclose(
        predicted, level + shared.effects + a + t * shared.effects + p * shared.popularity
    )
    # A unit's parameters depend on its own entries alone.
    changed = np.where(units == 0, values + 5.0, values)
    again = fold_in_units(units, changed, shared, **known)
    np.testing.assert_array_equal(again[1:], found[1:])
    assert np.abs(again[0] - found[0]).max() > 0.5


def test_fold_in_needs_noise():
    shared = EntryEffects(np.zeros(1), np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="noise_variance"):
        fold_in_units(
            np.zeros(1, int), [1.0], shared,
            n_units=1, level=0.0, noise_variance=0.0, level_variance=1.0,
        )  # fmt: skip


def brute_force(components, coordinates, weights):
    result = []
    for x, g in zip(coordinates, weights, strict=True):
        rows = [factor[i] for factor, i in zip(components.factors, x, strict=True)]
        if components.full_core:
            value = g.reshape([len(row) for row in rows])
            for row in rows:
                value = np.tensordot(value, row, axes=(0, 0))
        else:
            value = g @ np.prod(rows, axis=0)
        result.append(float(value))
    return np.array(result)


COMPONENTS = [
    ((4,), (3,), False),
    ((4, 5), (2, 2), False),
    ((4,), (3,), True),
    ((4, 5, 3), (2, 3, 2), True),
]


@pytest.mark.parametrize(("shape", "ranks", "full_core"), COMPONENTS)
def test_components_are_linear_in_weights(shape, ranks, full_core, seed):
    rng = np.random.default_rng(seed)
    factors = tuple(rng.standard_normal(size) for size in zip(shape, ranks, strict=True))
    components = SharedComponents(factors, full_core)
    x = np.column_stack([rng.integers(0, n, 6) for n in shape])
    g = rng.standard_normal((6, components.n_components))
    values = brute_force(components, x, g)
    np.testing.assert_allclose(np.einsum("nq,nq->n", components.rows(x), g), values, atol=1e-12)
