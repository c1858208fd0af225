"""Rates of the utility theorems of DeCarolis et al., and which configuration wins where."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from fitted_rates import slope_over_trials
from numpy.typing import NDArray
from verdicts import Claim, graded, plus_minus, short

__all__ = ["CONFIGURATIONS", "claims", "curve", "rates"]

Rows = Sequence[dict[str, Any]]
Floats = NDArray[np.float64]
CONFIGURATIONS = (
    "config. 1: e3, e4, e8",
    "config. 2: e6, e8 (not private)",
    "config. 3: e7, e8 (not private)",
    "config. 4: e9 (not private)",
)
THEOREMS = (10, 12, 14, 16)
SLACK = 0.1


def curve(
    rows: Rows, part: str, key: str, k: int, method: str, value: str
) -> tuple[Floats, Floats, Floats, Floats]:
    """Places, and quartiles of runs there, where more than half of the runs released something."""
    mine = [
        row for row in rows if row["part"] == part and row["k"] == k and row["method"] == method
    ]
    points = []
    for at in sorted({row[key] for row in mine}):
        values = np.array([row[value] for row in mine if row[key] == at])
        kept = values[np.isfinite(values)]
        if len(kept) > len(values) / 2:
            points.append((at, *np.quantile(kept, [0.25, 0.5, 0.75])))
    columns = np.array(points, dtype=np.float64).reshape(-1, 4).T
    return columns[0], columns[1], columns[2], columns[3]


def rates(rows: Rows) -> list[dict[str, Any]]:
    """Exponents of the loss in N and in d, one line per run, with standard errors over runs."""
    return [
        {
            "theorem": theorem,
            "configuration": name,
            **_rate(rows, "N", name, -1.0),
            **_rate(rows, "d", name, 0.5),
        }
        for theorem, name in zip(THEOREMS, CONFIGURATIONS, strict=True)
    ]


def _rate(rows: Rows, key: str, method: str, paper: float) -> dict[str, float]:
    """Rate of runs that released something at every place."""
    mine = [row for row in rows if row["part"] == key and row["method"] == method]
    places = sorted({row[key] for row in mine})
    table = np.array(
        [
            [row["loss"] for row in mine if row[key] == at]
            for at in places
        ]
    ).T  # fmt: skip
    table = table[np.isfinite(table).all(axis=1)]
    slope = slope_over_trials(places, table) if len(table) > 1 else (math.nan, math.nan)
    names = (f"exponent in {key}", f"s.e. {key}", f"paper {key}")
    return dict(zip(names, (*slope, paper), strict=True))


def claims(rows: Rows) -> list[Claim]:
    """Verdicts on the four rates, on the order that the bounds imply, and on what is released."""
    table = rates(rows)
    return [
        *(_of_theorem(row) for row in table),
        _second_against_first(rows),
        _last_against_third(rows),
        _released(rows),
        _sound(rows),
    ]


def _of_theorem(row: dict[str, Any]) -> Claim:
    number = (row["exponent in N"], row["s.e. N"])
    width = (row["exponent in d"], row["s.e. d"])
    # Bounds: a loss that falls faster, or grows more slowly, keeps them.
    linear = number[0] <= -1 + 2 * number[1] + SLACK
    bounded = width[0] <= 0.5 + 2 * width[1] + SLACK
    shown = [plus_minus(*pair) if math.isfinite(pair[0]) else "none" for pair in (number, width)]
    return Claim(
        f"Theorem {row['theorem']}",
        f"{row['configuration'].split(' (')[0]}: the loss falls as 1/N or faster, and grows "
        "with d as √d or more slowly, all else being equal",
        f"exponents {shown[0]} in N and {shown[1]} in d",
        graded((linear, bounded)),
    )


def _median(rows: Rows, part: str, key: str, k: int, method: str, value: str, at: float) -> float:
    x, _, middle, _ = curve(rows, part, key, k, method, value)
    found = middle[np.isclose(x, at)]
    return float(found[0]) if len(found) else math.nan


def _second_against_first(rows: Rows) -> Claim:
    """Noise on the whitened tensor: k^2.5 for sqrt(k d) in the bounds, better from d = k^4 on."""
    widths = sorted({row["d"] for row in rows if row["part"] == "d"})
    losses = [
        [_median(rows, "d", "d", 2, name, "loss", d) for name in CONFIGURATIONS[:2]] for d in widths
    ]
    return Claim(
        "Theorems 10, 12", "configuration 2 loses less than 1 where d > k⁴, by the bounds",
        "k = 2: " + "; ".join(
            f"d = {d}: {short(one)} and {short(two)}"
            for d, (one, two) in zip(widths, losses, strict=True)
        ),
        graded(two < one for one, two in losses if math.isfinite(one + two)),
    )  # fmt: skip


def _last_against_third(rows: Rows) -> Claim:
    numbers = sorted({row["N"] for row in rows if row["part"] == "N"})
    pairs = {
        n: [_median(rows, "N", "N", 2, name, "loss", n) for name in CONFIGURATIONS[2:]]
        for n in numbers
    }
    known = {n: pair for n, pair in pairs.items() if math.isfinite(sum(pair))}
    return Claim(
        "Theorems 14, 16", "configuration 4 loses more than 3, by √d for √k",
        "; ".join(f"N = {short(n, 1)}: {short(b)} and {short(a)}" for n, (a, b) in known.items())
        or "neither released anything",
        graded(a < b for a, b in known.values()) if known else "not reproduced",
    )  # fmt: skip


def _released(rows: Rows) -> Claim:
    epsilons = sorted({row["epsilon"] for row in rows if row["part"] == "epsilon"})
    at = {name: curve(rows, "epsilon", "epsilon", 3, name, "error")[0] for name in CONFIGURATIONS}
    first = {name: places.min() if len(places) else math.inf for name, places in at.items()}
    return Claim(
        "Lemma 9", "bounds on σ_k and γ_s can be released, and noise be set by them",
        "least ε with topics, of "
        + f"{', '.join(short(e, 4) for e in epsilons)}: "
        + ", ".join(f"{i} at {short(first[name], 4)}" for i, name in enumerate(first, start=1)),
        graded(value <= 10 for value in first.values()),
    )  # fmt: skip


def _sound(rows: Rows) -> Claim:
    """Compare configurations 2 and 1 as the theorems do, with methods that are private."""
    widths = sorted({row["d"] for row in rows if row["part"] == "sound"})
    names = ("whitened tensor", "moment tensor", CONFIGURATIONS[0])
    errors = [[_median(rows, "sound", "d", 5, name, "error", d) for name in names] for d in widths]
    return Claim(
        "sound", "noise on the whitened tensor does better than noise on the moment",
        "k = 5, ε = 1, error: " + "; ".join(
            f"d = {d}: {short(a)} and {short(b)} (configuration 1 as published {short(c)})"
            for d, (a, b, c) in zip(widths, errors, strict=True)
        ),
        graded(a < b for a, b, _ in errors),
    )  # fmt: skip
