"""Groups of rows: a group contributes the mean of its rows within its limits, to the last bit.

How many rows other groups have is private. Were norms to change with it by a last digit, a
clip would move all groups at once, and a histogram of norms could move by all of them.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from contracts import rows_of_counts, rows_of_samples, rows_of_shares
from internals import unit_norms
from looped_documents import pair_coordinates, sizes_and_terms

from sktensor_dp.data.counts import CountChunk, CountChunks, ShareChunks, as_counts
from sktensor_dp.data.samples import SampleChunk, as_samples
from sktensor_dp.data.sums import NORM_SLACK
from sktensor_dp.data.units import Units
from sktensor_dp.queries.clips import (
    Clip,
    CountNorm,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
    unit_factors,
)
from sktensor_dp.queries.count_moments import LARGEST_TERMS
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.mean_field import MeanField, single_precision
from sktensor_dp.queries.norm_histogram import NormHistogram
from sktensor_dp.queries.query import UnitCount
from sktensor_dp.queries.samples import (
    PowerIterations,
    ProjectedThirdMoments,
    SampleNorm,
    SecondMoments,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.queries.topic_shares import SharesByGroup, SharesNorm

CASES = [case for module in (rows_of_counts, rows_of_samples) for case in module.CASES
         if case.data.grouped]  # fmt: skip

# Against loops


def norm_of_group(norm, rows):
    """By the table of the page on groups."""
    if isinstance(norm, CountNorm):
        means = rows.sum(axis=1) if norm.order == 1 else rows
        return NORM_SLACK * np.linalg.norm(means.mean(axis=0))
    if isinstance(norm, PairNorm):
        each = [pair_coordinates(row, norm.diagonal_weight, norm.words) for row in rows]
        return NORM_SLACK * np.linalg.norm(np.mean(each, axis=0))
    if isinstance(norm, SampleNorm):
        return np.linalg.norm(as_samples(rows), axis=1).mean()
    return np.mean([norm.of(CountChunk(as_counts(row[None])))[0] for row in rows])


def factor(clips, rows):
    return min(
        [1.0, *(clip.limit / max(norm_of_group(clip.norm, rows), clip.limit) for clip in clips)]
    )


def size_of_terms(query, row):
    """Size of the terms of a triple moment, which cancel."""
    part, length = row if query.words is None else row[query.words], row.sum()
    terms = sizes_and_terms(query.basis, part)[1]
    return terms / ((length - 1) * (length - 2)) if length >= 3 else 0.0


def unlimited(clips):
    return tuple(replace(clip, limit=math.inf) for clip in clips)


def of_row(kind, query, row):
    """What a row contributes that is a unit alone."""
    alone = replace(kind.data, grouped=False)
    return np.array(kind.coordinates(alone.total(query, [row[None]], None), query))


def by_loop(kind, query, rows):
    """What a group contributes: the mean over its rows, within the limits of the group."""
    if isinstance(query, SecondMoments | PowerIterations | ThirdMoments):
        return np.mean([of_row(kind, query, row) for row in rows], axis=0)
    if isinstance(query, ProjectedThirdMoments | ExpectedCounts):
        # Without any limit expected counts have fewer digits.
        nobody = 1e30 if isinstance(query, ExpectedCounts) else math.inf
        free = with_prior_of_group(replace(query, limit=nobody), rows)
        found = [of_row(kind, free, row) for row in rows]
        mean = np.mean(found, axis=0)
        norm = NORM_SLACK * np.mean(np.linalg.norm(found, axis=1))
        if isinstance(query, ExpectedCounts):
            norm = norm_of_group(CountNorm(query.order), rows)
            if query.order == 2:
                own = NORM_SLACK * float(np.linalg.norm(mean))
                norm = min(norm, own) if query.scales is None else own
        return mean * query.limit / max(norm, query.limit)
    free = replace(
        query, clip=unlimited((query.clip,))[0], other_clips=unlimited(query.other_clips)
    )
    weight = factor((query.clip, *query.other_clips), rows)
    if hasattr(query, "basis"):
        terms = np.mean([size_of_terms(query, row) for row in rows])
        weight = min(weight, LARGEST_TERMS * query.clip.limit / max(terms, 1e-300))
    return weight * np.mean([of_row(kind, free, row) for row in rows], axis=0)


def with_prior_of_group(query, rows):
    """The query with the prior of documents of a group, in which all of its rows have a part."""
    if not isinstance(query, ExpectedCounts) or query.single or len(rows) == 1:
        return query
    topics, prior = single_precision(query.topics, query.prior)
    fields = [
        MeanField(CountChunk(sp.csr_matrix(own)), topics, prior, query.n_iter, none)
        for own, none in ((np.sum(rows, axis=0)[None], np.zeros(1, bool)), (rows, rows[:, 0] < 0))
    ]
    joined, apart = (field.evidence().sum() for field in fields)
    gamma, weight = fields[0].gamma[:, 0].astype(np.float64), len(rows) if joined > apart else 1
    return replace(query, prior=weight * prior.sum() * gamma / gamma.sum())


def modest(kind, query, rng, n):
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


def check_bin(kind, query, rows):
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
        as_moments = ProjectedThirdMoments(query.basis, query.radius)
        norm = float(np.mean([np.linalg.norm(of_row(kind, as_moments, row)) for row in rows]))
    assert one.sum() == 1
    near = query.edges * (1 + 1e-7 * np.sign(norm - query.edges))
    if (np.abs(norm / query.edges - 1) > 1e-7).all():
        place = int(np.clip(np.searchsorted(near, norm) - 1, 0, len(one) - 1))
        assert one[place] == 1


# To the last bit

LAYOUTS = {"dense": np.asarray, "Fortran": np.asfortranarray, "sparse": sp.csr_matrix}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("d", "k"), [(3, 3), (17, 3), (100, 10), (5000, 3)])
def test_norms_and_projections_of_samples_do_not_depend_on_others(d, k, layout, seed):
    """A last digit more, and norms of all other groups may be in the next bin."""
    rng = np.random.default_rng(seed)
    own, basis = rng.standard_normal((2, d)), rng.standard_normal((d, k))
    query = ProjectedThirdMoments(basis, 1.0, limit=1.0)
    found = set()
    for n in (1, 2, 3, 5, 8, 33, 130, 400):
        others = list(rng.standard_normal((n, d)))
        for place in (0, n):
            X = np.array([*others[:place], *own, *others[place:]])
            starts = np.delete(np.arange(n + 3), place + 1)
            chunk = SampleChunk(as_samples(LAYOUTS[layout](X)), Units(starts))
            squares = chunk.square_norms[place : place + 2]
            found.add(squares.tobytes() + unit_norms(query, chunk)[place].tobytes())
    assert len(found) == 1


D = 9


def corpus(rng, n):
    X = rng.poisson(rng.choice([0.2, 1.0, 4.0], (n, 1)), (n, D))
    X[rng.random(n) < 0.1] = 0
    return X


def one_group(X):
    return CountChunk(as_counts(X), Units(np.array([0, len(X)])))


def test_weights_of_documents_do_not_depend_on_other_groups(seed):
    """By position, by the number of other rows, and by whether others are single rows."""
    rng = np.random.default_rng(seed)
    own = corpus(rng, int(rng.integers(1, 7)))
    words = np.sort(rng.permutation(D)[:6])
    rows = rng.standard_normal((6, 3)) * 10 ** rng.uniform(-3, 1, (6, 1))
    for norm in (
        CountNorm(1), CountNorm(2), PairNorm(0.7), PairNorm(0.7, words), TripleNorm(),
        WhitenedTripleNorm(rows, words),
    ):  # fmt: skip
        clips = [Clip(norm, float(10 ** rng.uniform(-2, 2)))]
        expected = unit_factors(one_group(own), clips), norm.of(one_group(own))
        for others in (1, 2, 40):
            labels = rng.integers(0, max(others // 3, 1), others) * 2
            place = int(rng.integers(0, labels.max() + 2)) * 2 - 1
            # Rows of the group lie anywhere among the others, in their own order.
            slots = np.sort(rng.permutation(others + len(own))[: len(own)])
            X, groups = np.zeros((others + len(own), D)), np.zeros(others + len(own), int)
            mine = np.isin(np.arange(len(X)), slots)
            X[mine], groups[mine] = own, place
            X[~mine], groups[~mine] = corpus(rng, others), labels
            chunks = list(CountChunks(as_counts(X), *X.shape, groups=groups))
            at = int(np.searchsorted(np.unique(groups), place))
            assert np.concatenate([unit_factors(c, clips) for c in chunks])[at] == expected[0]
            assert np.concatenate([norm.of(c) for c in chunks])[at] == expected[1]


@pytest.mark.parametrize("single", [True, False])
def test_expected_counts_of_a_group_do_not_depend_on_others(single, seed):
    """Arrays row by row; others are empty, so that the sum is that of the group alone."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(D, 0.3), 3)
    own = corpus(rng, int(rng.integers(1, 6)))
    for limit, scales in ((0.3, None), (2.0, np.geomspace(0.2, 5, D)), (50.0, None)):
        query = ExpectedCounts(topics, np.full(3, 0.4), single, limit, scales=scales)
        alone = query.total(one_group(own))
        for others in (1, 5, 60):
            X = np.concatenate([np.zeros((others, D)), own])
            groups = np.concatenate([rng.integers(0, others, others), np.full(len(own), others)])
            chunks = CountChunks(as_counts(X), *X.shape, groups=groups)
            np.testing.assert_array_equal(sum(map(query.total, chunks)), alone)


@pytest.mark.parametrize("order", [1, 2])
def test_shares_add_up_over_documents_up_to_a_limit(order, seed):
    rng = np.random.default_rng(seed)
    rows = rows_of_shares.shares(rng)[4:]
    rows, groups = rows[rng.integers(len(rows), size=60)], rng.integers(20, size=60)
    chunks = ShareChunks(sp.csr_matrix(rows), *rows.shape, groups=groups)
    looped = np.zeros((2, rows.shape[1]))
    for group in np.unique(groups):
        added = rows[groups == group].sum(axis=0)
        norm = NORM_SLACK * max(np.linalg.norm(added, order), 1e-9)
        looped += [added * min(1.0, limit / norm) for limit in (1.5, 2.1)]
    looped[1] -= looped[0]
    for sums, query in zip(
        looped, (SharesByGroup(1.5, order), SharesByGroup(2.1, order, 1.5)), strict=True
    ):
        np.testing.assert_allclose(sum(map(query.total, chunks)), sums, atol=1e-12)
    with pytest.raises(ValueError, match="beyond must be from 0"):
        SharesByGroup(1.5, order, 1.5)
    norms = np.concatenate([SharesNorm(order).of(chunk) for chunk in chunks])
    expected = [np.linalg.norm(rows[groups == one].sum(axis=0), order) for one in np.unique(groups)]
    np.testing.assert_allclose(norms, NORM_SLACK * np.array(expected))
