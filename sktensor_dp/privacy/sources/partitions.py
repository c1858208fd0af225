"""What a holder of partitions has to offer, and one whose partitions are read in threads."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

from sktensor_dp.queries.reading import read_each
from sktensor_dp.queries.sums import PartialQuery, PartialSum


@runtime_checkable
class PartitionedSource(Protocol):
    """Partitions of the data, wherever they lie, and how sums over them are taken.

    ``fit_chunks`` takes one in the place of chunks. It may have an attribute ``grouped``,
    which is True if partitions are pairs of rows and labels of groups; all rows of a group
    must then lie in one partition.

    Notes
    -----
    **Privacy.** A source sees raw data and what was released before, and adds up. It draws no
    noise, charges nothing and decides nothing: the curator does. What it returns is as
    private as the data. Each unit must be counted once: where a partition is read twice,
    because a worker was lost or was slow, one of the two results must be dropped.
    """

    def sum(self, query: PartialQuery) -> PartialSum:
        """Ask all partitions.

        Parameters
        ----------
        query : PartialQuery
            Called on each partition, where it lies; it can be pickled.

        Returns
        -------
        PartialSum
            ``query.merge`` of what the partitions gave.
        """


class ThreadedPartitions:
    """Chunks of a source that are read and added up in several threads.

    Parameters
    ----------
    source : iterable
        Chunks as ``fit_chunks`` takes them, iterated over once per release; in each, all rows
        of its groups, where these are given.
    n_threads : int
        How many are worked on at a time. Memory holds that many chunks and twice as many
        sums.
    grouped : bool, default=False
        Whether chunks are pairs ``(X, groups)``.

    Notes
    -----
    Sums are merged in the order of the chunks. Where no chunk has more than 2**14 rows, they
    have the digits that they have without threads.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> from sktensor_dp.privacy.sources import ThreadedPartitions
    >>> chunks = [np.random.default_rng(i).poisson(1.0, (500, 6)) for i in range(4)]
    >>> lda = PrivateSpectralLDA(1, epsilon=10.0)
    >>> lda = lda.fit_chunks(ThreadedPartitions(chunks, 2), n_samples=2000, n_features=6)
    >>> lda.components_.shape
    (1, 6)
    """

    def __init__(self, source: Iterable[Any], n_threads: int, *, grouped: bool = False) -> None:
        if iter(source) is source:
            raise TypeError(
                f"source must be re-iterable (a list, or an object whose __iter__ starts anew); "
                f"got a {type(source).__name__}, which can be read once."
            )
        if not (isinstance(n_threads, int) and n_threads >= 1):
            raise ValueError(f"n_threads must be an int >= 1, got {n_threads!r}.")
        self._source, self._n_threads, self.grouped = source, n_threads, grouped

    def sum(self, query: PartialQuery) -> PartialSum:
        """Ask all chunks.

        Parameters
        ----------
        query : PartialQuery
            Called on each chunk.

        Returns
        -------
        PartialSum
            Over all of them.
        """
        with ThreadPoolExecutor(self._n_threads) as pool:
            return query.merge(self._in_order(query, pool))

    def _in_order(self, query: PartialQuery, pool: ThreadPoolExecutor) -> Iterator[PartialSum]:
        waiting: deque[Future[PartialSum]] = deque()
        for chunk in read_each(self._source, "The source of chunks"):
            waiting.append(pool.submit(query, chunk))
            if len(waiting) >= 2 * self._n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
