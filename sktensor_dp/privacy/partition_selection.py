"""Selection of keys that come from the data, such as words: noisy totals, then a threshold."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.laws import GAUSSIAN_THRESHOLDED, Law
from sktensor_dp.tensor.arrays import Floats

# Largest step of the grid; rounding adds at most this to a total, and this fraction to the noise.
STEP = 2.0**-20
# Number of intervals of weights, and candidates for the number `a`, by which
# `_threshold_of_weights` finds a low threshold; any numbers give a valid one.
N_INTERVALS = 4000
CANDIDATES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
# Factor by which a larger weight may raise the threshold.
LARGEST_INCREASE = 1.03


@dataclass(frozen=True)
class PartitionSelection:
    """Mechanism for totals by private key (a word): Gaussian noise, then a threshold.

    One unit adds weights up to `largest` to `max_words_per_document` keys at most, whose squares
    add up to that number at most.
    """

    law: ClassVar[Law] = GAUSSIAN_THRESHOLDED
    residual: ClassVar[str] = ""

    def release(
        self,
        totals: Mapping[str, float],
        sensitivity: float,
        cost: PrivacyCost,
        noise: NoiseSource,
        query: object,
    ) -> tuple[list[str], Floats]:
        """Sorted keys whose noisy totals reach the threshold, and these noisy totals."""
        sigma = sensitivity / self.law.strength(cost)
        noise.recorder.record(self.law.id, query, totals, sensitivity, sigma)
        threshold = selection_threshold(query, sensitivity, cost)
        return gaussian_partition_selection(totals, sigma, threshold, noise)


def selection_threshold(query: Any, sensitivity: float, cost: PrivacyCost) -> float:
    """Threshold that one unit's own keys reach with probability ``cost.delta``; 0 without noise."""
    if math.isinf(cost.mu):
        return 0.0
    if not cost.delta > 0:
        raise ValueError(f"partition selection needs delta > 0, got {cost.delta!r}.")
    sigma = _grid_scale(sensitivity, cost)
    most_keys, largest = query.max_words_per_document, query.largest
    return STEP + _threshold_of_weights(most_keys, largest, sigma, cost.delta)


def _grid_scale(sensitivity: float, cost: PrivacyCost) -> float:
    """Standard deviation of the noise, enlarged for rounding to its grid."""
    # Largest deviation of noise for which a grid of that step has enough bits.
    largest_sigma = 2.0**30
    # Tolerate rounding errors in doubles.
    if sensitivity > largest_sigma * (1 + 1e-12) * cost.mu:
        raise ValueError(
            "words or other keys that come from the data are protected by noise of a standard "
            f"deviation of at most {largest_sigma:g}, got {sensitivity:g} / {cost.mu:g}; a larger "
            "epsilon needs less, or fewer keys of one unit (max_words_per_document)."
        )
    return sensitivity / cost.mu * (1 + STEP)


def _threshold_of_weights(most_keys: int, largest: float, sigma: float, delta: float) -> float:
    """Threshold that any key of one unit alone reaches with probability `delta` at most."""
    # A key of weight v may pass with probability p = delta (a v^2 + 1 - a) / most_keys. These add
    # up to at most delta for every a in [0, 1], as squares of weights add up to `most_keys` at
    # most. A threshold v - sigma Phi^-1(p) does it; in an interval of weights it is at most that of
    # the larger v at the smaller p.
    weights = np.linspace(0.0, largest, N_INTERVALS + 1)
    best = math.inf
    for a in CANDIDATES:
        failure = delta * (a * weights[:-1] ** 2 + 1 - a) / most_keys
        best = min(best, float((weights[1:] - sigma * ndtri(np.minimum(failure, 0.5))).max()))
    return best


@lru_cache(maxsize=256)
def largest_weight(most_keys: int, sensitivity: float, cost: PrivacyCost) -> tuple[float, float]:
    """Largest weight of a key that raises the threshold by 3 % at most, and that threshold."""
    sigma, delta = _grid_scale(sensitivity, cost), cost.delta
    highest = LARGEST_INCREASE * _threshold_of_weights(most_keys, 1.0, sigma, delta)
    # One key alone has the weight sqrt(most_keys) at most.
    for weight in np.geomspace(math.sqrt(most_keys), 1.0, 40).tolist():
        threshold = _threshold_of_weights(most_keys, weight, sigma, delta)
        if threshold <= highest:
            break
    return weight, STEP + threshold


def most_units_below(
    threshold: float, largest: float, sensitivity: float, cost: PrivacyCost, probability: float
) -> int:
    """Most units that may have a key if it is to pass with at most this `probability`.

    Each unit adds `largest` at most; rounding adds `STEP`, as the proof says.
    """
    noise = float(ndtri(1 - probability)) * _grid_scale(sensitivity, cost)
    return max(math.floor((threshold - STEP - noise) / largest), 0)


def gaussian_partition_selection(
    totals: Mapping[str, float], sigma: float, threshold: float, noise: NoiseSource
) -> tuple[list[str], Floats]:
    """Add noise to totals; return the keys at or above `threshold` and their noisy totals."""
    keys = sorted(totals)
    values = np.fromiter(map(totals.__getitem__, keys), np.float64, len(keys))
    if sigma > 0:
        # Equal totals round alike. Totals that differ are moved apart by at most one step more, and
        # two units contribute to a bounded number of keys. So the step does not depend on the
        # number of keys, which is private.
        grid = noise.grid(sigma, 1.0, rounding_cost=STEP)
        values = noise.add_noise(values, grid)
    kept = np.flatnonzero(values >= threshold)
    return [keys[place] for place in kept], values[kept]
