"""The best of many rows for each of many units, with ties broken by number."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.tensor.oracle import Floats

__all__ = ["TopRows", "top_rows"]


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
