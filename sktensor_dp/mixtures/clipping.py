"""Clipping of whitened rows: limits, expectations for a normal law, and scales."""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from scipy.special import gammaln
from scipy.stats import chi2


class Scales(NamedTuple):
    """Squared scales of the parts of a row's statistic, each in units of its largest value."""

    weight: float  # of the responsibility
    shift: float  # of the whitened row
    size: float  # of its squared length
    shape: float  # of the traceless part of its square


@dataclass(frozen=True)
class Clipping:
    """Clip of whitened rows y at a length, with its effect on standard normal rows."""

    width: int  # number of coordinates
    limit: float
    mean: float  # of |y|^2 / width, clipped
    # Derivatives, at the model itself, of the clipped mean with respect to shift, size and
    # traceless shape. EM steps are divided by them, so that the model is a fixed point on its own
    # data.
    shift: float
    size: float
    shape: float

    @property
    def centre(self) -> float:
        """Expected squared length, in units of the squared limit."""
        return self.mean * self.width / self.limit**2

    def scales(self, *, shapes: bool) -> Scales:
        """Scales of parts, each in proportion to the log-likelihood lost by noise on this part."""
        d, square = self.width, self.limit**2
        weight, shift = math.sqrt(0.5), math.sqrt(0.5 * d * square)
        shape = math.sqrt((d + 2) * (d - 1) / 8) * square if shapes else 0.0
        whole = weight + shift + shape
        size = 0.5 * (shift + shape)  # the most that does not count in the sensitivity
        return Scales(weight / whole, shift / whole, size / whole, shape / whole)


@cache
def clipping_at(width: int, quantile: float) -> Clipping:
    """Clip at a `quantile` of the length of standard normal rows with `width` coordinates."""
    d, square = width, float(chi2.ppf(quantile, width))

    def below(degrees: int) -> float:
        return float(chi2.cdf(square, degrees))

    mean = (d * below(d + 2) + square * (1 - below(d))) / d
    # E |y| over the rows longer than the limit.
    longer = math.exp(0.5 * math.log(2) + gammaln((d + 1) / 2) - gammaln(d / 2))
    longer *= 1 - below(d + 1)
    shift = (d * below(d + 2) + math.sqrt(square) * longer) / d
    shape = d * (d + 2) * below(d + 4) + d * square * (1 - below(d + 2))
    return Clipping(d, math.sqrt(square), mean, shift, below(d + 2), shape / (d * (d + 2)))
