"""JSON that anyone may have written: of one meaning, and of bounded size."""

import json
import math
from typing import Any

from sktensor_dp.exceptions import StatementError

DEEPEST, LONGEST_NUMBER = 60, 400


def parsed(data: bytes, most_bytes: int) -> Any:
    """Read JSON that says nothing twice, is not too long or deep, and has no other numbers."""
    if len(data) > most_bytes:
        raise StatementError(f"it is longer than {most_bytes >> 20} MiB.")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_once,
            parse_constant=_refused,
            parse_float=_finite,
            parse_int=_whole,
        )
    except UnicodeDecodeError:
        raise StatementError("it is not UTF-8.") from None
    except RecursionError:
        raise StatementError("it is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise StatementError(
            f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise StatementError("it is nested too deeply.")
        inner = [
            x.values() if isinstance(x, dict) else x for x in level if isinstance(x, dict | list)
        ]
        level = [item for items in inner for item in items]
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise StatementError("an object names a field twice.")
    return dict(pairs)


def _refused(constant: str) -> None:
    raise StatementError(f'{constant} is no JSON; infinity is written "inf".')


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise StatementError("a number is too large.")
    return value


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise StatementError("a number is too long.")
    # All that is a number is a float to its reader, too.
    _finite(text)
    return int(text)
