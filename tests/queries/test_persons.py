"""Totals of queries on units of entries against loops over units, in any order and in any parts."""

import math

import numpy as np
import pytest
from person_entries import SHAPE, N, entries

from sktensor_dp.data.person_entries import PersonChunks, PersonReader
from sktensor_dp.queries.person_entries import (
    ReleasedEffects,
    RowConcurrences,
    SharedFactorSums,
    SharedRowSums,
    UnitLevels,
)
from sktensor_dp.tensor.shared_parameters import SharedEffects

# Narrower than what there is, so that values are clamped.
BOUNDS, MIDDLE, HALF = (1.5, 3.5), 2.5, 1.0
LEVEL, SCALE, NOISE = 0.4, 0.8, 0.5


def chunk_of(X, y, **part):
    return PersonChunks(X, y, SHAPE, 0, BOUNDS, **part)


def units_of(X, y):
    """Places and values of each unit that has some, equal coordinates merged by their mean."""
    for u in np.unique(X[:, 0]):
        merged = {}
        for x, v in zip(X[X[:, 0] == u], np.clip(y[X[:, 0] == u], *BOUNDS) - MIDDLE, strict=True):
            merged.setdefault(tuple(x), []).append(v)
        yield np.array(list(merged)), np.array([np.mean(v) for v in merged.values()])


def released(rng):
    effects = tuple(
        SharedEffects(rng.standard_normal(n), rng.random(n), rng.standard_normal(n), 1.0)
        for n in SHAPE[1:]
    )
    return ReleasedEffects(effects, LEVEL, NOISE)


def less_effects(places, values, about):
    return values - sum(of.means[places[:, m]] for m, of in enumerate(about.effects, 1))


def test_unit_levels(seed):
    (X, y), about = entries(seed), released(np.random.default_rng(seed))
    for of, order in ((None, 2), (about, 1)):
        expected = np.zeros(5)
        for places, values in units_of(X, y):
            left = values if of is None else less_effects(places, values, of)
            point = np.array([left.mean(), left.std()])
            mean, deviation = point / max(np.linalg.norm(point) / HALF, 1)
            expected += mean, deviation**2 / HALF, HALF, deviation, mean**2 / (2 * HALF)
        found = UnitLevels(HALF, of, order).total(chunk_of(X, y))
        np.testing.assert_allclose(found, expected[: 2 * order + 1], atol=1e-11)


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize(
    ("order", "most", "weighted"),
    [(1, 1.0, False), *((2, most, by) for most in (1.0, 0.4) for by in (False, True))],
)
def test_shared_row_sums(mode, order, most, weighted, seed):
    """About the mean of a unit's entries in other rows; of one row, in a block of their own."""
    (X, y), about = entries(seed), released(np.random.default_rng(seed))
    expected, left = np.zeros((2, 2, SHAPE[mode])), np.zeros((2, 1))
    of_rows = np.linspace(0.2, 1, SHAPE[mode]) if weighted else None
    for places, values in units_of(X, y):
        residuals, rows = less_effects(places, values, about), places[:, mode]
        is_alone = int((rows == rows[0]).all())
        means = [LEVEL if is_alone else residuals[rows != row].mean() for row in rows]
        residuals = (residuals - means) * (1 if is_alone else 1 - 1 / SHAPE[mode])
        part = np.zeros((2, SHAPE[mode]))
        np.add.at(part[0], rows, np.clip(residuals / SCALE, -1, 1))
        np.add.at(part[1], rows, 1)
        if weighted:
            part *= of_rows
        part[0] /= max(np.linalg.norm(part[0]) / (most * np.linalg.norm(part[1])), 1)
        part /= np.linalg.norm(part[1], order)
        if order == 1 and not is_alone:
            part *= np.sqrt(1 - part[1])
        expected[is_alone] += part
        if order == 1:
            left[is_alone] += part[1].sum() - np.abs(part[0]).sum()
        else:
            left[is_alone] += most - np.sum(part[0] ** 2) / most
    expected = np.hstack([expected.reshape(2, -1), left])
    query = SharedRowSums(mode, SHAPE, about, SCALE, order, most, of_rows)
    assert expected.any(axis=1).all()
    np.testing.assert_allclose(query.total(chunk_of(X, y)), expected, atol=1e-9)


@pytest.mark.parametrize("mode", [1, 2])
def test_row_concurrences_are_the_weights_of_other_rows_in_residuals(mode, seed):
    X, y = entries(seed)
    expected, n_rows = 0, SHAPE[mode]
    for places, _ in units_of(X, y):
        rows, of_entries = places[:, mode], np.zeros((n_rows, n_rows))
        counts = np.bincount(rows, minlength=n_rows)
        for row in rows:
            others = rows[rows != row]
            np.add.at(of_entries[row], others, 1 / np.linalg.norm(counts) / max(len(others), 1))
        expected = expected + of_entries
        assert np.linalg.norm(of_entries) < 1 + 1e-12
    found = RowConcurrences(mode, SHAPE).total(chunk_of(X, y))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_parts_of_whole_units_add_up_and_nothing_adds_nothing(seed):
    """What units without entries would add to a sum, parts would leave out."""
    X, y = entries(seed)
    whole, reader = chunk_of(X, y), PersonReader(SHAPE, 0, BOUNDS)
    pieces = [reader.split(X[rows], y[rows], 4) for rows in np.array_split(np.arange(N), 4)]
    parts = [reader.gather([piece[place] for piece in pieces]) for place in range(4)]
    assert sum(part.n_units for part in parts) == len(np.unique(X[:, 0])) < SHAPE[0]
    assert sum(len(part.values) for part in parts) == len(whole.values) < N
    rng = np.random.default_rng(seed)
    about = released(rng)
    components = rng.standard_normal((math.prod(SHAPE[1:]), 2))
    for query in (
        UnitLevels(HALF, about), SharedFactorSums(SHAPE, about, components, 1.0),
        *(SharedRowSums(mode, SHAPE, about, 1.0) for mode in (1, 2)),
        *(RowConcurrences(mode, SHAPE) for mode in (1, 2)),
    ):  # fmt: skip
        # Rounding of sums of 900 terms of size one.
        found = np.sum([query.total(part) for part in parts], axis=0)
        np.testing.assert_allclose(found, query.total(whole), rtol=0, atol=1e-11)
        assert not query.total(chunk_of(X[:0], y[:0])).any()
