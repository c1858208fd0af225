"""Curators of observed entries: releases in the terms of completion.

Every method makes one planned release and returns public values together with the
noise level they were given.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.curator import DataCurator, Noisy
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.entries import (
    Entries,
    EntryChunks,
    EntryPairs,
    IndexSet,
    RowSums,
    ValueHistogram,
)
from sktensor_dp.queries.gradients import EntryGradients, Jacobian, RidgeBlock
from sktensor_dp.queries.query import SIZES
from sktensor_dp.queries.slices import (
    MOMENT_WEIGHT,
    ReleasedEffects,
    SharedFactorSums,
    SharedRowSums,
    SliceChunks,
    UnitLevels,
)

Floats = NDArray[np.float64]


# What is released. `sigma` is the standard deviation of the noise of each number, unless said
# otherwise; values are those of the entries minus the middle of the bounds.


@dataclass(frozen=True, eq=False)
class NoisyRowSums:
    """Released weighted sums of values."""

    sums: list[Floats]  # one array for each mode, of shape (shape[m],)
    weights: Floats  # what values were multiplied by, of shape (n_observed, n_modes)
    sigma: float


@dataclass(frozen=True, eq=False)
class NoisyRidgeBlock:
    """Released rows of one factor."""

    rows: Floats  # of shape (n_rows, r); exact 0 for rows without entries
    sigmas: Floats  # of each number of a row, of shape (n_rows,)


@dataclass(frozen=True, eq=False)
class NoisyPairs:
    """Released sums of products of clipped residuals in two columns; 0 on the diagonals."""

    sums: Floats  # of shape (n_columns, n_columns)
    counts: Floats  # what they would be if all residuals were 1; public
    sigma: float  # of each number off the diagonal


@dataclass(frozen=True)
class NoisyLevels:
    """Released level of units, where 0 stands in for units without entries."""

    mean: float  # over units, of the mean of their values
    deviation: float  # mean over units of the root mean square of values about their own mean
    sigma: float


@dataclass(frozen=True, eq=False)
class NoisySharedRows:
    """Released sums over units in each row of a shared mode, each over the norm of its counts."""

    sums: Floats  # of clipped residuals, of shape (shape[mode],)
    counts: Floats  # of entries, of the same shape
    sigma: float


@dataclass(frozen=True, eq=False)
class NoisySharedFactor:
    """Released sums over units for components."""

    sums: Floats  # of divided residuals times divided weights, of shape (n_cells, r)
    moment: Floats  # mean over units of their second moment of weights, over r; (r, r)
    sigma: float
    moment_sigma: float  # of each number of the moment


class _PlainCurator(DataCurator):
    """A :class:`DataCurator` of values, which hands back sums in place of means over units."""

    # Public: `shape` of the tensor, `half` of the width of the bounds, and their `middle`.

    def __init__(self, chunks: EntryChunks | SliceChunks, plan: ReleasePlan, **kwargs: Any) -> None:
        super().__init__(chunks, plan, **kwargs)
        self.shape, self.half, self.middle = chunks.shape, chunks.half, chunks.middle

    def choose_bounds(self) -> tuple[float, float, bool]:
        """Release a histogram of values and clip them to the range that it shows: low and high, and
        True if anything is above the noise.
        """
        edges = np.concatenate([-SIZES[::-1], [0.0], SIZES])
        low, high, seen = self.noisy_range("value_histogram", ValueHistogram(edges), edges)
        clipped = self._clip_values((low, high))
        self.half, self.middle = clipped.half, clipped.middle
        return low, high, seen

    def _sums(self, noisy: Noisy) -> Noisy:
        return Noisy(noisy.value * self.n_units, noisy.sigma * self.n_units)


class EntryCurator(_PlainCurator):
    """A :class:`DataCurator` of values, minus `middle`, at public places; a value is the unit."""

    @cached_property
    def index_set(self) -> IndexSet:
        """Places of observed values; public."""
        index_set: IndexSet = self._read().index_set
        return index_set

    def entries(self) -> Noisy:
        """All values, of shape (n_observed,)."""
        # The noise of the piecewise mechanism depends on the value; sigma is that of the
        # middle.
        return self._sums(self.noisy("entries", Entries(self.half)))

    def row_sums(self, weights: Floats | None = None) -> NoisyRowSums:
        """Weighted sums of each row of each mode; weights are balanced unless given."""
        if weights is None:
            weights = self.index_set.balanced_weights()
        noisy = self._sums(self.noisy("row_sums", RowSums(self.index_set, weights, self.half)))
        sums = np.split(noisy.value, np.cumsum(self.index_set.shape)[:-1])
        return NoisyRowSums(sums, weights, noisy.sigma)

    def entry_pairs(self, predictions: Floats, weights: Floats, scale: float) -> NoisyPairs:
        """Products of residuals in two columns, summed over the rows of a matrix."""
        query = EntryPairs(self.index_set, predictions, weights, scale, self.half)
        noisy = self._sums(self.noisy("entry_pairs", query))
        n = self.index_set.shape[1]
        upper = np.triu_indices(n, 1)
        tables = np.zeros((2, n, n))
        for table, numbers in zip(tables, (noisy.value, query.counts()), strict=True):
            table[upper] = table.T[upper] = numbers
        return NoisyPairs(tables[0], tables[1], noisy.sigma)

    def ridge_block(
        self, mode: int, rows: Floats, regularization: float | Floats
    ) -> NoisyRidgeBlock:
        """Rows of one factor by ridge regression."""
        query = RidgeBlock(self.index_set, mode, rows, regularization, self.half)
        noisy = self._sums(self.noisy("ridge_block", query))
        sigma = self._deviation(noisy.sigma, rows.shape[1])
        return NoisyRidgeBlock(noisy.value * query.scales[:, None], sigma * query.scales)

    def entry_gradients(self, jacobian: Jacobian) -> Noisy:
        """Values' part of minus the gradient of half the squared error, in all parameters."""
        return self._sums(self.noisy("entry_gradients", EntryGradients(jacobian, self.half)))


class SliceCurator(_PlainCurator):
    """A :class:`DataCurator` of entries; the unit is all that one index of a mode holds."""

    def unit_levels(self) -> NoisyLevels:
        """Mean level of units, and mean deviation from their own level."""
        noisy = self.noisy("unit_levels", UnitLevels(self.half))
        return NoisyLevels(float(noisy.value[0]), float(noisy.value[1]), noisy.sigma)

    def shared_row_sums(
        self,
        mode: int,
        about: ReleasedEffects,
        scale: float,
        rest_of: str | None = None,
    ) -> NoisySharedRows:
        """Residuals of all units, clipped and summed in each row of a shared mode."""
        # `rest_of` names a planned release: all that is left of its budget pays for this one.
        order = 1 if self.pure else 2
        query = SharedRowSums(mode, self.shape, about, scale, order)
        noisy = self._sums(self.noisy("shared_row_sums", query, rest_of))
        return NoisySharedRows(noisy.value[0], noisy.value[1], noisy.sigma)

    def shared_factor_sums(self, query: SharedFactorSums) -> NoisySharedFactor:
        """Residuals of all units times their own weights of components, summed in each cell."""
        noisy = self._sums(self.noisy("shared_factor_sums", query))
        rows = len(noisy.value) - noisy.value.shape[1]
        weight = MOMENT_WEIGHT * self.n_units
        moment = noisy.value[rows:] / weight
        moment = (moment + moment.T) / 2
        return NoisySharedFactor(noisy.value[:rows], moment, noisy.sigma, noisy.sigma / weight)
