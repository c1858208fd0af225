"""Epsilon of a cost by privacy loss distributions of another library."""

from dp_accounting.pld import privacy_loss_distribution as losses

from sktensor_dp.privacy.plan import PrivacyCost


def epsilon_elsewhere(cost: PrivacyCost, delta: float) -> float:
    """Epsilon of a cost at a delta."""
    if cost.mu == 0:
        return cost.epsilon
    whole = losses.from_gaussian_mechanism(
        1 / cost.mu, value_discretization_interval=1e-3 * cost.mu
    )
    return cost.epsilon + whole.get_epsilon_for_delta(delta - cost.delta)
