"""Selection of the best of a secret number of trials: their cost and their number."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from sktensor_dp.privacy.calibration import gaussian_delta, gaussian_mu, least_double
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost

# Probabilities of stopping are multiples of 1 / STEPS, which are exact in double precision and can
# be drawn exactly.
STEPS = 2**53
# Roots have errors of about 1e-12; trials get less than the root by this fraction.
MARGIN = 1e-9
# A cost below this counts as 0.
LEAST_COST = 1e-150


def stop_probability(n_trials: float) -> float:
    """Probability of stopping after each trial that gives the expected number `n_trials`."""
    return math.ceil(STEPS / n_trials) / STEPS


def failure_of_trials(delta: float, stop: float) -> float:
    """Delta that each trial may set aside for its failures: rare words that pass a threshold."""
    # Fraction of the selection's delta for failures of trials, if trials set a delta aside.
    failures_fraction = 0.5
    return failures_fraction * stop * delta


def selection_delta(mu: float, stop: float, epsilon: float, failure: float = 0.0) -> float:
    """Delta at which the best of a geometric number of ``mu``-GDP trials is (epsilon, delta)-DP."""
    # `stop` is the probability of stopping after a trial, and `failure` the delta that each trial
    # sets aside. docs/proofs/private_selection.md, corollary: delta is profile(epsilon - 2 rho) /
    # stop, where profile(x) = failure + gaussian_delta(mu, x).
    epsilon_of_trial = epsilon - 2 * _rho_of_trials(mu, stop, failure)
    if epsilon_of_trial < 0:
        return 1.0
    return min(1.0, (failure + gaussian_delta(mu, epsilon_of_trial)) / stop)


def selection_epsilon(epsilon: float, stop: float) -> float:
    """Epsilon of the best of a geometric number of trials that are each `epsilon`-DP."""
    # docs/proofs/private_selection.md, pure trials: e^rho = (e^epsilon + stop) / (1 + stop
    # e^epsilon). The sum is less than three times epsilon, its limit for `stop` to 0.
    log_stop = math.log(stop)
    rho = np.logaddexp(epsilon, log_stop) - np.logaddexp(0.0, log_stop + epsilon)
    return float(epsilon + 2 * rho)


def trial_cost(epsilon: float, delta: float, stop: float, failure: float = 0.0) -> PrivacyCost:
    """Largest cost of each trial at which releasing the best is (epsilon, delta)-DP."""
    # `failure` is the delta that each trial with Gaussian noise sets aside.
    if math.isinf(epsilon):
        gaussian = PrivacyCost(mu=math.inf, delta=failure)
        return gaussian if delta > 0 else PrivacyCost(epsilon=math.inf)
    if delta == 0:
        pure = _largest(lambda each: selection_epsilon(each, stop) <= epsilon, epsilon)
        return PrivacyCost(epsilon=pure)
    if failure > stop * delta:
        return PrivacyCost(delta=failure)  # nothing is left for noise
    mu = _largest(
        lambda mu: selection_delta(mu, stop, epsilon, failure) <= delta, gaussian_mu(epsilon, delta)
    )
    return PrivacyCost(mu=mu, delta=failure)


def secret_trials(stop: float) -> Iterator[list[int]]:
    """Iterate over a secret, geometric number of trials; yields 256 secret random bits for each."""
    # Each trial gets 256 secret bits as four integers, from which it must draw everything but
    # noise. After each trial the iteration ends with probability `stop`. Both come from the source
    # of noise, which no `random_state` seeds.
    source, threshold = NoiseSource(), round(stop * STEPS)
    stopped = False
    while not stopped:
        yield [int(word) for word in source.integers(2**64, 4)]
        stopped = int(source.integers(STEPS, 1)[0]) < threshold


def _rho_of_trials(mu: float, stop: float, failure: float) -> float:
    """Smallest rho with ``stop (exp(rho) - 1) >= (1 - stop) profile(rho)``, rounded up."""
    # docs/proofs/private_selection.md has it, with profile(x) = failure + gaussian_delta(mu, x).

    def covers(rho: float) -> bool:
        # `stop` is at least 2**-53, so growth by exp(100) is enough; more would overflow.
        grown = stop * math.expm1(min(rho, 100.0))
        return grown >= (1 - stop) * (failure + gaussian_delta(mu, rho))

    return 0.0 if covers(0.0) else least_double(covers)


def _largest(allowed: Callable[[float], bool], high: float) -> float:
    """Largest number, at most `high`, up to which `allowed` holds; less a margin for rounding."""
    low = high if allowed(high) else 0.0
    # `allowed` holds up to some number and for none above.
    while high - low > MARGIN / 8 * high and high > LEAST_COST:
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low * (1 - MARGIN)
