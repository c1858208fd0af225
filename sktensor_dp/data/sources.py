"""Classes of data that is not in memory as a whole.

Tables, of pandas, polars or Dask, are read by `estimator/rows.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from sktensor_dp.checks.errors import call_untrusted
from sktensor_dp.checks.frames import is_dask, is_table
from sktensor_dp.data.sums import PartialQuery, PartialSum


class PartitionedSource(ABC):
    """Data in partitions, on any machines, over which a query can be summed.

    ``fit_chunks`` takes a subclass in the place of chunks, or a class that was registered:
    ``PartitionedSource.register(Mine)``. A method ``sum`` alone makes no source.

    Attributes
    ----------
    grouped : bool
        True if partitions are pairs of rows and labels of groups; all rows of a group must then
        lie in one partition. False unless a class says otherwise.

    Notes
    -----
    **Privacy.** A source sees raw data and adds up; what it returns is as private as the data. Each
    unit must be counted once: where a partition is read twice, because a worker was lost or was
    slow, one of the two results must be dropped. Errors are raised anew by type and place, without
    their text.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> from sktensor_dp.data.partitions import PartitionedSource
    >>> class Arrays(PartitionedSource):
    ...     def __init__(self, *arrays):
    ...         self.arrays = arrays
    ...
    ...     def sum(self, query):
    ...         return query.merge(map(query, self.arrays))
    >>> halves = Arrays(*np.random.default_rng(0).poisson(1.0, (2, 1000, 6)))
    >>> lda = PrivateSpectralLDA(1, epsilon=10.0)
    >>> lda.fit_chunks(halves, n_samples=2000, n_features=6).components_.shape
    (1, 6)
    """

    grouped: bool = False

    @abstractmethod
    def sum(self, query: PartialQuery) -> PartialSum:
        """Sum a query over all partitions.

        Parameters
        ----------
        query : PartialQuery
            Query to call on each partition, where the partition lies; it can be pickled.

        Returns
        -------
        PartialSum
            ``query.merge`` of the results of all partitions.
        """


def summed(source: PartitionedSource, query: PartialQuery) -> PartialSum:
    """Sum of a query over the partitions of a source; its errors show no data."""
    total = call_untrusted(lambda: source.sum(query), "Adding up partitions")
    if not isinstance(total, PartialSum):
        raise TypeError(
            "sum of the source must return the PartialSum that query.merge makes; got a "
            f"{type(total).__name__}."
        )
    return total


def check_chunks(source: Any) -> None:
    """Raise TypeError unless `source` is an iterable of chunks that can be read again and again."""
    kind = type(source)
    if is_dask(source) or is_table(source) or issubclass(kind, (str, bytes, Mapping)):
        raise TypeError(
            f"source must be an iterable of chunks, got one {kind.__name__}. Pass it to fit, or as "
            "the only chunk of a list: [source]."
        )
    if not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
        raise TypeError(f"source must be an iterable of chunks, got a {kind.__name__}.")
    if call_untrusted(lambda: iter(source) is source, "The source of chunks"):
        raise TypeError(
            "source must be re-iterable (a list, or an object whose __iter__ starts anew); got a "
            f"{kind.__name__}, which can be read once."
        )
