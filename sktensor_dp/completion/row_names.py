"""Names of the rows of modes, and public tables with a line for each row: bounds and features."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sktensor_dp.estimator.parameters import Number, Numbers, check_feasible, shown
from sktensor_dp.queries.error_sanitising import read
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.tensor.row_bounds import LARGEST_SIZE, RowBounds

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
        """Index made from one, or from its form in a model's file: a list, or a mapping."""
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping) and set(value) == CALENDAR:
            return cls.from_calendar(value["start"], value["n_periods"], days=value["days"])
        return cls.from_public(value)

    def _plain_parameter(self) -> Any:
        """Form of the index in a model's file, from which :meth:`_of` makes the same index."""
        if self._names is not None:
            return list(self._names)
        days = {"n_periods": self._n_periods, "days": self._days}
        return {"start": str(self._start), **days}

    @property
    def is_calendar(self) -> bool:
        """True if rows are periods of time."""
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
        """Period of each time, -1 for times outside the calendar and NaT."""
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
    """Raise TypeError for a column whose type shows that none of its values is a name.
    `kind` is the type of the names, str or int.
    """
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
    """Times in UTC to the second, as datetime64; NaT for missing ones."""
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
    """Column with aware times converted to naive ones in UTC.
    numpy would warn of aware times, and so tell that there is one.
    """
    for place, item in enumerate(column.tolist()):
        if isinstance(item, str) and ZONE.search(item):
            item = datetime.datetime.fromisoformat(item)
        if isinstance(item, datetime.datetime) and item.tzinfo is not None:
            column[place] = item.astimezone(datetime.UTC).replace(tzinfo=None)
    return column


Indices = tuple[RowIndex | None, ...]


class RowNames:
    """Constraint on `row_names`: for each mode an index, a list of names, or None."""

    def accepts(self, value: Any) -> bool:
        """Return True for a list or tuple of two or more indices, lists of names or Nones."""
        if not isinstance(value, list | tuple) or len(value) < 2:
            return False
        kinds = RowIndex | list | tuple | range | dict | None
        # Arrays and columns of frames have one axis.
        return all(isinstance(one, kinds) or len(getattr(one, "shape", ())) == 1 for one in value)

    def __str__(self) -> str:
        return (
            "a tuple with an element for each mode: RowIndex.from_public(names), "
            "RowIndex.from_calendar(start, n_periods), a list or column of names, or None where "
            "rows have numbers"
        )


def indices_of(row_names: Any) -> Indices | None:
    """Tuple with the index of each mode (None without names); None if there are no names at all."""
    if row_names is None:
        return None
    return tuple(None if names is None else RowIndex._of(names) for names in row_names)


def check_names(estimator: Any) -> None:
    """Raise ValueError for `row_names` that make no index or contradict `shape`."""
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
    """Coordinates as a fit with `row_names` takes them: names from `indices` for row numbers."""
    if indices is None:
        return coordinates
    named = coordinates.astype(object)
    for mode, index in enumerate(indices):
        if index is not None:
            named[:, mode] = index.decode(coordinates[:, mode])
    return named


MODE = Number(0, 63, integer=True)


class RowTables:
    """Constraint on `row_features` and `bounds`: a mapping from modes to tables."""

    def accepts(self, value: Any) -> bool:
        """Return True for a mapping whose keys are modes; tables are checked later."""
        return isinstance(value, Mapping) and all(map(MODE.accepts, value))

    def __str__(self) -> str:
        return (
            "a mapping such as {1: table}, from the number of a mode to a table of numbers with a "
            "row for each of the mode's rows"
        )


def table_of_rows(table: Any, index: RowIndex | None, name: str) -> Floats:
    """Table of finite numbers, of shape (n_rows, n_columns), with rows in the order of `index`.
    Rows of a frame are found by name, if rows have names. `name` is for errors.
    """
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
    """Frame with its rows in the order of the names of `index`; other tables unchanged."""
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
    """Raise ValueError for tables of modes that do not exist, or of a wrong number of rows."""
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
    """Tables of public features by mode, rows in order; ValueError for wrong ones."""
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
    """Table of public features for each mode of a public shape; None for modes without."""
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
    """RowBounds from the parameter ``bounds`` where it is a mapping; ValueError if it is wrong."""
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
