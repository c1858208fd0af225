"""Queries on samples as linear maps of third moments, and the laws of their noise."""

import math
from typing import Any

import numpy as np
import pytest

from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    SampleChunk,
    ThirdMoments,
    as_samples,
)
from sktensor_dp.tensor.symmetric import n_unique, symmetric_to_coordinates

D = 5
Rng = np.random.Generator
Floats = np.ndarray


def frame(rng: Rng, n_rows: int, n_columns: int) -> Floats:
    return np.linalg.qr(rng.standard_normal((n_rows, n_columns)))[0]


def unit_columns(rng: Rng, n_columns: int) -> Floats:
    columns = rng.standard_normal((D, n_columns))
    return columns / np.linalg.norm(columns, axis=0)


def contributions(query: Any, rows: Floats) -> Floats:
    chunks = (SampleChunk(as_samples(row[None, :])) for row in rows)
    return np.array([np.ravel(query.total(chunk)) for chunk in chunks])


def linear_map(query: Any, rng: Rng) -> Floats:
    """Matrix of a query as a map from orthonormal coordinates of z (x) z (x) z."""
    radius = query.radius if isinstance(query, PowerIterations) else query.embedding.radius
    rows = rng.standard_normal((3 * n_unique(D, 3), D))
    rows *= radius * rng.uniform(0.3, 0.9, (len(rows), 1)) / np.linalg.norm(rows, axis=1)[:, None]
    cubes = np.array([symmetric_to_coordinates(np.einsum("a,b,c->abc", x, x, x)) for x in rows])
    found = np.linalg.lstsq(cubes, contributions(query, rows), rcond=1e-12)[0]
    np.testing.assert_allclose(cubes @ found, contributions(query, rows), atol=1e-9 * radius**3)
    return found.T


@pytest.mark.parametrize("hidden", range(D))
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_third_moments_are_orthonormal_coordinates(hidden, share, seed):
    """With them one sees an orthogonal projection of spherical noise in the whole space."""
    rng = np.random.default_rng(seed)
    weight = share * math.sqrt(3 / hidden) if hidden else 0.0
    query = ThirdMoments(frame(rng, D, D - hidden), LiftedBall(1.0), weight)
    matrix = linear_map(query, rng)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(len(matrix)), atol=1e-6)


def test_power_iterations_shorten_every_symmetric_tensor(seed):
    rng = np.random.default_rng(seed)
    for n_starts in (1, 2, 3, 9):
        query = PowerIterations(unit_columns(rng, n_starts), 1.0)
        matrix = linear_map(query, rng)
        assert np.linalg.norm(matrix, 2) == pytest.approx(1.0, abs=1e-6)
        # Outside the span of the starts the coordinates are orthonormal.
        if n_starts < D:
            outside = matrix[: D * len(query.unmixing)]
            values = np.linalg.svd(outside, compute_uv=False)
            np.testing.assert_allclose(values[values > 1e-4], 1.0, atol=1e-6)


# Laws of noise


def noise_of(query: Any, kind: str, shape: tuple[int, ...], n_draws: int) -> Floats:
    """What the catalogue's law adds to zeros, at a sensitivity of 2 and a cost of 4."""
    source = NoiseSource()
    entry = next(e for e in CATALOGUE.values() if e.query is type(query))
    law = getattr(entry, kind)
    zeros = np.zeros(shape)
    return np.array(
        [law.release(zeros, 2.0, PrivacyCost(4.0, 4.0), source, query) for _ in range(n_draws)]
    )


@pytest.mark.usefixtures("seeded_noise")
def test_noise_of_answers_has_the_covariance_stated(seed):
    """(u'v)^2 between starts u and v; a third of it outside their span.

    A covariance estimated from n draws has a standard error below 1.5 sigma^2 / sqrt(n).
    """
    n_draws = 6000
    rng = np.random.default_rng(seed)
    query = PowerIterations(unit_columns(rng, 3), 1.0)
    total = query.total(SampleChunk(np.zeros((1, D))))
    noise = noise_of(query, "gaussian", total.shape, n_draws) / 2 * 4
    answers = np.array([query.answers(coordinates) for coordinates in noise])
    found = np.einsum("nil,njm->iljm", answers, answers) / n_draws
    within = query.starts @ np.linalg.pinv(query.starts)
    shared = (query.starts.T @ query.starts) ** 2
    for third in (3.0, 1.0):
        directions = (np.eye(D) - within) / third + within
        expected = np.einsum("ij,lm->iljm", directions, shared)
        error = np.abs(found - expected).max()
        # With one and the same variance everywhere it would be wrong.
        assert (error < 7.5 / math.sqrt(n_draws)) == (third == 3)
    # No direction of any answer is noisier than if the starts had been asked one by one.
    assert np.linalg.eigvalsh(expected.reshape(3 * D, 3 * D)).max() <= 3 + 1e-9


def test_no_more_noise_than_a_bound_on_all_answers_together(seed):
    """Independent noise on the answers has to cover the worst z: sum of (z'u)^4, at least 1."""
    rng = np.random.default_rng(seed)
    columns = unit_columns(rng, 4)
    query = PowerIterations(columns, 1.0)
    z = columns.T
    largest = max((((z @ columns) ** 4).sum(axis=1)).max(), 0.0)
    assert query.l2_sensitivity <= 2 * math.sqrt(largest)
    variances = (query.unmixing**2).sum(axis=0)
    np.testing.assert_allclose(variances, 1.0, atol=1e-9)
