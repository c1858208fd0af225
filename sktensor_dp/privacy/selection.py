"""Private choices: words that enough units have, and the best of a secret number of trials."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.privacy.calibration import gaussian_delta, gaussian_mu, least_double
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.laws import GAUSSIAN_THRESHOLDED, Law

# Probabilities of stopping are multiples of 1 / STEPS: exact in double precision, and
# drawn exactly.
STEPS = 2**53
# Roots are found to some 1e-12; a trial gets this much less than the root.
SHORT = 1e-9
# Below it nothing is allowed.
LEAST = 1e-150
# Part of the selection's delta that failures of trials take, where these set something aside.
FAILURES_FRACTION = 0.5


def stop_probability(n_trials: float) -> float:
    """Probability of stopping after each trial that gives the expected number `n_trials`."""
    return math.ceil(STEPS / n_trials) / STEPS


def failure_of_trials(delta: float, stop: float) -> float:
    """Delta that each trial may set aside for its own failures, such as rare words that pass."""
    return FAILURES_FRACTION * stop * delta


def selection_delta(mu: float, stop: float, epsilon: float, failure: float = 0.0) -> float:
    """Delta at which the best of a geometric number of ``mu``-GDP trials is (epsilon, delta)-DP."""
    # `stop` is the probability of stopping after a trial. If each trial fails to be mu-GDP with
    # probability `failure`, delta includes `failure` times the mean number of trials.
    # profile(epsilon - 2 rho) / stop, where `profile` maps epsilon to the trial's delta and
    # stop (exp(rho) - 1) = (1 - stop) profile(rho).
    inner = epsilon - 2 * _tail_ratio(mu, stop, failure)
    return 1.0 if inner < 0 else min(1.0, (failure + gaussian_delta(mu, inner)) / stop)


def selection_epsilon(epsilon: float, stop: float) -> float:
    """Epsilon of the best of a geometric number of trials that are each `epsilon`-DP."""
    # Below three times epsilon, which it approaches for `stop` to 0.
    log_stop = math.log(stop)
    growth = np.logaddexp(epsilon, log_stop) - np.logaddexp(0.0, log_stop + epsilon)
    return float(epsilon + 2 * growth)


def trial_cost(epsilon: float, delta: float, stop: float, failure: float = 0.0) -> PrivacyCost:
    """Largest cost of each trial at which releasing the best is (epsilon, delta)-DP."""
    # `failure` is the delta that each trial with Gaussian noise spends beside its noise.
    if math.isinf(epsilon):
        gaussian = PrivacyCost(mu=math.inf, delta=failure)
        return gaussian if delta > 0 else PrivacyCost(epsilon=math.inf)
    if delta == 0:
        pure = _largest(lambda e: selection_epsilon(e, stop) <= epsilon, epsilon)
        return PrivacyCost(epsilon=pure)
    if failure > stop * delta:
        return PrivacyCost(delta=failure)  # nothing is left for noise
    mu = _largest(
        lambda mu: selection_delta(mu, stop, epsilon, failure) <= delta,
        gaussian_mu(epsilon, delta),
    )
    return PrivacyCost(mu=mu, delta=failure)


def secret_trials(stop: float) -> Iterator[list[int]]:
    """Iterate over a secret, geometric number of trials; yields 256 secret random bits for each."""
    # Iterating yields 256 secret bits per trial, as four integers: all that the trial draws besides
    # noise has to come from them. After each the iteration ends with probability `stop`. Both come
    # from the source of noise; nothing seeds them.
    source, threshold = NoiseSource(), round(stop * STEPS)
    stopped = False
    while not stopped:
        yield [int(word) for word in source.integers(2**64, 4)]
        stopped = int(source.integers(STEPS, 1)[0]) < threshold


def _tail_ratio(mu: float, stop: float, failure: float) -> float:
    """Smallest rho with ``stop (exp(rho) - 1) >= (1 - stop) profile(rho)``, rounded up."""

    def covers(rho: float) -> bool:
        # Steps of `stop` are 2**-53: growth by exp(100) is enough, and more would overflow.
        grown = stop * math.expm1(min(rho, 100.0))
        return grown >= (1 - stop) * (failure + gaussian_delta(mu, rho))

    return 0.0 if covers(0.0) else least_double(covers)


def _largest(allowed: Callable[[float], bool], high: float) -> float:
    """Largest number up to `high`, less a margin, up to which `allowed` holds."""
    low = 0.0 if not allowed(high) else high
    # Bisection needs no sign changes of a value that is capped at 1.
    while high - low > SHORT / 8 * high and high > LEAST:
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low * (1 - SHORT)


Floats = NDArray[np.float64]

# Largest step of the grid: what rounding may add to a total, and to the noise as a fraction.
STEP = 2.0**-20
# Largest noise with a grid that fine: beyond twice as much, `NoiseSource.grid` has no more bits.
LARGEST_SIGMA = 2.0**30
# Points at which a threshold for weights is formed, how it may be divided, and by how much a larger
# weight of a key may raise it.
MESH, PARTS, WORTH = 4000, (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5), 1.03


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
        query: Any,
    ) -> tuple[list[str], Floats]:
        """Sorted keys whose noisy totals reach the threshold, and these noisy totals."""
        sigma = sensitivity / self.law.strength(cost)
        noise.recorder.record(self.law.id, query, totals, sensitivity, sigma)
        threshold = selection_threshold(query, sensitivity, cost)
        return gaussian_partition_selection(totals, sigma, threshold, noise)


def selection_threshold(query: Any, sensitivity: float, cost: PrivacyCost) -> float:
    """Threshold that keys of one unit alone reach with probability ``cost.delta`` at most."""
    if math.isinf(cost.mu):
        return 0.0
    if not cost.delta > 0:
        raise ValueError(f"partition selection needs delta > 0, got {cost.delta!r}.")
    sigma = _grid_scale(sensitivity, cost)
    most, largest = query.max_words_per_document, query.largest
    return STEP + _threshold_of_weights(most, largest, sigma, cost.delta)


def _grid_scale(sensitivity: float, cost: PrivacyCost) -> float:
    """Standard deviation of the noise, with the most that rounding to its grid adds."""
    # Rounding to doubles is forgiven.
    if sensitivity > LARGEST_SIGMA * (1 + 1e-12) * cost.mu:
        raise ValueError(
            "words or other keys that come from the data are protected by noise of a standard "
            f"deviation of at most {LARGEST_SIGMA:g}, got {sensitivity:g} / {cost.mu:g}; a larger "
            "epsilon needs less, or fewer keys of one unit (max_words_per_document)."
        )
    return sensitivity / cost.mu * (1 + STEP)


def _threshold_of_weights(most: int, largest: float, sigma: float, delta: float) -> float:
    """Threshold that keys of one unit alone pass with probability `delta` at most."""
    # A key with a weight v may fail with probability `delta * (a v^2 + 1 - a) / most`: these add up
    # to delta at most, for every a in [0, 1]. Between two points of the mesh, the threshold that v
    # needs is at most the one made of the larger v and of the smaller probability.
    weights = np.linspace(0.0, largest, MESH + 1)
    best = math.inf
    for part in PARTS:
        failure = delta * (part * weights[:-1] ** 2 + 1 - part) / most
        best = min(best, float((weights[1:] - sigma * ndtri(np.minimum(failure, 0.5))).max()))
    return best


@lru_cache(maxsize=256)
def largest_weight(most: int, sensitivity: float, cost: PrivacyCost) -> tuple[float, float]:
    """Largest weight of a key that raises the threshold by 3 % at most, and that threshold."""
    sigma, delta = _grid_scale(sensitivity, cost), cost.delta
    low = WORTH * _threshold_of_weights(most, 1.0, sigma, delta)
    weight, threshold = 1.0, math.inf
    for weight in np.geomspace(math.sqrt(most), 1.0, 40).tolist():
        threshold = _threshold_of_weights(most, weight, sigma, delta)
        if threshold <= low:
            break
    return weight, STEP + threshold


def gaussian_partition_selection(
    totals: Mapping[str, float], sigma: float, threshold: float, noise: NoiseSource
) -> tuple[list[str], Floats]:
    """Add noise to totals; return the keys at or above `threshold` and their noisy totals."""
    keys = sorted(totals)
    values = np.fromiter(map(totals.__getitem__, keys), np.float64, len(keys))
    if sigma > 0:
        # Where totals of neighbours agree, they round alike; where not, rounding moves them at
        # most a step further apart, in no more keys than two units contribute to: the step
        # need not depend on how many keys there are, which is private.
        grid = noise.grid(sigma, 1.0, diameter=STEP)
        values = noise.add_noise(values, grid)
    kept = np.flatnonzero(values >= threshold)
    return [keys[place] for place in kept], values[kept]
