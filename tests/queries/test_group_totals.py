"""Totals of groups of rows against plain loops over groups.

A group contributes the mean of its rows' contributions, within its limits.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contracts import rows_of_counts, rows_of_samples
from contracts.sensitivities import Case, Floats, Rng

from sktensor_dp.queries.counts import (
    MIN_TOKENS,
    Clip,
    CountChunk,
    CountNorm,
    Norm,
    NormHistogram,
    PairNorm,
    as_counts,
    triangle_of_terms,
)
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.moments import LARGEST_TERMS
from sktensor_dp.queries.query import NORM_SLACK, UnitCount
from sktensor_dp.queries.samples import (
    PowerIterations,
    ProjectedThirdMoments,
    SampleNorm,
    SecondMoments,
    ThirdMomentHistogram,
    ThirdMoments,
    as_samples,
)

CASES = [case for module in (rows_of_counts, rows_of_samples) for case in module.CASES
         if case.data.grouped]  # fmt: skip


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
    if isinstance(norm, SampleNorm):
        return float(np.linalg.norm(as_samples(rows), axis=1).mean())
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


def of_row(kind: Case, query: Any, row: Floats) -> Floats:
    """What a row contributes that is a unit alone."""
    alone = replace(kind.data, grouped=False)  # type: ignore[type-var]
    return np.array(kind.coordinates(alone.total(query, [row[None]], None), query))


def by_loop(kind: Case, query: Any, rows: Floats) -> Floats:
    """What a group contributes: the mean over its rows, within the limits of the group."""
    if isinstance(query, SecondMoments | PowerIterations | ThirdMoments):
        return np.mean([of_row(kind, query, row) for row in rows], axis=0)
    if isinstance(query, ProjectedThirdMoments | ExpectedCounts):
        # Without any limit expected counts have fewer digits.
        nobody = 1e30 if isinstance(query, ExpectedCounts) else math.inf
        found = [of_row(kind, replace(query, limit=nobody), row) for row in rows]
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
    return weight * np.mean([of_row(kind, free, row) for row in rows], axis=0)


def modest(kind: Case, query: Any, rng: Rng, n: int) -> Floats:
    """Rows of which sums can be compared digit by digit."""
    rows = kind.data.pool(rng, query)
    if kind.data.chunk is CountChunk:
        rows = rows[(rows <= 1e3).all(axis=1)]
    return rows[rng.integers(len(rows), size=n)]


@pytest.mark.parametrize("kind", CASES, ids=lambda c: f"{c.release}: {c.kind}")
def test_a_total_is_that_of_a_loop_over_groups(kind, seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        query = kind.build(rng, None)
        if isinstance(query, ExpectedCounts):
            # Norms of single rows take a probability of less than 1e-15 for that.
            query = replace(query, topics=0.9 * query.topics + 0.1 / rows_of_counts.D)
        sizes = rng.integers(1, [2, 2, 2, 4, 9, 9])
        parts = [modest(kind, query, rng, size) for size in sizes]
        found = kind.coordinates(kind.data.total(query, parts, None, rng), query)
        if isinstance(query, UnitCount | NormHistogram | ThirdMomentHistogram):
            assert found.sum() <= len(parts)
            np.testing.assert_array_equal(
                found, sum(kind.part(query, part, None) for part in parts)
            )
            for part in parts:
                check_bin(kind, query, part)
            continue
        expected = sum(by_loop(kind, query, part) for part in parts)
        # Arrays of expected counts have single precision, and so their norms.
        tolerance = 1e-5 if isinstance(query, ExpectedCounts) else 1e-9
        # Terms that cancel are up to 16 times the limit, of which 1e-14 or so are rounding.
        close = tolerance * float(np.abs(expected).max()) + 1e-12 * query.l2_sensitivity
        np.testing.assert_allclose(found, expected, rtol=0, atol=close)


def check_bin(kind: Case, query: Any, rows: Floats) -> None:
    """A group is counted once, in the bin of its own norm, or not at all."""
    one = kind.part(query, rows, None)
    if isinstance(query, UnitCount):
        assert one == 1
        return
    if isinstance(query, NormHistogram):
        if query.min_tokens and not (rows.sum(axis=1) >= query.min_tokens).any():
            assert not one.any()
            return
        norm = norm_of_group(query.norm, rows) * factor(query.clips, rows)
    else:
        as_moments = ProjectedThirdMoments(query.basis, query.embedding, query.residual_weight)
        norm = float(np.mean([np.linalg.norm(of_row(kind, as_moments, row)) for row in rows]))
    assert one.sum() == 1
    near = query.edges * (1 + 1e-7 * np.sign(norm - query.edges))
    if (np.abs(norm / query.edges - 1) > 1e-7).all():
        place = int(np.clip(np.searchsorted(near, norm) - 1, 0, len(one) - 1))
        assert one[place] == 1
