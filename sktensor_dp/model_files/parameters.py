"""Constructor parameters in a file: plain values, in JSON that tells a tuple from a list."""

import math
import numbers
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.model_files.fields import NOT_FINITE, Arrays, require

DEEPEST = 4
# Numbers of an array that may stand in the document; more, or a table, are an array of the file.
MOST_LISTED = 1000
KINDS = {"tuple": tuple, "set": set, "frozenset": frozenset}
NUMBERS = frozenset(
    np.dtype(kind).name for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
)


def write_parameter(value: Any, arrays: Arrays | None = None, where: str = "parameter") -> Any:
    """JSON of a plain value, of a collection or array of these, or of a type of numbers.

    Tables and long arrays are put aside among `arrays`, where there is a place for them.
    """
    if value is None or isinstance(value, bool | np.bool_ | str):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    within = partial(write_parameter, arrays=arrays, where=where)
    if isinstance(value, list):
        return [within(item) for item in value]
    for name, kind in KINDS.items():
        if type(value) is kind:
            items = value if kind is tuple else sorted(value)
            return {name: [within(item) for item in items]}
    if isinstance(value, Mapping):
        return {"mapping": [[within(k), within(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.name in NUMBERS:
        return _written_array(value, arrays, where)
    if hasattr(value, "_plain_parameter"):
        # Of the library's own kinds; the constructor takes the plain form too.
        return within(value._plain_parameter())
    if hasattr(value, "columns") and hasattr(value, "shape"):
        # A data frame of numbers, by the names of its columns; constructors take that too.
        return within(_by_column(value))
    if isinstance(value, np.dtype | type) and np.dtype(value).name in NUMBERS:
        return {"dtype": np.dtype(value).name}
    raise TypeError(type(value).__name__)


def _by_column(frame: Any) -> dict[str, list[float]]:
    names = [str(name) for name in frame.columns]
    return dict(zip(names, np.asarray(frame, dtype=np.float64).T.tolist(), strict=True))


def _written_array(value: NDArray[Any], arrays: Arrays | None, where: str) -> Any:
    if arrays is None or (value.ndim == 1 and value.size <= MOST_LISTED):
        return {"array": value.tolist(), "dtype": value.dtype.name}
    # In the machine's own order of bytes, as files have it.
    plain = np.asarray(value, dtype=value.dtype.newbyteorder("="))
    return {"stored": arrays.add(plain, f"parameter_{where}")}


def read_parameter(value: Any, depth: int = 0, arrays: Arrays | None = None) -> Any:
    """The parameter that some JSON stands for, or ModelFileError."""
    require(depth <= DEEPEST, f"parameters must be nested at most {DEEPEST} deep")
    if isinstance(value, list):
        return [read_parameter(item, depth + 1, arrays) for item in value]
    if not isinstance(value, dict):
        finite = not isinstance(value, float) or math.isfinite(value)
        require(finite, "numbers must be finite, or say that they are not")
        return value
    if set(value) == {"array", "dtype"}:
        return _array(value["array"], _dtype(value["dtype"]))
    require(len(value) == 1, "a parameter must be of one kind")
    ((kind, content),) = value.items()
    if kind == "float":
        require(isinstance(content, str) and content in NOT_FINITE, "a float must be a number")
        return NOT_FINITE[content]
    if kind == "dtype":
        return _dtype(content).type
    if kind == "stored":
        array = (Arrays() if arrays is None else arrays).take(content, "a parameter")
        require(array.dtype.name in NUMBERS, "a parameter's array must be one of numbers")
        return array
    require(isinstance(content, list), "a collection must list its items")
    items = [read_parameter(item, depth + 1, arrays) for item in content]
    if kind == "mapping":
        pairs = all(isinstance(item, list) and len(item) == 2 for item in items)
        require(pairs and all(_plain(key) for key, _ in items), "a mapping must hold pairs")
        return dict(items)
    require(kind in KINDS, "a parameter must be of a known kind")
    require(kind == "tuple" or all(map(_plain, items)), "a set must hold plain values")
    return KINDS[kind](items)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _dtype(name: Any) -> np.dtype[Any]:
    require(isinstance(name, str) and name in NUMBERS, "a dtype must be one of numbers")
    return np.dtype(name)


def _array(content: Any, dtype: np.dtype[Any]) -> Any:
    flat = isinstance(content, list) and all(type(item) in (int, float) for item in content)
    require(flat, "an array must be a list of numbers")
    try:
        return np.array(content, dtype=dtype)
    except (OverflowError, ValueError):
        require(False, "an array's numbers must be of its type")
