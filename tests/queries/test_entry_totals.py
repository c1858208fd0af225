"""Totals of queries on entries against loops, answers against totals, and what comes in."""

import itertools
import math

import numpy as np
import pytest
from sessions import opened

from sktensor_dp.data.entries import EntryChunks, IndexSet, as_entries
from sktensor_dp.data.person_entries import PersonChunks
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.entries import MOST_DIGITS, Entries, EntryPairs, RowSums
from sktensor_dp.queries.gradients import EntryGradients, Jacobian, RidgeBlock

SHAPE, N, LIMITS, MIDDLE, HALF = (5, 7, 3), 60, (1.0, 5.0), 3.0, 2.0
of_blocks = pytest.mark.parametrize("block", [None, 9])


def data(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n, N) for n in SHAPE])
    X[X == 2] = 1  # a row of every mode, all of the last mode's end, stays empty
    return rng, X, rng.uniform(0, 6, N)


def clamped(y):
    return np.array([min(max(v, 1.0), 5.0) - 3.0 for v in y])


def exact(chunks, query):
    """Answer without noise."""
    ask = opened(chunks, ReleasePlan.split(math.inf, 1e-6, {query.name: 1.0}))
    return ask(query).as_sum()


def test_index_sets_add_up_rows(seed):
    rng, X, _ = data(seed)
    places, terms = IndexSet(X, SHAPE), rng.standard_normal((N, 2))
    for m, n in enumerate(SHAPE):
        for i in range(n):
            own = X[:, m] == i
            assert places.counts[m][i] == own.sum()
            for found, expected in (
                (places.sums(m, terms), terms[own].sum(axis=0)),
                (places.sums(m, terms[:, 0]), terms[own, 0].sum()),
                (places.grams(m, terms), terms[own].T @ terms[own]),
            ):
                np.testing.assert_allclose(found[i], expected, atol=1e-12)


def test_balanced_weights_sum_to_one_and_favour_rows_with_few_entries(seed):
    _, X, _ = data(seed)
    raw = [[(X[:, m] == row[m]).sum() ** -0.5 for m in range(3)] for row in X]
    expected = raw / np.sum(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(IndexSet(X, SHAPE).balanced_weights(), expected)


def test_row_sums(seed):
    rng, X, y = data(seed)
    w = rng.standard_normal((N, 3))
    chunk, x = EntryChunks(X, y, SHAPE, LIMITS), clamped(y)
    expected = [w[X[:, m] == i, m] @ x[X[:, m] == i] for m in range(3) for i in range(SHAPE[m])]
    expected.append(np.linalg.norm(w, axis=1).max() / (2 * HALF) * x @ x)
    query = RowSums(chunk.index_set, w, HALF)
    np.testing.assert_allclose(query.total(chunk), expected, atol=1e-12)
    np.testing.assert_allclose(exact(chunk, query).value, expected, atol=1e-11)
    released = exact(chunk, Entries(HALF))
    np.testing.assert_allclose(released.value, x, atol=1e-12)
    assert (released.sigma, chunk.middle, chunk.half) == (0.0, MIDDLE, HALF)


@of_blocks
@pytest.mark.parametrize("ridge", [0.7, np.array([0.1, 2.0, 0.0])])
def test_ridge_rows(seed, ridge, block, cache_of):
    if block is not None:
        cache_of(block)
    rng, X, y = data(seed)
    z = rng.standard_normal((N, 3)) * [2, 1, 0.1]
    chunk, x = EntryChunks(X, y, SHAPE, LIMITS), clamped(y)
    for mode in range(3):
        query = RidgeBlock(chunk.index_set, mode, z, ridge, HALF)
        rows = exact(chunk, query).value * query.scales[:, None]
        coordinates = query.total(chunk)
        for i in range(SHAPE[mode]):
            own = X[:, mode] == i
            if not own.any():
                assert not rows[i].any()
                continue
            grams = z[own].T @ z[own]
            least = 1e-10 * np.trace(grams)
            A = grams + np.diag(np.maximum(np.broadcast_to(ridge, 3), least))
            solutions = np.linalg.solve(A, z[own].T)
            scale = np.linalg.norm(solutions, axis=0).max()
            # A relative 1e-5: the condition of A is 1e10 where the ridge is 0.
            for found in (rows[i], coordinates[i] * scale):
                np.testing.assert_allclose(found, solutions @ x[own], rtol=1e-5, atol=1e-5)


def models(rng, places):
    factors = [rng.standard_normal((n, 2)) for n in SHAPE]
    yield Jacobian(places, factors)
    factors = [rng.standard_normal((n, r)) for n, r in zip(SHAPE, (2, 3, 1), strict=True)]
    yield Jacobian(places, factors, rng.standard_normal((2, 3, 1)))


def value(model, parameters, x):
    """Value of a model at a coordinate, from its parameters."""
    parts = model.split(parameters)
    mean, biases, parts = parts[0], parts[1:4], parts[4:]
    result = mean[0] + sum(b[i] for b, i in zip(biases, x, strict=True))
    if model.core is None:
        return result + sum(math.prod(a[i, r] for a, i in zip(parts, x, strict=True))
                            for r in range(2))  # fmt: skip
    *factors, core = parts
    return result + sum(
        core[ranks] * math.prod(a[i, r] for a, i, r in zip(factors, x, ranks, strict=True))
        for ranks in itertools.product(*map(range, core.shape))
    )


def current(model):
    rest = [a.ravel() for a in model.factors]
    core = [] if model.core is None else [model.core.ravel()]
    return np.concatenate([np.zeros(16), *rest, *core])


@pytest.mark.parametrize("place", range(2))
@pytest.mark.parametrize("block", [None, 13])
def test_jacobians_are_derivatives(place, block, seed, cache_of):
    if block is not None:
        cache_of(block)
    rng, X, _ = data(seed)
    X = X[:20]
    model = list(models(rng, IndexSet(X, SHAPE)))[place]
    point, step = current(model), 1e-5
    J = np.empty((len(X), len(point)))
    for p in range(len(point)):
        moved = [point.copy(), point.copy()]
        moved[0][p] += step
        moved[1][p] -= step
        J[:, p] = [(value(model, moved[0], x) - value(model, moved[1], x)) / (2 * step) for x in X]
    weights = rng.standard_normal(len(X))
    np.testing.assert_allclose(model.scatter(weights), weights @ J, atol=1e-7)
    for order in (1, 2):
        np.testing.assert_allclose(model.norms(order), np.linalg.norm(J, order, axis=1), atol=1e-7)


def test_gradients_are_the_products_with_the_jacobian(seed):
    rng, X, y = data(seed)
    chunk = EntryChunks(X, y, SHAPE, LIMITS)
    for model in models(rng, chunk.index_set):
        found = exact(chunk, EntryGradients(model, HALF))
        np.testing.assert_allclose(found.value, model.scatter(clamped(y)), atol=1e-9)


def distance_between_ends(query, X, y, place):
    """Distance of the totals of a value at both ends of its range."""
    totals = []
    for end in LIMITS:
        y[place] = end
        totals.append(query.total(EntryChunks(X, y, query.index_set.shape, LIMITS)))
    return np.linalg.norm(totals[0] - totals[1])


def test_badly_conditioned_frames_leave_the_bound_exact(seed):
    """Rows nearly parallel: A^-1 is far larger than what it makes of z."""
    rng, n = np.random.default_rng(seed), 2000
    z = np.outer(rng.uniform(1, 2, n), [1.0, 1, 1]) + 1e-9 * rng.standard_normal((n, 3))
    X = np.column_stack([np.zeros(n, dtype=np.intp), rng.integers(0, 9, n)])
    query, worst = RidgeBlock(IndexSet(X, (1, 9)), 0, z, 0.0, HALF), np.linalg.norm(z, axis=1)
    moved = distance_between_ends(query, X, rng.uniform(1, 5, n), np.argmax(worst))
    assert moved <= query.l2_sensitivity


def test_whatever_a_frame_is_no_value_moves_further_than_the_sensitivity(seed):
    """Vectors that multiply values are shortened to length 1, so that F need not be right."""
    rng, X, y = data(seed)
    query = RidgeBlock(IndexSet(X, SHAPE), 0, rng.standard_normal((N, 3)), 0.1, HALF)
    query._scaled_inverses[1][:] *= rng.uniform(2, 1e6)
    # The entry is at length 1, and moves by all of the range.
    assert 2 * HALF * (1 - 1e-9) < distance_between_ends(query, X, y, 0) <= query.l2_sensitivity


# Products of pairs


MATRIX = (6, 5)


def pairs_of(rng, X):
    n = len(X)
    return EntryPairs(IndexSet(X, MATRIX), rng.uniform(-0.5, 0.5, n), rng.random(6), 0.4, HALF)


@of_blocks
def test_sums_of_pairs_are_those_of_a_loop_in_any_order(seed, block, cache_of):
    """They are integers, over a power of 2: nothing is rounded."""
    if block is not None:
        cache_of(block)
    rng, n = np.random.default_rng(seed), 40
    X = np.column_stack([rng.integers(0, size, n) for size in MATRIX])
    query, y = pairs_of(rng, X), rng.uniform(0, 6, n)
    left = np.clip((clamped(y) - query.predictions) / 0.4, -1, 1)
    sums, counts = np.zeros((2, 5, 5))
    for e, f in itertools.permutations(range(n), 2):
        (u, i), (v, j) = X[e], X[f]
        if u == v and i != j:
            sums[i, j] += query.weights[u] * left[e] * left[f]
            counts[i, j] += query.weights[u]
    upper = np.triu_indices(5, 1)
    total = query.total(EntryChunks(X, y, MATRIX, LIMITS))
    # Limits and residuals are off by a step of the grid at most: a product by six half steps,
    # and no pair of columns has more than n^2 / 4 products.
    tolerance = 6 * 2.0**-MOST_DIGITS / 2 * n**2 / 4
    np.testing.assert_allclose(total, sums[upper], atol=tolerance)
    np.testing.assert_allclose(query.counts(), counts[upper], atol=tolerance)
    assert (np.abs(total) <= query.counts()).all()
    assert np.array_equal(total * 4.0**MOST_DIGITS, np.rint(total * 4.0**MOST_DIGITS))
    order = rng.permutation(n)
    again = EntryPairs(
        IndexSet(X[order], MATRIX), query.predictions[order], query.weights, 0.4, HALF
    )
    assert np.array_equal(total, again.total(EntryChunks(X[order], y[order], MATRIX, LIMITS)))


@pytest.mark.parametrize("value", [1.0, 1 / 3])
def test_many_values_at_one_place_leave_fewer_digits(value):
    """All sums stay below what doubles count to, and so are exact: a third is rounded."""
    X = np.repeat([[0, 0], [0, 1]], [40_000, 24_001], axis=0)
    n = len(X)
    query = EntryPairs(IndexSet(X, (1, 2)), np.zeros(n), np.ones(1), 1.0, 1.0)
    (total,) = query.total(EntryChunks(X, np.full(n, value), (1, 2), (-1.0, 1.0)))
    root = math.sqrt(total / (40_000 * 24_001))
    assert root == pytest.approx(value, abs=1e-3)
    # 2 * 11 digits of products and 30 of how many there are.
    assert (root * 2**11).is_integer()


# What comes in


def test_values_are_clamped_exactly(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        low = 10 ** rng.uniform(-5, 5) * rng.standard_normal()
        high = low + 10 ** rng.uniform(-5, 5)
        y = np.array([low, high, (low + high) / 2, -1e308, 1e308, -np.finfo(float).max])
        chunk = EntryChunks(np.zeros((6, 2), dtype=np.intp), y, (1, 1), (low, high))
        assert np.abs(chunk.values).max() == chunk.half
        np.testing.assert_allclose(chunk.values + chunk.middle, np.clip(y, low, high), rtol=1e-12,
                                   atol=1e-12 * (abs(low) + abs(high)))  # fmt: skip


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_chunks_share_no_memory_with_what_was_passed(kind, order):
    """Whoever passed an array may change it while it is fitted, or after."""
    X, y = np.array([[0, 2], [4, 1]], dtype=kind, order=order), np.array([1.0, 2.0])
    coordinates, values, shape = as_entries(X, y)
    entries = EntryChunks(coordinates, values, shape, LIMITS)
    slices = PersonChunks(coordinates, values, shape, 0, LIMITS)
    for held in (entries.index_set.coordinates, entries.values, slices.coordinates, slices.values):
        assert not np.shares_memory(held, X)
        assert not np.shares_memory(held, y)
