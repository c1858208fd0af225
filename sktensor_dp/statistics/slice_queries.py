"""Queries on slices of a tensor: the unit of privacy is all that one index of a mode holds.

Which entries a unit has is as private as their values, and the number of units is
public. A unit's contribution is computed from its own entries and released numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sktensor_dp.statistics.observed_entries import MOST_CELLS, SUM_SLACK, SliceChunks
from sktensor_dp.statistics.public_numbers import HALF, check_array, check_number
from sktensor_dp.statistics.slice_blocks import LEAST_EIGENVALUE, UnitSums
from sktensor_dp.statistics.sums import SplitSums, axis_sum, blocks, sums_by_row
from sktensor_dp.statistics.unit_residuals import LARGEST, ReleasedEffects
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.tensor.cell_units import CellUnits
from sktensor_dp.tensor.packed import unpack_rows
from sktensor_dp.tensor.same_shape import of_same_shape
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects
from sktensor_dp.tensor.small_systems import are_positive
from sktensor_dp.tensor.unit_parameters import (
    N_PLAIN,
    effects_at_entries,
)

# Public numbers within these leave no residual that overflows, whose NaN no clip would stop.
LEAST_SCALE, LARGEST_LEVEL = 1e-100, 1e100
# Least weight of a row: squares of it are far from where numbers vanish.
LEAST_ROW_WEIGHT = 1e-6
# Entries that residuals and slopes are formed of at once: they stay in a cache.
ENTRIES_AT_ONCE = 2**13
# Weight of a unit's second moment beside its sums: it is a few numbers, and learnt easily.
MOMENT_WEIGHT = 0.25


@dataclass(frozen=True)
class UnitLevels:
    """Sum over units of the mean of a unit's values and their root mean square about it.

    Units without entries add (0, 0).

    Parameters
    ----------
    half : float
        Half of the width R of the range of values; public.
    """

    half: float

    def __post_init__(self) -> None:
        check_number("half the range", self.half, HALF)

    @property
    def l2_sensitivity(self) -> float:
        """R: mean and deviation lie in a half disc of diameter R."""
        return 2 * self.half * SUM_SLACK

    @property
    def l1_sensitivity(self) -> float:
        """``(1 + sqrt 2) R / 2``, from an end of the diameter to an arc."""
        return (1 + math.sqrt(2)) * self.half * SUM_SLACK

    def total(self, chunk: SliceChunks) -> Floats:
        """Sum of means, and of deviations, of values minus the middle of their range."""
        counts, means = _unit_means(chunk, chunk.values)
        squares = _unit_sums(chunk, np.square(chunk.values - means[chunk.units]))
        deviations = np.sqrt(squares / np.maximum(counts, 1))
        # Rounding may carry a unit out of the half disc.
        excess = np.maximum(np.hypot(means, deviations) / self.half, 1.0)
        points = np.array([means / excess, deviations / excess])
        return np.asarray(points.sum(axis=1))


@dataclass(frozen=True, eq=False)
class SharedRowSums:
    """Sum over units of clipped residuals in each row of a shared mode, and of their numbers.

    Within a unit the residuals of the entries in a row of the mode are added to S and
    counted in C; the unit adds ``(S, C) / |C|``.

    Parameters
    ----------
    mode : int
        Any mode but the units'.
    shape : tuple of n_modes int
        Of the tensor; public.
    level : float
        Mean level of units, minus the middle of the range; public.
    scale : float
        Residual that is clipped to 1; public.
    shrinkage : float
        Number of entries at which a unit's own level counts as much as the mean level.
    effects : tuple of n_modes arrays or None, optional
        Released effect of each row of the other modes, subtracted from values first.
    order : {2, 1}
        Norm of C that a unit is divided by: 1 bounds the L1 norm too.
    about : ReleasedEffects, optional
        Released effects of all shared modes: residuals are then those about what each unit
        fits to its own entries given these, in the place of `level`, `shrinkage`, `effects`.
    row_weights : array of shape (shape[mode],), optional
        What S and C are multiplied by in each row, from `LEAST_ROW_WEIGHT` to 1; public. Of
        matrices, and of order 2.
    """

    mode: int
    shape: tuple[int, ...]
    level: float
    scale: float
    shrinkage: float
    effects: tuple[Floats | None, ...] = field(default=(), repr=False)
    order: int = 2
    about: ReleasedEffects | None = None
    row_weights: Floats | None = field(default=None, repr=False)

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
                raise ValueError(f"an effect must hold {n_rows} numbers.")
            check_array("an effect", effect, LARGEST_LEVEL)
        if self.about is not None:
            self.about.check(self.scale)
        if self.row_weights is not None:
            if (len(self.shape), self.order) != (2, 2):
                raise ValueError("row_weights need a matrix, and order 2.")
            of_rows = self.row_weights.shape == (self.shape[self.mode],)
            # Written so that NaN fails.
            within = (self.row_weights >= LEAST_ROW_WEIGHT) & (self.row_weights <= 1)
            if not (of_rows and within.all()):
                raise ValueError(f"row_weights must be one for each row, {LEAST_ROW_WEIGHT} to 1.")

    @property
    def l2_sensitivity(self) -> float:
        """Contributions have norm ``sqrt 2`` at most and no obtuse angle between them."""
        return self.farthest * SUM_SLACK

    @property
    def l1_sensitivity(self) -> float:
        """Contributions have an L1 norm of 2 at most, if they are divided by that of C."""
        return 4 * SUM_SLACK if self.order == 1 else math.inf

    def total(self, chunk: SliceChunks) -> Floats:
        """Sums in the first row, numbers in the second: shape (2, shape[mode])."""
        if self.mode == chunk.unit_mode or chunk.shape != self.shape:
            raise ValueError("the mode must be shared by units, and the shape that of the data.")
        shared = [n for mode, n in enumerate(self.shape) if mode != chunk.unit_mode]
        if self.about is not None and not self.about.are_of(shared):
            raise ValueError("effects must be those of the rows of all shared modes.")
        residuals = self._residuals(chunk)
        rows = chunk.coordinates[:, self.mode]
        weights = self._weights(chunk, rows)
        size = self.shape[self.mode]
        terms = (weights * residuals, weights)
        return np.array([sums_by_row(rows, of, size) for of in terms])

    def _weights(self, chunk: SliceChunks, rows: Integers) -> Floats:
        """Of entries: one over the norm of their unit's C, times the weight of their row."""
        if self.row_weights is not None:
            # In a matrix a unit has a row once.
            own = self.row_weights[rows]
            squares = _unit_sums(chunk, np.square(own))
            return np.asarray(own / np.sqrt(squares)[chunk.units])
        if self.order == 1:
            norms = np.maximum(_unit_sums(chunk, None), 1.0)
        else:
            norms = chunk.count_norms(self.mode)
        return np.asarray(1 / norms[chunk.units])

    def _residuals(self, chunk: SliceChunks) -> Floats:
        """Values minus released effects and the unit's own level, clipped to [-1, 1]."""
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
    """Sum over units of what each would change in one shared factor, and its second moment.

    A unit fits its own parameters to its entries. Each of its entries then has a residual,
    clipped to [-1, 1], and a slope in the factor's row, clipped to length 1. Their
    products are added in each row and divided by the norm of the unit's counts of rows.
    With ``whole`` they are divided by their own norm instead: every unit says all that its
    bound allows, however small its residuals and slopes are.

    Parameters
    ----------
    mode : int
        Of the factor, among the shared modes in order.
    shape : tuple of n_modes int
        Of the tensor; public.
    level : float
        Mean level of units, minus the middle of the range; public.
    effects : tuple of SharedEffects
        Released, one per shared mode.
    components : SharedComponents
        Released factors.
    noise_variance : float
        Of values about the model, in each unit's own fit; public.
    scale : float
        Residual that is clipped to 1; public.
    whole : bool, default=False
        Whether a unit's sums have norm 1. Of matrices only, with few enough rows to share.
    turned : ndarray of shape (r, r), optional
        Symmetric, of numbers within +-1: slopes of whole units are multiplied by it before
        they get length 1. Released numbers that say what columns shall count.
    """

    mode: int
    shape: tuple[int, ...]
    level: float
    effects: tuple[SharedEffects, ...] = field(repr=False)
    components: SharedComponents = field(repr=False)
    noise_variance: float
    scale: float
    whole: bool = False
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
            raise ValueError("whole needs a matrix with few enough shared rows.")
        if not released.are_of(shared):
            raise ValueError("effects must be as many as rows of the factors.")
        if self.turned is not None:
            if not self.whole or self.turned.shape != (self.components.n_components,) * 2:
                raise ValueError("turned needs whole units, and a number for each pair of columns.")
            check_array("turned", self.turned, 1.0)

    @staticmethod
    def may_be_whole(shape: Sequence[int], shared: Sequence[int]) -> bool:
        """Whether units are rows of a matrix, of few enough columns to be cells of a table."""
        return len(shape) == 2 and len(shared) == 1 and shared[0] <= MOST_CELLS

    @property
    def _released(self) -> ReleasedEffects:
        return ReleasedEffects(self.effects, self.level, self.noise_variance)

    @property
    def slope_scale(self) -> float:
        """Slope that is clipped to length 1: that of weights of one each."""
        return math.sqrt(self.components.factors[self.mode].shape[1])

    @property
    def l2_sensitivity(self) -> float:
        """Sums lie in the unit ball; moments do too, at acute angles to each other."""
        return math.sqrt(self.farthest**2 + 2 * MOMENT_WEIGHT**2) * SUM_SLACK

    def total(self, chunk: SliceChunks) -> Floats:
        """Rows of sums, then those of the weighted moment: (shape[mode] + r, r) numbers."""
        if np.delete(chunk.shape, chunk.unit_mode).tolist() != [
            len(factor) for factor in self.components.factors
        ]:
            raise ValueError("the factors must be those of the shared modes.")
        if len(self.effects) == 1 and chunk.cells is not None:
            return self._of_matrix(chunk, chunk.cells)
        _, means, covariances = self._released.posteriors(chunk, self.components)
        shared, weights = chunk.shared, means[:, N_PLAIN:]
        inverse_norms = 1 / chunk.count_norms(_whole_mode(chunk, self.mode))
        rows, factor = shared[:, self.mode], self.components.factors[self.mode]
        # Residuals are at most 1, and so are slopes and the weight of a unit.
        sums = SplitSums(rows, len(factor), factor.shape[1], 1.0)
        for span in blocks(len(rows), ENTRIES_AT_ONCE):
            units = chunk.units[span]
            residuals, slopes = self._parts(chunk.values[span], shared[span], means[units])
            sums.add(rows[span], slopes * (residuals * inverse_norms[units])[:, None])
        second = np.einsum("ua,ub->uab", weights, weights)
        second += covariances[:, N_PLAIN:, N_PLAIN:]
        return np.concatenate([sums.value(), self._moment(chunk, second)])

    def _of_matrix(self, chunk: SliceChunks, cells: Integers) -> Floats:
        """The total where a unit has one value in each row of the factor, and slopes are equal."""
        at = effects_at_entries(self.effects, cells, self.components.rows(cells))
        units = CellUnits(at, level=self.level, noise_variance=self.noise_variance)
        sums = UnitSums(
            units, self.scale, self.slope_scale, MOMENT_WEIGHT, self.whole, self.turned
        )  # fmt: skip
        return sums.total(chunk)

    def _parts(self, values: Floats, shared: Integers, means: Floats) -> tuple[Floats, Floats]:
        """Clipped residuals, and clipped slopes, of entries and the means of their units."""
        at = effects_at_entries(self.effects, shared)
        plain = np.einsum("nq,qn->n", means[:, :N_PLAIN], at.design())
        residuals = (values - self.level - at.effects - plain) / self.scale
        beside = self.components.beside(self.mode, shared)
        slopes = self.components.slopes(self.mode, means[:, N_PLAIN:], beside) / self.slope_scale
        slopes /= np.maximum(np.sqrt(np.einsum("nr,nr->n", slopes, slopes)), 1.0)[:, None]
        return np.clip(residuals, -1.0, 1.0), slopes

    def _moment(self, chunk: SliceChunks, second: Floats) -> Floats:
        """Sum over units of their mean second moment of slopes, clipped and weighted."""
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


def _whole_mode(chunk: SliceChunks, mode: int) -> int:
    """Mode of the tensor from its place among the shared ones."""
    return mode + (mode >= chunk.unit_mode)


def _unit_means(chunk: SliceChunks, values: Floats) -> tuple[Floats, Floats]:
    """Number of entries of each unit, and the mean of their values (0 of none)."""
    counts = _unit_sums(chunk, None)
    return counts, _unit_sums(chunk, values) / np.maximum(counts, 1.0)


def _unit_sums(chunk: SliceChunks, terms: Floats | None) -> Floats:
    sums = np.bincount(chunk.units, weights=terms, minlength=chunk.n_units)
    return sums.astype(np.float64)
