"""Mean-field topic proportions in single precision: the E step of :class:`ExpectedCounts`."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from sktensor_dp.data.counts import CountChunk
from sktensor_dp.tensor.arrays import Floats, Integers, Singles, of_same_shape, rows_at_once

# Number of threads: array operations release the interpreter's lock, but more threads would wait
# for memory.
N_THREADS = min(os.cpu_count() or 1, 4)
# Batches have a multiple of this many documents, so that all go through the same vector
# instructions.
LANES = 16
# Least probability of a word in single precision: its square does not underflow, and no norm
# becomes 0.
TINY = 1e-15
# Least prior: its reciprocal is finite in single precision.
LEAST_PRIOR = 1e-30
# exp(psi(y + 1 / 2)) = y + sum_i SERIES[i] y^(-1 - 2 i) for y >= 2.5, with a relative error of
# 1.4e-8: the polynomial whose largest error is least.
SERIES = tuple(map(np.float32, (0.0416648801, -0.00635123769, 0.00267505036)))


def single_precision(topics: Floats, prior: Floats) -> tuple[Singles, Singles]:
    """Topics and the prior as a column in float32, raised so that nothing underflows."""
    singles = np.maximum(topics, TINY).astype(np.float32)
    return np.ascontiguousarray(singles), np.maximum(prior, LEAST_PRIOR).astype(np.float32)[:, None]


class MeanField:
    """Mean-field inference of topic proportions for the documents of a chunk."""

    # All steps but the first and last are over-relaxed by a factor of 2, at most half-way to the
    # prior: seven come as near to the fixed point as ten plain ones. Each document is computed
    # independently of the others, to the last bit (see `LANES`).

    def __init__(
        self,
        chunk: CountChunk,
        topics: Singles,
        prior: Singles,
        n_iter: int,
        needs_norm: NDArray[np.bool_],  # (n,): documents whose norm is computed
        weights: Singles | None = None,
    ) -> None:
        # Documents sorted by their number of words: rows of arrays up to `norms` have this order.
        self.order, counts = chunk.by_words
        self._counts, self._topics = counts, topics
        self._prior = np.broadcast_to(prior, (len(topics), len(self.order)))[:, self.order]
        self._n_iter = n_iter
        self._needs_norm = needs_norm[self.order]
        self._weights = weights
        # Tokens of each document, spread evenly over topics: the first step starts from these.
        self._even_counts = (chunk.lengths[self.order] / len(prior)).astype(np.float32)
        # Proportions of topics, scaled so that the largest is 1; weighted counts over the mixture
        # of topics; and Euclidean norms of the arrays ``ratios_w expected_k topics_kw``.
        self.expected = np.zeros((counts.shape[0], len(prior)), dtype=np.float32)
        self.ratios = of_same_shape(counts, np.zeros(counts.nnz, dtype=np.float32))
        self.norms = np.full(counts.shape[0], np.inf)
        # In the order of the chunk: Dirichlet parameters (k, n), log-likelihoods of tokens under
        # mixtures whose largest proportion is 1, and numbers of tokens.
        self.gamma = np.broadcast_to(prior, self._prior.shape).copy()
        self._log_likelihoods = np.zeros(len(self.order), np.float32)
        self._lengths = chunk.lengths
        run_in_batches(self._work, counts, len(prior))

    def _work(self, batch: slice) -> None:
        """Run all mean-field steps for one batch of documents and store their results."""
        # Number of work arrays (topics by documents) of a batch: posterior parameters before and
        # after a step, priors, and four more for `exp_digamma`.
        n_arrays = 7
        counts, words, used = columns(self._counts, batch)
        n, k = batch.stop - batch.start, len(self._prior)
        topics_of_words = np.take(self._topics, words, axis=1)
        ratios = np.empty_like(counts)
        gamma, moved, prior, *arrays = np.empty((n_arrays, k, counts.shape[1]), dtype=np.float32)
        prior[...] = 1.0
        prior[:, :n] = self._prior[:, batch]
        gamma[...] = prior
        gamma[:, :n] += self._even_counts[batch]
        # A step: gamma_k = prior_k + e_k sum_w topic_kw count_w / sum_j e_j topic_jw, e_k exp(psi(
        # gamma_k)) up to a common factor.
        for step in range(self._n_iter):
            expected = exp_digamma(gamma, *arrays, moved)  # `moved` serves as a fifth work array
            # The largest of `expected` is 2.5 or more: no sum is near 0.
            np.einsum("kln,kn->ln", topics_of_words, expected, out=ratios)
            np.divide(counts, ratios, out=ratios)
            np.einsum("kln,ln->kn", topics_of_words, ratios, out=moved)
            moved *= expected
            moved += prior
            # Over-relaxed (see the class): max(2 moved - gamma, (moved + prior) / 2).
            if 0 < step < self._n_iter - 1:
                nearer = np.add(moved, prior, out=arrays[-1])
                nearer *= np.float32(0.5)
                moved += moved
                moved -= gamma
                np.maximum(moved, nearer, out=moved)
            gamma, moved = moved, gamma
        # Results are by the last parameters, with the largest of `expected` 1.
        expected = exp_digamma(gamma, *arrays, moved)
        expected /= expected.max(axis=0)
        np.einsum("kln,kn->ln", topics_of_words, expected, out=ratios)
        np.maximum(ratios, np.float32(TINY), out=ratios)
        fit = np.einsum("ln,ln->n", counts, np.log(ratios))[:n]
        self._log_likelihoods[self.order[batch]] = fit
        np.divide(counts, ratios, out=ratios)
        if self._weights is not None:
            ratios *= np.take(self._weights, words)
        self.expected[batch] = expected[:, :n].T
        # `gamma` and `_log_likelihoods` are in the order of the chunk, others by number of words.
        self.gamma[:, self.order[batch]] = gamma[:, :n]
        ends = self._counts.indptr
        self.ratios.data[ends[batch.start] : ends[batch.stop]] = ratios.T[:n][used]
        chosen = np.flatnonzero(self._needs_norm[batch])
        if len(chosen):
            self.norms[batch.start + chosen] = _norms(topics_of_words, expected, ratios, chosen)

    def evidence(self) -> Floats:
        """Lower bound (n,) on each document's log-likelihood under a prior common to all."""
        gamma, prior = self.gamma.astype(np.float64), self._prior[:, :1].astype(np.float64)
        # Built-in sums add topics one after the other, whatever the number of documents.
        total = sum(gamma)
        logs = psi(gamma) - psi(total)
        bound = sum((prior - gamma) * logs + gammaln(gamma) - gammaln(prior))
        bound += gammaln(sum(prior)) - gammaln(total)
        # The likelihoods are of mixtures whose largest proportion is 1: each token gets it back.
        return np.asarray(bound + self._log_likelihoods + self._lengths * logs.max(axis=0))


def exp_digamma(gamma: Singles, *space: Singles) -> Singles:
    """``exp(psi(gamma))``, each column up to a factor, in the first of five work arrays."""
    # Least exponent of the subtracted terms: proportions, and products with topics, stay normal
    # numbers, which are much faster than subnormal ones.
    least_exponent = np.float32(-50)
    # psi(x) = psi(y + 1 / 2) - 1 / x - 1 / (x + 1) - 1 / (x + 2), y = x + 5 / 2. The last three
    # terms add up to (2 / (x (x + 2)) + 3) / (x + 1); a factor per column subtracts their least
    # sum, so that the largest result is 2.5 or more.
    value, terms, inverse, square, series = space
    np.add(gamma, np.float32(2), out=terms)
    terms *= gamma
    np.divide(np.float32(2), terms, out=terms)
    terms += np.float32(3)
    np.add(gamma, np.float32(1), out=value)
    terms /= value
    np.subtract(np.minimum.reduce(terms), terms, out=terms)
    np.maximum(terms, least_exponent, out=terms)
    np.exp(terms, out=terms)
    # Times exp(psi(y + 1 / 2)), by Horner's rule in y^-2.
    np.add(gamma, np.float32(2.5), out=value)
    np.reciprocal(value, out=inverse)
    np.multiply(inverse, inverse, out=square)
    np.multiply(square, SERIES[2], out=series)
    series += SERIES[1]
    series *= square
    series += SERIES[0]
    series *= inverse
    value += series
    value *= terms
    return value


def _norms(topics: Singles, expected: Singles, ratios: Singles, chosen: Integers) -> Floats:
    """Norms of ``ratios_w expected_k topics_kw`` for the documents (columns) `chosen`."""
    # Repeat columns up to a multiple of `LANES`. `take` keeps the order of memory; indexing may
    # change it, and with it the order of sums.
    columns = np.resize(chosen, -(-len(chosen) // LANES) * LANES)
    of_topics, of_words = topics.take(columns, axis=2), ratios.take(columns, axis=1)
    squares = np.einsum("kln,kn->ln", of_topics**2, expected.take(columns, axis=1) ** 2)
    terms = squares.astype(np.float64) * of_words.astype(np.float64) ** 2
    return np.asarray(np.sqrt(terms.sum(axis=0)[: len(chosen)]))


def run_in_batches(work: Callable[[slice], None], counts: sp.csr_matrix, n_components: int) -> None:
    """Call `work` on batches of documents sorted by their number of words, in several threads."""
    # Fewest batches for which threads gain more than they cost, and most proportions in a batch.
    fewest_batches, most_proportions = 8, 2**15
    # `rows_at_once` counts doubles, and products are float32: as many as two caches hold of doubles
    # fill one. There are batches enough for the threads, none small, as calls on these are slow.
    fewest, most = rows_at_once(1, 1 / 2), rows_at_once(1, 2)
    most_products = min(max(counts.nnz * n_components // fewest_batches, fewest), most)
    # Documents are sorted by their number of words: a batch holds as many as its longest allows, in
    # full lanes.
    n_words, batches = np.diff(counts.indptr), []
    stop, first = len(n_words), int(np.searchsorted(n_words, 1))
    while stop > first:
        fits = min(most_products // int(n_words[stop - 1]), most_proportions) // n_components
        start = max(stop - max(fits // LANES * LANES, LANES), first)
        batches.append(slice(start, stop))
        stop = start

    def run(batch: slice) -> None:
        """Call `work` without numpy's warnings, which would tell of the data, in any thread."""
        with np.errstate(all="ignore"):
            work(batch)

    if N_THREADS == 1 or len(batches) < fewest_batches:
        for batch in batches:
            run(batch)
    else:
        with ThreadPoolExecutor(N_THREADS) as pool:
            list(pool.map(run, batches))


def columns(
    counts: sp.csr_matrix, batch: slice
) -> tuple[Singles, NDArray[np.integer], NDArray[np.bool_]]:
    """Counts and words (longest, n_padded), a document per column; mask (n, longest) of words."""
    ends = counts.indptr[batch.start : batch.stop + 1]
    per_row = np.diff(ends)
    n, longest = len(per_row), int(per_row[-1])  # rows are sorted by their number of words
    used = np.arange(longest) < per_row[:, None]
    shape = longest, -(-n // LANES) * LANES
    data, words = np.zeros(shape, counts.dtype), np.zeros(shape, counts.indices.dtype)
    data.T[:n][used] = counts.data[ends[0] : ends[-1]]
    words.T[:n][used] = counts.indices[ends[0] : ends[-1]]
    return data, words, used
