"""Tables of entries whose rows have names: read column by column into numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from sktensor_dp.completion.inference import SharedModel
from sktensor_dp.completion.inputs import checked_values, coordinate_array, entry_chunks, no_rows
from sktensor_dp.completion.row_index import RowIndex
from sktensor_dp.estimator.base import columns_of
from sktensor_dp.estimator.inputs import computed, is_lazy
from sktensor_dp.estimator.parameters import shown
from sktensor_dp.queries.observed_entries import EntryChunks, SliceChunks
from sktensor_dp.queries.reading import read, refuse_lazy
from sktensor_dp.tensor.row_bounds import Bounds, RowBounds

Indices = tuple[RowIndex | None, ...]


class RowNames:
    """What `row_names` may be: for each mode an index, a list of names, or None."""

    def accepts(self, value: Any) -> bool:
        """Whether the value is a sequence of these."""
        if not isinstance(value, list | tuple) or len(value) < 2:
            return False
        kinds = RowIndex | list | tuple | range | dict | None
        return all(isinstance(one, kinds) for one in value)

    def __str__(self) -> str:
        return (
            "a tuple with an element for each mode: RowIndex.from_public(names), "
            "RowIndex.from_calendar(start, n_periods), a list of names, or None where rows "
            "have numbers"
        )


def indices_of(row_names: Any) -> Indices | None:
    """The index of each mode; None without names."""
    if row_names is None:
        return None
    return tuple(None if names is None else RowIndex._of(names) for names in row_names)


def check_names(estimator: Any) -> None:
    """Refuse names that no index can be made of, or that are not as many as `shape` says."""
    name, shape = f"The 'row_names' parameter of {type(estimator).__name__}", estimator.shape
    indices, wrong = None, ""
    try:
        indices = indices_of(estimator.row_names)
    except ValueError as error:
        wrong = str(error)
    if wrong:
        raise ValueError(f"{name} must hold public names of rows: {wrong}")
    if indices is None or shape is None:
        return
    if len(indices) != len(shape):
        raise ValueError(
            f"row_names must have an element for each of the {len(shape)} modes of shape; it has "
            f"{len(indices)}."
        )
    for mode, (index, length) in enumerate(zip(indices, shape, strict=True)):
        if index is not None and length != len(index):
            raise ValueError(
                f"shape[{mode}] must be the number of names in row_names[{mode}], {len(index)}; "
                f"got {shown(length)}."
            )


def names_at(coordinates: NDArray[np.intp], indices: Indices | None) -> NDArray[Any]:
    """Coordinates as a fit with these names takes them."""
    if indices is None:
        return coordinates
    named = coordinates.astype(object)
    for mode, index in enumerate(indices):
        if index is not None:
            named[:, mode] = index.decode(coordinates[:, mode])
    return named


def named_chunks(
    checked: Any,
    X: Any,
    y: Any,
    indices: Indices,
    shape: Sequence[int] | None,
    bounds: Bounds,
) -> tuple[EntryChunks | SliceChunks, dict[str, Any]]:
    """As `observed_chunks`, of entries whose names are rows; what they mean is in memory."""
    if checked.unit_mode is not None and is_lazy(X):
        raise TypeError(
            f"X is a Dask {type(X).__name__}, and names are numbered in memory. Pass X.compute() "
            "and y.compute(), or coordinates that are numbers, without row_names."
        )
    if checked.unit_mode is not None:
        X = no_rows(X, len(indices))
    values = checked_values(checked, computed(y, "Reading y"))
    given, values, shape = _known_entries(checked, computed(X, "Reading X"), values, indices, shape)
    return entry_chunks(checked, given, values, shape, bounds), columns_of(checked)


def _known_entries(
    checked: Any, X: Any, values: NDArray[Any], indices: Indices, shape: Sequence[int] | None
) -> tuple[NDArray[Any], NDArray[Any], Sequence[int]]:
    """Coordinates and values of the entries whose names are rows, and the public shape."""
    by_slice, own, units = checked.unit_mode is not None, indices, checked.unit_mode
    if by_slice and units < len(indices) and indices[units] is None:
        own = of_own_units(indices, units, X)
    numbers = named_numbers(checked, X, own, reset=True)
    shape = _public_shape(indices, shape, numbers, by_slice)
    if own is not indices and len(own[units] or ()) > shape[units]:
        raise ValueError(
            f"X has more ids in column {units} than shape[{units}] counts, which is {shape[units]}."
        )
    named = [mode for mode, index in enumerate(own) if index is not None]
    known = (numbers[:, named] >= 0).all(axis=1)
    # Fewer values than rows are refused by whoever checks both.
    if len(values) != len(numbers) or known.all():
        return numbers, values, shape
    return numbers[known], values[known], shape


def _public_shape(
    indices: Indices, shape: Sequence[int] | None, numbers: NDArray[Any], by_slice: bool
) -> Sequence[int]:
    """Lengths of modes, those of named ones from their names."""
    if shape is not None:
        return shape
    if by_slice and None in indices:
        mode = indices.index(None)
        raise ValueError(
            f"The 'shape' parameter must be given with a unit_mode: mode {mode} has no "
            "row_names to count, and which indices occur is private."
        )
    lengths = []
    for column, index in zip(numbers.T, indices, strict=True):
        # What is no coordinate is refused by whoever checks all of them.
        largest = np.max(column, initial=0.0)
        length = int(largest) + 1 if np.isfinite(largest) else 1
        lengths.append(length if index is None else len(index))
    return lengths


def coordinates_of(estimator: Any, X: Any, indices: Indices | None) -> NDArray[Any]:
    """What a fitted estimator reads as coordinates, from numbers or from names."""
    if indices is None:
        return coordinate_array(estimator, X, reset=False)
    model = estimator._model
    # Of units that nothing was released of, ids are not looked at.
    nobody = model.unit_mode if isinstance(model, SharedModel) else None
    return named_numbers(estimator, X, indices, reset=False, nobody=nobody)


def of_own_units(indices: Indices, mode: int, X: Any) -> Indices:
    """Indices in which the units of `X` are numbered by the ids that occur in it."""
    # Of the holder of X alone: ids of persons are numbered, and not kept by any fit.
    index = indices[mode]
    if index is not None and index.is_calendar:
        return indices
    columns = _columns(X)
    if mode >= len(columns) or len(columns[mode]) == 0:
        return indices  # too few columns are refused by whoever reads all
    ids = read(lambda: np.asarray(columns[mode]), "X")
    try:
        own = RowIndex.from_public(sorted(set(ids.tolist())))
    except (TypeError, ValueError):
        own = None
    if own is None:
        raise ValueError(
            f"X must have ids of units in column {mode} that are all text or all whole numbers; "
            f"it has type {ids.dtype}."
        )
    return (*indices[:mode], own, *indices[mode + 1 :])


def bounds_by_id(bounds: RowBounds, known: Indices | None, own: Indices) -> RowBounds:
    """Bounds of the units of `own`, which have the names that `known` numbers otherwise."""
    index, ids = known[bounds.mode] if known else None, own[bounds.mode]
    if index is None or ids is None or index is ids:
        return bounds
    return bounds.take(index.encode(ids.decode(np.arange(len(ids)))))


def named_numbers(
    estimator: Any, X: Any, indices: Indices, *, reset: bool, nobody: int | None = None
) -> NDArray[Any]:
    """Coordinates of shape (n, n_modes), -1 where a name is no row."""
    read(lambda: validate_data(estimator, X, reset=reset, skip_check_array=True), "X")
    return columns_to_numbers(X, indices, nobody)


def columns_to_numbers(X: Any, indices: Indices, nobody: int | None = None) -> NDArray[Any]:
    """The same, by whoever has no names of columns to compare."""
    # Without an index, the column of the mode `nobody` is of rows that nothing is known of.
    columns = _columns(X)
    if len(columns) != len(indices):
        raise ValueError(
            f"X must have a column for each of the {len(indices)} elements of row_names; it has "
            f"{len(columns)}."
        )
    numbers: list[NDArray[Any]] = []
    for mode, (column, index) in enumerate(zip(columns, indices, strict=True)):
        if index is not None:
            numbers.append(index.encode(column))
        elif mode == nobody:
            numbers.append(np.full(len(column), -1, dtype=np.intp))
        else:
            numbers.append(_plain_numbers(column, mode))
    return np.column_stack(numbers)


def _columns(X: Any) -> list[Any]:
    """Columns of a frame, of an array or of a list of rows."""
    refuse_lazy(X, "X")
    if hasattr(X, "iloc"):
        return [X.iloc[:, place] for place in range(X.shape[1])]
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    if isinstance(names, list):
        return [X[name] for name in names]
    rows = read(lambda: np.asarray(X, dtype=None if hasattr(X, "dtype") else object), "X")
    if rows.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got X of {rows.ndim} dimension(s). X must have one row per entry "
            "and one column per mode."
        )
    return list(rows.T)


def _plain_numbers(column: Any, mode: int) -> NDArray[Any]:
    """A column of numbers, as those of tables without names are checked afterwards."""
    wrong = (
        f"X must have integer coordinates in column {mode}, for which row_names has None. Give "
        f"row_names[{mode}]=RowIndex.from_public(names) with a list of names that is public, "
        "never one that is read off the data."
    )
    given = read(lambda: np.asarray(column), "X")
    if given.dtype.kind in "iuf":
        return given
    if given.dtype.kind != "O":
        raise ValueError(wrong)
    return read(lambda: given.astype(np.float64), "X", lambda message: wrong)
