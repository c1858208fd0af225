"""Reading of coordinates, by number or by name, and of values; errors quote neither."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import validate_data

from sktensor_dp.checks.errors import call_unquoted, error_or
from sktensor_dp.checks.frames import (
    as_numbers,
    column_names,
    is_dask,
    refuse_lazy,
    refuse_other_row_order,
)
from sktensor_dp.checks.parameters import shown
from sktensor_dp.completion.model import SharedModel
from sktensor_dp.completion.row_names import Indices, RowIndex
from sktensor_dp.data.entries import EntryChunks, are_repeated, as_entries
from sktensor_dp.data.labels import Labels, as_labels, distinct
from sktensor_dp.data.partitions import DaskPartitions
from sktensor_dp.data.person_entries import MORE_IDS, LazyPersons, PersonChunks, PersonReader
from sktensor_dp.estimator.base import column_attributes
from sktensor_dp.estimator.inputs import refuse_other_kinds
from sktensor_dp.estimator.lazy import checked_columns, computed, partitions_beside, row_partitions
from sktensor_dp.queries.query import SIZE_EDGES
from sktensor_dp.tensor.arrays import Floats

# Squares of values in this range, and their ratios, neither overflow nor underflow.
LEAST_WIDTH, LARGEST_SIZE = 1e-50, 1e50
WITHOUT_NAMES = (
    "X must have integer coordinates in column {mode}, for which row_names has None. Give "
    "row_names[{mode}]=RowIndex.from_public(names) with a list of names that is public, never one "
    "that is read off the data."
)
REPEATED = (
    "X must have different coordinates in every row: some are repeated, as in a bootstrap sample, "
    "where a value that is drawn k times would be protected k times less. If they belong to "
    "different values, pass repeated='distinct' to fit, or tell them apart by a mode of its own, "
    "such as a day."
)
FOR_NAMES = (
    "for names give row_names=, a tuple with a public list of the names of each mode, or None for "
    "numbers and for ids of the unit_mode; count days or weeks from a public first one"
)
MUST_BE_NUMBERS = f"X must have integer coordinates; {FOR_NAMES}."


class Parameters(Protocol):
    """Parameters of a completion by which its data is read."""

    bounds: tuple[float, float] | str | None
    shape: Sequence[int] | None
    epsilon: float
    unit_mode: int | None


def checked_bounds(estimator: Parameters) -> tuple[float, float]:
    """Parameter ``bounds`` as floats (low, high); for ``"auto"`` the ends of the histogram."""
    name, bounds = type(estimator).__name__, estimator.bounds
    if bounds is None:
        raise ValueError(
            f"The 'bounds' parameter of {name} must be given: the public range (low, high) "
            "that values are clamped to. Where nobody knows it, 'auto' chooses it by a noisy "
            "histogram, at two percent of the budget."
        )
    if bounds == "auto":
        return -float(SIZE_EDGES[-1]), float(SIZE_EDGES[-1])
    low, high = map(float, bounds)
    if not high - low >= LEAST_WIDTH:
        raise ValueError(
            f"The 'bounds' parameter of {name} must be (low, high) with low < high, at least "
            f"{LEAST_WIDTH:g} apart. Got {shown(bounds)} instead."
        )
    return low, high


def read_entries(
    checked: Parameters,
    X: Any,
    y: Any,
    indices: Indices | None,
    shape: Sequence[int] | None,
    bounds: tuple[float, float],
    repeated: str | None,
) -> EntryChunks | PersonChunks | LazyPersons:
    """Entries of a fit as its session reads them; names of columns are stored on `checked`.

    Coordinates are numbers, or names by `indices`: entries with a name that is no row are left
    out, and units without an index are numbered in order of their ids. `shape` is public; None
    takes it from names, or without a unit mode from coordinates.
    """
    unit_mode = checked.unit_mode
    if unit_mode is not None:
        if shape is None:
            if indices is None or None in indices:
                raise ValueError(
                    "The 'shape' parameter must be given with a unit_mode, unless all modes have "
                    "row_names: which indices occur is private. Pass the public numbers of rows, "
                    "such as (n_persons, n_items)."
                )
            shape = [len(index) for index in indices if index is not None]
        if is_dask(X):
            check_y_given(checked, y)
            return lazy_persons(checked, X, y, indices, shape, unit_mode, bounds)
    # Dask collections come here only where a value is the unit, or as `y` beside an `X` in memory.
    X, y = computed(X, "Reading X"), computed(y, "Reading y")
    each_protected = unit_mode is None and repeated is None and checked.epsilon < math.inf
    coordinates, values, sizes = checked_entries(
        checked, X, y, indices, shape, each_protected=each_protected
    )
    # Numpy's warnings and errors in these sums would tell of single values.
    with np.errstate(all="ignore"):
        if unit_mode is not None:
            return PersonChunks(coordinates, values, sizes, unit_mode, bounds)
        return EntryChunks(coordinates, values, sizes, bounds)


def checked_entries(
    checked: Parameters,
    X: Any,
    y: Any,
    indices: Indices | None,
    shape: Sequence[int] | None,
    *,
    each_protected: bool,
) -> tuple[NDArray[np.intp], Floats, tuple[int, ...]]:
    """Coordinates (n, n_modes), values (n,) and shape of entries in memory, checked.

    Arguments are as for `read_entries`; `each_protected` refuses repeated coordinates.
    """
    refuse_other_row_order(X, y, "y")
    if indices is None:
        given, values = checked_coordinates(checked, X, reset=True), checked_values(checked, y)
    else:
        values = checked_values(checked, y)
        given, values, shape = _known_entries(checked, X, values, indices, shape)
    coordinates, values, sizes = as_entries(given, values, shape)
    if each_protected and are_repeated(coordinates, sizes):
        raise ValueError(REPEATED)
    return coordinates, values, sizes


def refuse_entries(
    estimator: Parameters, X: Any, y: Any, indices: Indices | None, shape: Sequence[int] | None
) -> None:
    """Raise an error for entries that no private fit takes; ids of units may exceed the shape.

    A search calls it before it splits units, and sets the shape to the number of chosen ones.
    """
    unit_mode = estimator.unit_mode
    coordinates, values, sizes = checked_entries(
        estimator, X, y, indices, shape=None, each_protected=unit_mode is None
    )
    if shape is not None:
        is_unit_mode = np.arange(len(sizes)) == unit_mode
        as_entries(np.where(is_unit_mode, 0, coordinates), values, shape)


def read_coordinates(estimator: Any, X: Any, indices: Indices | None) -> NDArray[Any]:
    """Coordinates (n, n_modes) for a fitted estimator, from numbers, or names: -1 if unknown."""
    if indices is None:
        return checked_coordinates(estimator, X, reset=False)
    # A fit of units keeps nothing of them, so their ids are not read.
    model = estimator._model
    unread = model.unit_mode if isinstance(model, SharedModel) else None
    return coordinates_of_names(estimator, X, indices, reset=False, unread=unread)


def checked_coordinates(estimator: Parameters, X: Any, *, reset: bool) -> NDArray[Any]:
    """Coordinates as an array of shape (n, n_modes) from an array, a frame or a list.

    `reset` is True in a fit: names of columns are stored, and coordinates below 0 are refused.
    """
    if sp.issparse(X):
        raise TypeError(
            f"Sparse data was passed for X: a {type(X).__name__}. Use '.toarray()' to convert a "
            "table of coordinates. Of a sparse matrix of values M pass X = np.column_stack([C.row, "
            "C.col]) and y = C.data, where C = M.tocoo()."
        )
    refuse_other_kinds(X, "X", FOR_NAMES)
    if estimator.unit_mode is not None and estimator.shape is not None:
        X = empty_list_as_table(X, len(estimator.shape))
    given = call_unquoted(lambda: np.asarray(X), "X")
    if given.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got X of {given.ndim} dimension(s). Reshape your data: X must "
            "have one row per entry and one column per mode; a tensor with NaN where nothing is "
            "known goes to fit_tensor(T)."
        )
    if given.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must have integer coordinates.")
    options = {"ensure_min_samples": 0, "ensure_min_features": 2 if reset else 1}
    # If the fit saw no names of columns, columns count by position: pass the array.
    table = X if reset or "feature_names_in_" in column_attributes(estimator) else given
    checked = call_unquoted(
        lambda: validate_data(
            estimator, table, reset=reset, dtype=None, ensure_all_finite=False, **options
        ),
        "X",
        _without_lengths(estimator, "X must have a column for each of two modes or more."),
    )
    numbers = plain_numbers(checked, "X", MUST_BE_NUMBERS)
    if reset and numbers.dtype.kind in "if" and (numbers < 0).any():
        raise ValueError(
            "Negative values in data: X must have coordinates >= 0 to fit. Leave out entries whose "
            "category is unknown; predict takes them."
        )
    return numbers


def empty_list_as_table(X: object, n_modes: int) -> Any:
    """Table of no rows and `n_modes` columns for an empty list; other values unchanged."""
    # An error for an empty list would tell that no unit has entries, which is private.
    empty = isinstance(X, list | tuple) and len(X) == 0
    return np.zeros((0, n_modes), dtype=object) if empty else X


def _known_entries(
    checked: Parameters, X: Any, values: NDArray[Any], indices: Indices, shape: Sequence[int] | None
) -> tuple[NDArray[Any], NDArray[Any], Sequence[int]]:
    """Coordinates and values of entries whose names are all in `indices`, and the shape.

    None for `shape` takes the lengths from `indices`, and from coordinates of modes without names.
    """
    unit_mode, with_ids = checked.unit_mode, indices
    if unit_mode is not None:
        X = empty_list_as_table(X, len(indices))
        if unit_mode < len(indices) and indices[unit_mode] is None:
            with_ids = with_index_of_units(indices, unit_mode, X)
    numbers = coordinates_of_names(checked, X, with_ids, reset=True)
    if shape is None:
        shape = _shape_of_entries(indices, numbers)
    # Count ids here: a later check would see those of entries that are kept, as coordinates.
    if unit_mode is not None and with_ids is not indices:
        n_ids, most = len(with_ids[unit_mode] or ()), shape[unit_mode]
        if n_ids > most:
            raise ValueError(MORE_IDS.format(mode=unit_mode, most=most))
    named = [mode for mode, index in enumerate(with_ids) if index is not None]
    known = (numbers[:, named] >= 0).all(axis=1)
    # The caller refuses another number of values than of rows.
    if len(values) != len(numbers) or known.all():
        return numbers, values, shape
    return numbers[known], values[known], shape


def _shape_of_entries(indices: Indices, numbers: NDArray[Any]) -> Sequence[int]:
    """Lengths of the modes: of lists of names, or else one more than the largest coordinate."""
    lengths = []
    for column, index in zip(numbers.T, indices, strict=True):
        # What is no coordinate, such as infinity, is refused when all columns are checked.
        largest = np.max(column, initial=0.0)
        length = int(largest) + 1 if np.isfinite(largest) else 1
        lengths.append(length if index is None else len(index))
    return lengths


def coordinates_of_names(
    estimator: Parameters, X: object, indices: Indices, *, reset: bool, unread: int | None = None
) -> NDArray[Any]:
    """Coordinates of shape (n, n_modes) from names, -1 for a name that is no row.

    `reset` stores names of columns on the estimator, else they are compared. `unread` is as for
    `encoded_columns`.
    """
    if reset or "feature_names_in_" in column_attributes(estimator):
        call_unquoted(lambda: validate_data(estimator, X, reset=reset, skip_check_array=True), "X")
    return encoded_columns(X, indices, unread)


def encoded_columns(X: object, indices: Indices, unread: int | None = None) -> NDArray[Any]:
    """Coordinates of shape (n, n_modes) from names, -1 for a name that is no row.

    The column of mode `unread` is not read, but -1 everywhere, if the mode has no index.
    """
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
        elif mode == unread:
            numbers.append(np.full(len(column), -1, dtype=np.intp))
        else:
            given = call_unquoted(partial(np.asarray, column), "X")
            numbers.append(plain_numbers(given, "X", WITHOUT_NAMES.format(mode=mode)))
    return np.column_stack(numbers)


def _columns(X: Any) -> list[Any]:
    """List of the columns of a frame, an array or a list of rows."""
    refuse_lazy(X, "X")
    if hasattr(X, "iloc"):
        column_names(X)  # for its error
        return [X.iloc[:, place] for place in range(X.shape[1])]
    # Frames of other libraries.
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    if isinstance(names, list):
        return [X[name] for name in names]
    rows = call_unquoted(lambda: np.asarray(X, dtype=None if hasattr(X, "dtype") else object), "X")
    if rows.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got X of {rows.ndim} dimension(s). X must have one row per entry "
            "and one column per mode."
        )
    return list(rows.T)


def with_index_of_units(indices: Indices, mode: int, X: object) -> Indices:
    """Copy of `indices` with an index of the ids of units in `X`, in mode `mode`.

    If `X` has no entries or no such column, `indices` themselves.
    """
    # Ids in `X` are private, unlike names of other indices: no fit keeps this index.
    columns = _columns(X)
    if mode >= len(columns) or len(columns[mode]) == 0:
        return indices  # `encoded_columns` refuses too few columns later
    labels = as_labels(columns[mode], len(columns[mode]), f"column {mode} of X")
    ids = RowIndex._numbered(distinct(labels)[0])
    return (*indices[:mode], ids, *indices[mode + 1 :])


def as_coordinates(given: NDArray[Any]) -> NDArray[np.intp]:
    """Coordinates (n, n_modes) as integers; negative ones, of unknown rows, become -1."""
    unknown, filled = np.zeros(given.shape, dtype=bool), given
    if given.dtype.kind in "iuf":  # `as_entries` refuses other kinds
        unknown = given < 0
        filled = np.where(unknown, 0, given)
    return np.where(unknown, -1, as_entries(filled, np.zeros(given.shape[:1]))[0])


def refuse_beyond(
    rows: NDArray[np.intp], shape: Sequence[int] | None, name: str, but: int | None = None
) -> None:
    """Raise ValueError for rows (n, n_modes) beyond `shape`, in any mode but `but`.

    None allows all rows; `name` is that of the argument.
    """
    for mode, length in enumerate(shape or ()):
        if mode != but and (rows[:, mode] >= length).any():
            raise ValueError(
                f"{name} has rows beyond shape={shape} in mode {mode}: they count from 0, and -1 "
                "is an unknown row."
            )


def check_y_given(estimator: Parameters, y: object) -> None:
    """Raise ValueError if `y` is None."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. X has "
            "the coordinates of the values, a row for each, and y the values. A wide table with "
            "NaN where nothing is known goes to fit_tensor(T); of a sparse matrix M pass "
            "X = np.column_stack([C.row, C.col]) and y = C.data, where C = M.tocoo()."
        )


def checked_values(estimator: Any, y: object) -> NDArray[Any]:
    """Values as a numeric array of shape (n,); errors quote no value."""
    check_y_given(estimator, y)
    message = _without_lengths(
        estimator, "y must have one number for each row of X, in an array of one axis."
    )
    if sp.issparse(y):
        raise TypeError(f"y must be dense, one number for each row of X; got a {type(y).__name__}.")
    refuse_other_kinds(y, "y", "encode it first")
    column = call_unquoted(lambda: _column(y), "y", message)
    return plain_numbers(column, "y", "y must hold numbers, one for each row of X.")


def _column(y: object) -> NDArray[Any]:
    """Array of shape (n,) from values in a list, an array or a single column."""
    given = np.asarray(y)
    # Checked here, as scikit-learn's message would quote values.
    if given.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers.")
    return np.asarray(column_or_1d(given, warn=True))


def plain_numbers(array: NDArray[Any], name: str, message: str) -> NDArray[Any]:
    """Numeric array from one of numbers or objects; ValueError with `message` for text or time."""
    if array.dtype.kind in "USmM":
        raise ValueError(message)
    if array.dtype.kind != "O":
        return array
    # Numpy's message would quote the entry.
    of_other_kinds = ("could not convert", "datetime")
    return call_unquoted(
        lambda: array.astype(np.float64), name,
        lambda said: message if any(part in said for part in of_other_kinds) else None,
    )  # fmt: skip


def _without_lengths(estimator: Parameters, message: str) -> Callable[[str], str | None]:
    """Function that maps an error's text to `message` if the text tells a private length.

    It returns None for other texts, which are kept.
    """
    private = estimator.unit_mode is not None
    return lambda said: message if private and "shape" in said else None


def unit_labels(X: object, mode: int, indices: Indices | None) -> NDArray[Any]:
    """Number of the unit of each entry, or its id where `indices` name rows; (n,)."""
    if indices is None:
        numbers = plain_numbers(call_unquoted(lambda: np.asarray(X), "X"), "X", MUST_BE_NUMBERS)
        return as_coordinates(numbers)[:, mode]
    if mode < len(indices) and indices[mode] is not None:
        raise ValueError(
            f"row_names[{mode}], that of the units, must be None in a search and in a private "
            "score: units that are held out have any ids."
        )
    column = _columns(X)[mode]
    return as_labels(column, len(column), f"column {mode} of X")


def with_numbered_units(X: Any, mode: int) -> Any:
    """Copy of `X` whose units, in column `mode`, are numbered from 0 in increasing order."""
    _, numbers = np.unique(unit_labels(X, mode, indices=None), return_inverse=True)
    if hasattr(X, "isetitem"):
        X = X.copy()
        X.isetitem(mode, numbers)
        return X
    table = np.array(X)
    table[:, mode] = numbers
    return table


@dataclass(frozen=True)
class NamedPersonReader(PersonReader):
    """Reader of entries by names, which Dask's workers get; a unit mode without index has ids."""

    indices: Indices = ()  # of each mode

    @property
    def has_ids(self) -> bool:
        """True where units have ids instead of numbers."""
        return self.indices[self.unit_mode] is None

    def _read(self, X: object, y: object) -> tuple[Any, Any, Labels | None]:
        """Coordinates and values of a partition's known rows; ids of their units, or None."""
        id_mode = self.unit_mode if self.has_ids else None
        numbers = encoded_columns(X, self.indices, unread=id_mode)
        labels = None
        if id_mode is not None:
            numbers[:, id_mode] = 0  # until `_chunk` numbers the ids
            labels = as_labels(_columns(X)[id_mode], len(numbers), f"column {id_mode} of X")
        known = (numbers >= 0).all(axis=1)
        values = np.asarray(as_numbers(y, "a partition"))[known]
        return numbers[known], values, None if labels is None else labels[known]

    def _chunk(self, table: NDArray[np.float64], labels: Labels) -> PersonChunks:
        """Chunk of all entries of some units, whose ids are numbered here."""
        if self.has_ids:
            names, places = distinct(labels)
            self.check_number(len(names))
            table = table.copy()
            table[:, self.unit_mode] = places
        return super()._chunk(table, labels)


def lazy_persons(
    estimator: Parameters,
    X: Any,
    y: Any,
    indices: Indices | None,
    shape: Sequence[int],
    unit_mode: int,
    bounds: tuple[float, float],
) -> LazyPersons:
    """Units of a Dask table of entries, checked by its metadata; nothing is computed yet."""
    import dask

    X = checked_columns(estimator, X, reset=True, text=FOR_NAMES if indices is None else None)
    reader = PersonReader.checked(shape, int(X.shape[1]), unit_mode, bounds)
    if indices is not None:
        reader = NamedPersonReader(reader.shape, unit_mode, bounds, indices=indices)
    if is_dask(y):
        refuse_other_kinds(y._meta, "y", "encode it first")
    parts = row_partitions(X)
    values = partitions_beside(y, X, len(parts), "y", "value")
    delayed = dask.delayed(error_or)
    pieces = [
        delayed("Reading entries", reader.split, *X_and_y, len(parts))
        for X_and_y in zip(parts, values, strict=True)
    ]
    return LazyPersons(DaskPartitions.rearranged(pieces, reader.gather), reader)
