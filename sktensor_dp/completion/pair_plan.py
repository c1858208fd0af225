"""Whether and for how much pairs or directions are released, from public numbers only."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sktensor_dp.completion.assumed import COMPONENT, RESIDUAL
from sktensor_dp.completion.rows import GROWING, share_kept
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_effects import clipped_response

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
# The same for directions, the largest share again: below a certain one all of it is lost.
DIRECTION_SHARES, MOST_LOSS_BY_DIRECTIONS = (0.35, 0.3, 0.25, 0.2), 0.018
# Releases, last ones that say which directions are kept, and how far each column must stand out
# of the noise of all.
SEARCHES, LAST, ROOM = 40, 10, 0.44
# What clipped lengths, and rows that are longer than usual, leave of what a release of directions
# would show of them.
SEARCHED = 0.7
# Fewer columns than that, if more are asked for, explain too little of what others lose by it.
LEAST_COLUMNS = 4
# Residual that counts as 1, in deviations of values about the model.
DIRECTION_CLIP = 0.25


@dataclass(frozen=True)
class Folding:
    """Public numbers of a table whose rows may fold in, and what is spent on that."""

    n_observed: int
    shape: Sequence[int]
    unit_mode: int
    epsilon: float
    delta: float

    def part(self, share: float) -> "Folding":
        """The same with a share of epsilon."""
        return replace(self, epsilon=share * self.epsilon)


def folding_share(whole: Folding, rank: int, loss: Callable[[float], float]) -> tuple[float, int]:
    """Share of epsilon that is spent on folding in, and columns where it goes to directions.

    `loss` says by how much a share makes predictions worse. The share is 0 where none pays.
    """
    share = pair_share(whole, loss)
    return (share, 0) if share > 0 else _directions(whole, rank, loss)


def pair_share(whole: Folding, loss: Callable[[float], float]) -> float:
    """Share of epsilon that is spent on pairs; 0 where they do not pay."""
    share = next((share for share in PAIR_SHARES if loss(share) <= MOST_LOSS), 0.0)
    pays = share > 0 and pairs_detectability(whole.part(share)) >= PAIR_ROOM
    return share if pays else 0.0


def pairs_detectability(spent: Folding) -> float:
    """Eigenvalue of a component worth finding over the edge of the noise of pairs."""
    shape, unit_mode = spent.shape, spent.unit_mode
    if len(shape) != 2 or unit_mode not in (0, 1) or not 0 < spent.epsilon < math.inf:
        return 0.0
    n_rows, n_columns = shape[unit_mode], shape[1 - unit_mode]
    each = spent.n_observed / n_rows
    if each <= 1 or not 1 < n_columns <= MOST_PAIRED:
        return 0.0
    cost = cost_at(spent.epsilon, spent.delta)
    if spent.delta > 0:
        noise = 2 * math.sqrt(each - 1) / cost.mu
    else:
        noise = 2 * (each - 1) * math.sqrt(2) / cost.epsilon
    counts = n_rows * min(each / n_columns, 1.0) ** 2
    response = (clipped_response(PAIR_CLIP, RESIDUAL) * COMPONENT) ** 2
    return counts * n_columns * response / (2 * math.sqrt(n_columns) * noise)


def _directions(whole: Folding, rank: int, loss: Callable[[float], float]) -> tuple[float, int]:
    """Share of epsilon that is spent on directions, and how many are sought; 0 where none pays."""
    for share in DIRECTION_SHARES:
        found = _columns(whole.part(share), rank)
        if found < min(rank, LEAST_COLUMNS):
            break
        if loss(share) <= MOST_LOSS_BY_DIRECTIONS:
            return share, found
    return 0.0, 0


def _columns(spent: Folding, rank: int) -> int:
    """How many directions noise leaves room for, up to the rank; 0 where there is none."""
    shape, unit_mode = spent.shape, spent.unit_mode
    if len(shape) != 2 or unit_mode not in (0, 1) or shape[1 - unit_mode] <= MOST_PAIRED:
        return 0
    return min(int((directions_detectability(spent, 1) / ROOM) ** 2), rank)


def directions_detectability(spent: Folding, n_columns: int) -> float:
    """Length of a component worth finding over that of noise, in one of so many directions."""
    n_rows, columns = spent.shape[spent.unit_mode], spent.shape[1 - spent.unit_mode]
    each = spent.n_observed / n_rows
    if spent.delta == 0 or not 0 < spent.epsilon < math.inf or each <= 1:
        return 0.0
    # In a row of m values a component of length 1 adds m / d to each product; one value moves
    # all r columns, of length 1, by 2 sqrt(2 m r / d).
    response = (clipped_response(DIRECTION_CLIP, RESIDUAL) * COMPONENT) ** 2
    signal = n_rows * min(each / columns, 1.0) * each * response
    mu = gaussian_mu(spent.epsilon, spent.delta) / math.sqrt(SEARCHES)
    noise = 2 * math.sqrt(2 * each * n_columns / columns) / mu
    return signal / (math.sqrt(columns) * noise)


def kept_at(explained: Floats, step: int) -> Floats:
    """How much of earlier sums counts: all of it in the last releases, where noise averages out."""
    if step >= int(GROWING * SEARCHES):
        return np.ones_like(explained)
    return share_kept(explained, SEARCHES)


def releases_for_folding(epsilon: float, delta: float, share: float, n_columns: int) -> ReleasePlan:
    """Sums by a pure law, and pairs; or directions, of which so many columns are sought."""
    sums = PlannedRelease("row_sums", PrivacyCost(epsilon=(1 - share) * epsilon))
    found = PlannedRelease("entry_pairs", cost_at(share * epsilon, delta))
    if n_columns > 0:
        mu = gaussian_mu(share * epsilon, delta) / math.sqrt(SEARCHES)
        found = PlannedRelease("entry_directions", PrivacyCost(mu=mu), SEARCHES)
    return ReleasePlan(float(epsilon), float(delta), (sums, found))


def cost_at(epsilon: float, delta: float) -> PrivacyCost:
    """Cost of Gaussian noise, or of pure noise where there is no delta."""
    return (
        PrivacyCost(mu=gaussian_mu(epsilon, delta)) if delta > 0 else PrivacyCost(epsilon=epsilon)
    )
