"""Inference on samples by released components."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, softmax
from sklearn.metrics.pairwise import euclidean_distances

from sktensor_dp.power_method.recipe import FittedComponents
from sktensor_dp.tensor.arrays import Floats, spans
from sktensor_dp.topics.inference import document_log_likelihood, topic_posterior


def coordinates(samples: Any, moment: str, found: FittedComponents) -> Floats:
    """Coordinates (n, k) of samples: probabilities in a mixture, or projections."""
    if moment == "raw":
        return np.asarray(samples @ found.components.T)
    if moment == "single_topic":
        return topic_posterior(samples, found.components, found.weights)
    return np.asarray(softmax(_log_joint(samples, found), axis=1))


def sample_scores(samples: Any, moment: str, found: FittedComponents) -> Floats:
    """Log-likelihood (n,) of samples in a mixture, or what each adds to the fit of T."""
    if moment == "single_topic":
        return document_log_likelihood(samples, found.components, found.weights, None)
    if moment == "gaussian_mixture":
        return np.asarray(logsumexp(_log_joint(samples, found), axis=1))
    seen = np.asarray(samples @ found.components.T)
    gram = (found.components @ found.components.T) ** 3
    return 2 * (seen**3) @ found.weights - found.weights @ gram @ found.weights


def sampled_gaussians(found: FittedComponents, chosen: Any, rng: Any) -> Floats:
    """Draw a point of each Gaussian in `chosen`, an array of indices."""
    assert found.variances is not None
    means = found.components[chosen]
    return np.asarray(
        means + np.sqrt(found.variances[chosen, None]) * rng.standard_normal(means.shape)
    )


def sampled_counts(topics: Floats, chosen: Any, length: int, rng: Any) -> sp.csr_matrix:
    """Draw a document of `length` tokens of each topic in `chosen`, as sparse counts."""
    parts = spans(len(chosen), topics.shape[1], caches=8)
    return sp.vstack(
        [sp.csr_matrix(rng.multinomial(length, topics[chosen[part]])) for part in parts],
        format="csr",
    )


def _log_joint(samples: Any, found: FittedComponents) -> Floats:
    """Log of weight times density of each sample and Gaussian, of shape (n, k)."""
    assert found.variances is not None
    distances = euclidean_distances(samples, found.components, squared=True)
    spread = samples.shape[1] * np.log(2 * math.pi * found.variances)
    weights = np.log(np.maximum(found.weights, 1e-300))
    return np.asarray(weights - 0.5 * (distances / found.variances + spread))
