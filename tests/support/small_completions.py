"""Small tables and estimators that tests of completions share."""

import numpy as np

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion

INF = float("inf")
MODELS = [PrivateCPCompletion, PrivateTuckerCompletion]
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
