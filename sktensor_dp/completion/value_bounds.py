"""The public range of values: one for all, or one for each row of a mode."""

from typing import Any

from sktensor_dp.completion.named_rows import indices_of
from sktensor_dp.completion.row_tables import RowTables, table_of_rows
from sktensor_dp.estimator.parameters import Number, Numbers
from sktensor_dp.tensor.row_bounds import LARGEST_SIZE, RowBounds

BOUNDS = (
    Numbers(
        Number(-LARGEST_SIZE, LARGEST_SIZE),
        2,
        f"two finite numbers (low, high) of size {LARGEST_SIZE:g} at most",
    ),
    RowTables(),
)


def bounds_of_rows(estimator: Any) -> RowBounds:
    """Public ranges that differ by the row of a mode."""
    bounds, indices = estimator.bounds, indices_of(estimator.row_names)
    if len(bounds) != 1:
        raise ValueError(
            "bounds must be of the rows of one mode, such as {1: table}; they are of "
            f"{len(bounds)} modes."
        )
    ((mode, table),) = bounds.items()
    index = indices[mode] if indices is not None and mode < len(indices) else None
    if indices is not None and index is None and mode == estimator.unit_mode:
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
