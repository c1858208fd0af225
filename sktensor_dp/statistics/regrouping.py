"""Rows of a group brought together, from chunks that are read in turn or from partitions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.frames import as_numbers
from sktensor_dp.statistics.labels import EXPECTED, ONE_GROUP, as_labels
from sktensor_dp.statistics.reading import error_or, read_each
from sktensor_dp.tensor.arrays import Integers

MIXED = "Every chunk must be a pair (X, groups), or none may be."
CHANGED = "The chunks have other groups than when they were read first."

Piece = tuple[Any, NDArray[Any]]

# Finalizer of SplitMix64 (Steele, Lea & Flood 2014), and a prime to fold characters by (FNV-1a).
FIRST, SECOND, PRIME = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x100000001B3


def split_chunk(part: Any) -> tuple[Any, Any]:
    """Rows and labels of a chunk; None for the labels where it has none."""
    if isinstance(part, tuple) and len(part) == 2:
        return part
    return part, None


@dataclass(frozen=True, eq=False)
class GroupTable:
    """All groups of a source, in the order of their labels, and how many rows each has."""

    labels: NDArray[Any]
    sizes: Integers

    @classmethod
    def of(cls, source: Iterable[Any], least: int = 2) -> Self:
        """Read the labels of all chunks, of at least so many groups."""
        read = [
            np.unique(_labels(split_chunk(part)[1]), return_counts=True)
            for part in read_each(source, "The source of chunks")
        ]
        # Chunks without rows have labels of no kind.
        found = [(labels, counts) for labels, counts in read if len(labels)] or read[:1]
        if len({labels.dtype.kind == "i" for labels, _ in found}) != 1:
            raise ValueError(f"{EXPECTED}, in all chunks alike.")
        labels, places = np.unique(np.concatenate([one for one, _ in found]), return_inverse=True)
        if len(labels) < least:
            raise ValueError(ONE_GROUP)
        sizes = np.bincount(places, weights=np.concatenate([counts for _, counts in found]))
        return cls(labels, sizes.astype(np.intp))

    def places(self, labels: NDArray[Any]) -> Integers:
        """Place of each label."""
        if not len(labels):
            return np.zeros(0, np.intp)
        places = np.searchsorted(self.labels, labels)
        places = np.minimum(places, max(len(self.labels) - 1, 0))
        if not len(self.labels) or not np.array_equal(self.labels[places], labels):
            raise ValueError(CHANGED)
        return places


def _labels(groups: Any) -> NDArray[Any]:
    if groups is None:
        raise ValueError(MIXED)
    return as_labels(groups, np.shape(groups)[0] if np.ndim(groups) else 0)


class Waiting:
    """Rows of groups of which more rows are to come."""

    def __init__(self, table: GroupTable) -> None:
        self._table = table
        self._left = table.sizes.copy()
        self._rows: list[tuple[Any, Integers]] = []

    def after(self, rows: Any, labels: NDArray[Any]) -> tuple[Any, Integers] | None:
        """Rows of the groups that are complete with these, and the places of their groups."""
        places = self._table.places(labels)
        self._left -= np.bincount(places, minlength=len(self._left))
        if (self._left < 0).any():
            raise ValueError(CHANGED)
        ready: list[tuple[Any, Integers]] = []
        held: list[tuple[Any, Integers]] = []
        for X, of_rows in (*self._rows, (rows, places)):
            complete = self._left[of_rows] == 0
            if complete.all():
                ready.append((X, of_rows))
                continue
            held.append((X[~complete], of_rows[~complete]))
            if complete.any():
                ready.append((X[complete], of_rows[complete]))
        self._rows = held
        ready = [part for part in ready if len(part[1])]
        if not ready:
            return None
        return stacked([X for X, _ in ready]), np.concatenate([places for _, places in ready])

    def check_empty(self) -> None:
        """Refuse a source that ended before all rows of its groups."""
        if self._left.any():
            raise ValueError(CHANGED)


def stacked(parts: list[Any]) -> Any:
    """Rows of several matrices, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if any(map(sp.issparse, parts)):
        return sp.vstack([sp.csr_matrix(part) for part in parts], format="csr")
    return np.concatenate(parts)


# Partitions, of which no table of all groups is made


def split_by_group(X: Any, groups: Any, n_parts: int) -> list[Piece] | Exception:
    """Rows of a partition and their labels, by the part that each group goes to.

    A label goes to the same part wherever it occurs. An error is returned, not raised:
    schedulers write those that are raised into their logs, with the data.
    """
    return error_or(lambda: split(X, groups, n_parts), "Reading groups")


def gathered(pieces: Sequence[Piece | Exception]) -> Piece | Exception:
    """Rows of whole groups from the pieces of all partitions, or the first error."""
    found: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Exception):
            return piece
        found.append(piece)
    # Pieces without rows have labels of no kind.
    told = [piece for piece in found if len(piece[1])] or found[:1]
    if len({labels.dtype.kind for _, labels in told}) > 1:
        return ValueError(f"{EXPECTED}, in all chunks alike.")
    return stacked([X for X, _ in told]), np.concatenate([labels for _, labels in told])


def piece_of(pieces: list[Piece] | Exception, place: int) -> Piece | Exception:
    """One of the pieces of a partition."""
    return pieces if isinstance(pieces, Exception) else pieces[place]


def split(X: Any, groups: Any, n_parts: int) -> list[Piece]:
    """What `split_by_group` returns; errors are raised."""
    rows = as_numbers(X, "a partition")
    if not hasattr(rows, "shape"):
        rows = np.fromiter(rows, object)  # of a bag
    if groups is None:
        raise ValueError(MIXED)
    labels = as_labels(groups, rows.shape[0])
    parts = _digests(labels) % np.uint64(n_parts)
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    return [(rows[parts == part], labels[parts == part]) for part in range(n_parts)]


def _digests(labels: NDArray[Any]) -> NDArray[np.uint64]:
    """A number of each label that is the same in every process: it says where work is done."""
    if labels.dtype.kind == "U":
        keys = np.full(len(labels), PRIME, np.uint64)
        width = labels.dtype.itemsize // 4
        characters = np.ascontiguousarray(labels).view(np.uint32).reshape(len(labels), width)
        for column in characters.T:
            # Of short labels the rest is padding, whose width is that of a partition.
            folded = (keys ^ column.astype(np.uint64)) * np.uint64(PRIME)
            keys = np.where(column > 0, folded, keys)
    else:
        keys = labels.astype(np.int64).view(np.uint64)
    return mixed(keys)


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Other numbers, one to one, whose bits depend on all bits of these."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(FIRST)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(SECOND)
    return keys ^ (keys >> np.uint64(31))
