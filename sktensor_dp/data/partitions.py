"""Data in partitions of Dask, summed on its workers."""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.checks.errors import call_untrusted, error_or
from sktensor_dp.checks.frames import as_numbers, refuse_other_row_order
from sktensor_dp.data.labels import Labels, as_labels, digests, joined
from sktensor_dp.data.sources import PartitionedSource
from sktensor_dp.data.sums import PartialQuery, PartialSum
from sktensor_dp.data.units import MIXED, Rows

# Partition, result or task of Dask, which has no types.
Delayed = Any

__all__ = ["PartialQuery", "PartialSum", "PartitionedSource"]
# Number of sums that one task merges.
FAN_IN = 8
Piece = tuple[Rows, Labels]  # rows and their labels


def stacked(parts: list[Rows]) -> Rows:
    """Matrices stacked one below the other; CSR if one of them is sparse."""
    if len(parts) == 1:
        return parts[0]
    if any(map(sp.issparse, parts)):
        return sp.vstack([sp.csr_matrix(part) for part in parts], format="csr")
    return np.concatenate(parts)


def joined_pieces(pieces: Sequence[Piece | Exception]) -> Piece:
    """Join the pieces of all partitions that hold the same groups, or raise the first error."""
    all_rows, all_labels = [], []
    for piece in pieces:
        if isinstance(piece, Exception):
            raise piece
        all_rows.append(piece[0])
        all_labels.append(piece[1])
    with_rows = [X for X in all_rows if X.shape[0]] or all_rows[:1]  # one for its columns
    return stacked(with_rows), joined(all_labels)


def piece_of(pieces: list[Piece] | Exception, place: int) -> Piece | Exception:
    """Piece number `place` of a split partition, or the error that splitting it returned."""
    return pieces if isinstance(pieces, Exception) else pieces[place]


def split_by_group(X: object, groups: object, n_parts: int) -> list[Piece]:
    """Split rows by a hash of their group's label into `n_parts` pairs (rows, labels)."""
    rows = as_numbers(X, "a partition")
    if not hasattr(rows, "shape"):
        rows = np.fromiter(rows, object)  # of a bag
    if groups is None:
        raise ValueError(MIXED)
    refuse_other_row_order(X, groups)
    labels = as_labels(groups, rows.shape[0])
    parts = digests(labels) % np.uint64(n_parts)
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    return [(rows[parts == part], labels[parts == part]) for part in range(n_parts)]


class DaskPartitions(PartitionedSource):
    """Delayed partitions of Dask over which queries are summed on its workers."""

    # With `grouped` partitions are pairs of rows and labels. With `kept` a cluster keeps them from
    # the first sum on until this object is dropped, as making them takes long. Tasks are named by
    # partition and query: a result that is computed twice, because its worker was lost or slow, has
    # one name and is merged once.

    def __init__(
        self, parts: Sequence[object], *, grouped: bool = False, kept: bool = False
    ) -> None:
        self._parts, self.grouped, self._kept = list(parts), grouped, kept

    @classmethod
    def shuffled(cls, rows: Sequence[Delayed], labels: Sequence[Delayed]) -> "DaskPartitions":
        """Regroup partitions of rows and labels so that all rows of a group are in one."""
        import dask

        delayed_call = dask.delayed(error_or)
        # Each old partition is split, by digests of labels, into one piece for each new partition:
        # no process needs the labels of all.
        pieces = [
            delayed_call("Reading groups", split_by_group, *part, len(rows))
            for part in zip(rows, labels, strict=True)
        ]
        return cls.rearranged(pieces, joined_pieces, grouped=True)

    @classmethod
    def rearranged(
        cls, pieces: Sequence[Delayed], gather: Callable[..., object], *, grouped: bool = False
    ) -> "DaskPartitions":
        """Build new partitions: each is `gather` of one piece (or error) of every old partition."""
        import dask

        delayed_piece, delayed_call = dask.delayed(piece_of), dask.delayed(error_or)
        parts = [
            delayed_call(
                "Bringing units together", gather, [delayed_piece(old, place) for old in pieces]
            )
            for place in range(len(pieces))
        ]
        return cls(parts, grouped=grouped, kept=True)

    def sum(self, query: PartialQuery) -> PartialSum:
        """Sum a query over all partitions, merging partial sums in a tree."""
        return call_untrusted(lambda: self._sum(query), "Adding up partitions")

    def _sum(self, query: PartialQuery) -> PartialSum:
        """Sum a query by the scheduler that Dask would choose."""
        import dask

        client = _client(self._parts)
        if client is None:
            # One object in the task graph; threads share it.
            sent = dask.delayed(query, pure=False, traverse=False)
            (result,) = dask.compute(self._tree(sent))
            return result
        if self._kept:  # by the first sum; later ones find the parts on the cluster
            self._parts, self._kept = list(client.persist(self._parts)), False
        return self._sum_on(client, query)

    def _sum_on(self, client: Any, query: PartialQuery) -> PartialSum:
        """Sum a query on a cluster; try again if workers were lost."""
        attempts = 3
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        lost: BaseException | None = None
        for _ in range(attempts):
            sent = result = None
            try:
                # Send the query once to each worker: tasks refer to it, and other workers have it
                # if one is lost.
                (sent,) = client.scatter([query], broadcast=True, hash=False)
                result = client.compute(self._tree(sent))
                return result.result()
            except (KilledWorker, CancelledError, CommClosedError, TimeoutError) as error:
                lost = error
            finally:
                # Release query and sums on the workers.
                for future in (result, sent):
                    if future is not None:
                        future.release()
        raise RuntimeError(
            f"Workers were lost ({type(lost).__name__}) in each of {attempts} attempts at one sum. "
            "What was charged stays charged."
        )

    def _tree(self, query: object) -> Delayed:
        """Delayed sum of a delayed query over all partitions, merged `FAN_IN` at a time."""
        import dask

        sum_of_part = dask.delayed(_sum_of_part, pure=False)
        merged = dask.delayed(_merged, pure=False)
        level = [sum_of_part(query, part) for part in self._parts]
        while len(level) > 1:
            level = [
                merged(query, level[start : start + FAN_IN])
                for start in range(0, len(level), FAN_IN)
            ]
        return level[0]


def _sum_of_part(query: PartialQuery, part: object) -> PartialSum:
    """Sum of a query over one partition, as a task of Dask."""
    return query(part)


def _merged(query: PartialQuery, sums: Sequence[PartialSum]) -> PartialSum:
    """Sum of the sums of partitions, as a task of Dask."""
    return query.merge(sums)


def _client(parts: Sequence[object]) -> Any:
    """Client of the cluster on which Dask would compute; None for threads and other schedulers."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(collections=parts), "__self__", None)
    return client if hasattr(client, "scatter") else None
