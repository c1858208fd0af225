"""Validation of parameters and public sizes, before anything is charged."""

import difflib
import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType, NoneType
from typing import Any, Protocol

# Types whose values error messages may quote; a table in the place of a parameter is none of them.
PLAIN = (numbers.Number, str, bytes, type, NoneType, EllipsisType)
# Names that other libraries have for parameters of this one.
OTHER_NAMES = {
    **dict.fromkeys(("n_topics", "num_topics", "n_clusters", "k", "K"), "n_components"),
    "alpha": "doc_topic_prior", "eps": "epsilon", "seed": "random_state", "stopwords": "stop_words",
    **dict.fromkeys(("persons", "person", "users", "group"), "groups"),
    **dict.fromkeys(("n_factors", "factors", "n_components"), "rank"),
}  # fmt: skip


class Constraint(Protocol):
    """Condition on a parameter, and its description for error messages."""

    def accepts(self, value: object) -> bool:
        """Return True if `value` satisfies the condition."""

    def __str__(self) -> str:
        """Describe the accepted values, to follow "must be"."""


@dataclass(frozen=True)
class Number:
    """Constraint: a number, int where `integer`, in an interval; `closed` says which ends belong.

    `closed` is "both", "left", "right" or "neither".
    """

    low: float = -math.inf
    high: float = math.inf
    closed: str = "both"
    integer: bool = False

    def accepts(self, value: object) -> bool:
        """True for a number of the type, in the interval."""
        kind = numbers.Integral if self.integer else numbers.Real
        if not isinstance(value, kind) or isinstance(value, bool):
            return False
        try:
            number = float(value)
        except OverflowError:  # an int beyond what any computation here could hold
            return False
        above = number > self.low or (number == self.low and self.closed in ("both", "left"))
        below = number < self.high or (number == self.high and self.closed in ("both", "right"))
        return above and below

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:g}"
        left = "[" if self.closed in ("both", "left") and math.isfinite(self.low) else "("
        right = "]" if self.closed in ("both", "right") else ")"
        kind = "an int" if self.integer else "a number"
        return f"{kind} in {left}{self.low:g}, {self.high:g}{right}"


@dataclass(frozen=True)
class Condition:
    """Constraint: a value that a function `accepts`, which messages describe by `description`."""

    accepts: Callable[[Any], bool]
    description: str

    def __str__(self) -> str:
        return self.description


class OneOf(Condition):
    """Constraint: one of a few strings or None."""

    def __init__(self, *values: object) -> None:
        def accepts(value: object) -> bool:
            return any(value is one or (isinstance(value, str) and value == one) for one in values)

        super().__init__(accepts, " or ".join(map(repr, values)))


class InstanceOf(Condition):
    """Constraint: an instance of one of some classes."""

    def __init__(self, *classes: type) -> None:
        names = dict.fromkeys(cls.__name__ for cls in classes)
        super().__init__(
            lambda value: isinstance(value, classes), f"an instance of {' or '.join(names)}"
        )


class Numbers(Condition):
    """Constraint: a list, tuple or vector of `length` numbers that obey `number`."""

    def __init__(self, number: Number, length: int, description: str) -> None:
        def accepts(value: Any) -> bool:
            several = isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) == 1
            return several and len(value) == length and all(map(number.accepts, value))

        super().__init__(accepts, description)


def check_parameters(estimator: object, constraints: Mapping[str, Iterable[Constraint]]) -> None:
    """Raise ValueError for the first parameter that satisfies none of its constraints."""
    for name, alternatives in constraints.items():
        value = getattr(estimator, name)
        if not any(constraint.accepts(value) for constraint in alternatives):
            rule = " or ".join(str(constraint) for constraint in alternatives)
            raise ValueError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {rule}. "
                f"Got {shown(value)} instead."
            )


def shown(value: object) -> str:
    """Text of a parameter for a message: its value, or type and shape where it could be data.

    Examples
    --------
    >>> shown((0, "a")), shown({"a": -1}), shown([[1.5, 2.5]])
    ("(0, 'a')", "{'a': -1}", 'an object of type list')
    """
    most_shown, longest_shown = 10, 200
    parts: Any = [value]
    if isinstance(value, tuple | list | dict) and len(value) <= most_shown:
        parts = [*value, *value.values()] if isinstance(value, dict) else value
    if all(isinstance(one, PLAIN) for one in parts):
        text = repr(value)
        if len(text) <= longest_shown:
            return text
    shape = getattr(value, "shape", None)
    return f"an object of type {type(value).__name__}" + (f" and shape {shape}" if shape else "")


def nearest(name: str, known: Sequence[str]) -> str:
    """End of a message on a `name` that does not exist: the nearest of those `known`, or all."""
    guesses = [OTHER_NAMES.get(name), *difflib.get_close_matches(name, known, 1)]
    meant = next((guess for guess in guesses if guess in known), None)
    if meant is None:
        return f"{name}. It takes {', '.join(known)}."
    return f"{name}; did you mean {meant}?"


def check_sizes(**sizes: object) -> None:
    """Raise ValueError, by name, for public sizes that are not an int >= 1."""
    for name, value in sizes.items():
        if not Number(1, math.inf, integer=True).accepts(value):
            raise ValueError(f"{name} must be an int >= 1, got {shown(value)}.")


def whole_length(document_length: object) -> int:
    """Typical length of documents, such as a mean, as a whole number; ValueError below 1."""
    if not Number(1, 1e9).accepts(document_length):
        raise ValueError(f"document_length must be a number >= 1, got {shown(document_length)}.")
    return round(float(document_length))  # type: ignore[arg-type]


def memory_size() -> float:
    """Memory in bytes that this process may use at most."""
    size = 2.0**37  # assumed where the system does not say: more than is common
    if hasattr(os, "sysconf"):
        size = float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    try:
        import resource
    except ImportError:  # not on Windows
        return size
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return size if limit == resource.RLIM_INFINITY else min(size, float(limit))


def check_feasible(n_doubles: float, what: str, advice: str) -> None:
    """Raise ValueError, ending with `advice`, if `what` needs more doubles than fit into memory."""
    size = memory_size()
    if 8 * n_doubles > size:
        raise ValueError(
            f"{what} needs about {8e-9 * n_doubles:.3g} GB of memory; there are "
            f"{1e-9 * size:.3g}. {advice}"
        )
