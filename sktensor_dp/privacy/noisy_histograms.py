"""What released histograms say."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def edge_reached(
    share: Floats, sigma: float, edges: Floats, quantile: float, *, pure: bool
) -> float:
    """Upper edge of the bin that reaches a quantile, of noisy shares of bins."""
    # Bins that noise alone would fill are taken for empty, or many empty ones would add up: up
    # to the universal threshold of Donoho & Johnstone (1994) for Gaussian noise, and up to a
    # level that Laplace noise exceeds in one histogram of a hundred.
    n_bins = len(edges) - 1
    level = math.sqrt(2 * math.log(n_bins))
    if pure:
        level = math.log(100 * n_bins) / math.sqrt(2)
    kept = np.where(share > sigma * level, share, 0.0)
    if not kept.any():
        kept = np.maximum(share, 0.0)
    reached = np.cumsum(kept) >= quantile * kept.sum()
    return float(edges[1 + int(np.argmax(reached))])
