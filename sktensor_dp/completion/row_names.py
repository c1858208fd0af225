"""Names of the rows of modes, and tables of entries that use them."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from sktensor_dp.completion.inference import SharedModel
from sktensor_dp.completion.inputs import checked_values, coordinate_array, entry_chunks, no_rows
from sktensor_dp.estimator.base import columns_of
from sktensor_dp.estimator.inputs import computed, is_lazy
from sktensor_dp.estimator.parameters import Number, shown
from sktensor_dp.queries.error_sanitising import read, refuse_lazy
from sktensor_dp.queries.observed_entries import EntryChunks, SliceChunks
from sktensor_dp.tensor.arrays import Integers
from sktensor_dp.tensor.row_bounds import Bounds, RowBounds

# Whole numbers that JSON and arrays of 64 bits hold alike.
LARGEST_NUMBER = 2**62
# Seconds from 1970, either way; far beyond any calendar.
LATEST = 10**14
# How a time of day ends that is not of UTC by itself.
ZONE = re.compile(r"[T ]\d\d.*?(Z|[+-]\d\d(:?\d\d)?)$")
POSITIVE = Number(1, LARGEST_NUMBER, integer=True)
CALENDAR = {"start", "n_periods", "days"}


class RowIndex:
    """Public names of the rows of one mode: a list of names, or the periods of a calendar.

    It tells :class:`~sktensor_dp.PrivateCPCompletion` which row a name means. It is made of
    what is public and never of the data of a fit: a list of the items that occur in private
    ratings would tell that somebody rated them. Made by :meth:`from_public` or
    :meth:`from_calendar`.

    Notes
    -----
    **Privacy.** Names are public: they are a parameter, and stand in saved models. A name
    that is not on the list is no row, and what is said of it is what is said of any such
    name; whether it was in the data of the fit changes nothing.

    Examples
    --------
    >>> from sktensor_dp import RowIndex
    >>> drinks = RowIndex.from_public(["tea", "mate", "milk"])
    >>> drinks.encode(["milk", "tea", "beer"]).tolist()
    [2, 0, -1]
    >>> days = RowIndex.from_calendar("2026-01-01", 52, days=7)
    >>> days.encode(["2026-01-08", "2025-12-31"]).tolist()
    [1, -1]
    """

    def __init__(self) -> None:
        raise TypeError(
            "A RowIndex is made by RowIndex.from_public(names) or "
            "RowIndex.from_calendar(start, n_periods)."
        )

    _names: tuple[str, ...] | tuple[int, ...] | None
    _start: np.datetime64
    _n_periods: int
    _days: int

    @classmethod
    def from_public(cls, names: Iterable[Any]) -> Self:
        """Rows by name, of a list that is public.

        Parameters
        ----------
        names : iterable of str or of int
            For example a column of a catalogue. The rows are numbered in this order; a name
            that comes again is left out.

        Returns
        -------
        RowIndex
            Of as many rows as there are different names.

        Raises
        ------
        ValueError
            If there are no names, or they are neither all text nor all whole numbers.

        Examples
        --------
        >>> len(RowIndex.from_public(["tea", "mate", "tea"]))
        2
        """
        if isinstance(names, str | bytes | Mapping):
            raise ValueError(f"names must be a list of names, got {type(names).__name__}.")
        # Of numpy's and pandas' own types plain ones are made.
        plain = names.tolist() if hasattr(names, "tolist") else list(names)
        kinds = set(map(type, plain))
        if any(issubclass(kind, np.generic) for kind in kinds):
            plain = [item.item() if isinstance(item, np.generic) else item for item in plain]
            kinds = set(map(type, plain))
        if kinds not in ({str}, {int}):
            told = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none at all"
            raise ValueError(f"names must be all text or all whole numbers; got {told}.")
        if kinds == {int} and max(map(abs, plain)) > LARGEST_NUMBER:
            raise ValueError(f"names that are numbers must be of size {LARGEST_NUMBER} at most.")
        index = cls.__new__(cls)
        index._names = tuple(dict.fromkeys(plain))
        return index

    @classmethod
    def from_calendar(cls, start: Any, n_periods: int, *, days: int = 1) -> Self:
        """Rows by time: equally long periods from a public day on.

        Parameters
        ----------
        start : str, date or datetime64
            First day, for example ``"2026-01-01"``; UTC, as all times.
        n_periods : int
            Number of periods.
        days : int, default=1
            Length of a period: 7 makes weeks.

        Returns
        -------
        RowIndex
            Of `n_periods` rows. Times before and after are no rows.

        Raises
        ------
        ValueError
            If `start` is no day, or a number is no int >= 1.

        Notes
        -----
        First and last day are public. Take them from what everyone knows, such as the day
        on which a service opened, and not from the first and last rating.

        Examples
        --------
        >>> RowIndex.from_calendar("2026-01-01", 365).encode(["2026-02-01T12:00"]).tolist()
        [31]
        """
        for name, value in (("n_periods", n_periods), ("days", days)):
            if not POSITIVE.accepts(value):
                raise ValueError(f"{name} must be an int >= 1, got {shown(value)}.")
        dated = isinstance(start, str | datetime.date | np.datetime64)
        day = np.datetime64("NaT")
        if dated:
            try:
                day = np.datetime64(start, "D")
            except (ValueError, TypeError):
                dated = False
        if not dated or np.isnat(day):
            raise ValueError(f"start must be a day such as '2026-01-01', got {shown(start)}.")
        index = cls.__new__(cls)
        index._names = None
        index._start, index._n_periods, index._days = day, int(n_periods), int(days)
        return index

    @classmethod
    def _of(cls, value: Any) -> Self:
        """An index itself, or what it is in a model's file: a list, or a mapping."""
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping) and set(value) == CALENDAR:
            return cls.from_calendar(value["start"], value["n_periods"], days=value["days"])
        return cls.from_public(value)

    def _plain_parameter(self) -> Any:
        """Numbers and strings that :meth:`_of` makes the same index of."""
        if self._names is not None:
            return list(self._names)
        days = {"n_periods": self._n_periods, "days": self._days}
        return {"start": str(self._start), **days}

    @property
    def is_calendar(self) -> bool:
        """Whether rows are periods of time."""
        return self._names is None

    def encode(self, values: Any) -> Integers:
        """Numbers of rows.

        Parameters
        ----------
        values : array-like of shape (n,)
            Names; of a calendar dates, times, their ISO text, or seconds since 1970.

        Returns
        -------
        ndarray of intp of shape (n,)
            -1 for what is no row.

        Raises
        ------
        TypeError
            If values are numbers where names are text, or are text where names are numbers.
        """
        if self._names is None:
            return self._periods(read(lambda: _times(values), "X"))
        column = read(lambda: np.asarray(values), "X")
        _check_kind(getattr(values, "dtype", column.dtype), type(self._names[0]))
        rows = {name: row for row, name in enumerate(self._names)}

        def found() -> Integers:
            items = column.tolist()
            return np.fromiter(map(rows.get, items, repeat(-1)), np.intp, len(items))

        return read(found, "X")

    def _periods(self, times: NDArray[np.datetime64]) -> Integers:
        none = np.isnat(times)
        since = (np.where(none, self._start, times) - self._start).astype(np.int64)
        rows = since // (86_400 * self._days)
        return np.where(none | (rows < 0) | (rows >= self._n_periods), -1, rows).astype(np.intp)

    def decode(self, rows: Any) -> NDArray[Any]:
        """Names of rows.

        Parameters
        ----------
        rows : array-like of int
            Numbers of rows, of any shape.

        Returns
        -------
        ndarray of object, or of datetime64
            Of the same shape; None, or NaT, for numbers below 0 or beyond the rows.
        """
        numbers = np.asarray(rows, dtype=np.intp)
        inside = (numbers >= 0) & (numbers < len(self))
        if self._names is None:
            first = self._start + np.where(inside, numbers, 0) * self._days
            return np.where(inside, first, np.datetime64("NaT"))
        names = np.empty(len(self) + 1, dtype=object)
        names[:-1] = self._names
        return np.asarray(names[np.where(inside, numbers, len(self))])

    def __len__(self) -> int:
        return self._n_periods if self._names is None else len(self._names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowIndex):
            return NotImplemented
        return bool(self._plain_parameter() == other._plain_parameter())

    def __hash__(self) -> int:
        return hash(repr(self._plain_parameter()))

    def __repr__(self) -> str:
        if self._names is not None:
            return f"RowIndex({len(self)} names)"
        return f"RowIndex({len(self)} periods of {self._days} days from {self._start})"


def _check_kind(dtype: Any, kind: type) -> None:
    """Refuse a column none of whose values can be a name, by its type."""
    # Frames have types of their own, with or without a letter for their kind.
    letter = getattr(dtype, "kind", "")
    number, time = letter in tuple("iufb"), letter in tuple("mM")
    text = letter in tuple("UST") or getattr(dtype, "type", None) is str
    if time or (number if kind is str else text):
        wanted = "text" if kind is str else "whole numbers"
        have = "times" if time else ("numbers" if number else "text")
        raise TypeError(
            f"X has a column of {have} where row_names are {wanted}. Convert one of the two: as "
            "they are no row has its name."
        )


def _times(values: Any) -> NDArray[np.datetime64]:
    """Times in UTC to the second; NaT where there is none."""
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:
        values = values.dt.tz_convert(None)
    column = np.asarray(values)
    if column.dtype.kind in "OUT":
        column = _in_utc(column.astype(object))
    if column.dtype.kind not in "iuf":
        return column.astype("datetime64[s]")
    finite = np.isfinite(column)
    seconds = np.where(finite, np.clip(column, -LATEST, LATEST), 0).astype(np.int64)
    return np.where(finite, seconds.astype("datetime64[s]"), np.datetime64("NaT"))


def _in_utc(column: NDArray[Any]) -> NDArray[Any]:
    """Times that have a zone without it: of them numpy would warn, and tell that there is one."""
    for place, item in enumerate(column.tolist()):
        if isinstance(item, str) and ZONE.search(item):
            item = datetime.datetime.fromisoformat(item)
        if isinstance(item, datetime.datetime) and item.tzinfo is not None:
            column[place] = item.astimezone(datetime.UTC).replace(tzinfo=None)
    return column


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
