"""Expected counts that nothing limits are summed where nothing is to be hidden, and only there."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import CountChunks
from sktensor_dp.queries.expected_counts import ExpectedCounts

TOPICS = np.full((2, 30), 1 / 30)


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
