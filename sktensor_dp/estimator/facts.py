"""Public facts of an estimator, for search, scorer and audit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# Arguments of ``fit`` for data and for a neighbour, and a statistic that is larger for the
# neighbour.
Neighbours = tuple[tuple[Any, ...], tuple[Any, ...], Callable[[Any], float]]


def unknown(_: int | None) -> None:
    """Worst case of an estimator that declares none."""


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """Public facts of an estimator, by its parameters alone: units, score, worst neighbours."""

    unit: str  # name of one unit, where rows have no groups
    unit_is_row: bool = True  # whether units may be held out and scored row by row
    is_pure: bool = False  # whether a fit spends a pure epsilon, whatever delta it is given
    delta_set_aside: float = 0.0  # fraction of delta for failures of its own
    releases_nothing: bool = False  # whether it learns nothing from the data and needs no budget
    score: str | None = None  # default of a search, unless the estimator is a regressor
    target_range: Sequence[float] | None = None  # (low, high) of targets and predictions
    # Makes a function from texts to the number of words of each, if units are texts.
    word_counter: Callable[[], Callable[[Any], Any]] | None = None
    # Maps a number of units to neighbouring data that are a sensitivity apart; None if unknown.
    worst_case: Callable[[int | None], Neighbours | None] = unknown
