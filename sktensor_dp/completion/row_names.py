"""Public names of the rows of modes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.parameters import Number, shown
from sktensor_dp.tensor.arrays import Integers


class RowIndex:
    """Public names of the rows of one mode, made by ``from_public``.

    By it :class:`~sktensor_dp.PrivateCPCompletion` finds the row of a name. Never make it from the
    data of a fit: a list of the items that occur in private ratings tells that somebody rated them.

    Notes
    -----
    **Privacy.** Names are public: they are a parameter, and are in saved models. Names that are not
    on the list are all treated alike.

    Examples
    --------
    >>> from sktensor_dp import RowIndex
    >>> drinks = RowIndex.from_public(["tea", "mate", "milk"])
    >>> drinks.encode(["milk", "tea", "beer"]).tolist()
    [2, 0, -1]
    """

    _names: tuple[str, ...] | tuple[int, ...]

    def __init__(self, *_: object) -> None:
        raise TypeError("A RowIndex is made by RowIndex.from_public(names).")

    @classmethod
    def from_public(cls, names: Iterable[Any]) -> Self:
        """Number rows in the order of a public list of names.

        Parameters
        ----------
        names : iterable of str or of int
            For example a column of a catalogue. Repeated names count once.

        Returns
        -------
        RowIndex
            With a row for each different name, in order of first occurrence.

        Raises
        ------
        ValueError
            If there are no names, or they are neither all text nor all whole numbers.

        Examples
        --------
        >>> len(RowIndex.from_public(["tea", "mate", "tea"]))
        2
        """
        return cls._numbered(names)

    @classmethod
    def _numbered(cls, names: Iterable[Any]) -> Self:
        """Number rows in the order of names, public ones, or private ids that no fit keeps."""
        if isinstance(names, str | bytes | Mapping):
            raise ValueError(f"names must be a list of names, got {type(names).__name__}.")
        # Convert numpy's and pandas' types of names to Python's.
        plain = names.tolist() if hasattr(names, "tolist") else list(names)
        plain = [item.item() if isinstance(item, np.generic) else item for item in plain]
        kinds = set(map(type, plain))
        if kinds not in ({str}, {int}):
            types = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none at all"
            raise ValueError(f"names must be all text or all whole numbers; got {types}.")
        index = cls.__new__(cls)
        index._names = tuple(dict.fromkeys(plain))
        return index

    def encode(self, values: Any) -> Integers:
        """Return the numbers of rows.

        Parameters
        ----------
        values : array-like of shape (n,)
            Names.

        Returns
        -------
        ndarray of intp of shape (n,)
            -1 for names that are no rows.

        Raises
        ------
        TypeError
            If values are numbers where names are text, or text where they are numbers; or if some
            are of another type, such as dates.
        ValueError
            If values are numbers of double precision from 2**53 on, which cannot hold every
            integer.
        """
        # From this number on floats skip integers: a float may be the rounded value of another id.
        first_inexact = 2.0**53
        given_type = None if hasattr(values, "dtype") else object
        column = call_unquoted(lambda: np.asarray(values, given_type), "X")
        items = column.tolist()
        dtype = _kind_of_items(items) if given_type is object else values.dtype
        _check_kind(dtype, type(self._names[0]))
        _refuse_other_types(items)
        if any(isinstance(item, float) and abs(item) >= first_inexact for item in items):
            raise ValueError(
                "X has a column of numbers in double precision, which does not hold every whole "
                "number from 2**53 on. Pass ids as integers."
            )
        rows = {name: row for row, name in enumerate(self._names)}
        rows_of_items = call_unquoted(lambda: [rows.get(item, -1) for item in items], "X")
        return np.array(rows_of_items, dtype=np.intp)

    def decode(self, rows: object) -> NDArray[np.generic]:
        """Return the names of rows.

        Parameters
        ----------
        rows : array-like of int
            Numbers of rows, of any shape.

        Returns
        -------
        ndarray of object
            Of the same shape; None for numbers below 0 or beyond the rows.
        """
        numbers = np.asarray(rows, dtype=np.intp)
        inside = (numbers >= 0) & (numbers < len(self))
        names = np.array([*self._names, None], dtype=object)
        return np.asarray(names[np.where(inside, numbers, len(self))])

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowIndex) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"RowIndex({counted(len(self), 'name')})"


def _kind_of_items(items: list[Any]) -> Any:
    """Dtype of the items of a list: text or float if all of them are, else object."""
    kinds = set(map(type, items))
    if kinds and all(issubclass(kind, str) for kind in kinds):
        return np.dtype(str)
    numeric = kinds and all(issubclass(kind, int | float | np.number) for kind in kinds)
    return np.dtype(float if numeric else object)


def _check_kind(dtype: object, kind: type) -> None:
    """Raise TypeError for a column whose type shows that none of its values is a name.

    `kind` is the type of the names, str or int.
    """
    # Data frames have types of their own, which may lack a letter for their kind.
    letter = getattr(dtype, "kind", "-")
    number, time = letter in "iufb", letter in "mM"
    text = letter in "UST" or getattr(dtype, "type", None) is str
    if time or (number if kind is str else text):
        wanted = "text" if kind is str else "whole numbers"
        have = "times" if time else ("numbers" if number else "text")
        raise TypeError(
            f"X has a column of {have} where row_names are {wanted}, so that none of its values "
            "can be a name. Convert one of the two."
        )


def _refuse_other_types(items: list[Any]) -> None:
    """Raise TypeError for an item that is neither text, number nor missing value."""
    missing = {"NoneType", "NAType", "NaTType"}
    for kind in set(map(type, items)):
        if not issubclass(kind, str | float | int | np.generic) and kind.__name__ not in missing:
            raise TypeError(
                f"X has a column with a {kind.__name__}, which cannot be the name of a row: "
                "row_names are text or whole numbers. Convert it, for example by astype(str)."
            )


Indices = tuple[RowIndex | None, ...]  # of each mode; None for a mode without names


def are_names(value: object) -> bool:
    """Return True for a list of two or more elements: a RowIndex, names or None for each mode."""
    if not isinstance(value, list | tuple) or len(value) < 2:
        return False
    types = RowIndex | list | tuple | range | None
    # Names may also be an array of one axis, or a column of a table.
    return all(isinstance(names, types) or len(getattr(names, "shape", ())) == 1 for names in value)


def indices_of(row_names: Any) -> Indices | None:
    """Indices of parameter `row_names`; None if that is None."""
    if row_names is None:
        return None
    return tuple(
        names if names is None or isinstance(names, RowIndex) else RowIndex.from_public(names)
        for names in row_names
    )


def check_names(estimator: Any, shape: Sequence[int] | None) -> None:
    """Raise ValueError for `row_names` that make no index or contradict a `shape`, if there is one.

    It is the parameter of a fit, or that of a forecast.
    """
    name = f"The 'row_names' parameter of {type(estimator).__name__}"
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
                f"shape[{mode}] must be the number of different names in row_names[{mode}], "
                f"{len(index)}; got {shown(length)}."
            )


def names_at(coordinates: NDArray[np.intp], indices: Indices | None) -> NDArray[np.generic]:
    """Coordinates with the names of rows by `indices`, as a fit with `row_names` reads them."""
    if indices is None:
        return coordinates
    named = coordinates.astype(object)
    for mode, index in enumerate(indices):
        if index is not None:
            named[:, mode] = index.decode(coordinates[:, mode])
    return named


def checked_mode(mode: Any, n_modes: int) -> int:
    """Mode as an int; ValueError unless it is one of `n_modes`."""
    if not Number(0, n_modes - 1, integer=True).accepts(mode):
        raise ValueError(f"mode must be an int in [0, {n_modes - 1}], got {shown(mode)}.")
    return int(mode)


def row_number(row: Any, what: str, mode: int, indices: Indices | None) -> int:
    """Number of a row that is given by number or name; -1 for a name that is no row.

    `what` names the argument in errors.
    """
    if indices is not None and (index := indices[mode]) is not None:
        return int(index.encode([row])[0])
    if not Number(-1, integer=True).accepts(row):
        raise ValueError(f"{what} must be the number of a row, got {shown(row)}.")
    return int(row)


def names_of(rows: NDArray[np.generic], indices: Indices | None, mode: int) -> NDArray[np.generic]:
    """Names of rows of a mode, or their numbers where they have none."""
    index = None if indices is None else indices[mode]
    return rows if index is None else index.decode(rows)
