"""Questions about observed entries, in the terms of completion: each asks for one release."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sktensor_dp.data.entries import IndexSet
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.entries import Entries, EntryPairs, RowSums, ValueHistogram
from sktensor_dp.queries.gradients import EntryGradients, Jacobian, RidgeBlock
from sktensor_dp.queries.persons import (
    MOMENT_WEIGHT,
    ReleasedEffects,
    SharedFactorSums,
    SharedRowSums,
    UnitLevels,
)
from sktensor_dp.queries.query import SIZE_EDGES, Query
from sktensor_dp.tensor.arrays import Floats

# Results of releases. `sigma` is the standard deviation of the noise of each number, unless said
# otherwise; values are those of the entries minus the middle of the bounds.


@dataclass(frozen=True, eq=False)
class ReleasedRowSums:
    """Released weighted sums of values."""

    sums: list[Floats]  # one array for each mode, of shape (shape[m],)
    weights: Floats  # what values were multiplied by, of shape (n_observed, n_modes)
    sigma: float


@dataclass(frozen=True, eq=False)
class ReleasedBlock:
    """Released rows of one factor."""

    rows: Floats  # of shape (n_rows, r); exact 0 for rows without entries
    sigmas: Floats  # of each number of a row, of shape (n_rows,)


@dataclass(frozen=True, eq=False)
class ReleasedProducts:
    """Released sums of products of clipped residuals in two columns; 0 on the diagonals."""

    sums: Floats  # of shape (n_columns, n_columns)
    counts: Floats  # what they would be if all residuals were 1; public
    sigma: float  # of each number off the diagonal


@dataclass(frozen=True)
class ReleasedLevels:
    """Released level of units; units without entries count as 0."""

    mean: float  # over units, of the mean of their values
    deviation: float  # mean over units of the root mean square of values about their own mean
    sigma: float


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """Released sums over units for each row of a shared mode, divided by a unit's count norm."""

    sums: Floats  # of clipped residuals, of shape (shape[mode],)
    counts: Floats  # of entries, of the same shape
    sigma: float


@dataclass(frozen=True, eq=False)
class ReleasedFactor:
    """Released sums over units for components."""

    sums: Floats  # of divided residuals times divided weights, of shape (n_cells, r)
    moment: Floats  # mean over units of their second moment of weights, over r; (r, r)
    sigma: float
    moment_sigma: float  # of each number of the moment


def choose_bounds(ask: Session) -> tuple[tuple[float, float], bool]:
    """Release a histogram of values, and clip them to the range (low, high) that it shows; True if
    anything is above the noise.
    """
    edges = np.concatenate([-SIZE_EDGES[::-1], [0.0], SIZE_EDGES])
    low, high, seen = ask(ValueHistogram(edges)).range_of(edges)
    ask.clip_values((low, high))
    return (low, high), seen


class _Questions:
    """Questions to a session of values, minus the `middle` of their range."""

    def __init__(self, ask: Session) -> None:
        self._ask = ask
        self.shape: tuple[int, ...] = ask.public("shape")

    @property
    def n_units(self) -> int:
        """Number of units that sums are taken over; public."""
        return self._ask.n_units

    @property
    def half(self) -> float:
        """Half of the width of the range of values; public, or released."""
        return float(self._ask.public("half"))

    @property
    def middle(self) -> float:
        """Middle of the range of values; public, or released."""
        return float(self._ask.public("middle"))


class EntryQuestions(_Questions):
    """Questions about values at public places; a value is the unit."""

    @cached_property
    def index_set(self) -> IndexSet:
        """Places of observed values; public."""
        index_set: IndexSet = self._ask.public("index_set")
        return index_set

    def entries(self) -> Answer:
        """All values, of shape (n_observed,)."""
        # The noise of the piecewise mechanism depends on the value; `sigma` is for the middle of
        # the range.
        return self._ask(Entries(self.half)).as_sum()

    def row_sums(self, weights: Floats | None = None) -> ReleasedRowSums:
        """Weighted sums of each row of each mode; weights are balanced unless given."""
        if weights is None:
            weights = self.index_set.balanced_weights()
        noisy = self._ask(RowSums(self.index_set, weights, self.half)).as_sum()
        sums = np.split(noisy.value, np.cumsum(self.index_set.shape)[:-1])
        return ReleasedRowSums(sums, weights, noisy.sigma)

    def entry_pairs(self, predictions: Floats, weights: Floats, scale: float) -> ReleasedProducts:
        """Products of residuals in two columns, summed over the rows of a matrix."""
        query = EntryPairs(self.index_set, predictions, weights, scale, self.half)
        noisy = self._ask(query).as_sum()
        n = self.index_set.shape[1]
        upper = np.triu_indices(n, 1)
        tables = np.zeros((2, n, n))
        for table, numbers in zip(tables, (noisy.value, query.counts()), strict=True):
            table[upper] = table.T[upper] = numbers
        return ReleasedProducts(tables[0], tables[1], noisy.sigma)

    def ridge_block(self, mode: int, rows: Floats, regularization: float | Floats) -> ReleasedBlock:
        """Rows of one factor by ridge regression."""
        query = RidgeBlock(self.index_set, mode, rows, regularization, self.half)
        noisy = self._ask(query).as_sum()
        return ReleasedBlock(noisy.value * query.scales[:, None], noisy.sigma * query.scales)

    def entry_gradients(self, jacobian: Jacobian) -> Answer:
        """Part of minus the gradient of half the squared error that depends on values."""
        return self._ask(EntryGradients(jacobian, self.half)).as_sum()


class PersonQuestions(_Questions):
    """Questions about entries; the unit is all entries of one index of a mode."""

    def unit_levels(self) -> ReleasedLevels:
        """Mean level of units, and mean deviation from their own level."""
        noisy = self._ask(UnitLevels(self.half))
        return ReleasedLevels(float(noisy.value[0]), float(noisy.value[1]), noisy.sigma)

    def shared_row_sums(
        self,
        mode: int,
        about: ReleasedEffects,
        scale: float,
        paid_by: type[Query] | None = None,
    ) -> ReleasedRows:
        """Residuals of all units, clipped and summed in each row of a shared mode."""
        # `paid_by` is a planned query whose remaining budget pays for this one.
        order = 1 if self._ask.is_pure else 2
        query = SharedRowSums(mode, self.shape, about, scale, order)
        noisy = self._ask(query, paid_by).as_sum()
        return ReleasedRows(noisy.value[0], noisy.value[1], noisy.sigma)

    def shared_factor_sums(self, query: SharedFactorSums) -> ReleasedFactor:
        """Residuals of all units times their own weights of components, summed in each cell."""
        noisy = self._ask(query).as_sum()
        rows = len(noisy.value) - noisy.value.shape[1]
        weight = MOMENT_WEIGHT * self.n_units
        moment = noisy.value[rows:] / weight
        moment = (moment + moment.T) / 2
        return ReleasedFactor(noisy.value[:rows], moment, noisy.sigma, noisy.sigma / weight)
