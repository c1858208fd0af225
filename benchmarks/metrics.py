"""How good topics are: distance to known ones, and perplexity of held-out documents."""

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sktensor_dp.topics.inference import token_halves, variational_dirichlet

__all__ = [
    "completion_perplexity",
    "fold_in_perplexity",
    "halves",
    "matched_error",
    "token_logarithms",
]

Floats = NDArray[np.float64]


def matched_error(found: Floats, true: Floats) -> float:
    """Mean total variation between topics, matched one to one; a missing topic counts 1."""
    distances = 0.5 * np.abs(found[:, None, :] - true[None]).sum(axis=2)
    rows, columns = linear_sum_assignment(distances)
    missing = len(true) - len(rows)
    return float((distances[rows, columns].sum() + missing) / len(true))


def fold_in_perplexity(X: sp.csr_matrix, topics: Floats, alpha0: float = 1.0) -> float:
    """Perplexity of documents by the proportions inferred from the same documents."""
    return _perplexity(X, topics, _proportions(X, topics, alpha0))


def completion_perplexity(
    seen: sp.csr_matrix, unseen: sp.csr_matrix, topics: Floats, alpha0: float = 1.0
) -> float:
    """Perplexity of one half of each document by the proportions of the other."""
    return _perplexity(unseen, topics, _proportions(seen, topics, alpha0))


def token_logarithms(X: sp.csr_matrix, frequencies: Floats) -> float:
    """Mean negative logarithm of word frequencies at the tokens that completion scores."""
    counts = sp.csr_matrix(X, dtype=np.float64)
    _, unseen = token_halves(counts, np.random.RandomState(0))
    return -float(unseen.data @ np.log(frequencies[unseen.indices])) / float(unseen.sum())


def halves(X: sp.csr_matrix, rng: np.random.Generator) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Put every token into one of two halves by the toss of a coin."""
    X = X.astype(float, copy=True)
    X.sum_duplicates()
    seen, unseen = X.copy(), X.copy()
    seen.data = rng.binomial(X.data.astype(np.int64), 0.5).astype(float)
    unseen.data = X.data - seen.data
    for half in (seen, unseen):
        half.eliminate_zeros()
    return seen, unseen


def _proportions(X: sp.csr_matrix, topics: Floats, alpha0: float) -> Floats:
    """Mean of the variational posterior at fixed topics, the same for every model."""
    prior = np.full(len(topics), alpha0 / len(topics))
    gamma = variational_dirichlet(X.astype(float), topics, prior, n_iter=100, tol=1e-3)
    return gamma / gamma.sum(axis=1, keepdims=True)


def _perplexity(X: sp.csr_matrix, topics: Floats, proportions: Floats) -> float:
    coordinates = X.tocoo()
    by_word = np.ascontiguousarray(topics.T)
    probability = np.einsum("ij,ij->i", proportions[coordinates.row], by_word[coordinates.col])
    return math.exp(-float(coordinates.data @ np.log(probability)) / float(X.sum()))
