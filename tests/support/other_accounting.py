"""Epsilon of a cost by privacy loss distributions of another library."""

from functools import cache

from dp_accounting.pld import privacy_loss_distribution as losses

from sktensor_dp.privacy.plan import PrivacyCost


@cache
def epsilon_elsewhere(cost: PrivacyCost, delta: float) -> float:
    """Epsilon of a cost at a delta, which may be too large by a step of losses."""
    if cost.mu == 0:
        return cost.epsilon
    # Of large losses, which are about mu ** 2 / 2, a step is a 5000th.
    step = 1e-3 * cost.mu * max(1.0, cost.mu / 10)
    whole = losses.from_gaussian_mechanism(1 / cost.mu, value_discretization_interval=step)
    return cost.epsilon + whole.get_epsilon_for_delta(delta - cost.delta)
