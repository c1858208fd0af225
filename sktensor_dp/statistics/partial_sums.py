"""Sums over partitions of the data that lie apart: in files, in processes, on machines.

Whoever holds partitions calls a :class:`PartialQuery` on each and merges what comes back.
Both can be pickled. Neither holds more of the data than the sum over its own partitions.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from threadpoolctl import ThreadpoolController

from sktensor_dp.statistics.reading import error_or
from sktensor_dp.statistics.sums import AccurateSum

# Of a partition as its holder has it: chunks as queries take them.
Reader = Callable[[Any], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class PartialSum:
    """Sum of a query's answers over some partitions, or why there is none.

    Attributes
    ----------
    total : object or None
        What was added up so far; None where a partition could not be read.
    n_units : int
        Number of units in these partitions.
    error : Exception or None
        Of the first partition that could not be read; it shows no data.
    """

    total: Any
    n_units: int
    error: Exception | None = None

    def value(self) -> Any:
        """The sum, once all partitions are in it.

        Raises
        ------
        Exception
            If a partition could not be read.
        """
        if self.error is not None:
            raise self.error
        return self.total.value()


@dataclass(frozen=True, eq=False)
class PartialQuery:
    """A query as it is sent to where partitions lie.

    It holds public numbers alone: parameters, and values that were released before.

    Parameters
    ----------
    query : Query
        What is asked for.
    reader : callable
        Makes chunks of a partition.
    """

    query: Any
    reader: Reader

    def __call__(self, partition: Any) -> PartialSum:
        """Sum over one partition.

        Parameters
        ----------
        partition : object
            As a source of chunks yields it: rows, or a pair ``(rows, groups)`` with all
            rows of each of its groups. For words: an iterable of documents. An exception
            in its place says why it could not be read.

        Returns
        -------
        PartialSum
            It never raises: an error is in the result, and shows no data. Schedulers write
            errors that are raised into their logs, together with the data.
        """
        found = error_or(lambda: self._summed(partition), "Reading a partition")
        return PartialSum(None, 0, found) if isinstance(found, Exception) else found

    def merge(self, parts: Iterable[PartialSum]) -> PartialSum:
        """Sum over several sets of partitions, each of which must be in one only.

        Parameters
        ----------
        parts : iterable of PartialSum
            They stay as they are. Sums may be merged in any shape of tree; the same tree
            gives the same digits.

        Returns
        -------
        PartialSum
            Over all of them.
        """
        merged, n_units = self._nothing(), 0
        for part in parts:
            if part.error is not None:
                return part
            merged.merge(part.total)
            n_units += part.n_units
        return PartialSum(merged, n_units)

    def _nothing(self) -> Any:
        return getattr(self.query, "sums", AccurateSum)()

    def _summed(self, partition: Any) -> PartialSum:
        if isinstance(partition, Exception):
            raise partition
        total, n_units = self._nothing(), 0
        # What a caller of before has set may differ from place to place.
        with OneThread(), np.errstate(all="ignore"):
            for chunk in self.reader(partition):
                total.add(self.query.total(chunk))
                n_units += units_of(chunk)
        return PartialSum(total, n_units)


def units_of(chunk: Any) -> int:
    """Number of units in a chunk."""
    if hasattr(chunk, "n_units"):
        return int(chunk.n_units)
    units = getattr(chunk, "units", None)
    return len(chunk) if units is None else int(units.n)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


class OneThread:
    """Products by one thread each, while any block of this kind is open in this process.

    The limit belongs to the process. The last block that ends takes it back, not each its
    own: tasks of a scheduler overlap, and one that ends would lift the limit of another.
    """

    _lock = threading.Lock()
    _n_open = 0
    _limit: Any = None

    def __enter__(self) -> Self:
        kind = type(self)
        with kind._lock:
            if kind._n_open == 0:
                kind._limit = _libraries().limit(limits=1, user_api="blas")
            kind._n_open += 1
        return self

    def __exit__(self, *exc_info: Any) -> None:
        kind = type(self)
        with kind._lock:
            kind._n_open -= 1
            if kind._n_open == 0:
                kind._limit.restore_original_limits()
                kind._limit = None
