"""Where values of a matrix were observed, row by row, and what is asked of them there.

Coordinates are public, and so is which values a row has.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from sktensor_dp.statistics.observed_entries import EntryChunks, IndexSet, order_by
from sktensor_dp.statistics.public_numbers import HALF, check_array, check_number
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.tensor.oracle import check_shape

# Public numbers within these leave residuals finite before they are clipped.
SCALE, LARGEST = (1e-100, 1e100), 1e100


@dataclass(frozen=True, eq=False)
class RowCells:
    """Pairs of a row and a column of a matrix that have values; public."""

    index_set: IndexSet  # where values of a matrix were observed
    unit_mode: int  # 0 or 1: mode of the rows; the other one is of columns

    def __post_init__(self) -> None:
        if self.index_set.n_modes != 2 or self.unit_mode not in (0, 1):
            raise ValueError("sums are of the values in a row of a matrix, mode 0 or 1.")

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        shape = self.index_set.shape
        return shape[self.unit_mode], shape[1 - self.unit_mode]

    @cached_property
    def _found(self) -> tuple[Integers, Integers]:
        """Number of each cell, row by row, and which one each entry is in."""
        places = self.index_set
        keys = places.rows(self.unit_mode).astype(np.int64) * self.shape[1]
        keys += places.rows(1 - self.unit_mode)
        order = order_by(keys, math.prod(self.shape))
        keys = keys[order]
        first = np.append(True, keys[1:] != keys[:-1])
        of_entries = np.empty(len(keys), dtype=np.intp)
        of_entries[order] = np.cumsum(first) - 1
        return keys[first], of_entries

    @cached_property
    def rows(self) -> Integers:
        """Row of each cell, in order."""
        return np.asarray(self._found[0] // self.shape[1], dtype=np.intp)

    @cached_property
    def columns(self) -> Integers:
        """Column of each cell."""
        return np.asarray(self._found[0] % self.shape[1], dtype=np.intp)

    @cached_property
    def repeats(self) -> Floats:
        """Number of values in each cell."""
        return self.sums(np.ones(self.index_set.n_entries))

    @property
    def n_cells(self) -> int:
        """How many there are."""
        return len(self._found[0])

    def sums(self, terms: Floats) -> Floats:
        """Sums over the entries of each cell."""
        found = np.bincount(self._found[1], terms, minlength=self.n_cells)
        return np.asarray(found, dtype=np.float64)

    def by_row(self, terms: Floats) -> Floats:
        """Sums over the cells of each row."""
        found = np.bincount(self.rows, terms, minlength=self.shape[0])
        return np.asarray(found, dtype=np.float64)

    def beside(self, terms: Floats) -> Floats:
        """Sums over the other cells of each one's row."""
        return np.asarray(self.by_row(terms)[self.rows] - terms)

    def products(self, cells: Floats, columns: Floats) -> Floats:
        """The matrix with these numbers in its cells, times a table with a line per column."""
        pointers = np.zeros(self.shape[0] + 1, dtype=np.intp)
        np.cumsum(np.bincount(self.rows, minlength=self.shape[0]), out=pointers[1:])
        matrix = sp.csr_matrix((cells, self.columns, pointers), self.shape)
        return np.asarray(matrix @ columns)


@dataclass(frozen=True, eq=False)
class CellResiduals:
    """What a public prediction leaves of values, clipped to [-1, 1]; the unit is one value."""

    cells: RowCells  # where values of a matrix were observed, and mode of the rows; public
    # (n_observed,): subtracted from values, which are centred; public.
    predictions: Floats = field(repr=False)
    # (n_rows,): of the products of each row, from 0 to 1; public.
    weights: Floats = field(repr=False)
    scale: float  # residual that is clipped to 1; public
    half: float  # half of the width of the range of values; public

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        check_number("the scale", self.scale, SCALE)
        check_shape("predictions", self.predictions, self.cells.index_set.n_entries)
        check_shape("weights", self.weights, self.cells.shape[0])
        check_array("predictions", self.predictions, LARGEST)
        check_array("weights", self.weights, 1.0, least=0.0)

    def clipped(self, chunk: EntryChunks) -> Floats:
        """Residual of each value."""
        return np.clip((chunk.values - self.predictions) / self.scale, -1.0, 1.0)

    @property
    def rows(self) -> Integers:
        """Row of each value."""
        return self.cells.index_set.rows(self.cells.unit_mode)
