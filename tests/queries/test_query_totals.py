"""Queries on counts against loops over documents that follow the definitions."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from looped_documents import (
    looped,
    looped_expected,
    looped_triples,
    norm_of,
    pair_moment,
    weight_of,
    whitened_moment,
)

from sktensor_dp.data.counts import CountChunk, CountChunks, as_counts
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.queries.clips import Clip, CountNorm, PairNorm, TripleNorm, WhitenedTripleNorm
from sktensor_dp.queries.count_moments import (
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.query import Product

D, WORDS = 7, np.array([1, 2, 5])
of_words = pytest.mark.parametrize("words", [None, WORDS], ids=["all words", "some words"])


def corpus(seed, n=25):
    rng = np.random.default_rng(seed)
    X = rng.poisson(10 ** rng.uniform(-1, 1.5, (n, 1)) * rng.dirichlet(np.ones(D), n))
    X[:6] = 0
    X[1, 3] = X[2, 2] = X[2, 5] = 1
    X[3, 1], X[4, 0], X[5, 4] = 2, 3, 1000
    return X.astype(float)


def chunk_of(X):
    return CountChunk(as_counts(X))


def looped_histogram(query, X):
    """Every document that is long enough is in one bin, whatever its norm."""
    kept = [c for c in X if c.sum() >= query.min_tokens]
    norms = [norm_of(query.norm, c, c.sum()) * weight_of(query.clips, 0, c) for c in kept]
    return np.bincount(NORM_SLACK * np.array(norms) > query.edges[1], minlength=2)


def queries(seed):
    """Queries with the tolerance of their totals and the loop that gives them."""
    rng = np.random.default_rng(seed)
    W, U = rng.standard_normal((len(WORDS), 3)), np.linalg.qr(rng.standard_normal((D, 3)))[0]
    others = (Clip(CountNorm(2), 6.0), Clip(TripleNorm(), 9.0))
    for order in (1, 2):
        query = WordFrequencies(Clip(CountNorm(order), 5.0), others, 2)
        yield query, 1e-12, partial(looped, (query.clip, *others), 2, lambda c, _: c)
    for words, fewest in ((None, 3), (WORDS, 2), (WORDS, 0)):
        query = PairMoments(Clip(PairNorm(0.7, words), 2.0), 0.7, others, words, fewest)
        moment = partial(pair_moment, words=words)
        yield query, 1e-12, partial(looped, (query.clip, *others), fewest, moment)
        query = NormHistogram(PairNorm(0.7, words), np.array([0.5, 2, 6]), others[:1], fewest)
        yield query, 0.0, partial(looped_histogram, query)
    query = WhitenedTripleMoments(W, Clip(WhitenedTripleNorm(W, WORDS), 3.0), others, WORDS)
    yield query, 1e-10, partial(looped_triples, (query.clip, *others), WORDS, W)
    for norm in (TripleNorm(), CountNorm(1)):
        query = TripleMoments(U, Clip(norm, 2.0), others)
        yield query, 1e-10, partial(looped_triples, (query.clip, *others), None, U)
    topics, prior = rng.dirichlet(np.full(D, 0.5), 3), np.array([0.2, 0.5, 0.3])
    scaled = np.geomspace(0.2, 5, D)
    for single, (order, scales) in product((True, False), ((1, None), (2, None), (2, scaled))):
        query = ExpectedCounts(topics, prior, single, 4.0, order, scales=scales)
        # Single precision, amplified by the steps, in the E step of mixed documents.
        yield query, 1e-11 if single else 1e-4, partial(looped_expected, query)


@pytest.mark.parametrize("place", range(len(list(queries(0)))))
def test_totals_are_those_of_a_loop_in_any_chunks(place, seed):
    X = corpus(seed)
    X[5, 4] = 30  # the loop forms every token
    query, tolerance, loop = list(queries(seed))[place]
    expected = loop(X)
    # What the absolute tolerance lets pass is small beside what there is to be compared.
    assert np.abs(expected).max() > 1000 * tolerance
    found = query.total(chunk_of(X))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * 10)
    if found.ndim > 1 and found.shape[0] == found.shape[-1]:
        np.testing.assert_allclose(found, found.swapaxes(0, -1), atol=1e-12)
    if isinstance(query, ExpectedCounts):
        words = np.random.default_rng(seed).standard_normal((2, D))
        by_document = query.by_document(chunk_of(X), words)
        np.testing.assert_allclose(by_document.sum(axis=0), found @ words.T, rtol=1e-5, atol=1e-5)
        first = query.by_document(chunk_of(X[7:9]), words)
        np.testing.assert_allclose(by_document[7:9], first, rtol=1e-5, atol=1e-5)
    parts = CountChunks([X[:1], sp.csc_array(X[1:4]), X[4:4], X[4:]], *X.shape)
    # Sums in another order, of terms up to 1000 times as large as what is left.
    np.testing.assert_allclose(sum(map(query.total, parts)), found, rtol=1e-9, atol=1e-9)


def test_duplicates_are_added_before_fractions_are_refused():
    row, column = np.array([0, 0, 0, 1]), np.array([2, 2, 1, 0])
    X = sp.coo_matrix((np.array([0.5, 0.5, 0.0, 2.0]), (row, column)), shape=(2, 3))
    np.testing.assert_array_equal(as_counts(X).toarray(), [[0, 0, 1], [2, 0, 0]])
    X.data[3] = 2.5
    with pytest.raises(ValueError, match="X must hold counts, which are whole numbers"):
        as_counts(X)


@of_words
def test_pairs_times_a_matrix_and_however_words_are_cut(words, seed, cache_of):
    chunk, rng = chunk_of(corpus(seed)), np.random.default_rng(seed)
    np.testing.assert_array_equal(chunk.restricted(words).lengths, chunk.lengths)
    clip = Clip(PairNorm(1.0, words), 2.0)
    query = PairMoments(clip, 1.0, (Clip(CountNorm(1), 9.0),), words)
    total = query.total(chunk)
    V = rng.standard_normal((len(total), 3))
    added = Product(query, V).total(chunk)
    np.testing.assert_allclose(query.product_of_parts(added, V), total @ V, atol=1e-10)
    for numbers in (1, D // 2, D):
        cache_of(numbers)
        np.testing.assert_array_equal(query.total(chunk), total)  # to the last digit


@pytest.mark.parametrize(
    "norm",
    [*(PairNorm(w, words) for words in (None, WORDS) for w in (0.3, 1.0, 2**0.5)), TripleNorm()],
    ids=str,
)
def test_norms_are_exact(norm, seed):
    X = [corpus(seed), np.eye(D), 3 * np.eye(D), 1e4 * np.eye(D)[:2] + 1, np.full((1, D), 2.0)]
    X = np.concatenate(X)
    expected = [norm_of(norm, c, c.sum()) for c in X]
    found = norm.of(chunk_of(X)) / NORM_SLACK
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@of_words
def test_whitened_triple_norm_bounds_from_above(words, seed):
    rng, X = np.random.default_rng(seed), np.vstack([corpus(seed), 1e5 * np.eye(D)[:3] + 1])
    chosen = np.arange(D) if words is None else words
    # Rows that nearly cancel, or do, leave the terms of the triangle that are not |y|^3.
    X = np.vstack([X, np.zeros((2, D))])
    X[-2:, chosen[:3]] = [[11, 9, 0], [0, 8, 4]]
    for spread in (0, 1, 3):
        sizes = 10 ** rng.uniform(-spread, spread, (len(chosen), 1))
        W = sizes * rng.standard_normal((len(chosen), 3))
        W[1], W[2] = -W[0], 2 * W[0]
        found = WhitenedTripleNorm(W, words).of(chunk_of(X))
        exact = [np.linalg.norm(whitened_moment(c[chosen], c.sum(), W)) for c in X]
        assert (found >= exact).all()
        # Never above what its formulas say, by more than the allowance for rounding: at most
        # 2e-15 (7 + 8) of the cube of a sum of norms.
        bounds = [norm_of(WhitenedTripleNorm(W, words), c, c.sum()) for c in X[:5]]
        hidden = 1e-13 * (X[:5].sum(axis=1).max() * np.linalg.norm(W, axis=1).max()) ** 3
        np.testing.assert_allclose(found[:5], NORM_SLACK * np.array(bounds), rtol=1e-6, atol=hidden)


def test_rounding_hides_nothing_of_the_whitened_norm():
    """Squares of thousands of short rows round up when added to 1: by one part in 6000."""
    n, unit = 6000, np.finfo(float).eps
    rows = np.full((n + 1, 1), math.sqrt(0.501 * unit))
    rows[0] = 1.0
    bound = WhitenedTripleNorm(rows).of(chunk_of(np.ones((1, n + 1)))).item() * n * (n - 1)
    # Ordered draws of three tokens, the long row among them.
    assert bound >= 3 * n * (n - 1) * 0.501 * unit


# What the last digits may do


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(("order", "scale"), [(1, None), (2, None), (2, 1e-3), (2, 1e3)])
def test_words_of_any_probability_and_any_prior_stay_within_the_clip(single, order, scale):
    """In single precision the square of a small probability is 0, and so was the norm."""
    topics = np.array([[0.5, 0.5, 0, 1e-23, 1e-12], [0, 0.5, 0, 1e-23, 1e-30]])
    X = np.vstack([np.zeros(5), np.eye(5) * 1e30, np.full(5, 1e30), np.eye(5)])
    scales = None if scale is None else np.array([1.0, 1.0, 1.0, scale, 1.0])
    for prior in (0.5, 1e-46, 1e-300, 1e3):
        query = ExpectedCounts(topics, np.full(2, prior), single, 1.0, order, scales=scales)
        for row in X:
            assert np.linalg.norm(query.total(chunk_of(row[None, :])).ravel(), order) <= 1
