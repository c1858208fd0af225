"""What rounding moves a computed sum by, against the slack that pays for it.

A sensitivity bounds the change of the *computed* sum when one unit is replaced. Where the
terms that are added are larger than what one unit may change, or their number is large, the
last digits of a sum move by more than that unless it is computed with care.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from contracts import rows_of_counts, rows_of_samples

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.data.counts import CountChunk, CountChunks, as_counts
from sktensor_dp.data.entries import IndexSet
from sktensor_dp.data.samples import SampleChunk, SampleChunks, TensorChunk
from sktensor_dp.data.sums import NORM_SLACK, ROWS_AT_ONCE, AccurateSum, split_sum, sums_by_row
from sktensor_dp.data.units import Chunks
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.clips import Clip, CountNorm, PairNorm, WhitenedTripleNorm
from sktensor_dp.queries.count_moments import (
    LARGEST_TERMS,
    PairMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.queries.entries import RowSums
from sktensor_dp.queries.gradients import EntryGradients, Jacobian, RidgeBlock
from sktensor_dp.queries.samples import PowerIterations, TensorPowerIterations
from sktensor_dp.tensor.symmetric import symmetrize, tensor_oracle

N = 20_000


def moved(query, X, Y):
    """How far two data sets move a total, as a share of the claimed sensitivity."""
    totals = [query.total(CountChunk(as_counts(part))) for part in (X, Y)]
    return np.linalg.norm(totals[0] - totals[1]) / query.l2_sensitivity


def neighbours(X, row):
    Y = X.copy()
    Y[0] = row
    return X, Y


@pytest.mark.parametrize(("long", "short"), [(1e3, 1.0), (1e6, 1.0), (1e8, 1.0), (1.0, 1e-7)])
@pytest.mark.parametrize("limit", [1e-9, 1.0, 1e6])
def test_whitened_triples_of_rows_of_any_length_move_by_the_sensitivity(long, short, limit, seed):
    """Documents with the long word once add its cube and take it away: 4e17 times the limit."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((4, 2)) * np.array([long, short, short, short])[:, None]
    X = rng.poisson(1.0, (N, 4)).astype(float)
    X[:, 0] = rng.integers(0, 2, N)
    X[:, 1] += 2
    X[0] = [1, 1, 1, 0]
    query = WhitenedTripleMoments(W, Clip(WhitenedTripleNorm(W), limit))
    for row in ([0, 0, 2, 2], [1, 0, 0, 9], [3, 0, 0, 0]):
        assert moved(query, *neighbours(X, row)) <= 1


def test_what_is_summed_of_whitened_triples_is_bounded_document_by_document(seed):
    """Not the contribution alone: each of the terms it is the difference of."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((5, 3)) * 10 ** rng.uniform(-7, 7, (5, 1))
    limit = 10 ** rng.uniform(-9, 9)
    query = WhitenedTripleMoments(W, Clip(WhitenedTripleNorm(W), limit))
    X = rng.poisson(1.0, (200, 5)) + np.eye(5)[rng.integers(5, size=200)]
    chunk = CountChunk(as_counts(X))
    weight = query.document_weights(chunk, chunk.X @ W)
    sizes = np.linalg.norm(W, axis=1)
    y = np.linalg.norm(chunk.X @ W, axis=1)
    terms = y**3 + 2 * chunk.X @ sizes**3 + 3 * y * (chunk.X @ sizes**2)
    # Norms err by a few units in the last place of double precision.
    assert (weight * terms <= LARGEST_TERMS * limit * (1 + 1e-12)).all()


@pytest.mark.parametrize("limit", [1e-14, 1e-12, 1e-6])
def test_pairs_of_single_words_leave_no_digits_on_the_diagonal(limit, seed):
    """A word that occurs once adds c^2 - c = 0; squares and counts apart lose other digits."""
    rng = np.random.default_rng(seed)
    words = np.array([0])
    X = np.column_stack([np.ones(N), rng.integers(1, 30, N), np.zeros(N)])
    X[::2, 0] = 2
    X[0] = [1, 3, 0]
    # A diagonal that weighs 1: its one entry is the coordinate that gets noise.
    query = PairMoments(Clip(PairNorm(1.0, words), limit), 1.0, (), words)
    for row in ([0, 5, 0], [1, 7, 0], [1, 29, 0], [9, 0, 1]):
        assert moved(query, *neighbours(X, row)) <= 1


# Rows that contracts search, many at a time

LONG = [
    case for case in (*rows_of_counts.CASES, *rows_of_samples.CASES)
    if isinstance(case.data, rows_of_counts.Rows) and not case.data.grouped
]  # fmt: skip


def rounding(total, X, Y):
    """Distance of the totals of neighbours beyond that of the contributions of their first rows."""
    whole, other, one, its = (total(rows) for rows in (X, Y, X[:1], Y[:1]))
    return np.linalg.norm(whole - other - (one - its))


@pytest.mark.parametrize("case", LONG, ids=lambda case: f"{case.release}: {case.kind}")
def test_rounding_of_long_sums_is_far_below_the_slack(case, seed):
    """Of sums of n limits it is 9e-8 of one for n = 20 000, if all errors have one sign."""
    rng = np.random.default_rng(seed)
    query = case.build(rng, None)
    pool = case.data.pool(rng, query)
    X, Y = neighbours(pool[rng.integers(len(pool), size=N)], pool[rng.integers(len(pool))])
    found = rounding(lambda rows: case.data.total(query, [rows], None), X, Y)
    assert found <= 1e-6 * (NORM_SLACK - 1) * query.l2_sensitivity


@pytest.mark.parametrize("gap", [1e-2, 1e-6, 1e-8, 1e-10, 1e-11])
def test_starts_that_are_nearly_alike_magnify_no_rounding(gap, seed):
    """Sums of thousands are not divided by pair products, small multiples of coordinates."""
    rng = np.random.default_rng(seed)
    starts = rng.standard_normal((6, 1)) + gap * rng.standard_normal((6, 4))
    starts /= np.linalg.norm(starts, axis=0)
    query, X = PowerIterations(starts, 1.5), rng.standard_normal((N, 6)) + 5 * starts[:, 0]
    found = rounding(lambda rows: query.total(SampleChunk(rows)), *neighbours(X, -X[0]))
    assert found <= 0.02 * (NORM_SLACK - 1) * query.l2_sensitivity


# Sums over entries


def drifting_values(n):
    """Two data sets of n values, of which each addition rounds up in one and none in the other.

    Their sums stay near a power of 2, one above it and one below, where the spacing of doubles
    is twice and once 2 to the `bits`.
    """
    power = math.frexp(n // 4)[1] - 1
    start = 2 ** (power + 1)  # halves that add up to 2 ** power
    spacing, tiny = 2.0 ** (power - 52), 2.0 ** (power - 58)
    values = np.full(n, 0.5)
    values[start::2] = 0.25 + spacing / 2 + tiny
    values[start + 1 :: 2] = -0.25 - spacing / 2 + tiny
    other = values.copy()
    other[0] = -0.5
    return values, other


def test_sums_of_long_rows_move_by_the_sensitivity():
    """Added one after the other, a million values move by 1.1e-5 more than their range."""
    n = 10**6
    places, factors = IndexSet(np.zeros((n, 2), dtype=np.intp), (1, 1)), [np.ones((1, 1))] * 2
    values = [SimpleNamespace(values=part) for part in drifting_values(n)]
    for query in (
        RowSums(places, np.column_stack([np.ones(n), np.zeros(n)]), 0.5),
        RidgeBlock(places, 0, np.ones((n, 1)), 0.0, 0.5),
        EntryGradients(Jacobian(places, factors), 0.5),
        EntryGradients(Jacobian(places, factors, np.ones((1, 1))), 0.5),
    ):
        one, other = map(query.total, values)
        bound = query.l2_sensitivity if isinstance(query, RidgeBlock) else query.l1_sensitivity
        assert np.abs(one - other).sum() <= bound


# Sums as such


def test_long_sums_are_nearly_exact_in_any_order(seed):
    """Two-sums keep what additions lose; splitting leaves nothing to lose."""
    rng = np.random.default_rng(seed)
    terms = rng.standard_normal((2**15, 2)) * 10 ** rng.uniform(-8, 8, (2**15, 1))
    sizes = np.abs(terms).sum(axis=0)
    for order in (slice(None), rng.permutation(len(terms)), np.argsort(np.abs(terms[:, 0]))):
        mixed = terms[order]
        total = AccurateSum()
        for part in mixed[::16]:
            total.add(part.copy())
        few = np.array([math.fsum(column) for column in mixed[::16].T])
        assert (np.abs(total.value() - few) <= 2.0**-52 * np.abs(few) + 1e-20 * sizes).all()
    rows = rng.integers(0, 2, len(terms))
    found = sums_by_row(rows, terms[:, 0], 3)
    for row in range(3):
        chosen = terms[rows == row, 0]
        assert abs(found[row] - math.fsum(chosen)) <= 1e-16 * np.abs(chosen).sum() + 1e-300
    # Where a sum of as many would overflow there is nothing to split by.
    with np.errstate(over="ignore"):
        assert np.isinf(split_sum(np.sum, np.full(4, 1e308), math.inf))


def test_documents_and_samples_are_read_in_parts_of_their_own_memory(seed):
    """However many there are at once: additions one after the other add up their rounding."""
    X = sp.random(2 * ROWS_AT_ONCE + 5, 4, 0.5, format="csr", random_state=seed)
    X.data = np.ceil(9 * X.data)
    for source, kind in ((X, SampleChunks), (X, CountChunks), (X.toarray(), SampleChunks)):
        whole = kind(source, *source.shape)
        for chunks in (whole, kind([source[:7], source[7:]], *source.shape)):
            parts = [chunk.X for chunk in chunks]
            assert len(parts) == 3
            assert max(part.shape[0] for part in parts) <= ROWS_AT_ONCE
            np.testing.assert_array_equal(sp.vstack(parts).toarray(), X.toarray())
        held, *seen = (
            m.data if sp.issparse(m) else m for m in (source, *(chunk.X for chunk in whole))
        )
        assert all(np.shares_memory(held, part) for part in seen)
        assert next(iter(whole)) is next(iter(whole))  # with the norms it has computed


class Documents(Chunks):
    """Chunks of documents, of which there count as many as one likes."""

    def __init__(self, parts, n_units):
        self.parts, self.n_units = parts, n_units

    def __iter__(self):
        return iter(self.parts)


def session_of(chunks, epsilon):
    plan = ReleasePlan.split(epsilon, 1e-6, {"word_frequencies": 1.0})
    return Session(chunks, plan)


@pytest.mark.parametrize(
    ("n_units", "factor"), [(1000, 1), (2**22, 1), (2**23, 1 + 1e-4), (2**32, 1 + 1023e-4)]
)
def test_beyond_the_units_that_slack_covers_the_sensitivity_grows(n_units, factor):
    """Report and noise both hold what is missing; up to there nothing changes."""
    query = WordFrequencies(Clip(CountNorm(), 2.0))
    part = CountChunk(as_counts(np.eye(3)))
    released = []
    for n in (n_units, 1):
        with (
            pytest.warns(PrivacyLeakWarning),
            unsafe_seeded_noise(0),
            session_of(Documents([part], n), 1.0) as ask,
        ):
            noise = ask(query).value - query.total(part) / n
        (row,) = ask.report().rows
        released.append((row.sensitivity * n, row.sigma, np.abs(noise).max()))
    (large, sigma, noise), (small, sigma_of_one, noise_of_one) = released
    assert small == query.l2_sensitivity
    assert large == pytest.approx(small * factor, rel=1e-14)
    # The same integers on a grid in proportion to the sensitivity; the statistic, which is
    # not, is rounded to it: by 2e-13 of the noise.
    assert noise / noise_of_one == pytest.approx(sigma / sigma_of_one, rel=1e-3)


# A tensor that is the data


@pytest.mark.parametrize("d", [3, 40, 70, 120])
def test_answers_of_large_tensors_err_by_what_their_sensitivity_holds(d, seed):
    """Entries are up to 10^6 times as large as what a neighbour may change."""
    rng = np.random.default_rng(seed)
    tensor = symmetrize(rng.choice([-1.0, 1.0], (d, d, d)))
    tensor *= TensorChunk.largest_ratio / np.abs(tensor).max()
    starts = rng.standard_normal((d, 3))
    starts[:, 0] = 1
    starts /= np.linalg.norm(starts, axis=0)
    query = TensorPowerIterations(starts, 1.0)
    proved = 6 * math.sqrt((starts**4).sum(axis=1).max())
    terms = tensor.astype(np.longdouble)
    exact = np.einsum("ijk,jl,kl->il", terms, starts, starts.astype(np.longdouble))
    error = float(np.linalg.norm(query.total(TensorChunk(tensor_oracle(tensor))) - exact))
    assert query.l2_sensitivity - proved >= 2 * error
    if d < 10:
        assert query.l2_sensitivity == pytest.approx(NORM_SLACK * proved, rel=1e-14)
    if d > 100:
        assert query.l2_sensitivity > NORM_SLACK * proved
