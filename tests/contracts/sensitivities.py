"""Measure sensitivities: rows of the table, and the search for neighbours beyond a bound.

A unit is moved at random, to adversarial values, and by hill climbing. Distances are taken in
the coordinates in which the mechanism adds noise, as shares of the bound that the query states.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sktensor_dp.queries.query import Query

Rng = np.random.Generator
Floats = np.ndarray
# A query, what is public beside it, and two units as far apart as the bound allows.
Extreme = tuple[Any, Any, Any, Any]


def leaves(query: type[Query]) -> bool:
    """True if a query bounds what a unit contributes, so that units may come and go."""
    return query.l2_contribution is not Query.l2_contribution


class Data(Protocol):
    """Raw data of one kind, small enough to be searched."""

    grouped: bool  # whether a unit is a group of rows
    n_queries: int  # random queries that are searched beside the extreme one, at each seed

    def space(self, rng: Rng) -> Any:
        """Draw what is public beside the query, and other units that stay as they are."""

    def units(self, rng: Rng, query: Any, space: Any, n: int) -> list[Any]:
        """Draw units: a few times n at most, ordinary and adversarial."""

    def changed(self, rng: Rng, unit: Any, query: Any, space: Any) -> Any:
        """Change a unit a little."""

    def total(self, query: Any, units: list[Any], space: Any, rng: Rng | None = None) -> Any:
        """Answer a query: in the plainest way, or through chunks, in any order."""

    def other(self, rng: Rng, query: Any, space: Any) -> Any:
        """Draw a unit that takes the place of another; a group may have any number of rows."""


def ravelled(total: Any, _: Any) -> Floats:
    return np.ravel(total)


@dataclass(frozen=True)
class Case:
    """One way to ask for a release."""

    release: str
    kind: str
    data: Data
    build: Callable[[Rng, Any], Any]  # draws public parameters
    extreme: Callable[[Rng], Extreme]
    # Shares of the L2 and L1 sensitivity that the extreme pair has: at least, times `slack`.
    attained: tuple[float, float | None] = (1.0, 1.0)
    slack: float = 1.0
    found: float = 0.7  # share that a search from random units finds of the extreme query's bound
    most: float = 1.0  # share that no pair exceeds; less where rounding is paid from the slack
    coordinates: Callable[[Any, Any], Floats] = ravelled

    def part(self, query: Any, unit: Any, space: Any) -> Floats:
        return self.coordinates(self.data.total(query, [unit], space), query)


@dataclass(frozen=True)
class Row:
    """A case under one neighbour relation."""

    case: Case
    neighbours: str  # replace_one, add_remove

    @property
    def release(self) -> str:
        return self.case.release

    @property
    def relation(self) -> str:
        return self.neighbours + ", groups" * self.case.data.grouped

    @property
    def name(self) -> str:
        return f"{self.release}: {self.case.kind}; {self.relation}"

    def shares(self, moved: Floats, query: Any) -> tuple[Floats, Floats]:
        """Return distances as shares of the L2 and L1 bound; 0 where none is stated."""
        assert np.isfinite(moved).all()
        l2, l1 = (query.sensitivity(norm, self.neighbours) for norm in ("l2", "l1"))
        return share(np.sqrt((moved**2).sum(axis=-1)), l2), share(np.abs(moved).sum(axis=-1), l1)


def share(lengths: Floats, bound: float) -> Floats:
    return lengths / bound if bound > 0 else np.where(lengths > 0, math.inf, 0.0)


def search(row: Row, rng: Rng, query: Any, space: Any, sizes: tuple[int, int]) -> float:
    """Climb from the worst of all pairs of some units; return the largest share found."""
    case, (n_units, n_steps) = row.case, sizes
    units = case.data.units(rng, query, space, n_units)
    parts = np.array([case.part(query, unit, space) for unit in units])
    alone = row.neighbours == "add_remove"
    others = np.zeros_like(parts[:1]) if alone else parts
    gaps = [part - (others if alone else parts[:i]) for i, part in enumerate(parts)]
    found = [np.maximum(*row.shares(gap, query)) for gap in gaps]
    first = int(np.argmax([shares.max(initial=-1) for shares in found]))
    second, best = int(np.argmax(found[first])), found[first].max()
    ends, sums = [units[first], units[second]], [parts[first], others[second]]
    for _ in range(n_steps):
        side = 0 if alone else int(rng.integers(2))
        tried = case.data.changed(rng, ends[side], query, space)
        moved = case.part(query, tried, space)
        reached = max(row.shares(moved - sums[1 - side], query))
        if reached >= best:
            best, ends[side], sums[side] = reached, tried, moved
    return best


def between_data_sets(row: Row, rng: Rng, query: Any, space: Any) -> float:
    """Replace or remove one of many units, read through chunks; return the largest share."""
    data, coordinates = row.case.data, row.case.coordinates
    units = data.units(rng, query, space, 5)
    whole = coordinates(data.total(query, units, space, rng), query)
    largest = 0.0
    for _ in range(3):
        first = [] if row.neighbours == "add_remove" else [data.other(rng, query, space)]
        rest = units[1:] if first or len(units) > 1 else units
        neighbour = coordinates(data.total(query, first + rest, space, rng), query)
        largest = max(largest, *row.shares(whole - neighbour, query))
    return largest


def attained(row: Row, seed: int = 0) -> tuple[float, float]:
    """Return the shares of both bounds that the extreme pair has."""
    query, space, *ends = row.case.extreme(np.random.default_rng(seed))
    one, other = (row.case.part(query, unit, space) for unit in ends)
    if row.neighbours == "add_remove":
        found = [row.shares(part, query) for part in (one, other)]
        return max(found)[0], max(l1 for _, l1 in found)
    return row.shares(one - other, query)


@dataclass(frozen=True)
class Measured:
    """Shares of the bound: the largest of all, and those that search and proof attain."""

    largest: float
    searched: float
    attained: tuple[float, float]


def measured(row: Row, seed: int = 0) -> Measured:
    """Search for neighbours beyond the bound of a row."""
    rng, data, found = np.random.default_rng(seed), row.case.data, []
    # One unit alone is searched sooner than two, and a group in a few of very many ways.
    few = data.grouped + (row.neighbours == "add_remove")
    for _ in range(max(data.n_queries // 2**few, 1)):
        space = data.space(rng)
        query = row.case.build(rng, space)
        found += [search(row, rng, query, space, (12, 30)),
                  between_data_sets(row, rng, query, space)]  # fmt: skip
    query, space, *_ = row.case.extreme(rng)
    searched = search(row, rng, query, space, (100, 40 if few else 100))
    ends = attained(row, seed)
    return Measured(max(*found, searched, *ends), searched, ends)
