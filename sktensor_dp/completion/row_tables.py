"""Public tables with a line for each row of a mode, as people pass them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from sktensor_dp.completion.row_index import RowIndex
from sktensor_dp.estimator.parameters import Number
from sktensor_dp.queries.reading import read
from sktensor_dp.tensor.arrays import Floats

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
