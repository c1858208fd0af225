"""What released topics say of documents."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.topics.inference import (
    document_log_likelihood,
    topic_posterior,
    variational_proportions,
)

__all__ = ["log_likelihoods", "most_probable", "proportions"]

Floats = NDArray[np.float64]

# Mean field steps per document, and the mean change of its parameters that ends them.
MAX_ITER, TOLERANCE = 100, 1e-3


def proportions(counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool) -> Floats:
    """Shares of topics in documents; `single` where each has one topic."""
    gamma = _posterior(counts, topics, prior, single)
    if gamma is None:
        return topic_posterior(counts, topics, prior)
    return gamma / gamma.sum(axis=1, keepdims=True)


def log_likelihoods(counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool) -> Floats:
    """Evidence lower bounds of documents, exact where each has one topic."""
    gamma = _posterior(counts, topics, prior, single)
    return document_log_likelihood(counts, topics, prior, gamma)


def most_probable(topics: Floats, n_words: int, names: Sequence[Any] | Any) -> list[list[str]]:
    """Names of the most probable words of every topic."""
    order = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    return [[str(names[word]) for word in row] for row in order]


def _posterior(counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool) -> Floats | None:
    if single:
        return None
    return variational_proportions(counts, topics, prior, n_iter=MAX_ITER, tol=TOLERANCE)
