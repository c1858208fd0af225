"""What a group contributes is the same to the last bit, wherever its rows lie.

How many rows other groups have is private. Were norms to change with it by a last digit, a
clip would move all groups at once, and a histogram of norms could move by all of them.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import unit_norms

from sktensor_dp.queries.counts import (
    Clip,
    CountChunk,
    CountChunks,
    CountNorm,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
    as_counts,
    unit_factors,
)
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.samples import (
    LiftedBall,
    ProjectedThirdMoments,
    SampleChunk,
    as_samples,
)
from sktensor_dp.queries.units import Units

LAYOUTS = {
    "dense": lambda X: X,
    "Fortran": np.asfortranarray,
    "sparse": lambda X: sp.csr_matrix(X),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("d", "k"), [(3, 3), (17, 3), (100, 10), (5000, 3)])
def test_norms_and_projections_of_samples_do_not_depend_on_others(d, k, layout, seed):
    """A last digit more, and norms of all other groups may be in the next bin."""
    rng = np.random.default_rng(seed)
    own, basis = rng.standard_normal((2, d)), rng.standard_normal((d, k))
    query = ProjectedThirdMoments(basis, LiftedBall(1.0), 0.5, limit=1.0)
    found = set()
    for n in (1, 2, 3, 5, 8, 33, 130, 400):
        others = rng.standard_normal((n, d))
        last = SampleChunk(
            as_samples(LAYOUTS[layout](np.concatenate([others, own]))),
            Units(np.append(np.arange(n + 1), n + 2)),
        )
        first = SampleChunk(
            as_samples(LAYOUTS[layout](np.concatenate([own, others]))),
            Units(np.append(0, np.arange(2, n + 3))),
        )
        found.add(last.square_norms[-2:].tobytes() + unit_norms(query, last)[-1:].tobytes())
        found.add(first.square_norms[:2].tobytes() + unit_norms(query, first)[:1].tobytes())
    assert len(found) == 1


D = 9


def corpus(rng, n):
    X = rng.poisson(rng.choice([0.2, 1.0, 4.0], (n, 1)), (n, D))
    X[rng.random(n) < 0.1] = 0
    return X


def count_norms(rng):
    words = np.sort(rng.permutation(D)[:6])
    rows = rng.standard_normal((6, 3)) * 10 ** rng.uniform(-3, 1, (6, 1))
    return [
        CountNorm(1), CountNorm(2), PairNorm(0.7), PairNorm(0.7, words), TripleNorm(),
        TripleNorm(), WhitenedTripleNorm(rows, words),
    ]  # fmt: skip


def units_in(chunks, of_unit):
    """What a function says of every unit of all chunks, in order."""
    return np.concatenate([of_unit(chunk) for chunk in chunks])


def test_weights_of_documents_do_not_depend_on_other_groups(seed):
    """By position, by the number of other rows, and by whether others are single rows."""
    rng = np.random.default_rng(seed)
    own = corpus(rng, int(rng.integers(1, 7)))
    alone = CountChunk(as_counts(own), Units(np.array([0, len(own)])))
    for norm in count_norms(rng):
        clips = [Clip(norm, float(10 ** rng.uniform(-2, 2)))]
        expected = unit_factors(alone, clips), norm.of(alone)
        for others in (1, 2, 40):
            labels = rng.integers(0, max(others // 3, 1), others) * 2
            place = int(rng.integers(0, labels.max() + 2)) * 2 - 1
            # Rows of the group lie anywhere among the others, in their own order.
            slots = np.sort(rng.permutation(others + len(own))[: len(own)])
            X, groups = np.zeros((others + len(own), D)), np.zeros(others + len(own), int)
            mine = np.isin(np.arange(len(X)), slots)
            X[mine], groups[mine] = own, place
            X[~mine], groups[~mine] = corpus(rng, others), labels
            found = CountChunks(as_counts(X), *X.shape, groups=groups)
            at = int(np.searchsorted(np.unique(groups), place))
            assert units_in(found, lambda chunk, c=clips: unit_factors(chunk, c))[at] == expected[0]
            assert units_in(found, norm.of)[at] == expected[1]


@pytest.mark.parametrize("single", [True, False])
def test_expected_counts_of_a_group_do_not_depend_on_others(single, seed):
    """Arrays row by row; others are empty, so that the sum is that of the group alone."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(D, 0.3), 3)
    own = corpus(rng, int(rng.integers(1, 6)))
    for limit, scales in ((0.3, None), (2.0, np.geomspace(0.2, 5, D)), (50.0, None)):
        query = ExpectedCounts(topics, np.full(3, 0.4), single, limit, scales=scales)
        alone = query.total(CountChunk(as_counts(own), Units(np.array([0, len(own)]))))
        for others in (1, 5, 60):
            X = np.concatenate([np.zeros((others, D)), own])
            groups = np.concatenate([rng.integers(0, others, others), np.full(len(own), others)])
            chunks = CountChunks(as_counts(X), *X.shape, groups=groups)
            np.testing.assert_array_equal(sum(map(query.total, chunks)), alone)
