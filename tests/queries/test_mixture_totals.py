"""Statistics of mixtures against loops that follow the definitions, and digits of single rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from contracts.rows_of_mixtures import gains, rows, statistics
from scipy.stats import multivariate_normal

from sktensor_dp.data.samples import IncompleteChunk, IncompleteChunks, SampleChunk
from sktensor_dp.mixtures import defaults
from sktensor_dp.queries.mixtures import MixtureStatistics, RowFrame
from sktensor_dp.tensor.symmetric import symmetric_to_coordinates

KINDS = [(shape, pooled) for shape in ("full", "diag", "spherical") for pooled in (False, True)]


def looped(query, X):
    """Sum of what each row contributes, by the definitions of the proof's page."""
    a, b, h, g = query.scales
    k, q = len(query.means), query.width
    W = np.resize(query.whiteners, (k, *query.whiteners.shape[1:]))
    usual = query.centre * query.limit**2 / q
    part = {
        "full": symmetric_to_coordinates,
        "diag": np.diagonal,
        "spherical": lambda one: [np.trace(one) / np.sqrt(q)],
    }[query.shape_part]
    total = 0.0
    for x in X:
        seen, limit, own = ~np.isnan(x), query.limit, usual
        signs = np.where(seen, -1, 1) * limit / np.sqrt(q)
        if query.fill is not None:
            mean, precision = query.fill.means[0], np.linalg.inv(query.fill.covariances[0])
            if not seen.all():  # where the density is largest, given the cells that are there
                by_seen = precision[~seen][:, seen] @ (x - mean)[seen]
                x = x.copy()
                x[~seen] = mean[~seen] - np.linalg.solve(precision[~seen][:, ~seen], by_seen)
                x[~seen] += query.lift
            seen = np.full(len(x), True)
        if not seen.all():
            limit, own = query.partial[seen.sum() - 1] if seen.any() else (1.0, 0.0)
        y, log, missing = np.zeros((k, q)), query.log_scales.copy(), np.zeros((k, q, q))
        for j in range(k):
            if seen.all():
                y[j] = W[j] @ (x - query.means[j])
                continue
            # Conditional mean of the whitened row, and the directions that are missing of it.
            C = np.linalg.inv(W[j])
            inner = C[seen] @ C[seen].T
            y[j] = C[seen].T @ np.linalg.solve(inner, (x - query.means[j])[seen])
            missing[j] = np.eye(q) - C[seen].T @ np.linalg.solve(inner, C[seen])
            log[j] += np.linalg.slogdet(C @ C.T)[1] / 2 - np.linalg.slogdet(inner)[1] / 2
            log[j] -= query.offsets[j, ~seen].sum()
        log += (y * query.slopes).sum(axis=1) - (y**2).sum(axis=1) / 2
        r = np.exp(log - log.max())
        r /= r.sum()
        if query.counts_missing:
            y[:], limit, seen = signs, query.limit, np.full(len(x), True)
        shifts, shapes = [], []
        for j, share in enumerate(r):
            length, far = max(np.linalg.norm(y[j]), 1e-300), query.reach
            v = y[j] * min(1, limit / length) / query.limit
            shift = y[j] * min(1, far * limit / length) / (far * query.limit)
            square = np.outer(v, v)
            if not seen.all():
                square += (own * missing[j] + (usual - own) * np.eye(q)) / query.limit**2
            p = np.trace(square)
            shape = np.eye(q) * np.sqrt(h / q) * (p - query.centre)
            if q > 1:
                shape += np.sqrt(g / (1 - 1 / q)) * (square - p * np.eye(q) / q)
            shifts.append(share * shift)
            shapes.append(share * shape)
        shapes = [part(one) for one in ([sum(shapes)] if query.pooled else shapes)]
        row = [np.sqrt(a) * r, np.sqrt(b) * np.concatenate(shifts), *shapes]
        total = total + np.concatenate(row)
    return total


@pytest.mark.parametrize(("shape", "pooled"), KINDS)
@pytest.mark.parametrize("form", ["dense", "sparse", "gaps"])
def test_totals_follow_the_definitions(shape, pooled, form, seed):
    rng = np.random.default_rng(seed)
    query = statistics(shape, pooled)(rng, None)
    X = rng.standard_normal((60, query.means.shape[1])) * 0.2 * query.guard_radius
    X *= np.minimum(1, 0.5 * query.guard_radius / np.linalg.norm(X, axis=1))[:, None]
    if form == "gaps":
        X[rng.random(X.shape) < 0.4] = np.nan
    expected = looped(query, X)
    given = sp.csr_matrix(X) if form == "sparse" else X
    found = sum(map(query.total, IncompleteChunks(given, *X.shape)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_gains_are_clipped_differences_of_log_densities(seed):
    rng = np.random.default_rng(seed)
    query = gains(rng, None)
    X = rng.standard_normal((30, 5)) * 0.2 * query.guard_radius
    X[rng.random(X.shape) < 0.3] = np.nan

    def density(x, mean, covariance):
        seen = ~np.isnan(x)
        if not seen.any():
            return 0.0
        return multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(x[seen])

    def log_density(model):
        parts = zip(model.weights, model.means, model.covariances, strict=True)
        logs = [[np.log(w) + density(x, m, S) for x in X] for w, m, S in parts]
        return np.logaddexp.reduce(logs, axis=0)

    densities = np.array([log_density(one) for one in query.mixtures])
    expected = np.diff(densities, axis=0)
    expected = (
        expected * np.minimum(1, defaults.MOST_GAIN / np.linalg.norm(expected, axis=0))
    ).sum(axis=1)
    found = query.total(IncompleteChunk(X))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("shape", "pooled"), KINDS)
def test_the_digits_of_a_row_do_not_depend_on_its_place(shape, pooled, seed):
    """Where squares are so large that a last digit decides which group a row is in."""
    rng = np.random.default_rng(seed)
    query = statistics(shape, pooled)(rng, None)
    row = rows(rng, query)[[int(rng.integers(1, 8))]]
    others = np.nan_to_num(rows(rng, query))
    alone = whitened(query, row)
    for place in range(20):
        X = np.concatenate([others[:place], row, others[: rng.integers(30)]])
        np.testing.assert_array_equal(whitened(query, X)[place], alone[0])


def whitened(query: MixtureStatistics, X: np.ndarray) -> np.ndarray:
    """What is added up of each row: shares, and clipped whitened rows."""
    chunk = SampleChunk(np.clip(X, -1e100, 1e100))
    whole = RowFrame(query.whiteners, query.log_scales, query.limit)
    found = query.clipped_rows(chunk, slice(0, len(X)), whole)
    rows = found.clipped.swapaxes(0, 1).swapaxes(1, 2)
    return np.concatenate([found.shares[:, None], found.lengths[:, None], rows], axis=1)
