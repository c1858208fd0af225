"""Queries on slices of a tensor: the unit of privacy is all that one index of a mode holds.

Which entries a unit has is as private as their values, and the number of units is
public. A unit's contribution is computed from its own entries and released numbers.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.statistics.entries import SLACK, SliceChunks

__all__ = ["SharedRowSums", "UnitLevels"]

Floats = NDArray[np.float64]

# Public numbers within these leave no residual that overflows, whose NaN no clip would stop.
LEAST_SCALE, LARGEST_LEVEL = 1e-100, 1e100


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

    @property
    def l2_sensitivity(self) -> float:
        """R: mean and deviation of numbers in a range lie in a half disc of diameter R."""
        return 2 * self.half * SLACK

    @property
    def l1_sensitivity(self) -> float:
        """``(1 + sqrt 2) R / 2``, from an end of the diameter to the middle of an arc."""
        return (1 + math.sqrt(2)) * self.half * SLACK

    def total(self, chunk: SliceChunks) -> Floats:
        """Sum of means, and of deviations, of values minus the middle of their range."""
        counts, means = _unit_means(chunk, chunk.values)
        squares = _unit_sums(chunk, np.square(chunk.values - means[chunk.units]))
        deviations = np.sqrt(squares / np.maximum(counts, 1))
        # Rounding may carry a unit out of the half disc.
        excess = np.maximum(np.hypot(means, deviations) / self.half, 1.0)
        return np.array([(means / excess).sum(), (deviations / excess).sum()])


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
    """

    mode: int
    shape: tuple[int, ...]
    level: float
    scale: float
    shrinkage: float
    effects: tuple[Floats | None, ...] = field(default=(), repr=False)
    order: int = 2

    def __post_init__(self) -> None:
        if not (LEAST_SCALE <= self.scale < math.inf and 0 <= self.shrinkage < math.inf):
            raise ValueError("the scale must be positive, the shrinkage >= 0, and both finite.")
        if not abs(self.level) <= LARGEST_LEVEL:
            raise ValueError(f"the level must be a finite number, got {self.level!r}.")
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}.")
        if len(self.effects) not in (0, len(self.shape)):
            raise ValueError(f"effects must have one item for each of {len(self.shape)} modes.")
        for effect, n_rows in zip(self.effects, self.shape, strict=False):
            if effect is None:
                continue
            if effect.shape != (n_rows,) or not (np.abs(effect) <= LARGEST_LEVEL).all():
                raise ValueError(f"an effect must hold {n_rows} finite numbers.")

    @property
    def l2_sensitivity(self) -> float:
        """Contributions have norm ``sqrt 2`` at most and no obtuse angle between them."""
        return 2 * SLACK

    @property
    def l1_sensitivity(self) -> float:
        """Contributions have an L1 norm of 2 at most, if they are divided by that of C."""
        return 4 * SLACK if self.order == 1 else math.inf

    def total(self, chunk: SliceChunks) -> Floats:
        """Sums in the first row, numbers in the second: shape (2, shape[mode])."""
        if self.mode == chunk.unit_mode or chunk.shape != self.shape:
            raise ValueError("the mode must be shared by units, and the shape that of the data.")
        residuals = self._residuals(chunk)
        rows = chunk.coordinates[:, self.mode]
        weights = 1 / self._count_norms(chunk, rows)[chunk.units]
        size = self.shape[self.mode]
        terms = (weights * residuals, weights)
        sums = [np.bincount(rows, weights=w, minlength=size) for w in terms]
        # Without entries it would count in integers, and dividing them in place would fail.
        return np.array(sums, dtype=np.float64)

    def _residuals(self, chunk: SliceChunks) -> Floats:
        """Values minus released effects and the unit's own level, clipped to [-1, 1]."""
        values = chunk.values
        for mode, effect in enumerate(self.effects):
            if effect is not None and mode not in (chunk.unit_mode, self.mode):
                values = values - effect[chunk.coordinates[:, mode]]
        counts, means = _unit_means(chunk, values)
        known = counts + self.shrinkage
        levels = (counts * means + self.shrinkage * self.level) / np.where(known > 0, known, 1.0)
        return np.clip((values - levels[chunk.units]) / self.scale, -1.0, 1.0)

    def _count_norms(self, chunk: SliceChunks, rows: NDArray[np.intp]) -> Floats:
        """Norm of C of each unit; 1 for units without entries."""
        if self.order == 1:
            return np.maximum(_unit_sums(chunk, None), 1.0)
        # Runs of equal (unit, row) pairs are the entries of C that are not 0.
        order = np.lexsort([rows, chunk.units])
        units, rows = chunk.units[order], rows[order]
        first = np.ones(len(units), dtype=bool)
        first[1:] = (units[1:] != units[:-1]) | (rows[1:] != rows[:-1])
        counts = np.bincount(np.cumsum(first) - 1).astype(float)
        squares = np.bincount(units[first], weights=counts**2, minlength=chunk.n_units)
        return np.sqrt(np.maximum(squares, 1.0))


def _unit_means(chunk: SliceChunks, values: Floats) -> tuple[Floats, Floats]:
    """Number of entries of each unit, and the mean of their values (0 of none)."""
    counts = _unit_sums(chunk, None)
    return counts, _unit_sums(chunk, values) / np.maximum(counts, 1.0)


def _unit_sums(chunk: SliceChunks, terms: Floats | None) -> Floats:
    sums = np.bincount(chunk.units, weights=terms, minlength=chunk.n_units)
    return sums.astype(np.float64)
