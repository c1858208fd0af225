"""Amounts of a budget as people pass them: what is wrong is refused by its name."""

import math
from numbers import Real
from typing import Any


def checked_epsilon(value: Any) -> float:
    """A number above 0; infinity is one."""
    if (number := _number(value)) > 0:
        return number
    raise ValueError(f"epsilon must be > 0, and a number; got {_shown(value)}.")


def checked_delta(value: Any) -> float:
    """A number from 0 to below 1."""
    if 0 <= (number := _number(value)) < 1:
        return number
    raise ValueError(f"delta must lie in [0, 1), and be a number; got {_shown(value)}.")


def checked_shares(shares: Any) -> list[float]:
    """Finite numbers above 0, at least one."""
    several = hasattr(shares, "__len__") and hasattr(shares, "__iter__")
    found = [_number(share) for share in shares] if several else []
    if found and all(0 < share < math.inf for share in found):
        return found
    raise ValueError("shares must be a non-empty sequence of finite numbers > 0.")


def checked_thresholds(thresholds: Any, n_fits: int) -> int:
    """How many of so many fits set a part of delta aside."""
    if (number := _number(thresholds)) in range(n_fits + 1):
        return int(number)
    raise ValueError(
        f"thresholds must be an int from 0 to {n_fits}, the number of shares; got "
        f"{_shown(thresholds)}."
    )


def _number(value: Any) -> float:
    """A float; NaN, which no comparison lets through, for what is no number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _shown(value: Any) -> str:
    """A number that is short, or a type: anything else may be long, or data."""
    # Python refuses to write very long ints.
    long = isinstance(value, int) and abs(value) > 1e9
    short = isinstance(value, Real | str) and not long and len(repr(value)) < 30
    return repr(value) if short else f"a {type(value).__name__}"
