"""What units would change in a shared factor: against a loop, and whatever numbers come."""

import numpy as np
import pytest

from sktensor_dp import PrivateCPCompletion
from sktensor_dp.privacy.curators.entries import SliceCurator
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.queries.slices import MOMENT_WEIGHT, SharedFactorSums, SliceChunks
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.unit_parameters import (
    LEVEL_VARIANCE,
    POPULARITY_VARIANCE,
    SLOPE_VARIANCE,
)

SHAPE, LIMITS, N = (6, 5, 4), (-2.0, 2.0), 60
LEVEL, NOISE, SCALE = 0.3, 0.4, 0.7


def entries(rng):
    X = np.column_stack([rng.integers(0, n, N) for n in SHAPE])
    X = np.unique(X[X[:, 0] != 2], axis=0)  # a unit without entries; equal ones are merged
    return X, rng.uniform(*LIMITS, len(X))


def query_of(rng, mode, full_core, shape=SHAPE, **changes):
    shared = shape[1:]
    ranks = (2, 3) if full_core else (2, 2)
    effects = tuple(
        SharedEffects(rng.standard_normal(n), rng.random(n), rng.standard_normal(n), 1.0)
        for n in shared
    )
    factors = tuple(rng.standard_normal((n, r)) for n, r in zip(shared, ranks, strict=True))
    parts = {
        "mode": mode, "shape": shape, "level": LEVEL, "effects": effects,
        "components": SharedComponents(factors, full_core), "noise_variance": NOISE,
        "scale": SCALE,
    }  # fmt: skip
    return SharedFactorSums(**{**parts, **changes})


def value_and_slope(query, g, x):
    """Derivative z of an entry in a unit's weights, and J with slopes J g in the factor's row."""
    a, b = (factor[i] for factor, i in zip(query.components.factors, x[1:], strict=True))
    if not query.components.full_core:
        return a * b, np.diag(b if query.mode == 0 else a)
    eyes = np.eye(len(a)), np.eye(len(b))
    J = np.kron(eyes[0], b[None]) if query.mode == 0 else np.kron(a[None], eyes[1])
    return np.kron(a, b), J


def unit_part(query, unit):
    """A unit's contribution, entry by entry; ``unit`` has coordinates and values."""
    factor = query.components.factors[query.mode]
    sums, moment, r = np.zeros(factor.shape), 0.0, factor.shape[1]
    rows, designs, targets, weights = [], [], [], []
    for x, v in unit:
        b, var, f = (
            sum(getattr(e, part)[i] for e, i in zip(query.effects, x[1:], strict=True))
            for part in ("effects", "variances", "popularity")
        )
        z, _ = value_and_slope(query, None, x)
        designs.append(np.array([1.0, b, f, *z]))
        targets.append(v - LEVEL - b)
        weights.append(1 / (NOISE + var))
        rows.append(x[1 + query.mode])
    D, t, w = np.array(designs), np.array(targets), np.array(weights)
    prior = [LEVEL_VARIANCE * NOISE, SLOPE_VARIANCE, POPULARITY_VARIANCE * NOISE]
    prior += [1.0] * (D.shape[1] - 3)
    covariance = np.linalg.inv(D.T @ (w[:, None] * D) + np.diag(1 / np.array(prior)))
    mean = covariance @ (D.T @ (w * t))
    g, V = mean[3:], covariance[3:, 3:]
    for (x, _), d, target in zip(unit, D, t, strict=True):
        _, J = value_and_slope(query, g, x)
        slope = J @ g / np.sqrt(r)
        slope /= max(np.linalg.norm(slope), 1)
        sums[x[1 + query.mode]] += np.clip((target - d[:3] @ mean[:3]) / SCALE, -1, 1) * slope
        moment += J @ (np.outer(g, g) + V) @ J.T / r / len(unit)
    sums /= np.linalg.norm(np.bincount(rows))
    return np.concatenate([sums, MOMENT_WEIGHT * moment / max(np.linalg.norm(moment), 1)])


@pytest.mark.parametrize("full_core", [False, True])
@pytest.mark.parametrize("mode", [0, 1])
def test_totals_are_those_of_a_loop(mode, full_core, seed):
    rng = np.random.default_rng(seed)
    X, y = entries(rng)
    query = query_of(rng, mode, full_core)
    expected = 0.0
    for u in set(X[:, 0]):
        own = X[:, 0] == u
        expected = expected + unit_part(query, list(zip(X[own], y[own], strict=True)))
    found = query.total(SliceChunks(X, y, SHAPE, 0, LIMITS))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_curator_takes_sums_and_moment_apart(seed):
    rng = np.random.default_rng(seed)
    X, y = entries(rng)
    query, chunk = query_of(rng, 0, False), SliceChunks(X, y, SHAPE, 0, LIMITS)
    cost = PrivacyCost(mu=np.inf)
    plan = ReleasePlan(1.0, 1e-6, (PlannedRelease("shared_factor_sums", cost),))
    with SliceCurator(chunk, plan, spender="test", unit="unit", accountant=None) as curator:
        found = curator.shared_factor_sums(query)
    total = query.total(chunk)
    np.testing.assert_allclose(found.sums, total[:5], atol=1e-12)
    np.testing.assert_allclose(found.moment, total[5:] / MOMENT_WEIGHT / SHAPE[0], atol=1e-12)
    assert found.slope_scale == np.sqrt(2)


def test_no_entries_at_all_are_a_data_set():
    query = query_of(np.random.default_rng(0), 1, True)
    nothing = SliceChunks(np.zeros((0, 3), dtype=np.intp), np.zeros(0), SHAPE, 0, LIMITS)
    assert not query.total(nothing).any()


def test_factors_of_another_shape_are_refused():
    query = query_of(np.random.default_rng(0), 0, False, shape=(6, 4, 5))
    with pytest.raises(ValueError, match="one factor for each shared mode"):
        query.total(SliceChunks(*entries(np.random.default_rng(0)), SHAPE, 0, LIMITS))


def flat_effects(n, variance=0.0):
    return SharedEffects(np.zeros(n), np.full(n, variance), np.zeros(n), 1.0)


def plain_query(factors, full_core, mode=0, noise_variance=0.1, variance=0.0):
    shape = (1, *map(len, factors))
    return SharedFactorSums(
        mode, shape, 0.0, tuple(flat_effects(n, variance) for n in shape[1:]),
        SharedComponents(tuple(factors), full_core), noise_variance, 1.0,
    )  # fmt: skip


def test_moments_have_no_obtuse_angles(seed):
    """Collinear columns and hardly any noise: a unit's own weights are huge, and cancel."""
    rng = np.random.default_rng(seed)
    moments = []
    for _ in range(150):
        h = 10.0 ** rng.uniform(-16, -6)
        flat = np.array([[1.0, 1.0], [1.0, 1.0 + h], [1.0, 1 - h]])
        n = rng.integers(1, 8)
        X = np.c_[np.zeros(n, int), rng.integers(0, 3, (n, 2))]
        one = plain_query((rng.standard_normal((3, 2)), flat), True, int(rng.integers(2)), 1e-20)
        found = one.total(SliceChunks(X, rng.choice([-1.0, 1.0], n), (1, 3, 3), 0, (-1.0, 1.0)))
        moments.append(found[3:].ravel() / MOMENT_WEIGHT)
    products = np.array(moments) @ np.array(moments).T
    # Of matrices of length 1 in double precision; without the projection some are below -0.5.
    assert products.min() > -1e-12


@pytest.mark.parametrize("width", [1e-30, 1e12, 1e40])
def test_units_of_measurement_do_not_matter(width):
    rng = np.random.default_rng(0)
    X = np.argwhere(rng.random((300, 6, 5)) < 0.5)
    model = PrivateCPCompletion(2, bounds=(0, width), shape=(300, 6, 5), unit_mode=0, epsilon=5.0)
    model.fit(X, width * rng.uniform(0, 1, len(X)))
    assert model.privacy_report_.rows[-1].name == "shared_factor_sums"


@pytest.mark.parametrize("value", [0.0, 1e-170])
def test_no_floating_point_error_depends_on_a_value(value):
    """Callers may make rounding an error; which release it would stop may depend on one unit."""
    X = np.argwhere(np.ones((20, 4)))
    y = np.zeros(len(X))
    y[0] = value
    plan = ReleasePlan.split(1.0, 1e-6, {"unit_levels": 1.0})
    chunks = SliceChunks(X, y, (20, 4), 0, (-0.5, 0.5))
    with np.errstate(all="raise"), SliceCurator(
        chunks, plan, spender="a", unit="slice", accountant=None
    ) as curator:  # fmt: skip
        curator.unit_levels()
