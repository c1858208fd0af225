"""Small units of random entries, and changes of them that a search tries."""

from typing import Any

import numpy as np
from small_entries import Floats, Rng, World, raw

from sktensor_dp.statistics.observed_entries import SliceChunks

# Coordinates in the shared modes, and values.
Pair = tuple[Any, Any]


def some_unit(rng: Rng, world: World) -> tuple[Floats, Floats]:
    """Empty, small, large, all in one row, with repeated coordinates."""
    n = int(rng.choice([0, 1, 2, 5, 30]))
    rows = (rng.random((n, len(world.shape) - 1)) * world.shape[1:]).astype(np.intp)
    if n and rng.random() < 0.4:
        rows[:, int(rng.integers(rows.shape[1]))] = 0
    values = raw(rng, n, world.limits)
    if rng.random() < 0.4:
        values[:] = rng.choice(world.limits)
    return rows, values


def slices(units: list[Pair], world: World) -> SliceChunks:
    rows = [np.column_stack([np.full(len(y), u), X]) for u, (X, y) in enumerate(units)]
    coordinates = np.concatenate(rows).astype(np.intp)
    values = np.concatenate([y for _, y in units])
    return SliceChunks(coordinates, values, world.shape, 0, world.limits)


def one_change(rng: Rng, pair: Pair, world: World) -> Pair:
    """A unit with an entry added, dropped, moved or revalued."""
    rows, values = (part.copy() for part in pair)
    what = rng.integers(4)
    if what == 0 or len(values) == 0:
        rows = np.vstack([rows, (rng.random(rows.shape[1]) * world.shape[1:]).astype(np.intp)])
        return rows, np.append(values, rng.choice(world.limits))
    e = int(rng.integers(len(values)))
    if what == 1:
        return np.delete(rows, e, axis=0), np.delete(values, e)
    if what == 2:
        rows[e] = (rng.random(rows.shape[1]) * world.shape[1:]).astype(np.intp)
    else:
        values[e] = rng.choice([*world.limits, rng.uniform(*world.limits)])
    return rows, values


def changed_unit(rng: Rng, pair: Pair, world: World) -> Pair:
    """A unit after one change, or after several that only together may lead further."""
    pair = one_change(rng, pair, world)
    while rng.random() < 0.5:
        pair = one_change(rng, pair, world)
    return pair
