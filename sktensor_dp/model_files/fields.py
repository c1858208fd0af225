"""Values of declared types as JSON and arrays, and back with every value checked.

A file's content never chooses a class, a function or an attribute: it fills what is declared.
"""

import dataclasses
import json
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self, get_type_hints

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


def as_json(value: object, arrays: Arrays, where: str) -> Any:
    """JSON form of a parameter or a part of a state; arrays go to `arrays` by the name `where`."""
    if value is None or isinstance(value, bool | np.bool_ | str):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, list):
        return [as_json(item, arrays, f"{where}{i}") for i, item in enumerate(value)]
    for name, kind in KINDS.items():
        if type(value) is kind:
            items: Any = value if kind is tuple else sorted(value)
            return {name: as_json(list(items), arrays, where)}
    if isinstance(value, Mapping):
        return {"mapping": [as_json(list(pair), arrays, where) for pair in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.name in NUMBERS:
        # To the machine's byte order, which the writer of the file expects.
        plain = np.asarray(value, dtype=value.dtype.newbyteorder("="))
        return {"array": arrays.add(plain, where)}
    if isinstance(value, np.ndarray) and all(type(item) is str for item in value):
        return value.tolist()
    if isinstance(value, PrivacyReport):
        return json.loads(value.to_json())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        prefix = where and f"{where.strip('_')}_"
        parts = {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
        return {
            name: as_json(part, arrays, prefix + name)
            for name, part in parts.items() if part is not ABSENT
        }  # fmt: skip
    if isinstance(value, np.dtype | type) and np.dtype(value).name in NUMBERS:
        return {"dtype": np.dtype(value).name}
    raise TypeError(type(value).__name__)


def read_parameter(value: object, arrays: Arrays, depth: int = 0) -> Any:
    """Parameter in `depth` collections, from its JSON form; ModelFileError for other content."""
    require(depth <= DEEPEST, f"parameters must be nested at most {DEEPEST} deep")
    if isinstance(value, list):
        return [read_parameter(item, arrays, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    require(len(value) == 1, "a parameter must be of one kind")
    ((kind, content),) = value.items()
    if kind in ("float", "dtype"):
        values = NOT_FINITE if kind == "float" else {name: np.dtype(name).type for name in NUMBERS}
        require(isinstance(content, str) and content in values, f"a {kind} must be a known one")
        return values[content]
    if kind == "array":
        array = arrays.take(content, "a parameter")
        require(array.dtype.name in NUMBERS, "a parameter's array must be one of numbers")
        return array
    require(isinstance(content, list), "a collection must list its items")
    items = [read_parameter(item, arrays, depth + 1) for item in content]
    if kind == "mapping":
        are_pairs = all(isinstance(item, list) and len(item) == 2 for item in items)
        require(are_pairs and all(_plain(key) for key, _ in items), "a mapping must hold pairs")
        return dict(items)
    require(kind in KINDS, "a parameter must be of a known kind")
    require(kind == "tuple" or all(map(_plain, items)), "a set must hold plain values")
    return KINDS[kind](items)


def _plain(value: object) -> bool:
    """True for None, booleans, numbers and strings."""
    return value is None or isinstance(value, bool | int | float | str)


# Value of an attribute that is missing, if its declared default is this.
ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()


@dataclasses.dataclass
class Reader:
    """Arrays of a file, and the lengths of axes by letter: equal letters are equal lengths."""

    arrays: Arrays
    lengths: dict[tuple[str, int | None], int] = dataclasses.field(default_factory=dict)
    position: int | None = None  # in the list that is read, for capital letters

    def measure(self, letters: str, lengths: Sequence[int], where: str) -> None:
        """Refuse lengths of axes that differ from earlier ones with the same letters."""
        for letter, n in zip(letters, lengths, strict=True):
            key = (letter, self.position if letter.isupper() else None)
            is_equal = letter == "?" or self.lengths.setdefault(key, n) == n
            require(
                is_equal, f"{where} must be as long as the other parts that have its {letter!r}"
            )


class Form:
    """Declared form of a value in a file; `read` returns the value or raises ModelFileError.

    Letters name the lengths of axes: equal letters are equal lengths, "?" is any, a capital may
    differ at each place of a list. A last "+" means that no number is below 0.
    """

    def read(self, reader: Reader, value: object, where: str) -> Any:
        """Return the value that JSON and the reader's arrays hold in this form."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Plain(Form):
    """String or boolean."""

    kind: type

    def read(self, reader: Reader, value: object, where: str) -> object:
        longest_text = 10_000
        is_too_long = isinstance(value, str) and len(value) > longest_text
        is_valid = type(value) is self.kind and not is_too_long
        require(is_valid, f"{where} must be of type {self.kind.__name__}")
        return value


@dataclasses.dataclass(frozen=True)
class Whole(Form):
    """Integer from 0, which may be the length of an axis."""

    letter: str = ""

    def read(self, reader: Reader, value: Any, where: str) -> int:
        largest_integer = 2**62
        is_valid = type(value) is int and 0 <= value <= largest_integer
        require(is_valid, f"{where} must be of type int, in the range of a fit's values")
        if self.letter:  # the value is the length of an axis
            reader.measure(self.letter, [value], where)
        return int(value)


@dataclasses.dataclass(frozen=True)
class Real(Form):
    """Number, which may be infinite."""

    sign: str = ""

    def read(self, reader: Reader, value: Any, where: str) -> float:
        if isinstance(value, dict):  # infinity, which JSON has no number for
            value = read_parameter(value, reader.arrays)
        is_valid = type(value) in (int, float) and (not self.sign or float(value) >= 0)
        require(is_valid, f"{where} must be of type float, in the range of a fit's values")
        return float(value)


@dataclasses.dataclass(frozen=True)
class Numbers(Form):
    """Array of finite doubles, with a last "+" >= 0; letters name its axes, by default any."""

    letters: str = ""

    def read(self, reader: Reader, value: object, where: str) -> NDArray[np.float64]:
        """Check the named array of the file and its axes, each of the length of its letter."""
        name = value.get("array") if isinstance(value, dict) and len(value) == 1 else None
        array, axes = reader.arrays.take(name, where), self.letters.rstrip("+")
        is_valid = array.dtype == np.float64 and (not axes or array.ndim == len(axes))
        require(is_valid, f"{where} must have dimensions ({axes or 'any'}) and type float64")
        if axes:
            reader.measure(axes, array.shape, where)
        low = 0.0 if "+" in self.letters else -math.inf
        in_range = np.isfinite(array).all() and (array >= low).all()
        require(in_range, f"{where} must hold finite numbers, none below {low:g}")
        return array


@dataclasses.dataclass(frozen=True)
class Words(Form):
    """Array of distinct strings, such as names of features; `letter` names its length."""

    letter: str

    def read(self, reader: Reader, value: Any, where: str) -> NDArray[np.object_]:
        are_texts = isinstance(value, list) and all(type(word) is str for word in value)
        is_valid = are_texts and 0 < len(value) == len(set(value))
        require(is_valid, f"{where} must hold different words")
        reader.measure(self.letter, [len(value)], where)
        return np.array(value, dtype=object)


@dataclasses.dataclass(frozen=True)
class Items(Form):
    """List or tuple of values of one form; its length is fixed, or named by a letter."""

    form: Form
    length: str | int = ""
    kind: type = list

    def read(self, reader: Reader, value: Any, where: str) -> object:
        if self.kind is tuple and isinstance(value, dict) and value.keys() == {"tuple"}:
            value = value["tuple"]  # as `as_json` writes one
        require(isinstance(value, list), f"{where} must be a list")
        if isinstance(self.length, int):
            require(len(value) == self.length, f"{where} must be a list of {self.length}")
        elif self.length:
            reader.measure(self.length, [len(value)], where)
        items, position_outside = [], reader.position
        for position, item in enumerate(value):
            reader.position = position
            items.append(self.form.read(reader, item, f"{where}{position}"))
        reader.position = position_outside
        return self.kind(items)


@dataclasses.dataclass(frozen=True)
class ByName(Form):
    """Mapping from names to values of one form."""

    form: Form

    def read(self, reader: Reader, value: object, where: str) -> dict[object, object]:
        items = read_parameter(value, reader.arrays)
        require(isinstance(items, dict), f"{where} must be a mapping")
        return {key: self.form.read(reader, item, where) for key, item in items.items()}


@dataclasses.dataclass(frozen=True)
class Maybe(Form):
    """Value of a form, or None."""

    form: Form

    def read(self, reader: Reader, value: object, where: str) -> object:
        return None if value is None else self.form.read(reader, value, where)


class Part(Form):
    """Instance of a dataclass, with a form for each of its fields."""

    def __init__(self, kind: Any, **forms: Form) -> None:
        self.kind, self.forms = kind, forms
        assert [*forms] == [field.name for field in dataclasses.fields(kind)], kind

    def read(self, reader: Reader, value: Any, where: str) -> Any:
        """Instance from a JSON object; only fields whose default is ABSENT may be missing."""
        what = where or "the state"
        require(isinstance(value, dict), f"{what} must be an object")
        require(value.keys() <= self.forms.keys(), f"{what} must have no parts but its own")
        for field in dataclasses.fields(self.kind):
            is_complete = field.name in value or field.default is ABSENT
            require(is_complete, f"{what} must have {field.name!r}")
        fields = {
            name: form.read(reader, value[name], f"{where}.{name}".strip("."))
            for name, form in self.forms.items()
            if name in value
        }
        return constructed(lambda: self.kind(**fields), what)


class Report(Form):
    """Privacy report."""

    def read(self, reader: Reader, value: object, where: str) -> PrivacyReport:
        """Report from its JSON form, checked as statements are."""
        report: PrivacyReport = constructed(lambda: load_statement(json.dumps(value)), where)
        return report


@dataclasses.dataclass(kw_only=True)
class SavedState:
    """Base of dataclasses whose annotations declare fitted attributes in a file, and their forms.

    An attribute whose default is ABSENT may be missing.
    """

    n_features_in_: Annotated[int, Whole("d")] = ABSENT
    feature_names_in_: Annotated[NDArray[np.object_], Words("d")] = ABSENT
    privacy_report_: Annotated[PrivacyReport, Report()]

    @classmethod
    def of(cls, estimator: Any, **rebuilt: Any) -> Self:
        """State of a fitted estimator; `rebuilt` replaces fields that it holds in another form."""
        values = {**rebuilt}
        for field in dataclasses.fields(cls):
            if field.name in vars(estimator):
                values[field.name] = vars(estimator)[field.name]
            elif field.name not in values and field.default is dataclasses.MISSING:
                raise AttributeError(field.name)
        return cls(**values)

    @classmethod
    def read(cls, arrays: Arrays, content: object) -> Self:
        """State that a file's JSON and arrays hold; else ModelFileError."""
        hints = get_type_hints(cls, include_extras=True)
        forms = {one.name: hints[one.name].__metadata__[0] for one in dataclasses.fields(cls)}
        state: Self = Part(cls, **forms).read(Reader(arrays), content, "")
        return state

    def attributes(self, estimator: object) -> dict[str, Any]:
        """Fitted attributes by name; subclasses refuse values that no fit produces."""
        return {name: value for name, value in vars(self).items() if value is not ABSENT}


def constructed(build: Any, where: str) -> Any:
    """Call `build`, a constructor; replace its errors by a ModelFileError without their message."""
    try:
        return build()
    except ModelFileError:
        raise
    except Exception:
        pass
    # Raised after the handler, which would keep the old error as the context of this one.
    raise ModelFileError(f"In the model's file, {where} holds values that do not fit.")
