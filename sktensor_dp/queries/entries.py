"""Observed entries of a tensor, and queries whose unit of privacy is one value."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE, PIECEWISE
from sktensor_dp.queries.query import (
    HALF,
    SUM_SLACK,
    Chunks,
    Query,
    bins_of,
    check_array,
    check_number,
)
from sktensor_dp.queries.sums import sums_by_row
from sktensor_dp.tensor.arrays import Floats, Integers, check_shape, read_only, rows_at_once
from sktensor_dp.tensor.sorted_entries import SortedEntries

# Of the largest of numbers of which squares are taken: few digits are lost, none overflows.
WEIGHT_SIZES = (1e-100, 1e120)
# Rows of a mode are arrays' lengths; far beyond memory, and exact in double precision.
LARGEST_COORDINATE = 2**52
# Residuals are rounded to so many binary digits at most, so that all sums are exact: of
# integers below 2 to this power.
MOST_DIGITS, EXACT = 12, 52
# Public numbers within these leave residuals finite before they are clipped.
SCALE, LARGEST = (1e-100, 1e100), 1e100


def as_entries(
    coordinates: Any, values: Any, shape: Sequence[int] | None = None
) -> tuple[Integers, Floats, tuple[int, ...]]:
    """Validate entries: return `coordinates` as intp, `values` as float64, and the shape."""
    # How many entries there are may be private.
    X = np.asarray(coordinates)
    if X.ndim != 2 or X.shape[1] < 2:
        has = f"{X.ndim} axes" if X.ndim != 2 else f"{X.shape[1]} columns"
        raise ValueError(
            f"X must hold the coordinates of entries, of shape (n_observed, n_modes) with "
            f"n_modes >= 2; it has {has}."
        )
    y = np.asarray(values)
    if y.dtype.kind not in "iufb" or y.ndim != 1:
        raise ValueError(
            f"y must hold one number for each row of X, in an array of as many; got an array of "
            f"type {y.dtype} with {y.ndim} axes."
        )
    if len(y) != len(X):
        raise ValueError(
            "y must hold one number for each row of X; its length is not the number of rows."
        )
    with np.errstate(all="ignore"):  # whether a longer type overflows is told by the error alone
        y = y.astype(np.float64, copy=False)
    if not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity; leave out what was not observed.")
    rows = None if shape is None else checked_shape(shape, X.shape[1])
    _check_coordinates(X, rows)
    X = X.astype(np.intp, copy=False)
    if rows is None:
        rows = tuple(int(largest) + 1 for largest in X.max(axis=0, initial=-1))
    return X, y, rows


def are_repeated(coordinates: Integers, shape: Sequence[int]) -> bool:
    """Return True if two rows of valid `coordinates` are equal."""
    columns = list(coordinates.T)
    if math.prod(shape) < 2**63:  # one number for each place is sorted faster
        columns = [np.sort(np.ravel_multi_index(tuple(columns), tuple(shape)))]
    else:
        order = np.lexsort(columns)
        columns = [column[order] for column in columns]
    equal = [column[1:] == column[:-1] for column in columns]
    return bool(np.logical_and.reduce(equal).any())


def checked_shape(shape: Sequence[int], n_modes: int) -> tuple[int, ...]:
    """Validate `shape`: one int >= 1 for each of `n_modes` columns of coordinates."""
    rows = tuple(shape)
    # Of a bool nobody would say that it counts rows.
    counts = [isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in rows]
    if len(rows) != n_modes or not all(counts):
        raise ValueError(
            f"shape must hold one int >= 1 for each of the {n_modes} columns of X; got {shape!r}."
        )
    return tuple(int(n) for n in rows)


def _check_coordinates(X: NDArray[Any], shape: tuple[int, ...] | None) -> None:
    """Raise ValueError unless `X` holds integers in ``[0, shape)``, column by column."""
    if X.dtype.kind not in "iuf":
        raise ValueError(
            f"X must have integer coordinates, got type {X.dtype}; encode categories first, for "
            "example with sklearn.preprocessing.OrdinalEncoder."
        )
    if X.dtype.kind == "f" and not (np.isfinite(X) & (np.rint(X) == X)).all():
        raise ValueError("X must have integer coordinates; some are fractional, NaN or infinite.")
    if (X < 0).any():
        raise ValueError("X must have coordinates >= 0; some are negative.")
    limits = (LARGEST_COORDINATE,) * X.shape[1] if shape is None else shape
    if (np.array(limits) <= X).any():
        beyond = "too large" if shape is None else f"beyond shape {shape}"
        raise ValueError(
            f"X has coordinates {beyond}; they count from 0. With row_names ids may be anything."
        )


def check_unit_mode(unit_mode: int, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless `unit_mode` is a mode of a tensor with this shape."""
    if not 0 <= unit_mode < len(shape):
        raise ValueError(f"unit_mode must be one of 0..{len(shape) - 1}, got {unit_mode!r}.")


class ValueRange(Chunks):
    """Public range that values are clipped to, and centred on the middle of."""

    public: ClassVar[tuple[str, ...]] = ("shape", "half", "middle")  # to sessions
    values: Floats

    def __init__(self, bounds: tuple[float, float]) -> None:
        low, high = bounds
        # Written so that NaN fails; halves first, as the width of all floats would overflow.
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"bounds must be two finite numbers, low < high; got {bounds!r}.")
        self.half = high / 2 - low / 2
        self.middle = low / 2 + high / 2
        if not 0 < 2 * self.half < math.inf:
            raise ValueError(f"bounds must differ by a finite number; got {bounds!r}.")

    def centred(self, values: Floats) -> Floats:
        """Values clipped to the range, minus its middle, so within ``[-half, half]`` exactly."""
        # Values beyond are clamped before the difference: it might overflow, and warn.
        reach = abs(self.middle) + self.half
        centred = np.clip(values, -reach, reach)
        centred -= self.middle
        return np.clip(centred, -self.half, self.half, out=centred)

    def within(self, bounds: tuple[float, float]) -> Self:
        """Copy with values clipped to a narrower range, which was released."""
        found = copy.copy(self)
        ValueRange.__init__(found, bounds)
        found.values = read_only(found.centred(self.values + self.middle))
        return found


class IndexSet(SortedEntries):
    """Coordinates of observed values, with sums over the rows of a mode that hardly round."""

    def sums(self, mode: int, terms: Floats) -> Floats:
        """Sum `terms` (n_entries, ...) over the entries in each row of `mode`; (n_rows, ...)."""
        return sums_by_row(self.rows(mode), terms, self.shape[mode])

    def grams(self, mode: int, rows: Floats) -> Floats:
        """Sums of ``z z'`` over the entries of each row of `mode`, z their `rows`; (n, r, r)."""
        r = rows.shape[1]
        result = np.empty((self.shape[mode], r, r))
        for a in range(r):
            part = self.sums(mode, rows[:, a, None] * rows[:, a:])
            result[:, a, a:] = result[:, a:, a] = part
        return result

    def balanced_weights(self) -> Floats:
        """Weights ``count ** -0.5`` of entries for each mode, of sum 1; (n_entries, n_modes)."""
        weights = np.empty((self.n_entries, len(self.shape)), order="F")
        for m, counts in enumerate(self.counts):
            # Rows without entries are never looked up.
            weights[:, m] = (np.maximum(counts, 1) ** -0.5)[self.rows(m)]
        weights /= weights.sum(axis=1, keepdims=True)
        return weights


class EntryChunks(ValueRange):
    """Values at public coordinates; the unit of privacy is one value."""

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
        self.values = read_only(self.centred(values))
        self._coordinates = read_only(coordinates)

    @cached_property
    def index_set(self) -> IndexSet:
        """Coordinates of observed values; public."""
        # Handed over, not held: it has coordinates of its own.
        return IndexSet(vars(self).pop("_coordinates"), self.shape)

    @property
    def shares(self) -> Floats:
        """Share of each value in its unit, of shape (n_observed,): all of it."""
        return np.ones(len(self.values))

    def __iter__(self) -> Iterator["EntryChunks"]:
        return iter([self])


@dataclass(frozen=True, eq=False)
class ValueHistogram(Query):
    """Sum over units of the share of a unit's values in each bin, to choose a range from."""

    name, family = "value_histogram", "slices"
    description = "mean over units of the share of values in each bin, from which a range is chosen"
    laws = (GAUSSIAN, LAPLACE)

    edges: Floats  # increasing; public

    # A unit adds a point of the probability simplex, or 0 without values.
    l2_sensitivity = math.sqrt(2) * SUM_SLACK
    l1_sensitivity = 2 * SUM_SLACK

    def total(self, chunk: Any) -> Floats:
        """Sum of shares in each bin of values in units of the data, of shape (n_edges - 1,)."""
        bins = bins_of(chunk.values + chunk.middle, self.edges)
        return sums_by_row(bins, chunk.shares, len(self.edges) - 1)


@dataclass(frozen=True)
class Entries(Query):
    """All values themselves, released one by one where the unit of privacy is one value."""

    name, family = "entries", "entries"
    description = "the value of every entry"
    laws = (GAUSSIAN, PIECEWISE)

    # Nothing is multiplied with it: the bound holds for any R that noise can be scaled by.
    half: float  # half of R; public

    @property
    def l2_sensitivity(self) -> float:
        """Width of the range: replacing one value moves it by no more."""
        return 2 * self.half

    l1_sensitivity = l2_sensitivity

    def total(self, chunk: EntryChunks) -> Floats:
        """Centred values of `chunk`, of shape (n_observed,)."""
        return chunk.values.copy()


@dataclass(frozen=True, eq=False)
class RowSums(Query):
    """Weighted sums of the values in each row of every mode; the unit of privacy is one value."""

    name, family = "row_sums", "entries"
    description = "weighted sums of the values in each row of each mode"
    laws = (GAUSSIAN, LAPLACE)

    index_set: IndexSet  # where values were observed; public
    weights: Floats  # (n_observed, n_modes): in the sum of the row of each mode; public
    half: float  # half of R; public

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)
        shape = self.index_set.coordinates.shape
        if self.weights.shape != shape or not np.isfinite(self.weights).all():
            raise ValueError(
                f"weights must be finite, of shape {shape}; got shape {self.weights.shape}."
            )
        if not self.weights.any():
            raise ValueError("weights must not all be 0: nothing would be released.")
        check_number("the largest weight", np.abs(self.weights).max(), WEIGHT_SIZES)

    @cached_property
    def l2_sensitivity(self) -> float:
        """Width of the range times the largest L2 norm of an entry's weights over the modes."""
        norms = np.sqrt(np.square(self.weights).sum(axis=1))
        return 2 * self.half * SUM_SLACK * float(norms.max())

    @cached_property
    def l1_sensitivity(self) -> float:
        """Width of the range times the largest L1 norm of an entry's weights over the modes."""
        return 2 * self.half * SUM_SLACK * float(np.abs(self.weights).sum(axis=1).max())

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums for the rows of mode 0, then of mode 1, and so on, in one vector."""
        modes = range(len(self.index_set.shape))
        sums = [self.index_set.sums(m, self.weights[:, m] * chunk.values) for m in modes]
        return np.concatenate(sums)


@dataclass(frozen=True, eq=False)
class EntryPairs(Query):
    """Sum over rows of a matrix of products of their residuals in two different columns."""

    name, family = "entry_pairs", "entries"
    description = "sums over rows of products of their clipped residuals in two columns"
    laws = (GAUSSIAN, LAPLACE)

    # A residual is a value minus its public prediction, over `scale`, clipped to [-1, 1], times the
    # root of its row's weight, rounded to a public grid. Residuals in one cell are added.

    index_set: IndexSet  # where values of a matrix were observed; public
    # (n_observed,): subtracted from values, which are centred; public.
    predictions: Floats = field(repr=False)
    # (n_rows,): of the products of each row, from 0 to 1; public.
    weights: Floats = field(repr=False)
    scale: float  # residual that is clipped to 1; public
    half: float  # half of the width of the range of values; public

    def __post_init__(self) -> None:
        if self.index_set.n_modes != 2:
            raise ValueError(f"index_set must have the 2 modes of a matrix: {self.index_set.shape}")
        check_number("half the range", self.half, HALF)
        check_number("the scale", self.scale, SCALE)
        check_shape("predictions", self.predictions, self.index_set.n_entries)
        check_shape("weights", self.weights, self.index_set.shape[0])
        check_array("predictions", self.predictions, LARGEST)
        check_array("weights", self.weights, 1.0, least=0.0)

    @cached_property
    def l2_sensitivity(self) -> float:
        """Twice a row's weight times the norm of its numbers of values in the other columns."""
        return self._largest_move(np.sqrt(self._beside(self._repeats.data**2)))

    @cached_property
    def l1_sensitivity(self) -> float:
        """Largest sum of absolute changes between neighbours."""
        return self._largest_move(self._beside(self._repeats.data))

    def _largest_move(self, others: Floats) -> float:
        """Bound on the change by one value, from the norm or sum of its row's `others`."""
        # Where nothing can move any number is right.
        moves = 2 * self._limits[self._rows] ** 2 * others
        return SUM_SLACK * (float(moves.max()) or 1.0)

    @cached_property
    def _repeats(self) -> sp.csr_matrix:
        """Number of observed values in each cell, (n_rows, n_columns)."""
        matrix = self.index_set.matrix(np.ones(self.index_set.n_entries), 0, 1).copy()
        matrix.sum_duplicates()
        return matrix

    @property
    def _rows(self) -> Integers:
        """Row of each cell that holds values, in order."""
        return np.repeat(np.arange(self.index_set.shape[0]), np.diff(self._repeats.indptr))

    def _beside(self, terms: Floats) -> Floats:
        """Sum of `terms` (n_cells,) over the other cells in the row of each cell; (n_cells,)."""
        return np.asarray(np.bincount(self._rows, terms)[self._rows] - terms)

    def total(self, chunk: EntryChunks) -> Floats:
        """Sums of the products of columns i < j, of shape (n_columns (n_columns - 1) / 2,)."""
        residuals = np.rint(
            self._steps * np.clip((chunk.values - self.predictions) / self.scale, -1.0, 1.0)
        )
        return self._pairs(residuals) / self._grid**2

    def counts(self) -> Floats:
        """Largest possible sums, with all residuals at 1: public, to turn sums into means."""
        return self._pairs(self._steps) / self._grid**2

    def _pairs(self, residuals: Floats) -> Floats:
        """Sums over rows of products of two columns, i < j, of integer residuals: exact."""
        n_rows, n_columns = self.index_set.shape
        matrix = self.index_set.matrix(self.index_set.sort(residuals, 0), 0, 1)
        sums = np.zeros((n_columns, n_columns))
        step = rows_at_once(n_columns, caches=2)
        for first in range(0, n_rows, step):
            block = matrix[first : first + step].toarray()
            sums += block.T @ block
        return np.asarray(sums[np.triu_indices(n_columns, 1)], dtype=np.float64)

    @property
    def _steps(self) -> Floats:
        """Largest residual of each value, in steps of the grid; (n_entries,)."""
        return np.asarray(self._limits[self.index_set.rows(0)] * self._grid)

    @cached_property
    def _grid(self) -> float:
        """Steps of the grid to 1: a power of 2, small enough that sums of products are exact."""
        largest = self.index_set.n_entries * float(self._repeats.max())
        digits = (EXACT - math.ceil(math.log2(largest))) // 2
        return 2.0 ** max(0, min(MOST_DIGITS, digits))

    @cached_property
    def _limits(self) -> Floats:
        """Largest residual of each row: the root of its weight, rounded down to the grid."""
        return np.asarray(np.floor(np.sqrt(self.weights) * self._grid) / self._grid)
