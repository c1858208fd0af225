"""Range, public or released, that the values of a tensor are clipped to."""

import copy
import math
from typing import ClassVar, Self

import numpy as np

from sktensor_dp.data.units import Chunks
from sktensor_dp.tensor.arrays import Floats, read_only


class ValueRange(Chunks):
    """Values clipped to a range, public or released, with its middle subtracted."""

    public: ClassVar[tuple[str, ...]] = ("shape", "half", "middle")
    values: Floats

    def __init__(self, bounds: tuple[float, float]) -> None:
        low, high = bounds
        # `not (...)` refuses NaN. Halves come first, since the width of the whole range of floats
        # overflows.
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"bounds must be two finite numbers, low < high; got {bounds!r}.")
        self.half = high / 2 - low / 2
        self.middle = low / 2 + high / 2
        if not 0 < 2 * self.half < math.inf:
            raise ValueError(f"bounds must differ by a finite number; got {bounds!r}.")

    def clipped_and_centred(self, values: Floats) -> Floats:
        """Values clipped to the range, minus its middle, so within ``[-half, half]`` exactly."""
        # Values beyond the range are clamped before the subtraction, which could overflow and warn.
        reach = abs(self.middle) + self.half
        centred = np.clip(values, -reach, reach)
        centred -= self.middle
        return np.clip(centred, -self.half, self.half, out=centred)

    def within(self, bounds: tuple[float, float]) -> Self:
        """Copy with values clipped to a narrower range, which was released."""
        narrowed = copy.copy(self)
        ValueRange.__init__(narrowed, bounds)  # sets half and middle, and leaves the entries
        narrowed.values = read_only(narrowed.clipped_and_centred(self.values + self.middle))
        return narrowed
