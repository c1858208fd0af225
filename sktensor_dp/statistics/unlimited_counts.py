"""Expected counts where nothing limits a document: as fast as may be, in whatever order.

Without a limit there is no noise, and a document's digits may depend on the batch it is in. So
rows of topics are taken whole, and documents are multiplied by what a linear algebra library has.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.batches import Space, filled_rows, run_in_batches
from sktensor_dp.statistics.counts import CountChunk
from sktensor_dp.statistics.row_chunks import rows_of
from sktensor_dp.tensor.arrays import Floats, Singles
from sktensor_dp.tensor.same_shape import of_same_shape

# Numbers of topics at their own words that one batch holds: they stay in the cache of a core.
BATCH_NUMBERS = 2**18
# Products of one document at a time pay from so many numbers that it has; below, documents are
# the last axis in memory. Of one with more words than this many times the topics, words are.
FEW_NUMBERS, LONG = 500, 3
# Of documents and topics, that a batch works in.
ARRAYS = ("gamma", "moved", "expected", "spare", "prior", "least")
# Documents whose counts are added up in single precision before they are in double.
ROWS = 2**11
# exp(psi(y + 1 / 2)) = y + y / (this y^2 + this), for y >= 1 / 2, with a relative error of .00041:
# the two numbers whose largest error is least.
SQUARED, CORRECTION = np.float32(25.23), np.float32(1.859)
# exp of it is the least proportion, of a topic that has a fortieth of a token: products with
# topics stay normal numbers, which are much faster than those below.
LEAST_EXPONENT = np.float32(-40)
LEAST_PROBABILITY = 1e-30
# Then no count over what the least proportion makes of this overflows.
LEAST_TOPIC = np.float32(1e-12)


def counts_of_one_topic(chunk: CountChunk, topics: Floats, weights: Floats) -> Floats:
    """Sum over documents of one topic each; (n_features, n_components)."""
    order, counts = chunk.by_words
    log_topics = np.log(np.maximum(topics.T, LEAST_PROBABILITY)).astype(np.float32)
    posterior = counts @ log_topics
    posterior += np.log(np.maximum(weights, LEAST_PROBABILITY)).astype(np.float32)
    posterior -= posterior.max(axis=1, keepdims=True)
    np.exp(posterior, out=posterior)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return _summed(chunk, counts, posterior, order)


def counts_of_mixtures(chunk: CountChunk, topics: Singles, prior: Singles, n_iter: int) -> Floats:
    """Sum over documents that mix topics, by mean field; (n_features, n_components).

    To be multiplied by the topics. Steps are those of
    :func:`sktensor_dp.statistics.mean_field.mean_field`.
    """
    order, counts = chunk.by_words
    steps = _Steps(counts, topics, prior.ravel(), n_iter)
    run_in_batches(steps.batch, counts, len(topics), BATCH_NUMBERS)
    return _summed(chunk, of_same_shape(counts, steps.ratios), steps.expected, order)


def _summed(
    chunk: CountChunk, values: sp.csr_matrix, shares: Singles, order: NDArray[np.intp]
) -> Floats:
    """``values.T @ shares``, every row counted as a part of its unit."""
    if not chunk.units.are_rows:
        shares *= chunk.units.shares[order, None].astype(np.float32)
    total = np.zeros((values.shape[1], shares.shape[1]))
    for start in range(0, len(shares), ROWS):
        rows = slice(start, min(start + ROWS, len(shares)))
        total += rows_of(values, rows).T @ shares[rows]
    return total


class _Steps:
    """Arrays of a chunk's documents, each batch of which is filled in by one thread."""

    # Axes are documents, words and topics, in whatever order memory has them.

    def __init__(self, counts: sp.csr_matrix, topics: Singles, prior: Singles, n_iter: int) -> None:
        self._counts, self._prior, self._n_iter = counts, prior, n_iter
        self._topics = np.maximum(topics, LEAST_TOPIC)
        self._by_word = np.ascontiguousarray(self._topics.T)
        self.expected = np.zeros((counts.shape[0], len(prior)), dtype=np.float32)
        self.ratios = np.zeros(counts.nnz, dtype=np.float32)

    def batch(self, batch: slice, space: Space) -> None:
        """Work on one batch."""
        counts, words, used = filled_rows(self._counts, batch)
        (n, longest), k = counts.shape, len(self._prior)
        few = longest * k < FEW_NUMBERS
        own = self._at_own_words(words, few, space)

        def taken(name: str, *shape: int) -> Singles:
            return space.take(name, shape[::-1]).T if few else space.take(name, shape)

        ratios = taken("ratios", n, longest)
        gamma, moved, expected, spare, prior, least = (taken(name, n, k) for name in ARRAYS)
        prior[...], least[...] = self._prior, LEAST_EXPONENT
        expected[...] = np.float32(1)
        if (self._prior != self._prior[0]).any():  # proportions begin even under an even prior
            np.add(prior, counts.sum(axis=1, keepdims=True) / np.float32(k), out=gamma)
            _exp_digamma(gamma, expected, spare, least)
        for step in range(self._n_iter + 1):
            _mixed(own, expected, ratios, few)
            np.divide(counts, ratios, out=ratios)
            if step == self._n_iter:
                break
            _shared(own, ratios, moved, few)
            moved *= expected
            moved += prior
            if 0 < step < self._n_iter - 1:  # as far again, half-way to the prior at most
                np.add(moved, prior, out=spare)
                spare *= np.float32(0.5)
                moved += moved
                moved -= gamma
                np.maximum(moved, spare, out=moved)
            gamma, moved = moved, gamma
            _exp_digamma(gamma, expected, spare, least)
        self.expected[batch] = expected
        stored = slice(self._counts.indptr[batch.start], self._counts.indptr[batch.stop])
        self.ratios[stored] = ratios.ravel() if used is None else ratios[used]

    def _at_own_words(self, words: NDArray[np.integer], few: bool, space: Space) -> Singles:
        """Topics at the words of each document; the last axis in memory is a long one."""
        (n, longest), k = words.shape, len(self._prior)
        if few:
            own = space.take("own", (k, longest, n))
            np.take(self._topics, words.T, axis=1, out=own, mode="clip")
            return own.T
        if longest > LONG * k:
            own = space.take("own", (k, n, longest))
            np.take(self._topics, words, axis=1, out=own, mode="clip")
            return own.transpose(1, 2, 0)
        own = space.take("own", (n, longest, k))
        np.take(self._by_word, words, axis=0, out=own, mode="clip")
        return own


def _mixed(own: Singles, expected: Singles, out: Singles, few: bool) -> None:
    """What the proportions of each document make of its words."""
    if few:
        np.einsum("nlk,nk->nl", own, expected, out=out)
    else:
        np.matmul(own, expected[:, :, None], out=out[:, :, None])


def _shared(own: Singles, ratios: Singles, out: Singles, few: bool) -> None:
    """The words of each document, added up by topics."""
    if few:
        np.einsum("nlk,nl->nk", own, ratios, out=out)
    else:
        np.matmul(ratios[:, None], own, out=out[:, None])


def _exp_digamma(gamma: Singles, found: Singles, spare: Singles, least: Singles) -> None:
    """``exp(psi(gamma))``, nearly: psi(x) = psi(x + 1) - 1 / x."""
    np.add(gamma, np.float32(0.5), out=found)
    np.multiply(found, found, out=spare)
    spare *= SQUARED
    spare += CORRECTION
    np.divide(found, spare, out=spare)
    found += spare
    np.divide(np.float32(-1), gamma, out=spare)
    # A full array: by a lone number this takes three times as long.
    np.maximum(spare, least, out=spare)
    found *= np.exp(spare, out=spare)
