"""The JSON Schema of statements, and the keywords of JSON Schema that it has."""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

Rule = Mapping[str, Any]

TYPES: dict[str, type] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
}  # fmt: skip


def schema_text() -> str:
    """JSON Schema of privacy statements, as text."""
    place = files("sktensor_dp.privacy").joinpath("privacy_statement.schema.json")
    return place.read_text(encoding="utf-8")


@cache
def _rules() -> dict[str, Rule]:
    """Rules by reference; "#" is that of a whole statement."""
    schema = json.loads(schema_text())
    return {"#": schema, **{f"#/$defs/{name}": rule for name, rule in schema["$defs"].items()}}


def problems(value: object, rule: Rule | None = None, place: str = "") -> Iterator[str]:
    """Yield how a value violates a rule, by default that of statements; `place` names the value."""
    rule = _rules()["#"] if rule is None else rule
    label = place or "the statement"
    if "$ref" in rule:
        yield from problems(value, _rules()[rule["$ref"]], place)
    if "type" in rule and not _is_of_type(value, rule["type"]):
        yield f"{label} must be of type {rule['type']}"
        return
    allowed = [rule["const"]] if "const" in rule else rule.get("enum")
    # True equals 1 in Python, but is none of the allowed values.
    if allowed is not None and (value not in allowed or isinstance(value, bool)):
        yield f"{label} must be {' or '.join(map(repr, allowed))}"
    if "anyOf" in rule and not any(satisfies(value, option) for option in rule["anyOf"]):
        by_option = (problems(value, option, place) for option in rule["anyOf"])
        yield " or ".join(chain.from_iterable(by_option))
    for case in rule.get("allOf", ()):
        if satisfies(value, case["if"]):
            yield from problems(value, case["then"], place)
    if isinstance(value, dict):
        yield from _problems_of_fields(value, rule, place)
    elif isinstance(value, list):
        low, high = rule.get("minItems", 0), rule.get("maxItems", math.inf)
        if not low <= len(value) <= high:
            yield f"{label} must be a list of {low} to {high} items"
            return
        for number, item in enumerate(value if "items" in rule else ()):
            yield from problems(item, rule["items"], f"{place}[{number}]")
    elif isinstance(value, str):
        if len(value) > rule.get("maxLength", math.inf):
            yield f"{label} must be a text of at most {rule['maxLength']} characters"
    elif isinstance(value, int | float):
        low, high = rule.get("minimum", -math.inf), rule.get("maximum", math.inf)
        if not low <= value <= high:
            yield f"{label} must be a number from {low:g} to {high:g}"


def satisfies(value: object, rule: Rule) -> bool:
    """True for a value that violates nothing of a rule."""
    return next(problems(value, rule), None) is None


def _is_of_type(value: object, name: str) -> bool:
    """True for a value of a type of JSON Schema; no number is a boolean."""
    if name not in ("number", "integer"):
        return isinstance(value, TYPES[name])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return name == "number" or value % 1 == 0


def _problems_of_fields(value: dict[str, object], rule: Rule, place: str) -> Iterator[str]:
    """Yield fields of an object that are missing, unknown or wrong."""
    fields = rule.get("properties", {})
    if missing := [name for name in rule.get("required", ()) if name not in value]:
        yield f"{place or 'the statement'} must have {', '.join(missing)}"
        return
    if "additionalProperties" in rule and value.keys() - fields.keys():
        yield f"{place or 'the statement'} must have no field but {', '.join(fields)}"
    for name, kind in fields.items():
        if name in value:
            yield from problems(value[name], kind, f"{place}.{name}".lstrip("."))
