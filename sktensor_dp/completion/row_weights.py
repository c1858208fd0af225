"""Weights of rows in released sums, by which biases are expected to explain most variance."""

import math

import numpy as np
from scipy.optimize import brentq

from sktensor_dp.completion import defaults
from sktensor_dp.tensor.arrays import Floats

# Least signal-to-noise ratio, to avoid a division by 0.
LEAST_RATIO = 1e-12


def row_weights(moments: Floats, past: Floats, planned: float) -> Floats:
    """Weights (n_rows,) in releases to come, from LEAST_ROW_WEIGHT to 1.

    `moments` (2, n_rows) are posterior means of rows' weights in sums and of their squares. Biases,
    of prior variance 1, have the precision `past` (n_rows,) times these squares by earlier
    releases. By those to come they have `planned` times these squares if all rows weigh the same.
    """
    sums, squares = moments
    roots = np.sqrt(squares_of_most_gain(sums / sums.sum(), past * squares, planned * squares))
    return np.maximum(roots / roots.max(), defaults.LEAST_ROW_WEIGHT)


def squares_of_most_gain(shares: Floats, past: Floats, planned: Floats) -> Floats:
    """Squared weights x (n_rows,), of mean 1 over entries, by which biases explain most variance.

    Rows have these `shares` of entries, and biases signal-to-noise ratios ``past + x planned``.
    """
    # A unit's weights are divided by their norm, so that squares add up to 1. The variance that
    # biases explain, the mean of ratio / (1 + ratio), rises alike with all x that are not 0 where
    # (1 + past + x planned)^2 = planned / price (water-filling).
    planned = np.maximum(planned, LEAST_RATIO)

    def squares(log_price: float) -> Floats:
        """Squared weights at a price."""
        ratios = np.sqrt(planned) * math.exp(-log_price / 2) - 1 - past
        return np.asarray(np.maximum(ratios, 0.0) / planned)

    def excess(log_price: float) -> float:
        """Mean square beyond 1; 0 at the price sought."""
        return float(shares @ squares(log_price)) - 1

    # At the highest price all x are 0, at a lower one than the lowest all exceed 1.
    highest = float(np.log(planned / (1 + past) ** 2).max())
    lowest = float(np.log(planned / (1 + past + planned) ** 2).min())
    return squares(brentq(excess, lowest - 1, highest))
