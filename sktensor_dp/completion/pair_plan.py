"""Whether and for how much pairs are released, from public numbers only."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sktensor_dp.completion import defaults
from sktensor_dp.completion.assumed import COMPONENT, RESIDUAL
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.tensor.shared_parameters import clipped_response

# Shares of epsilon, the largest of which is taken that raises the expected error of predictions,
# which pairs do not help, by at most so much.
PAIR_SHARES = (1 / 8, 1 / 10, 1 / 12, 1 / 16, 1 / 24)
# How far components must stand out of the noise, and columns at most.
PAIR_ROOM, MOST_PAIRED = 1.2, 1024


@dataclass(frozen=True)
class Folding:
    """Public numbers of a table whose rows may fold in, and what is spent on that."""

    n_observed: int
    shape: Sequence[int]
    epsilon: float
    delta: float

    def part(self, share: float) -> "Folding":
        """The same with a share of epsilon."""
        return replace(self, epsilon=share * self.epsilon)


def pair_share(whole: Folding, loss: Callable[[float], float]) -> float:
    """Share of epsilon that is spent on pairs; 0 where they do not pay."""
    share = next((share for share in PAIR_SHARES if loss(share) <= defaults.PAIR_LOSS), 0.0)
    pays = share > 0 and pairs_detectability(whole.part(share)) >= PAIR_ROOM
    return share if pays else 0.0


def pairs_detectability(spent: Folding) -> float:
    """Eigenvalue of a component worth finding over the edge of the noise of pairs."""
    shape = spent.shape
    if len(shape) != 2 or not 0 < spent.epsilon < math.inf:
        return 0.0
    n_rows, n_columns = shape
    each = spent.n_observed / n_rows
    if each <= 1 or not 1 < n_columns <= MOST_PAIRED:
        return 0.0
    cost = cost_at(spent.epsilon, spent.delta)
    if spent.delta > 0:
        noise = 2 * math.sqrt(each - 1) / cost.mu
    else:
        noise = 2 * (each - 1) * math.sqrt(2) / cost.epsilon
    counts = n_rows * min(each / n_columns, 1.0) ** 2
    response = (clipped_response(defaults.PAIR_CLIP, RESIDUAL) * COMPONENT) ** 2
    return counts * n_columns * response / (2 * math.sqrt(n_columns) * noise)


def releases_for_folding(epsilon: float, delta: float, share: float) -> ReleasePlan:
    """Row sums with pure noise, and pairs with what the share of epsilon buys."""
    sums = PlannedRelease("row_sums", PrivacyCost(epsilon=(1 - share) * epsilon))
    found = PlannedRelease("entry_pairs", cost_at(share * epsilon, delta))
    return ReleasePlan(float(epsilon), float(delta), (sums, found))


def cost_at(epsilon: float, delta: float) -> PrivacyCost:
    """Cost of Gaussian noise, or of pure noise where there is no delta."""
    return (
        PrivacyCost(mu=gaussian_mu(epsilon, delta)) if delta > 0 else PrivacyCost(epsilon=epsilon)
    )
