"""Partition selection: noisy totals of the partitions that clear a threshold.

Where the keys of a histogram (words, say) come from the data, even the list of
keys is private. Gaussian noise is added to the total of every key that is present,
and only keys whose noisy total reaches a threshold leave; the threshold is so high
that keys contributed by one unit alone fail to reach it, all of them at once, but
with probability delta.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost

__all__ = [
    "PartitionQuery",
    "PartitionSelection",
    "gaussian_partition_selection",
    "selection_threshold",
]

Floats = NDArray[np.float64]

# Largest step of the grid: what rounding may add to a total, and to the noise as a share.
STEP = 2.0**-20


class PartitionQuery(Protocol):
    """A sum over units of at most ``max_partitions`` ones, by key."""

    def total(self, chunk: Any) -> Mapping[str, int]:
        """Sum of the contributions of the units in a chunk; other keys are absent."""

    @property
    def max_partitions(self) -> int:
        """Largest number of keys to which a unit contributes."""

    @property
    def l2_sensitivity(self) -> float:
        """L2 norm of the largest change of the sum when one unit is replaced."""

    @property
    def l1_sensitivity(self) -> float:
        """L1 norm of the largest change of the sum when one unit is replaced."""


@dataclass(frozen=True)
class PartitionSelection:
    """The law under which totals of private keys leave; stands where a Mechanism does."""

    name: str
    norm: Literal["l2"] = "l2"

    def release(
        self,
        totals: Mapping[str, int],
        sensitivity: float,
        cost: PrivacyCost,
        noise: NoiseSource,
        query: PartitionQuery,
    ) -> tuple[list[str], Floats]:
        """Return the keys that were selected, and their noisy totals."""
        sigma = self.sigma(sensitivity, cost)
        threshold = selection_threshold(query, sensitivity, cost)
        return gaussian_partition_selection(totals, sigma, threshold, noise)

    def strength(self, cost: PrivacyCost) -> float:
        """Return the Gaussian part of a cost."""
        return cost.mu

    def sigma(self, sensitivity: float, cost: PrivacyCost) -> float:
        """Standard deviation of the noise on each total."""
        return sensitivity / cost.mu


def selection_threshold(query: PartitionQuery, sensitivity: float, cost: PrivacyCost) -> float:
    r"""Noisy total from which a key may leave; a public number."""
    # A key that one unit alone contributes has a total of 1. As many as `query.max_partitions` such
    # keys stay below `1 + sigma * Phi^-1((1 - delta) ** (1 / max_partitions))` together with
    # probability `1 - delta`.
    if math.isinf(cost.mu):
        return 1.0
    if not cost.delta > 0:
        raise ValueError(f"partition selection needs delta > 0, got {cost.delta!r}.")
    failure = -math.expm1(math.log1p(-cost.delta) / query.max_partitions)
    quantile = -float(ndtri(failure))
    return 1 + STEP + sensitivity / cost.mu * (1 + STEP) * quantile


def gaussian_partition_selection(
    totals: Mapping[str, int], sigma: float, threshold: float, noise: NoiseSource
) -> tuple[list[str], Floats]:
    """Add Gaussian noise to totals and drop those below a threshold."""
    keys = sorted(totals)
    values = np.fromiter(map(totals.__getitem__, keys), np.float64, len(keys))
    if sigma > 0:
        # Where totals of neighbours agree, they round alike; where not, they are at least 1
        # apart and end at most a factor 1 + step further: the step need not depend on how
        # many keys there are, which is private.
        grid = noise.grid(sigma, 1.0, diameter=STEP)
        values = noise.add_gaussian(values, grid)
    kept = np.flatnonzero(values >= threshold)
    return [keys[place] for place in kept], values[kept]
