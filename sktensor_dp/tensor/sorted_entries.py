"""Observed entries of a tensor: sorted once per mode, read in blocks, never made dense."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.tensor.arrays import Floats, check_finite, check_shape, spans

# Coordinates and positions of entries: 32 bits where they fit halve the memory.
Integers = NDArray[np.signedinteger[Any]]


class SortedEntries:
    """Coordinates of observed entries, sorted by each mode once and read in blocks.

    "Sorted by a mode" means: in increasing order of the coordinate in that mode, ties as given.
    Memory is n_modes (n_modes + 1) integers per entry, whatever the shape, and more for fibres.

    Parameters
    ----------
    coordinates : array-like of int, shape (n_entries, n_modes)
        One row per observed entry; a coordinate may occur more than once.
    shape : sequence of int
        Lengths of the modes, two or more.

    Attributes
    ----------
    coordinates : ndarray of shape (n_entries, n_modes)
        The coordinates in the order given.
    shape : tuple of int
        Lengths of the modes.
    n_entries, n_modes : int
        Number of observed entries, and of modes.
    counts : list of ndarray of shape (n_m,)
        Number of entries in each row of each mode.

    Raises
    ------
    ValueError
        If there is no entry, fewer than two modes, or a coordinate that is no integer in `shape`.

    Examples
    --------
    >>> from sktensor_dp.tensor import SortedEntries
    >>> SortedEntries([[1, 0], [0, 0], [1, 2]], (2, 3)).counts[1]
    array([2, 0, 1])
    """

    def __init__(self, coordinates: ArrayLike, shape: Sequence[int]) -> None:
        self.shape = tuple(int(n) for n in shape)
        if len(self.shape) < 2 or min(self.shape) < 1:
            raise ValueError(f"shape must have two or more lengths of at least 1; got {shape}.")
        self.coordinates = as_coordinates(coordinates, self.shape)
        self.n_entries, self.n_modes = self.coordinates.shape
        if self.n_entries == 0:
            raise ValueError("coordinates must have at least one row; got none.")
        self.counts: list[Integers] = [
            np.bincount(self.rows(mode), minlength=n) for mode, n in enumerate(self.shape)
        ]
        self._orders: dict[int, Integers] = {}
        self._pointers: dict[int, Integers] = {}
        self._sorted: dict[tuple[int, int], Integers] = {}
        self._fibres: dict[int, Fibres] = {}

    def others(self, mode: int) -> list[int]:
        """List of all modes except `mode`."""
        return [k for k in range(self.n_modes) if k != mode]

    def rows(self, mode: int) -> Integers:
        """Coordinate of each entry in one mode, of shape (n_entries,), in the order given."""
        return self.coordinates[:, mode]

    def order(self, mode: int) -> Integers:
        """Indices, of shape (n_entries,), that sort the entries by a mode; ties as given."""
        if mode not in self._orders:
            # Sort by counting: a sparse matrix with a one for each entry.
            dtype = _index_type(max(self.n_entries, self.shape[mode]))
            ends = np.arange(self.n_entries + 1, dtype=dtype)
            marks = np.ones(self.n_entries, dtype=np.int8)
            rows = np.ascontiguousarray(self.rows(mode), dtype=dtype)
            size = (self.n_entries, self.shape[mode])
            by_entry = scipy.sparse.csr_matrix((marks, rows, ends), size)
            self._orders[mode] = by_entry.tocsc().indices
        return self._orders[mode]

    def sort(self, values: ArrayLike, mode: int) -> Floats:
        """Values of the entries, of shape (n_entries,), sorted by a mode."""
        return np.asarray(values, dtype=np.float64)[self.order(mode)]

    def sorted_column(self, mode: int, other: int) -> Integers:
        """Coordinates in mode `other`, of shape (n_entries,), of the entries sorted by `mode`."""
        if (mode, other) not in self._sorted:
            self._sorted[mode, other] = self.rows(other)[self.order(mode)]
        return self._sorted[mode, other]

    def fibres(self, mode: int) -> "Fibres":
        """Entries sorted by fibre along a mode."""
        if mode not in self._fibres:
            self._fibres[mode] = Fibres(self, mode)
        return self._fibres[mode]

    def row_sums(self, values: ArrayLike, mode: int) -> Floats:
        """Sums (n_m,) over each row of a mode, of values in the order of the entries."""
        rows, numbers = self.coordinates[:, mode], np.asarray(values, dtype=np.float64)
        return np.bincount(rows, numbers, minlength=self.shape[mode]).astype(np.float64)

    def at_entries(self, effects: Sequence[Floats]) -> Floats:
        """Sum of `effects[m][i_m]` over the modes m at every entry, of shape (n_entries,)."""
        return row_effects(effects, self.coordinates)

    def matrix(
        self, values: NDArray[np.floating[Any]], mode: int, other: int
    ) -> scipy.sparse.csr_matrix:
        """Sparse matrix (n_mode, n_other) of values sorted by `mode` at their two coordinates."""
        # Equal pairs stay separate: a product with this matrix sums values, in the order of the
        # first mode, times rows of the other mode.
        shape = (self.shape[mode], self.shape[other])
        layout = (values, self.sorted_column(mode, other), self.row_pointers(mode))
        return scipy.sparse.csr_matrix(layout, shape)

    def row_pointers(self, mode: int) -> Integers:
        """Offsets, of shape (n_m + 1,), at which rows begin among the entries sorted by a mode."""
        if mode not in self._pointers:
            pointers = np.zeros(self.shape[mode] + 1, dtype=_index_type(self.n_entries))
            np.cumsum(self.counts[mode], out=pointers[1:])
            self._pointers[mode] = pointers
        return self._pointers[mode]

    def blocks(self, mode: int, size: int) -> Iterator[tuple[slice, Integers, Integers]]:
        """Blocks of entries sorted by a mode: span, its rows, and where in it each begins."""
        seen = np.flatnonzero(self.counts[mode])
        begins = self.row_pointers(mode)[seen]
        for first in range(0, self.n_entries, size):
            last = min(first + size, self.n_entries)
            # From the row with the block's first entry to the first that begins after the block.
            next_row, end_row = np.searchsorted(begins, [first + 1, last])
            rows = slice(next_row - 1, end_row)
            yield slice(first, last), seen[rows], np.maximum(begins[rows] - first, 0)


class Fibres:
    """Observed entries sorted by fibre: entries of a fibre differ in one mode alone."""

    def __init__(self, entries: SortedEntries, mode: int) -> None:
        n, others = entries.n_entries, entries.others(mode)
        columns = [entries.rows(k) for k in others]
        self.order = np.lexsort(columns) if len(columns) > 1 else entries.order(others[0])
        columns = [column[self.order] for column in columns]
        is_first = np.ones(n, dtype=bool)  # of its fibre
        is_first[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        self.begins = np.flatnonzero(is_first)
        self.sizes = np.diff(np.append(self.begins, n))
        # Coordinates of each fibre in the other modes.
        self.coordinates = np.array([column[self.begins] for column in columns]).T
        dtype = _index_type(max(n, *entries.shape))
        self.length = entries.shape[mode]
        self._pointers = np.append(self.begins, n).astype(dtype)
        self.rows = entries.rows(mode)[self.order].astype(dtype, copy=False)

    def __len__(self) -> int:
        return len(self.begins)

    def matrix(self, values: Floats, part: slice = slice(None)) -> scipy.sparse.csr_matrix:
        """Sparse matrix (n_fibres, n_m) of sorted values in their rows, or a part of the fibres."""
        first, last, _ = part.indices(len(self))
        begin, end = self._pointers[[first, last]]
        pointers = self._pointers[first : last + 1] - begin
        layout = (values[begin:end], self.rows[begin:end], pointers)
        return scipy.sparse.csr_matrix(layout, (last - first, self.length))


def add_at(total: Floats, effects: Floats, rows: Integers) -> None:
    """Add ``effects[rows[e]]`` to ``total[e]`` for each entry e, in place."""
    numbers_each = 32  # doubles for each entry of a span that stays in a second-level cache
    for span in spans(len(total), numbers_each):
        total[span] += effects.take(rows[span])


def row_effects(effects: Sequence[Floats], coordinates: Integers) -> Floats:
    """Sum of ``effects[m][i_m]`` over the modes m at each row i of coordinates, of shape (n,)."""
    total = np.zeros(len(coordinates))
    for effect, column in zip(effects, coordinates.T, strict=True):
        add_at(total, effect, column)
    return total


def khatri_rao_rows(factors: Sequence[Floats], coordinates: Integers) -> Floats:
    """Element-wise products, over the modes, of the factors' rows at each coordinate: (n, r)."""
    product = factors[0].take(coordinates[:, 0], axis=0)
    for k in range(1, len(factors)):
        product *= factors[k].take(coordinates[:, k], axis=0)
    return product


def kronecker_rows(factors: Sequence[Floats], coordinates: Integers) -> Floats:
    """Kronecker products of the factors' rows at each coordinate, the last varying fastest."""
    product = np.ones((len(coordinates), 1))
    for k, factor in enumerate(factors):
        row = factor[coordinates[:, k]]
        width = product.shape[1] * row.shape[1]
        product = (product[:, :, None] * row[:, None, :]).reshape(len(coordinates), width)
    return product


def derivatives(
    factors: Sequence[Floats], core: Floats | None, mode: int, coordinates: Integers
) -> Floats:
    """Derivatives (n, r) of a CP model (`core` None) or Tucker model in rows of a mode's factor."""
    others = [k for k in range(len(factors)) if k != mode]
    chosen, places = [factors[k] for k in others], coordinates[:, others]
    if core is None:
        return khatri_rao_rows(chosen, places)
    unfolded = np.moveaxis(core, mode, 0).reshape(core.shape[mode], -1)
    return kronecker_rows(chosen, places) @ unfolded.T


def cp_values(
    factors: Sequence[Floats], coordinates: Integers, weights: Floats | None = None
) -> Floats:
    """Values at coordinates of the CP tensor sum_j weights[j] a_j (x) b_j (x) ..."""
    rank = factors[0].shape[1]
    weights = np.ones(rank) if weights is None else weights
    values = np.empty(len(coordinates))
    for span in spans(len(coordinates), rank):
        values[span] = khatri_rao_rows(factors, coordinates[span]) @ weights
    return values


def tucker_values(core: Floats, factors: Sequence[Floats], coordinates: Integers) -> Floats:
    """Values at coordinates, of shape (n,), of a Tucker tensor: `core` times a factor per mode."""
    values = np.empty(len(coordinates))
    for span in spans(len(coordinates), core.size):
        part = coordinates[span]
        contracted = factors[0][part[:, 0]] @ core.reshape(core.shape[0], -1)
        for k in range(1, len(factors)):
            unfolded = contracted.reshape(len(part), core.shape[k], -1)
            contracted = np.einsum("br,brs->bs", factors[k][part[:, k]], unfolded)
        values[span] = contracted[:, 0]
    return values


def mode_product(core: Floats, matrix: Floats, mode: int) -> Floats:
    """Product of a tensor with `matrix` along one mode: matrix times the mode's unfolding."""
    return np.moveaxis(np.tensordot(matrix, core, axes=(1, mode)), 0, mode)


def as_coordinates(coordinates: ArrayLike, shape: tuple[int, ...]) -> Integers:
    """Coordinates as integers in column-major order; ValueError if they lie outside `shape`."""
    array = np.asarray(coordinates)
    if array.ndim != 2 or array.shape[1] != len(shape):
        raise ValueError(f"coordinates must have shape (n, {len(shape)}); got shape {array.shape}.")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"coordinates must be integers; got dtype {array.dtype}.")
    if (array < 0).any() or (array >= np.array(shape)).any():
        raise ValueError(f"coordinates must be at least 0 and below shape {shape}.")
    return np.asfortranarray(array, dtype=_index_type(max(shape)))


def _index_type(largest: int) -> type[np.signedinteger[Any]]:
    """Type of integers that holds `largest`: int32, or int64 where that is too small."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def as_values(values: ArrayLike, entries: SortedEntries) -> Floats:
    """Values as floats of shape (n_entries,); ValueError for another length, NaN or infinity."""
    array = np.asarray(values, dtype=np.float64)
    check_shape("values", array, entries.n_entries)
    check_finite("values", array)
    return array
