"""Proportions of many documents, integrated out, and what they say of words: each as if alone.

Proofs: docs/proofs/held_out_scores.md.
"""

import numpy as np
import scipy.sparse as sp

from sktensor_dp.statistics.batches import Space, columns, run_in_batches
from sktensor_dp.statistics.counts import CountChunk
from sktensor_dp.tensor.arrays import Floats, Singles

# Least probability of a word: logarithms and quotients stay finite where it has none.
TINY = 1e-30
# Least share of the largest probability that a word has in any topic, and least prior: their
# product does not underflow, so that no quotient is 0 / 0.
LEAST_SHARE, LEAST_PRIOR = 1e-15, 1e-20


def collapsed_shares(chunk: CountChunk, topics: Floats, prior: Floats, n_iter: int) -> Singles:
    """Shares of topics in each document, of the words of a chunk (CVB0).

    As :func:`sktensor_dp.topics.inference.collapsed_proportions`, in single precision.
    """
    order, counts = chunk.by_words
    steps = _Steps(counts, topics, np.maximum(prior, LEAST_PRIOR), n_iter)
    run_in_batches(steps.batch, counts, len(prior))
    shares = np.empty_like(steps.shares)
    shares[order] = steps.shares
    return shares


def log_mixtures(chunk: CountChunk, topics: Floats, over: Floats, shares: Floats) -> Floats:
    """Log-probability of each document's words under its shares, over other probabilities."""
    order, counts = chunk.by_words
    ratios = np.maximum(topics, TINY) / np.maximum(over, TINY)
    sums = _Sums(counts, ratios, shares[order])
    run_in_batches(sums.batch, counts, len(topics))
    found = np.empty_like(sums.found)
    found[order] = sums.found
    return found


class _Steps:
    """Shares of a chunk's documents, each batch of which is filled in by one thread."""

    # Rules that keep a document's numbers its own: batches.py.

    def __init__(self, counts: sp.csr_matrix, topics: Floats, prior: Floats, n_iter: int) -> None:
        self._counts, self._n_iter = counts, n_iter
        topics = np.maximum(topics, TINY)
        # A factor of a word's own changes nothing: the largest is 1. Last is a word of no topic.
        self._own = np.zeros((len(topics), topics.shape[1] + 1), dtype=np.float32)
        self._own[:, :-1] = np.maximum(topics / topics.max(axis=0), LEAST_SHARE)
        self._prior = prior.astype(np.float32)[:, None]
        equal = (prior / prior.sum()).astype(np.float32)
        self.shares = np.tile(equal, (counts.shape[0], 1))

    def batch(self, batch: slice, space: Space) -> None:
        """Work on one batch."""
        counts, words, _ = columns(self._counts, batch)
        words[counts == 0] = self._own.shape[1] - 1
        (longest, width), k = counts.shape, len(self._prior)
        own, of_tokens = (space.take(name, (k, longest, width)) for name in ("own", "of_tokens"))
        np.take(self._own, words, axis=1, out=own, mode="clip")
        sums, current = space.take("sums", counts.shape), space.take("current", (k, width))
        for step in range(self._n_iter):
            if step == 0:
                np.multiply(own, self._prior[:, None], out=of_tokens)
            else:
                # Counts are 1 or more and all terms 0 or more: the sum is no less than any of
                # them, rounded as it is, and what is left no less than the prior.
                np.subtract(current[:, None], of_tokens, out=of_tokens)
                of_tokens += self._prior[:, None]
                of_tokens *= own
            np.add.reduce(of_tokens, axis=0, out=sums)
            np.maximum(sums, np.float32(TINY), out=sums)
            of_tokens *= np.reciprocal(sums, out=sums)
            np.einsum("kln,ln->kn", of_tokens, counts, out=current)
        current += self._prior
        current /= np.add.reduce(current, axis=0)
        self.shares[batch] = current[:, : batch.stop - batch.start].T


class _Sums:
    """Log-probabilities of a chunk's documents, each batch of which one thread fills in."""

    def __init__(self, counts: sp.csr_matrix, ratios: Floats, shares: Floats) -> None:
        self._counts, self._shares = counts, np.ascontiguousarray(shares, dtype=np.float32)
        self._ratios = np.ascontiguousarray(ratios, dtype=np.float32)
        self.found = np.zeros(counts.shape[0])

    def batch(self, batch: slice, space: Space) -> None:
        """Work on one batch."""
        counts, words, _ = columns(self._counts, batch)
        (longest, width), k, n = counts.shape, len(self._ratios), batch.stop - batch.start
        own, shares = space.take("own", (k, longest, width)), space.take("shares", (k, width))
        np.take(self._ratios, words, axis=1, out=own, mode="clip")
        shares[:, :n], shares[:, n:] = self._shares[batch].T, np.float32(1 / k)
        mixtures = np.einsum("kln,kn->ln", own, shares).astype(np.float64)
        terms = np.log(mixtures, out=mixtures)
        terms *= counts
        self.found[batch] = np.add.reduce(terms, axis=0)[:n]
