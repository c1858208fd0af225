"""The probability simplex."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["project_rows"]

Floats = NDArray[np.float64]


def project_rows(values: Floats) -> Floats:
    """Euclidean projection of each row on the probability simplex.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_features)
        Any real numbers.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Nearest rows that are non-negative and sum to 1 (Duchi et al., 2008).

    Examples
    --------
    >>> import numpy as np
    >>> project_rows(np.array([[0.5, 0.7, -1.0]])).round(3).tolist()
    [[0.4, 0.6, 0.0]]
    """
    descending = -np.sort(-values, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, values.shape[1] + 1)
    kept = (descending > excess).sum(axis=1)
    threshold = excess[np.arange(len(values)), kept - 1]
    return np.maximum(values - threshold[:, None], 0.0)
