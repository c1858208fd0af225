"""Public bounds of values: one range for all of them, or one for each row of a mode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sktensor_dp.tensor.arrays import Floats, Integers

# Squares and ratios of squares of values within these neither overflow nor vanish.
LEAST_WIDTH, LARGEST_SIZE = 1e-50, 1e50


@dataclass(frozen=True, eq=False)
class RowBounds:
    """Public ranges of the rows of one mode, in which values are clamped and mapped to `SCALE`."""

    # What the range of each row is mapped to.
    SCALE: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    mode: int
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        if self.low.ndim != 1 or self.low.shape != self.high.shape or len(self.low) == 0:
            raise ValueError(
                "bounds of rows must have a low and a high end for each of one or more rows; got "
                f"shapes {self.low.shape} and {self.high.shape}."
            )
        both = np.stack([self.low, self.high])
        # Written so that NaN fails.
        right = (np.abs(both) <= LARGEST_SIZE).all() and (self.high - self.low >= LEAST_WIDTH).all()
        if not right:
            raise ValueError(
                f"bounds of rows must be (low, high) with low < high, at least {LEAST_WIDTH:g} "
                f"apart and of size {LARGEST_SIZE:g} at most."
            )

    def check_shape(self, shape: Sequence[int]) -> None:
        """Raise ValueError if a public shape lacks the mode or has another number of its rows."""
        if self.mode >= len(shape):
            raise ValueError(
                f"bounds must be of one of the modes 0 to {len(shape) - 1}; got {self.mode}."
            )
        if len(self.low) != shape[self.mode]:
            raise ValueError(
                f"bounds[{self.mode}] must have a row for each of the {shape[self.mode]} rows of "
                f"mode {self.mode}; it has {len(self.low)}. Give shape=, where rows without "
                "entries count too."
            )

    def limits(self, rows: Any) -> tuple[Floats, Floats]:
        """Low and high ends of the ranges of `rows`, by index; ValueError beyond the last row."""
        places = np.asarray(rows)
        if ((places < 0) | (places >= len(self.low))).any():
            raise ValueError(
                f"There are rows of mode {self.mode} for which bounds= has no range: their values "
                "cannot be clamped. Leave these rows out."
            )
        return self.low[places], self.high[places]

    def take(self, rows: Integers) -> "RowBounds":
        """Bounds of the given rows, in their order."""
        return RowBounds(self.mode, *self.limits(rows))


Bounds = tuple[float, float] | RowBounds


def limits_at(bounds: Bounds, coordinates: Integers) -> tuple[Any, Any]:
    """Low and high ends of the range of each entry (arrays), or of all entries (numbers)."""
    if isinstance(bounds, RowBounds):
        return bounds.limits(coordinates[:, bounds.mode])
    return bounds


def in_scale(bounds: Bounds, values: Floats, coordinates: Integers) -> Floats:
    """Values clamped to `bounds`; with RowBounds also mapped from their rows' ranges to [-1, 1]."""
    low, high = limits_at(bounds, coordinates)
    values = np.clip(values, low, high)
    if not isinstance(bounds, RowBounds):
        return values
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    return np.clip((values - middle) / half, -1.0, 1.0)


def in_units(bounds: Bounds, scaled: Floats, limits: tuple[Any, Any]) -> Floats:
    """Predictions in the units of the data: of RowBounds mapped from [-1, 1] to `limits`."""
    if not isinstance(bounds, RowBounds):
        return scaled
    low, high = limits
    return np.asarray((low / 2 + high / 2) + (high / 2 - low / 2) * scaled, dtype=np.float64)


def clamped(bounds: Bounds, values: Floats, coordinates: Integers) -> Floats:
    """Values in the units of the data, clamped to the range of their entry."""
    return np.clip(values, *limits_at(bounds, coordinates))


def outermost(bounds: Bounds) -> tuple[float, float]:
    """Lowest and highest end of all ranges."""
    if isinstance(bounds, RowBounds):
        return float(bounds.low.min()), float(bounds.high.max())
    return bounds


def mean_width(bounds: Bounds) -> float:
    """Width of the range, or root mean square of the widths of all rows' ranges."""
    if isinstance(bounds, RowBounds):
        return float(np.sqrt(np.mean((bounds.high - bounds.low) ** 2)))
    low, high = bounds
    return high - low
