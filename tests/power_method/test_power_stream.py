"""Batches that are read once: order, budget, memory, interruption."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from small_samples import INF, directions, model, seeded, tiny

from sktensor_dp import NotEnoughDataWarning
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.tensor.power_method import OnlinePowerMethod


def batches(n, count, d=6, seed=0):
    X, V = directions(n, d, 3, np.random.default_rng(seed))
    return np.array_split(X, count), V


def test_progress_is_counted():
    parts, _ = batches(3000, 30)
    estimator = model(max_iter=4)
    for number, X in enumerate(parts, 1):
        estimator.partial_fit(X)
        assert estimator.n_batches_seen_ == number
        assert estimator.n_batches_needed_ == 15
        assert estimator.is_complete_ == (number >= 15)
        assert estimator.n_components_ == min(1 + (number // 5), 3)
        assert estimator.transform(X).shape == (len(X), estimator.n_components_)
    assert estimator.privacy_report_.n_units == 3000
    assert estimator.privacy_report_.epsilon == pytest.approx(1.0)


@tiny
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_batches_and_chunks_agree(container):
    parts = [container(part) for part in batches(3000, 20)[0]]

    def by_batches():
        estimator = model(max_iter=3)
        for part in parts:
            estimator.partial_fit(part)
        return estimator

    one = seeded(by_batches)
    other = seeded(lambda: model(max_iter=3).fit_chunks(part for part in parts))
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.weights_, other.weights_)


def test_exact_stream_is_the_online_power_method():
    parts, _ = batches(2000, 12)
    estimator = model(epsilon=INF, max_iter=3)
    # The estimator hands on the legacy generator that scikit-learn makes of a seed.
    method = OnlinePowerMethod.begin(6, 3, max_iter=3, random_state=np.random.RandomState(0))
    for X in parts:
        estimator.partial_fit(X)
        scales = np.minimum(1, 1 / (NORM_SLACK * np.linalg.norm(X, axis=1)))
        clipped = X * scales[:, None]
        U = method.ask()
        method.tell(clipped.T @ (clipped @ U) ** 2 / len(X), n_samples=len(X))
        weights, vectors = method.components()
        np.testing.assert_allclose(estimator.components_, vectors, atol=1e-8)
        np.testing.assert_allclose(estimator.weights_, weights, atol=1e-8)


def test_no_batches_where_all_data_is_needed():
    parts, _ = batches(200, 1)
    for parameters in ({"perturbation": "iteration"}, {"moment": "gaussian_mixture"}):
        with pytest.raises(AttributeError, match="partial_fit"):
            model(**parameters).partial_fit(parts[0])


def test_a_short_stream_says_so():
    parts, _ = batches(500, 5)
    with pytest.warns(NotEnoughDataWarning, match="5 batches; 33 are needed"):
        model(max_iter=10).fit_chunks(parts)
    with pytest.raises(ValueError, match="none"):
        model().fit_chunks([])


def test_memory_is_linear_in_the_number_of_features():
    """At most 20 arrays of d (k + L) numbers beside a sparse batch."""
    d, k, n_restarts = 20_000, 5, 20
    batch = sp.random(2000, d, 50 / d, format="csr", random_state=np.random.default_rng(0))
    estimator = model(k, n_restarts=n_restarts, max_iter=1).partial_fit(batch)
    tracemalloc.start()
    for _ in range(10):
        estimator.partial_fit(batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 20 * d * (k + n_restarts) * 8
    assert len(pickle.dumps(estimator)) <= 3 * d * (k + n_restarts) * 8
