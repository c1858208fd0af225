"""Whether and for how much products of pairs are released, from public numbers only."""

import math
from collections.abc import Callable, Sequence

from sktensor_dp.completion.assumed import COMPONENT, RESIDUAL
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.tensor.shared_effects import clipped_response

__all__ = ["PAIRED_POWER", "PAIR_CLIP", "pair_share", "pairs_detectability", "releases_with_pairs"]

# Shares of epsilon, the largest of which is taken that raises the expected error of predictions,
# which pairs do not help, by at most so much.
PAIR_SHARES, MOST_LOSS = (1 / 8, 1 / 10, 1 / 12, 1 / 16, 1 / 24), 0.002
# How far components must stand out of the noise, and columns at most.
PAIR_ROOM, MOST_PAIRED = 1.2, 1024
# Residual that counts as 1, in deviations of values about the model: little is lost of a sign,
# and a value moves a product by as much.
PAIR_CLIP = 0.5
# Where pairs are released, rows with few entries get more of the sums, for which noise is least.
PAIRED_POWER = 2 / 3


def pair_share(
    n_observed: int,
    shape: Sequence[int],
    unit_mode: int,
    epsilon: float,
    delta: float,
    loss: Callable[[float], float],
) -> float:
    """Share of epsilon that is spent on pairs; 0 where they do not pay.

    `loss` says by how much a share makes predictions worse.
    """
    share = next((share for share in PAIR_SHARES if loss(share) <= MOST_LOSS), 0.0)
    if share == 0:
        return 0.0
    found = pairs_detectability(n_observed, shape, unit_mode, share * epsilon, delta)
    return share if found >= PAIR_ROOM else 0.0


def pairs_detectability(
    n_observed: int, shape: Sequence[int], unit_mode: int, epsilon: float, delta: float
) -> float:
    """Eigenvalue of a component worth finding over the edge of the noise of pairs at epsilon."""
    if len(shape) != 2 or unit_mode not in (0, 1) or not 0 < epsilon < math.inf:
        return 0.0
    n_rows, n_columns = shape[unit_mode], shape[1 - unit_mode]
    each = n_observed / n_rows
    if each <= 1 or not 1 < n_columns <= MOST_PAIRED:
        return 0.0
    cost = _cost(epsilon, delta)
    if delta > 0:
        noise = 2 * math.sqrt(each - 1) / cost.mu
    else:
        noise = 2 * (each - 1) * math.sqrt(2) / cost.epsilon
    counts = n_rows * min(each / n_columns, 1.0) ** 2
    response = (clipped_response(PAIR_CLIP, RESIDUAL) * COMPONENT) ** 2
    return counts * n_columns * response / (2 * math.sqrt(n_columns) * noise)


def releases_with_pairs(epsilon: float, delta: float, share: float) -> ReleasePlan:
    """Sums by a pure law, and pairs."""
    sums = PlannedRelease("row_sums", PrivacyCost(epsilon=(1 - share) * epsilon))
    pairs = PlannedRelease("entry_pairs", _cost(share * epsilon, delta))
    return ReleasePlan(float(epsilon), float(delta), (sums, pairs))


def _cost(epsilon: float, delta: float) -> PrivacyCost:
    return (
        PrivacyCost(mu=gaussian_mu(epsilon, delta)) if delta > 0 else PrivacyCost(epsilon=epsilon)
    )
