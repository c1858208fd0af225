"""Rows of factors from noisy right-hand sides of their normal equations."""

import numpy as np

from sktensor_dp.tensor.arrays import Floats

# Expectation-maximisation steps for the prior variance of the rows.
PRIOR_STEPS = 20
# Least prior variance relative to the first, and what keeps matrices regular, relative to
# their size.
LEAST_PRIOR, LEAST_RIDGE = 1e-8, 1e-12
# Least eigenvalue of a matrix of which a root is taken, relative to the largest.
LEAST_EIGENVALUE = 1e-12
# Least share of the variance of values that is left to noise.
LEAST_NOISE = 0.2

# A direction that is not found yet grows from release to release: what earlier sums say of it
# counts less by this factor, or by one so near to 1 that two thirds of the releases forget no more
# than so much. It counts in full once so much is explained of what is assumed of a component.
GROWTH, GROWING, MOST_GROWN, SETTLED = 1 / 0.7, 2 / 3, 0.7**-16, 0.5


def share_kept(explained: Floats, n_releases: int) -> Floats:
    """How much of earlier sums counts, by what directions explain of a component."""
    growth = min(GROWTH, MOST_GROWN ** (1 / max(int(GROWING * n_releases), 1)))
    return np.asarray(1 / (1 + (growth - 1) * np.clip(1 - explained / SETTLED, 0.0, 1.0)))


def unexplained(deviation: float, explained: float) -> float:
    """What of the variance of values is left, if a model explains so much."""
    return max(deviation**2 - explained, LEAST_NOISE * deviation**2)


def inverse_root(gram: Floats) -> Floats:
    """Symmetric inverse square root, bounded where there is none: it turns columns least."""
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, LEAST_EIGENVALUE * max(float(values[-1]), 1e-100))
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def posterior_rows(
    sums: Floats,
    grams: Floats,
    noise: Floats,
    residual: float,
    prior: float,
    regularization: float = 1.0,
) -> Floats:
    """Posterior means of rows a, of which ``H a`` was seen with noise of known covariance."""
    # Rows are normal with mean 0 and a common variance, which is estimated from `prior` on,
    # and divided by `regularization` in the end; 0 where H, of `grams`, is.
    r = sums.shape[1]
    seen = np.trace(grams, axis1=1, axis2=2) > 0
    found = np.zeros_like(sums)
    if r == 0 or not seen.any():
        return found
    H, g, N = grams[seen], sums[seen], noise[seen] + residual * grams[seen]
    size = np.trace(prior * (H @ H) + N, axis1=1, axis2=2) / r
    # With L L' = N, M = L^-1 H and M M' = U D U' the matrix to be solved with at any prior
    # variance p is L U (p D + 1) U' L': the step that repeats costs no factorisation.
    L = np.linalg.cholesky(N + (LEAST_RIDGE * size)[:, None, None] * np.eye(r))
    solved = np.linalg.solve(L, np.concatenate([H, g[..., None]], axis=2))
    M, scaled = solved[:, :, :r], solved[:, :, r:]
    squares, axes = np.linalg.eigh(M @ M.transpose(0, 2, 1))
    squares = np.maximum(squares, 0.0)
    scaled = (axes.transpose(0, 2, 1) @ scaled)[..., 0]
    least = LEAST_PRIOR * prior
    for step in range(PRIOR_STEPS):
        if step == PRIOR_STEPS - 1:
            prior /= regularization
        variances = prior / (prior * squares + 1)
        turned = variances * scaled
        # Turning keeps sums of squares, and traces.
        prior = max(float(np.mean(squares * turned**2 + variances)), least)
    rows = (M.transpose(0, 2, 1) @ (axes @ turned[..., None]))[..., 0]
    found[seen] = rows
    return found


def unit_mean_square(factor: Floats) -> tuple[Floats, Floats]:
    """Columns of unit mean square, and the roots of what it was; zeros stay."""
    size = np.sqrt(np.mean(factor**2, axis=0))
    safe = np.where(size > 0, size, 1.0)
    return factor / safe, safe
