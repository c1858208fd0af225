"""Expected counts of words per topic: what one EM step needs of the data."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.statistics.counts import CountChunk
from sktensor_dp.statistics.mean_field import mean_field, single_precision
from sktensor_dp.statistics.norms import NORM_SLACK, NonNegative
from sktensor_dp.statistics.public_numbers import LIMIT, check_array, check_number, scale_to
from sktensor_dp.topics.inference import row_blocks, topic_posterior

__all__ = ["ExpectedCounts"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

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
        with np.errstate(all="ignore"):
            if not self.single:
                return self._mixed(chunk).T * self.topics
            result = np.zeros(self.topics.shape[::-1])
            for block in row_blocks(chunk.X):
                result += self._single(chunk, block)
            return result.T

    def _single(self, chunk: CountChunk, block: slice) -> Floats:
        counts = chunk.X[block]
        posterior = topic_posterior(counts, self.topics, self.prior)
        if self.order == 1:
            norms = NORM_SLACK * chunk.lengths[block]
        else:
            squares = chunk.squares[block]
            norms = NORM_SLACK * np.sqrt((posterior**2).sum(axis=1) * squares)
        return np.asarray(counts.T @ (posterior * scale_to(norms, self.limit)[:, None]))

    def _mixed(self, chunk: CountChunk) -> Floats:
        # Each expected count is a part of a count: what bounds the counts bounds them.
        powers = chunk.lengths if self.order == 1 else np.sqrt(chunk.squares)
        bounds = NORM_SLACK * powers
        asked = (bounds > self.limit) & (self.order == 2)
        field = mean_field(chunk, *self._single_precision, self.n_iter, asked)
        norms = np.minimum(bounds[field.order], NORM_SLACK * field.norms)
        scaled = field.expected * scale_to(norms, self.limit)[:, None]
        ratios = field.ratios
        # NaN is no more than a limit: a document that has any adds nothing.
        lost = np.asarray(~np.isfinite(scaled).all(axis=1))
        if not np.isfinite(ratios.data).all():
            rows = np.repeat(np.arange(len(lost)), np.diff(ratios.indptr))
            lost[rows[~np.isfinite(ratios.data)]] = True
            ratios.data[lost[rows]] = 0.0
        scaled[lost] = 0.0
        # In double precision: sums of many documents must not round.
        return np.asarray(ratios.T @ scaled)

    @cached_property
    def _single_precision(self) -> tuple[Singles, Singles]:
        return single_precision(self.topics, self.prior)
