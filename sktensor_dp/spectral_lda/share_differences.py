"""Differences of shares between groups, and changes over time, with their intervals.

Each is a linear contrast of released shares. Noise and chance differ from group to group, so that
variances add up; errors of topics move shares of like groups alike, and a difference in proportion
to it.
"""

import re
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.tensor.arrays import Floats

# Years, months and days, with the year first.
DATE = re.compile(r"(?:19|20)\d\d(?:[-/.]\d{1,2}){0,2}")
# Largest number of groups of which each two are compared; of more each is, with all others.
PAIRED = 6
OTHERS = "all other groups"


class Differences(NamedTuple):
    """Differences of shares (m, k), and their intervals; NaN where noise hides a group."""

    difference: Floats
    low: Floats
    high: Floats


def to_others(shares: Any, level: float, *, sampling: bool) -> Differences:
    """Differences of each group's shares to those in the texts of all other groups together."""
    return _contrasts(shares, _rows_to_others(shares), level, sampling=sampling)


def to_one(shares: Any, place: int, level: float, *, sampling: bool) -> Differences:
    """Differences of each group's shares to those of the group `values[place]`."""
    one = np.eye(len(shares.hidden_))
    return _contrasts(shares, _of_seen(shares, one - one[place]), level, sampling=sampling)


def _rows_to_others(shares: Any) -> Floats:
    """Weights (groups, groups) of groups in differences to all others; NaN for hidden groups."""
    texts = np.tile(np.where(shares.hidden_, 0.0, shares.counts_), (len(shares.hidden_), 1))
    np.fill_diagonal(texts, 0.0)
    of_others = texts.sum(axis=1, keepdims=True)
    rows = np.eye(len(texts)) - texts / np.where(of_others > 0, of_others, np.nan)
    rows[shares.hidden_] = np.nan
    return rows


def _of_seen(shares: Any, rows: Floats) -> Floats:
    """Weights of groups, NaN in rows where a hidden one has some."""
    return np.where(((rows != 0) & shares.hidden_).any(axis=1, keepdims=True), np.nan, rows)


def are_dates(values: list[Any]) -> bool:
    """Return True for dates, months or years in their order."""
    if not all(DATE.fullmatch(str(value)) for value in values):
        return False
    parts = [[*map(int, re.split("[-/.]", str(value)))] for value in values]
    return parts == sorted(parts)


def are_in_order(values: list[Any]) -> bool:
    """Return True for dates in their order, or values that begin with numbers that rise."""
    numbers = [re.match(r"-?\d+(\.\d+)?", str(value)) for value in values]
    rising = [float(number[0]) for number in numbers if number]
    return are_dates(values) or (rising == sorted({*rising}) and len(rising) == len(values))


def from_first_to_last(shares: Any, level: float, *, sampling: bool) -> Differences:
    """Changes (1, k) from the first group that can be seen to the last, along a line through all.

    NaN if fewer than two groups can be seen.
    """
    return _contrasts(shares, _row_along_line(shares), level, sampling=sampling)


def _row_along_line(shares: Any) -> Floats:
    """Weights (1, groups) of groups in the change along a line; NaN if it has fewer than two."""
    seen = ~shares.hidden_
    places = np.flatnonzero(seen).astype(float)
    if len(places) < 2:
        return np.full((1, len(seen)), np.nan)
    centred, row = places - places.mean(), np.zeros((1, len(seen)))
    row[0, seen] = centred / float(centred @ centred) * float(np.ptp(places))
    return row


class Comparison(NamedTuple):
    """Two groups, or one and all others, or first and last, and the differences of their shares."""

    kind: str  # "pair", "others" or "trend"
    group: Any
    other: Any
    difference: Floats  # (k,)
    low: Floats
    high: Floats
    clear: NDArray[np.bool_]
    n_together: int  # differences in its family: marks allow for all of these

    @property
    def name(self) -> str:
        """Name of a row of a table."""
        if self.kind == "trend":
            return f"trend, {self.other} to {self.group}"
        return f"{self.group} minus {self.other}"


def comparisons(shares: Any, level: float) -> list[Comparison]:
    """Differences of each two groups if they are few, else to all others; and of dates the trend.

    Trends are a family of marks of their own: those who ask for them ask for few.
    """
    values, n = shares.values, len(shares.values)
    if n <= PAIRED:
        pairs = [*combinations(range(n), 2)]
        names = [("pair", values[last], values[first]) for first, last in pairs]
        one = np.eye(n)
        rows = _of_seen(shares, np.array([one[b] - one[a] for a, b in pairs]).reshape(-1, n))
    else:
        names, rows = [("others", value, OTHERS) for value in values], _rows_to_others(shares)
    found = _family(shares, names, rows, level)
    if n > 2 and are_dates(values):  # of two dates the trend is their difference
        seen = [value for value, hidden in zip(values, shares.hidden_, strict=True) if not hidden]
        ends = seen if len(seen) > 1 else values
        trend = [("trend", ends[-1], ends[0])]
        found += _family(shares, trend, _row_along_line(shares), level)
    return found


def _family(
    shares: Any, names: list[tuple[str, Any, Any]], rows: Floats, level: float
) -> list[Comparison]:
    """Comparisons of groups weighted by `rows`; nine times in ten all that are clear differ."""
    n_together = int(np.isfinite(rows).all(axis=1).sum()) * len(shares.visibility_)
    found = _contrasts(shares, rows, level, sampling=True)
    together = _contrasts(shares, rows, 1 - 0.1 / max(n_together, 1), sampling=True)
    clear = (together.low > 0) | (together.high < 0)
    numbers = zip(names, *found, clear, [n_together] * len(names), strict=True)
    return [Comparison(*name, *of_row) for name, *of_row in numbers]


def _contrasts(shares: Any, rows: Floats, level: float, *, sampling: bool) -> Differences:
    """Sums of the shares of groups, weighted by `rows` (m, groups), with intervals of a level."""
    seen = ~shares.hidden_[:, None]
    found = np.where(seen, shares.shares_, 0.0)
    squares = shares.noise_std_**2 + sampling * shares.sampling_std_**2
    difference = rows @ found
    # Errors of topics are the same mixtures in all groups.
    std = np.sqrt(rows**2 @ np.where(seen, squares, 0.0) + shares.mixing_variance(difference))
    reach = float(ndtri((1 + level) / 2)) * std
    reach += np.abs(difference @ shares.without_hidden_ - difference)
    return Differences(
        difference, np.maximum(difference - reach, -1.0), np.minimum(difference + reach, 1.0)
    )
