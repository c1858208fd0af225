"""Products of a fit take one thread, whatever the process has."""

import math
import warnings

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from sktensor_dp import PrivateSpectralLDA, unsafe_seeded_noise


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_fit_takes_one_thread_and_its_digits_are_those_of_one(seed, epsilon, monkeypatch):
    X = np.random.default_rng(seed).poisson(1.0, (60, 20))
    limit, limits, found = ThreadpoolController.limit, [], []

    def limited(controller, **what):
        limits.append(what)
        return limit(controller, **what)

    monkeypatch.setattr(ThreadpoolController, "limit", limited)
    for threads in (1, None):
        with warnings.catch_warnings(), threadpool_limits(threads, "blas"):
            warnings.simplefilter("ignore")  # seeded noise, and as many topics as it hides
            with unsafe_seeded_noise(seed):
                model = PrivateSpectralLDA(3, epsilon=epsilon, random_state=0)
                found.append(model.fit(X).components_)
    np.testing.assert_array_equal(*found)
    assert limits == [{"limits": 1, "user_api": "blas"}] * 2
