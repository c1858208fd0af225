"""Partitions that Dask holds: on this machine by its own schedulers, or on a cluster."""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

from sktensor_dp.queries.reading import call_foreign
from sktensor_dp.queries.sums import PartialQuery, PartialSum
from sktensor_dp.queries.units import gathered, piece_of, split_by_group

# Sums that are merged by one task.
FAN_IN = 8
# How often a sum is asked for anew where workers were lost with what it needs.
ATTEMPTS = 3


class DaskPartitions:
    """Delayed partitions, and sums over them.

    Parameters
    ----------
    parts : sequence of Delayed
        Partitions as sources yield them.
    grouped : bool, default=False
        Whether these are pairs of rows and labels.
    kept : bool, default=False
        Whether a cluster keeps the partitions from the first sum on until this object is
        dropped, as forming them takes long. Other schedulers form them for every sum.
    """

    # A task holds the key of its partition and of the query. A result that is computed twice, as
    # its worker was lost or slow, has one key, and is merged by one task: it counts once.

    def __init__(self, parts: Sequence[Any], *, grouped: bool = False, kept: bool = False) -> None:
        self._parts, self.grouped, self._kept = list(parts), grouped, kept

    @classmethod
    def shuffled(cls, rows: Sequence[Any], labels: Sequence[Any]) -> "DaskPartitions":
        """As many partitions, each with all rows of its groups.

        Parameters
        ----------
        rows, labels : sequences of Delayed
            Of the same partitions, which groups may lie across.
        """
        import dask

        # By digests of labels: no partition learns of groups but its own, and nobody of all.
        split = dask.delayed(split_by_group)
        pieces = [split(*part, len(rows)) for part in zip(rows, labels, strict=True)]
        return cls.rearranged(pieces, gathered, grouped=True)

    @classmethod
    def rearranged(
        cls, pieces: Sequence[Any], gather: Callable[[Sequence[Any]], Any], *, grouped: bool = False
    ) -> "DaskPartitions":
        """As many partitions, each made of one piece of every partition there was.

        Parameters
        ----------
        pieces : sequence of Delayed
            What each partition was cut into: as many pieces as there are partitions, or an
            error in their place.
        gather : callable
            Makes a partition of its pieces, some of which may be errors.
        grouped : bool, default=False
            Whether it makes pairs of rows and labels.
        """
        import dask

        taken, together = dask.delayed(piece_of), dask.delayed(gather)
        places = range(len(pieces))
        whole = [together([taken(piece, place) for piece in pieces]) for place in places]
        return cls(whole, grouped=grouped, kept=True)

    def sum(self, query: PartialQuery) -> PartialSum:
        """Ask all partitions, and merge in a tree."""
        return call_foreign(lambda: self._sum(query), "Adding up partitions")

    def _sum(self, query: PartialQuery) -> PartialSum:
        import dask

        client = _client(self._parts)
        if client is None:
            # One object of the graph, which threads share.
            sent = dask.delayed(query, pure=False, traverse=False)
            (result,) = dask.compute(self._tree(sent))
            return result
        if self._kept:
            self._parts, self._kept = list(client.persist(self._parts)), False
        return self._sum_on(client, query)

    def _sum_on(self, client: Any, query: PartialQuery) -> PartialSum:
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        lost: BaseException | None = None
        for _ in range(ATTEMPTS):
            sent = result = None
            try:
                # Once to each worker: tasks name it. Where one worker is lost, others have it.
                (sent,) = client.scatter([query], broadcast=True, hash=False)
                result = client.compute(self._tree(sent))
                return result.result()
            except (KilledWorker, CancelledError, CommClosedError, TimeoutError) as error:
                lost = error
            finally:
                # Workers drop the query and all sums.
                for future in (result, sent):
                    if future is not None:
                        future.release()
        raise RuntimeError(
            f"Workers were lost ({type(lost).__name__}) in each of {ATTEMPTS} attempts at one sum. "
            "What was charged stays charged."
        )

    def _tree(self, query: Any) -> Any:
        import dask

        asked = dask.delayed(_asked, pure=False)
        merged = dask.delayed(_merged, pure=False)
        level = [asked(query, part) for part in self._parts]
        while len(level) > 1:
            level = [
                merged(query, level[start : start + FAN_IN])
                for start in range(0, len(level), FAN_IN)
            ]
        return level[0]


def _asked(query: PartialQuery, part: Any) -> PartialSum:
    return query(part)


def _merged(query: PartialQuery, parts: Sequence[PartialSum]) -> PartialSum:
    return query.merge(parts)


def _client(parts: Sequence[Any]) -> Any:
    """The client that Dask would compute by, or None where it is another scheduler."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(collections=parts), "__self__", None)
    return client if hasattr(client, "scatter") else None
