"""Errors of means by straight lines that fill missing cells of columns with ends."""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from sktensor_dp.tensor.arrays import Floats

# Quantiles of a standard normal law, and the correlations, each as likely, of what fills a cell
# with what decides whether it is missing.
NORMAL = ndtri((np.arange(400) + 0.5) / 400)
CORRELATIONS = (np.arange(40)[:, None] + 0.5) / 20 - 1
# A column is filled by columns that lack at most this fraction of the cells that it lacks: if rows
# drop out, half of the rows without it have the others.
FEWER = 0.5
# Part of an error that depends on the form of a dropout with the same sum of filled values.
BY_FORM = 1 / 3
# Least and largest variance, relative to that of two values at both ends; least part of a variance
# that lines fill; and the largest correlation.
PARTS, LEAST_FILLED, MOST = (1e-4, 0.998), 1e-4, 0.999


class Ends(NamedTuple):
    """Ends (d,) of columns."""

    low: Floats
    high: Floats


class Bend(NamedTuple):
    """Errors (d,) of means of filled columns: expected ones, and their deviations."""

    expected: Floats
    deviations: Floats


def bend_of_lines(
    means: Floats, covariance: Floats, ends: Ends, missing: Floats, filled: Floats, noise: Floats
) -> Bend:
    """Errors of means by lines, where averages of one column given others bend at its `ends`.

    Rows are taken to be normal ones clipped to the ends, of these `means` and `covariance`. Shares
    `missing` (d,) of cells may depend on what fills them: how much follows from `filled` (d,),
    means over rows of what lines add to the mean in missing cells, with deviations `noise` (d,).
    """
    expected, deviations = np.zeros((2, len(means)))
    for column in map(int, np.flatnonzero(missing)):
        line = _line_of(means, covariance, ends, missing, column)
        if line is not None:
            errors, fills = line.errors(missing[column])
            log_odds = -np.square((filled[column] - fills) / noise[column]) / 2
            odds = np.exp(log_odds - log_odds.max())
            odds /= odds.sum()
            expected[column] = odds @ errors
            squares = np.square(errors - expected[column]) + np.square(BY_FORM * errors)
            deviations[column] = math.sqrt(odds @ squares)
    return Bend(expected, deviations)


class _Line(NamedTuple):
    """Values that fill cells of a column, less its mean, and averages there; at quantiles."""

    fills: Floats  # (n,)
    averages: Floats  # (n,)

    def errors(self, missing: float) -> tuple[Floats, Floats]:
        """Errors (m,) of the mean, and means over rows of `fills` in missing cells.

        They are for each of the `CORRELATIONS`.
        """
        is_missing = (ndtri(missing) + CORRELATIONS * NORMAL) / np.sqrt(1 - CORRELATIONS**2)
        is_missing = _pooled(ndtr(is_missing), self.fills)
        # Lines are those of rows that have the cell.
        weights = (1 - is_missing) / (1 - is_missing).sum(axis=1, keepdims=True)
        means = weights @ np.column_stack([self.fills, self.averages])
        fills, averages = self.fills - means[:, :1], self.averages - means[:, 1:]
        slopes = (weights * fills * averages).sum(axis=1) / (weights * fills**2).sum(axis=1)
        errors = (is_missing * (slopes[:, None] * fills - averages)).mean(axis=1)
        return errors, (is_missing * self.fills).mean(axis=1)


def _line_of(
    means: Floats, covariance: Floats, ends: Ends, missing: Floats, column: int
) -> _Line | None:
    """Line that fills a column; None if it fills little, or the mean is beyond an end."""
    others, variance = missing <= FEWER * missing[column], covariance[column, column]
    along = covariance[others, column]
    slopes = np.linalg.solve(covariance[np.ix_(others, others)], along)
    filled = float(slopes @ along)
    is_within = ends.low[column] < means[column] < ends.high[column]
    if filled < LEAST_FILLED * variance or not is_within:
        return None
    margins = (ends.high - ends.low) / 1000
    within = np.clip(means, ends.low + margins, ends.high - margins)
    low, high = (slopes * (end - within)[others] for end in ends)
    sums = np.minimum(low, high).sum(), np.maximum(low, high).sum()
    fills = _ClippedNormal.of(0.0, filled, *sums).values
    law = _ClippedNormal.of(within[column], variance, ends.low[column], ends.high[column])
    target = math.sqrt(min(filled / variance, 1.0)) * float(fills.std() * law.values.std())

    def excess(correlation: float) -> float:
        return float(np.mean(fills * law.averages(correlation))) - target

    correlation = brentq(excess, 0.0, MOST) if excess(MOST) > 0 else MOST
    return _Line(fills, _pooled(law.averages(correlation), fills))


def _pooled(values: Floats, fills: Floats) -> Floats:
    """Values (..., n), averaged where fills are at an end."""
    values = values.copy()
    for end in (fills.min(), fills.max()):
        at_end = fills == end
        values[..., at_end] = values[..., at_end].mean(axis=-1, keepdims=True)
    return values


class _ClippedNormal(NamedTuple):
    """Normal law whose values are clipped to two ends."""

    mean: float
    deviation: float
    low: float
    high: float

    @classmethod
    def of(cls, mean: float, variance: float, low: float, high: float) -> "_ClippedNormal":
        """Law with this mean and variance of clipped values."""
        largest = (high - mean) * (mean - low)  # Bhatia and Davis, 2000
        variance = min(max(variance, PARTS[0] * largest), PARTS[1] * largest)

        def with_mean(deviation: float) -> _ClippedNormal:
            def excess(at: float) -> float:
                return float(cls(at, deviation, low, high).values.mean()) - mean

            far = 4 * deviation
            return cls(brentq(excess, low - far, high + far), deviation, low, high)

        def excess(log_deviation: float) -> float:
            return float(with_mean(math.exp(log_deviation)).values.var()) - variance

        least = math.log(variance) / 2
        if excess(least + 6) < 0:  # a rare value at an end, between the last quantiles
            return with_mean(math.exp(least + 6))
        return with_mean(math.exp(brentq(excess, least - 0.1, least + 6)))

    @property
    def values(self) -> Floats:
        """Clipped values at quantiles."""
        return np.clip(self.mean + self.deviation * NORMAL, self.low, self.high)

    def averages(self, correlation: float) -> Floats:
        """Average values given quantiles of a normal variable of this `correlation`."""
        means = self.mean + self.deviation * correlation * NORMAL
        rest = self.deviation * math.sqrt(1 - correlation**2)
        low, high = (self.low - means) / rest, (self.high - means) / rest
        densities = (np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)) / math.sqrt(2 * math.pi)
        inside = means * (ndtr(high) - ndtr(low)) + rest * densities
        return np.asarray(inside + self.low * ndtr(low) + self.high * ndtr(-high))
