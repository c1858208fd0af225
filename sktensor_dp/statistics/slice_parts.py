"""Entries of whole slices, brought together from several partitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.statistics.frames import as_numbers
from sktensor_dp.statistics.observed_entries import (
    SliceChunks,
    as_entries,
    check_unit_mode,
    checked_shape,
)
from sktensor_dp.statistics.reading import error_or
from sktensor_dp.statistics.regrouping import Piece, gathered, split
from sktensor_dp.tensor.row_bounds import Bounds, RowBounds


@dataclass(frozen=True)
class SliceReader:
    """How coordinates and values of a partition become units; of public parameters alone."""

    shape: tuple[int, ...]
    unit_mode: int
    bounds: Bounds

    @classmethod
    def checked(cls, shape: Sequence[int], n_modes: int, unit_mode: int, bounds: Bounds) -> Self:
        """Once the shape has as many lengths as coordinates have columns."""
        rows = checked_shape(shape, n_modes)
        check_unit_mode(unit_mode, rows)
        if isinstance(bounds, RowBounds):
            bounds.check_shape(rows)
        return cls(rows, unit_mode, bounds)

    def split(self, X: Any, y: Any, n_parts: int) -> list[Piece] | Exception:
        """Entries of a partition, by the part that each unit goes to; an error is returned."""
        return error_or(lambda: self._split(X, y, n_parts), "Reading entries")

    def _split(self, X: Any, y: Any, n_parts: int) -> list[Piece]:
        X, y = (as_numbers(part, "a partition") for part in (X, y))
        coordinates, values, _ = as_entries(X, y, self.shape)
        # Coordinates are exact in double precision.
        table = np.column_stack([coordinates, values])
        return split(table, coordinates[:, self.unit_mode], n_parts)

    def gather(self, pieces: Sequence[Piece | Exception]) -> SliceChunks | Exception:
        """All entries of some units from the pieces of all partitions, or the first error."""
        found = gathered(pieces)
        if isinstance(found, Exception):
            return found
        return error_or(lambda: self._chunk(found[0]), "Reading entries")

    def _chunk(self, table: NDArray[np.float64]) -> SliceChunks:
        coordinates, values = table[:, :-1].astype(np.intp), table[:, -1]
        return SliceChunks(coordinates, values, self.shape, self.unit_mode, self.bounds, part=True)

    def __call__(self, partition: SliceChunks) -> SliceChunks:
        """The partition, which is what queries read."""
        return partition
