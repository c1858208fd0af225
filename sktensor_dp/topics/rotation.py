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
    >>> turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    >>> simple = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> np.abs(varimax(simple @ turn)).round(3).tolist()
    [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]
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
