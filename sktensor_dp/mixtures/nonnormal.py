"""Columns of few values, with many equal values or a long tail: any law between two ends.

In a group with mean m a value x, both scaled to [-1, 1], has the Bernoulli log-likelihood
(log((1 - m^2) / 4) / 2 + x artanh(m)) / phi, which is linear in x: that many rows have one value is
no reason for a group of their own (quasi-likelihood; Papke and Wooldridge, 1996). The dispersion
phi is the variance of the column over that of two values with its mean. `Gaussians` have this
likelihood as that of a Gaussian column of one variance in all groups, plus `slopes` and `offsets`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.tensor.truncated_normal import quantiles_within

# Largest mean of a group, to either side of 0: rates of 0.1 %.
LARGEST_MEAN = 0.998
# Least dispersion: a column with a smaller one tells groups apart as if it had this.
LEAST_DISPERSION = 0.005
# Least distance of the ends over the radius of the ball, so that covariances can be inverted.
LEAST_WIDTH = 1e-4


@dataclass(frozen=True, eq=False)
class NonnormalColumns:
    """The m nonnormal columns of d, with their ends and dispersions; numbers of others are 0.

    Methods take means (..., m) of the nonnormal columns.
    """

    low: Floats  # (d,): ends
    high: Floats  # (d,)
    dispersions: Floats  # (d,): above 0 in nonnormal columns

    @cached_property
    def places(self) -> Integers:
        """Indices (m,) of the nonnormal columns."""
        return np.flatnonzero(self.dispersions)

    @property
    def variances(self) -> Floats:
        """Variances (m,) of the Gaussian columns in their place: those of means in the middle.

        With smaller ones than columns have, groups would part by regressions on other columns.
        """
        return np.asarray(self._half**2 * self._phi)

    @cached_property
    def others(self) -> Integers:
        """Indices (d - m,) of all other columns."""
        return np.flatnonzero(self.dispersions == 0)

    def of_moments(self, means: Floats, squares: Floats, sigma: float) -> "NonnormalColumns":
        """Columns with the dispersions of all rows, by noisy means (d,) and mean squares (d,).

        `sigma` is the deviation of noise: two are added, so that no column counts for too much.
        """
        largest = self._half**2 * (1 - self._scaled(means[self.places]) ** 2)
        variances = (squares - means**2)[self.places] + 2 * sigma
        dispersions = np.zeros(len(self.low))
        dispersions[self.places] = np.clip(variances / largest, LEAST_DISPERSION, 1.0)
        return replace(self, dispersions=dispersions)

    def in_ball(self, radius: float) -> "NonnormalColumns":
        """Columns with ends moved into a ball, where rows are, and not too near each other."""
        least = LEAST_WIDTH * radius
        low = np.clip(self.low, -radius, radius - least)
        high = np.clip(self.high, low + least, radius)
        return self._with_ends(low, high)

    def moved(self, middles: Floats, halves: Floats) -> "NonnormalColumns":
        """Columns in units in which [-1, 1] has these `middles` and `halves` (d,)."""
        return self._with_ends(middles + halves * self.low, middles + halves * self.high)

    def _with_ends(self, low: Floats, high: Floats) -> "NonnormalColumns":
        """Columns with the ends `low` and `high` (d,), of which nonnormal ones are used."""
        is_nonnormal = self.dispersions > 0
        low, high = (np.where(is_nonnormal, end, 0.0) for end in (low, high))
        return replace(self, low=low, high=high)

    def ends(self, names: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Ends by name of the column, of all columns' `names`."""
        return {names[i]: (float(self.low[i]), float(self.high[i])) for i in self.places}

    def within(self, means: Floats) -> Floats:
        """Means so far from the ends that their likelihood is finite."""
        return self._middle + self._half * self._scaled(means)

    def expected(self, means: Floats, noise: Floats) -> Floats:
        """Means of the expected log-odds, given `means` (k, m) with normal `noise` (k, 1).

        A mean that noise moves to an end would leave no row of the group with the other value.
        """
        sigma = np.maximum(noise * np.sqrt(self._phi), 1e-9)  # of means scaled to [-1, 1]
        scaled = np.clip((means - self._middle) / self._half, -1 - 4 * sigma, 1 + 4 * sigma)
        values = quantiles_within(scaled, sigma, -1.0, 1.0, 50)
        log_odds = np.arctanh(np.clip(values, -LARGEST_MEAN, LARGEST_MEAN)).mean(axis=0)
        return np.asarray(self._middle + self._half * np.tanh(log_odds))

    def slopes(self, means: Floats) -> Floats:
        """Slopes (..., m) of log-likelihoods in x - m, beyond those of the Gaussian columns."""
        scaled = self._scaled(means)
        return np.asarray((np.arctanh(scaled) - scaled) / (self._phi * self._half))

    def offsets(self, means: Floats) -> Floats:
        """Log-likelihoods (..., m) at x = m, beyond those of the Gaussian columns."""
        scaled = self._scaled(means)
        of_law = np.log((1 - scaled**2) / 4) + 2 * scaled * np.arctanh(scaled)
        of_law = of_law + 1 - scaled**2  # as if x^2 were 1
        return np.asarray((of_law / self._phi + np.log(2 * math.pi * self.variances)) / 2)

    def stretches(self, means: Floats) -> Floats:
        """Deviations (..., m) of the Gaussian columns over those of columns with these means."""
        return np.asarray(1 / np.sqrt(1 - self._scaled(means) ** 2))

    def longest(self, means: Floats) -> Floats:
        """Largest distance (..., m) of a value from these means, in deviations of the Gaussians."""
        return np.asarray((1 + np.abs(self._scaled(means))) / np.sqrt(self._phi))

    def drawn(self, i: int, means: Floats, quantiles: Floats) -> Floats:
        """Values (...) at `quantiles` of laws of two values, of the i-th nonnormal column.

        Laws have these `means` (...), and the dispersion: if it is 1, values are the ends.
        """
        low, high = self.low[self.places[i]], self.high[self.places[i]]
        ends = np.where(quantiles > (high - means) / (high - low), high, low)
        return np.asarray(means + math.sqrt(self._phi[i]) * (ends - means))

    @property
    def _phi(self) -> Floats:
        return self.dispersions[self.places]

    @property
    def _middle(self) -> Floats:
        return (self.low + self.high)[self.places] / 2

    @property
    def _half(self) -> Floats:
        return (self.high - self.low)[self.places] / 2

    def _scaled(self, means: Floats) -> Floats:
        """Means in units in which the ends are -1 and 1."""
        return np.clip((means - self._middle) / self._half, -LARGEST_MEAN, LARGEST_MEAN)
