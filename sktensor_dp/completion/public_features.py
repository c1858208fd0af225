"""Public features of the rows of a mode: what users know of them beside the data."""

from collections.abc import Sequence
from typing import Any

from sktensor_dp.completion.named_rows import indices_of
from sktensor_dp.completion.row_tables import check_lengths, table_of_rows
from sktensor_dp.privacy.plan import check_feasible
from sktensor_dp.tensor.arrays import Floats

# One for each mode, None where none were given.
Features = tuple[Floats | None, ...]


def checked_features(estimator: Any) -> dict[int, Floats]:
    """Tables of public features by mode, rows in order, or ValueError."""
    given = estimator.row_features
    if given is None:
        return {}
    indices, found = indices_of(estimator.row_names), {}
    for mode, table in given.items():
        named = indices is not None and mode < len(indices)
        index = indices[mode] if indices is not None and named else None
        found[int(mode)] = table_of_rows(table, index, f"row_features[{mode}]")
    if estimator.unit_mode in found:
        raise ValueError(
            f"row_features must not be of mode {estimator.unit_mode}, which is unit_mode: nothing "
            "of a unit is released that they could tell of."
        )
    if estimator.shape is not None:
        check_lengths(found, estimator.shape, "row_features")
    return found


def features_by_mode(estimator: Any, shape: Sequence[int]) -> Features:
    """The same for each mode of a public shape."""
    found = checked_features(estimator)
    check_lengths(found, shape, "row_features")
    size = max([table.shape[1] for table in found.values()], default=0)
    check_feasible(
        4.0 * size**2 + sum(2.0 * table.size for table in found.values()),
        f"A regression on {size} row_features",
        "Give fewer columns.",
    )
    return tuple(found.get(mode) for mode in range(len(shape)))
