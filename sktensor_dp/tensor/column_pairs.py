"""Loadings of columns by sums over rows of products of their residuals in pairs."""

import numpy as np
import scipy.linalg

from sktensor_dp.tensor.arrays import Floats


def components_of_pairs(
    sums: Floats, counts: Floats, response: float, noise_std: float, n_components: int
) -> Floats:
    """Loadings V (n, k) of columns, by principal axis factoring of noisy sums over pairs.

    `sums` and `counts` (n, n) are of the products of two columns, with a diagonal of 0.
    """
    # Off the diagonal `sums` are ``counts * response * V V'`` plus noise of deviation `noise_std`.
    # If counts were margin margin', leading eigenvectors would show V. So multiply what they lack
    # of that, the diagonal above all, by the current fit and add it (majorisation for weighted
    # low-rank approximation).
    n = len(sums)
    margin = counts.sum(axis=1) / np.sqrt(max(float(counts.sum()), 1e-100))
    missing = np.outer(margin, margin) - counts
    # Largest eigenvalue of noise; an eigenvalue v appears as v + edge^2 / 4 v (Benaych-Georges and
    # Nadakuditi 2011, The eigenvalues and eigenvectors of low rank perturbations).
    edge = 2 * np.sqrt(n) * noise_std
    loadings, model = np.zeros((n, 0)), np.zeros((n, n))
    largest = (max(n - n_components, 0), n - 1)
    for _ in range(20):
        values, vectors = scipy.linalg.eigh(sums + missing * model, subset_by_index=largest)
        above = values > edge
        values, vectors = values[above][::-1], vectors[:, above][:, ::-1]
        values = values / 2 * (1 + np.sqrt(1 - (edge / values) ** 2))
        loadings = vectors * np.sqrt(values) / np.maximum(margin, 1e-100)[:, None]
        model = loadings @ loadings.T
    # Shrink: the prior variance of a loading is value / |margin|^2. To first order in the noise E
    # its error is (E u)_i / (margin_i sqrt(value)), of variance noise_std^2 / (margin_i^2 value).
    squares = np.maximum(margin, 1e-100)[:, None] ** 2
    ratios = noise_std**2 * float(margin @ margin) / squares / values**2
    shrunk = loadings / (1 + ratios) / np.sqrt(response)
    return np.where(margin[:, None] > 0, shrunk, 0.0)
