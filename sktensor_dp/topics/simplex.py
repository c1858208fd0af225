"""The probability simplex."""

import numpy as np

from sktensor_dp.tensor.arrays import Floats


def project_rows(values: Floats) -> Floats:
    """Euclidean projection of each row on the probability simplex (Duchi et al., 2008)."""
    descending = -np.sort(-values, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, values.shape[1] + 1)
    kept = (descending > excess).sum(axis=1)
    threshold = excess[np.arange(len(values)), kept - 1]
    return np.maximum(values - threshold[:, None], 0.0)
