"""Public ranges of columns, as callers pass them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.frames import check_feature_names
from sktensor_dp.checks.parameters import Number, Numbers, shown

RANGE = Numbers(Number(-1e100, 1e100), 2, "(low, high), two finite numbers with low < high")


def check_range(name: str, ends: Any) -> None:
    """Raise ValueError, by name, unless `ends` are a range (low, high)."""
    if not (RANGE.accepts(ends) and ends[0] < ends[1]):
        raise ValueError(f"{name} must be {RANGE}; got {shown(ends)}.")


def named_ranges(
    model: Any, names: Any, ranges: Any
) -> tuple[list[str], NDArray[np.float64] | None]:
    """Names of the columns of a fitted mixture, and their ranges (n_features, 2), if given."""
    n_columns = model.means_.shape[1]
    columns = getattr(model, "feature_names_in_", None)
    if ranges is not None:
        ranges = _by_column(ranges, columns, n_columns)
        columns = [*ranges]
    if names is None:
        names = range(n_columns) if columns is None else columns
    check_feature_names(names, columns, n_columns)
    names = [*map(str, names)]
    if ranges is None:
        return names, None
    for name, ends in ranges.items():
        check_range(f"ranges[{name!r}]", ends)
    return names, np.array([*ranges.values()], dtype=np.float64)


def _by_column(ranges: Any, columns: Any, n_columns: int) -> dict[Any, Any]:
    """Ranges by name of the column, in the order of `columns`; by place if these have no names."""
    if isinstance(ranges, Mapping):
        fitted = "" if columns is None else f" {[*columns]}"
        columns = [*ranges] if columns is None else [*columns]
        if len(columns) != n_columns or not {*columns} <= {*ranges}:
            raise ValueError(
                f"ranges must map each of the {n_columns} columns{fitted} to (low, high); got "
                f"those of {[*ranges]}."
            )
        return {name: ranges[name] for name in columns}
    if columns is not None:
        raise ValueError(
            f"ranges must map the columns {[*columns]} to (low, high): by place, a wrong order "
            "shows nowhere."
        )
    by_place = dict(enumerate(ranges if isinstance(ranges, Iterable) else ()))
    if len(by_place) != n_columns:
        raise ValueError(f"ranges must have a (low, high) for each of {n_columns} columns.")
    return by_place
