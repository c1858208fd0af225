"""Posterior topic proportions of many documents: mean field, and integrated out."""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.queries.counts import CountChunk
from sktensor_dp.tensor.arrays import Floats, Singles, of_same_shape, rows_at_once

Indices = NDArray[np.intp]
# Array operations release the interpreter's lock; more threads would wait for memory.
N_THREADS = min(os.cpu_count() or 1, 4)
# Batches below which threads cost more than they gain.
FEWEST_BATCHES = 8
PROPORTIONS = 2**15
# Documents are computed by this many, or some by other instructions than the rest.
LANES = 16
# Least probability of a word in single precision: its square does not underflow, or a
# norm could come out as 0.
TINY = 1e-15
# Its reciprocal is finite in single precision.
LEAST_PRIOR = 1e-30
# exp(psi(y + 1 / 2)) = y + sum_i SERIES[i] y^(-1 - 2 i) for y >= 2.5, with a relative error of
# 1.4e-8: the polynomial whose largest error is least.
SERIES = tuple(map(np.float32, (0.0416648801, -0.00635123769, 0.00267505036)))
# Of topics and documents, that a batch works in.
ARRAYS = ("gamma", "moved", "prior", "expected", "lost", "inverse", "square")
# A proportion is at least exp of this of the largest: products with topics stay normal numbers,
# which are much faster than those below.
LEAST_EXPONENT = np.float32(-50)
# Least probability of a word: logarithms and quotients stay finite where it has none.
LEAST_SUM = 1e-30
# Least share of the largest probability that a word has in any topic, and least prior: their
# product does not underflow, so that no quotient is 0 / 0.
LEAST_SHARE, LEAST_COLLAPSED_PRIOR = 1e-15, 1e-20


def run_in_batches(
    work: Callable[[slice, "Space"], None],
    counts: sp.csr_matrix,
    n_components: int,
    caches: float = 2.0,
) -> None:
    """Work on each batch of documents that are sorted by their numbers of words."""
    # At most 4 MB of singles to a batch, and enough batches for threads, unless they get smaller
    # than 1 MB. Calls on small arrays are slow.
    least, most = rows_at_once(1, 1 / 2), rows_at_once(1, caches)
    room = min(max(counts.nnz * n_components // FEWEST_BATCHES, least), most)
    batches = list(batches_of(np.diff(counts.indptr), n_components, room))

    def run(some: list[slice]) -> None:
        space = Space()
        # A thread does not know what its caller ignores, and warnings are outputs.
        with np.errstate(all="ignore"):
            for batch in some:
                work(batch, space)

    if N_THREADS == 1 or len(batches) < FEWEST_BATCHES:
        run(batches)
    else:
        with ThreadPoolExecutor(N_THREADS) as pool:
            shares = [list(islice(batches, i, None, N_THREADS)) for i in range(N_THREADS)]
            list(pool.map(run, shares))


def batches_of(n_words: NDArray[np.integer], n_components: int, room: int) -> Iterator[slice]:
    """Documents, sorted by their numbers of words, in batches of about as many words."""
    stop, first = len(n_words), int(np.searchsorted(n_words, 1))
    filled = np.concatenate([[0], np.cumsum(n_words, dtype=np.int64)])
    while stop > first:
        longest = int(n_words[stop - 1])
        most = min(room // longest, PROPORTIONS) // n_components
        most = max(most // LANES * LANES, LANES)
        least = max(stop - most, first)
        equal = int(np.searchsorted(n_words, longest))
        if equal <= (least + stop) // 2:
            start = max(equal, least)
        else:
            places = np.arange(least, stop)
            spare = longest * (stop - places) - (filled[stop] - filled[least:stop])
            # Filling shorter documents up with some words is cheaper than another batch.
            start = least + int((spare > rows_at_once(64 * n_components)).sum())
        yield slice(start, stop)
        stop = start


def filled_rows(
    counts: sp.csr_matrix, batch: slice
) -> tuple[Singles, NDArray[np.integer], NDArray[np.bool_] | None]:
    """Counts and words, a row a document, and which are not filled up, if some are."""
    ends = counts.indptr[batch.start : batch.stop + 1]
    stored, per_row = slice(ends[0], ends[-1]), np.diff(ends)
    shape = len(per_row), int(per_row[-1])
    data, words = counts.data[stored], counts.indices[stored]
    if per_row[0] == shape[1]:
        return data.reshape(shape), words.reshape(shape), None
    used = np.arange(shape[1]) < per_row[:, None]
    rows = np.zeros(shape, dtype=data.dtype), np.zeros(shape, dtype=words.dtype)
    rows[0][used], rows[1][used] = data, words
    return *rows, used


def columns(
    counts: sp.csr_matrix, batch: slice
) -> tuple[Singles, NDArray[np.integer], NDArray[np.bool_] | None]:
    """Counts with a column for each document."""
    *both, used = filled_rows(counts, batch)
    found = []
    for rows in both:
        n, longest = rows.shape
        found.append(np.zeros((longest, -(-n // LANES) * LANES), dtype=rows.dtype))
        found[-1][:, :n] = rows.T
    return found[0], found[1], used


class Space:
    """Arrays that are used again by the next batch: fresh memory is slow."""

    def __init__(self) -> None:
        self._arrays: dict[str, Singles] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> Singles:
        """Uninitialised array of a shape."""
        size = math.prod(shape)
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size, dtype=np.float32)
        return self._arrays[name][:size].reshape(shape)


@dataclass(frozen=True, eq=False)
class MeanField:
    """State of the mean field steps of a chunk's documents."""

    # (n_documents,): documents by their number of words; rows of all else are in this order.
    order: Indices
    # (n_documents, n_components): proportions of topics, of which the largest is 1.
    expected: Singles
    # (n_documents, n_features): counts divided by what the proportions make of their word.
    ratios: sp.csr_matrix
    # (n_documents,): Euclidean norm of ``ratios * expected @ topics``; infinity where nobody asked.
    norms: Floats


def single_precision(topics: Floats, prior: Floats) -> tuple[Singles, Singles]:
    """Topics, and the prior as a column, away from underflow."""
    singles = np.maximum(topics, TINY).astype(np.float32)
    return np.ascontiguousarray(singles), np.maximum(prior, LEAST_PRIOR).astype(np.float32)[:, None]


def mean_field(
    chunk: CountChunk,
    topics: Singles,
    prior: Singles,
    n_iter: int,
    asked: NDArray[np.bool_],
    weights: Singles | None = None,
) -> MeanField:
    """Steps from equal proportions, and norms of the documents that are asked for.

    All but the first and the last go twice as far as mean field does, but from there no more than
    half the way to the prior: whoever is near it hardly comes back. Seven or thirteen of them come
    as near to the fixed point as ten or twenty others.
    In the end, ratios are multiplied by the weights of words, if there are any.
    """
    order, counts = chunk.by_words
    steps = _MeanFieldSteps(
        counts, topics, prior, n_iter, chunk.lengths[order], asked[order], weights
    )
    run_in_batches(steps.batch, counts, len(prior))
    ratios = of_same_shape(counts, steps.ratios)
    return MeanField(order, steps.expected, ratios, steps.norms)


class _MeanFieldSteps:
    """Arrays of a chunk's documents, each batch of which is filled in by one thread."""

    # Each document is computed by itself: see `LANES`.

    def __init__(
        self,
        counts: sp.csr_matrix,
        topics: Singles,
        prior: Singles,
        n_iter: int,
        lengths: Floats,
        asked: NDArray[np.bool_],
        weights: Singles | None,
    ) -> None:
        self._counts, self._topics, self._prior = counts, topics, prior
        self._ends = counts.indptr
        self._n_iter, self._asked, self._weights = n_iter, asked, weights
        self._shares = (lengths / len(prior)).astype(np.float32)
        # Under an even prior the first proportions are even, and as good as 1. Of each word its
        # topics are added up once, one after the other.
        self._evenly = np.add.reduce(topics) if n_iter and (prior == prior[0]).all() else None
        self.expected = np.zeros((counts.shape[0], len(prior)), dtype=np.float32)
        self.ratios = np.zeros(counts.nnz, dtype=np.float32)
        self.norms = np.full(counts.shape[0], np.inf)

    def batch(self, batch: slice, space: Space) -> None:
        """Work on one batch."""
        counts, words, used = columns(self._counts, batch)
        n, (longest, width), k = batch.stop - batch.start, counts.shape, len(self._prior)
        own = space.take("own", (k, longest, width))
        np.take(self._topics, words, axis=1, out=own, mode="clip")
        ratios = space.take("ratios", counts.shape)
        gamma, moved, prior, *arrays = (space.take(name, (k, width)) for name in ARRAYS)
        prior[...] = self._prior
        if self._evenly is not None:
            np.divide(counts, np.take(self._evenly, words), out=ratios)
            np.einsum("kln,ln->kn", own, ratios, out=gamma)
            gamma += prior
        else:
            gamma[...] = prior
            gamma[:, :n] += self._shares[batch]
        for step in range(self._evenly is not None, self._n_iter + 1):
            expected = exp_digamma(gamma, *arrays, moved)
            if step == self._n_iter:
                expected /= expected.max(axis=0)
            np.einsum("kln,kn->ln", own, expected, out=ratios)
            if step == self._n_iter:  # before, the largest is 2.5 or more
                np.maximum(ratios, np.float32(TINY), out=ratios)
            np.divide(counts, ratios, out=ratios)
            if step < self._n_iter:
                np.einsum("kln,ln->kn", own, ratios, out=moved)
                moved *= expected
                moved += prior
                if 0 < step < self._n_iter - 1:  # as far again
                    nearer = np.add(moved, prior, out=arrays[-1])
                    nearer *= np.float32(0.5)
                    moved += moved
                    moved -= gamma
                    np.maximum(moved, nearer, out=moved)
                gamma, moved = moved, gamma
        if self._weights is not None:
            ratios *= np.take(self._weights, words)
        self.expected[batch] = expected[:, :n].T
        stored = slice(self._ends[batch.start], self._ends[batch.stop])
        self.ratios[stored] = ratios[:, :n].T.ravel() if used is None else ratios[:, :n].T[used]
        asked = np.flatnonzero(self._asked[batch])
        if len(asked):
            self.norms[batch.start + asked] = _norms(own, expected, ratios, asked)


def exp_digamma(gamma: Singles, *space: Singles) -> Singles:
    """``exp(psi(gamma))`` up to a factor for each column, in the first of five more arrays."""
    # psi(x) = psi(y + 1 / 2) - 1 / x - 1 / (x + 1) - 1 / (x + 2), y = x + 5 / 2. The factor makes
    # the last three terms 0 where they are least, so that the largest value is 2.5 or more.
    value, lost, inverse, square, series = space
    np.add(gamma, np.float32(2), out=lost)
    lost *= gamma
    np.divide(np.float32(2), lost, out=lost)
    lost += np.float32(3)
    np.add(gamma, np.float32(1), out=value)
    lost /= value
    np.subtract(np.minimum.reduce(lost), lost, out=lost)
    np.maximum(lost, LEAST_EXPONENT, out=lost)
    np.exp(lost, out=lost)
    np.add(gamma, np.float32(2.5), out=value)
    np.reciprocal(value, out=inverse)
    np.multiply(inverse, inverse, out=square)
    np.multiply(square, SERIES[2], out=series)
    series += SERIES[1]
    series *= square
    series += SERIES[0]
    series *= inverse
    value += series
    value *= lost
    return value


def _norms(own: Singles, expected: Singles, ratios: Singles, asked: Indices) -> Floats:
    """Euclidean norms of ``ratios * expected * own``, in the columns that are asked for."""
    # Columns are repeated up to a full number of lanes. They are taken, not indexed: that may
    # change the order of memory, and with it that of sums.
    columns = np.resize(asked, -(-len(asked) // LANES) * LANES)
    of_topics, of_words = own.take(columns, axis=2), ratios.take(columns, axis=1)
    squares = np.einsum("kln,kn->ln", of_topics**2, expected.take(columns, axis=1) ** 2)
    terms = squares.astype(np.float64) * of_words.astype(np.float64) ** 2
    norms: Floats = np.sqrt(terms.sum(axis=0)[: len(asked)])
    return norms


def collapsed_shares(chunk: CountChunk, topics: Floats, prior: Floats, n_iter: int) -> Singles:
    """Shares of topics in each document, of the words of a chunk (CVB0).

    As :func:`sktensor_dp.topics.inference.collapsed_proportions`, in single precision.
    """
    order, counts = chunk.by_words
    steps = _CollapsedSteps(counts, topics, np.maximum(prior, LEAST_COLLAPSED_PRIOR), n_iter)
    run_in_batches(steps.batch, counts, len(prior))
    shares = np.empty_like(steps.shares)
    shares[order] = steps.shares
    return shares


def log_mixtures(chunk: CountChunk, topics: Floats, over: Floats, shares: Floats) -> Floats:
    """Log-probability of each document's words under its shares, over other probabilities."""
    order, counts = chunk.by_words
    ratios = np.maximum(topics, LEAST_SUM) / np.maximum(over, LEAST_SUM)
    sums = _Sums(counts, ratios, shares[order])
    run_in_batches(sums.batch, counts, len(topics))
    found = np.empty_like(sums.found)
    found[order] = sums.found
    return found


class _CollapsedSteps:
    """Shares of a chunk's documents, each batch of which is filled in by one thread."""

    # Each document is computed by itself: see `LANES`.

    def __init__(self, counts: sp.csr_matrix, topics: Floats, prior: Floats, n_iter: int) -> None:
        self._counts, self._n_iter = counts, n_iter
        topics = np.maximum(topics, LEAST_SUM)
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
            np.maximum(sums, np.float32(LEAST_SUM), out=sums)
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
