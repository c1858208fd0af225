"""Small tables and estimators that tests of completions share."""

import math

import numpy as np
import pytest

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion

INF = float("inf")
MODELS = [PrivateCPCompletion, PrivateTuckerCompletion]
# Of what is the same for both, the second is tried at night.
ONE_BY_DAY = [MODELS[0], pytest.param(MODELS[1], marks=pytest.mark.nightly)]
PERTURBATIONS = ["input", "sufficient_statistics", "gradient", "output"]
SHAPE = (9, 8, 6)
SLICE = {"unit_mode": 0, "shape": SHAPE}


def table(shape=SHAPE, seed=0, share=0.7):
    """Some entries of two components and biases, and the whole tensor."""
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((n, 2)) for n in shape]
    X = np.argwhere(np.ones(shape))
    T = np.prod([f[rows] for f, rows in zip(factors, X.T, strict=True)], axis=0).sum(axis=1)
    T += rng.standard_normal(shape[0])[X[:, 0]]
    seen = rng.random(len(X)) < share
    return X[seen], T[seen], T.reshape(shape)


def build(model=PrivateCPCompletion, **parameters):
    return model(**{"rank": 2, "bounds": (-4, 4), "random_state": 0, **parameters})


X0, Y0, T0 = table()
TASTES = (6000, 60)


def tastes(seed, share, each=20):
    """Values of variance 1, of which two components have that share: to fit, and others."""
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random(TASTES) < each / TASTES[1])
    U, V = (rng.standard_normal((n, 2)) for n in TASTES)
    y = math.sqrt(share / 2) * np.einsum("ek,ek->e", U[X[:, 0]], V[X[:, 1]])
    y += math.sqrt(1 - share) * rng.standard_normal(len(y))
    test = rng.random(len(y)) < 0.1
    return (X[~test], y[~test]), (X[test], y[test])
