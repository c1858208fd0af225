"""Constructor parameters in a file: plain values, in JSON that tells a tuple from a list."""

import math
import numbers
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sktensor_dp.model_files.container import NOT_FINITE, Arrays, require

DEEPEST = 4
KINDS = {"tuple": tuple, "set": set, "frozenset": frozenset}
NUMBERS = frozenset(
    np.dtype(kind).name for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
)


def write_parameter(value: Any, arrays: Arrays, where: str) -> Any:
    """JSON of a plain value, of a collection of these, or of a type of numbers; arrays aside."""
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
            return {name: [within(item) for item in (value if kind is tuple else sorted(value))]}
    if isinstance(value, Mapping):
        return {"mapping": [[within(k), within(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.name in NUMBERS:
        # In the machine's own order of bytes, as files have it.
        plain = np.asarray(value, dtype=value.dtype.newbyteorder("="))
        return {"array": arrays.add(plain, f"parameter_{where}")}
    if hasattr(value, "_plain_parameter"):
        # Of the library's own kinds; the constructor takes the plain form too.
        return within(value._plain_parameter())
    if hasattr(value, "columns") and hasattr(value, "shape"):
        # A data frame of numbers, by the names of its columns; constructors take that too.
        columns = np.asarray(value, dtype=np.float64).T.tolist()
        return within(dict(zip(map(str, value.columns), columns, strict=True)))
    if isinstance(value, np.dtype | type) and np.dtype(value).name in NUMBERS:
        return {"dtype": np.dtype(value).name}
    raise TypeError(type(value).__name__)


def read_parameter(value: Any, arrays: Arrays, depth: int = 0) -> Any:
    """The parameter that some JSON stands for, or ModelFileError."""
    require(depth <= DEEPEST, f"parameters must be nested at most {DEEPEST} deep")
    if isinstance(value, list):
        return [read_parameter(item, arrays, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    require(len(value) == 1, "a parameter must be of one kind")
    ((kind, content),) = value.items()
    if kind in ("float", "dtype"):
        known = NOT_FINITE if kind == "float" else {name: np.dtype(name).type for name in NUMBERS}
        require(isinstance(content, str) and content in known, f"a {kind} must be a known one")
        return known[content]
    if kind == "array":
        array = arrays.take(content, "a parameter")
        require(array.dtype.name in NUMBERS, "a parameter's array must be one of numbers")
        return array
    require(isinstance(content, list), "a collection must list its items")
    items = [read_parameter(item, arrays, depth + 1) for item in content]
    if kind == "mapping":
        pairs = all(isinstance(item, list) and len(item) == 2 for item in items)
        require(pairs and all(_plain(key) for key, _ in items), "a mapping must hold pairs")
        return dict(items)
    require(kind in KINDS, "a parameter must be of a known kind")
    require(kind == "tuple" or all(map(_plain, items)), "a set must hold plain values")
    return KINDS[kind](items)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
