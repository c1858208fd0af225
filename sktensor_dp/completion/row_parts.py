"""Concurrences of rows without noise, as far as units keep to parts of rows, such as wards."""

import math

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.largest_of_noise import beyond_noise, edge_of_noise, largest_over_edge

# To avoid a division by 0.
TINY = 1e-130
# Number of steps of EM.
N_STEPS = 30


def concurrences_by_parts(beyond: Floats, weights: Floats, sigma: float) -> tuple[Floats, float]:
    """Posterior mean of concurrences `beyond` chance, and the part of noise that it leaves.

    The sums (n_rows, n_rows) are symmetric, with noise of deviation ``sigma / sqrt(2)`` off the
    diagonal and 0 on it. The prior:
    two rows of `weights` v and w have v w times a rate of their parts, plus a departure. By method
    of moments, the sums between rows and parts tell the variance of departures: where it is far
    above noise, as in chains, the posterior is that without parts.
    """
    n_rows, parts = len(beyond), _parts(beyond, weights, sigma)
    n_parts = parts.shape[1]
    if n_parts == 1:
        return _without_noise(beyond, sigma), 1.0
    by_parts = np.multiply.outer(weights, weights) * (
        parts @ _rates(parts, *_weighted(beyond, weights)) @ parts.T
    )
    np.fill_diagonal(by_parts, 0.0)
    # Split departures: `within`, which sum to 0 between any row and any part, and the rest, by
    # which a row's ties to whole parts depart from those of its part.
    others = np.eye(n_rows) - parts @ np.linalg.pinv(parts)
    departures = beyond - by_parts
    within = others @ departures @ others
    square, size = float(np.sum((departures - within) ** 2)), n_parts * (n_rows - n_parts)
    share = max(1 - size * sigma**2 / (square + TINY), 0.0)  # of departures, beside noise
    # An axis of noise within a part would hide differences of its rows: take off the largest noise.
    found = by_parts + _without_noise(within, sigma * largest_over_edge(n_rows, 1))
    found += share * (_without_noise(beyond, sigma) - found)
    # Count one standard error of the share.
    return found, min(share + math.sqrt(2 / size), 1.0)


def _without_noise(symmetric: Floats, sigma: float) -> Floats:
    """Matrix of eigenvalues beyond noise of deviation `sigma`, less what noise adds to them."""
    values, axes = np.linalg.eigh(symmetric)
    return np.asarray((axes * np.sign(values) * beyond_noise(np.abs(values), sigma)) @ axes.T)


def _parts(beyond: Floats, weights: Floats, sigma: float) -> Floats:
    """Posterior probabilities (n_rows, n_parts) that a row is of a part, by EM (mean field).

    There is at most one part more than positive eigenvalues beyond noise.
    """
    values, axes = np.linalg.eigh(beyond)
    is_found = values > edge_of_noise(sigma, len(values))
    n_parts = int(is_found.sum()) + 1
    if n_parts == 1 or n_parts > len(values) / 2:
        return np.ones((len(values), 1))
    # Rows of a part have the same coordinates on these axes, over their weights.
    coordinates = axes[:, is_found] * np.sqrt(values[is_found]) / weights[:, None]
    tree, weighted = linkage(coordinates, "ward"), _weighted(beyond, weights)
    best, most = np.ones((len(values), 1)), 0.0  # one part, with the rate by chance
    # Axes may also tell what is not the same in a part, so try fewer parts, too.
    for number in range(n_parts, 1, -1):
        labels = fcluster(tree, number, "maxclust") - 1
        parts, evidence = _fitted(np.eye(number)[labels], weighted, sigma)
        if evidence > most:
            best, most = parts, evidence
    return best


def _fitted(parts: Floats, weighted: tuple[Floats, Floats], sigma: float) -> tuple[Floats, float]:
    """Probabilities by EM from those so far, and the log evidence (Schwarz, 1978)."""
    seen, squares = weighted
    for _ in range(N_STEPS):
        rates = _rates(parts, seen, squares)
        logs = (2 * seen @ parts @ rates - squares @ parts @ rates**2) / sigma**2
        shares = (parts.sum(axis=0) + 1) / (len(parts) + parts.shape[1])
        logs += np.log(shares)
        before, parts = parts, np.exp(logs - logs.max(axis=1, keepdims=True))
        parts /= parts.sum(axis=1, keepdims=True)
        if np.array_equal(parts, before):  # further steps would change nothing
            break
    by_rates = float(np.sum((parts.T @ seen @ parts) * _rates(parts, seen, squares)))
    by_labels = float(np.sum(parts * (np.log(shares) - np.log(parts + TINY))))
    n_rates = parts.shape[1] * (parts.shape[1] + 1) / 2
    return parts, by_rates / (2 * sigma**2) + by_labels - n_rates * math.log(len(parts))


def _weighted(beyond: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Sums times what a rate of 1 would add to them, and the squares of that."""
    of_rate = np.multiply.outer(weights, weights)
    np.fill_diagonal(of_rate, 0.0)
    return beyond * of_rate, of_rate**2


def _rates(parts: Floats, seen: Floats, squares: Floats) -> Floats:
    """Least-squares rates (n_parts, n_parts)."""
    return np.asarray((parts.T @ seen @ parts) / (parts.T @ squares @ parts + TINY))
