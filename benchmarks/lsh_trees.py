"""Our reading of private k-means on trees of random hyperplanes (Chang and Kamath, 2021).

Nodes are split by the side of a random hyperplane while their noisy counts are large. Each leaf
releases its noisy mean, and k-means without noise clusters these, weighted by counts.
"""

import math

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.power_method import Floats
from sktensor_dp.privacy.calibration import gaussian_mu

__all__ = ["leaf_means", "lsh_tree_means"]

DEPTH = 20
# Counts, in deviations of the noise of a leaf's mean over the radius, that a leaf needs; a node is
# split only if it has three times as many.
LOW_ERROR, BRANCHING = 10.0, 3.0


def leaf_means(
    X: Floats, radius: float, epsilon: float, delta: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Noisy means and counts of the leaves; one sample is replaced (Gaussian noise)."""
    X = X * np.minimum(1, radius / np.maximum(np.linalg.norm(X, axis=1), 1e-300))[:, None]
    d, mu = X.shape[1], gaussian_mu(epsilon, delta) / math.sqrt(2)  # half each
    # A sample moves two counts by one in every level; a leaf's sum by two radii.
    of_counts, of_sums = math.sqrt(2 * DEPTH) / mu, 2 * radius / mu
    least = LOW_ERROR * math.sqrt(d) * of_sums / radius
    leaves, nodes = [], [(X, float(len(X)))]
    for _ in range(DEPTH):
        below = []
        for rows, count in nodes:
            if count < BRANCHING * least:
                leaves.append((rows, count))
                continue
            side = rows @ rng.standard_normal(d) > 0
            for part in (rows[side], rows[~side]):
                below.append((part, len(part) + of_counts * rng.standard_normal()))
        nodes = below
    leaves = [(rows, count) for rows, count in leaves + nodes if count > least / BRANCHING]
    sums = np.array([rows.sum(axis=0) for rows, _ in leaves])
    counts = np.array([count for _, count in leaves])
    return (sums + of_sums * rng.standard_normal(sums.shape)) / counts[:, None], counts


def lsh_tree_means(
    X: Floats, k: int, radius: float, epsilon: float, delta: float, seed: int
) -> KMeans:
    """Private k-means: a fitted estimator whose `predict` gives the nearest mean."""
    means, counts = leaf_means(X, radius, epsilon, delta, np.random.default_rng([seed, 1]))
    n_clusters = min(k, len(means))
    return KMeans(n_clusters, n_init=10, random_state=seed).fit(means, sample_weight=counts)
