"""Typed fields of a privacy statement: what each may hold, and where one holds something else."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sktensor_dp.queries.laws import LAWS

LARGEST, LONGEST = 10**15, 10_000


class Field(Protocol):
    """Type of a field: says what values it accepts."""

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """Yield how a value, named by its `place`, violates this type."""


@dataclass(frozen=True)
class Text:
    """Text of limited length."""

    longest: int = LONGEST

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """Yield an error if the value is no text, or too long."""
        if not isinstance(value, str) or len(value) > self.longest:
            yield f"{place} must be a text of at most {self.longest} characters"


@dataclass(frozen=True)
class OneOf:
    """One of some texts or numbers."""

    choices: tuple[str | int, ...]

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """Yield an error if the value is none of the allowed ones."""
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        if not (plain and value in self.choices):
            yield f"{place} must be one of {', '.join(map(repr, self.choices))}"


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """Yield an error if the value is not a bool."""
        if not isinstance(value, bool):
            yield f"{place} must be true or false"


@dataclass(frozen=True)
class Number:
    """Number in a range, or one further allowed value."""

    low: float = 0.0
    high: float = math.inf
    whole: bool = False
    beside: tuple[str | None, ...] = ()

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """Yield an error if the value is no number in the range."""
        if value is None or isinstance(value, str):
            allowed = value in self.beside
        else:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            allowed = number and self.low <= value <= self.high
            allowed = allowed and not (self.whole and value != math.floor(value))
        if not allowed:
            kind = "a whole number" if self.whole else "a number"
            others = "".join(f", or {one!r}" for one in self.beside).replace("None", "null")
            yield f"{place} must be {kind} from {self.low:g} to {self.high:g}{others}"


@dataclass(frozen=True)
class Items:
    """List of values of one type."""

    item: Field
    least: int = 0
    most: int = 100_000

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """Yield errors of the list and of its items."""
        if not isinstance(value, list) or not self.least <= len(value) <= self.most:
            yield f"{place} must be a list of {self.least} to {self.most} items"
            return
        for number, item in enumerate(value):
            yield from self.item.problems(item, f"{place}[{number}]")


@dataclass(frozen=True)
class Record:
    """Object with exactly these fields."""

    fields: Mapping[str, Field]

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """Yield fields that are missing, unknown or wrong."""
        if not isinstance(value, dict):
            yield f"{place} must be an object"
            return
        if missing := [name for name in self.fields if name not in value]:
            yield f"{place} must have {', '.join(missing)}"
            return
        if value.keys() - self.fields.keys():
            yield f"{place} must have no field but {', '.join(self.fields)}"
        for name, kind in self.fields.items():
            inner = f"{place}.{name}".replace("the statement.", "")
            yield from kind.problems(value[name], inner)


@dataclass
class Node:
    """Object whose field `kind` selects its record; some kinds contain further nodes."""

    kinds: dict[str, Record] = field(default_factory=dict)

    def problems(self, value: Any, place: str) -> Iterator[str]:
        """Yield an error for an unknown kind, or errors of the record."""
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in self.kinds:
            yield f"{place} must have a kind, one of {', '.join(self.kinds)}"
            return
        yield from self.kinds[kind].problems(value, place)


AMOUNT, SHARE = Number(beside=("inf",)), Number(0, 1)
COUNT, TIMES = Number(0, LARGEST, whole=True), Number(1, LARGEST, whole=True)
COST: dict[str, Field] = {"mu": AMOUNT, "epsilon": AMOUNT, "delta": SHARE}
UNIT_COSTS = Items(Record(COST), 1, 16)
SPENT: dict[str, Field] = {**COST, "uses": COUNT, "fraction": Number(0, 1, beside=(None,))}
RELEASE = Record(
    {
        "name": Text(), "description": Text(), "mechanism": OneOf(tuple(LAWS)),
        "norm": OneOf(("l1", "l2")), "sensitivity": AMOUNT, "sigma": AMOUNT, **SPENT,
    }
)  # fmt: skip
NODE = Node()
PART = Record({"role": Text(100), "times": TIMES, "units": COUNT, "composition": NODE})
MEMBERSHIP = Record(
    {
        "parts": Items(Record({"role": Text(100), "number": TIMES}), 1, 100),
        "unit_costs": UNIT_COSTS,
    }
)


def _kind(kind: str, **fields: Field) -> None:
    """Register a kind of node with its fields; all have costs of units."""
    NODE.kinds[kind] = Record({"kind": OneOf((kind,)), **fields, "unit_costs": UNIT_COSTS})


PARTS: dict[str, Field] = {"parts": Items(PART, 1), "units_read": COUNT}
_kind("releases", releases=Items(RELEASE), unused=Items(Record({"name": Text(), **SPENT})))
_kind("sequence", **PARTS)
_kind("parallel", **PARTS)
_kind("overlapping", a_unit_is_in=Items(MEMBERSHIP, 1, 10_000), **PARTS)
_kind(
    "selection",
    expected_trials=Number(1, LARGEST), stop_probability=SHARE, epsilon=AMOUNT, delta=SHARE,
    trial_may_cost=Record(COST), parts=Items(PART, 1, 1), units_read=COUNT,
)  # fmt: skip
ERRORS = Record({"false_positive_rate": SHARE, "false_negative_rate": SHARE})


def statement_of(heading: str, version: int) -> Record:
    """Type of a whole statement with this heading and version."""
    return Record(
        {
            "format": OneOf((heading,)),
            "version": OneOf((version,)),
            "library": Record({"name": OneOf(("sktensor_dp",)), "version": Text()}),
            "guarantee": Record(
                {
                    "in_words": Text(), "protects": Flag(), "epsilon": AMOUNT, "delta": SHARE,
                    "mu": Number(beside=("inf", None)), "tests": Items(ERRORS, 0, 3),
                }
            ),
            "unit": Record(
                {
                    "name": Text(), "in_words": Text(), "number": Number(0, LARGEST),
                    "number_is": OneOf(("public", "released")),
                }
            ),
            "neighbours": Record(
                {"relation": OneOf(("replace_one", "add_remove", "in_words")), "in_words": Text()}
            ),
            "noise": Record({"sampler": OneOf(("grid",)), "seeded": Flag()}),
            "composition": NODE,
            "notes": Items(Text(), 0, 1000),
            "not_covered": Items(Record({"what": Text(100), "in_words": Text()}), 0, 100),
        }
    )  # fmt: skip
