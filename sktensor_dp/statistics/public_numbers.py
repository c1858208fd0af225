"""Ranges of the public numbers that queries multiply with, divide by and clip to.

A bound that is proved for real numbers says nothing of what is infinite, NaN, or so small
that few digits are left of it. Queries therefore refuse such numbers when they are made,
before they see data: what they then compute of data within its own bounds is finite.
"""

import math
from typing import Any

import numpy as np

Range = tuple[float, float]

# Norms that contributions are clipped to. Norms below are so small beside them that it does
# not matter how few digits they have.
LIMIT: Range = (1e-120, 1e140)
# Of a ball of samples, whose third moments have its sixth power as a square; and the largest
# change of a tensor's entry.
RADIUS: Range = (1e-45, 1e45)
# Of the width of a range of values; values are within a hundred times the larger.
HALF: Range = (1e-60, 1e60)
# Sizes of the bounds of a score, and of their distance: squares of widths of values.
SCORE: Range = (1e-125, 1e125)


def check_number(name: str, value: Any, allowed: Range, *, infinite: bool = False) -> None:
    """Refuse a number outside a range; NaN is outside any."""
    low, high = allowed
    if low <= value <= high or (infinite and value == math.inf):
        return
    raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}.")


def check_array(name: str, array: Any, largest: float, *, least: float | None = None) -> None:
    """Refuse an array with numbers that are not finite, or too large."""
    array, low = np.asarray(array), -largest if least is None else least
    # NaN fails both comparisons.
    if array.size and not (array.min() >= low and array.max() <= largest):
        raise ValueError(
            f"{name} must hold numbers from {low:g} to {largest:g}; an array of shape "
            f"{array.shape} holds others."
        )
