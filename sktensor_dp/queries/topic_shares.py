"""Shares of topics in documents of public groups, added up over each unit's documents."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import RowChunk, rows_of, scale_to, sum_over_rows
from sktensor_dp.queries import query
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE
from sktensor_dp.tensor.arrays import Floats, of_same_shape


def _sums_and_norms(chunk: RowChunk, order: int) -> tuple[sp.csr_matrix, Floats]:
    """Sum of the rows of each unit, entries cut to [0, 1] first, and its norm of an `order`."""
    shares = np.clip(np.nan_to_num(chunk.X.data, nan=0.0), 0.0, 1.0)
    sums = chunk.units.sums(of_same_shape(chunk.X, shares))
    owners = np.repeat(np.arange(chunk.n_units), np.diff(sums.indptr))
    powers = np.bincount(owners, sums.data**order, chunk.n_units).astype(np.float64)
    return sums, NORM_SLACK * powers ** (1 / order)


@dataclass(frozen=True)
class SharesNorm:
    """Norm of the sum of a unit's rows: L1, its number of documents (`order` 1), or L2 (2)."""

    order: int

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}.")

    def of(self, chunk: RowChunk) -> Floats:
        """Norm of each unit, with a slack for rounding; (n_units,)."""
        return _sums_and_norms(chunk, self.order)[1]


@dataclass(frozen=True)
class SharesByGroup(query.NonNegative):
    """Sum over units of the sum of a unit's rows, clipped to `limit`.

    A row holds the shares of topics in a document, in the columns of its group. The part of each
    unit's sum that a clip to `beyond` leaves is released elsewhere, and subtracted here.
    """

    name, family = "topic_shares", "shares"
    description = "shares of topics in a unit's documents, added up by public group"
    laws = (GAUSSIAN, LAPLACE)

    limit: float
    order: int
    beyond: float = 0.0

    def __post_init__(self) -> None:
        query.check_number("the limit", self.limit, query.LIMIT, infinite=True)
        SharesNorm(self.order)  # for its error
        # `NORM_SLACK` allows for rounding of the difference of limits no closer than that.
        if not 0 <= self.beyond <= 0.9 * self.limit:
            raise ValueError(f"beyond must be from 0 to 0.9 limits, got {self.beyond!r}.")

    def _largest_norms(self) -> query.Norms:
        return query.norms_within(self.limit - self.beyond, self.order)

    def total(self, chunk: RowChunk) -> Floats:
        """Clipped sum of the shares, of shape (n_groups * n_topics,)."""
        sums, norms = _sums_and_norms(chunk, self.order)
        factors = scale_to(norms, self.limit)
        if self.beyond > 0:
            factors -= scale_to(norms, self.beyond)
        return sum_over_rows(len(factors), lambda rows: rows_of(sums, rows).T @ factors[rows])
