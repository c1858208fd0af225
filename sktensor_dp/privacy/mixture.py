"""Gaussian and pure releases together, by their privacy loss distributions."""

import math
from collections.abc import Mapping
from functools import lru_cache

# Bins between 0 and the epsilon that basic composition states, or 4 mu if that is larger: the
# normal law reaches far beyond both where delta is large.
BINS = 2**13
# More kinds of pure costs than this would be slow to convolve.
MAX_KINDS = 32
# Convolutions by FFT err by about 1e-14 in probability: a thousandth of the smallest
# delta is far more, and is what is held back.
MIN_DELTA, MARGIN = 1e-10, 1e-3


def mixed_epsilon(mu: float, pure: Mapping[float, int], delta: float, stated: float) -> float:
    """Epsilon of a Gaussian release and of pure ones, through ``dp-accounting``."""
    # A pure release of which only epsilon is known is taken for randomised response, which
    # dominates every other (Kairouz, Oh & Viswanath 2015); privacy losses add up, on a grid rounded
    # upwards.
    # `stated`, a valid epsilon, sets the width of the grid. Infinite without `dp-accounting`, and
    # for numbers outside the range in which its arithmetic can be trusted.
    kinds = tuple(sorted(pure.items()))
    if delta < MIN_DELTA or len(kinds) > MAX_KINDS or not 1e-6 <= stated <= 500:
        return math.inf
    # Powers of two: charges that follow each other share a grid, and totals only grow.
    width = 2.0 ** math.ceil(math.log2(max(stated, 4 * mu) / BINS))
    return _composed(mu, kinds, delta * (1 - MARGIN), width)


@lru_cache(maxsize=64)
def _composed(mu: float, kinds: tuple[tuple[float, int], ...], delta: float, width: float) -> float:
    try:
        from dp_accounting.pld import privacy_loss_distribution as losses
        from dp_accounting.pld.common import DifferentialPrivacyParameters
    except ImportError:
        return math.inf
    whole = losses.from_gaussian_mechanism(1 / mu, value_discretization_interval=width)
    for epsilon, uses in kinds:
        one = losses.from_privacy_parameters(DifferentialPrivacyParameters(epsilon, 0.0), width)
        whole = whole.compose(one.self_compose(uses))
    return float(whole.get_epsilon_for_delta(delta))
