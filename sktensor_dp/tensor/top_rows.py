"""The best of many rows for each of many units, with ties broken by number."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.oracle import Floats


class TopRows(NamedTuple):
    """Rows from best to worst, and their values.

    Attributes
    ----------
    rows : ndarray of shape (n_units, n) or (n,)
        Numbers of rows, or their names; -1 or None (NaT of a calendar) where there are
        fewer than n.
    values : ndarray of the same shape
        Their values; NaN where there are fewer.
    """

    rows: NDArray[np.generic]
    values: Floats


def top_rows(values: Floats, n: int, excluded: NDArray[np.bool_] | None = None) -> TopRows:
    """Numbers and values of the n largest in each row of a table; of equals the first come first.

    NaN is never among them, nor what is excluded.
    """
    left_out = np.isnan(values) if excluded is None else np.isnan(values) | excluded
    order = np.argsort(np.where(left_out, np.inf, -values), axis=1, kind="stable")[:, :n]
    found = np.take_along_axis(values, order, axis=1)
    none = np.take_along_axis(left_out, order, axis=1)
    return TopRows(np.where(none, -1, order), np.where(none, np.nan, found))


def parts_of_units(n_units: int, n_rows: int, block: int) -> list[slice]:
    """Units of which a table of about so many values is formed at a time; one part at least."""
    step = max(block // n_rows, 1)
    return [slice(start, start + step) for start in range(0, max(n_units, 1), step)]


def top_rows_by_parts(
    n_units: int,
    n_rows: int,
    n: int,
    values: Callable[[slice], Floats],
    excluded: Callable[[slice], NDArray[np.bool_] | None],
    *,
    block: int,
) -> TopRows:
    """`top_rows` of a table that is formed for some units at a time."""
    parts = parts_of_units(n_units, n_rows, block)
    best = [top_rows(values(part), n, excluded(part)) for part in parts]
    rows, found = (np.concatenate(each) for each in zip(*best, strict=True))
    return TopRows(rows, found)
