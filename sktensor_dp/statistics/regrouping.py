"""Groups whose rows lie in several chunks of a source that is read from beginning to end."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.labels import EXPECTED, ONE_GROUP, as_labels
from sktensor_dp.statistics.reading import read_each
from sktensor_dp.tensor.arrays import Integers

MIXED = "Every chunk must be a pair (X, groups), or none may be."
CHANGED = "The chunks have other groups than when they were read first."


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
