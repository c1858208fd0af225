"""Entries of a tensor by unit; the unit of privacy is all entries of one index of a mode.

Values are clamped here; what a person adds to a sum is bounded in `queries/persons.py`.
"""

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from sktensor_dp.data.entries import ValueRange, check_unit_mode
from sktensor_dp.tensor.arrays import Floats, Integers, read_only


class PersonChunks(ValueRange):
    """Entries of a tensor by unit, all entries of one index of `unit_mode`, as one chunk."""

    # Entries observed more than once are merged into one, with the mean of their clamped values.

    def __init__(
        self,
        coordinates: Integers,  # (n_observed, n_modes): private; kept distinct, sorted by unit
        values: Floats,  # (n_observed,): private; kept clamped, minus the middle of the bounds
        shape: tuple[int, ...],  # public
        unit_mode: int,
        bounds: tuple[float, float],  # public
    ) -> None:
        super().__init__(bounds)
        check_unit_mode(unit_mode, shape)
        self.shape, self.unit_mode = shape, unit_mode
        self.n_units = shape[unit_mode]
        order = by_unit(coordinates, values, shape, unit_mode)
        coordinates = coordinates.take(order, axis=0)
        values = self.clipped_and_centred(values.take(order))
        is_first = np.zeros(len(values), dtype=bool)  # of the values of one entry
        is_first[:1] = True
        for column in coordinates.T:
            is_first[1:] |= column[1:] != column[:-1]
        if not is_first.all():
            entry = np.cumsum(is_first) - 1
            coordinates = coordinates[is_first]
            values = np.bincount(entry, weights=values) / np.bincount(entry)
            np.clip(values, -self.half, self.half, out=values)  # rounding may carry means beyond
        self.coordinates, self.values = read_only(coordinates), read_only(values)
        self.unit_of_entry = coordinates[:, unit_mode]
        self._pairs: dict[int, tuple[Integers, Integers]] = {}

    @cached_property
    def by_cells(self) -> sp.csr_matrix:
        """Values as a CSR matrix of units by cells, of shape (n_units, n_cells)."""
        shared = np.delete(self.shape, self.unit_mode)
        others = np.delete(self.coordinates, self.unit_mode, axis=1)
        # A cell is a place in the tensor of the other modes.
        columns = np.ravel_multi_index(tuple(others.T), shared).astype(np.int32)
        pointers = np.zeros(self.n_units + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.unit_of_entry, minlength=self.n_units), out=pointers[1:])
        size = (self.n_units, int(shared.prod()))
        return sp.csr_matrix((self.values, columns, pointers), size)

    @property
    def shares(self) -> Floats:
        """Share of each value in its unit, of shape (n_entries,)."""
        return np.asarray(1 / np.bincount(self.unit_of_entry)[self.unit_of_entry])

    def pairs(self, mode: int) -> tuple[Integers, Integers]:
        """Index of the (unit, row of `mode`) pair of each entry, and the unit of each pair."""
        if mode not in self._pairs:
            units, rows = self.unit_of_entry, self.coordinates[:, mode]
            if len(self.shape) == 2:  # entries are distinct
                self._pairs[mode] = np.arange(len(rows)), units
            else:
                keys, pair_of_entry = np.unique(
                    units * self.shape[mode] + rows, return_inverse=True
                )
                self._pairs[mode] = pair_of_entry, keys // self.shape[mode]
        return self._pairs[mode]

    def __iter__(self) -> Iterator["PersonChunks"]:
        return iter([self])


def by_unit(
    coordinates: Integers, values: Floats, shape: tuple[int, ...], unit_mode: int
) -> Integers:
    """Order that sorts entries by unit, then by the other modes, then by value."""
    # Values are the last key, so that a mean does not depend on the order of the rows.
    modes = [unit_mode, *(m for m in reversed(range(len(shape))) if m != unit_mode)]
    keys = [coordinates[:, m] for m in modes]
    if math.prod(shape) < 2**63:  # one number for each place is sorted faster
        keys = [np.ravel_multi_index(tuple(keys), [shape[m] for m in modes])]
    return np.lexsort([values, *reversed(keys)])  # `lexsort` takes the first key last
