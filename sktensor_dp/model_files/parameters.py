"""Constructor parameters in a file: plain values, in JSON that tells a tuple from a list."""

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from sktensor_dp.model_files.fields import NOT_FINITE, require

DEEPEST = 4
KINDS = {"tuple": tuple, "set": set, "frozenset": frozenset}
NUMBERS = frozenset(
    np.dtype(kind).name for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
)


def write_parameter(value: Any) -> Any:
    """JSON of a plain value, of a collection or array of these, or of a type of numbers."""
    if value is None or isinstance(value, bool | np.bool_ | str):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, list):
        return [write_parameter(item) for item in value]
    for name, kind in KINDS.items():
        if type(value) is kind:
            items = value if kind is tuple else sorted(value)
            return {name: [write_parameter(item) for item in items]}
    if isinstance(value, Mapping):
        return {"mapping": [[write_parameter(k), write_parameter(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.name in NUMBERS:
        return {"array": value.tolist(), "dtype": value.dtype.name}
    if hasattr(value, "_plain_parameter"):
        # Of the library's own kinds; the constructor takes the plain form too.
        return write_parameter(value._plain_parameter())
    if isinstance(value, np.dtype | type) and np.dtype(value).name in NUMBERS:
        return {"dtype": np.dtype(value).name}
    raise TypeError(type(value).__name__)


def read_parameter(value: Any, depth: int = 0) -> Any:
    """The parameter that some JSON stands for, or ModelFileError."""
    require(depth <= DEEPEST, f"parameters must be nested at most {DEEPEST} deep")
    if isinstance(value, list):
        return [read_parameter(item, depth + 1) for item in value]
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
    require(isinstance(content, list), "a collection must list its items")
    items = [read_parameter(item, depth + 1) for item in content]
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
