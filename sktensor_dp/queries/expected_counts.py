"""Expected counts of words per topic, the sums of one EM step."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.queries.counts import CountChunk, CountNorm, norms_of_mean_counts
from sktensor_dp.queries.proportions import (
    Space,
    filled_rows,
    mean_field,
    run_in_batches,
    single_precision,
)
from sktensor_dp.queries.query import LIMIT, NORM_SLACK, NonNegative, check_array, check_number
from sktensor_dp.queries.units import rows_of, scale_to, sum_over_rows
from sktensor_dp.tensor.arrays import Floats, Singles, of_same_shape
from sktensor_dp.topics.inference import row_blocks, rows_in, topic_posterior

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
    :func:`sktensor_dp.queries.proportions.mean_field`.
    """
    order, counts = chunk.by_words
    steps = _Steps(counts, topics, prior.ravel(), n_iter)
    run_in_batches(steps.batch, counts, len(topics), caches=1 / 2)
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
    """Expected word probabilities of each document under its proportions."""
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


# Beyond any prior that can be told from an infinite one; sums with counts stay far from
# overflow in single precision, where infinity less infinity is a NaN.
LARGEST_PRIOR = 1e30
# Of what counts of a word are divided by: ratios of counts stay far from overflow.
SCALES = (1e-3, 1e3)
# Rows of topics are distributions up to rounding.
LARGEST_SHARE = 1 + 1e-6


@dataclass(frozen=True, eq=False)
class ExpectedCounts(NonNegative):
    """Sum over documents of the expected counts of each word in each topic."""

    # A document's array has entries c_w p(topic | w, document) >= 0, which sum to its length. It
    # depends on that document and on released values only.

    topics: Floats
    prior: Floats
    single: bool
    limit: float
    order: int = 2
    n_iter: int = 10
    # Each word's counts are divided by its own, before the norm is taken.
    scales: Floats | None = None

    def __post_init__(self) -> None:
        check_array("topics", self.topics, LARGEST_SHARE, least=0.0)
        check_array("the prior", self.prior, LARGEST_PRIOR, least=0.0)
        check_number("the limit", self.limit, LIMIT, infinite=True)
        if self.order not in (1, 2) or not self.n_iter >= 0:
            raise ValueError(
                f"order must be 1 or 2 and n_iter >= 0, got {self.order!r} and {self.n_iter!r}."
            )
        if self.scales is not None:
            check_array("the scales", self.scales, SCALES[1], least=SCALES[0])
            if self.order != 2 or self.scales.shape != self.topics.shape[1:]:
                raise ValueError(
                    "scales are one number for each word, for order 2; got order "
                    f"{self.order!r} and shape {self.scales.shape}."
                )

    def _limited(self) -> tuple[float, int]:
        return self.limit, self.order

    def total(self, chunk: CountChunk) -> Floats:
        """Array of shape (n_components, n_features)."""
        with np.errstate(all="ignore"):
            if math.isinf(self.limit) and self.scales is None:
                return self._unlimited(chunk)
            ratios, scaled = (self._single if self.single else self._mixed)(chunk)
            # In double precision: sums of many documents must not round.
            result = sum_over_rows(len(scaled), lambda rows: rows_of(ratios, rows).T @ scaled[rows])
        return result.T if self.single else result.T * self.topics

    def _unlimited(self, chunk: CountChunk) -> Floats:
        """Expected counts without clipping, for fits without noise."""
        if self.single:
            return counts_of_one_topic(chunk, self.topics, self.prior).T
        return counts_of_mixtures(chunk, *self._single_precision, self.n_iter).T * self.topics

    def _single(self, chunk: CountChunk) -> tuple[sp.csr_matrix, Floats]:
        blocks = [rows_in(chunk.X, block) for block in row_blocks(chunk.X)]
        found = [topic_posterior(counts, self.topics, self.prior) for counts in blocks]
        posterior = np.concatenate([np.zeros((0, len(self.topics))), *found])
        counts = self._scaled(chunk)
        norms = self._bounds(counts)
        if self._asks(norms).any():
            of_rows = np.sqrt((posterior**2).sum(axis=1) * counts.squares)
            own = norms_of_mean_counts(chunk.unit_words, counts.X.data, posterior, None)
            own = np.where(chunk.units.sizes == 1, chunk.units.means(of_rows), own)
            norms = np.minimum(norms, NORM_SLACK * own)
        return counts.X, posterior * chunk.units.spread(scale_to(norms, self.limit))[:, None]

    def _mixed(self, chunk: CountChunk) -> tuple[sp.csr_matrix, Floats]:
        units, norms = chunk.units, self._bounds(self._scaled(chunk))
        asked = self._asks(norms)
        alone = (asked & (units.sizes == 1))[units.of_rows]
        weights = None if self.scales is None else (1 / self.scales).astype(np.float32)
        field = mean_field(chunk, *self._single_precision, self.n_iter, alone, weights)
        expected, ratios = field.expected, field.ratios
        # NaN is no more than a limit: a document that has any adds nothing.
        lost = np.asarray(~np.isfinite(expected).all(axis=1))
        if not np.isfinite(ratios.data).all():
            rows = np.repeat(np.arange(len(lost)), np.diff(ratios.indptr))
            lost[rows[~np.isfinite(ratios.data)]] = True
            ratios.data[lost[rows]] = 0.0
        expected[lost] = 0.0
        if asked.any():
            own = norms_of_mean_counts(chunk.sorted_unit_words, ratios.data, expected, self.topics)
            row_norms = np.empty(len(lost))
            row_norms[field.order] = field.norms
            own = np.where(units.sizes == 1, row_norms[units.starts[:-1]], own)
            norms = np.minimum(norms, NORM_SLACK * own)
        left = units.spread(scale_to(norms, self.limit))
        return ratios, expected * left[field.order, None]

    def _bounds(self, scaled: CountChunk) -> Floats:
        """Bounds of the counts of a unit, which also bound the parts they are divided into."""
        if self.scales is None:
            return CountNorm(self.order).of(scaled)
        return NORM_SLACK * scaled.units.means(np.sqrt(scaled.squares))

    def _scaled(self, chunk: CountChunk) -> CountChunk:
        """Counts divided by the scales of their words."""
        if self.scales is None:
            return chunk
        X = chunk.X
        return CountChunk(of_same_shape(X, X.data / self.scales[X.indices]), chunk.units)

    def _asks(self, bounds: Floats) -> NDArray[np.bool_]:
        """Units whose own norm makes a difference."""
        return (bounds > self.limit) & (self.order == 2)

    @cached_property
    def _single_precision(self) -> tuple[Singles, Singles]:
        return single_precision(self.topics, self.prior)
