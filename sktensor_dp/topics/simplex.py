"""The probability simplex."""

import numpy as np

from sktensor_dp.tensor.arrays import Floats

# Beyond, sums of rows have too few digits left of 1.
LARGE = 1e6


def project_rows(values: Floats) -> Floats:
    """Euclidean projection of each row on the probability simplex (Duchi et al., 2008)."""
    # Beside large numbers 1 is lost; rows less a number have the same projection.
    largest = values.max(axis=1, keepdims=True)
    values = np.where(np.abs(largest) > LARGE, values - largest, values)
    descending = -np.sort(-values, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, values.shape[1] + 1)
    kept = (descending > excess).sum(axis=1)
    threshold = excess[np.arange(len(values)), kept - 1]
    return np.maximum(values - threshold[:, None], 0.0)
