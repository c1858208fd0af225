"""What released topics say of documents."""

import numpy as np
import scipy.sparse as sp

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.inference import (
    collapsed_proportions,
    document_log_likelihood,
    token_log_likelihood,
    topic_posterior,
    variational_proportions,
)

# Steps of inference per document, and the mean change of its parameters that ends them.
MAX_ITER, TOLERANCE = 100, 1e-3


def proportions(counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool) -> Floats:
    """Shares of topics in documents; `single` where each has one topic."""
    found = pseudo_counts(counts, topics, prior, single)
    return found if single else found / found.sum(axis=1, keepdims=True)


def pseudo_counts(counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool) -> Floats:
    """Dirichlet parameters of shares; probabilities of topics where each document has one."""
    if single:
        return topic_posterior(counts, topics, prior)
    return collapsed_proportions(counts, topics, prior, n_iter=MAX_ITER, tol=TOLERANCE)


def log_likelihoods(counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool) -> Floats:
    """Evidence lower bounds of documents, exact where each has one topic."""
    gamma = None
    if not single:
        gamma = variational_proportions(counts, topics, prior, n_iter=MAX_ITER, tol=TOLERANCE)
    return document_log_likelihood(counts, topics, prior, gamma)


def token_halves(
    counts: sp.csr_matrix, rng: np.random.RandomState
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Put every token into one of two halves by the toss of a coin."""
    first, second = counts.copy(), counts.copy()
    first.data = rng.binomial(counts.data.astype(np.int64), 0.5).astype(np.float64)
    second.data = counts.data - first.data
    for half in (first, second):
        half.eliminate_zeros()
    return first, second


def completion_log_likelihood(counts: sp.csr_matrix, shares: Floats, topics: Floats) -> float:
    """Log-probability of tokens in documents of given shares of topics."""
    return float(token_log_likelihood(counts, shares, topics).sum())
