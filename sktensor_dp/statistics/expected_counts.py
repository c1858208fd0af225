"""Expected counts of words per topic: what one EM step needs of the data."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.counts import CountChunk
from sktensor_dp.statistics.mean_field import mean_field, single_precision
from sktensor_dp.statistics.mean_norms import norms_of_mean_counts
from sktensor_dp.statistics.norms import NORM_SLACK, CountNorm, NonNegative
from sktensor_dp.statistics.public_numbers import LIMIT, check_array, check_number
from sktensor_dp.statistics.row_chunks import rows_of, scale_to, sum_over_rows
from sktensor_dp.statistics.unlimited_counts import counts_of_mixtures, counts_of_one_topic
from sktensor_dp.tensor.arrays import Floats, Singles
from sktensor_dp.tensor.same_shape import of_same_shape
from sktensor_dp.topics.inference import row_blocks, rows_in, topic_posterior

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
        """The same where nothing is limited, so that there is no noise either."""
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
        """What bounds the counts of a unit bounds the parts that they are divided into."""
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
