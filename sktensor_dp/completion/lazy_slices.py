"""Entries that Dask has not computed yet: those of a unit are brought together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktensor_dp.estimator.inputs import refuse_other_kinds
from sktensor_dp.estimator.lazy_tables import (
    TypesOf,
    check_columns,
    is_lazy,
    partitions_beside,
    row_partitions,
)
from sktensor_dp.privacy.sources.dask_partitions import DaskPartitions
from sktensor_dp.statistics.observed_entries import (
    SliceChunks,
    ValueRange,
    as_entries,
    check_unit_mode,
    checked_shape,
)
from sktensor_dp.statistics.partial_sums import PartialQuery
from sktensor_dp.statistics.reading import call_foreign
from sktensor_dp.statistics.shuffling import Piece, gathered, split_by_group

__all__ = ["LazySlices", "lazy_slices"]


@dataclass(frozen=True)
class SliceReader:
    """How coordinates and values of a partition become units; of public parameters alone."""

    shape: tuple[int, ...]
    unit_mode: int
    bounds: tuple[float, float]

    def split(self, X: Any, y: Any, n_parts: int) -> list[Piece] | Exception:
        """Entries of a partition, by the part that each unit goes to; an error is returned."""
        try:
            return call_foreign(lambda: self._split(X, y, n_parts), "Reading entries")
        except Exception as error:
            return error.with_traceback(None)

    def _split(self, X: Any, y: Any, n_parts: int) -> list[Piece]:
        X, y = (part.to_numpy() if hasattr(part, "to_numpy") else part for part in (X, y))
        coordinates, values, _ = as_entries(X, y, self.shape)
        # Coordinates are exact in double precision.
        table = np.column_stack([coordinates, values])
        return split_by_group(table, coordinates[:, self.unit_mode], n_parts)  # type: ignore[return-value]

    def gather(self, pieces: Sequence[Piece | Exception]) -> SliceChunks | Exception:
        """All entries of some units from the pieces of all partitions, or the first error."""
        found = gathered(pieces)
        if isinstance(found, Exception):
            return found
        table, _ = found
        coordinates = table[:, :-1].astype(np.intp)
        return SliceChunks(
            coordinates, table[:, -1], self.shape, self.unit_mode, self.bounds, part=True
        )

    def __call__(self, partition: SliceChunks) -> SliceChunks:
        """The partition, which is what queries read."""
        return partition


class LazySlices(ValueRange):
    """Units that lie in partitions, and add up there.

    Attributes
    ----------
    shape : tuple of n_modes int
        Public.
    n_units : int
        ``shape[unit_mode]``.
    """

    apart = True

    def __init__(self, partitions: DaskPartitions, reader: SliceReader) -> None:
        super().__init__(reader.bounds)
        self._partitions, self._reader = partitions, reader
        self.shape = reader.shape
        self.n_units = reader.shape[reader.unit_mode]

    def sum(self, query: Any) -> Any:
        """Sum of contributions over all units."""
        # Their number is the shape's, and nothing to be held against the partitions.
        return self._partitions.sum(PartialQuery(query, self._reader)).value()


def lazy_slices(
    estimator: Any,
    X: Any,
    y: Any,
    shape: Sequence[int],
    unit_mode: int,
    bounds: tuple[float, float],
    text: str,
) -> LazySlices:
    """Check what is known of entries, on behalf of an estimator; nothing is computed.

    `text` says what to do about columns of text.
    """
    import dask

    X = check_columns(estimator, X, reset=True, text=text)
    rows = checked_shape(shape, int(X.shape[1]))
    check_unit_mode(unit_mode, rows)
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if is_lazy(y):
        refuse_other_kinds(TypesOf(y), "y", "encode it first")
    parts = row_partitions(X)
    values = partitions_beside(y, X, len(parts), "y", "value")
    reader = SliceReader(rows, unit_mode, bounds)
    split = dask.delayed(reader.split)
    pieces = [split(*part, len(parts)) for part in zip(parts, values, strict=True)]
    return LazySlices(DaskPartitions.rearranged(pieces, reader.gather), reader)
