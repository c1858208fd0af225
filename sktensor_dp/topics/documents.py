"""Documents drawn from a topic model."""

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from sktensor_dp.tensor.arrays import Floats, Integers


def drawn_shares(weights: Floats, concentration: float, n: int, rng: np.random.Generator) -> Floats:
    """Draw shares (n, k) of topics in documents; with `concentration` 0 each has one topic."""
    return np.exp(drawn_log_shares(weights, concentration, n, rng))


def drawn_log_shares(
    weights: Floats, concentration: float, n: int, rng: np.random.Generator
) -> Floats:
    """Draw logarithms (n, k) of shares of topics in documents, also of those that round to 0."""
    weights, size = weights / weights.sum(), (n, len(weights))
    if concentration == 0:
        of_one = np.arange(len(weights)) == rng.choice(len(weights), (n, 1), p=weights)
        return np.where(of_one, 0.0, -np.inf)
    prior = concentration * weights
    # A gamma variable of shape a is one of shape a + 1, times a uniform one to the power of 1 / a.
    logs = np.log(rng.standard_gamma(prior + 1, size)) - rng.standard_exponential(size) / prior
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))


def drawn_documents(
    topics: Floats, shares: Floats, lengths: int | Integers, rng: np.random.Generator
) -> sp.csr_matrix:
    """Draw counts of documents of these `shares` (n, k) of topics, and `lengths` in tokens.

    Rows of `topics` (k, d) are in proportion to probabilities of words.
    """
    (n, _), d = shares.shape, topics.shape[1]
    tokens = rng.multinomial(lengths, shares)
    documents = [np.repeat(np.arange(n), of_topic) for of_topic in tokens.T]
    words = [
        rng.choice(d, size=len(rows), p=topic / topic.sum())
        for rows, topic in zip(documents, topics, strict=True)
    ]
    places = np.concatenate(documents), np.concatenate(words)
    return sp.csr_matrix((np.ones(len(places[0])), places), (n, d))
