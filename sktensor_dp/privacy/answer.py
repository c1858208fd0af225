"""Answers: what a session releases, and what may be read off a released histogram."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.tensor.arrays import Floats

# Fraction of a histogram beyond each end of the range that is chosen from it.
TAIL = 0.01
# Deviation of noise, in half widths of a range, from which on a released mean that is near an end
# of the range, or a released deviation near 0, may be so by noise.
LITTLE_NOISE = 0.05
# To find a range, so many bins are merged: the fewest with which fractions above the noise sum to
# at least `LEAST_SHOWN` of the largest such sum.
MERGED, LEAST_SHOWN = (1, 2, 4, 8, 16, 32), 0.8
# Fraction of units that a bin without noise may hold by rounding.
EMPTY = 1e-9
# Probability that noise alone fills a bin of a histogram, which would give far too wide a range.
FALSE_BIN = 1e-3
# Probability that noise alone shows a run of bins, times the number of bins and the lower edge of
# the run's last bin. A wrong bound costs more accuracy than the few units that this hides.
FALSE_RUN = 0.1


class ShownRange(NamedTuple):
    """Range of values that a released histogram shows."""

    low: float
    high: float
    seen: bool  # False where all bins may be noise


@dataclass(frozen=True, eq=False)
class Answer:
    """Released answer to a query, and what is public about its noise; exact only at epsilon=inf."""

    value: Floats  # mean over units; where there are `keys`, a total of each
    sigma: float  # standard deviation of the noise along a coordinate
    sensitivity: float  # largest change of the value by one unit
    cost: PrivacyCost
    n: int  # number of units that sums were divided by
    keys: list[str] | None = None  # released words, of queries whose words are private

    def as_sum(self) -> "Answer":
        """Answer as a sum over units instead of a mean."""
        n = self.n
        return replace(
            self, value=self.value * n, sigma=self.sigma * n, sensitivity=self.sensitivity * n, n=1
        )

    def over(self, divisor: float) -> "Answer":
        """Answer divided by a public or released number."""
        return replace(
            self, value=self.value / divisor, sigma=self.sigma / divisor,
            sensitivity=self.sensitivity / divisor,
        )  # fmt: skip

    def edge_at(self, edges: Floats, quantile: float) -> float:
        """Upper edge of the bin, between `edges`, in which noisy fractions reach a `quantile`."""
        # Bins that noise alone could fill count as empty, as many empty ones would add up. The
        # threshold is the universal one of Donoho & Johnstone (1994) for Gaussian noise; for
        # Laplace noise, one that noise exceeds in one histogram of 200.
        n_bins = len(edges) - 1
        level = math.sqrt(2 * math.log(n_bins))
        if self.cost.epsilon > 0:  # the tails of pure laws are heavier
            level = _laplace_level(1 / (200 * n_bins))
        kept = np.where(self.value > self.sigma * level, self.value, 0.0)
        if not kept.any():  # nothing stands out: any bin may hold units
            kept = np.maximum(self.value, 0.0)
        reached = np.cumsum(kept) >= quantile * kept.sum()
        return float(edges[1 + int(np.argmax(reached))])

    def last_edge(self, edges: Floats) -> float:
        """Upper edge of the last bin at which a run of bins begins whose sum exceeds its noise.

        The chance that noise alone shows a run is at most in proportion to 1 / its first edge: it
        raises the mean of the returned edge by less than 1 for `edges` that grow by sqrt(2).
        """
        n_bins = len(self.value)
        first, last = np.triu_indices(n_bins)  # bins of each run
        chances = FALSE_RUN / (n_bins * np.maximum(edges[:-1], 1.0))
        levels = np.array([self._level(chance) for chance in chances])
        sums = np.append(0.0, np.cumsum(self.value))
        noise = levels[last] * self.sigma * np.sqrt(last - first + 1)
        is_shown = sums[last + 1] - sums[first] > noise + EMPTY
        return float(edges[1 + max(first[is_shown], default=0)])

    def range_of(self, edges: Floats) -> ShownRange:
        """Range between two `edges`, with at most `TAIL` of the units shown on either side."""
        # Fractions of units above the noise, by number of bins that are merged: wider ones stand
        # out more clearly, but determine the ends of the range less precisely. Noise of `width`
        # bins has sqrt(width) times the deviation of one.
        above_noise = {}
        for width in MERGED:
            merged = self._merged(width)
            level = self._level(FALSE_BIN / len(merged))  # the probability for one of them
            threshold = self.sigma * math.sqrt(width) * level
            above_noise[width] = np.where(merged > threshold, merged, 0.0)
        largest_sum = max(float(fractions.sum()) for fractions in above_noise.values())
        if largest_sum == 0:  # take the fullest of the widest bins, though it may be noise
            widest = self._merged(MERGED[-1])
            above_noise = {MERGED[-1]: np.where(widest == widest.max(), 1.0, 0.0)}
        enough = LEAST_SHOWN * largest_sum
        width, fractions = next(item for item in above_noise.items() if item[1].sum() >= enough)
        reached = np.cumsum(fractions)
        low = edges[width * int(np.argmax(reached > TAIL * reached[-1]))]
        high = edges[width * (int(np.argmax(reached >= (1 - TAIL) * reached[-1])) + 1)]
        return ShownRange(float(low), float(high), largest_sum > 0)

    def _merged(self, width: int) -> Floats:
        """Sums over runs of `width` bins, of shape (n_bins / width,)."""
        return np.asarray(self.value.reshape(-1, width).sum(axis=1))

    def _level(self, probability: float) -> float:
        """Number of deviations that the noise of a bin exceeds with a probability."""
        if self.cost.epsilon > 0:
            return _laplace_level(probability)
        return -float(ndtri(probability))


def is_at_end(mean: float, sigma: float, half: float) -> bool:
    """Return True if a released mean lies at an end of the range -`half` to `half`.

    Nearly all values are then clipped to that end. False where the noise, `sigma`, is too large.
    """
    return sigma < LITTLE_NOISE * half and abs(mean) + 2 * sigma >= half


def _laplace_level(probability: float) -> float:
    """Number of deviations that Laplace noise exceeds with a probability."""
    # P(x > level) = exp(-sqrt(2) level) / 2 where the deviation is 1.
    return -math.log(2 * probability) / math.sqrt(2)
