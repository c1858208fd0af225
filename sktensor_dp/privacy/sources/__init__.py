"""Where sums over raw data are taken: in threads, on a Dask cluster, or wherever it lies."""

from sktensor_dp.privacy.sources.partitions import PartitionedSource, ThreadedPartitions
from sktensor_dp.queries.sums import PartialQuery, PartialSum

__all__ = ["PartialQuery", "PartialSum", "PartitionedSource", "ThreadedPartitions"]
