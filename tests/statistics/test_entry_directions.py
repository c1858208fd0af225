"""Values times what their row says of directions: against a loop, and what bounds have to know."""

import math

import numpy as np
import pytest

from sktensor_dp.statistics import entry_directions
from sktensor_dp.statistics.entry_directions import EntryDirections
from sktensor_dp.statistics.observed_entries import SUM_SLACK, EntryChunks, IndexSet
from sktensor_dp.statistics.row_cells import RowCells

SHAPE, N, LIMITS = (6, 5), 40, (-1.0, 1.0)


def places(rng):
    return np.column_stack([rng.integers(0, n, N) for n in SHAPE])


def question(rng, mode, X):
    rows, columns = SHAPE[mode], SHAPE[1 - mode]
    return EntryDirections(
        RowCells(IndexSet(X, SHAPE), mode), rng.uniform(-0.5, 0.5, N), rng.random(rows), 0.4, 1.0,
        rng.standard_normal((columns, 3)), rng.uniform(0.2, 3, rows),
    )  # fmt: skip


def looped(query, mode, X, values):
    """Row by row, cell by cell."""
    table = np.zeros((SHAPE[mode], SHAPE[1 - mode]))
    for (u, j), value, prediction in zip(
        X[:, [mode, 1 - mode]], values, query.predictions, strict=True
    ):
        left = (min(max(value, -1.0), 1.0) - prediction) / query.scale
        table[u, j] += math.sqrt(query.weights[u]) * min(max(left, -1.0), 1.0)
    sums = np.zeros_like(query.axes)
    for u, row in enumerate(table):
        for j, own in enumerate(row):
            says = sum(row[k] * query.axes[k] for k in range(len(row)) if k != j)
            length = np.linalg.norm(says)
            sums[j] += own * says * min(1.0, query.lengths[u] / max(length, 1e-300))
    return sums


@pytest.mark.parametrize("mode", [0, 1])
def test_sums_are_those_of_a_loop(seed, mode):
    rng = np.random.default_rng(seed)
    X, values = places(rng), rng.uniform(-1.5, 1.5, N)
    query = question(rng, mode, X)
    total = query.total(EntryChunks(X, values, SHAPE, LIMITS))
    # Numbers of a few units, of 30 cells, each rounded to a step of 2^-43 or less.
    np.testing.assert_allclose(total, looped(query, mode, X, values), atol=1e-11)


def test_what_other_rows_add_is_the_same_to_the_last_bit(seed):
    """Sums over rows are of integers: what one row adds does not round what others did."""
    rng = np.random.default_rng(seed)
    X, values = places(rng), rng.uniform(-1, 1, N)
    query = question(rng, 0, X)

    def total(of):
        return query.total(EntryChunks(X, np.where(of, values, query.predictions), SHAPE, LIMITS))

    first = X[:, 0] < 3
    whole = total(np.full(N, True))
    assert np.array_equal(whole, total(first) + total(~first))
    assert np.array_equal(whole * query._grid, np.rint(whole * query._grid))


def worst(m):
    """The row of the proof: one cell at right angles to m - 1 others."""
    X = np.column_stack([np.zeros(m, dtype=np.intp), np.arange(m)])
    axes = np.zeros((m, 2))
    axes[1:, 0], axes[0, 1] = 1.0, 1.0
    query = EntryDirections(
        RowCells(IndexSet(X, (1, m)), 0), np.zeros(m), np.ones(1), 1.0, 1.0, axes,
        np.array([m - 1.0]),
    )  # fmt: skip
    sides = [np.append(end, np.ones(m - 1)) for end in LIMITS]
    one, other = (query.total(EntryChunks(X, y, (1, m), LIMITS)) for y in sides)
    return query, float(np.linalg.norm(one - other))


@pytest.mark.parametrize("m", [2, 3, 7, 30])
def test_a_row_attains_the_bound(m):
    query, moved = worst(m)
    assert moved == pytest.approx(2 * math.sqrt((m - 1) ** 2 + m - 1), rel=1e-9)
    assert moved <= query.l2_sensitivity <= moved * SUM_SLACK * (1 + 1e-9)


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_repeated_values_of_another_column_attain_both_bounds(repeats):
    """One value goes from end to end beside a column with several at the upper end."""
    X = np.array([[0, 0], *[[0, 1]] * repeats])
    query = EntryDirections(
        RowCells(IndexSet(X, (1, 2)), 0), np.zeros(len(X)), np.ones(1), 1.0, 1.0,
        np.ones((2, 1)), np.array([float(repeats)]),
    )  # fmt: skip
    sides = [np.append(end, np.ones(repeats)) for end in LIMITS]
    one, other = (query.total(EntryChunks(X, y, (1, 2), LIMITS)) for y in sides)
    # Its own column moves by 2 C, the other by as much.
    assert (np.abs(one - other) == 2 * repeats).all()
    for norm, bound in ((2, query.l2_sensitivity), (1, query.l1_sensitivity)):
        moved = float(np.linalg.norm((one - other).ravel(), norm))
        assert moved <= bound <= moved * SUM_SLACK * (1 + 1e-9)


def test_either_part_of_the_bound_alone_would_not_do():
    """What the value's own column moves by, and what the others do."""
    query, moved = worst(2)
    assert moved > 1.4 * 2 * query.lengths[0]
    assert moved > 1.4 * 2 * np.linalg.norm(query.axes[0])


def test_lengths_keep_rows_that_agree_within_the_bound(monkeypatch):
    """Where all cells of a row say the same, what they say is m long and is clipped."""
    m = 20
    X = np.column_stack([np.zeros(m, dtype=np.intp), np.arange(m)])
    known = (RowCells(IndexSet(X, (1, m)), 0), np.zeros(m), np.ones(1), 1.0, 1.0, np.ones((m, 1)))
    query = EntryDirections(*known, np.array([math.sqrt(m)]))
    sides = [np.append(end, np.ones(m - 1)) for end in LIMITS]

    def moved():
        one, other = (query.total(EntryChunks(X, y, (1, m), LIMITS)) for y in sides)
        return float(np.linalg.norm(one - other))

    assert moved() <= query.l2_sensitivity
    monkeypatch.setattr(np, "minimum", lambda one, _: np.ones_like(one))
    assert moved() > 2 * query.l2_sensitivity


def test_no_search_finds_more_than_the_bound(seed):
    """Coordinate ascent over all values of a row, from random ones."""
    rng = np.random.default_rng(seed)
    best = 0.0
    for _ in range(4):
        m = int(rng.integers(2, 6))
        X = np.column_stack([np.zeros(m, dtype=np.intp), np.arange(m)])
        axes = rng.standard_normal((m, 2))
        query = EntryDirections(
            RowCells(IndexSet(X, (1, m)), 0), np.zeros(m), np.ones(1), 1.0, 1.0, axes,
            np.array([np.linalg.norm(axes) * rng.uniform(0.5, 1.5)]),
        )  # fmt: skip

        def moved(row, X=X, query=query, m=m):
            sides = [np.append(row[:-1], end) for end in LIMITS]
            one, other = (query.total(EntryChunks(X, y, (1, m), LIMITS)) for y in sides)
            return float(np.linalg.norm(one - other)) / query.l2_sensitivity

        row = rng.uniform(-1, 1, m)
        for _ in range(3):
            for place in range(m - 1):
                tried = [np.append(np.append(row[:place], x), row[place + 1 :])
                         for x in (-1.0, -0.3, 0.3, 1.0, row[place])]  # fmt: skip
                row = max(tried, key=moved)
        best = max(best, moved(row))
        assert best <= 1.0
    # The length alone is .5 of the bound or so where rows are short.
    assert best > 0.3


def test_a_value_does_not_meet_itself():
    """Two values, of which one is 0: its square would be in a sum with its own part."""
    X = np.array([[0, 0], [0, 1]])
    query = EntryDirections(
        RowCells(IndexSet(X, (1, 2)), 0), np.zeros(2), np.ones(1), 1.0, 1.0, np.ones((2, 1)),
        np.ones(1),
    )  # fmt: skip
    for end in LIMITS:
        # The other value is 0 and says nothing, and is multiplied by what says something.
        assert not query.total(EntryChunks(X, np.array([end, 0.0]), (1, 2), LIMITS)).any()


def test_cells_alone_in_their_row_do_not_move():
    X = np.array([[0, 0], [1, 1], [1, 1]])
    query = EntryDirections(
        RowCells(IndexSet(X, (2, 2)), 0), np.zeros(3), np.ones(2), 1.0, 1.0, np.ones((2, 1)),
        np.ones(2),
    )  # fmt: skip
    assert not query.total(EntryChunks(X, np.ones(3), (2, 2), LIMITS)).any()
    assert query.l2_sensitivity < 1e-6


def test_many_values_leave_fewer_digits(monkeypatch):
    monkeypatch.setattr(entry_directions, "EXACT", 20)
    X = np.array([[u, j] for u in range(50) for j in range(2)])
    query = EntryDirections(
        RowCells(IndexSet(X, (50, 2)), 0), np.zeros(100), np.ones(50), 1.0, 1.0, np.ones((2, 1)),
        np.full(50, 3.0),
    )  # fmt: skip
    total = query.total(EntryChunks(X, np.ones(100), (50, 2), LIMITS))
    assert (total == 50).all()
    assert query._grid * 100 * 3 <= 2**20


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"predictions": np.zeros(3)}, "predictions must have shape"),
        ({"weights": np.full(6, 1.5)}, "weights must hold"),
        ({"lengths": np.full(5, 0.5)}, "lengths must have shape"),
        ({"lengths": np.full(6, -0.5)}, "lengths must hold"),
        ({"axes": np.ones((6, 2))}, "axes must have shape"),
        ({"axes": np.full((5, 2), np.nan)}, "axes must hold"),
        ({"scale": 0.0}, "the scale"),
    ],
)
def test_wrong_public_numbers_are_refused(changed, message):
    X = np.zeros((N, 2), dtype=int)
    given = {
        "cells": RowCells(IndexSet(X, SHAPE), 0), "predictions": np.zeros(N),
        "weights": np.ones(6), "scale": 1.0, "axes": np.ones((5, 2)), "lengths": np.ones(6),
        "half": 1.0, **changed,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        EntryDirections(**given)


def test_tensors_of_more_modes_are_refused():
    with pytest.raises(ValueError, match="mode 0 or 1"):
        RowCells(IndexSet(np.zeros((2, 3), dtype=int), (2, 2, 2)), 0)
    with pytest.raises(ValueError, match="mode 0 or 1"):
        RowCells(IndexSet(np.zeros((2, 2), dtype=int), (2, 2)), 2)
