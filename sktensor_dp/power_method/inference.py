"""Inference on samples by released components."""

import math

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, softmax
from sklearn.metrics.pairwise import euclidean_distances

from sktensor_dp.power_method.recipe import FittedComponents
from sktensor_dp.tensor.arrays import Floats, Integers


def coordinates(samples: Floats | sp.csr_matrix, moment: str, found: FittedComponents) -> Floats:
    """Coordinates (n, k) of samples: probabilities in a mixture, or projections."""
    if moment == "raw":
        return np.asarray(samples @ found.components.T)
    return np.asarray(softmax(_log_joint(samples, found), axis=1))


def sample_scores(samples: Floats | sp.csr_matrix, moment: str, found: FittedComponents) -> Floats:
    """Log-likelihood (n,) of samples in a mixture, or their terms of the fit to T."""
    if moment == "gaussian_mixture":
        return np.asarray(logsumexp(_log_joint(samples, found), axis=1))
    seen = np.asarray(samples @ found.components.T)
    gram = (found.components @ found.components.T) ** 3
    return 2 * (seen**3) @ found.weights - found.weights @ gram @ found.weights


def sampled_gaussians(
    found: FittedComponents, chosen: Integers, rng: np.random.Generator
) -> Floats:
    """Draw a point of each Gaussian in `chosen`, an array of indices."""
    assert found.variances is not None
    means = found.components[chosen]
    return np.asarray(
        means + np.sqrt(found.variances[chosen, None]) * rng.standard_normal(means.shape)
    )


def _log_joint(samples: Floats | sp.csr_matrix, found: FittedComponents) -> Floats:
    """Log of weight times density of each sample and Gaussian, of shape (n, k)."""
    assert found.variances is not None
    distances = euclidean_distances(samples, found.components, squared=True)
    spread = samples.shape[1] * np.log(2 * math.pi * found.variances)
    weights = np.log(np.maximum(found.weights, 1e-300))
    return np.asarray(weights - 0.5 * (distances / found.variances + spread))
