"""Statistics of mixtures against loops that follow the definitions, and digits of single rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from contracts.rows_of_mixtures import gains, rows, statistics
from scipy.stats import multivariate_normal

from sktensor_dp.queries.mixtures import MixtureStatistics
from sktensor_dp.queries.samples import SampleChunk, SampleChunks
from sktensor_dp.tensor.symmetric import symmetric_to_coordinates

KINDS = [(shape, pooled) for shape in ("full", "diag", "spherical") for pooled in (False, True)]


def looped(query, X):
    """Sum of what each row contributes, by the definitions of the proof's page."""
    a, b, h, g = query.scales
    k, q = len(query.means), query.width
    W = np.resize(query.whiteners, (k, *query.whiteners.shape[1:]))
    total = 0.0
    for x in X:
        y = np.array([W[j] @ (x - query.means[j]) for j in range(k)])
        log = query.log_scales - (y**2).sum(axis=1) / 2
        r = np.exp(log - log.max())
        r /= r.sum()
        v = [
            one * min(1, query.limit / max(np.linalg.norm(one), 1e-300)) / query.limit for one in y
        ]
        of_each = []
        for one, share in zip(v, r, strict=True):
            p = one @ one
            shape = np.eye(q) * np.sqrt(h / q) * (p - query.centre)
            if q > 1:
                shape += np.sqrt(g / (1 - 1 / q)) * (np.outer(one, one) - p * np.eye(q) / q)
            of_each.append(share * shape)
        shapes = [sum(of_each)] if query.pooled else of_each
        part = {
            "full": symmetric_to_coordinates,
            "diag": np.diagonal,
            "spherical": lambda one: [np.trace(one) / np.sqrt(q)],
        }[query.shape]
        shifts = np.concatenate([share * one for one, share in zip(v, r, strict=True)])
        total = total + np.concatenate(
            [np.sqrt(a) * r, np.sqrt(b) * shifts, *[part(one) for one in shapes]]
        )
    return total


@pytest.mark.parametrize(("shape", "pooled"), KINDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_totals_follow_the_definitions(shape, pooled, form, seed):
    rng = np.random.default_rng(seed)
    query = statistics(shape, pooled)(rng, None)
    X = rng.standard_normal((30, query.means.shape[1])) * 0.3 * query.radius
    X *= np.minimum(1, 0.99 * query.radius / np.linalg.norm(X, axis=1))[:, None]
    expected = looped(query, X)
    found = sum(map(query.total, SampleChunks(sp.csr_matrix(X) if form is not np.asarray else X,
                                              *X.shape)))  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_gains_are_clipped_differences_of_log_densities(seed):
    rng = np.random.default_rng(seed)
    query = gains(rng, None)
    X = rng.standard_normal((30, 5)) * 0.2 * query.radius

    def log_density(model):
        parts = zip(model.weights, model.means, model.covariances, strict=True)
        logs = [np.log(w) + multivariate_normal(m, S).logpdf(X) for w, m, S in parts]
        return np.logaddexp.reduce(logs, axis=0)

    base = log_density(query.base)
    expected = [np.clip(log_density(one) - base, -3, 3).sum() for one in query.mixtures]
    found = query.total(SampleChunk(X))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("shape", "pooled"), KINDS)
def test_the_digits_of_a_row_do_not_depend_on_its_place(shape, pooled, seed):
    """Where squares are so large that a last digit decides which group a row is in."""
    rng = np.random.default_rng(seed)
    query = statistics(shape, pooled)(rng, None)
    row = rows(rng, query)[[int(rng.integers(1, 8))]]
    others = rows(rng, query)
    alone = whitened(query, row)
    for place in range(20):
        X = np.concatenate([others[:place], row, others[: rng.integers(30)]])
        np.testing.assert_array_equal(whitened(query, X)[place], alone[0])


def whitened(query: MixtureStatistics, X: np.ndarray) -> np.ndarray:
    """What is added up of each row: shares, and clipped whitened rows."""
    chunk = SampleChunk(np.clip(X, -1e100, 1e100))
    shares, clipped = query.parts_of(chunk, slice(0, len(X)))
    return np.concatenate([shares[:, None], clipped.swapaxes(0, 1).swapaxes(1, 2)], axis=1)
