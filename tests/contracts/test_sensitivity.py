"""No neighbours move a release by more than its bound, and some attain it."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from contracts import (
    rows_of_counts,
    rows_of_entries,
    rows_of_mixtures,
    rows_of_persons,
    rows_of_samples,
    rows_of_shares,
    rows_of_texts,
)
from contracts.rows_of_claims import Probe
from contracts.sensitivities import Row, attained, leaves, measured

from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.gradients import RidgeBlock
from sktensor_dp.queries.laws import PIECEWISE

MODULES = (
    *(rows_of_counts, rows_of_shares, rows_of_samples, rows_of_mixtures),
    *(rows_of_entries, rows_of_persons, rows_of_texts),
)
CASES = [case for module in MODULES for case in module.CASES]
ROWS = [
    Row(case, neighbours)
    for case, neighbours in product(CASES, ("replace_one", "add_remove"))
    if neighbours == "replace_one" or leaves(CATALOGUE[case.release].query)
]
# Units of these kinds of raw data may be groups of rows.
GROUPED = {"counts", "samples", "scores", "shares", "units"}

every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def test_every_release_has_a_row_for_every_relation_that_it_supports():
    """And one that states a bound in the norm of each of its laws."""
    for entry in CATALOGUE.values():
        relations = ["replace_one"]
        relations += ["add_remove"] * leaves(entry.query)
        for neighbours, grouped in product(relations, {False, entry.query.family in GROUPED}):
            asked = entry.query.name, neighbours, grouped
            rows = [row for row in ROWS
                    if (row.release, row.neighbours, row.case.data.grouped) == asked]  # fmt: skip
            queries = [row.case.extreme(np.random.default_rng(0))[0] for row in rows]
            assert {type(query) for query in queries} == {entry.query}, asked
            for law in filter(None, (entry.gaussian, entry.pure)):
                stated = [query.sensitivity(law.law.norm, neighbours) for query in queries]
                assert min(stated) < math.inf


@every_row
def test_no_search_finds_neighbours_beyond_the_bound(row, seed):
    """A search that comes nowhere near the extreme pair would prove nothing."""
    found = measured(row, seed)
    assert found.largest <= row.case.most
    if row.release != "unit_count" or row.neighbours == "add_remove":
        assert found.searched >= row.case.found * max(row.case.attained[0], 0.5)


@every_row
def test_some_neighbours_attain_the_bound(row, seed):
    found, case = attained(row, seed), row.case
    if row.release == "unit_count" and row.neighbours == "replace_one":
        assert found == (0, 0)
        return
    query = case.extreme(np.random.default_rng(seed))[0]
    for of_norm, norm, expected in zip(found, ("l2", "l1"), case.attained, strict=True):
        if expected is not None and query.sensitivity(norm, row.neighbours) < math.inf:
            rounding = 1e-9 + rounding_of_coordinates(query)
            assert expected / case.slack - rounding <= of_norm <= case.most


def rounding_of_coordinates(query: Any) -> float:
    """How far rounding can keep the longest ``F^-1 z`` of a row from the sensitivity.

    The inverse M was divided by the largest ``|M z|``, which is off by an epsilon at most, a
    sum of r products by r more, and the norm of r numbers by (r + 3) / 2, all relative to the
    same sums of absolute values. It happens where the length is found, and again in the
    coordinates. Where terms cancel, that is far more than an epsilon of what is left.
    """
    if not isinstance(query, RidgeBlock):
        return 0.0
    inverses, r = (
        np.abs(query._scaled_inverses[1])[query.index_set.rows(query.mode)],
        query.rows.shape[1],
    )
    added = np.einsum("eab,eb->ea", inverses, np.abs(query.rows))
    sizes = np.linalg.norm(added, axis=1).max()
    return float(2 * (1 + r + (r + 3) / 2) * np.finfo(float).eps * sizes)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not case.data.grouped],
    ids=lambda c: f"{c.release}: {c.kind}",
)
def test_coordinates_are_those_of_the_mechanism(case, seed):
    """A law gets these numbers divided by the bound, so a move in them is a move there."""
    rng, entry = np.random.default_rng(seed), CATALOGUE[case.release]
    space = case.data.space(rng)
    query = case.build(rng, space)
    units = case.data.units(rng, query, space, 5)[:5]
    total = case.data.total(query, units, space)
    for law in (entry.gaussian, entry.pure):
        # The piecewise law rounds each value and votes are selected; tests of these laws have their
        # noise.
        if not isinstance(law, Mechanism) or law.law is PIECEWISE:
            continue
        bound = query.l2_sensitivity if law.law.norm == "l2" else query.l1_sensitivity
        if not 0 < bound < math.inf:
            continue
        noise = Probe()
        law.release(total.copy(), bound, PrivacyCost(1.0, 1.0), noise, query)
        assert noise.norm == law.law.norm
        # In the norm that counts: full tensors list what orthonormal coordinates merge.
        order = 2 if law.law.norm == "l2" else 1
        expected = np.linalg.norm(case.coordinates(total, query), order)
        assert np.linalg.norm(np.ravel(noise.seen) * bound, order) == pytest.approx(expected)
        if case.release == "third_moments" and law is entry.pure:
            size = rows_of_samples.D
            assert noise.ambient == size * (size + 1) * (size + 2) // 6


@pytest.mark.parametrize("case", [c for c in CASES if c.release == "ridge_block"],
                         ids=lambda c: f"{c.release}: {c.kind}")  # fmt: skip
def test_a_value_moves_one_row_of_a_factor_and_every_row_attains_its_bound(case, seed):
    """Noise is drawn row by row, and none gets more than its own values need."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        space = case.data.space(rng)
        query = case.build(rng, space)
        mode, found = query.mode, np.zeros(space.places.shape[query.mode])
        hidden = (query.rows != 0).any(axis=1)
        for e, row in enumerate(space.places.rows(mode)):
            low, high = (case.data.total(query, [end], replace(space, place=e))
                         for end in space.limits)  # fmt: skip
            moved = np.linalg.norm((high - low).reshape(len(found), -1), axis=1)
            assert set(np.flatnonzero(moved)) <= {row}
            found[row] = max(found[row], moved[row] / query.l2_sensitivity)
        seen = np.bincount(space.places.rows(mode), hidden, len(found)) > 0
        missing = np.abs(found - np.where(seen, 1 / rows_of_entries.SUM_SLACK, 0))
        assert missing.max() <= 1e-8 + rounding_of_coordinates(query)


def test_half_or_more_of_a_replacement_is_one_unit_more():
    """Half for signed contributions, a root of 2 less for non-negative ones, cubes between."""
    for row in ROWS:
        if row.neighbours == "add_remove" and row.release != "unit_count":
            query = row.case.build(np.random.default_rng(0), row.case.data.space(
                np.random.default_rng(0)))  # fmt: skip
            # A relation in words of its own replaces something.
            assert query.sensitivity("l2", "one entry differs") == query.l2_sensitivity
            ratio = query.l2_sensitivity / query.l2_contribution
            # What all groups of a mixture share, two samples can differ in by less.
            least = 1.0 if getattr(query, "pooled", False) else math.sqrt(2)
            assert least * (1 - 1e-12) <= ratio <= 2 * (1 + 1e-12)
