"""Expected counts of words per topic: what one EM step needs of the data."""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import psi

from sktensor_dp.statistics.counts import CountChunk
from sktensor_dp.statistics.norms import NORM_SLACK, NonNegative
from sktensor_dp.statistics.public_numbers import LIMIT, check_array, check_number, scale_to
from sktensor_dp.topics.inference import row_blocks, topic_posterior

__all__ = ["ExpectedCounts"]

# Array operations release the interpreter's lock; more threads would wait for memory.
N_THREADS = min(os.cpu_count() or 1, 4)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

# Least probability of a word in single precision: its square does not underflow, or a
# norm could come out as 0.
TINY = 1e-15
# Its digamma is finite in single precision.
LEAST_PRIOR = 1e-30
# Beyond any prior that can be told from an infinite one; sums with counts stay far from
# overflow in single precision, where infinity less infinity is a NaN.
LARGEST_PRIOR = 1e30
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

    def __post_init__(self) -> None:
        check_array("topics", self.topics, LARGEST_SHARE, least=0.0)
        check_array("the prior", self.prior, LARGEST_PRIOR, least=0.0)
        check_number("the limit", self.limit, LIMIT, infinite=True)
        if self.order not in (1, 2) or not self.n_iter >= 0:
            raise ValueError(
                f"order must be 1 or 2 and n_iter >= 0, got {self.order!r} and {self.n_iter!r}."
            )

    @property
    def l2_sensitivity(self) -> float:
        """Arrays are non-negative: sqrt(2) times the limit."""
        return self.sensitivity_of(self.limit)

    @property
    def l1_sensitivity(self) -> float:
        """Twice the limit, if it is one on the sum."""
        return self.sensitivity_of(self.limit, 1) if self.order == 1 else math.inf

    def total(self, chunk: CountChunk) -> Floats:
        """Array of shape (n_components, n_features)."""
        part = partial(_quiet, self._single if self.single else self._mixed, chunk)
        result = np.zeros(self.topics.shape[::-1])
        with ThreadPoolExecutor(N_THREADS) as pool:
            # A few blocks at a time: each holds an array of the size of the result.
            blocks = row_blocks(chunk.X)
            while group := list(islice(blocks, N_THREADS)):
                for contribution in pool.map(part, group):
                    result += contribution
        return result.T if self.single else result.T * self.topics

    def _single(self, chunk: CountChunk, block: slice) -> Floats:
        counts = chunk.X[block]
        posterior = topic_posterior(counts, self.topics, self.prior)
        if self.order == 1:
            norms = NORM_SLACK * chunk.lengths[block]
        else:
            squares = chunk.squares[block]
            norms = NORM_SLACK * np.sqrt((posterior**2).sum(axis=1) * squares)
        return np.asarray(counts.T @ (posterior * scale_to(norms, self.limit)[:, None]))

    def _mixed(self, chunk: CountChunk, block: slice) -> Floats:
        counts, topics, by_word, prior = chunk.X[block], *self._single_precision
        data = counts.data.astype(np.float32)
        per_row, own = np.diff(counts.indptr), topics.take(counts.indices, axis=1)
        ratios = sp.csr_matrix((data, counts.indices, counts.indptr), counts.shape)
        lengths = chunk.lengths[block].astype(np.float32)[:, None]
        gamma = prior + lengths / len(prior)
        for step in range(self.n_iter + 1):
            logs = psi(gamma)
            shares = np.exp(logs - logs.max(axis=1, keepdims=True))
            expected = np.asarray(shares, dtype=np.float32)
            ratios.data = data / np.maximum(_mixtures(expected.T, own, per_row), TINY)
            if step < self.n_iter:
                gamma = prior + expected * (ratios @ by_word)
        rows = np.repeat(np.arange(len(per_row)), per_row)
        if self.order == 1:
            norms = NORM_SLACK * chunk.lengths[block]
        else:
            squares = _mixtures(expected.T**2, own**2, per_row) * ratios.data.astype(float) ** 2
            norms = NORM_SLACK * np.sqrt(np.bincount(rows, squares, len(per_row)))
        scaled = expected * scale_to(norms, self.limit)[:, None]
        # NaN is no more than a limit: a document that has any adds nothing.
        lost = np.asarray(~np.isfinite(scaled).all(axis=1))
        lost[rows[~np.isfinite(ratios.data)]] = True
        if lost.any():
            scaled[lost], ratios.data[lost[rows]] = 0.0, 0.0
        # In double precision: sums of many documents must not round.
        return np.asarray(ratios.T @ scaled.astype(np.float64))

    @cached_property
    def _single_precision(self) -> tuple[Singles, Singles, Singles]:
        """Topics, topics by word, and prior, away from underflow."""
        topics = np.maximum(self.topics, TINY).astype(np.float32)
        prior = np.maximum(self.prior, LEAST_PRIOR).astype(np.float32)
        return topics, np.ascontiguousarray(topics.T), prior


def _quiet(part: Callable[[CountChunk, slice], Floats], chunk: CountChunk, block: slice) -> Floats:
    """A block's contribution, without warnings: a thread does not know what its caller ignores."""
    with np.errstate(all="ignore"):
        return part(chunk, block)


def _mixtures(proportions: Singles, own: Singles, per_row: NDArray[np.intp]) -> Singles:
    """``sum_j proportions[j, row] topics[j, word]`` at the non-zeros."""
    # Topic by topic over contiguous memory: several times faster than gathering a row of
    # proportions for every non-zero.
    result = np.zeros(own.shape[1], dtype=np.float32)
    for share, topic in zip(proportions, own, strict=True):
        result += np.repeat(share, per_row) * topic
    return result
