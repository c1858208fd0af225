"""Beliefs before and after results of an epsilon, in words of everyday odds."""

import math
from collections.abc import Callable

SUSPICIONS = (0.01, 0.1, 0.5)


def odds_after(before: float, epsilon: float) -> tuple[float, float]:
    """Least and largest probability after reading results, from that before, by Bayes' rule."""
    # For larger epsilon the bounds are 0 and 1 in double precision.
    factor = math.exp(-min(epsilon, 700.0))
    low = before * factor / (1 - before + before * factor)
    return low, before / (before + (1 - before) * factor)


def odds_in_hundred(epsilon: float) -> list[tuple[str, str, str]]:
    """Probabilities in 100 before reading results, each with the least and largest afterwards."""
    said = []
    for before in SUSPICIONS:
        low, high = odds_after(before, epsilon)
        bounds = _in_hundred(low, math.floor), _in_hundred(high, math.ceil)
        said.append((_in_hundred(before, round), *bounds))
    return said


def _in_hundred(probability: float, rounded: Callable[[float], int]) -> str:
    """Number of cases in a hundred, as text; `rounded` up or down, so that bounds hold."""
    if probability < 0.001:
        return "almost 0"
    if probability > 0.999:
        return "almost 100"
    # 99.6 % must not be printed as certain, nor .4 % as never: tenths of a percent.
    per_percent = 10 if probability < 0.1 or probability > 0.9 else 1
    return f"{rounded(100 * probability * per_percent) / per_percent:g}"
