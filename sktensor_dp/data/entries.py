"""Observed entries of a tensor, validated; the unit of privacy is one value."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.display import counted
from sktensor_dp.data.sums import sums_by_row
from sktensor_dp.data.value_range import ValueRange
from sktensor_dp.tensor.arrays import Floats, Integers, read_only
from sktensor_dp.tensor.sorted_entries import SortedEntries


def as_entries(
    coordinates: object, values: object, shape: Sequence[int] | None = None
) -> tuple[Integers, Floats, tuple[int, ...]]:
    """Validate entries: return `coordinates` as intp, `values` as float64, and the shape."""
    # The number of entries may be private: errors must not show it.
    X = np.asarray(coordinates)
    if X.ndim != 2 or X.shape[1] < 2:
        has = counted(X.ndim, "axis") if X.ndim != 2 else counted(X.shape[1], "column")
        raise ValueError(
            f"X must hold the coordinates of entries, of shape (n_observed, n_modes) with "
            f"n_modes >= 2; it has {has}."
        )
    y = np.asarray(values)
    if y.dtype.kind not in "iufb" or y.ndim != 1:
        raise ValueError(
            f"y must hold one number for each row of X, in an array of as many; got an array of "
            f"type {y.dtype} with {counted(y.ndim, 'axis')}."
        )
    if len(y) != len(X):
        raise ValueError(
            "y must hold one number for each row of X; its length is not the number of rows."
        )
    with np.errstate(all="ignore"):  # a long double that overflows is refused below
        y = y.astype(np.float64, copy=False)
    if not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity; leave out what was not observed.")
    sizes = None if shape is None else checked_shape(shape, X.shape[1])
    _check_coordinates(X, sizes)
    X = X.astype(np.intp, copy=False)
    if sizes is None:
        sizes = tuple(int(largest) + 1 for largest in X.max(axis=0, initial=-1))
    return X, y, sizes


def are_repeated(coordinates: Integers, shape: Sequence[int]) -> bool:
    """Return True if two rows of valid `coordinates` are equal."""
    if math.prod(shape) < 2**63:  # one number for each place is sorted faster
        places = np.sort(np.ravel_multi_index(tuple(coordinates.T), tuple(shape)))
        return bool((places[1:] == places[:-1]).any())
    rows = coordinates[np.lexsort(coordinates.T)]
    return bool((rows[1:] == rows[:-1]).all(axis=1).any())


def checked_shape(shape: Sequence[int], n_modes: int) -> tuple[int, ...]:
    """Validate `shape`: one int >= 1 for each of `n_modes` columns of coordinates."""
    sizes = tuple(shape)
    # A bool is an int in Python, but no number of rows.
    valid = [isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in sizes]
    if len(sizes) != n_modes or not all(valid):
        raise ValueError(
            f"shape must hold one int >= 1 for each of the {n_modes} columns of X; got {shape!r}."
        )
    return tuple(int(n) for n in sizes)


def _check_coordinates(X: NDArray[Any], shape: tuple[int, ...] | None) -> None:
    """Raise ValueError unless `X` holds integers in ``[0, shape)``, column by column."""
    # Largest coordinate: far beyond the length of any mode, and exact in double precision.
    largest_coordinate = 2**52
    if X.dtype.kind not in "iuf":
        raise ValueError(
            f"X must have integer coordinates, got type {X.dtype}; for names give row_names=."
        )
    if X.dtype.kind == "f" and not (np.isfinite(X) & (np.rint(X) == X)).all():
        raise ValueError("X must have integer coordinates; some are fractional, NaN or infinite.")
    if (X < 0).any():
        raise ValueError("X must have coordinates >= 0; some are negative.")
    limits = (largest_coordinate,) * X.shape[1] if shape is None else shape
    if (np.array(limits) <= X).any():
        beyond = "too large" if shape is None else f"beyond shape {shape}"
        raise ValueError(
            f"X has coordinates {beyond}; they count from 0. With row_names ids may be anything."
        )


def check_unit_mode(unit_mode: int, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless `unit_mode` is a mode of a tensor with this shape."""
    if not 0 <= unit_mode < len(shape):
        raise ValueError(f"unit_mode must be one of 0..{len(shape) - 1}, got {unit_mode!r}.")


class IndexSet(SortedEntries):
    """Coordinates of observed values, with accurate sums over the rows of a mode."""

    def sums(self, mode: int, terms: Floats) -> Floats:
        """Sum `terms` (n_entries, ...) over the entries in each row of `mode`; (n_rows, ...)."""
        return sums_by_row(self.rows(mode), terms, self.shape[mode])

    def grams(self, mode: int, vectors: Floats) -> Floats:
        """Sum ``z z'``, z of `vectors` (n_entries, r), over entries by row of `mode`; (n, r, r)."""
        r = vectors.shape[1]
        result = np.empty((self.shape[mode], r, r))
        for a in range(r):
            row_from_diagonal = self.sums(mode, vectors[:, a, None] * vectors[:, a:])
            result[:, a, a:] = result[:, a:, a] = row_from_diagonal
        return result

    def balanced_weights(self) -> Floats:
        """Weights ``count ** -0.5`` of entries for each mode, of sum 1; (n_entries, n_modes)."""
        weights = np.empty((self.n_entries, len(self.shape)), order="F")
        for m, counts in enumerate(self.counts):
            # Rows without entries are never looked up, so their count may be raised to 1.
            weights[:, m] = (np.maximum(counts, 1) ** -0.5)[self.rows(m)]
        weights /= weights.sum(axis=1, keepdims=True)
        return weights


class EntryChunks(ValueRange):
    """Values at public coordinates, as one chunk; the unit of privacy is one value."""

    public = (*ValueRange.public, "index_set")

    def __init__(
        self,
        coordinates: Integers,  # (n_observed, n_modes): public; equal ones are values of their own
        values: Floats,  # (n_observed,): private; kept clamped, minus the middle of the bounds
        shape: tuple[int, ...],  # public
        bounds: tuple[float, float],  # public
    ) -> None:
        super().__init__(bounds)
        if len(values) == 0:
            raise ValueError("X and y hold no entries; at least one has to be observed.")
        self.shape, self.n_units = shape, len(values)
        self.values = read_only(self.clipped_and_centred(values))
        self._coordinates = read_only(coordinates)

    @cached_property
    def index_set(self) -> IndexSet:
        """Coordinates of observed values; public."""
        # Nothing else reads the coordinates, so they are moved: memory holds them once.
        return IndexSet(vars(self).pop("_coordinates"), self.shape)

    @property
    def shares(self) -> Floats:
        """Share of each value in its unit, of shape (n_observed,): 1, as a value is a unit."""
        return np.ones(len(self.values))

    def __iter__(self) -> Iterator["EntryChunks"]:
        return iter([self])
