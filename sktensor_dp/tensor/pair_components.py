"""Components of the columns of a matrix from noisy sums of products of residuals."""

import numpy as np
import scipy.linalg

from sktensor_dp.tensor.arrays import Floats

STEPS = 20


def components_of_pairs(
    sums: Floats, counts: Floats, response: float, noise_std: float, n_components: int
) -> Floats:
    """Loadings V of columns, of shape (n_columns, k), whose rows have weights of variance 1.

    Off the diagonal `sums` are ``counts response V V'`` with noise of one standard deviation;
    on it, both are 0. Components that noise hides are left out: there may be none.
    """
    # What is missing of a table of rank one of counts, the diagonal too, is filled in by what was
    # found so far (principal axis factoring; majorisation for weighted low rank approximation).
    n = len(sums)
    margin = counts.sum(axis=1) / np.sqrt(max(float(counts.sum()), 1e-100))
    missing = np.outer(margin, margin) - counts
    # The largest eigenvalue of noise, and what it adds to those above it (Benaych-Georges and
    # Nadakuditi 2011, The eigenvalues and eigenvectors of low rank perturbations).
    edge = 2 * np.sqrt(n) * noise_std
    found, model = np.zeros((n, 0)), np.zeros((n, n))
    top = (max(n - n_components, 0), n - 1)
    for _ in range(STEPS):
        values, vectors = scipy.linalg.eigh(sums + missing * model, subset_by_index=top)
        above = values > edge
        values, vectors = values[above][::-1], vectors[:, above][:, ::-1]
        values = values / 2 * (1 + np.sqrt(1 - (edge / values) ** 2))
        found = vectors * np.sqrt(values) / np.maximum(margin, 1e-100)[:, None]
        model = found @ found.T
    if not found.size:
        return np.zeros((n, 0))
    # Loadings are normal a priori, of one variance for each component.
    noise = noise_std**2 * float(margin @ margin) / np.maximum(margin, 1e-100) ** 2
    shrunk = found / (1 + noise[:, None] / values**2) / np.sqrt(response)
    return np.where(margin[:, None] > 0, shrunk, 0.0)
