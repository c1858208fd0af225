"""Which part of a budget each release takes."""

import math
from collections.abc import Iterable, Sequence

from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost


def budget_shares(
    costs: Sequence[tuple[PrivacyCost, int]], epsilon: float, delta: float
) -> list[float | None]:
    """Return the part of (epsilon, delta) that each cost takes, all its uses together."""
    set_aside = math.fsum(cost.delta * uses for cost, uses in costs)
    # What is left of delta is spent on Gaussian tails.
    tails = delta - set_aside
    known = 0 < epsilon < math.inf
    mu = gaussian_mu(epsilon, tails) if known and 0 < tails < 1 else 0.0
    return [_share(cost, uses, epsilon, mu) if known else None for cost, uses in costs]


def _share(cost: PrivacyCost, uses: int, epsilon: float, mu: float) -> float | None:
    if math.isinf(cost.mu) or math.isinf(cost.epsilon) or (cost.mu > 0 and mu == 0):
        return None
    # A product, since a power of a float raises where it overflows.
    ratio = cost.mu / mu if cost.mu > 0 else 0.0
    return min(1.0, uses * (ratio * ratio + cost.epsilon / epsilon))


def kind_of_shares(costs: Iterable[PrivacyCost]) -> str:
    """Name what the shares of some costs are shares of."""
    costs = list(costs)
    if costs and all(cost.epsilon > 0 and cost.mu == 0 for cost in costs):
        return "epsilon"
    return "budget" if any(cost.epsilon > 0 for cost in costs) else "mu^2"


def percentages(shares: Iterable[float | None]) -> list[str]:
    """Write shares as percentages; nothing where there is none."""
    return ["" if share is None else f"{share:.1%}" for share in shares]


def written_cost(cost: PrivacyCost) -> tuple[str, str]:
    """Write mu and epsilon; nothing for the kind of noise that a release does not have."""
    mu = f"{cost.mu:.4g}" if cost.mu > 0 else ""
    return mu, f"{cost.epsilon:.4g}" if cost.epsilon > 0 else ""
