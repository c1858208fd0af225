"""Rows of a group brought together from several partitions, without a table of all groups."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.statistics.frames import as_numbers
from sktensor_dp.statistics.labels import EXPECTED, as_labels
from sktensor_dp.statistics.reading import error_or
from sktensor_dp.statistics.regrouping import MIXED, stacked

Piece = tuple[Any, NDArray[Any]]

# Finalizer of SplitMix64 (Steele, Lea & Flood 2014), and a prime to fold characters by (FNV-1a).
FIRST, SECOND, PRIME = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x100000001B3


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
    """A number of each label that is the same in every process."""
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
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(FIRST)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(SECOND)
    return keys ^ (keys >> np.uint64(31))
