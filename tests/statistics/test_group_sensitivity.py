"""Sensitivities of all releases, where one group of rows is replaced by any others.

A group contributes the mean of its rows' contributions, within its limits. Totals are compared
with plain loops over groups; neighbours are groups of any number of rows of any kind.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import count_queries as counted
import numpy as np
import pytest
import sample_queries as sampled
import scipy.sparse as sp

from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.counts import CountChunk, CountChunks, as_counts
from sktensor_dp.statistics.expected_counts import ExpectedCounts
from sktensor_dp.statistics.moments import LARGEST_TERMS
from sktensor_dp.statistics.norms import (
    MIN_TOKENS,
    NORM_SLACK,
    Clip,
    CountNorm,
    Norm,
    NormHistogram,
    PairNorm,
    triangle_of_terms,
)
from sktensor_dp.statistics.power_iterations import PowerIterations
from sktensor_dp.statistics.row_chunks import Units
from sktensor_dp.statistics.sample_moments import (
    ProjectedThirdMoments,
    SampleChunk,
    SampleChunks,
    SecondMoments,
    ThirdMomentHistogram,
    ThirdMoments,
    as_samples,
)

Rng = np.random.Generator
Floats = np.ndarray


@dataclass(frozen=True)
class Kind:
    """A way to ask for a release, of groups of rows that a chunk or a source holds."""

    name: str
    build: Callable[[Rng], Any]
    pool: Callable[[Rng, Any], Floats]
    coordinates: Callable[[Floats, Any], Floats]
    extreme: Callable[[], tuple[Any, Any, Any]]
    validated: Callable[[Any], Any]
    chunk: type
    chunks: type

    def __str__(self) -> str:
        return self.name

    def of_group(self, query: Any, rows: Floats) -> Floats:
        """What one group contributes."""
        units = Units(np.array([0, len(rows)]))
        total = query.total(self.chunk(self.validated(rows), units))
        return np.array(self.coordinates(total, query))

    def of_row(self, query: Any, row: Floats) -> Floats:
        return np.array(self.coordinates(query.total(self.chunk(self.validated(row[None]))), query))

    def total(self, query: Any, rows: Any, groups: Any) -> Floats:
        """Of all groups, through the chunks that a fit reads."""
        chunks = self.chunks(self.validated(rows), *rows.shape, groups=groups)
        return np.array(self.coordinates(sum(map(query.total, chunks)), query))


KINDS = [
    *(
        Kind(str(case), case.build, lambda rng, _: counted.documents(rng), case.coordinates,
             case.extreme, as_counts, CountChunk, CountChunks)
        for case in counted.CASES
    ),
    *(
        Kind(str(case), case.build, sampled.samples, lambda total, _: np.ravel(total),
             case.extreme, as_samples, SampleChunk, SampleChunks)
        for case in sampled.CASES
    ),
]  # fmt: skip
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def shares(difference: Floats, query: Any) -> float:
    """Of the L2 and of the L1 sensitivity, the larger."""
    square = math.sqrt(float((difference**2).sum()))
    return max(
        square / query.l2_sensitivity, float(np.abs(difference).sum()) / query.l1_sensitivity
    )


def test_every_release_on_rows_is_bounded_here():
    asked = {n for n, e in CATALOGUE.items() if e.family in {"counts", "samples"}}
    assert {kind.name.partition(":")[0] for kind in KINDS} >= asked


# Totals against loops


def pair_coordinates(row: Floats, norm: PairNorm) -> Floats:
    """Pair masses of a document by their definition."""
    length = row.sum()
    if length < 2:
        row = 0 * row
    row = row if norm.words is None else row[norm.words]
    masses = (np.outer(row, row) - np.diag(row)) / max(length - 1, 1)
    above = np.triu_indices(len(row), 1)
    return np.concatenate([2 * masses[above], norm.diagonal_weight * np.diagonal(masses)])


def norm_of_group(norm: Norm, rows: Floats) -> float:
    """By the table of the page on groups."""
    if isinstance(norm, CountNorm) and norm.order == 1:
        return NORM_SLACK * rows.sum(axis=1).mean()
    if isinstance(norm, CountNorm):
        return NORM_SLACK * float(np.linalg.norm(rows.mean(axis=0)))
    if isinstance(norm, PairNorm):
        means = np.mean([pair_coordinates(row, norm) for row in rows], axis=0)
        return NORM_SLACK * float(np.linalg.norm(means))
    return float(np.mean([norm.of(CountChunk(as_counts(row[None])))[0] for row in rows]))


def factor(clips: tuple[Clip, ...], rows: Floats) -> float:
    return min(
        [1.0, *(clip.limit / max(norm_of_group(clip.norm, rows), clip.limit) for clip in clips)]
    )


def size_of_terms(query: Any, rows: Floats) -> float:
    """Mean size of the terms of a triple moment, which cancel."""
    found = []
    for row in rows:
        part = row if query.words is None else row[query.words]
        lengths, length = np.linalg.norm(query.basis, axis=1), row.sum()
        terms = triangle_of_terms((part @ query.basis)[None], part @ lengths**2, part @ lengths**3)
        counted_ = length >= MIN_TOKENS
        found.append(float(terms[0]) / ((length - 1) * (length - 2)) if counted_ else 0.0)
    return float(np.mean(found))


def unlimited(clips: tuple[Clip, ...]) -> tuple[Clip, ...]:
    return tuple(replace(clip, limit=math.inf) for clip in clips)


def by_loop(kind: Kind, query: Any, rows: Floats) -> Floats:
    """What a group contributes: the mean over its rows, within the limits of the group."""
    if isinstance(query, SecondMoments | PowerIterations | ThirdMoments):
        return np.mean([kind.of_row(query, row) for row in rows], axis=0)
    if isinstance(query, ProjectedThirdMoments | ExpectedCounts):
        # Without any limit expected counts have fewer digits.
        nobody = 1e30 if isinstance(query, ExpectedCounts) else math.inf
        found = [kind.of_row(replace(query, limit=nobody), row) for row in rows]
        mean = np.mean(found, axis=0)
        norm = NORM_SLACK * np.mean(np.linalg.norm(found, axis=1))
        if isinstance(query, ExpectedCounts):
            norm = norm_of_group(CountNorm(query.order), rows)
            if query.order == 2:
                own = NORM_SLACK * float(np.linalg.norm(mean))
                norm = min(norm, own) if query.scales is None else own
        return mean * query.limit / max(norm, query.limit)
    if hasattr(query, "clip"):
        clips = (query.clip, *query.clips)
        free = replace(query, clip=unlimited((query.clip,))[0], clips=unlimited(query.clips))
        weight = factor(clips, rows)
    else:
        clips = query.clips
        # Of clips that are equal in all else the first stands for the norm of the same whitener.
        free = replace(query, clips=unlimited(clips))
        most = LARGEST_TERMS * clips[0].limit
        weight = min(factor(clips, rows), most / max(size_of_terms(query, rows), most))
    return weight * np.mean([kind.of_row(free, row) for row in rows], axis=0)


def modest(kind: Kind, query: Any, rng: Rng, n: int) -> Floats:
    """Rows of which sums can be compared digit by digit."""
    rows = kind.pool(rng, query)
    if kind.chunk is CountChunk:
        rows = rows[(rows <= 1e3).all(axis=1)]
    return rows[rng.integers(len(rows), size=n)]


def grouped_rows(kind: Kind, query: Any, rng: Rng) -> tuple[Floats, Floats]:
    """Rows and labels in any order; several groups of one row, and some of many."""
    n = int(rng.integers(8, 30))
    labels = np.concatenate([[0, 1, 2], rng.integers(-3, 9, n) ** 3])
    return modest(kind, query, rng, n + 3), labels


@pytest.mark.dealt(4)
@every_kind
def test_a_total_is_that_of_a_loop_over_groups(kind, seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        query = kind.build(rng)
        if isinstance(query, ExpectedCounts):
            # Norms of single rows take a probability of less than 1e-15 for that.
            query = replace(query, topics=0.9 * query.topics + 0.1 / counted.D)
        rows, labels = grouped_rows(kind, query, rng)
        found = kind.total(query, rows, labels)
        parts = [rows[labels == label] for label in np.unique(labels)]
        if isinstance(query, NormHistogram | ThirdMomentHistogram):
            assert found.sum() <= len(parts)
            np.testing.assert_array_equal(found, sum(kind.of_group(query, part) for part in parts))
            for part in parts:
                check_bin(kind, query, part)
            continue
        expected = sum(by_loop(kind, query, part) for part in parts)
        # Arrays of expected counts have single precision, and so their norms.
        tolerance = 1e-5 if isinstance(query, ExpectedCounts) else 1e-9
        # Terms that cancel are up to 16 times the limit, of which 1e-14 or so are rounding.
        close = tolerance * float(np.abs(expected).max()) + 1e-12 * query.l2_sensitivity
        np.testing.assert_allclose(found, expected, rtol=0, atol=close)


def check_bin(kind: Kind, query: Any, rows: Floats) -> None:
    """A group is counted once, in the bin of its own norm, or not at all."""
    one = kind.of_group(query, rows)
    if isinstance(query, NormHistogram):
        if not (rows.sum(axis=1) >= query.min_tokens).any():
            assert not one.any()
            return
        norm = norm_of_group(query.norm, rows) * factor(query.clips, rows)
    else:
        as_moments = ProjectedThirdMoments(query.basis, query.embedding, query.residual_weight)
        norm = float(np.mean([np.linalg.norm(kind.of_row(as_moments, row)) for row in rows]))
    assert one.sum() == 1
    near = query.edges * (1 + 1e-7 * np.sign(norm - query.edges))
    if (np.abs(norm / query.edges - 1) > 1e-7).all():
        place = int(np.clip(np.searchsorted(near, norm) - 1, 0, len(one) - 1))
        assert one[place] == 1


# Neighbours


def groups_of(kind: Kind, query: Any, rng: Rng) -> list[Floats]:
    """Single rows, repetitions, rows that differ most, and many of all kinds."""
    pool = kind.pool(rng, query)
    groups = [pool[[place]] for place in rng.integers(len(pool), size=8)]
    groups += [np.repeat(group, 3, axis=0) for group in groups[:3]]
    groups += [pool, pool[::-1], np.concatenate([pool[:1]] * 40 + [pool[-1:]])]
    groups += [pool[rng.integers(len(pool), size=size)] for size in (2, 2, 3, 5, 9)]
    return groups


@pytest.mark.dealt(4)
@every_kind
def test_no_groups_are_farther_apart_than_the_sensitivity(kind, seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        query = kind.build(rng)
        found = [kind.of_group(query, group) for group in groups_of(kind, query, rng)]
        assert np.isfinite(found).all()
        assert max(shares(one - other, query) for one, other in combinations(found, 2)) <= 1


@pytest.mark.dealt(4)
@every_kind
def test_totals_of_neighbouring_groups(kind, seed):
    """Whole data sets, of which one group is replaced by rows of any number, in any place."""
    rng = np.random.default_rng(seed)
    for form in (np.asarray, sp.csr_array):
        query = kind.build(rng)
        parts = groups_of(kind, query, rng)
        totals = []
        for one in (parts[0], *groups_of(kind, query, rng)[-4:]):
            labels = np.repeat(np.arange(len(parts)), [len(one), *map(len, parts[1:])])
            order = rng.permutation(len(labels))
            rows = np.concatenate([one, *parts[1:]])[order]
            totals.append(kind.total(query, form(rows), labels[order]))
        assert max(shares(one - totals[0], query) for one in totals[1:]) <= 1


def climb(kind: Kind, query: Any, rng: Rng, n_steps: int) -> float:
    """Largest share of a bound that hill climbing over groups finds, from some pairs on."""
    pool = np.clip(kind.pool(rng, query), -1e6, 1e6)
    pair = [pool[rng.integers(len(pool), size=size)] for size in (1, 2)]
    first = [kind.of_row(query, row) for row in pool]
    apart = {
        (i, j): shares(first[i] - first[j], query) for i, j in combinations(range(len(pool)), 2)
    }
    worst = max(apart, key=apart.__getitem__)
    pair = [pool[[place, place]] for place in worst]
    found = [kind.of_group(query, part) for part in pair]
    best = shares(found[0] - found[1], query)
    for _ in range(n_steps):
        side = int(rng.integers(2))
        rows = moved(pair[side], pool, rng, kind.chunk is CountChunk)
        array = kind.of_group(query, rows)
        share = shares(array - found[1 - side], query)
        if share >= best:
            best, pair[side], found[side] = share, rows, array
    return best


def moved(rows: Floats, pool: Floats, rng: Rng, whole: bool) -> Floats:
    """A group near another one: a row changed, added, repeated, or left out."""
    rows, move, place = rows.copy(), int(rng.integers(4)), int(rng.integers(len(rows)))
    if move == 0:
        return np.concatenate([rows, pool[[rng.integers(len(pool))]]])
    if move == 1 and len(rows) > 1:
        return np.delete(rows, place, axis=0)
    if move == 2:
        return np.concatenate([rows, rows[[place]]])
    column = int(rng.integers(rows.shape[1]))
    value = rows[place, column]
    change = rng.choice([1.0, value, -value / 2]) if whole else value * rng.standard_normal()
    rows[place, column] = max(np.floor(value + change), 0) if whole else value + change
    return rows


@pytest.mark.dealt(2)
@every_kind
def test_no_search_finds_groups_beyond_the_sensitivity(kind, seed):
    rng = np.random.default_rng(1000 + seed)
    found = [climb(kind, query, rng, 40) for query in (kind.build(rng), kind.extreme()[0])]
    assert max(found) <= 1


@every_kind
def test_groups_attain_what_rows_attain(kind):
    """As many rows as one likes, all of them alike; less what is reserved for rounding."""
    query, *ends = kind.extreme()
    one, other = (
        np.tile(np.array(row, dtype=float), (m, 1)) for row, m in zip(ends, (3, 7), strict=True)
    )
    share = shares(kind.of_group(query, one) - kind.of_group(query, other), query)
    single = [kind.of_row(query, np.array(row, dtype=float)) for row in ends]
    assert share == pytest.approx(shares(single[0] - single[1], query), rel=1e-12)
    assert NORM_SLACK**-3 - 1e-12 <= share <= 1


@pytest.mark.dealt(4)
@every_kind
def test_the_busiest_group_may_have_any_number_of_rows(kind, seed):
    """One row, ten thousand, or more than are added up at once: the others stay as they are."""
    rng = np.random.default_rng(seed)
    query = kind.build(rng)
    pool, others = kind.pool(rng, query), kind.pool(rng, query)[:20]
    places, totals = rng.integers(0, 7, len(others)), []
    for size in (1, 10_000, 20_000):
        rows = np.concatenate([pool[rng.integers(len(pool), size=size)], others])
        labels = np.concatenate([np.full(size, 7), places])
        totals.append(kind.total(query, rows, labels))
    assert max(shares(one - other, query) for one, other in combinations(totals, 2)) <= 1
