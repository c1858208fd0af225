"""Every query on values of entries with random public parameters; the worst value attains."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from contracts.sensitivities import Case, Extreme, Floats, Rng

from sktensor_dp.data.entries import EntryChunks, IndexSet
from sktensor_dp.data.sums import SUM_SLACK
from sktensor_dp.queries.entries import Entries, EntryPairs, RowSums, ValueHistogram
from sktensor_dp.queries.gradients import EntryGradients, Jacobian, RidgeBlock


def bounds(rng: Rng) -> tuple[float, float]:
    low = 10 ** rng.uniform(-2, 2) * rng.standard_normal()
    return low, low + 10 ** rng.uniform(-2, 2)


def raw(rng: Rng, size: int, limits: tuple[float, float]) -> Floats:
    """Values in the range, at its ends and far beyond."""
    values = rng.uniform(*limits, size)
    odd = rng.random(size)
    values[odd < 0.3] = rng.choice(limits, int((odd < 0.3).sum()))
    beyond = rng.choice([-1, 1], size) * 10 ** rng.uniform(0, 308, size)
    return np.where(odd > 0.8, beyond, values)


@dataclass(frozen=True)
class Values:
    """Coordinates are public; all values but one, at a place of its own, stay as they are."""

    places: IndexSet
    limits: tuple[float, float]
    values: Floats
    place: int

    @property
    def half(self) -> float:
        return (self.limits[1] - self.limits[0]) / 2


@dataclass(frozen=True)
class EntryData:
    n_modes: int | None = None  # two to four
    grouped: bool = False
    n_queries: int = 20

    def space(self, rng: Rng) -> Values:
        """Few entries to many, crowded rows and repeated entries."""
        shape = tuple(int(n) for n in rng.integers(1, 7, self.n_modes or rng.integers(2, 5)))
        crowded = rng.random((rng.integers(1, 40), len(shape))) ** 2
        places, limits = IndexSet((crowded * shape).astype(np.intp), shape), bounds(rng)
        n = places.n_entries
        return Values(places, limits, raw(rng, n, limits), int(rng.integers(n)))

    def units(self, rng: Rng, query: Any, space: Values, n: int) -> list[float]:
        return [*space.limits, *raw(rng, min(n, 8), space.limits)]

    def other(self, rng: Rng, query: Any, space: Values) -> float:
        return float(raw(rng, 1, space.limits)[0])

    def changed(self, rng: Rng, unit: float, query: Any, space: Values) -> float:
        return self.other(rng, query, space)

    def total(self, query: Any, units: list[float], space: Values, rng: Rng | None = None) -> Any:
        values, places = space.values.copy(), space.places
        values[space.place] = units[0]
        return query.total(EntryChunks(places.coordinates, values, places.shape, space.limits))


def derivatives(rng: Rng, n: int) -> Floats:
    """Rows of very different size, alike, opposite, and zero."""
    rows = rng.standard_normal((n, rng.integers(1, 5)))
    rows *= 10 ** rng.uniform(-4, 2, (n, 1)) * (rng.random((n, 1)) < 0.9)
    rows[rng.integers(n)] = -rows[0]
    return rows


def histogram(rng: Rng, space: Values) -> ValueHistogram:
    return ValueHistogram(np.linspace(*space.limits, rng.integers(3, 9)))


def balanced_sums(rng: Rng, space: Values) -> RowSums:
    return RowSums(space.places, space.places.balanced_weights(), space.half)


def row_sums(rng: Rng, space: Values) -> RowSums:
    if rng.random() < 0.5:
        return balanced_sums(rng, space)
    weights = rng.standard_normal(space.places.coordinates.shape) * 10 ** rng.uniform(-3, 2)
    return RowSums(space.places, weights, space.half)


def ridge_block(rng: Rng, space: Values) -> RidgeBlock:
    rows = derivatives(rng, space.places.n_entries)
    ridge = 10 ** rng.uniform(-6, 2, rows.shape[1]) * (rng.random() < 0.8)
    mode = int(rng.integers(len(space.places.shape)))
    return RidgeBlock(space.places, mode, rows, ridge, space.half)


def entry_gradients(rng: Rng, space: Values) -> EntryGradients:
    places, size = space.places, 10 ** rng.uniform(-1, 1)
    equal, core = rng.random() < 0.5, rng.integers(1, 4, len(places.shape))
    ranks = np.full(len(core), core[0]) if equal else core
    factors = [size * rng.standard_normal((n, r)) for n, r in zip(places.shape, ranks, strict=True)]
    middle = None if equal else rng.standard_normal(tuple(ranks))
    return EntryGradients(Jacobian(places, factors, middle), space.half)


def entry_pairs(rng: Rng, space: Values) -> EntryPairs:
    """Predictions leave room for residuals from -1 to 1."""
    places, scale = space.places, space.half * rng.uniform(0.1, 0.9)
    weights = np.where(rng.random(places.shape[0]) < 0.3, 0.0, 1.0)
    weights *= rng.random(places.shape[0]) ** 2
    predictions = rng.uniform(-1, 1, places.n_entries) * (space.half - scale) * 0.99
    return EntryPairs(places, predictions, weights, scale, space.half)


def from_end_to_end(data: EntryData, build: Any) -> Callable[[Rng], Extreme]:
    """A value that moves the total furthest; all others are at the lower end."""

    def extreme(rng: Rng) -> Extreme:
        found: list[tuple[float, Extreme]] = []
        # Rows that hold nothing but zeros release nothing, at any sensitivity.
        while not found or max(moved for moved, _ in found) == 0:
            space = data.space(rng)
            query = build(rng, space)
            values = np.full(space.places.n_entries, space.limits[0])
            for place in range(len(values)):
                ends = Values(space.places, space.limits, values, place)
                low, high = (np.ravel(data.total(query, [end], ends)) for end in space.limits)
                moved = float(np.linalg.norm(high - low))
                found.append((moved, (query, ends, *space.limits)))
        return max(found, key=lambda one: one[0])[1]

    return extreme


ANY, MATRIX = EntryData(), EntryData(n_modes=2)


def case(release: str, kind: str, build: Any, data: EntryData = ANY, **options: Any) -> Case:
    start = {"extreme": from_end_to_end(data, build), "slack": SUM_SLACK, "found": 0.99}
    return Case(release, kind, data, build, **{**start, **options})


CASES = [
    case("entries", "every value", lambda rng, space: Entries(space.half), slack=1.0,
         most=1 + 1e-12),
    case("value_histogram", "entries", histogram),
    # The entry with the largest L2 norm of any weights need not have the largest L1 norm.
    case("row_sums", "any weights", row_sums, extreme=from_end_to_end(ANY, balanced_sums)),
    case("ridge_block", "solutions", ridge_block),
    case("entry_gradients", "CP and Tucker", entry_gradients),
    case("entry_pairs", "two modes", entry_pairs, MATRIX),
]  # fmt: skip
