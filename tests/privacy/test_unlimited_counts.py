"""Expected counts that nothing limits are summed where nothing is to be hidden, and only there."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from internals import questions
from ways_to_fit import WAYS, quiet

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import CountChunks
from sktensor_dp.queries.expected_counts import ExpectedCounts

TOPICS = np.full((2, 30), 1 / 30)


def documents(length: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), size=4)
    return np.array([rng.multinomial(rng.poisson(length) + 3, t @ topics)
                     for t in rng.dirichlet(np.full(4, 0.25), size=1500)])  # fmt: skip


def limits_of(fit: Callable[[], Any]) -> list[float]:
    """Limits on expected counts that a fit asks for."""
    with questions() as asked, quiet():
        fit()
    return [query.limit for _, query in asked if isinstance(query, ExpectedCounts)]


@pytest.mark.parametrize("length", [3, 60])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0, 1e8])
def test_no_finite_epsilon_comes_to_them(epsilon, delta, length):
    X = documents(length)
    lda = PrivateSpectralLDA(4, epsilon=epsilon, delta=delta, n_refinements=4, random_state=0)
    assert all(map(math.isfinite, limits_of(lambda: lda.fit(X))))
    assert all(map(math.isfinite, limits_of(lambda: lda.set_params(n_refinements="auto").fit(X))))


@pytest.mark.parametrize("length", [3, 60])
def test_without_noise_fits_do(length):
    lda = PrivateSpectralLDA(4, epsilon=math.inf, random_state=0)
    assert set(limits_of(lambda: lda.fit(documents(length)))) == {math.inf}


@pytest.mark.parametrize("way", [name for name in WAYS if name.startswith("topics")])
def test_no_way_to_fit_with_noise_does(way):
    assert all(map(math.isfinite, limits_of(lambda: WAYS[way].call(WAYS[way].build()))))


class Unread:
    """Chunks that nobody may read."""

    n_units, n_features = 100, 30

    def __iter__(self) -> Any:
        raise AssertionError("the data was read")


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e8, 1e300])
def test_at_a_finite_epsilon_they_are_refused_before_data_is_read(epsilon, delta, order, single):
    query = ExpectedCounts(TOPICS, np.full(2, 0.5), single, math.inf, order)
    plan = ReleasePlan.split(epsilon, delta, {"expected_counts": 1.0})
    curator = DataCurator(Unread(), plan, spender="test", unit="document", accountant=None)
    with curator, pytest.raises(RuntimeError, match=r"sensitivity of inf cannot be released"):
        curator.noisy("expected_counts", query)


def test_the_same_question_is_answered_without_noise():
    X = sp.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(100, 30)).astype(float))
    query = ExpectedCounts(TOPICS, np.full(2, 0.5), False, math.inf)
    plan = ReleasePlan.split(math.inf, 1e-6, {"expected_counts": 1.0})
    chunks = CountChunks(X, *X.shape)
    with DataCurator(chunks, plan, spender="test", unit="document", accountant=None) as curator:
        assert curator.noisy("expected_counts", query).sigma == 0
