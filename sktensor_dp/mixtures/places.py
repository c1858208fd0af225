"""Places of Gaussians: two are at one place if their joint density has one peak."""

import numpy as np

from sktensor_dp.mixtures.gaussians import Gaussians, log_density
from sktensor_dp.tensor.arrays import Integers

# Number of points on the curve that holds all peaks of two Gaussians. With half or twice as many
# the count differs in one of 300 random pairs at most, in which a second peak hardly shows.
POINTS = 201
# Differences of log-density up to this size are rounding errors.
ROUNDING = 1e-9


def places_of(model: Gaussians) -> Integers:
    """Number (k,) of the place of each Gaussian, from 1; chains of pairs of one peak share one.

    Nonnormal columns do not count, unless all are.
    """
    if model.nonnormal is not None and len(columns := model.nonnormal.others):
        covariances = model.covariances[:, columns][:, :, columns]
        model = Gaussians(model.weights, model.means[:, columns], covariances)
    places = np.arange(len(model.weights))
    for j in range(len(places)):
        for i in range(j):
            if places[i] != places[j] and n_peaks(model.in_order(np.array([i, j]))) == 1:
                places[places == max(places[i], places[j])] = min(places[i], places[j])
    return np.unique(places, return_inverse=True)[1].ravel() + 1


def n_peaks(pair: Gaussians) -> int:
    """Number of peaks of the density of two Gaussians."""
    # All lie on the ridgeline (Ray and Lindsay, 2005): means of the two means weighted by the
    # precisions (1 - s) P_0 and s P_1, for s from 0 to 1.
    first, second = np.linalg.inv(pair.covariances)
    s = np.linspace(0, 1, POINTS)[:, None, None]
    means = pair.means[:, :, None]
    weighted_means = (1 - s) * (first @ means[0]) + s * (second @ means[1])
    ridge = np.linalg.solve((1 - s) * first + s * second, weighted_means)[:, :, 0]
    steps = np.diff(log_density(pair.log_joint(ridge)))
    rises = steps[np.abs(steps) > ROUNDING] > 0
    # The density rises before the first point and falls after the last.
    return int((np.append(True, rises) & ~np.append(rises, False)).sum())
