"""What the attributes of a saved model may be: each kind writes itself, and reads with suspicion.

A field names one kind of value in code. What a file says never chooses a class, a function
or an attribute: it can only fill the fields that are declared here and in the estimators.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.exceptions import ModelFileError

MOST_ITEMS = 10**6
LONGEST_TEXT = 10_000
# What JSON has no numbers for.
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf}


def require(condition: Any, wanted: str) -> None:
    """Raise ModelFileError unless the condition holds."""
    if not condition:
        raise ModelFileError(f"In the model's file, {wanted}.")


class Arrays:
    """Arrays on their way to a file, or out of it, and the lengths they share by a letter."""

    def __init__(self, by_name: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.by_name = dict(by_name or {})
        self.used: set[str] = set()
        self.lengths: dict[tuple[str, int | None], int] = {}
        self.position: int | None = None

    def add(self, array: NDArray[Any], where: str) -> str:
        """Keep an array under a name made of its place; one array keeps one place."""
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
        known = isinstance(name, str) and name in self.by_name
        require(known, f"{where} must name an array of the file")
        self.used.add(name)
        return self.by_name[name]

    def measure(self, letters: str, lengths: Iterable[int], where: str) -> None:
        """Check lengths against those of the same letters so far."""
        # `?` is any, and a capital a length of its own at each position of a list.
        for letter, n in zip(letters, lengths, strict=True):
            key = (letter, self.position if letter.isupper() else None)
            same = letter == "?" or self.lengths.setdefault(key, n) == n
            require(same, f"{where} must be as long as the other parts that have its {letter!r}")


class Field:
    """A kind of value: its JSON, arrays put aside, and back or ModelFileError."""

    kind: ClassVar[type] = object

    def write(self, value: Any, arrays: Arrays, where: str) -> Any:
        """JSON of a value."""
        return self.kind(value)

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        """Value of what a file has."""
        raise NotImplementedError


@dataclass(frozen=True)
class Integer(Field):
    """An int in an interval, or one of the lengths that parts share."""

    low: int = 0
    high: int = 2**62
    letter: str = "?"
    kind = int

    def read(self, value: Any, arrays: Arrays, where: str) -> int:
        right = type(value) is int and self.low <= value <= self.high
        require(right, f"{where} must be an int in [{self.low}, {self.high}]")
        arrays.measure(self.letter, [value], where)
        return int(value)


@dataclass(frozen=True)
class Real(Field):
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


class Flag(Field):
    """True or False."""

    kind = bool

    def read(self, value: Any, arrays: Arrays, where: str) -> bool:
        require(isinstance(value, bool), f"{where} must be true or false")
        return bool(value)


@dataclass(frozen=True)
class Text(Field):
    """A string, one of some if there are any to choose from."""

    choices: tuple[str, ...] = ()
    kind = str

    def read(self, value: Any, arrays: Arrays, where: str) -> str:
        right = isinstance(value, str) and len(value) <= LONGEST_TEXT
        right = right and (not self.choices or value in self.choices)
        one_of = f"one of {self.choices}" if self.choices else f"of at most {LONGEST_TEXT} letters"
        require(right, f"{where} must be text, {one_of}")
        return str(value)


@dataclass(frozen=True)
class Numbers(Field):
    """An array of finite numbers: bounds on each, and a letter for each of its lengths."""

    lengths: str | None
    low: float = -math.inf
    high: float = math.inf
    dtype: str = "float64"

    def write(self, value: Any, arrays: Arrays, where: str) -> str:
        return arrays.add(np.asarray(value, dtype=self.dtype), where)

    def read(self, value: Any, arrays: Arrays, where: str) -> NDArray[Any]:
        array, lengths = arrays.take(value, where), self.lengths
        right = array.dtype == self.dtype and (lengths is None or array.ndim == len(lengths))
        require(right, f"{where} must have dimensions ({lengths or 'any'}) and type {self.dtype}")
        if lengths is not None:
            arrays.measure(lengths, array.shape, where)
        # NaN fails the comparison too.
        inside = np.isfinite(array).all() and ((array >= self.low) & (array <= self.high)).all()
        require(inside, f"{where} must hold finite numbers in [{self.low:g}, {self.high:g}]")
        return array


@dataclass(frozen=True)
class Words(Field):
    """Different words, their UTF-8 bytes in one array and their lengths in another."""

    build: Callable[[list[str]], Any]
    letter: str = "?"

    def write(self, value: Any, arrays: Arrays, where: str) -> list[str]:
        # Half a surrogate pair may stand in a Python string.
        encoded = [str(word).encode("utf-8", "surrogatepass") for word in value]
        lengths = np.array([len(word) for word in encoded], dtype=np.int64)
        letters = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        return [arrays.add(letters, where + "_utf8"), arrays.add(lengths, where + "_lengths")]

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        require(isinstance(value, list) and len(value) == 2, f"{where} must be two arrays")
        letters = Numbers("?", dtype="uint8").read(value[0], arrays, where)
        bounded = Numbers(self.letter, 0, len(letters), "int64")
        lengths = bounded.read(value[1], arrays, where)
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
class ListOf(Field):
    """Values of one kind."""

    item: Field
    build: Callable[[Iterable[Any]], Any] = list
    shortest: int = 0
    longest: int = MOST_ITEMS
    letter: str = "?"

    def write(self, value: Any, arrays: Arrays, where: str) -> list[Any]:
        return [self.item.write(v, arrays, f"{where}{i}") for i, v in enumerate(value)]

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        right = isinstance(value, list) and self.shortest <= len(value) <= self.longest
        require(right, f"{where} must be a list of {self.shortest} to {self.longest} items")
        arrays.measure(self.letter, [len(value)], where)
        items, outer = [], arrays.position
        for arrays.position, item in enumerate(value):
            items.append(self.item.read(item, arrays, f"{where}{arrays.position}"))
        arrays.position = outer
        return self.build(items)


@dataclass(frozen=True)
class OrNone(Field):
    """A value, or None."""

    item: Field

    def write(self, value: Any, arrays: Arrays, where: str) -> Any:
        return None if value is None else self.item.write(value, arrays, where)

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        return None if value is None else self.item.read(value, arrays, where)


class Optional(OrNone):
    """An attribute that need not be there."""


class Missing:
    """What stands for an attribute that is not there."""


@dataclass(frozen=True)
class Record(Field):
    """An object with named parts, all of them declared."""

    build: Callable[..., Any]
    parts: Mapping[str, Field]
    take: Callable[[Any], Any] = lambda value: value

    def write(self, value: Any, arrays: Arrays, where: str) -> dict[str, Any]:
        whole, written = self.take(value), {}
        for name, kind in self.parts.items():
            mapping = isinstance(whole, Mapping)
            part = whole.get(name, Missing) if mapping else getattr(whole, name, Missing)
            if part is not Missing:
                prefix = where and f"{where.strip('_')}_"
                written[name] = kind.write(part, arrays, prefix + name)
            elif not isinstance(kind, Optional):
                raise AttributeError(name)
        return written

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        of = where or "the state"
        require(isinstance(value, dict), f"{of} must be an object")
        require(value.keys() <= self.parts.keys(), f"{of} must have no parts but its own")
        parts = {}
        for name, kind in self.parts.items():
            if name in value:
                parts[name] = kind.read(value[name], arrays, f"{where}.{name}".strip("."))
            else:
                require(isinstance(kind, Optional), f"{of} must have {name!r}")
        try:
            return self.build(**parts)
        except ValueError as error:
            raise ModelFileError(f"In the model's file, {of} does not fit: {error}") from None
