"""Documents drawn from a topic model."""

import numpy as np
import scipy.sparse as sp

from sktensor_dp.tensor.arrays import Floats, Integers


def drawn_shares(weights: Floats, concentration: float, n: int, rng: np.random.Generator) -> Floats:
    """Draw shares (n, k) of topics in documents; with `concentration` 0 each has one topic."""
    weights = weights / weights.sum()
    if concentration > 0:
        return rng.dirichlet(concentration * weights, size=n)
    return np.eye(len(weights))[rng.choice(len(weights), size=n, p=weights)]


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
