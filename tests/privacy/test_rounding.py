"""What rounding moves a computed sum by, against the slack that pays for it.

A sensitivity bounds the change of the *computed* sum when one unit is replaced. Where the
terms that are added are larger than what one unit may change, or their number is large, the
last digits of a sum move by more than that unless it is computed with care.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from sktensor_dp.statistics.counts import CountChunk, as_counts
from sktensor_dp.statistics.entries import IndexSet
from sktensor_dp.statistics.entry_queries import EntryGradients, FactorSums, RowSums
from sktensor_dp.statistics.jacobians import CPJacobian, TuckerJacobian
from sktensor_dp.statistics.moments import (
    LARGEST_TERMS,
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
)
from sktensor_dp.statistics.norms import (
    Clip,
    CountNorm,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
)
from sktensor_dp.statistics.row_frames import RowFrames

N = 20_000


def moved(query, X, Y):
    """How far two data sets move a total, as a share of the claimed sensitivity."""
    totals = [query.total(CountChunk(as_counts(part))) for part in (X, Y)]
    return np.linalg.norm(totals[0] - totals[1]) / query.l2_sensitivity


def neighbours(X, row):
    Y = X.copy()
    Y[0] = row
    return X, Y


@pytest.mark.parametrize(("long", "short"), [(1e3, 1.0), (1e6, 1.0), (1e8, 1.0), (1.0, 1e-7)])
@pytest.mark.parametrize("limit", [1e-9, 1.0, 1e6])
def test_whitened_triples_of_rows_of_any_length_move_by_the_sensitivity(long, short, limit, seed):
    """Cubes, pairs and singles of a long row cancel document by document, but not in sums.

    Documents that hold the long word once add its cube and take it away again: 4e17 times
    the limit, where rows differ by 1e8.
    """
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((4, 2)) * np.array([long, short, short, short])[:, None]
    X = rng.poisson(1.0, (N, 4)).astype(float)
    X[:, 0] = rng.integers(0, 2, N)
    X[:, 1] += 2
    X[0] = [1, 1, 1, 0]
    query = WhitenedTripleMoments(W, (Clip(WhitenedTripleNorm(W), limit),))
    for row in ([0, 0, 2, 2], [1, 0, 0, 9], [3, 0, 0, 0]):
        assert moved(query, *neighbours(X, row)) <= 1


def test_what_is_summed_of_whitened_triples_is_bounded_document_by_document(seed):
    """Not the contribution alone: each of the terms it is the difference of."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((5, 3)) * 10 ** rng.uniform(-7, 7, (5, 1))
    limit = 10 ** rng.uniform(-9, 9)
    query = WhitenedTripleMoments(W, (Clip(WhitenedTripleNorm(W), limit),))
    X = rng.poisson(1.0, (200, 5)) + np.eye(5)[rng.integers(5, size=200)]
    chunk = CountChunk(as_counts(X))
    weight = query.weights(chunk)
    sizes = np.linalg.norm(W, axis=1)
    y = np.linalg.norm(chunk.X @ W, axis=1)
    terms = y**3 + 2 * chunk.X @ sizes**3 + 3 * y * (chunk.X @ sizes**2)
    # Norms err by a few units in the last place of double precision.
    assert (weight * terms <= LARGEST_TERMS * limit * (1 + 1e-12)).all()


@pytest.mark.parametrize("norm", [WhitenedTripleNorm, TripleNorm, CountNorm])
def test_documents_of_rows_alike_are_not_scaled_down_for_their_terms(norm, seed):
    """For three tokens the terms are ten times the contribution: fits with sound whiteners
    stay as they were.
    """
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.poisson(rate, (300, 6)) for rate in (0.4, 1.0, 20.0)]).astype(float)
    X = np.vstack([X, 3 * np.eye(6), np.eye(6)[[0, 0, 1]].sum(axis=0)])
    X = X[X.sum(axis=1) >= 3]
    chunk = CountChunk(as_counts(X))
    if norm is WhitenedTripleNorm:
        W = np.linalg.qr(rng.standard_normal((6, 6)))[0][:, :6]
        queries = [WhitenedTripleMoments(W, (Clip(norm(W), C),)) for C in (1e-9, 0.1, 10.0)]
    else:
        U = np.linalg.qr(rng.standard_normal((6, 4)))[0]
        of = CountNorm(1) if norm is CountNorm else TripleNorm()
        queries = [TripleMoments(U, (Clip(of, C),)) for C in (1e-9, 0.1, 10.0)]
    for query in queries:
        clip = query.clips[0]
        plain = clip.limit / np.maximum(clip.norm.of(chunk), clip.limit)
        plain /= (chunk.lengths - 1) * (chunk.lengths - 2)
        np.testing.assert_array_equal(query.weights(chunk), plain)


@pytest.mark.parametrize("limit", [1e-12, 1e-6])
def test_pairs_of_single_words_leave_no_digits_on_the_diagonal(limit, seed):
    """A word that occurs once adds c^2 - c = 0, whatever its weight is."""
    rng = np.random.default_rng(seed)
    words = np.array([0])
    X = np.column_stack([rng.integers(1, 3, N), rng.integers(1, 9, N), np.zeros(N)])
    query = PairMoments(Clip(PairNorm(0.7, words), limit), 0.7, (), words)
    for row in ([0, 5, 0], [9, 0, 1]):
        assert moved(query, *neighbours(X, row)) <= 1


# Sums over entries


def drifting_values(n):
    """Two data sets of n values, of which each addition rounds up in one and none in the other.

    Their sums stay near a power of 2, one above it and one below, where the spacing of doubles
    is twice and once 2 to the `bits`.
    """
    power = math.frexp(n // 4)[1] - 1
    start = 2 ** (power + 1)  # halves that add up to 2 ** power
    spacing, tiny = 2.0 ** (power - 52), 2.0 ** (power - 58)
    values = np.full(n, 0.5)
    values[start::2] = 0.25 + spacing / 2 + tiny
    values[start + 1 :: 2] = -0.25 - spacing / 2 + tiny
    other = values.copy()
    other[0] = -0.5
    return values, other


@pytest.mark.parametrize("n", [10**6, 2**22])
def test_sums_of_long_rows_move_by_the_sensitivity(n):
    """Added one after the other, a million values move by 1.4e-5 more than their range."""
    index_set = IndexSet(np.zeros((n, 2), dtype=np.intp), (1, 1))
    weights = np.column_stack([np.ones(n), np.zeros(n)])
    values = [SimpleNamespace(values=part) for part in drifting_values(n)]
    query = RowSums(index_set, weights, 0.5)
    one, other = map(query.total, values)
    assert np.abs(one - other).sum() <= query.l1_sensitivity
    frames = RowFrames(index_set, 0, np.ones((n, 1)), 0.0, ("isotropic",))
    query = FactorSums(frames, 0.5)
    one, other = map(query.total, values)
    assert np.abs(one - other).sum() <= query.l2_sensitivity
    factors = [np.ones((1, 1))] * 2
    for jacobian in (
        CPJacobian(index_set, factors),
        TuckerJacobian(index_set, factors, np.ones((1, 1))),
    ):
        query = EntryGradients(jacobian, 0.5)
        one, other = map(query.total, values)
        assert np.abs(one - other).sum() <= query.l1_sensitivity


@pytest.mark.parametrize("limit", [1e-12, 1e-6, 1e-2])
def test_gradients_of_a_tiny_limit_move_by_the_sensitivity(limit, seed):
    """Values are clamped to narrow intervals far from 0: only places within them are added."""
    rng = np.random.default_rng(seed)
    n = 5000
    index_set = IndexSet(rng.integers(0, 3, (n, 2)), (3, 3))
    jacobian = CPJacobian(index_set, [rng.standard_normal((3, 2)) for _ in range(2)])
    query = EntryGradients(jacobian, 0.5, rng.uniform(-0.4, 0.4, n), limit)
    low, high = query.interval
    values = rng.uniform(-0.5, 0.5, n)
    chosen = int(np.argmax((high - low) * jacobian.absolute_norms()))
    values[chosen] = -0.5
    other = values.copy()
    other[chosen] = 0.5
    one, two = (query.total(SimpleNamespace(values=part)) for part in (values, other))
    assert np.abs(one - two).sum() <= query.l1_sensitivity
    assert np.linalg.norm(one - two) <= query.l2_sensitivity
