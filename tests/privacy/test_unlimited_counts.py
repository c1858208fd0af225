"""Expected counts that nothing limits are summed where nothing is to be hidden, and only there."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from ways_to_fit import WAYS, quiet

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries import expected_counts
from sktensor_dp.queries.counts import CountChunks
from sktensor_dp.queries.expected_counts import ExpectedCounts

UNLIMITED = ("counts_of_mixtures", "counts_of_one_topic")
TOPICS = np.full((2, 30), 1 / 30)


def documents(length: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), size=4)
    return np.array([rng.multinomial(rng.poisson(length) + 3, t @ topics)
                     for t in rng.dirichlet(np.full(4, 0.25), size=1500)])  # fmt: skip


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the sums without a limit, as often as one is asked for."""
    names: list[str] = []
    for name in UNLIMITED:
        kernel = getattr(expected_counts, name)

        def spied(*args: Any, name: str = name, kernel: Any = kernel) -> Any:
            names.append(name)
            return kernel(*args)

        monkeypatch.setattr(expected_counts, name, spied)
    return names


@pytest.mark.parametrize("length", [3, 60])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0, 1e8])
def test_no_finite_epsilon_comes_to_them(called, epsilon, delta, length):
    with quiet():
        lda = PrivateSpectralLDA(4, epsilon=epsilon, delta=delta, n_refinements=4, random_state=0)
        lda.fit(documents(length))
        lda.set_params(n_refinements="auto").fit(documents(length))
    assert not called


@pytest.mark.parametrize("length", [3, 60])
def test_without_noise_fits_do(called, length):
    with quiet():
        PrivateSpectralLDA(4, epsilon=math.inf, random_state=0).fit(documents(length))
    assert set(called) == set(UNLIMITED)


@pytest.mark.parametrize("way", [name for name in WAYS if name.startswith("topics")])
def test_no_way_to_fit_with_noise_does(called, way):
    with quiet():
        WAYS[way].call(WAYS[way].build())
    assert not called


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


def test_the_same_question_is_answered_without_noise(called):
    X = sp.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(100, 30)).astype(float))
    query = ExpectedCounts(TOPICS, np.full(2, 0.5), False, math.inf)
    plan = ReleasePlan.split(math.inf, 1e-6, {"expected_counts": 1.0})
    chunks = CountChunks(X, *X.shape)
    with DataCurator(chunks, plan, spender="test", unit="document", accountant=None) as curator:
        assert curator.noisy("expected_counts", query).sigma == 0
    assert called == ["counts_of_mixtures"]
