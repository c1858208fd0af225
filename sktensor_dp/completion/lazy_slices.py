"""Entries that Dask has not computed yet: those of a unit are brought together."""

from collections.abc import Sequence
from typing import Any

from sktensor_dp.estimator.inputs import (
    check_columns,
    is_lazy,
    partitions_beside,
    refuse_other_kinds,
    row_partitions,
)
from sktensor_dp.privacy.execution import DaskPartitions
from sktensor_dp.queries.observed_entries import ValueRange
from sktensor_dp.queries.slices import SliceReader
from sktensor_dp.queries.sums import PartialQuery
from sktensor_dp.tensor.row_bounds import Bounds


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
    bounds: Bounds,
    text: str,
) -> LazySlices:
    """Check what is known of entries, on behalf of an estimator; nothing is computed.

    `text` says what to do about columns of text.
    """
    import dask

    X = check_columns(estimator, X, reset=True, text=text)
    reader = SliceReader.checked(shape, int(X.shape[1]), unit_mode, bounds)
    if is_lazy(y):
        refuse_other_kinds(y._meta, "y", "encode it first")
    parts = row_partitions(X)
    values = partitions_beside(y, X, len(parts), "y", "value")
    split = dask.delayed(reader.split)
    pieces = [split(*part, len(parts)) for part in zip(parts, values, strict=True)]
    return LazySlices(DaskPartitions.rearranged(pieces, reader.gather), reader)
