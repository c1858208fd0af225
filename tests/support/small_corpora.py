"""Corpora that the tests of `PrivateSpectralLDA` share."""

import numpy as np
import pytest

from sktensor_dp import PrivacyLeakWarning, PrivateSpectralLDA, unsafe_seeded_noise

INF = float("inf")
TOPICS = np.array([[0.5, 0.3, 0.1, 0.1, 0.0], [0.0, 0.1, 0.1, 0.3, 0.5]])
# Tests of mechanics fit too little data to find topics, and a fit says so.
tiny = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def counts(n=200, d=7, seed=0):
    return np.random.default_rng(seed).poisson(1.0, size=(n, d))


def single_topic(n, topics, length, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multinomial(length, topics[rng.integers(len(topics), size=n)])


def seeded_fit(X, seed=0, **parameters):
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        return PrivateSpectralLDA(2, random_state=0, **parameters).fit(X)
