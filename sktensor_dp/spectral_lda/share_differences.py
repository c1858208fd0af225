"""Differences of shares between groups, and changes over time, with their intervals.

Each is a linear contrast of released shares. Noise and chance differ from group to group, so that
variances add up; errors of topics move the shares of all groups alike, and all but cancel.
"""

import re
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from sktensor_dp.tensor.arrays import Floats

# Years, months and days, with the year first.
DATE = re.compile(r"(?:19|20)\d\d(?:[-/.]\d{1,2}){0,2}")
# Differences that the screen lists, the clearest first.
LISTED = 6


class Differences(NamedTuple):
    """Differences of shares (m, k), and their intervals; NaN where noise hides a group."""

    difference: Floats
    low: Floats
    high: Floats

    @property
    def clear(self) -> Floats:
        """Distance of each interval from 0, in the difference's direction; 0 if it holds 0."""
        return np.nan_to_num(np.maximum(np.maximum(self.low, -self.high), 0.0))


def to_all_groups(shares: Any, level: float, *, sampling: bool) -> Differences:
    """Differences of each group's shares to those in the texts of all groups together."""
    weights = np.where(shares.hidden_, 0.0, shares.counts_)
    weights = weights / max(float(weights.sum()), 1e-300)
    rows = np.eye(len(weights)) - weights
    rows[shares.hidden_] = np.nan
    return _contrasts(shares, rows, level, sampling=sampling)


def are_dates(values: list[Any]) -> bool:
    """Return True for dates, months or years in their order."""
    if not all(DATE.fullmatch(str(value)) for value in values):
        return False
    parts = [[*map(int, re.split("[-/.]", str(value)))] for value in values]
    return parts == sorted(parts)


def from_first_to_last(shares: Any, level: float, *, sampling: bool) -> Differences:
    """Changes (1, k) from the first group to the last, along a line through all that can be seen.

    NaN if fewer than two groups can be seen.
    """
    seen = ~shares.hidden_
    places, row = np.flatnonzero(seen).astype(float), np.full(len(seen), np.nan)
    if len(places) > 1:
        centred = places - places.mean()
        row = np.zeros(len(seen))
        row[seen] = centred / float(centred @ centred) * float(np.ptp(places))
    return _contrasts(shares, row[None], level, sampling=sampling)


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


def clear_to_all_groups(shares: Any) -> Differences:
    """Differences to all groups, with intervals that hold all of them nine times in ten."""
    n_cells = int((~shares.hidden_).sum()) * len(shares.visibility_)
    return to_all_groups(shares, 1 - 0.1 / max(n_cells, 1), sampling=True)


def clear_from_first_to_last(shares: Any) -> Differences:
    """Changes from first to last, with intervals that hold all of them nine times in ten."""
    return from_first_to_last(shares, 1 - 0.1 / len(shares.visibility_), sampling=True)


def clear_differences(shares: Any) -> str:
    """Say which topics differ clearly between groups, or over time: nine times in ten all do."""
    if shares.hidden_.all():
        return ""
    in_groups = [f"in {one}" for one in shares.values]
    said = [_listed("from all groups", clear_to_all_groups(shares), in_groups, "difference_clear")]
    if are_dates(shares.values):
        change = clear_from_first_to_last(shares)
        said.append(_listed("over time", change, ["from first to last"], "trend_clear"))
    return " ".join(said)


def _listed(how: str, found: Differences, where: list[str], column: str) -> str:
    """Say which differences are clear, how large they are, and which `column` marks all of them."""
    clear = found.clear
    order = np.argsort(-clear, axis=None, kind="stable")[: int((clear > 0).sum())]
    if not len(order):
        return f"No topic differs clearly {how}."
    said = []
    for row, topic in zip(*np.unravel_index(order[:LISTED], clear.shape), strict=True):
        ends = f"{found.low[row, topic]:+.1%} to {found.high[row, topic]:+.1%}"
        said.append(f"topic {topic + 1} {where[row]} ({ends})")
    if len(order) > LISTED:
        said.append(
            f"and {len(order) - LISTED} more (all are marked in column {column} of table() and "
            "topics_by_group.csv)"
        )
    return f"Differ clearly {how}: {', '.join(said)}."
