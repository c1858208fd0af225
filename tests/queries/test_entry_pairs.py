"""Products of two values of a row: against a loop, and what its bound has to know."""

import itertools
import math

import numpy as np
import pytest

from sktensor_dp.queries.entries import MOST_DIGITS, EntryChunks, EntryPairs, IndexSet

SHAPE, N, LIMITS = (6, 5), 40, (-1.0, 1.0)


def question(rng, X):
    weights = rng.random(SHAPE[0])
    return EntryPairs(IndexSet(X, SHAPE), rng.uniform(-0.5, 0.5, N), weights, 0.4, 1.0)


@pytest.mark.parametrize("block", [None, 9])
def test_sums_and_counts_are_those_of_a_loop(seed, block, cache_of):
    if block is not None:
        cache_of(block)
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n, N) for n in SHAPE])
    query, values = question(rng, X), rng.uniform(-1.5, 1.5, N)
    columns = SHAPE[1]
    sums, counts = np.zeros((2, columns, columns))
    for e, f in itertools.permutations(range(N), 2):
        (u, i), (v, j) = X[e], X[f]
        if u != v or i == j:
            continue
        product = query.weights[u]
        for g in (e, f):
            left = min(max(values[g], -1.0), 1.0) - query.predictions[g]
            product *= min(max(left / 0.4, -1.0), 1.0)
        sums[i, j] += product
        counts[i, j] += query.weights[u]
    upper = np.triu_indices(columns, 1)
    total = query.total(EntryChunks(X, values, SHAPE, LIMITS))
    # Limits and residuals are off by a step of the grid at most: a product by six half steps,
    # and no pair of columns has more than N^2 / 4 products.
    tolerance = 6 * 2.0**-MOST_DIGITS / 2 * N**2 / 4
    np.testing.assert_allclose(total, sums[upper], atol=tolerance)
    np.testing.assert_allclose(query.counts(), counts[upper], atol=tolerance)
    assert (np.abs(total) <= query.counts()).all()


def test_sums_are_the_same_in_any_order(seed):
    """They are integers, over a power of 2: nothing is rounded."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n, N) for n in SHAPE])
    query, values, order = question(rng, X), rng.uniform(-1, 1, N), rng.permutation(N)
    again = EntryPairs(IndexSet(X[order], SHAPE), query.predictions[order], query.weights, 0.4, 1.0)
    one = query.total(EntryChunks(X, values, SHAPE, LIMITS))
    other = again.total(EntryChunks(X[order], values[order], SHAPE, LIMITS))
    assert np.array_equal(one, other)
    assert np.array_equal(one * 4.0**MOST_DIGITS, np.rint(one * 4.0**MOST_DIGITS))


def test_repeated_coordinates_move_more_than_their_number_says():
    """Two values at one place, and one beside them: sqrt(m - 1) is too little."""
    X = np.array([[0, 0], [0, 0], [0, 1]])
    places = IndexSet(X, (1, 2))
    query = EntryPairs(places, np.zeros(3), np.ones(1), 1.0, 1.0)
    one, other = (
        query.total(EntryChunks(X, np.array([1.0, 1.0, end]), (1, 2), LIMITS)) for end in LIMITS
    )
    moved = float(np.abs(one - other).max())
    assert moved == 4.0 > 2 * math.sqrt(2)
    assert moved <= query.l2_sensitivity <= 4.0001


def test_many_values_at_one_place_leave_fewer_digits():
    """All sums stay below what doubles count to, and so are exact: a third is rounded."""
    X = np.repeat([[0, 0], [0, 1]], [40_000, 24_001], axis=0)
    n = len(X)
    query = EntryPairs(IndexSet(X, (1, 2)), np.zeros(n), np.ones(1), 1.0, 1.0)
    for value in (1.0, 1 / 3):
        (total,) = query.total(EntryChunks(X, np.full(n, value), (1, 2), LIMITS))
        root = math.sqrt(total / (40_000 * 24_001))
        assert root == pytest.approx(value, abs=1e-3)
        # 2 * 11 digits of products and 30 of how many there are.
        assert (root * 2**11).is_integer()
