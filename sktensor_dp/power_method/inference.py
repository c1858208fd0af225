"""Inference on samples by released components."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from sktensor_dp.power_method.recipe import FittedComponents
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.inference import document_log_likelihood, topic_posterior


def coordinates(samples: Any, moment: str, found: FittedComponents) -> Floats:
    """Responsibilities under the mixture models, projections otherwise."""
    if moment == "raw":
        return np.asarray(samples @ found.components.T)
    if moment == "single_topic":
        return topic_posterior(samples, found.components, found.weights)
    joint = _log_joint(samples, found)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def fits(samples: Any, moment: str, found: FittedComponents) -> Floats:
    """Log-likelihood of each sample, or its part of the fit to the third moment."""
    if moment == "single_topic":
        return document_log_likelihood(samples, found.components, found.weights, None)
    if moment == "gaussian_mixture":
        return np.asarray(logsumexp(_log_joint(samples, found), axis=1))
    seen = np.asarray(samples @ found.components.T)
    gram = (found.components @ found.components.T) ** 3
    return 2 * (seen**3) @ found.weights - found.weights @ gram @ found.weights


def sampled_gaussians(found: FittedComponents, chosen: Any, rng: Any) -> Floats:
    """Draw points of given components."""
    assert found.variances is not None
    means = found.components[chosen]
    return np.asarray(means + np.sqrt(found.variances[chosen, None]) * rng.normal(size=means.shape))


def sampled_counts(topics: Floats, chosen: Any, length: int, rng: Any) -> sp.csr_matrix:
    """Draw documents of given topics and length."""
    words = np.empty((len(chosen), length), dtype=np.intp)
    for topic, row in enumerate(np.cumsum(topics, axis=1)):
        of_topic = chosen == topic
        drawn = rng.uniform(0, row[-1], size=(int(of_topic.sum()), length))
        words[of_topic] = np.searchsorted(row, drawn, side="right")
    # Rounding may leave the last sum at what was drawn.
    words = np.minimum(words, topics.shape[1] - 1)
    documents = np.repeat(np.arange(len(chosen)), length)
    ones = np.ones(words.size, dtype=np.int64)
    # Duplicates add up.
    return sp.csr_matrix((ones, (documents, words.ravel())), (len(chosen), topics.shape[1]))


def _log_joint(samples: Any, found: FittedComponents) -> Floats:
    """Joint log-density of each sample and component."""
    means, variances = found.components, found.variances
    assert variances is not None
    squares = samples.multiply(samples).sum(axis=1) if sp.issparse(samples) else None
    if squares is None:
        squares = np.square(samples).sum(axis=1)
    distances = np.asarray(squares).reshape(-1, 1) - 2 * np.asarray(samples @ means.T)
    distances = np.maximum(distances + np.square(means).sum(axis=1), 0.0)
    spread = samples.shape[1] * np.log(2 * math.pi * variances)
    weights = np.log(np.maximum(found.weights, 1e-300))
    return weights - 0.5 * (distances / variances + spread)
