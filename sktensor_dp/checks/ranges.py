"""Public ranges of columns, as callers pass them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    d = model.means_.shape[1]
    own = getattr(model, "feature_names_in_", None)
    if isinstance(ranges, Mapping):
        known = [*ranges] if own is None else [*own]
        if len(known) != d or not {*known} <= {*ranges}:
            lacking = "" if own is None else f" {known}"
            raise ValueError(
                f"ranges must map each of the {d} columns{lacking} to (low, high); got those of "
                f"{[*ranges]}."
            )
        own, ranges = known, {name: ranges[name] for name in known}
    named: Any = names if names is not None else range(d) if own is None else own
    if len(named) != d:
        raise ValueError(f"feature_names must have an entry for each of {d}, got {len(named)}.")
    if ranges is None:
        return [*map(str, named)], None
    if not isinstance(ranges, Mapping):
        ranges = dict(enumerate(ranges if isinstance(ranges, Iterable) else ()))
    if len(ranges) != d:
        raise ValueError(f"ranges must have a (low, high) for each of {d} columns.")
    for name, ends in ranges.items():
        check_range(f"ranges[{name!r}]", ends)
    return [*map(str, named)], np.array([*ranges.values()], dtype=np.float64)
