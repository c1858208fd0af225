"""Queries on samples against loops that follow the definitions, as linear maps, and their noise.

With z = (min(1, R / |x|) x, c), up to NORM_SLACK, a sample adds z z'; without the constant c the
coordinates of y (x) y (x) y with y = B'z, times its weight, or z (z'u)^2 for every start u.
"""

import math
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
import scipy.sparse as sp
from internals import questions

from sktensor_dp.data.samples import (
    LARGEST_ENTRY,
    IncompleteChunk,
    SampleChunk,
    SampleChunks,
    as_samples,
)
from sktensor_dp.power_method.recipe import (
    release_clipped_third_moments,
    release_in_basis,
    release_power_step,
)
from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost, ReleasePlan
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.samples import (
    NORM_SLACK,
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SecondMoments,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.tensor.symmetric import n_unique, symmetric_to_coordinates

D, RADIUS = 6, 1.5


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


def seen(z, basis):
    """Coordinates of y (x) y (x) y."""
    return coordinates(np.einsum("abc,ai,bj,ck->ijk", cube(z), basis, basis, basis))


def looped(query, X):
    if isinstance(query, SecondMoments):
        return sum(np.outer(row, row) for row in embedded(X, query.ball.offset))
    z = embedded(X, 0.0)
    if isinstance(query, PowerIterations):
        return np.array([(z * (z @ u)[:, None] ** 2).sum(axis=0) for u in query.starts.T]).T
    each = [seen(row, query.basis) for row in z]
    norms = np.linalg.norm(each, axis=1)
    if isinstance(query, ThirdMomentHistogram):
        inner = query.edges[1:-1]
        return np.bincount([(norm > inner).sum() for norm in norms], minlength=len(inner) + 1)
    if math.isinf(query.limit):
        return sum(each)
    return (query.limit / np.maximum(NORM_SLACK * norms, query.limit)) @ each


def total_of(query, X):
    return query.total(SampleChunk(as_samples(X)))


def unit_columns(rng, n):
    columns = rng.standard_normal((D, n))
    return columns / np.linalg.norm(columns, axis=0)


def queries(seed):
    rng = np.random.default_rng(seed)
    for offset in (0.0, 0.7 * RADIUS):
        yield SecondMoments(LiftedBall(RADIUS, offset))
    basis = rng.standard_normal((D, 3))
    yield ProjectedThirdMoments(basis, RADIUS)
    yield ProjectedThirdMoments(basis, RADIUS, limit=0.5)
    yield ThirdMomentHistogram(basis, RADIUS, np.array([0.01, 0.5, 2.0, 4.0]))
    yield ThirdMoments(np.linalg.qr(rng.standard_normal((D, 4)))[0], RADIUS)
    for n_starts in (1, 4, D, 15):
        yield PowerIterations(unit_columns(rng, n_starts), RADIUS)
    yield PowerIterations(np.tile(unit_columns(rng, 2), 3), RADIUS)


@pytest.mark.parametrize("place", range(len(list(queries(0)))))
@pytest.mark.parametrize("block", [None, 1, 50])
def test_totals_are_those_of_a_loop_in_any_chunks(place, block, seed, cache_of):
    if block is not None:
        cache_of(block)
    X = data(seed)
    query = list(queries(seed))[place]
    expected = looped(query, X)
    # What the absolute tolerance lets pass is small beside what there is to be compared.
    assert np.abs(expected).max() > 1e-6
    chunks = [X[:1].tolist(), X[1:3], sp.csc_array(X[3:30]), np.asfortranarray(X[30:])]
    added = sum(map(query.total, SampleChunks(chunks, *X.shape)))
    for found in (total_of(query, X), total_of(query, sp.csr_array(X)), added):
        if isinstance(query, PowerIterations):
            found = query.decoded(found)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


# Linear maps of z (x) z (x) z


def linear_map(query, rng):
    """Matrix of a query as a map from orthonormal coordinates of z (x) z (x) z, |z| < 1."""
    rows = rng.standard_normal((3 * n_unique(D, 3), D))
    rows *= rng.uniform(0.3, 0.9, (len(rows), 1)) / np.linalg.norm(rows, axis=1)[:, None]
    cubes = np.array([symmetric_to_coordinates(cube(row)) for row in rows])
    totals = np.array([np.ravel(total_of(query, row[None])) for row in rows])
    found = np.linalg.lstsq(cubes, totals, rcond=1e-12)[0]
    np.testing.assert_allclose(cubes @ found, totals, atol=1e-9)
    return found.T


@pytest.mark.parametrize("hidden", range(D))
def test_third_moments_are_orthonormal_coordinates(hidden, seed):
    """With them one sees an orthogonal projection of spherical noise in the whole space."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.standard_normal((D, D - hidden)))[0]
    matrix = linear_map(ThirdMoments(frame, 1.0), rng)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(len(matrix)), atol=1e-6)


@pytest.mark.parametrize("n_starts", [1, 2, 3, 9])
def test_power_iterations_shorten_every_symmetric_tensor(n_starts, seed):
    rng = np.random.default_rng(seed)
    query = PowerIterations(unit_columns(rng, n_starts), 1.0)
    matrix = linear_map(query, rng)
    assert np.linalg.norm(matrix, 2) == pytest.approx(1.0, abs=1e-6)
    # Outside the span of the starts the coordinates are orthonormal.
    if n_starts < D:
        outside = matrix[: D * len(query.unmixing)]
        values = np.linalg.svd(outside, compute_uv=False)
        np.testing.assert_allclose(values[values > 1e-4], 1.0, atol=1e-6)


@pytest.mark.usefixtures("seeded_noise")
def test_noise_of_answers_has_the_covariance_stated(seed):
    """(u'v)^2 between starts u and v; a third of it outside their span.

    Covariance from 2000 draws, standard error below 1.5 / sqrt(n) in units of sigma^2: five of
    them; the same variance everywhere is rejected.
    """
    n_draws = 2000
    query = PowerIterations(unit_columns(np.random.default_rng(seed), 3), 1.0)
    zeros, source = total_of(query, np.zeros((1, D))), NoiseSource()
    law = CATALOGUE["power_iterations"].gaussian
    # At a sensitivity of 2 and a cost of 4 the noise is half of the standard one.
    noise = [2 * law.release(zeros, 2.0, PrivacyCost(4.0), source, query) for _ in range(n_draws)]
    answers = np.array(list(map(query.decoded, noise)))
    found = np.einsum("nil,njm->iljm", answers, answers) / n_draws
    within = query.starts @ np.linalg.pinv(query.starts)
    shared = (query.starts.T @ query.starts) ** 2
    for third in (3.0, 1.0):
        directions = (np.eye(D) - within) / third + within
        expected = np.einsum("ij,lm->iljm", directions, shared)
        error = np.abs(found - expected).max()
        assert (error < 7.5 / math.sqrt(n_draws)) == (third == 3)
    # No direction of any answer is noisier than if the starts had been asked one by one.
    assert np.linalg.eigvalsh(expected.reshape(3 * D, 3 * D)).max() <= 3 + 1e-9


# What the session gives out


def session_of(X, plan):
    return Session(SampleChunks(as_samples(X), *X.shape), plan)


def test_answers_are_means_in_everyday_form(seed):
    X, rng = data(seed), np.random.default_rng(seed)
    z = embedded(X, 0.0)
    names = ("second_moments", "projected_third_moments", "third_moments", "power_iterations")
    basis = rng.standard_normal((D, 2))
    frame = np.linalg.qr(basis)[0]
    plan = ReleasePlan.split(math.inf, 1e-6, dict.fromkeys(names, 1.0))
    with session_of(X, plan) as ask:
        second = ask(SecondMoments(LiftedBall(RADIUS)))
        np.testing.assert_allclose(second.value, z.T @ z / len(X), atol=1e-9)
        third = release_in_basis(ask, ProjectedThirdMoments(basis, RADIUS))
        whole = release_in_basis(ask, ThirdMoments(frame, RADIUS))
        for found, y in ((third, z @ basis), (whole, z @ frame)):
            np.testing.assert_allclose(found.value, sum(map(cube, y)) / len(X), atol=1e-9)
        u = unit_columns(rng, 3)
        answers = release_power_step(ask, PowerIterations(u, RADIUS)).value
        np.testing.assert_allclose(answers, z.T @ (z @ u) ** 2 / len(X), atol=1e-9)
    assert {second.sigma, third.sigma, whole.sigma} == {0.0}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_limit_is_searched_where_norms_can_be(delta, seed):
    """No contribution is longer than the last edge, so that no clip is forced on all."""
    rng, X = np.random.default_rng(seed), data(seed)
    names = {"third_moment_histogram": 1.0, "projected_third_moments": 1.0}
    with questions() as asked, session_of(X, ReleasePlan.split(1.0, delta, names)) as ask:
        release_clipped_third_moments(ask, RADIUS, rng.standard_normal((D, 3)))
        sensitivity = ask.report().rows[-1].sensitivity
    histogram, _ = asked
    norms = np.linalg.norm([seen(z, histogram.basis) for z in embedded(X, 0.0)], axis=1)
    assert norms.max() <= histogram.edges[-1] * (1 + 1e-9)
    assert np.isclose(2 * histogram.edges / len(X), sensitivity, rtol=1e-12).any()


# What comes in


@pytest.mark.parametrize("large", [2.0, 1e308])
def test_duplicate_entries_are_added_before_they_are_bounded(large):
    values = np.array([1.0, 2.0, large, large])
    X = sp.csr_matrix((values, np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2))
    expected = [[0, 3], [min(2 * large, LARGEST_ENTRY), 0]]
    np.testing.assert_array_equal(as_samples(X).toarray(), expected)
    np.testing.assert_array_equal(X.data, [1.0, 2.0, large, large])


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([np.ones((2, 3)), np.ones((2, 4))], "4 features; n_features is 3"),
        ([np.ones((2, 3))], "2 samples in all; n_samples is 4"),
        ([np.ones((4, 3)), np.ones(3)], "1 axis; n_features is 3"),
        *(
            ([form([[4321.5, bad, 0.0]])], "^a chunk contains NaN or infinity; samples must be")
            for bad in (np.nan, np.inf, -np.inf)
            for form in (np.asarray, sp.csr_array)
        ),
    ],
)
def test_chunks_that_are_not_as_announced_or_no_numbers_are_refused_unshown(chunks, message):
    with pytest.raises(ValueError, match=message) as caught:
        list(SampleChunks(chunks, 4, 3))
    assert "4321" not in str(caught.value)


@pytest.mark.parametrize("offset", [0.0, 0.6])
def test_the_constant_of_second_moments_shows_how_many_cells_are_observed(offset):
    X = np.array([[1.0, np.nan], [np.nan, np.nan], [0.2, 0.1]])
    roots = np.array([0.75, 0.5, 1.0]) ** 0.5
    z = np.column_stack([np.nan_to_num(X), offset * roots])[:, : 2 + (offset > 0)]
    found = SecondMoments(LiftedBall(2.0, offset)).total(IncompleteChunk(X))
    np.testing.assert_allclose(found, z.T @ z)
