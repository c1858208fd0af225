"""Rotations of a subspace towards few large loadings."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["varimax"]

Floats = NDArray[np.float64]


def varimax(loadings: Floats, max_iter: int = 200, tol: float = 1e-6) -> Floats:
    """Rotate columns so that squared loadings vary most (Kaiser, 1958).

    Parameters
    ----------
    loadings : ndarray of shape (n_features, k)
        Columns spanning a subspace.
    max_iter : int, default=200
        Most steps.
    tol : float, default=1e-6
        Stop when no entry of the rotation changes by more.

    Returns
    -------
    ndarray of shape (n_features, k)
        Rotated columns, each with the sign that makes its skewness positive.

    Examples
    --------
    >>> import numpy as np
    >>> turned = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    >>> np.sort(np.abs(varimax(np.vstack([turned, turned]))), axis=1).round(3).tolist()
    [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """
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
