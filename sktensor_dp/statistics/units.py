"""Units of privacy with several rows: a unit contributes the mean of what its rows contribute.

Proofs: docs/proofs/groups.md.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.statistics.frames import as_numbers
from sktensor_dp.statistics.reading import read

__all__ = [
    "EXPECTED",
    "ONE_GROUP",
    "RowChoice",
    "Units",
    "are_several",
    "as_labels",
    "in_order",
    "kept_rows",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# Random keys for so many rows, by which a public number of each group's are chosen.
RowChoice = tuple[int, Callable[[int], NDArray[np.uint64]]]

EXPECTED = (
    "groups must hold one label per row, all of them integers or all of them strings and none "
    "missing"
)
ONE_GROUP = (
    "groups must hold at least two different labels: one group alone is all of the data, and "
    "nothing could be learnt that protects it."
)


class Units:
    """Rows that lie unit by unit, and the means over each unit's rows."""

    def __init__(self, starts: Integers) -> None:
        # First row of each unit, and the number of all rows.
        self.starts = starts
        self.sizes = np.diff(starts)
        self.n = len(self.sizes)

    @classmethod
    def single(cls, n_rows: int) -> "Units":
        """Every row a unit."""
        return cls(np.arange(n_rows + 1))

    @classmethod
    def gathered(cls, labels: NDArray[Any]) -> "tuple[Integers | None, Units]":
        """Rows group by group in the order of labels, or None where they lie so already."""
        return in_order(np.unique(labels, return_inverse=True)[1])

    @cached_property
    def are_rows(self) -> bool:
        """Whether every unit has one row."""
        # It may save work, and must never change a digit: it depends on every unit.
        return bool((self.sizes == 1).all())

    @cached_property
    def of_rows(self) -> Integers:
        """Unit of each row."""
        return np.repeat(np.arange(self.n), self.sizes)

    @cached_property
    def shares(self) -> Floats:
        """Each row's share of its unit: they sum to 1."""
        return self.spread(np.ones(self.n))

    def means(self, values: Floats) -> Floats:
        """Mean over the rows of each unit, of a number per row."""
        # In the order of the rows: the digits depend on nothing but the unit's own.
        sums = np.bincount(self.of_rows, weights=values, minlength=self.n)
        return sums.astype(np.float64, copy=False) / self.sizes

    def sums(self, X: sp.csr_matrix) -> sp.csr_matrix:
        """Sum of the rows of each unit, of counts."""
        layout = (np.ones(len(self.of_rows)), np.arange(len(self.of_rows)), self.starts)
        result = sp.csr_matrix(layout, shape=(self.n, len(self.of_rows))) @ X
        result.sort_indices()
        return result

    def any(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether any row of each unit is marked."""
        return np.bincount(self.of_rows[flags], minlength=self.n) > 0

    def spread(self, factors: Floats) -> Floats:
        """Factor of each row, whose sum is then that of means times the factors of units."""
        return np.repeat(factors / self.sizes, self.sizes)


def as_labels(groups: Any, n_rows: int) -> NDArray[Any]:
    """Validated labels of rows; messages show none, nor how many rows there are."""
    # The number of rows of a unit is private.
    # Of a list numpy would make text, and 'nan' of a label that is missing.
    if not isinstance(groups, np.ndarray):
        groups = as_numbers(groups, "groups")
    known: Any = None if hasattr(groups, "dtype") else object
    if np.ma.is_masked(groups):
        raise ValueError(f"{EXPECTED}.")  # an array would hold what lies behind the mask
    labels = read(lambda: np.asarray(groups, known), "groups", lambda message: f"{EXPECTED}.")
    if labels.ndim != 1:
        raise ValueError(f"{EXPECTED}; got an array of {labels.ndim} dimensions.")
    if len(labels) != n_rows:
        raise ValueError(f"{EXPECTED}; its length is not the number of rows.")
    if not len(labels):
        return np.zeros(0, np.int64)  # a chunk without rows: no label is of a wrong kind
    if labels.dtype.kind in "OT":
        labels = _of_one_kind(labels.astype(object))
    if labels.dtype.kind in "iu":
        if labels.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{EXPECTED}; integers must be less than 2**63.")
        return labels.astype(np.int64, copy=False)
    # The width of a text would tell how long the longest label is.
    if labels.dtype.kind != "U":
        kind = "" if labels.dtype.kind in "OS" else f"; got type {labels.dtype}"
        raise ValueError(f"{EXPECTED}{kind}.")
    return labels


def are_several(labels: NDArray[Any]) -> bool:
    """Whether rows are of two groups or more: the number of groups is public."""
    return bool((labels[1:] != labels[:-1]).any())


def _of_one_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects as integers or as text, if they are of one kind; otherwise as they are."""
    kinds = set(map(type, labels.tolist()))
    if kinds and all(issubclass(kind, str) for kind in kinds):
        return labels.astype(str)
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        wide = f"{EXPECTED}; integers must be less than 2**63."
        return read(lambda: labels.astype(np.int64), "groups", lambda message: wide)
    return labels


def in_order(places: Integers) -> tuple[Integers | None, Units]:
    """Rows unit by unit, in the order of places, or None where they lie so already."""
    order = None
    if (places[1:] < places[:-1]).any():
        order = np.argsort(places, kind="stable")
        places = places[order]
    firsts = np.flatnonzero(np.diff(places, prepend=-1))
    return order, Units(np.append(firsts, len(places)))


def kept_rows(units: Units, choice: RowChoice) -> tuple[Integers, Units]:
    """At most so many rows of each unit, evenly at random and in their order."""
    most, keys = choice
    within = np.lexsort((keys(int(units.starts[-1])), units.of_rows))
    ranks = np.arange(len(within)) - np.repeat(units.starts[:-1], units.sizes)
    kept = np.sort(within[ranks < most])
    sizes = np.minimum(units.sizes, most)
    return kept, Units(np.concatenate([[0], np.cumsum(sizes)]))
