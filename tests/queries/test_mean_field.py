"""Mean field steps of many documents: each ends where it would alone, to the last bit."""

import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from batchings import documents_of_any_length, random_batchings
from scipy.special import psi

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.queries.expected_counts import (
    N_THREADS,
    ExpectedCounts,
    MeanField,
    batches_of,
    exp_digamma,
    run_in_batches,
    single_precision,
)
from sktensor_dp.topics.inference import (
    document_log_likelihood,
    expected_log_proportions,
    variational_proportions,
)


def fields(X, topics, prior, n_iter=10):
    """Proportions, ratios at every word, and norms, document by document."""
    field = MeanField(
        CountChunk(X), *single_precision(topics, prior), n_iter, np.ones(X.shape[0], dtype=bool)
    )
    back = np.argsort(field.order)
    return field.expected[back], field.ratios[back].toarray(), field.norms[back]


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize(("k", "d", "longest"), [(1, 60, 50), (2, 30, 3), (7, 300, 250)])
def test_a_document_does_not_depend_on_its_batch(k, d, longest, even, seed, cache_of):
    """Else replacing one document would move, by a little, what all others add."""
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(documents_of_any_length(rng, 300, d, longest))
    topics = rng.dirichlet(np.full(d, 0.3), k)
    prior = np.full(k, 0.3) if even else rng.uniform(0.05, 1.0, k)
    whole = fields(X, topics, prior)
    assert np.isfinite(whole[2][X.getnnz(axis=1) > 0]).all()
    for rows in random_batchings(rng, 300, cache_of):
        for found, expected in zip(fields(X[rows], topics, prior), whole, strict=True):
            np.testing.assert_array_equal(found, expected[rows])


def test_every_document_with_words_is_in_one_batch(seed):
    rng = np.random.default_rng(seed)
    for size in (0, 1, 5, 3000):
        n_words = np.sort(rng.integers(0, int(rng.integers(1, 400)), size))
        found = batches_of(n_words, int(rng.integers(1, 50)), int(2 ** rng.integers(0, 21)))
        seen = [document for batch in found for document in range(batch.start, batch.stop)]
        assert sorted(seen) == list(np.flatnonzero(n_words))


def test_proportions_are_exponentials_of_digammas():
    """The series errs by 1.4e-8, and some ten operations by 6e-8 each; exponents are formed from
    numbers up to 103 in five operations, each of which errs by 6e-8 of it."""
    gamma = np.geomspace(1e-2, 1e9, 4096).astype(np.float32)
    columns = np.stack([gamma, np.full_like(gamma, 3.0)])
    exact = np.exp(psi(columns.astype(float)) - psi(columns.astype(float)).max(axis=0))
    arrays, kept = [np.empty_like(columns) for _ in range(5)], columns.copy()
    found = exp_digamma(columns, *arrays)
    assert np.array_equal(columns, kept)
    assert (found.max(axis=0) >= 2.5 * (1 - 1e-6)).all()
    found = found / found.max(axis=0)
    kept = exact > np.exp(-49)
    assert kept.mean() > 0.9
    np.testing.assert_allclose(found[kept], exact[kept], rtol=1e-6 + 5 * 103 * 6e-8)
    assert found[exact > 0.01].ravel() == pytest.approx(exact[exact > 0.01].ravel(), rel=2e-6)


@pytest.mark.parametrize(("steps", "plain"), [(7, 10), (13, 20)])
@pytest.mark.parametrize(("concentration", "length"), [(0.3, 60), (1.0, 60), (4.0, 60), (1.0, 12)])
def test_steps_that_go_farther_are_as_good_as_more(concentration, length, steps, plain, seed):
    """As near to the fixed point, over documents; as many plain ones are half as near or less."""
    rng = np.random.default_rng(seed)
    k, d, n = 7, 200, 300
    topics = rng.dirichlet(np.full(d, 0.2), k)
    law = rng.dirichlet(np.full(k, concentration / k), n) @ topics
    X = sp.csr_matrix(rng.multinomial(length, law).astype(float))
    prior = np.full(k, concentration / k)

    def shares(odds):
        return odds / odds.sum(axis=1, keepdims=True)

    def mean_field_shares(n_iter):
        gamma = variational_proportions(X, topics, prior, n_iter=n_iter)
        return shares(np.exp(expected_log_proportions(gamma)))

    limit = mean_field_shares(200)

    def distance(shares):
        # Of nine documents in ten: some have several fixed points, and may go to another one.
        return np.quantile(np.abs(shares - limit).sum(axis=1), 0.9)

    found = shares(fields(X, topics, prior, steps)[0].astype(float))
    assert distance(found) < distance(mean_field_shares(plain))


@pytest.mark.parametrize("prior", [1e-30, 1e-3, 1.0, 1e30])
def test_any_prior_leaves_finite_proportions(prior):
    X = sp.csr_matrix([[0.0, 0, 0], [2.0**30, 1, 0], [1, 0, 0]])
    topics = np.array([[1.0, 0, 0], [0, 1e-23, 1 - 1e-23], [0.5, 0.5, 0]])
    expected, ratios, norms = fields(X, topics, np.array([prior, 0.5, 1.0]))
    assert np.isfinite(expected).all()
    assert np.isfinite(ratios).all()
    assert np.isfinite(norms[1:]).all()


def test_documents_are_shortened_only_where_their_expected_counts_exceed_the_limit(seed):
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(documents_of_any_length(rng, 200, 40, 30))
    topics = rng.dirichlet(np.full(40, 0.3), 3)
    limit = float(np.quantile(np.sqrt(CountChunk(X).squares), 0.6))
    limited, free = (
        ExpectedCounts(topics, np.full(3, 0.3), False, size) for size in (limit, 1e9)
    )  # fmt: skip
    each = np.array([limited.total(CountChunk(row)) for row in X])
    whole = np.array([free.total(CountChunk(row)) for row in X])
    norms = np.linalg.norm(whole, axis=(1, 2))
    assert 5 < (norms > limit).sum() < 100
    # Norms of expected counts are computed in single precision.
    shortened = whole * np.minimum(1, limit / np.maximum(NORM_SLACK * norms, 1e-9))[:, None, None]
    np.testing.assert_allclose(each, shortened, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(limited.total(CountChunk(X)), each.sum(axis=0), rtol=1e-12)
    assert np.linalg.norm(each, axis=(1, 2)).max() <= limit


def test_threads_warn_as_little_as_their_caller(cache_of):
    """Whether an overflow warns may depend on one unit."""
    threads = set()

    def overflowing(batch):
        threads.add(threading.current_thread())
        return np.float32(np.full(1, 1e30) * 1e30)

    cache_of(1)
    X = sp.csr_matrix(np.tril(np.ones((400, 400))))
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="raise"):
        warnings.simplefilter("always")
        run_in_batches(overflowing, X, 2)
    assert not caught
    assert threads - {threading.current_thread()} or N_THREADS == 1


def test_evidence_is_the_bound_of_mean_field(seed):
    rng = np.random.default_rng(seed)
    topics, prior = rng.dirichlet(np.full(9, 0.5), 3), np.array([0.3, 0.7, 2.0])
    X = sp.csr_matrix(rng.poisson(1.0, (40, 9)).astype(float))
    field = MeanField(CountChunk(X), *single_precision(topics, prior), 40, np.zeros(40, bool))
    gamma = variational_proportions(X, topics, prior, n_iter=500)
    expected = document_log_likelihood(X, topics, prior, gamma)
    np.testing.assert_allclose(field.evidence(), expected, rtol=1e-4, atol=1e-4)
