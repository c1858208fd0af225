"""Entries of a tensor by unit; the unit of privacy is all entries of one index of a mode.

Values are clamped by `data/value_range.py`; what a person adds to a sum is bounded in
`queries/person_entries.py`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.checks.frames import as_numbers, refuse_other_row_order
from sktensor_dp.data.entries import as_entries, check_unit_mode, checked_shape
from sktensor_dp.data.labels import Labels
from sktensor_dp.data.partitions import DaskPartitions, Piece, joined_pieces, split_by_group
from sktensor_dp.data.sums import PartialQuery
from sktensor_dp.data.value_range import ValueRange
from sktensor_dp.tensor.arrays import Floats, Integers, read_only

MORE_IDS = "X has more ids in column {mode} than shape[{mode}] counts, which is {most}."


class PersonChunks(ValueRange):
    """Entries of a tensor by unit, all entries of one index of `unit_mode`, as one chunk."""

    # Entries observed more than once are merged into one, with the mean of their values,
    # clamped before that to given bounds, and after it to released ones.

    def __init__(
        self,
        coordinates: Integers,  # (n_observed, n_modes): private; kept distinct, sorted by unit
        values: Floats,  # (n_observed,): private; kept clamped, minus the middle of the bounds
        shape: tuple[int, ...],  # public
        unit_mode: int,
        bounds: tuple[float, float],  # public
        # True if this chunk holds only some units of a data set. They are numbered among the units
        # with entries in the chunk; units without entries add nothing to any sum.
        is_part: bool = False,
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
        if is_part:
            present, self.unit_of_entry = np.unique(self.unit_of_entry, return_inverse=True)
            self.n_units = len(present)
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
        """Index (n_entries,) of the pair of each entry, and unit (n_pairs,) of each pair.

        A pair is a unit with a row of `mode`.
        """
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
    """Order that sorts entries by unit, then by the other modes (the last first), then by value."""
    # Values are the last key, so that a mean does not depend on the order of the rows.
    modes = [unit_mode, *(m for m in reversed(range(len(shape))) if m != unit_mode)]
    keys = [coordinates[:, m] for m in modes]
    if math.prod(shape) < 2**63:  # one number for each place is sorted faster
        keys = [np.ravel_multi_index(tuple(keys), [shape[m] for m in modes])]
    return np.lexsort([values, *reversed(keys)])  # `lexsort` takes the first key last


@dataclass(frozen=True)
class PersonReader:
    """Public parameters by which workers turn a partition's entries into units."""

    shape: tuple[int, ...]
    unit_mode: int
    bounds: tuple[float, float]
    released: tuple[float, float] | None = None  # narrower range, if a fit has found one

    @property
    def has_ids(self) -> bool:
        """True where units have ids instead of numbers."""
        return False

    @classmethod
    def checked(
        cls, shape: Sequence[int], n_modes: int, unit_mode: int, bounds: tuple[float, float]
    ) -> Self:
        """Build a reader after checking that shape and mode fit the coordinates."""
        sizes = checked_shape(shape, n_modes)
        check_unit_mode(unit_mode, sizes)
        return cls(sizes, unit_mode, bounds)

    def split(self, X: object, y: object, n_parts: int) -> list[Piece]:
        """Split a partition's entries by a hash of their unit."""
        refuse_other_row_order(X, y, "y")
        numbers, y, labels = self._read(X, y)
        coordinates, values, _ = as_entries(numbers, y, self.shape)
        # Coordinates are exact in double precision, so one table holds both.
        table = np.column_stack([coordinates, values])
        labels = coordinates[:, self.unit_mode] if labels is None else labels
        return split_by_group(table, labels, n_parts)

    def _read(self, X: object, y: object) -> tuple[object, object, Labels | None]:
        """Coordinates, values, and labels of units that have no numbers."""
        return as_numbers(X, "a partition"), as_numbers(y, "a partition"), None

    def gather(self, pieces: Sequence[Piece | Exception]) -> PersonChunks:
        """Join the pieces that hold the same units, or raise the first error."""
        return self._chunk(*joined_pieces(pieces))

    def _chunk(self, table: NDArray[np.float64], labels: Labels) -> PersonChunks:
        """Chunk of whole units from entries; `labels` are not needed, as they are in the table."""
        coordinates, values = table[:, :-1].astype(np.intp), table[:, -1]
        return PersonChunks(
            coordinates, values, self.shape, self.unit_mode, self.bounds, is_part=True
        )

    def check_number(self, n_units: int) -> None:
        """Raise ValueError for more units than the shape announces."""
        most = self.shape[self.unit_mode]
        if n_units > most:
            raise ValueError(MORE_IDS.format(mode=self.unit_mode, most=most))

    def __call__(self, partition: PersonChunks) -> PersonChunks:
        """Return the partition, a chunk that queries can read, within the released range."""
        return partition if self.released is None else partition.within(self.released)


class LazyPersons(ValueRange):
    """Entries of units (protected rows of the unit mode) in Dask partitions, summed there."""

    apart = True

    def __init__(self, partitions: DaskPartitions, reader: PersonReader) -> None:
        super().__init__(reader.released or reader.bounds)
        self._partitions, self._reader = partitions, reader
        self.shape = reader.shape
        self.n_units = reader.shape[reader.unit_mode]
        self.read_before_charge = reader.has_ids  # to compare their number with `n_units`

    def sum(self, query: Any) -> Any:
        """Sum of the contributions of all units to `query`."""
        partial = self._partitions.sum(PartialQuery(query, self._reader))
        value = partial.value()
        self._reader.check_number(partial.n_units)
        return value

    def within(self, bounds: tuple[float, float]) -> "LazyPersons":
        """Entries with values clipped to a narrower range, which was released."""
        return LazyPersons(self._partitions, replace(self._reader, released=bounds))
