"""The piecewise mechanism on integers: a value in a range, randomised on its own.

A value on a grid of ``2 M + 1`` points is answered by a point near it with a
probability p, and by any point outside that window otherwise. All probabilities are
integers over ``2^64`` and the number of points, and are compared exactly, so that the
guarantee holds for the program and not only for its mathematics.
"""

import math
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.noise import NoiseSource

Floats = NDArray[np.float64]

# Rounding to the grid moves a value by 2.4e-7 of its range at most.
POINTS = 2**20
# Probabilities are multiples of 1 / WHOLE.
WHOLE = 2**64
# Above it, e^epsilon is more than there are multiples.
LARGEST_EPSILON, LEAST_EPSILON = 44.0, 1e-9
# More than the relative error of exp and expm1 in double precision.
RELATIVE_ERROR = Fraction(1, 2**50)


class Piecewise:
    """The law, for one epsilon.

    Attributes
    ----------
    reach : int
        h: the window of a value c holds the ``2 h + 1`` points ``c - h .. c + h``.
    threshold : int
        The window is chosen with probability ``threshold / 2^64``.
    """

    def __init__(self, epsilon: float, points: int = POINTS) -> None:
        if not epsilon >= LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {LEAST_EPSILON:g}, got {epsilon:g}.")
        epsilon = min(epsilon, LARGEST_EPSILON)
        self.points = points
        # Near the window of least variance, for values spread evenly over their range.
        self.reach = round(points * math.exp(-epsilon / 3))
        # Rounded down twice, here and to a multiple: the ratio never exceeds e^epsilon.
        ratio = 1 + Fraction(math.expm1(epsilon)) * (1 - RELATIVE_ERROR)
        share = self.window * ratio
        self.threshold = int(WHOLE * share / (share + 2 * points))

    @property
    def window(self) -> int:
        """Number of points in a window."""
        return 2 * self.reach + 1

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Probability of each point of the window, and of each point outside."""
        near = Fraction(self.threshold, WHOLE)
        return near / self.window, (1 - near) / (2 * self.points)

    @cached_property
    def gain(self) -> float:
        """Expected answer, over the value's own point."""
        near, far = self.probabilities
        return float(self.window * (near - far))

    def variance(self, value: float) -> float:
        """Variance of the answer to a value in [-1/2, 1/2] on the grid."""
        near, far = (float(p) for p in self.probabilities)
        point = 2 * self.points * value
        square = far * _sum_of_squares(self.points + self.reach)
        square += (near - far) * (self.window * point**2 + _sum_of_squares(self.reach))
        return (square / self.gain**2 - point**2) / (2 * self.points) ** 2

    def release(self, values: Floats, noise: NoiseSource) -> Floats:
        """Randomise values in [-1/2, 1/2]; the answers are unbiased on the grid."""
        size, outer = values.size, self.points + self.reach
        own = np.rint(np.clip(values, -0.5, 0.5) * (2 * self.points)).astype(np.int64)
        near = noise.integers(WHOLE, size) < np.uint64(self.threshold)
        inside = own + noise.integers(self.window, size).astype(np.int64) - self.reach
        outside = noise.integers(2 * self.points, size).astype(np.int64) - outer
        # Points outside are numbered as if the window were not there.
        outside[outside >= own - self.reach] += self.window
        return np.where(near, inside, outside) / (2 * self.points * self.gain)


def _sum_of_squares(n: int) -> float:
    """Sum of the squares of ``-n .. n``."""
    return n * (n + 1) * (2 * n + 1) / 3


def piecewise_values(
    value: Floats, sensitivity: float, epsilon: float, noise: NoiseSource
) -> Floats:
    """Randomise each number on its own by the piecewise mechanism."""
    # Only for statistics of which neighbours differ in one number, with all numbers in
    # `[-sensitivity / 2, sensitivity / 2]`: what is beyond is clipped.
    return Piecewise(epsilon).release(value / sensitivity, noise) * sensitivity


def piecewise_variance(epsilon: float, value: float) -> float:
    """Variance of the noise on a value so far from the middle of a range of width 1."""
    return 0.0 if math.isinf(epsilon) else Piecewise(epsilon).variance(value)


@lru_cache(maxsize=1024)
def piecewise_deviation(epsilon: float) -> float:
    """Standard deviation of the noise on a value in the middle of a range of width 1."""
    return 0.0 if math.isinf(epsilon) else math.sqrt(Piecewise(epsilon).variance(0.0))
