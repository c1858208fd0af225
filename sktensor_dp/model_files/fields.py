"""Values of declared types as JSON and arrays, and back with every value checked.

A file's content never chooses a class, a function or an attribute: it fills what is declared.
"""

import dataclasses
import itertools
import json
import math
import numbers
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.exceptions import ModelFileError
from sktensor_dp.model_files.container import NOT_FINITE, Arrays, require
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.statement import load_statement

DEEPEST = 4
KINDS = {"tuple": tuple, "set": set, "frozenset": frozenset}
NUMBERS = frozenset(
    np.dtype(kind).name for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
)


def write(value: Any, arrays: Arrays, where: str) -> Any:
    """JSON form of a parameter or a part of a state; arrays go to `arrays` by the name `where`."""
    if value is None or isinstance(value, bool | np.bool_ | str):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, list):
        return [write(item, arrays, f"{where}{i}") for i, item in enumerate(value)]
    for name, kind in KINDS.items():
        if type(value) is kind:
            items: Any = value if kind is tuple else sorted(value)
            return {name: write(list(items), arrays, where)}
    if isinstance(value, Mapping):
        return {"mapping": [write(list(pair), arrays, where) for pair in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.name in NUMBERS:
        # In the machine's own order of bytes, as files have it.
        plain = np.asarray(value, dtype=value.dtype.newbyteorder("="))
        return {"array": arrays.add(plain, where)}
    if isinstance(value, np.ndarray) and all(type(item) is str for item in value):
        return value.tolist()
    if isinstance(value, PrivacyReport):
        return json.loads(value.to_json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        prefix = where and f"{where.strip('_')}_"
        parts = {name: getattr(value, name) for name in _parts(type(value))}
        return {n: write(v, arrays, prefix + n) for n, v in parts.items() if v is not ABSENT}
    if hasattr(value, "columns") and hasattr(value, "shape"):
        # A data frame of numbers, by the names of its columns; constructors take that too.
        columns = np.asarray(value, dtype=np.float64).T.tolist()
        return write(dict(zip(map(str, value.columns), columns, strict=True)), arrays, where)
    if isinstance(value, np.dtype | type) and np.dtype(value).name in NUMBERS:
        return {"dtype": np.dtype(value).name}
    raise TypeError(type(value).__name__)


def read_parameter(value: Any, arrays: Arrays, depth: int = 0) -> Any:
    """Parameter in `depth` collections, from its JSON form; ModelFileError for other content."""
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
    """True for None, booleans, numbers and strings."""
    return value is None or isinstance(value, bool | int | float | str)


LONGEST_TEXT = 10_000
LARGEST_INTEGER = 2**62
# Stands for an attribute that is not there, where that is declared as its default.
ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()


@dataclasses.dataclass(kw_only=True)
class SavedState:
    """Base of dataclasses that declare which fitted attributes a model file holds.

    `layout` maps names to letters for the lengths of axes: equal letters are equal lengths, "?" is
    any, a capital may differ at each place of a list; "d:" is the length of a list, and "+" means
    that no number is below 0.
    """

    layout: ClassVar[Mapping[str, str]] = {}

    n_features_in_: int = ABSENT
    feature_names_in_: NDArray[np.object_] = ABSENT
    privacy_report_: PrivacyReport

    @classmethod
    def of(cls, estimator: Any, **rebuilt: Any) -> Self:
        """State of a fitted estimator, with `rebuilt` fields that it has in another form."""
        found = {**rebuilt}
        for field in dataclasses.fields(cls):
            if field.name in vars(estimator):
                found[field.name] = vars(estimator)[field.name]
            elif field.name not in found and field.default is dataclasses.MISSING:
                raise AttributeError(field.name)
        return cls(**found)

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes by name; subclasses refuse values that no fit leaves behind."""
        return {name: value for name, value in vars(self).items() if value is not ABSENT}


@cache
def _parts(kind: Any) -> dict[str, Any]:
    """Declared type of each field of a dataclass, by name."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _is_absent(kind: Any, name: str) -> bool:
    """True where a field may be missing, as its default is ABSENT."""
    return bool(kind.__dataclass_fields__[name].default is ABSENT)


@dataclasses.dataclass
class Reader:
    """Reads values of declared types from JSON and arrays, and checks their lengths by `layout`."""

    arrays: Arrays
    layout: Mapping[str, str]
    lengths: dict[tuple[str, int | None], int] = dataclasses.field(default_factory=dict)
    position: int | None = None

    def read(self, kind: Any, value: Any, where: str, spec: str = "") -> Any:
        """Value of the declared type `kind`, of lengths `spec`, from JSON; else ModelFileError."""
        origin, args = get_origin(kind) or kind, get_args(kind)
        if origin is types.UnionType:  # of a type and None
            return None if value is None else self.read(args[0], value, where, spec)
        if origin is PrivacyReport:
            return made(lambda: load_statement(json.dumps(value)), where)
        if dataclasses.is_dataclass(origin):
            return self._object(kind, value, where)
        if origin is np.ndarray:
            dtype = get_args(args[1])[0]
            if dtype is np.object_:
                return np.array(self._words(value, where, spec), dtype=object)
            return self._numbers(value, np.dtype(dtype), where, spec)
        if origin in (list, tuple):
            return origin(self._items(kind, value, where, spec))
        if origin is dict:
            found = read_parameter(value, self.arrays)
            require(isinstance(found, dict), f"{where} must be a mapping")
            return {key: self.read(args[1], item, where, spec) for key, item in found.items()}
        return self._plain(kind, value, where, spec)

    def _object(self, kind: Any, value: Any, where: str) -> Any:
        """Instance of a dataclass from a JSON object with exactly its fields."""
        of, parts = where or "the state", _parts(kind)
        require(isinstance(value, dict), f"{of} must be an object")
        require(value.keys() <= parts.keys(), f"{of} must have no parts but its own")
        for name in parts.keys() - value.keys():
            require(_is_absent(kind, name), f"{of} must have {name!r}")
        found = {
            name: self.read(
                part, value[name], f"{where}.{name}".strip("."), self.layout.get(name, "")
            )
            for name, part in parts.items()
            if name in value
        }
        return made(lambda: kind(**found), of)

    def _items(self, kind: Any, value: Any, where: str, spec: str) -> list[Any]:
        """Items of a list or tuple from a JSON list, each of its declared type."""
        args, fixed = get_args(kind), get_origin(kind) is tuple and ... not in get_args(kind)
        letter, _, spec = spec.rpartition(":")
        if get_origin(kind) is tuple and isinstance(value, dict) and value.keys() == {"tuple"}:
            value = value["tuple"]
        right = isinstance(value, list) and (not fixed or len(value) == len(args))
        require(right, f"{where} must be a list{f' of {len(args)}' if fixed else ''}")
        if letter:
            self._measure(letter, [len(value)], where)
        found, outer = [], self.position
        kinds = args if fixed else itertools.repeat(args[0])
        for self.position, (of, item) in enumerate(zip(kinds, value, strict=False)):
            found.append(self.read(of, item, f"{where}{self.position}", spec))
        self.position = outer
        return found

    def _plain(self, kind: Any, value: Any, where: str, spec: str) -> Any:
        """String, number or boolean of a declared type, in the range that `spec` allows."""
        if kind is float:
            if isinstance(value, dict):
                value = read_parameter(value, self.arrays)
            right = type(value) in (int, float)
            value = float(value) if right else value
            right = right and (value >= 0 or "+" not in spec)
        elif kind is int:
            right = type(value) is int and 0 <= value <= LARGEST_INTEGER
            if right and spec:
                self._measure(spec, [value], where)
        else:
            right = type(value) is kind and (kind is not str or len(value) <= LONGEST_TEXT)
        require(right, f"{where} must be of type {kind.__name__}, in the range of a fit's values")
        return value

    def _numbers(self, value: Any, dtype: Any, where: str, spec: str) -> NDArray[Any]:
        """Array that the file names, if its type, shape and numbers are those declared."""
        name = value.get("array") if isinstance(value, dict) and len(value) == 1 else None
        array, lengths = self.arrays.take(name, where), spec.rstrip("+")
        right = array.dtype == dtype and (not lengths or array.ndim == len(lengths))
        require(right, f"{where} must have dimensions ({lengths or 'any'}) and type {dtype}")
        if lengths:
            self._measure(lengths, array.shape, where)
        low = 0.0 if "+" in spec else -math.inf
        inside = np.isfinite(array).all() and (array >= low).all()
        require(inside, f"{where} must hold finite numbers, none below {low:g}")
        return array

    def _words(self, value: Any, where: str, spec: str) -> list[str]:
        """Different strings from a JSON list, as for names of features."""
        words = isinstance(value, list) and all(type(word) is str for word in value)
        right = words and 0 < len(value) == len(set(value))
        require(right, f"{where} must hold different words")
        if spec:
            self._measure(spec, [len(value)], where)
        return list(value)

    def _measure(self, letters: str, lengths: Any, where: str) -> None:
        """Refuse lengths of axes that differ from earlier ones with the same letters."""
        for letter, n in zip(letters, lengths, strict=True):
            key = (letter, self.position if letter.isupper() else None)
            same = letter == "?" or self.lengths.setdefault(key, n) == n
            require(same, f"{where} must be as long as the other parts that have its {letter!r}")


def made(build: Any, where: str) -> Any:
    """Call `build`, a constructor; a ModelFileError without its message stands for its errors."""
    try:
        return build()
    except ModelFileError:
        raise
    except Exception:
        pass
    # Not in the handler, which would leave the error in the context of this one.
    raise ModelFileError(f"In the model's file, {where} holds values that do not fit.")
