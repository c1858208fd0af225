"""What the attributes of a saved model may be: each kind writes itself, and reads with suspicion.

A field names one kind of value in code. What a file says never chooses a class, a function
or an attribute: it can only fill the fields that are declared here and in the estimators.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.exceptions import ModelFileError

__all__ = [
    "Arrays", "Choice", "Field", "Flag", "Integer", "ListOf", "Missing", "Numbers", "Optional",
    "Real", "Record", "Text", "Words", "require",
]  # fmt: skip

MOST_ITEMS = 10**6
# What JSON has no numbers for.
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf}


class Arrays:
    """Arrays on their way to a file, or out of it; one array keeps one place.

    Parameters
    ----------
    by_name : mapping of str to ndarray, optional
        Those of a file.
    """

    def __init__(self, by_name: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.by_name = dict(by_name or {})
        self.used: set[str] = set()

    def add(self, array: NDArray[Any], where: str) -> str:
        """Keep an array under a name made of its place in the model."""
        for name, other in self.by_name.items():
            if other is array:
                return name
        name = start = "".join(c if c.isalnum() else "_" for c in where)[:50]
        while name in self.by_name:
            name = f"{start}_{len(self.by_name)}"
        self.by_name[name] = array
        return name

    def take(self, name: Any, where: str) -> NDArray[Any]:
        """Array of a name that the file gives."""
        if not isinstance(name, str) or name not in self.by_name:
            raise ModelFileError(f"{where} must name an array of the file.")
        self.used.add(name)
        return self.by_name[name]


def require(condition: Any, wanted: str) -> None:
    """Raise ModelFileError unless the condition holds."""
    if not condition:
        raise ModelFileError(f"In the model's file, {wanted}.")


class Field(Protocol):
    """A kind of value."""

    def write(self, value: Any, arrays: Arrays, where: str) -> Any:
        """Return the value as JSON, arrays put aside."""

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        """Return the value of some JSON, or raise ModelFileError."""


class Missing:
    """What stands for an attribute that is not there."""


@dataclass(frozen=True)
class Integer:
    """An int in an interval."""

    low: int = 0
    high: int = 2**62

    def write(self, value: Any, arrays: Arrays, where: str) -> int:
        return int(value)

    def read(self, value: Any, arrays: Arrays, where: str) -> int:
        right = type(value) is int and self.low <= value <= self.high
        require(right, f"{where} must be an int in [{self.low}, {self.high}]")
        return int(value)


@dataclass(frozen=True)
class Real:
    """A number in a closed interval; infinity where the interval reaches it."""

    low: float = -math.inf
    high: float = math.inf
    finite: bool = True

    def write(self, value: Any, arrays: Arrays, where: str) -> Any:
        number = float(value)
        return number if math.isfinite(number) else str(number)

    def read(self, value: Any, arrays: Arrays, where: str) -> float:
        if not self.finite and isinstance(value, str):
            value = NOT_FINITE.get(value)
        right = type(value) in (int, float) and self.low <= value <= self.high
        # An int may be beyond what a float can hold.
        endless = not self.finite and value in NOT_FINITE.values()
        right = right and (abs(value) <= sys.float_info.max or endless)
        require(right, f"{where} must be a number in [{self.low:g}, {self.high:g}]")
        return float(value)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def write(self, value: Any, arrays: Arrays, where: str) -> bool:
        return bool(value)

    def read(self, value: Any, arrays: Arrays, where: str) -> bool:
        require(isinstance(value, bool), f"{where} must be true or false")
        return bool(value)


@dataclass(frozen=True)
class Text:
    """A string."""

    longest: int = 10_000

    def write(self, value: Any, arrays: Arrays, where: str) -> str:
        return str(value)

    def read(self, value: Any, arrays: Arrays, where: str) -> str:
        right = isinstance(value, str) and len(value) <= self.longest
        require(right, f"{where} must be text of at most {self.longest} characters")
        return str(value)


class Choice(Text):
    """One of some strings."""

    def __init__(self, *choices: str) -> None:
        super().__init__()
        object.__setattr__(self, "choices", choices)

    def read(self, value: Any, arrays: Arrays, where: str) -> str:
        choices = self.choices  # type: ignore[attr-defined]
        require(isinstance(value, str) and value in choices, f"{where} must be one of {choices}")
        return str(value)


@dataclass(frozen=True)
class Numbers:
    """An array of finite numbers, with bounds on each."""

    ndim: int | None
    low: float = -math.inf
    high: float = math.inf
    dtype: str = "float64"

    def write(self, value: Any, arrays: Arrays, where: str) -> str:
        array = np.asarray(value)
        if array.dtype != self.dtype:
            array = array.astype(self.dtype)
        return arrays.add(array, where)

    def read(self, value: Any, arrays: Arrays, where: str) -> NDArray[Any]:
        array = arrays.take(value, where)
        right = array.dtype == self.dtype and self.ndim in (None, array.ndim)
        require(right, f"{where} must be an array of {self.ndim} dimensions and type {self.dtype}")
        # NaN fails the comparison too.
        inside = np.isfinite(array).all() and ((array >= self.low) & (array <= self.high)).all()
        require(inside, f"{where} must hold finite numbers in [{self.low:g}, {self.high:g}]")
        return array


@dataclass(frozen=True)
class Words:
    """Different words, their UTF-8 bytes in one array and their lengths in another."""

    build: Callable[[list[str]], Any]

    def write(self, value: Any, arrays: Arrays, where: str) -> list[str]:
        # Half a surrogate pair may stand in a Python string.
        encoded = [str(word).encode("utf-8", "surrogatepass") for word in value]
        lengths = np.array([len(word) for word in encoded], dtype=np.int64)
        letters = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        return [arrays.add(letters, where + "_utf8"), arrays.add(lengths, where + "_lengths")]

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        require(isinstance(value, list) and len(value) == 2, f"{where} must be two arrays")
        letters = Numbers(1, dtype="uint8").read(value[0], arrays, where)
        lengths = Numbers(1, 0, len(letters), "int64").read(value[1], arrays, where)
        ends = np.cumsum(lengths.astype(np.float64))
        require(len(lengths) and ends[-1] == len(letters), f"{where} must fill its letters")
        text, cuts = letters.tobytes(), [0, *ends.astype(np.int64).tolist()]
        try:
            words = [
                text[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(cuts)
            ]
        except UnicodeDecodeError:
            raise ModelFileError(f"{where} must hold UTF-8.") from None
        require(len(set(words)) == len(words), f"{where} must hold different words")
        return self.build(words)


@dataclass(frozen=True)
class ListOf:
    """Values of one kind."""

    item: Field
    kind: Callable[[Iterable[Any]], Any] = list
    shortest: int = 0
    longest: int = MOST_ITEMS

    def write(self, value: Any, arrays: Arrays, where: str) -> list[Any]:
        return [self.item.write(v, arrays, f"{where}{i}") for i, v in enumerate(value)]

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        right = isinstance(value, list) and self.shortest <= len(value) <= self.longest
        require(right, f"{where} must be a list of {self.shortest} to {self.longest} items")
        return self.kind(self.item.read(v, arrays, f"{where}{i}") for i, v in enumerate(value))


@dataclass(frozen=True)
class Optional:
    """A value that may be None; of an attribute, that may not be there."""

    item: Field

    def write(self, value: Any, arrays: Arrays, where: str) -> Any:
        return None if value is None else self.item.write(value, arrays, where)

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        return None if value is None else self.item.read(value, arrays, where)


@dataclass(frozen=True)
class Record:
    """An object with named parts, all of them declared.

    Parameters
    ----------
    build : callable
        Makes the object of its parts, by keyword.
    parts : mapping of str to Field
        What of it is saved.
    derived : mapping of str to object
        Parts that are no released values and come back as these.
    check : callable
        Raises ModelFileError unless the parts, a mapping, agree with each other.
    """

    build: Callable[..., Any]
    parts: Mapping[str, Field]
    derived: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any]], None] = lambda parts: None

    def write(self, value: Any, arrays: Arrays, where: str) -> dict[str, Any]:
        written = {}
        for name, kind in self.parts.items():
            mapping = isinstance(value, Mapping)
            part = value.get(name, Missing) if mapping else getattr(value, name, Missing)
            if part is Missing and isinstance(kind, Optional):
                continue
            if part is Missing:
                raise AttributeError(name)
            prefix = where and f"{where.strip('_')}_"
            written[name] = kind.write(part, arrays, prefix + name)
        return written

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        require(isinstance(value, dict), f"{where or 'the state'} must be an object")
        unknown = value.keys() - self.parts.keys()
        require(not unknown, f"{where or 'the state'} must have no parts but its own")
        parts = dict(self.derived)
        for name, kind in self.parts.items():
            if name in value:
                parts[name] = kind.read(value[name], arrays, f"{where}.{name}".strip("."))
            else:
                require(isinstance(kind, Optional), f"{where or 'the state'} must have {name!r}")
        self.check(parts)
        return self.build(**parts)
