"""Mean field steps of many documents: each ends where it would alone, to the last bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from batchings import documents_of_any_length, random_batchings
from scipy.special import psi

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.queries.mean_field import MeanField, exp_digamma, single_precision
from sktensor_dp.topics.inference import document_log_likelihood, variational_dirichlet


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


@pytest.mark.parametrize("prior", [1e-30, 1e-3, 1.0, 1e30])
def test_any_prior_leaves_finite_proportions(prior):
    X = sp.csr_matrix([[0.0, 0, 0], [2.0**30, 1, 0], [1, 0, 0]])
    topics = np.array([[1.0, 0, 0], [0, 1e-23, 1 - 1e-23], [0.5, 0.5, 0]])
    expected, ratios, norms = fields(X, topics, np.array([prior, 0.5, 1.0]))
    assert np.isfinite(expected).all()
    assert np.isfinite(ratios).all()
    assert np.isfinite(norms[1:]).all()


def test_evidence_is_the_bound_of_mean_field(seed):
    rng = np.random.default_rng(seed)
    topics, prior = rng.dirichlet(np.full(9, 0.5), 3), np.array([0.3, 0.7, 2.0])
    X = sp.csr_matrix(rng.poisson(1.0, (40, 9)).astype(float))
    field = MeanField(CountChunk(X), *single_precision(topics, prior), 40, np.zeros(40, bool))
    gamma = variational_dirichlet(X, topics, prior, n_iter=500)
    expected = document_log_likelihood(X, topics, prior, gamma)
    np.testing.assert_allclose(field.evidence(), expected, rtol=1e-4, atol=1e-4)
