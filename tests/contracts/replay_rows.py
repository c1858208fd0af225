"""A table of ways to fit, each with two data sets that replay holds against each other."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from cases import forecast_once
from replaying import Seen, nothing, replay

from sktensor_dp.estimator.forecast import Question

Rng = np.random.Generator
Pair = tuple[Any, Any]
DELTAS = (1e-6, 0.0)
# Noise was scaled for neighbours that rounding moves apart.
ROUNDING = 1 + 1e-6


@dataclass(frozen=True)
class Row:
    """A way to fit, and two data sets.

    Their relation is "unrelated" or "neighbours" (one unit differs: true answers are at most a
    sensitivity apart).
    """

    name: str
    build: Callable[[float], Any]  # of a delta, which a way may ignore
    fit: Callable[[Any, Any], Any]  # returns the fitted estimator
    pair: Callable[[Rng], Pair]
    relation: str = "unrelated"
    use: Callable[[Any], Any] = nothing  # what is made of the fit by public arguments
    # Of units that secret coins are drawn for, by two data sets: place in the first of each in
    # the second, -1 if it is new.
    match: Callable[[Any, Any], np.ndarray] | None = None
    place: int = 0  # by its parity one of two deltas is taken at each seed
    nightly: bool = False
    # Functions of the library that are replaced, to take a way which small data does not.
    forced: dict[str, Any] = field(default_factory=dict)


def check(row: Row, seed: int = 0, mistake: Any = None) -> Seen:
    """Record a fit and replay it on the other data; AssertionError where the two differ."""
    rng = np.random.default_rng([seed, row.place])
    pair = row.pair(rng)
    pair = pair if rng.random() < 0.5 else pair[::-1]
    match = None if row.match is None else row.match(*pair)
    delta = DELTAS[(row.place + seed) % 2]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in row.forced.items():
            patch.setattr(f"sktensor_dp.{name}", value)
        if not row.forced:
            patch.setattr(Question, "forecast", forecast_once)
        options = {"use": row.use, "match": match, "mistake": mistake}
        first = replay(lambda: row.build(delta), row.fit, *pair, **options)
    if row.relation == "neighbours":
        far = {name: gap for name, gap in first.moved.items() if not gap <= ROUNDING}
        assert not far, f"true answers are {far} sensitivities apart"
    return first


def product(
    options: dict[str, dict[str, Any]],
    fits: dict[str, Any],
    make: Callable[..., Row],
    first: int = 0,
) -> list[Row]:
    """Rows of all options in all ways, one way of each for every change and all at night.

    Of two that are next to each other one has each delta.
    """
    return [
        replace(make(f"{option}{way}", given, fit, place + at), nightly=at != place % len(fits))
        for place, (option, given) in enumerate(options.items(), first)
        for at, (way, fit) in enumerate(fits.items())
    ]  # fmt: skip


def named(rows: list[Row], name: str) -> Row:
    """The row of a name."""
    (found,) = (row for row in rows if row.name == name)
    return found
