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


def gaussians(n, d, k, rng, separation=6.0, variances=None, weights=None):
    """Spherical Gaussians; all means equally far from each other, about the origin."""
    means = separation / np.sqrt(2) * orthonormal_rows(k, d, rng)
    means -= means.mean(axis=0)
    labels = rng.choice(k, size=n, p=weights)
    spread = np.ones(k) if variances is None else np.sqrt(variances)
    return means[labels] + spread[labels, None] * rng.standard_normal((n, d)), means


def matched_distances(found, true):
    """Distance of each true vector from the one it is matched to; infinite for none."""
    distances = np.linalg.norm(true[:, None] - found[None], axis=2)
    rows, columns = linear_sum_assignment(distances)
    result = np.full(len(true), INF)
    result[rows] = distances[rows, columns]
    return result


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
