"""Every query on persons with random public parameters, and units that are far apart.

Neighbours differ in all that one unit holds, coordinates included.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from contracts.rows_of_entries import bounds, raw
from contracts.sensitivities import Case, Extreme, Floats, Rng

from sktensor_dp.data.person_entries import PersonChunks
from sktensor_dp.data.sums import SUM_SLACK
from sktensor_dp.queries.entries import ValueHistogram
from sktensor_dp.queries.person_entries import (
    MOMENT_WEIGHT,
    ReleasedEffects,
    RowConcurrences,
    SharedFactorSums,
    SharedRowSums,
    UnitLevels,
)
from sktensor_dp.tensor.shared_parameters import SharedEffects

# Coordinates in the shared modes, and values.
Unit = tuple[Any, Floats]


@dataclass(frozen=True)
class World:
    """Public facts. Units are of mode 0."""

    shape: tuple[int, ...]
    limits: tuple[float, float]

    @property
    def half(self) -> float:
        return (self.limits[1] - self.limits[0]) / 2


class PersonData:
    grouped, n_queries = False, 5

    def space(self, rng: Rng) -> World:
        return World((8, *(int(n) for n in rng.integers(1, 6, rng.integers(1, 4)))), bounds(rng))

    def units(self, rng: Rng, query: Any, space: World, n: int) -> list[Unit]:
        return [self.other(rng, query, space) for _ in range(n)]

    def other(self, rng: Rng, query: Any, space: World) -> Unit:
        """Empty, small, large, all in one row, with repeated coordinates."""
        n = int(rng.choice([0, 1, 2, 5, 30]))
        rows = (rng.random((n, len(space.shape) - 1)) * space.shape[1:]).astype(np.intp)
        if n and rng.random() < 0.4:
            rows[:, int(rng.integers(rows.shape[1]))] = 0
        values = raw(rng, n, space.limits)
        if rng.random() < 0.4:
            values[:] = rng.choice(space.limits)
        return rows, values

    def changed(self, rng: Rng, unit: Unit, query: Any, space: World) -> Unit:
        """Change a unit once, or several times that only together may lead further."""
        unit = one_change(rng, unit, space)
        while rng.random() < 0.5:
            unit = one_change(rng, unit, space)
        return unit

    def total(self, query: Any, units: list[Unit], space: World, rng: Rng | None = None) -> Any:
        rows = [np.column_stack([np.full(len(y), u), X]) for u, (X, y) in enumerate(units)]
        X, y = np.concatenate(rows).astype(np.intp), np.concatenate([y for _, y in units])
        order = slice(None) if rng is None else rng.permutation(len(y))
        return query.total(PersonChunks(X[order], y[order], space.shape, 0, space.limits))


def one_change(rng: Rng, unit: Unit, space: World) -> Unit:
    """Add, drop, move or revalue an entry."""
    (rows, values), what = (part.copy() for part in unit), rng.integers(4)
    place = (rng.random(rows.shape[1]) * space.shape[1:]).astype(np.intp)
    if what == 0 or len(values) == 0:
        return np.vstack([rows, place]), np.append(values, rng.choice(space.limits))
    e = int(rng.integers(len(values)))
    if what == 1:
        return np.delete(rows, e, axis=0), np.delete(values, e)
    if what == 2:
        rows[e] = place
    else:
        values[e] = rng.choice([*space.limits, rng.uniform(*space.limits)])
    return rows, values


def unit(rows: Any, values: Any) -> Unit:
    return np.array(rows, dtype=np.intp).reshape(len(values), -1), np.array(values, dtype=float)


# Public parameters


def histogram(rng: Rng, world: World) -> ValueHistogram:
    return ValueHistogram(np.sort(rng.uniform(*world.limits, 9)))


def levels(order: int) -> Callable[[Rng, World], UnitLevels]:
    """Of values, or of these less effects of any size, in a range as wide or wider."""

    def build(rng: Rng, world: World) -> UnitLevels:
        if rng.random() < 0.5:
            return UnitLevels(world.half, order=order)
        return UnitLevels(world.half * rng.uniform(1, 3), about_any(rng, world), order)

    return build


def released_effects(rng: Rng, n: int, size: float) -> SharedEffects:
    return SharedEffects(
        size * rng.standard_normal(n), size**2 * rng.random(n), rng.standard_normal(n), size**2
    )


def about_any(rng: Rng, world: World) -> ReleasedEffects:
    half, size = world.half, world.half * 10 ** rng.uniform(-2, 1)
    return ReleasedEffects(
        tuple(released_effects(rng, n, size) for n in world.shape[1:]),
        half * rng.standard_normal(), half**2 * 10 ** rng.uniform(-4, 1),
    )  # fmt: skip


def row_sums(order: int) -> Callable[[Rng, World], SharedRowSums]:
    """About the means of each unit's entries in other rows, given effects of any size."""

    def build(rng: Rng, world: World) -> SharedRowSums:
        half, about = world.half, about_any(rng, world)
        mode = int(rng.integers(1, len(world.shape)))
        scale, most = half * 10 ** rng.uniform(-3, 1), float(rng.choice([0.3, 0.7, 1.0]))
        most = most if order == 2 else 1.0
        n_rows = world.shape[mode]
        weights = 10 ** rng.uniform(-2, 0, n_rows) if order == 2 and rng.random() < 0.7 else None
        return SharedRowSums(mode, world.shape, about, scale, order, most, weights)

    return build


def concurrences(rng: Rng, world: World) -> RowConcurrences:
    return RowConcurrences(int(rng.integers(1, len(world.shape))), world.shape)


def factor_sums(rng: Rng, world: World) -> SharedFactorSums:
    shared, half, rank = world.shape[1:], world.half, int(rng.integers(1, 4))
    about = ReleasedEffects(
        tuple(released_effects(rng, n, half * 10 ** rng.uniform(-2, 0)) for n in shared),
        half * rng.standard_normal(), half**2 * 10 ** rng.uniform(-4, 0),
    )  # fmt: skip
    components = 10 ** rng.uniform(-1, 1) * rng.standard_normal((math.prod(shared), rank))
    return SharedFactorSums(world.shape, about, components, half * 10 ** rng.uniform(-3, 0))


# Units that are as far apart as the bound allows


# Residuals are values less their mean in other rows.
ABOUT = ReleasedEffects(
    tuple(SharedEffects(np.zeros(n), np.ones(n), np.zeros(n), 1.0) for n in (3, 2)), 0.0, 1.0
)
SUMS = SharedRowSums(1, (8, 3, 2), ABOUT, 0.1)
FIRST = unit([[0, 0]], [1.0])
# Residuals of 0: in one row and in two.
MIDDLE = unit([[0, 0]], [0.0]), unit([[0, 0], [1, 0]], [0.5, 0.5])
OTHERS = unit([[1, 0], [1, 1], [2, 0]], [1.0, 1, -1])
OPPOSITE = unit([[0, 0], [0, 1]], [-1.0, -1])
TWO_ROWS = unit([[0, 0], [1, 0]], [1.0, -1]), unit([[0, 0], [1, 0]], [-1.0, 1])
# Two rows alike in the model: one unit has it larger in the one, one in the other.
FACTORS = SharedFactorSums(
    (8, 2),
    ReleasedEffects((SharedEffects(np.zeros(2), np.zeros(2), np.zeros(2), 1.0),), 0.0, 1e-4),
    np.full((2, 1), 0.1), 1e-3,
)  # fmt: skip
SLOPES = unit([[0], [1]], [1.0, -0.5]), unit([[0], [1]], [-0.5, 1.0])


def case(
    release: str, kind: str, build: Any, query: Any, *ends: Unit,
    attained: tuple[float, float | None] = (1.0, 1.0),
) -> Case:  # fmt: skip
    def extreme(_: Rng) -> Extreme:
        return query, World(query.shape, (-1.0, 1.0)), *ends

    return Case(release, kind, DATA, build, extreme, attained, SUM_SLACK, found=0.8)


def level_case(
    kind: str, values: Any, other: Unit, attained: tuple[float, float | None], order: int = 1
) -> Case:
    space = World((8, 4), (-1.0, 3.0))
    extreme = UnitLevels(space.half, order=order), space, other, unit(range(len(values)), values)
    build = levels(order)
    return Case("unit_levels", kind, DATA, build, lambda _: extreme, attained, SUM_SLACK, found=0.7)


def factor_case(kind: str, build: Any, **options: Any) -> Case:
    # Sums of opposite units are 2 apart; the bound leaves room for their moments.
    attained = 2 / math.sqrt(4 + 2 * MOMENT_WEIGHT**2), None
    query = replace(FACTORS, **options)
    return case("shared_factor_sums", kind, build, query, *SLOPES, attained=attained)


def histogram_case() -> Case:
    """Units that have all of their values in one bin, each in another."""
    space = World((8, 3, 2), (-1.0, 1.0))
    ends = unit([[0, 0], [1, 1], [2, 0]], [-1.0] * 3), unit([[0, 0], [0, 1]], [1.0] * 2)
    found = ValueHistogram(np.linspace(-1, 1, 4)), space, *ends
    return Case("value_histogram", "units", DATA, histogram, lambda _: found, slack=SUM_SLACK)


DATA = PersonData()
LOWEST, NOBODY = unit([0], [-1.0]), (np.empty((0, 1), dtype=np.intp), np.empty(0))
MIXED = [3.0, 3.0, 3.0, -1.0]
CASES = [
    histogram_case(),
    level_case("from end to end", [3.0], LOWEST, (1.0, 8 / 9)),
    # The mean is half the range from its end, or less, and the variance 3/4 of the largest.
    level_case("from an end to a mixture", MIXED, LOWEST, (math.sqrt(45) / 8, 1.0)),
    level_case("from no values to a mixture", MIXED, NOBODY, (math.sqrt(29) / 8, 1.0)),
    level_case("with deviations, from end to end", [3.0], LOWEST, (1.0, None), order=2),
    level_case(
        "with deviations, from an end to a mixture", MIXED, LOWEST, (math.sqrt(57) / 8, None), 2
    ),
    case("shared_row_sums", "other rows", row_sums(2), SUMS, FIRST, OTHERS),
    case("shared_row_sums", "opposite values", row_sums(2), SUMS, FIRST, OPPOSITE),
    case("shared_row_sums", "opposite in two rows", row_sums(2), SUMS, *TWO_ROWS),
    # Over the root of the number of entries the bound of 2 would fail: two in one row count 4.
    case("shared_row_sums", "repeated rows", row_sums(2), SUMS,
         unit([[0, 0], [0, 1]], [1.0, 1]), unit([[1, 0], [1, 1]], [1.0, 1])),
    case("shared_row_sums", "shrunk", row_sums(2), replace(SUMS, most=0.6), FIRST, OTHERS),
    case("shared_row_sums", "without residuals", row_sums(2), replace(SUMS, most=0.6), *MIDDLE),
    case("shared_row_sums", "order 1", row_sums(1), replace(SUMS, order=1), FIRST,
         unit([[1, 0]], [1.0]), attained=(0.0, 1.0)),
    # Of all three rows the two numbers of a unit in L1 are the root of 2.
    case("row_concurrences", "other rows", concurrences, RowConcurrences(1, (8, 3, 2)),
         unit([[0, 0], [0, 1], [1, 0], [1, 1]], np.zeros(4)), unit([[1, 0], [2, 1]], [0.0, 1]),
         attained=(1.0, math.sqrt(2 / 3))),
    factor_case("as they are", factor_sums),
]  # fmt: skip
