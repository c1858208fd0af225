"""Parts of an iterable, as a source of partitions."""

from collections.abc import Iterable

from sktensor_dp.checks.errors import read_each
from sktensor_dp.data.partitions import PartialQuery, PartialSum, PartitionedSource


class PartsInOrder(PartitionedSource):
    """Parts that are read and summed one after the other in this process."""

    def __init__(self, source: Iterable[object], *, grouped: bool = False) -> None:
        self._source, self.grouped = source, grouped

    def sum(self, query: PartialQuery) -> PartialSum:
        """Sum a query over all parts."""
        return query.merge(map(query, read_each(self._source, "The source of chunks")))
