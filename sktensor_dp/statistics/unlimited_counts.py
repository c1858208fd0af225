"""Expected counts where nothing limits a document: as fast as may be, in whatever order.

Without a limit there is no noise, and a document's digits may depend on the batch it is in. So
rows of topics are taken whole, and documents are multiplied by what a linear algebra library has.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.batches import Space, run_in_batches
from sktensor_dp.statistics.counts import CountChunk
from sktensor_dp.statistics.mean_field import mean_field
from sktensor_dp.statistics.row_chunks import rows_of
from sktensor_dp.tensor.arrays import Floats, Singles
from sktensor_dp.tensor.same_shape import of_same_shape

# Numbers of topics at their own words that one batch holds: they stay in the cache of a core.
BATCH_NUMBERS = 2**18
# Products of one document pay from so many numbers that it has on average; below, those of many
# documents at once are faster.
FEW_NUMBERS = 250
# Documents whose counts are added up in single precision before they are in double.
ROWS = 2**11
# exp(psi(y + 1 / 2)) = y + y / (24 y^2 + this), for y >= 1 / 2, with a relative error of .0014.
CORRECTION = np.float32(2.24)
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
    if counts.nnz * len(topics) < FEW_NUMBERS * counts.shape[0]:
        nobody = np.zeros(len(order), dtype=bool)
        field = mean_field(chunk, topics, prior, n_iter, nobody)
        return _summed(chunk, field.ratios, field.expected, order)
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

    def __init__(self, counts: sp.csr_matrix, topics: Singles, prior: Singles, n_iter: int) -> None:
        self._counts, self._prior, self._n_iter = counts, prior, n_iter
        self._by_word = np.maximum(topics.T, LEAST_TOPIC, order="C")
        self.expected = np.zeros((counts.shape[0], len(prior)), dtype=np.float32)
        self.ratios = np.zeros(counts.nnz, dtype=np.float32)

    def batch(self, batch: slice, space: Space) -> None:
        """Work on one batch."""
        counts, words, used = _filled(self._counts, batch)
        (n, longest), k = counts.shape, len(self._prior)
        own, ratios = space.take("own", (n, longest, k)), space.take("ratios", (n, 1, longest))
        mixtures = ratios.reshape(n, longest, 1)
        np.take(self._by_word, words, axis=0, out=own, mode="clip")
        gamma, moved, expected, spare, prior = (space.take(name, (n, k)) for name in "gmesp")
        prior[...] = self._prior
        expected[...] = np.float32(1)  # proportions begin evenly
        for step in range(self._n_iter + 1):
            np.matmul(own, expected[:, :, None], out=mixtures)
            np.divide(counts, ratios[:, 0], out=ratios[:, 0])
            if step == self._n_iter:
                break
            np.matmul(ratios, own, out=moved[:, None])
            moved *= expected
            moved += prior
            if 0 < step < self._n_iter - 1:  # as far again, half-way to the prior at most
                np.add(moved, prior, out=spare)
                spare *= np.float32(0.5)
                moved += moved
                moved -= gamma
                np.maximum(moved, spare, out=moved)
            gamma, moved = moved, gamma
            _exp_digamma(gamma, expected, spare)
        self.expected[batch] = expected
        stored = slice(self._counts.indptr[batch.start], self._counts.indptr[batch.stop])
        self.ratios[stored] = ratios[:, 0].ravel() if used is None else ratios[:, 0][used]


def _filled(
    counts: sp.csr_matrix, batch: slice
) -> tuple[Singles, NDArray[np.integer], NDArray[np.bool_] | None]:
    """Counts and words, a row a document, and which are not filled up, if some are."""
    ends = counts.indptr[batch.start : batch.stop + 1]
    stored, per_row = slice(ends[0], ends[-1]), np.diff(ends)
    shape = len(per_row), int(per_row[-1])
    if per_row[0] == shape[1]:
        return counts.data[stored].reshape(shape), counts.indices[stored].reshape(shape), None
    used = np.arange(shape[1]) < per_row[:, None]
    data, words = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=counts.indices.dtype)
    data[used], words[used] = counts.data[stored], counts.indices[stored]
    return data, words, used


def _exp_digamma(gamma: Singles, found: Singles, space: Singles) -> None:
    """``exp(psi(gamma))``, nearly: psi(x) = psi(x + 1) - 1 / x."""
    np.add(gamma, np.float32(0.5), out=found)
    np.multiply(found, found, out=space)
    space *= np.float32(24)
    space += CORRECTION
    np.divide(found, space, out=space)
    found += space
    np.divide(np.float32(-1), gamma, out=space)
    np.maximum(space, LEAST_EXPONENT, out=space)
    found *= np.exp(space, out=space)
