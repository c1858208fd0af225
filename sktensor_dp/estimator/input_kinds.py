"""Data of a wrong kind: refused by its type, before anything converts it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from sktensor_dp.statistics.reading import read
from sktensor_dp.statistics.regrouping import split_chunk

__all__ = ["Numeric", "converted", "dense_tensor", "named", "refuse_other_kinds"]

Result = TypeVar("Result")

TEXT = "count the words of texts first, for example with PrivateCountVectorizer"
# What is no single number for each entry, as numpy says it of lists and of objects.
NOT_NUMBERS = ("float() argument must be", "int() argument must be", "must be real number")


def refuse_other_kinds(X: Any, name: str, text: str = TEXT) -> None:
    """Refuse dates, durations, text and arrays that are not computed yet, by their type.

    Parameters
    ----------
    X : object
        Data as the caller passed it; none of it is looked at.
    name : str
        What messages call it.
    text : str
        What to do with text.

    Raises
    ------
    TypeError
        If it is an array that is not computed yet.
    ValueError
        If a column, or the array, is of another kind than numbers.

    Examples
    --------
    >>> refuse_other_kinds(np.array(["2026-11-21"], dtype="datetime64[D]"), "X")
    Traceback (most recent call last):
    ...
    ValueError: X must hold numbers, got type datetime64[D]; dates and times are none: ...
    """
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}, which is not computed yet. Pass "
            f"{name}.compute(); where that does not fit into memory, fit_chunks takes a source "
            "of chunks."
        )
    for dtype in _dtypes(X):
        if _is_temporal(dtype):
            raise ValueError(
                f"{name} must hold numbers, got type {dtype}; dates and times are none: number "
                "the periods from 0 (for example days since the first), or leave them out."
            )
        if getattr(dtype, "kind", "") in "US" or getattr(dtype, "type", None) is str:
            # The type itself would tell how long the longest text is.
            raise ValueError(f"{name} must hold numbers, got text; {text}.")


def named(call: Callable[[], Result], name: str) -> Result:
    """Result of a conversion; its errors say what the parameter may hold, and the type it holds."""
    try:
        return call()
    except (TypeError, ValueError) as error:
        instead = _said_of(error, name)
        if instead is None:
            raise
    # Not in the handler: numpy's own error may quote an entry.
    raise instead


def _said_of(error: Exception, name: str) -> Exception | None:
    if isinstance(error, np.exceptions.DTypePromotionError):
        return ValueError(
            f"{name} must hold numbers; its columns have types that do not go together, such "
            "as dates or text beside numbers."
        )
    # Types without a common one, and objects that are no number.
    if isinstance(error, TypeError) and str(error).startswith(NOT_NUMBERS):
        return TypeError(f"{name} must hold numbers: {error}.")
    if isinstance(error, ValueError) and str(error).startswith("setting an array element"):
        return ValueError(f"{name} must be a table of numbers with rows of equal length.")
    return None


def converted(call: Callable[[], Result], name: str) -> Result:
    """Result of a conversion of what was passed as `name`; errors say what that may hold."""
    return read(lambda: named(call, name), name)


def dense_tensor(T: Any, method: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Floats of a tensor passed as an array or as lists.

    Parameters
    ----------
    T : object
        As the caller passed it.
    method : str
        What takes observed entries instead, for the message on sparse arrays.

    Raises
    ------
    TypeError
        If it is sparse or not computed yet.
    ValueError
        If it does not hold numbers in a regular shape.
    """
    if sp.issparse(T):
        raise TypeError(
            f"T must be dense, got a {type(T).__name__}. Where absent entries are zeros pass "
            f"T.toarray(){method}."
        )
    refuse_other_kinds(T, "T", "encode it first")
    given = converted(lambda: np.asarray(T), "T")
    refuse_other_kinds(given, "T", "encode it first")
    if given.dtype.kind == "c":
        raise ValueError("Complex data not supported: T must hold real numbers.")

    def numbers() -> np.ndarray[Any, np.dtype[np.float64]]:
        return named(lambda: np.asarray(given, dtype=np.float64), "T")

    # numpy's own message quotes the entry.
    none = "T must hold numbers; it holds values that are none."
    return read(numbers, "T", lambda said: none if said.startswith("could not convert") else None)


class Numeric:
    """A source of chunks of which each is refused by its kind when it is read.

    Parameters
    ----------
    source : iterable
        Chunks.
    """

    def __init__(self, source: Iterable[Any]) -> None:
        self._source = source

    def __iter__(self) -> Iterator[Any]:
        for part in self._source:
            X, _ = split_chunk(part)
            given = X if hasattr(X, "shape") else _array_of(X)
            refuse_other_kinds(given, "a chunk")
            if len(given.shape) != 2:
                # Its shape would tell how many rows it has, which may be private.
                raise ValueError(f"a chunk must be two-dimensional, got {len(given.shape)} axes.")
            yield part


def _array_of(part: Any) -> np.ndarray[Any, Any]:
    return converted(lambda: np.asarray(part), "a chunk")


def _dtypes(X: Any) -> Iterable[Any]:
    """Types of the columns of a frame, or of an array or a list; no copy of these is made."""
    dtypes = getattr(X, "dtypes", None)  # of a frame: a series, or with polars a list
    if dtypes is not None:
        return list(dtypes) if np.ndim(dtypes) else [dtypes]
    return [X.dtype] if hasattr(X, "dtype") else []


def _is_temporal(dtype: Any) -> bool:
    told = getattr(dtype, "is_temporal", None)  # polars
    return bool(told()) if callable(told) else getattr(dtype, "kind", "") in "mM"
