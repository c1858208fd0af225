"""Rates read off experiments: slopes in logarithms with standard errors, and half points."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["half_point", "log_slope", "slope_over_trials", "summary"]

Floats = NDArray[np.float64]


def slope_over_trials(x: ArrayLike, Y: ArrayLike) -> tuple[float, float]:
    """Slope of log y in log x: mean of one line per trial, and its standard error.

    Levels of one trial share its noise, so that a trial is what counts as one observation. `Y` has
    shape (trials, levels).
    """
    centred = _centred(x)
    slopes = np.log(np.asarray(Y, dtype=np.float64)) @ (centred / (centred @ centred))
    return float(slopes.mean()), float(slopes.std(ddof=1) / math.sqrt(len(slopes)))


def log_slope(x: ArrayLike, y: ArrayLike, relative_errors: ArrayLike) -> tuple[float, float]:
    """Least squares slope of log y in log x, for independent y of known relative errors."""
    centred = _centred(x)
    weights = centred / (centred @ centred)
    errors = np.asarray(relative_errors, dtype=np.float64)
    return float(weights @ np.log(np.asarray(y, dtype=np.float64))), float(
        np.sqrt(weights**2 @ errors**2)
    )


def half_point(levels: ArrayLike, fractions: ArrayLike, trials: int) -> tuple[float, float]:
    """Level at which half of the trials do what they do more often at higher levels.

    Estimate of Spearman & Kärber: the mean, in logarithms, of the law that has the fractions as its
    distribution function. Also its relative standard error. Infinite where the highest fraction is
    below .9, and not a number where the lowest is above .1.
    """
    rates, logs = (
        np.asarray(fractions, dtype=np.float64),
        np.log(np.asarray(levels, dtype=np.float64)),
    )
    if rates[-1] < 0.9:
        return math.inf, math.nan
    if rates[0] > 0.1:
        return math.nan, math.nan
    step = logs[1] - logs[0]
    point = logs[0] - step / 2 + step * np.sum(1 - rates)
    error = step * math.sqrt(np.sum(rates * (1 - rates)) / max(trials - 1, 1))
    return math.exp(point), float(error)


def summary(values: Sequence[float] | Floats) -> dict[str, Any]:
    """Median and quartiles of positive values over trials."""
    low, middle, high = np.quantile(np.asarray(values), [0.25, 0.5, 0.75])
    return {"median": float(middle), "low": float(low), "high": float(high)}


def _centred(x: ArrayLike) -> Floats:
    logs = np.log(np.asarray(x, dtype=np.float64))
    return logs - logs.mean()
