"""The public range of values: one for all, or one for each row of a mode."""

from collections.abc import Mapping
from typing import Any

from sktensor_dp.completion.named_rows import indices_of
from sktensor_dp.completion.row_tables import RowTables, table_of_rows
from sktensor_dp.estimator.parameters import Number, Numbers, shown
from sktensor_dp.tensor.row_bounds import LARGEST_SIZE, LEAST_WIDTH, Bounds, RowBounds

__all__ = ["BOUNDS", "checked_bounds"]

BOUNDS = (
    Numbers(
        Number(-LARGEST_SIZE, LARGEST_SIZE),
        2,
        f"two finite numbers (low, high) of size {LARGEST_SIZE:g} at most",
    ),
    RowTables(),
)


def checked_bounds(estimator: Any) -> Bounds:
    """The public range of values."""
    name, bounds = type(estimator).__name__, estimator.bounds
    if bounds is None:
        raise ValueError(
            f"The 'bounds' parameter of {name} must be given: the public range (low, high) "
            "that values are clamped to."
        )
    if isinstance(bounds, Mapping):
        return _bounds_of_rows(estimator)
    low, high = map(float, bounds)
    if not high - low >= LEAST_WIDTH:
        raise ValueError(
            f"The 'bounds' parameter of {name} must be (low, high) with low < high, at least "
            f"{LEAST_WIDTH:g} apart. Got {shown(bounds)} instead."
        )
    return low, high


def _bounds_of_rows(estimator: Any) -> RowBounds:
    bounds, indices = estimator.bounds, indices_of(estimator.row_names)
    if len(bounds) != 1:
        raise ValueError(
            "bounds must be of the rows of one mode, such as {1: table}; they are of "
            f"{len(bounds)} modes."
        )
    ((mode, table),) = bounds.items()
    index = indices[mode] if indices is not None and mode < len(indices) else None
    nameless = indices is not None and index is None and mode == estimator.unit_mode
    if nameless and estimator.privacy_unit == "slice":
        raise ValueError(
            f"bounds[{mode}] are of units by their names, of which row_names[{mode}] has none."
        )
    numbers = table_of_rows(table, index, f"bounds[{mode}]")
    if numbers.shape[1] != 2:
        raise ValueError(
            f"bounds[{mode}] must have two columns, low and high; got shape {numbers.shape}."
        )
    found = RowBounds(int(mode), numbers[:, 0], numbers[:, 1])
    if estimator.shape is not None:
        found.check_shape(estimator.shape)
    return found
