"""Sensitivities of all releases on values of entries: never exceeded, and attained.

Neighbours differ in one value; coordinates are public.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_entries import Floats, Recorder, Rng, bounds, raw, shares

from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.entry_directions import EntryDirections
from sktensor_dp.statistics.entry_pairs import EntryPairs
from sktensor_dp.statistics.entry_queries import (
    Entries,
    EntryGradients,
    FactorSums,
    RidgeBlock,
    RowSums,
)
from sktensor_dp.statistics.jacobians import CPJacobian, TuckerJacobian
from sktensor_dp.statistics.observed_entries import SUM_SLACK, EntryChunks, IndexSet
from sktensor_dp.statistics.row_cells import RowCells
from sktensor_dp.statistics.row_frames import RowFrames

HERE = {name: entry for name, entry in CATALOGUE.items() if entry.family == "entries"}


def index_set(rng: Rng) -> IndexSet:
    """Few entries to many, in two to four modes, crowded rows and repeated entries."""
    shape = tuple(int(n) for n in rng.integers(1, 7, rng.integers(2, 5)))
    places = (rng.random((rng.integers(1, 40), len(shape))) ** 2 * shape).astype(np.intp)
    return IndexSet(places, shape)


def derivatives(rng: Rng, n: int) -> Floats:
    """Rows of very different size, alike, opposite, and zero."""
    rows = rng.standard_normal((n, rng.integers(1, 5)))
    rows *= 10 ** rng.uniform(-4, 2, (n, 1)) * (rng.random((n, 1)) < 0.9)
    rows[rng.integers(n)] = -rows[0]
    return rows


def weights(rng: Rng, places: IndexSet) -> Floats:
    if rng.random() < 0.5:
        return places.balanced_weights(rng.uniform(0, 1))
    return rng.standard_normal(places.coordinates.shape) * 10 ** rng.uniform(-3, 2)


def frames(rng: Rng, places: IndexSet, kinds: tuple[str, ...]) -> RowFrames:
    rows = derivatives(rng, places.n_entries)
    ridge = 10 ** rng.uniform(-6, 2, rows.shape[1]) * (rng.random() < 0.8)
    return RowFrames(places, int(rng.integers(len(places.shape))), rows, ridge, kinds)


def jacobian(rng: Rng, places: IndexSet) -> CPJacobian | TuckerJacobian:
    offsets, size = bool(rng.integers(2)), 10 ** rng.uniform(-1, 1)
    ranks = rng.integers(1, 4, len(places.shape))
    if rng.random() < 0.5:
        ranks[:] = ranks[0]
        factors = [size * rng.standard_normal((n, ranks[0])) for n in places.shape]
        return CPJacobian(places, factors, offsets)
    factors = [size * rng.standard_normal((n, r)) for n, r in zip(places.shape, ranks, strict=True)]
    return TuckerJacobian(places, factors, rng.standard_normal(tuple(ranks)), offsets)


def pairs(rng: Rng, places: IndexSet, half: float) -> EntryPairs:
    """Of the first two modes; predictions leave room for residuals from -1 to 1."""
    mode, scale = int(rng.integers(2)), half * rng.uniform(0.1, 0.9)
    weights = np.where(rng.random(places.shape[mode]) < 0.3, 0.0, 1.0)
    weights *= rng.random(places.shape[mode]) ** 2
    predictions = rng.uniform(-1, 1, places.n_entries) * (half - scale) * 0.99
    return EntryPairs(RowCells(places, mode), predictions, weights, scale, half)


def directions(rng: Rng, places: IndexSet, half: float) -> EntryDirections:
    """With axes and lengths of very different sizes."""
    pairs_of, mode = pairs(rng, places, half), int(rng.integers(2))
    n_rows, n_columns = places.shape[mode], places.shape[1 - mode]
    weights = np.where(rng.random(n_rows) < 0.3, 0.0, rng.random(n_rows) ** 2)
    axes = 10 ** rng.uniform(-3, 3) * rng.standard_normal((n_columns, rng.integers(1, 4)))
    axes *= 10 ** rng.uniform(-2, 0, (n_columns, 1)) * (rng.random((n_columns, 1)) < 0.9)
    lengths = 10 ** rng.uniform(-3, 3) * rng.random(n_rows)
    return EntryDirections(
        RowCells(places, mode), pairs_of.predictions, weights, pairs_of.scale, half, axes, lengths
    )


ENTRY_CASES: dict[str, tuple[str, Callable[[Rng, IndexSet, float], Any]]] = {
    "entries": ("entries", lambda rng, places, half: Entries(half)),
    "row_sums": (
        "row_sums", lambda rng, places, half: RowSums(places, weights(rng, places), half)
    ),
    **{
        f"factor_sums: {kind}": (
            "factor_sums",
            lambda rng, places, half, kinds=kinds: FactorSums(frames(rng, places, kinds), half),
        )
        for kind, kinds in {
            "any": ("isotropic", "leverage", "solution"),
            "isotropic": ("isotropic",),
            "leverage": ("leverage",),
        }.items()
    },
    "ridge_block": (
        "ridge_block",
        lambda rng, places, half: RidgeBlock(frames(rng, places, ("solution",)), half),
    ),
    "entry_pairs": ("entry_pairs", pairs),
    "entry_directions": ("entry_directions", directions),
    "entry_gradients": (
        "entry_gradients",
        lambda rng, places, half: EntryGradients(jacobian(rng, places), half),
    ),
}  # fmt: skip

every_entry_case = pytest.mark.parametrize("case", ENTRY_CASES)
# Of directions a value from end to end is as bad as any in some rows alone, of which
# test_entry_directions.py has one.
every_attained_case = pytest.mark.parametrize(
    "case", [case for case in ENTRY_CASES if case != "entry_directions"]
)


def entry_query(case: str, rng: Rng) -> tuple[Any, IndexSet, tuple[float, float]]:
    places, limits = index_set(rng), bounds(rng)
    if case in ("entry_pairs", "entry_directions"):
        places = IndexSet(places.coordinates[:, :2], places.shape[:2])
    chunk = EntryChunks(places.coordinates, np.zeros(places.n_entries), places.shape, limits)
    return ENTRY_CASES[case][1](rng, places, chunk.half), places, limits


def moves(query: Any, places: IndexSet, limits: Any, values: Floats, others: Floats) -> Floats:
    """What replacing each value, one at a time, does to the total."""

    def total(y: Floats) -> Floats:
        return query.total(EntryChunks(places.coordinates, y, places.shape, limits))

    whole, found = total(values), []
    for e in range(len(values)):
        neighbour = values.copy()
        neighbour[e] = others[e]
        found.append(total(neighbour) - whole)
    return np.array(found)


def maxima(places: IndexSet, mode: int, terms: Floats) -> Floats:
    """Largest of numbers >= 0 over the entries of each row of a mode."""
    result = np.zeros(places.shape[mode])
    np.maximum.at(result, places.rows(mode), terms)
    return result


def rounding_of_coordinates(frames: RowFrames) -> Floats:
    """How far rounding can keep the longest ``F^-1 z`` of each row from the sensitivity.

    The inverse M was divided by the largest ``|M z|``, which is off by an epsilon at most, a
    sum of r products by r more, and the norm of r numbers by (r + 3) / 2, all relative to the
    same sums of absolute values. It happens where the length is found, and again in the
    coordinates. Where terms cancel, that is far more than an epsilon of what is left.
    """
    mode, r = frames.mode, frames.rows.shape[1]
    inverses = np.abs(frames.inverses)[frames.index_set.rows(mode)]
    added = np.einsum("eab,eb->ea", inverses, np.abs(frames.rows))
    sizes = maxima(frames.index_set, mode, np.linalg.norm(added, axis=1))
    return 2 * (1 + r + (r + 3) / 2) * np.finfo(float).eps * sizes


def test_every_release_on_entries_is_bounded_here():
    assert {name for name, _ in ENTRY_CASES.values()} == set(HERE)


@pytest.mark.dealt(2)
@every_entry_case
def test_no_value_moves_a_total_beyond_the_sensitivity(case, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        query, places, limits = entry_query(case, rng)
        values, others = (raw(rng, places.n_entries, limits) for _ in range(2))
        for moved in moves(query, places, limits, values, others):
            assert max(shares(moved, query)) <= 1 + 1e-12 * (case == "entries")


@every_attained_case
def test_the_worst_value_attains_the_sensitivity(case, seed):
    """From one end of the range to the other: what is left is what SUM_SLACK keeps for rounding."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        query, places, limits = entry_query(case, rng)
        ends = (np.full(places.n_entries, end) for end in limits)
        found = [shares(moved, query) for moved in moves(query, places, limits, *ends)]
        l2, l1 = np.max(found, axis=0)
        slack = 1 if case == "entries" else SUM_SLACK
        framed = hasattr(query, "frames")
        rounding = 1e-8 + (rounding_of_coordinates(query.frames).max() if framed else 0.0)
        # Rows that hold nothing but zeros release nothing, at any sensitivity.
        if l2 > 0:
            assert l2 == pytest.approx(1 / slack, abs=rounding)
            assert l1 == pytest.approx(1 / slack if math.isfinite(query.l1_sensitivity) else 0,
                                       abs=1e-8)  # fmt: skip


@pytest.mark.parametrize("case", ["factor_sums: any", "ridge_block"])
def test_every_row_of_a_factor_attains_the_sensitivity(case, seed):
    """Noise is scaled row by row: none gets more than its own values need."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        query, places, limits = entry_query(case, rng)
        ends = (np.full(places.n_entries, end) for end in limits)
        found = [shares(moved, query)[0] for moved in moves(query, places, limits, *ends)]
        largest = maxima(places, query.frames.mode, np.array(found))
        hidden = (query.frames.rows != 0).any(axis=1).astype(float)
        seen = maxima(places, query.frames.mode, hidden) > 0
        missing = np.abs(largest - np.where(seen, 1 / SUM_SLACK, 0))
        assert (missing <= 1e-8 + rounding_of_coordinates(query.frames)).all()


@pytest.mark.parametrize("case", ["factor_sums: any", "ridge_block"])
def test_a_value_moves_one_row_of_a_factor(case, seed):
    """What noise that is drawn row by row rests on."""
    rng = np.random.default_rng(seed)
    query, places, limits = entry_query(case, rng)
    ends = (np.full(places.n_entries, end) for end in limits)
    for e, moved in enumerate(moves(query, places, limits, *ends)):
        rows = np.flatnonzero((moved != 0).any(axis=1))
        assert set(rows) <= {places.rows(query.frames.mode)[e]}


@every_entry_case
def test_coordinates_are_those_of_the_mechanism(case, seed):
    """A law gets these numbers divided by the sensitivity, so a move in them is a move there."""
    rng, entry = np.random.default_rng(seed), CATALOGUE[ENTRY_CASES[case][0]]
    query, places, limits = entry_query(case, rng)
    values = raw(rng, places.n_entries, limits)
    assert isinstance(query, entry.query)
    total = query.total(EntryChunks(places.coordinates, values, places.shape, limits))
    for law in (entry.gaussian, entry.pure):
        if law.name == "piecewise":
            continue  # it rounds each value: tested with its law
        bound = query.l2_sensitivity if law.norm == "l2" else query.l1_sensitivity
        noise = Recorder()
        law.apply(total, bound, 1.0, noise, query)
        norm, seen = noise.seen
        assert norm == law.norm
        np.testing.assert_allclose(np.ravel(seen) * bound, np.ravel(total), rtol=1e-12)
        if "by rows" in law.name:
            assert seen.shape == query.frames.frames.shape[:2]
