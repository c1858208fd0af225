"""Rotations of a subspace towards few large loadings."""

import numpy as np

from sktensor_dp.tensor.arrays import Floats


def varimax(loadings: Floats, max_iter: int = 200, tol: float = 1e-6) -> Floats:
    """Rotate columns so that squared loadings vary most (Kaiser, 1958)."""
    rotation = np.eye(loadings.shape[1])
    for _ in range(max_iter):
        rotated = loadings @ rotation
        gradient = loadings.T @ (rotated**3 - rotated * (rotated**2).mean(axis=0))
        left, _, right = np.linalg.svd(gradient)
        previous, rotation = rotation, left @ right
        if np.abs(rotation - previous).max() < tol:
            break
    rotated = loadings @ rotation
    return rotated * np.where((rotated**3).sum(axis=0) < 0, -1.0, 1.0)
