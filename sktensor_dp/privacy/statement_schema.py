"""Plain values from anywhere, held against the schema of privacy statements.

The schema is the one in ``privacy_statement.schema.json``; of JSON Schema this module knows
the words that it uses, so that reading a statement needs no other library.
"""

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any

MOST_BYTES = 16 * 2**20
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "number": (int, float), "integer": (int, float), "null": (type(None),),
}  # fmt: skip


def schema_text() -> str:
    """Return the schema, as the package has it."""
    place = files("sktensor_dp.privacy").joinpath("privacy_statement.schema.json")
    return place.read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(schema_text())
    return schema


def problems(value: Any) -> Iterator[str]:
    """Say where a value is not what the schema asks for."""
    return _problems(value, _schema(), "the statement")


def _problems(value: Any, rule: dict[str, Any], place: str) -> Iterator[str]:
    if "$ref" in rule:
        yield from _problems(value, _schema()["$defs"][rule["$ref"].rpartition("/")[2]], place)
    if "anyOf" in rule and all(any(_problems(value, one, place)) for one in rule["anyOf"]):
        wanted = " or ".join(_wanted(one) for one in rule["anyOf"])
        yield f"{place} must be {wanted}"
    if "allOf" in rule:
        yield from _of_a_kind(value, [one["then"] for one in rule["allOf"]], place)
        return
    if not _is_of_type(value, rule) or not _is_allowed(value, rule):
        yield f"{place} must be {_wanted(rule)}"
    elif isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", math.inf):
            yield f"{place} must have {rule.get('minItems', 0)} to {rule['maxItems']} items"
        for number, item in enumerate(value):
            yield from _problems(item, rule.get("items", {}), f"{place}[{number}]")
    elif isinstance(value, dict) and "properties" in rule:
        of = rule["properties"]
        missing = [name for name in rule["required"] if name not in value]
        if missing:
            yield f"{place} must have {', '.join(missing)}"
        if value.keys() - of.keys():
            yield f"{place} must have no field but {', '.join(of)}"
        for name in value.keys() & of.keys():
            yield from _problems(
                value[name], of[name], f"{place}.{name}".replace("the statement.", "")
            )


def _of_a_kind(value: Any, kinds: list[dict[str, Any]], place: str) -> Iterator[str]:
    """Problems of the only kind that it says it is of."""
    by_name = {one["$ref"].rpartition("/")[2]: one for one in kinds}
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in by_name:
        yield f"{place} must be an object whose kind is one of {', '.join(by_name)}"
    else:
        yield from _problems(value, by_name[kind], place)


def _is_of_type(value: Any, rule: dict[str, Any]) -> bool:
    if "type" not in rule:
        return True
    if isinstance(value, bool) and rule["type"] != "boolean":
        return False
    if rule["type"] == "integer" and isinstance(value, float) and not value.is_integer():
        return False
    return isinstance(value, TYPES[rule["type"]])


def _is_allowed(value: Any, rule: dict[str, Any]) -> bool:
    choices = rule.get("enum", [rule["const"]] if "const" in rule else None)
    if choices is not None and not any(
        value == one and isinstance(value, bool) == isinstance(one, bool) for one in choices
    ):
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(rule.get("minimum", -math.inf) <= value <= rule.get("maximum", math.inf))
    return not isinstance(value, str) or len(value) <= rule.get("maxLength", math.inf)


def _wanted(rule: dict[str, Any]) -> str:
    """What a rule asks for, in words."""
    if "$ref" in rule:
        rule = _schema()["$defs"][rule["$ref"].rpartition("/")[2]]
    if "anyOf" in rule:
        return " or ".join(_wanted(one) for one in rule["anyOf"])
    if "enum" in rule or "const" in rule:
        return " or ".join(json.dumps(one) for one in rule.get("enum", [rule.get("const")]))
    bounds = [f"at least {rule['minimum']}"] if "minimum" in rule else []
    bounds += [f"at most {rule['maximum']}"] if "maximum" in rule else []
    bounds += [f"of at most {rule['maxLength']} letters"] if "maxLength" in rule else []
    kind = {"null": "null", "object": "an object", "array": "a list"}.get(rule["type"])
    return " ".join([kind or f"a {rule['type']}", " and ".join(bounds)]).strip()
