"""Expected counts where nothing is limited: the same numbers, in less time."""

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.queries.counts import CountChunk, CountChunks
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.query import LIMIT
from sktensor_dp.queries.units import Units
from sktensor_dp.topics.inference import topic_posterior

LARGE = 1e30  # a limit that nobody reaches


def documents(rng: np.random.Generator, length: float, n: int = 60, d: int = 80) -> sp.csr_matrix:
    X = sp.csr_matrix(rng.poisson(length / d, (n, d)).astype(float))
    X.data[::7] += 3
    return X


@pytest.mark.parametrize("length", [3.0, 200.0])
@pytest.mark.parametrize("n_topics", [1, 4, 10, 40])
@pytest.mark.parametrize(
    ("n_iter", "uneven"), [(0, False), (1, False), (2, False), (7, False), (30, True)]
)
def test_mixed_as_with_a_limit_that_nobody_reaches(length, n_topics, n_iter, uneven):
    # Digamma functions differ by .00041 there, so that steps do.
    rng = np.random.default_rng(3)
    chunk = CountChunk(documents(rng, length))
    topics = rng.dirichlet(np.full(80, 0.5), n_topics)
    prior = np.full(n_topics, 0.3) * (1 + uneven * np.arange(n_topics) / n_topics)
    expected, found = (
        ExpectedCounts(topics, prior, False, limit, 2, n_iter).total(chunk)
        for limit in (LARGE, np.inf)
    )
    assert np.abs(found - expected).sum() <= 0.02 * expected.sum()
    # Every token is of some topic.
    np.testing.assert_allclose(found.sum(axis=0), chunk.X.sum(axis=0).A1, rtol=1e-4)


@pytest.mark.parametrize("length", [3.0, 200.0])
def test_one_topic_as_with_a_limit_that_nobody_reaches(length):
    rng = np.random.default_rng(4)
    chunk = CountChunk(documents(rng, length))
    topics, weights = rng.dirichlet(np.full(80, 5.0), 6), rng.dirichlet(np.ones(6))
    found = ExpectedCounts(topics, weights, True, np.inf).total(chunk)
    expected = (chunk.X.T @ topic_posterior(chunk.X, topics, weights)).T
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n_topics", [3, 40])
@pytest.mark.parametrize("single", [False, True])
def test_rows_of_a_unit_count_as_their_mean(single, n_topics):
    rng = np.random.default_rng(5)
    X = documents(rng, 40.0, n=6)
    topics, prior = rng.dirichlet(np.full(80, 0.5), n_topics), np.full(n_topics, 1 / n_topics)
    query = ExpectedCounts(topics, prior, single, np.inf)
    together = query.total(CountChunk(X, Units(np.array([0, 1, 4, 6]))))
    alone = [query.total(CountChunk(X[row])) for row in range(6)]
    expected = alone[0] + np.mean(alone[1:4], axis=0) + np.mean(alone[4:], axis=0)
    np.testing.assert_allclose(together, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    "cost", [PrivacyCost(mu=1e-3), PrivacyCost(mu=1e150), PrivacyCost(epsilon=1e150)], ids=str
)
@pytest.mark.parametrize("single", [False, True])
def test_no_finite_cost_buys_counts_without_a_limit(single, cost, neighbours):
    """Whose digits may depend on other documents: the largest limit takes the other way."""
    X, topics = documents(np.random.default_rng(6), 20.0), np.full((3, 80), 1 / 80)
    plan = ReleasePlan(1.0, 1e-6, (PlannedRelease("expected_counts", cost, 2),))
    order = 1 if cost.epsilon > 0 else 2
    queries = [
        ExpectedCounts(topics, np.full(3, 0.1), single, limit, order)
        for limit in (np.inf, LIMIT[1])
    ]
    chunks = CountChunks(X, *X.shape)
    with DocumentCurator(
        chunks, plan, spender="test", unit="document", accountant=None, neighbours=neighbours
    ) as curator:
        with pytest.raises(RuntimeError, match="cannot be released"):
            curator.release("expected_counts", queries[0])
        assert np.isfinite(curator.release("expected_counts", queries[1])).all()


@pytest.mark.parametrize("n_topics", [3, 300])
@pytest.mark.parametrize("count", [1.0, 2.0**30])
def test_finite_for_hostile_documents(n_topics, count):
    # Words of no topic, empty documents, lone words and the largest counts there are.
    X = sp.csr_matrix(np.diag(np.full(8, count))[[0, 1, 5, 7]])
    X = sp.vstack([X, sp.csr_matrix((2, 8)), np.full((3, 8), count)]).tocsr()
    topics = np.eye(n_topics, 8)
    for single in (False, True):
        query = ExpectedCounts(topics, np.full(n_topics, 1e-3), single, np.inf)
        with np.errstate(all="raise"):
            found = query.total(CountChunk(X))
        assert np.isfinite(found).all()
        assert (found >= 0).all()
