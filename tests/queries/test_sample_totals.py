"""Queries on samples against loops over samples that follow the definitions.

With z = (min(1, R / |x|) x, c), up to NORM_SLACK, a sample adds z z', the coordinates of
y (x) y (x) y and of rho s y with y = B'z and s its squared distance from the span of B, each
times its weight, or z (z'u)^2 for every start u.
"""

import math
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.privacy.curators.samples import SampleCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries import samples as samples
from sktensor_dp.queries.samples import (
    LARGEST_ENTRY,
    NORM_SLACK,
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SampleChunk,
    SampleChunks,
    SecondMoments,
    ThirdMomentHistogram,
    ThirdMoments,
    as_samples,
)

D, RADIUS = 6, 1.5
FORMATS = {
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "coo_array": sp.coo_array,
    "csc_array": sp.csc_array,
    "list": lambda X: X.tolist(),
    "Fortran": np.asfortranarray,
    "columns of more": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


def data(seed, n=40):
    """Some rows outside the ball, some of zeros, one enormous."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * 10 ** rng.uniform(-1, 1, (n, 1))
    X[rng.random((n, D)) < 0.3] = 0
    X[:2] = 0
    X[2] = 1e300 * np.sign(rng.standard_normal(D))
    X[3] = RADIUS * np.eye(D)[0]
    return X


def embedded(X, offset):
    rows = []
    for x in np.clip(X, -LARGEST_ENTRY, LARGEST_ENTRY):
        x = x * (RADIUS / max(NORM_SLACK * np.linalg.norm(x), RADIUS))
        rows.append(np.append(x, offset) if offset else x)
    return np.array(rows)


def cube(z):
    return np.einsum("a,b,c->abc", z, z, z)


def coordinates(tensor):
    """Unique entries times the root of their multiplicity."""
    triples = combinations_with_replacement(range(len(tensor)), 3)
    return np.array([tensor[t] * math.sqrt(len(set(permutations(t)))) for t in triples])


def parts(z, basis, rho):
    """y (x) y (x) y as coordinates, with rho s y."""
    y = basis.T @ z
    seen = coordinates(np.einsum("abc,ai,bj,ck->ijk", cube(z), basis, basis, basis))
    if rho == 0:
        return seen
    residual = z - basis @ np.linalg.lstsq(basis, z, rcond=None)[0]
    return np.append(seen, rho * (residual @ residual) * y)


def looped(query, X):
    if isinstance(query, PowerIterations):
        z = embedded(X, 0.0)
        return np.array([(z * (z @ u)[:, None] ** 2).sum(axis=0) for u in query.starts.T]).T
    z = embedded(X, query.embedding.offset)
    if isinstance(query, SecondMoments):
        return sum(np.outer(row, row) for row in z)
    each = [parts(row, query.basis, query.residual_weight) for row in z]
    if isinstance(query, ThirdMomentHistogram):
        norms = [np.linalg.norm(part) for part in each]
        inner = query.edges[1:-1]
        return np.bincount([(norm > inner).sum() for norm in norms], minlength=len(inner) + 1)
    weights = [
        query.limit / max(NORM_SLACK * np.linalg.norm(part), query.limit)
        if math.isfinite(query.limit) else 1.0
        for part in each
    ]  # fmt: skip
    return sum(weight * part for weight, part in zip(weights, each, strict=True))


def answered(query, X):
    """A total in the form that the loop gives it."""
    total = query.total(SampleChunk(as_samples(X)))
    return query.answers(total) if isinstance(query, PowerIterations) else total


def unit_columns(rng, n):
    columns = rng.standard_normal((D, n))
    return columns / np.linalg.norm(columns, axis=0)


def queries(seed):
    rng = np.random.default_rng(seed)
    for offset in (0.0, 0.7 * RADIUS):
        of = LiftedBall(RADIUS, offset)
        size = of.dimension(D)
        yield SecondMoments(of)
        for rho in (0.0, 0.8):
            basis = rng.standard_normal((size, 3))
            yield ProjectedThirdMoments(basis, of, rho)
            yield ProjectedThirdMoments(basis, of, rho, limit=0.5)
            yield ThirdMomentHistogram(basis, of, rho, edges=np.array([0.01, 0.5, 2.0, 4.0]))
            frame = np.linalg.qr(rng.standard_normal((size, 4)))[0]
            yield ThirdMoments(frame, of, min(rho, math.sqrt(3 / (size - 4))))
    for n_starts in (1, 4, D, 15):
        yield PowerIterations(unit_columns(rng, n_starts), RADIUS)
    yield PowerIterations(np.tile(unit_columns(rng, 2), 3), RADIUS)


N_QUERIES = len(list(queries(0)))
every_query = pytest.mark.parametrize("place", range(N_QUERIES))


@every_query
@pytest.mark.parametrize("block", [None, 1, 50])
def test_totals_are_those_of_a_loop(place, block, seed, cache_of):
    if block is not None:
        cache_of(block)
    X = data(seed)
    query = list(queries(seed))[place]
    expected = looped(query, X)
    # What the absolute tolerance lets pass is small beside what there is to be compared.
    assert np.abs(expected).max() > 1e-6
    for form in (np.asarray, sp.csr_array):
        np.testing.assert_allclose(answered(query, form(X)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", FORMATS)
def test_formats_make_no_difference(form, seed):
    X = data(seed)
    samples = as_samples(FORMATS[form](X))
    found = samples.toarray() if sp.issparse(samples) else samples
    np.testing.assert_array_equal(found, as_samples(X))


@every_query
def test_chunks_make_no_difference(place, seed):
    X = data(seed)
    query = list(queries(seed))[place]
    whole = query.total(SampleChunk(as_samples(X)))
    chunks = [X[:1].tolist(), X[1:3], sp.csc_array(X[3:30]), np.asfortranarray(X[30:])]
    added = sum(map(query.total, SampleChunks(chunks, *X.shape)))
    np.testing.assert_allclose(added, whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_starts", [1, 3, D, 12])
def test_answers_are_those_of_the_mean_tensor(n_starts, seed):
    """From coordinates without noise, with starts alike, equal or more than features."""
    rng = np.random.default_rng(seed)
    X = data(seed)
    tensor = sum(cube(z) for z in embedded(X, 0.0)) / len(X)
    for spread in (1.0, 1e-3, 0.0):
        columns = unit_columns(rng, n_starts)
        columns = columns[:, :1] + spread * (columns - columns[:, :1])
        columns /= np.linalg.norm(columns, axis=0)
        query = PowerIterations(columns, RADIUS)
        mean = query.total(SampleChunk(as_samples(X))) / len(X)
        expected = np.einsum("abc,bl,cl->al", tensor, columns, columns)
        np.testing.assert_allclose(query.answers(mean), expected, rtol=1e-8, atol=1e-9)


def exact_curator(X, names, offset=0.0):
    plan = ReleasePlan.split(math.inf, 1e-6, dict.fromkeys(names, 1.0))
    return SampleCurator(
        SampleChunks(as_samples(X), *X.shape), plan, spender="test", unit="sample",
        accountant=None, known=LiftedBall(RADIUS, offset),
    )  # fmt: skip


@pytest.mark.parametrize("offset", [0.0, 0.7 * RADIUS])
def test_a_curator_gives_out_means_in_everyday_form(offset, seed):
    X, rng = data(seed), np.random.default_rng(seed)
    z = embedded(X, offset)
    names = ("second_moments", "projected_third_moments", "third_moments", "power_iterations")
    basis = rng.standard_normal((z.shape[1], 2))
    frame = np.linalg.qr(basis)[0]
    y, residual = z @ basis, z - z @ frame @ frame.T
    squares = (residual**2).sum(axis=1)
    with exact_curator(X, names, offset) as curator:
        second = curator.second_moments()
        third = curator.projected_third_moments(basis, 0.3, 1.0)
        whole = curator.third_moments(frame, 0.5)
        if offset == 0:
            u = unit_columns(rng, 3)
            answers = curator.power_iterations(u)
            expected = z.T @ (z @ u) ** 2 / len(X)
            np.testing.assert_allclose(answers.value, expected, atol=1e-9)
    np.testing.assert_allclose(second.value, z.T @ z / len(X), atol=1e-9)
    np.testing.assert_allclose(third.tensor, sum(map(cube, y)) / len(X), atol=1e-9)
    np.testing.assert_allclose(third.residual, squares @ y / len(X), atol=1e-9)
    np.testing.assert_allclose(whole.tensor, sum(map(cube, z @ frame)) / len(X), atol=1e-9)
    np.testing.assert_allclose(whole.residual, squares @ z @ frame / len(X), atol=1e-9)
    assert {second.sigma, third.sigma, whole.sigma} == {0.0}


class Recording(SampleCurator):
    """Lists how limits are searched."""

    def __init__(self, *of, **options):
        super().__init__(*of, **options)
        self.asked = []

    def noisy_quantile(self, name, query, edges, quantile):
        self.asked.append((query, edges, quantile))
        return super().noisy_quantile(name, query, edges, quantile)


def test_a_limit_is_searched_where_norms_can_be(seed):
    """No contribution is longer than the last edge, so that no clip is forced on all."""
    rng, X = np.random.default_rng(seed), data(seed)
    names = {"third_moment_histogram": 1.0, "projected_third_moments": 1.0}
    for delta in (0.0, 1e-6):
        plan = ReleasePlan.split(1.0, delta, names)
        chunks = SampleChunks(as_samples(X), *X.shape)
        with Recording(
            chunks, plan, spender="t", unit="u", accountant=None, known=LiftedBall(RADIUS)
        ) as curator:
            curator.projected_third_moments(rng.standard_normal((D, 3)), 0.0, 0.9)
            sensitivity = curator.report().rows[-1].sensitivity
        query, edges, quantile = curator.asked.pop()
        norms = np.linalg.norm([parts(z, query.basis, 0.0) for z in embedded(X, 0.0)], axis=1)
        assert norms.max() <= edges[-1] * (1 + 1e-9)
        assert quantile == 0.9
        assert np.isclose(2 * edges / len(X), sensitivity, rtol=1e-12).any()


# Samples


def test_what_comes_in_is_not_changed():
    X = np.array([[1e300, 1.0], [0.0, -1e250]])
    for form in (np.array, sp.csr_matrix, sp.csr_array):
        given = form(X)
        found = as_samples(given)
        kept = given.toarray() if sp.issparse(given) else given
        np.testing.assert_array_equal(kept, X)
        found = found.toarray() if sp.issparse(found) else found
        np.testing.assert_array_equal(found, [[LARGEST_ENTRY, 1], [0, -LARGEST_ENTRY]])
    small = np.ones((2, 2))
    assert np.shares_memory(as_samples(small), small)


@pytest.mark.parametrize("large", [2.0, 1e308])
def test_duplicate_entries_are_added_before_they_are_bounded(large):
    values = np.array([1.0, 2.0, large, large])
    X = sp.csr_matrix((values, np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2))
    expected = [[0, 3], [min(2 * large, LARGEST_ENTRY), 0]]
    np.testing.assert_array_equal(as_samples(X).toarray(), expected)
    assert X.nnz == 4
    np.testing.assert_array_equal(X.data, [1.0, 2.0, large, large])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_what_is_no_number_is_refused_unshown(bad, form):
    X = np.full((3, 2), 4321.5)
    X[1, 1] = bad
    with pytest.raises(ValueError, match="X contains NaN or infinity") as caught:
        as_samples(form(X))
    assert "4321" not in str(caught.value)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([np.ones((2, 3)), np.ones((2, 4))], "4 features; n_features is 3"),
        ([np.ones((2, 3))], "2 samples in all; n_samples is 4"),
        ([np.ones((4, 3)), np.ones(3)], "1 axes; n_features is 3"),
        ([np.full((4, 3), np.nan)], "a chunk contains NaN"),
    ],
)
def test_chunks_that_are_not_as_announced(chunks, message):
    with pytest.raises(ValueError, match=message):
        list(SampleChunks(chunks, 4, 3))
