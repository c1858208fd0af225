"""Topic proportions and likelihood of documents under given topics, in blocks of rows.

The E step of a fit is in queries/mean_field.py, in single precision; where documents have one topic
each it is `topic_posterior`.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln, psi, softmax

from sktensor_dp.tensor.arrays import Floats, of_same_shape, rows_at_once

# Keeps logarithms and quotients finite for words that no topic has.
TINY = 1e-30


def row_blocks(X: sp.csr_matrix) -> Iterator[slice]:
    """Yield slices of rows of `X`; 8 numbers for each non-zero of a slice fit into the cache."""
    start, n_rows, nonzeros = 0, X.shape[0], rows_at_once(8)
    while start < n_rows:
        stop = int(np.searchsorted(X.indptr, X.indptr[start] + nonzeros, side="right")) - 1
        stop = min(max(stop, start + 1), n_rows)
        yield slice(start, stop)
        start = stop


def expected_log_proportions(gamma: Floats) -> Floats:
    """Expected logarithms (n, k) of draws from Dirichlet(gamma[i])."""
    return psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))


def _word_probabilities(counts: sp.csr_matrix, weights: Floats, by_word: Floats) -> Floats:
    """Probability (nnz,) of the word of each count in its document's mixture of topics."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    mixture = np.einsum("ij,ij->i", weights[rows], by_word[counts.indices])
    return np.maximum(mixture, TINY)


def variational_dirichlet(
    X: sp.csr_matrix, topics: Floats, prior: Floats, *, n_iter: int, tol: float = 0.0
) -> Floats:
    """Dirichlet parameters (n, k) by mean field (Blei, Ng & Jordan, 2003, eq. 6 and 7).

    A document takes `n_iter` steps, or fewer if its parameters move by less than `tol` on average.
    """
    by_word = np.ascontiguousarray(topics.T)
    gamma = prior + np.asarray(X.sum(axis=1)).reshape(-1, 1) / len(prior)
    for block in row_blocks(X):
        # Documents that have converged are left out of further updates.
        counts, current = X[block], gamma[block]
        open_rows = np.arange(block.start, block.stop)
        for _ in range(n_iter):
            weights = np.exp(expected_log_proportions(current))
            probabilities = _word_probabilities(counts, weights, by_word)
            ratios = of_same_shape(counts, counts.data / probabilities)
            updated = prior + weights * (ratios @ by_word)
            still_moves = np.abs(updated - current).mean(axis=1) >= tol
            gamma[open_rows], current = updated, updated
            if not still_moves.all():
                open_rows, current = open_rows[still_moves], current[still_moves]
                counts = counts[still_moves]
            if open_rows.size == 0:
                break
    return gamma


def collapsed_dirichlet(
    X: sp.csr_matrix, topics: Floats, prior: Floats, *, n_iter: int, tol: float = 0.0
) -> Floats:
    """Dirichlet parameters (n, k) by CVB0 (Asuncion et al., 2009); stops as mean field does."""
    by_word = np.ascontiguousarray(topics.T)
    gamma = np.empty((X.shape[0], topics.shape[0]))
    for block in row_blocks(X):
        gamma[block] = _settle(X[block], prior, by_word, n_iter, tol)
    return gamma


def _settle(
    counts: sp.csr_matrix, prior: Floats, by_word: Floats, n_iter: int, tol: float
) -> Floats:
    """CVB0 updates of a block's Dirichlet parameters, skipping converged documents."""
    # Converged documents are removed from a block once less than this fraction is left.
    least_open = 0.75
    gamma = np.tile(prior, (counts.shape[0], 1))
    open_rows, current = np.arange(counts.shape[0]), gamma.copy()
    # A row for each non-zero of the counts: probabilities of its word, and then of its topic.
    by_count = np.maximum(by_word[counts.indices], TINY)
    posterior = np.zeros_like(by_count)
    lengths, data = np.diff(counts.indptr), counts.data
    rows, token_sums = _rows_and_token_sums(data, lengths)
    still_moves = np.ones(len(lengths), dtype=bool)
    for _ in range(n_iter):
        # Expected counts of a document's topics without this token, and no less than the prior.
        # They are multiplied, in place, by the word's probabilities, and scaled to sum 1.
        others = current[rows]
        others -= posterior
        np.maximum(others, prior, out=others)
        others *= by_count
        others /= np.maximum(np.einsum("ij->i", others), TINY)[:, None]
        posterior = others
        updated = prior + token_sums @ posterior
        gamma[open_rows[still_moves]] = updated[still_moves]
        # Documents that have converged stay as they are, whatever others share their block.
        still_moves &= np.abs(updated - current).mean(axis=1) >= tol
        current = updated
        if np.count_nonzero(still_moves) < least_open * len(still_moves):
            kept = still_moves[rows]
            open_rows, current = open_rows[still_moves], current[still_moves]
            lengths, data = lengths[still_moves], data[kept]
            by_count, posterior = by_count[kept], posterior[kept]
            rows, token_sums = _rows_and_token_sums(data, lengths)
            still_moves = np.ones(len(lengths), dtype=bool)
        if not still_moves.any():
            break
    return gamma


def _rows_and_token_sums(
    data: Floats, lengths: NDArray[np.integer]
) -> tuple[NDArray[np.intp], sp.csr_matrix]:
    """Document of each count (nnz,), and a matrix (n, nnz) that sums over a document's tokens.

    `data` are the counts, and `lengths` (n,) numbers of different words of the documents.
    """
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    layout = (data, np.arange(len(data)), pointers)
    token_sums = sp.csr_matrix(layout, (len(lengths), len(data)))
    return np.repeat(np.arange(len(lengths)), lengths), token_sums


def topic_posterior(X: sp.csr_matrix, topics: Floats, weights: Floats) -> Floats:
    """Probability (n, k) of each topic given each document of one topic."""
    return np.asarray(softmax(_joint_log_likelihood(X, topics, weights), axis=1))


def _joint_log_likelihood(X: sp.csr_matrix, topics: Floats, weights: Floats) -> Floats:
    """Log of ``weights[k] * p(document | topic k)``, without multinomial coefficients."""
    log_topics = np.log(np.maximum(topics.T, TINY))
    return np.asarray(X @ log_topics) + np.log(np.maximum(weights, TINY))


def document_log_likelihood(
    X: sp.csr_matrix, topics: Floats, prior: Floats, gamma: Floats | None
) -> Floats:
    """Log-likelihood (n,) of documents without multinomial coefficients, as for perplexity.

    If `gamma` is None, documents have one topic each, of weights `prior`; else it is a lower bound,
    by proportions from Dirichlet(gamma).
    """
    if gamma is None:
        joint = _joint_log_likelihood(X, topics, prior)
        return np.asarray(np.logaddexp.reduce(joint, axis=1))
    # Less the divergence of Dirichlet(gamma) from the prior.
    log_theta = expected_log_proportions(gamma)
    bound = ((prior - gamma) * log_theta + gammaln(gamma) - gammaln(prior)).sum(axis=1)
    bound += gammaln(prior.sum()) - gammaln(gamma.sum(axis=1))
    return np.asarray(bound + token_log_likelihood(X, np.exp(log_theta), topics))


def token_log_likelihood(X: sp.csr_matrix, weights: Floats, topics: Floats) -> Floats:
    """Log-likelihood (n,) of the tokens of each document under its mixture ``weights @ topics``."""
    by_word, total = np.ascontiguousarray(topics.T), np.empty(X.shape[0])
    for block in row_blocks(X):
        counts = X[block]
        terms = counts.data * np.log(_word_probabilities(counts, weights[block], by_word))
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        total[block] = np.bincount(rows, weights=terms, minlength=counts.shape[0])
    return total


# Limit on steps of inference, and the mean change of a document's parameters at which they stop.
MAX_ITER, TOLERANCE = 100, 1e-3


def proportions(
    counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool, *, normalize: bool = True
) -> Floats:
    """Shares (n, k) of topics in documents; Dirichlet parameters unless `normalize` or `single`."""
    if single:  # each document has one topic: its probabilities
        return topic_posterior(counts, topics, prior)
    gamma = collapsed_dirichlet(counts, topics, prior, n_iter=MAX_ITER, tol=TOLERANCE)
    return gamma / gamma.sum(axis=1, keepdims=True) if normalize else gamma


def log_likelihoods(counts: sp.csr_matrix, topics: Floats, prior: Floats, single: bool) -> Floats:
    """Evidence lower bound (n,) on each document's log-likelihood; exact if each has one topic."""
    gamma = None
    if not single:
        gamma = variational_dirichlet(counts, topics, prior, n_iter=MAX_ITER, tol=TOLERANCE)
    return document_log_likelihood(counts, topics, prior, gamma)


def token_halves(
    counts: sp.csr_matrix, rng: np.random.RandomState
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Split the tokens of `counts` by fair coins into two count matrices of its shape."""
    first, second = counts.copy(), counts.copy()
    first.data = rng.binomial(counts.data.astype(np.int64), 0.5).astype(np.float64)
    second.data = counts.data - first.data
    for half in (first, second):
        half.eliminate_zeros()
    return first, second
