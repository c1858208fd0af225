"""Data laws that the tests of `PrivateTensorPowerMethod` share."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sktensor_dp import PrivacyLeakWarning, PrivateTensorPowerMethod, unsafe_seeded_noise

INF = float("inf")
# Tests of mechanics fit too little data to find components, and a fit says so.
tiny = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def orthonormal_rows(k, d, rng):
    return np.linalg.qr(rng.standard_normal((d, k)))[0].T


def directions(n, d, k, rng):
    """One of k orthonormal directions times .7, plus isotropic noise of total norm .5."""
    V = orthonormal_rows(k, d, rng)
    X = 0.7 * V[rng.integers(k, size=n)]
    X += 0.5 / np.sqrt(d) * rng.standard_normal((n, d))
    return X, V


def cosines(found, true):
    """Largest |cosine| of each true direction with a distinct one of those found."""
    overlaps = np.abs(true @ found.T)
    rows, columns = linear_sum_assignment(-overlaps)
    result = np.zeros(len(true))
    result[rows] = overlaps[rows, columns]
    return result


def seeded(fit, seed=0):
    """Run a fit with seeded noise."""
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        return fit()


def model(n_components=3, **parameters):
    return PrivateTensorPowerMethod(
        n_components, **{"data_norm": 1.0, "random_state": 0, **parameters}
    )
