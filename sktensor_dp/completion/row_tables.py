"""Public tables with a line for each row of a mode: bounds of values, and features."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.completion.row_names import RowIndex, indices_of
from sktensor_dp.estimator.parameters import Number, Numbers
from sktensor_dp.privacy.plan import check_feasible
from sktensor_dp.queries.error_sanitising import read
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.row_bounds import LARGEST_SIZE, RowBounds

MODE = Number(0, 63, integer=True)


class RowTables:
    """What `row_features` and `bounds` may be: a mapping from modes to tables."""

    def accepts(self, value: Any) -> bool:
        """Whether the keys are modes; what the tables hold is looked at later."""
        return isinstance(value, Mapping) and all(map(MODE.accepts, value))

    def __str__(self) -> str:
        return (
            "a mapping such as {1: table}, from the number of a mode to a table of numbers with a "
            "row for each of the mode's rows"
        )


def table_of_rows(table: Any, index: RowIndex | None, name: str) -> Floats:
    """A table of finite numbers, rows in order; those of a frame by name, if rows have names."""
    if sp.issparse(table):
        raise ValueError(f"{name} must be dense, got a {type(table).__name__}; use .toarray().")
    table, wrong = _in_order(table, index, name), ""
    values = read(lambda: np.asarray(table), name)
    if values.dtype.kind not in "iufbO":
        wrong = f"of type {values.dtype}"
    elif values.ndim != 2 or 0 in values.shape:
        wrong = f"of shape {values.shape}"
    numbers = np.zeros((0, 0))
    if not wrong:
        said = f"{name} must hold numbers; encode categories first, as a column for each."
        numbers = read(lambda: values.astype(np.float64), name, lambda message: said)
        wrong = "" if np.isfinite(numbers).all() else "with NaN or infinity in it"
    if wrong:
        raise ValueError(
            f"{name} must be a table of finite numbers, of shape (n_rows, n_columns); got one "
            f"{wrong}."
        )
    return numbers


def _in_order(table: Any, index: RowIndex | None, name: str) -> Any:
    if index is None or not hasattr(table, "iloc"):
        return table
    labels, wrong = table.index, ""
    if not labels.is_unique:
        wrong = "holds a name twice"
    else:
        places = labels.get_indexer(index.decode(np.arange(len(index))))
        if (places < 0).any():
            wrong = f"lacks {int(np.sum(places < 0))} of the {len(index)} names"
    if wrong:
        raise ValueError(
            f"{name} must have a row for each of row_names, by its index, which {wrong}."
        )
    return table.iloc[places]


def check_lengths(tables: Mapping[int, Floats], shape: Sequence[int], name: str) -> None:
    """Refuse tables of modes that there are not, or of another number of rows."""
    for mode, table in tables.items():
        if mode >= len(shape):
            raise ValueError(
                f"{name} must be of modes 0 to {len(shape) - 1}, those of the tensor; got {mode}."
            )
        if len(table) != shape[mode]:
            raise ValueError(
                f"{name}[{mode}] must have a row for each of the {shape[mode]} rows of mode "
                f"{mode}; it has {len(table)}. Give shape=, where rows without entries count too."
            )


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
