"""Libraries of products are looked for only where a product may take several threads."""

import math
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from sktensor_dp import PrivateSpectralLDA, PrivateTensorPowerMethod, unsafe_seeded_noise
from sktensor_dp.queries.units import FEW_FEATURES, FEW_NUMBERS

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.exceptions.NotEnoughDataWarning")
MOST_ROWS = FEW_NUMBERS // FEW_FEATURES


@pytest.fixture
def limits(monkeypatch):
    """Counts how often threads are limited."""
    counting = SimpleNamespace(n=0)

    def limit(_, **what):
        assert what == {"limits": 1, "user_api": "blas"}
        counting.n += 1
        return nullcontext()

    monkeypatch.setattr(ThreadpoolController, "limit", limit)
    return counting


def counts(seed, n_rows=MOST_ROWS, n_columns=FEW_FEATURES):
    return np.random.default_rng(seed).poisson(1.0, (n_rows, n_columns))


def topics(**parameters):
    return PrivateSpectralLDA(
        **{"n_components": 1, "epsilon": 5.0, "random_state": 0, **parameters}
    )


def test_little_data_leaves_threads_alone(limits, seed):
    topics().fit(counts(seed))
    PrivateTensorPowerMethod(1, epsilon=5.0, data_norm=9.0).fit(counts(seed, 60, 5))
    assert limits.n == 0


@pytest.mark.parametrize(
    ("shape", "parameters", "grouped"),
    [
        ((MOST_ROWS + 1, FEW_FEATURES), {}, False),
        ((60, FEW_FEATURES + 1), {}, False),
        ((60, 10), {"neighbours": "add_remove"}, False),
        ((60, 10), {}, True),
    ],
)
def test_more_data_or_a_private_number_of_rows_takes_one_thread(
    limits, seed, shape, parameters, grouped
):
    groups = {"groups": np.arange(shape[0]) // 2} if grouped else {}
    topics(**parameters).fit(counts(seed, *shape), **groups)
    assert limits.n == 1


def test_chunks_of_the_callers_take_one_thread(limits, seed):
    topics().fit_chunks([counts(seed, 60, 10)], n_samples=60, n_features=10)
    assert limits.n == 1


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_the_digits_are_those_of_one_thread(seed, epsilon):
    """Products of so few numbers are computed by one thread in any case."""
    X, found = counts(seed), []
    for threads in (1, None):
        with warnings.catch_warnings(), threadpool_limits(threads, "blas"):
            warnings.simplefilter("ignore")  # seeded noise, and as many topics as it hides
            with unsafe_seeded_noise(seed):
                found.append(topics(epsilon=epsilon, n_components=3).fit(X).components_)
    np.testing.assert_array_equal(*found)
