"""Entries that one index of a mode holds, and queries whose unit of privacy is all of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.queries.entries import (
    ValueRange,
    as_entries,
    check_unit_mode,
    checked_shape,
)
from sktensor_dp.queries.error_sanitising import as_numbers, error_or
from sktensor_dp.queries.query import HALF, SUM_SLACK, check_array, check_number
from sktensor_dp.queries.sums import AccurateSum, axis_sum, blocks, sums_by_row
from sktensor_dp.queries.units import Piece, gathered, rows_of, split
from sktensor_dp.tensor.arrays import Floats, Integers, of_same_shape, rows_at_once
from sktensor_dp.tensor.normal_equations import (
    are_positive,
    packed_diagonal,
    products_of_roots,
    unpack_rows,
)
from sktensor_dp.tensor.row_bounds import Bounds, RowBounds
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.unit_parameters import (
    N_PLAIN,
    CellEntries,
    CellUnits,
    EntryEffects,
    cell_posteriors,
    effects_at_entries,
    unit_posteriors,
)

# Cells of a slice up to which sums over its entries are products with a table of all cells.
MOST_CELLS = 2**14
# Share of cells with a value from which on units keep them in a table as well.
DENSE_SHARE = 0.25
# Units that are added before their sum is added accurately.
UNITS_AT_ONCE = 750
LEAST_BLOCK = 64
# Raises the eigenvalues of a moment, relative to their sum: far above rounding in a test for
# negative ones, and far below what is released.
LEAST_EIGENVALUE = 1e-12
# Lengths below it are taken for 0: squares of what is above are far from underflow.
LEAST_LENGTH = 1e-100
# Public numbers within these, and products of factors within the square of the larger, make
# no number of a unit overflow but the norm of its moment, which is then clipped to 0.
SMALLEST, LARGEST = 1e-20, 1e20
LEAST_UNIT = 1e-60
# Public numbers within these leave no residual that overflows, whose NaN no clip would stop.
LEAST_SCALE, LARGEST_LEVEL = 1e-100, 1e100
# Entries that residuals and slopes are formed of at once: they stay in a cache.
ENTRIES_AT_ONCE = 2**13
# Weight of a unit's second moment beside its sums: it is a few numbers, and learnt easily.
MOMENT_WEIGHT = 0.25


class SliceChunks(ValueRange):
    """Entries of a tensor grouped by unit: all entries of one index of `unit_mode`.

    Entries observed more than once are merged into one, with the mean of their clamped
    values. They belong to the same unit, so that units stay apart.

    Parameters
    ----------
    coordinates : ndarray of intp of shape (n_observed, n_modes)
        Private, with the values.
    values : ndarray of shape (n_observed,)
        Private.
    shape : tuple of n_modes int
        Public.
    unit_mode : int
        Mode whose indices are the units.
    bounds : tuple of (low, high), or RowBounds
        Public; values are clamped to it, and mapped to a common scale if rows differ.
    part : bool, default=False
        True if this chunk holds some units of a data set only. Units are then numbered among
        those that have entries here; units without entries add nothing to any sum.

    Attributes
    ----------
    coordinates : ndarray of intp of shape (n_distinct, n_modes)
        Sorted by unit.
    values : ndarray of shape (n_distinct,)
        Clamped, minus the middle of the bounds.
    units : ndarray of shape (n_distinct,)
        Unit of each entry.
    half, middle : float
        Half of the width R of the bounds, and their middle; public.
    n_units : int
        ``shape[unit_mode]``, of which any may be without entries; private for a part.
    """

    def __init__(
        self,
        coordinates: Integers,
        values: Floats,
        shape: tuple[int, ...],
        unit_mode: int,
        bounds: Bounds,
        part: bool = False,
    ) -> None:
        super().__init__(bounds)
        check_unit_mode(unit_mode, shape)
        self.shape, self.unit_mode = shape, unit_mode
        self.n_units = shape[unit_mode]
        order = by_unit(coordinates, values, shape, unit_mode)
        coordinates = coordinates.take(order, axis=0)
        values = self.centred(values.take(order), coordinates)
        first = np.zeros(len(values), dtype=bool)
        first[:1] = True
        for column in coordinates.T:
            first[1:] |= column[1:] != column[:-1]
        if not first.all():
            group = np.cumsum(first) - 1
            coordinates = coordinates[first]
            values = np.bincount(group, weights=values) / np.bincount(group)
            np.clip(values, -self.half, self.half, out=values)
        self.coordinates, self.values = coordinates, values
        self.units = coordinates[:, unit_mode]
        if part:
            present, self.units = np.unique(self.units, return_inverse=True)
            self.n_units = len(present)
        self._count_norms: dict[int, Floats] = {}

    @cached_property
    def cells(self) -> Integers | None:
        """Coordinates of all cells of a unit's slice in the shared modes, (n_cells, n_modes - 1);
        None where there are more than 2**14.
        """
        # By the shape alone, which is public.
        shared = [n for m, n in enumerate(self.shape) if m != self.unit_mode]
        if math.prod(shared) > MOST_CELLS:
            return None
        return np.stack([c.ravel() for c in np.indices(shared)], axis=1)

    @property
    def shared(self) -> Integers:
        """Coordinates of the entries in all modes but the units', (n_distinct, n_modes - 1)."""
        return np.delete(self.coordinates, self.unit_mode, axis=1)

    @property
    def places(self) -> Integers:
        """Shared coordinates at which posteriors are computed: all cells, or each entry where cells
        are too many.
        """
        return self.shared if self.cells is None else self.cells

    @cached_property
    def by_cells(self) -> sp.csr_matrix:
        """Values as a CSR matrix of units by cells, of shape (n_units, n_cells)."""
        shared = [n for m, n in enumerate(self.shape) if m != self.unit_mode]
        columns = np.ravel_multi_index(tuple(self.shared.T), shared).astype(np.int32)
        pointers = np.zeros(self.n_units + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.units, minlength=self.n_units), out=pointers[1:])
        size = (self.n_units, math.prod(shared))
        return sp.csr_matrix((self.values, columns, pointers), size)

    @cached_property
    def cell_table(self) -> tuple[Floats, NDArray[np.bool_]] | None:
        """Dense values and mask of observed cells, each (n_cells, n_units); None if few are
        observed.
        """
        # Either way all sums are the same, but for the order of units in them.
        matrix = self.by_cells
        if matrix.nnz < DENSE_SHARE * math.prod(matrix.shape):
            return None
        taken = of_same_shape(matrix, np.ones(matrix.nnz, dtype=bool))
        return matrix.toarray(order="F").T, taken.toarray(order="F").T

    def count_norms(self, mode: int) -> Floats:
        """Euclidean norm, per unit, of its numbers of entries in the rows of `mode`; 1 for a unit
        without entries; (n_units,).
        """
        if mode not in self._count_norms:
            self._count_norms[mode] = self._norms_of_counts(self.coordinates[:, mode])
        return self._count_norms[mode]

    def _norms_of_counts(self, rows: Integers) -> Floats:
        """Norms of `count_norms`, from the row of each entry in the mode."""
        if len(self.shape) == 2:
            # No row twice: entries are distinct.
            return np.sqrt(np.maximum(np.bincount(self.units, minlength=self.n_units), 1.0))
        # Runs of equal (unit, row) pairs are the numbers that are not 0.
        order = np.lexsort([rows, self.units])
        units, rows = self.units[order], rows[order]
        first = np.ones(len(units), dtype=bool)
        first[1:] = (units[1:] != units[:-1]) | (rows[1:] != rows[:-1])
        counts = np.bincount(np.cumsum(first) - 1).astype(float)
        squares = np.bincount(units[first], weights=counts**2, minlength=self.n_units)
        return np.sqrt(np.maximum(squares, 1.0))

    def __iter__(self) -> Iterator["SliceChunks"]:
        return iter([self])


def by_unit(
    coordinates: Integers, values: Floats, shape: tuple[int, ...], unit_mode: int
) -> Integers:
    """Order that sorts entries by unit, then by the other modes, then by value."""
    # Sorted by value last, so that a mean does not depend on the order of the rows.
    columns = [coordinates[:, unit_mode]]
    columns += [coordinates[:, m] for m in reversed(range(len(shape))) if m != unit_mode]
    if math.prod(shape) < 2**63:  # one number for each place is sorted faster
        lengths = [shape[unit_mode], *[n for m, n in enumerate(shape) if m != unit_mode][::-1]]
        columns = [np.ravel_multi_index(tuple(columns), lengths)]
    return np.lexsort([values, *columns[::-1]])


@dataclass(frozen=True)
class SliceReader:
    """Public parameters by which workers turn coordinates and values of a partition into units,
    each all entries of one index of `unit_mode`.
    """

    shape: tuple[int, ...]
    unit_mode: int
    bounds: Bounds

    @classmethod
    def checked(cls, shape: Sequence[int], n_modes: int, unit_mode: int, bounds: Bounds) -> Self:
        """Build a reader after checking that shape, mode and bounds fit `n_modes` columns of
        coordinates.
        """
        rows = checked_shape(shape, n_modes)
        check_unit_mode(unit_mode, rows)
        if isinstance(bounds, RowBounds):
            bounds.check_shape(rows)
        return cls(rows, unit_mode, bounds)

    def split(self, X: Any, y: Any, n_parts: int) -> list[Piece] | Exception:
        """Split a partition's entries into `n_parts` pieces by a hash of their unit; errors are
        returned.
        """
        return error_or(lambda: self._split(X, y, n_parts), "Reading entries")

    def _split(self, X: Any, y: Any, n_parts: int) -> list[Piece]:
        X, y = (as_numbers(part, "a partition") for part in (X, y))
        coordinates, values, _ = as_entries(X, y, self.shape)
        # Coordinates are exact in double precision.
        table = np.column_stack([coordinates, values])
        return split(table, coordinates[:, self.unit_mode], n_parts)

    def gather(self, pieces: Sequence[Piece | Exception]) -> SliceChunks | Exception:
        """Join the pieces that hold the same units into a chunk; returns the first
        error instead.
        """
        found = gathered(pieces)
        if isinstance(found, Exception):
            return found
        return error_or(lambda: self._chunk(found[0]), "Reading entries")

    def _chunk(self, table: NDArray[np.float64]) -> SliceChunks:
        coordinates, values = table[:, :-1].astype(np.intp), table[:, -1]
        return SliceChunks(coordinates, values, self.shape, self.unit_mode, self.bounds, part=True)

    def __call__(self, partition: SliceChunks) -> SliceChunks:
        """Return the partition, a chunk that queries can read, as it is."""
        return partition


@dataclass(frozen=True)
class UnitLevels:
    """Sum over units of the mean of a unit's values and of their standard deviation about it.

    Units without entries add (0, 0). Values are centred on the middle of their range.
    """

    half: float  # half of the width R of the range of values; public

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)

    @property
    def l2_sensitivity(self) -> float:
        """R, the width of the range: (mean, deviation) lies in a half disc of diameter R."""
        return 2 * self.half * SUM_SLACK

    @property
    def l1_sensitivity(self) -> float:
        """``(1 + sqrt 2) R / 2``: largest L1 distance in the half disc of diameter R that holds
        (mean, deviation).
        """
        return (1 + math.sqrt(2)) * self.half * SUM_SLACK

    def total(self, chunk: SliceChunks) -> Floats:
        """Sum of the units' means and sum of their deviations, of shape (2,)."""
        counts, means = _unit_means(chunk, chunk.values)
        squares = _unit_sums(chunk, np.square(chunk.values - means[chunk.units]))
        deviations = np.sqrt(squares / np.maximum(counts, 1))
        # Rounding may carry a unit out of the half disc.
        excess = np.maximum(np.hypot(means, deviations) / self.half, 1.0)
        points = np.array([means / excess, deviations / excess])
        return np.asarray(points.sum(axis=1))


@dataclass(frozen=True, eq=False)
class ReleasedEffects:
    """Released effects of the shared modes' rows, with which units fit parameters of their own."""

    effects: tuple[SharedEffects, ...] = field(repr=False)  # released, one per shared mode
    level: float  # mean level of units, minus the middle of the range; public
    noise_variance: float  # of values about the model, in each unit's own fit; public

    def check(self, scale: float) -> None:
        """Raise ValueError unless all numbers, relative to `scale`, are too small to overflow in a
        fit.
        """
        # Relative to the scale all numbers are what they are for values of any other unit.
        if not LEAST_UNIT <= scale <= 1 / LEAST_UNIT:
            raise ValueError(f"scale must be from {LEAST_UNIT} to {1 / LEAST_UNIT}, got {scale!r}.")
        if not SMALLEST <= self.noise_variance / scale**2 <= LARGEST:
            raise ValueError(
                f"noise_variance must be from {SMALLEST} to {LARGEST} times scale**2; got "
                f"{self.noise_variance!r} and scale {scale!r}."
            )
        parts = [np.array([self.level / scale])]
        for of in self.effects:
            parts += [of.effects / scale, of.variances / scale**2, of.popularity]
        if not all((np.abs(part) <= LARGEST).all() for part in parts):
            raise ValueError(f"released numbers must lie within {LARGEST} scales.")
        if not all((of.variances >= 0).all() for of in self.effects):
            raise ValueError("variances of released effects must be >= 0; some are negative.")

    def cover_rows(self, shared: Sequence[int]) -> bool:
        """Return True if there is an effect for each row of the shared modes, whose lengths are
        `shared`.
        """
        parts = ("effects", "variances", "popularity")
        return all([len(getattr(of, p)) for of in self.effects] == list(shared) for p in parts)

    def posteriors(
        self, chunk: SliceChunks, components: SharedComponents | None = None
    ) -> tuple[EntryEffects, Floats, Floats]:
        """Fit each unit's own parameters to its entries; return effects, means and covariances.

        Effects (`EntryEffects`) are those at ``chunk.places``; posterior means (n_units, q) and
        covariances (n_units, q, q) are of a unit's parameters, which with `components` include its
        weights of the components.
        """
        known = {"level": self.level, "noise_variance": self.noise_variance}
        places = chunk.places
        rows = None if components is None else components.rows(places)
        at = effects_at_entries(self.effects, places, rows)
        if chunk.cells is not None:
            return at, *cell_posteriors(chunk.by_cells, at, **known)
        return at, *unit_posteriors(chunk.units, chunk.values, at, n_units=chunk.n_units, **known)

    def residuals(self, chunk: SliceChunks) -> Floats:
        """Values minus the prediction from effects and each unit's own parameters, (n_distinct,); 0
        where not finite.
        """
        at, means, _ = self.posteriors(chunk)
        parts = at.effects, *at.design()
        if chunk.cells is not None:
            parts = tuple(part.take(chunk.by_cells.indices) for part in parts)
        left = chunk.values - self.level
        left -= parts[0]
        # One number after the other: an entry's last bits do not depend on where it stands.
        for own, of in zip(means.T, parts[1:], strict=True):
            left -= own.take(chunk.units) * of
        return np.where(np.isfinite(left), left, 0.0)


@dataclass(frozen=True, eq=False)
class SharedRowSums:
    """Sum over units of clipped residuals in each row of a shared mode, and of their counts.

    A unit adds ``(S, C) / |C|``: S the sums of its clipped residuals in each row of the mode, C its
    numbers of entries there.
    """

    mode: int  # any mode but the units'
    shape: tuple[int, ...]  # of the tensor; public
    level: float  # mean level of units, minus the middle of the range; public
    scale: float  # residual that is clipped to 1; public
    shrinkage: float  # number of entries at which a unit's own level counts as much as `level`
    # Released effects of rows of the other modes, subtracted from values first.
    effects: tuple[Floats | None, ...] = field(default=(), repr=False)
    order: int = 2  # norm of C that a unit is divided by: 1 bounds the L1 norm too
    # Effects about which units fit residuals, in the place of those above.
    about: ReleasedEffects | None = None

    # L2 distance of two units' contributions, before rounding.
    farthest: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        check_number("the scale", self.scale, (LEAST_SCALE, LARGEST_LEVEL))
        check_number("the shrinkage", self.shrinkage, (0.0, LARGEST_LEVEL))
        check_number("the level", self.level, (-LARGEST_LEVEL, LARGEST_LEVEL))
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}.")
        if len(self.effects) not in (0, len(self.shape)):
            raise ValueError(f"effects must have one item for each of {len(self.shape)} modes.")
        for effect, n_rows in zip(self.effects, self.shape, strict=False):
            if effect is None:
                continue
            if effect.shape != (n_rows,):
                raise ValueError(
                    f"effects must hold one number for each of a mode's {n_rows} rows; got an "
                    f"array of shape {effect.shape}."
                )
            check_array("an effect", effect, LARGEST_LEVEL)
        if self.about is not None:
            self.about.check(self.scale)

    @property
    def l2_sensitivity(self) -> float:
        """2, the largest distance: contributions have norm sqrt(2) at most and no obtuse angle."""
        return self.farthest * SUM_SLACK

    @property
    def l1_sensitivity(self) -> float:
        """4 for ``order=1``, as a contribution has L1 norm 2 at most; otherwise infinity."""
        return 4 * SUM_SLACK if self.order == 1 else math.inf

    def total(self, chunk: SliceChunks) -> Floats:
        """Sums of residuals in the first row, of counts in the second: shape (2, shape[mode])."""
        if self.mode == chunk.unit_mode or chunk.shape != self.shape:
            raise ValueError(
                f"mode must be another one than the units', {chunk.unit_mode}, and shape that of "
                f"the data, {chunk.shape}; got mode {self.mode} and shape {self.shape}."
            )
        shared = [n for mode, n in enumerate(self.shape) if mode != chunk.unit_mode]
        if self.about is not None and not self.about.cover_rows(shared):
            raise ValueError(
                f"about must hold effects of {shared} rows, those of the shared modes."
            )
        residuals = self._residuals(chunk)
        rows = chunk.coordinates[:, self.mode]
        weights = self._weights(chunk)
        size = self.shape[self.mode]
        return sums_by_row(rows, np.stack([weights * residuals, weights], axis=1), size).T.copy()

    def _weights(self, chunk: SliceChunks) -> Floats:
        """Weight of each entry: one over the norm of its unit's counts C; (n_distinct,)."""
        if self.order == 1:
            norms = np.maximum(_unit_sums(chunk, None), 1.0)
        else:
            norms = chunk.count_norms(self.mode)
        return np.asarray(1 / norms[chunk.units])

    def _residuals(self, chunk: SliceChunks) -> Floats:
        """Values minus released effects and the unit's own level, over `scale`, clipped
        to [-1, 1].
        """
        if self.about is not None:
            return np.clip(self.about.residuals(chunk) / self.scale, -1.0, 1.0)
        values = chunk.values
        for mode, effect in enumerate(self.effects):
            if effect is not None and mode not in (chunk.unit_mode, self.mode):
                values = values - effect[chunk.coordinates[:, mode]]
        counts, means = _unit_means(chunk, values)
        known = counts + self.shrinkage
        levels = (counts * means + self.shrinkage * self.level) / np.where(known > 0, known, 1.0)
        return np.clip((values - levels[chunk.units]) / self.scale, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class SharedFactorSums:
    """Gradient step of one shared factor, summed over units, and the second moment of slopes.

    A unit fits its own parameters to its entries. Each of its entries then has a residual, clipped
    to [-1, 1], and a slope (derivative of its prediction in the factor's row), clipped to length 1.
    Their products are added in each row and divided by the norm of the unit's counts of rows. With
    ``whole`` they are divided by their own norm instead, so that every unit contributes as much as
    the bound allows, however small its residuals and slopes are.
    """

    mode: int  # of the factor, among the shared modes in order
    shape: tuple[int, ...]  # of the tensor; public
    level: float  # mean level of units, minus the middle of the range; public
    effects: tuple[SharedEffects, ...] = field(repr=False)  # released, one per shared mode
    components: SharedComponents = field(repr=False)  # released factors
    noise_variance: float  # of values about the model, in each unit's own fit; public
    scale: float  # residual that is clipped to 1; public
    whole: bool = False  # whether a unit's sums have norm 1: of matrices with few shared rows
    # (r, r), symmetric, within +-1: multiplies slopes of whole units; released.
    turned: Floats | None = field(default=None, repr=False)

    # L2 distance of two units' sums, without their moments and before rounding.
    farthest: ClassVar[float] = 2.0
    l1_sensitivity = math.inf  # there is no pure law for this query

    def __post_init__(self) -> None:
        released = self._released
        released.check(self.scale)
        sizes = [float(np.abs(f).max(initial=0.0)) for f in self.components.factors]
        own = sizes.pop(self.mode) / self.scale
        if not (
            own * math.prod(sizes) <= LARGEST**2
            and math.prod(sizes) <= LARGEST**2
            and all(size <= LARGEST for size in [*sizes, own])
        ):
            raise ValueError(f"released numbers must lie within {LARGEST} scales.")
        shared = [len(factor) for factor in self.components.factors]
        if self.whole and not self.may_be_whole(self.shape, shared):
            raise ValueError(
                f"whole needs a matrix with at most {MOST_CELLS} rows in its shared mode; got "
                f"shape {self.shape} and factors of {shared} rows."
            )
        if not released.cover_rows(shared):
            raise ValueError(f"effects must be of {shared} rows, those of the factors.")
        if self.turned is not None:
            if not self.whole or self.turned.shape != (self.components.n_components,) * 2:
                raise ValueError(
                    "turned needs whole units, and shape (r, r) for r components, here "
                    f"{self.components.n_components}; got shape {self.turned.shape}."
                )
            check_array("turned", self.turned, 1.0)

    @staticmethod
    def may_be_whole(shape: Sequence[int], shared: Sequence[int]) -> bool:
        """Return True if units are rows of a matrix with few enough columns (`shared`) for
        ``whole``.
        """
        return len(shape) == 2 and len(shared) == 1 and shared[0] <= MOST_CELLS

    @property
    def _released(self) -> ReleasedEffects:
        """Released effects with which units fit their parameters."""
        return ReleasedEffects(self.effects, self.level, self.noise_variance)

    @property
    def slope_scale(self) -> float:
        """Slope that is clipped to length 1: sqrt(r), that of component weights of 1 each."""
        return math.sqrt(self.components.factors[self.mode].shape[1])

    @property
    def l2_sensitivity(self) -> float:
        """Largest distance: sums lie in the unit ball, weighted moments at acute angles."""
        return math.sqrt(self.farthest**2 + 2 * MOMENT_WEIGHT**2) * SUM_SLACK

    def total(self, chunk: SliceChunks) -> Floats:
        """Sums of residuals times slopes for each row of the factor, and below them the weighted
        second moment of slopes: shape (shape[mode] + r, r).
        """
        if np.delete(chunk.shape, chunk.unit_mode).tolist() != [
            len(factor) for factor in self.components.factors
        ]:
            raise ValueError(
                "components must have one factor for each shared mode, with as many rows as the "
                f"mode; the data has shape {chunk.shape} and unit_mode {chunk.unit_mode}."
            )
        if len(self.effects) == 1 and chunk.cells is not None:
            return self._of_matrix(chunk, chunk.cells)
        _, means, covariances = self._released.posteriors(chunk, self.components)
        shared, weights = chunk.shared, means[:, N_PLAIN:]
        inverse_norms = 1 / chunk.count_norms(_whole_mode(chunk, self.mode))
        rows, factor = shared[:, self.mode], self.components.factors[self.mode]
        terms = np.empty((len(rows), factor.shape[1]))
        for span in blocks(len(rows), ENTRIES_AT_ONCE):
            units = chunk.units[span]
            residuals, slopes = self._parts(chunk.values[span], shared[span], means[units])
            terms[span] = slopes * (residuals * inverse_norms[units])[:, None]
        sums = sums_by_row(rows, terms, len(factor))
        second = np.einsum("ua,ub->uab", weights, weights)
        second += covariances[:, N_PLAIN:, N_PLAIN:]
        return np.concatenate([sums, self._moment(chunk, second)])

    def _of_matrix(self, chunk: SliceChunks, cells: Integers) -> Floats:
        """Total for a matrix, where a unit has one value for each row and equal slopes
        in all rows.
        """
        at = effects_at_entries(self.effects, cells, self.components.rows(cells))
        units = CellUnits(at, level=self.level, noise_variance=self.noise_variance)
        sums = UnitSums(
            units, self.scale, self.slope_scale, MOMENT_WEIGHT, self.whole, self.turned
        )  # fmt: skip
        return sums.total(chunk)

    def _parts(self, values: Floats, shared: Integers, means: Floats) -> tuple[Floats, Floats]:
        """Clipped residuals (n,) and slopes (n, r) of entries, from the posterior `means` of their
        units.
        """
        at = effects_at_entries(self.effects, shared)
        plain = np.einsum("nq,qn->n", means[:, :N_PLAIN], at.design())
        residuals = (values - self.level - at.effects - plain) / self.scale
        beside = self.components.beside(self.mode, shared)
        slopes = self.components.slopes(self.mode, means[:, N_PLAIN:], beside) / self.slope_scale
        slopes /= np.maximum(np.sqrt(np.einsum("nr,nr->n", slopes, slopes)), 1.0)[:, None]
        return np.clip(residuals, -1.0, 1.0), slopes

    def _moment(self, chunk: SliceChunks, second: Floats) -> Floats:
        """Sum over units of the mean second moment of their slopes, clipped to norm 1, times its
        weight; `second` (n_units, r, r) is that of the units' component weights.
        """
        counts = np.maximum(_unit_sums(chunk, None), 1.0)
        beside = self.components.beside(self.mode, chunk.places)
        first, second_of = np.triu_indices(beside.shape[1])
        if chunk.cells is None:
            pairs = (beside[:, i] * beside[:, j] for i, j in zip(first, second_of, strict=True))
            packed = np.stack([_unit_sums(chunk, pair) for pair in pairs], axis=1)
        else:
            observed = of_same_shape(chunk.by_cells, np.ones(chunk.by_cells.nnz))
            packed = np.asarray(observed @ (beside[:, first] * beside[:, second_of]))
        products = unpack_rows(packed / counts[:, None], beside.shape[1])
        moments = self.components.slope_moments(self.mode, second, products) / self.slope_scale**2
        # Products that cancel may leave a moment indefinite, and with it an obtuse angle.
        diagonal = np.arange(moments.shape[1])
        with np.errstate(all="ignore"):
            # Pivots say nothing of matrices that are not symmetric to the last bit.
            moments = moments / 2 + moments.transpose(0, 2, 1) / 2
            raised = moments.copy()
            ridge = LEAST_EIGENVALUE * np.trace(moments, axis1=1, axis2=2)
            raised[:, diagonal, diagonal] += ridge[:, None]
            safe = are_positive(raised)
        values, vectors = np.linalg.eigh(moments[~safe])
        moments[safe] = raised[safe]
        projected = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        moments[~safe] = projected
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(moments, axis=(1, 2))
        moments *= (MOMENT_WEIGHT / np.maximum(lengths, 1.0))[:, None, None]
        return axis_sum(moments)


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums over units (rows of a matrix) of clipped residuals times slopes in each cell, and of
    second moments of slopes; a fast path of `SharedFactorSums`.
    """

    units: CellUnits  # posteriors of units from their entries
    scale: float  # residual that is clipped to 1
    slope_scale: float  # length of weights that is clipped to 1
    moment_weight: float  # of a moment of norm 1
    whole: bool = False  # whether residuals and weights are each divided by their own length
    turned: Floats | None = None  # (r, r), symmetric: multiplies weights of whole units

    def total(self, chunk: SliceChunks) -> Floats:
        """Sums for each cell (column), then the weighted moment: shape (n_cells + r, r)."""
        by_cells, table, result = chunk.by_cells, chunk.cell_table, AccurateSum()
        numbers = max(self.units.packed_size, 0 if table is None else len(table[0]))
        for span in blocks(chunk.n_units, max(rows_at_once(numbers), LEAST_BLOCK)):
            columns = None if table is None else (table[0][:, span], table[1][:, span])
            entries = CellEntries(rows_of(by_cells, span), self.units.offsets, columns)
            for part in self._of_units(entries):
                result.add(part)
        return result.value()

    def _of_units(self, entries: CellEntries) -> Iterator[Floats]:
        """Yield the totals of at most 750 units each, so that they are added accurately."""
        means, roots = self.units.posteriors(entries)
        weights = means[N_PLAIN:]
        terms = self.units.terms[: N_PLAIN - 1]
        residuals = entries.residuals(means[:N_PLAIN], terms, self.scale)
        slopes = weights / self.slope_scale
        if self.turned is not None:
            slopes = _turned(slopes, self.turned)
        squares = slopes[0] ** 2
        for row in slopes[1:]:
            squares += row**2
        lengths = np.sqrt(squares)
        # Cells are rows of the factor, and a unit has one entry in each at most.
        if self.whole:
            slopes *= _inverses(lengths) * _inverses(entries.lengths(residuals))
        else:
            slopes /= np.maximum(lengths, 1.0) * np.sqrt(np.maximum(entries.counts, 1))
        moments, shares = self.moments(roots, weights)
        shares[entries.counts == 0] = 0.0
        for span in blocks(len(shares), UNITS_AT_ONCE):
            moment = unpack_rows((moments[:, span] @ shares[span])[None], len(weights))[0]
            yield np.concatenate([entries.products(residuals, slopes, span), moment])

    def moments(self, roots: list[Floats], weights: Floats) -> tuple[Floats, Floats]:
        """Packed second moments ``Y Y' + w w'`` of slopes w with covariance ``Y Y'``, positive by
        construction, and the clipping factor of each unit's.
        """
        packed, diagonal = products_of_roots(roots, weights), packed_diagonal(len(weights))
        with np.errstate(over="ignore"):
            # Rounding in a product is far below what is added to the diagonal.
            ridge = np.zeros(packed.shape[1])
            for place in diagonal:
                ridge += packed[place]
            packed[diagonal] += LEAST_EIGENVALUE * ridge
            squares, below = packed**2, np.zeros_like(ridge)
            for place, row in enumerate(squares):
                if place not in diagonal:
                    below += row
            squares = 2 * below + sum(squares[place] for place in diagonal)
            lengths = np.sqrt(squares) / self.slope_scale**2
        return packed, self.moment_weight / self.slope_scale**2 / np.maximum(lengths, 1.0)


def _turned(slopes: Floats, by: Floats) -> Floats:
    """Multiply slopes (r, n) by the matrix `by` (r, r), element by element: a unit's digits do not
    depend on the other units.
    """
    turned = np.zeros_like(slopes)
    for own, row in zip(turned, by, strict=True):
        for slope, number in zip(slopes, row, strict=True):
            own += number * slope
    return turned


def _inverses(lengths: Floats) -> Floats:
    """``1 / length``, or 0 where a length is 0 or not finite."""
    usable = (lengths > LEAST_LENGTH) & np.isfinite(lengths)
    return np.where(usable, 1 / np.where(usable, lengths, 1.0), 0.0)


def _whole_mode(chunk: SliceChunks, mode: int) -> int:
    """Mode of the tensor, from its index among the shared modes."""
    return mode + (mode >= chunk.unit_mode)


def _unit_means(chunk: SliceChunks, values: Floats) -> tuple[Floats, Floats]:
    """Number of entries of each unit, and the mean of their `values` (0 without entries)."""
    counts = _unit_sums(chunk, None)
    return counts, _unit_sums(chunk, values) / np.maximum(counts, 1.0)


def _unit_sums(chunk: SliceChunks, terms: Floats | None) -> Floats:
    """Sum of `terms` (None: of ones) over the entries of each unit; (n_units,)."""
    sums = np.bincount(chunk.units, weights=terms, minlength=chunk.n_units)
    return sums.astype(np.float64)
