"""What error slices will have when they are folded in, from public numbers only."""

import math

import numpy as np

from sktensor_dp.completion import defaults
from sktensor_dp.completion.assumed import Assumed
from sktensor_dp.completion.plan import SlicePlan
from sktensor_dp.completion.rows import share_kept
from sktensor_dp.completion.slice_directions import (
    MOST_CHANCE,
    chance,
    columns_worth,
    shows,
    trial_sweeps,
)
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.slices import MOMENT_WEIGHT, SharedFactorSums, SharedRowSums
from sktensor_dp.tensor.shared_parameters import clipped_response
from sktensor_dp.tensor.unit_parameters import LEVEL_VARIANCE

# Mean length of a unit's weights over its root mean square, for a handful of columns, times what
# is lost as components are not alike and start from overlaps of their own. By fits of synthetic
# ratings at budgets from 0.5 to 10.
MEAN_LENGTH = 0.78


def of_slices(
    n_observed: int, shape: tuple[int, ...], plan: SlicePlan, assumed: Assumed, rank: int
) -> tuple[float, float | None]:
    """Errors with level and biases, and with components; None where they will not show."""
    each = max(n_observed / shape[plan.unit_mode], 1.0)
    bias = assumed.bias_deviation**2
    left = assumed.residual(len(shape))
    # A unit's own level is fitted to its entries, at the prior of the library.
    prior = 1 / LEVEL_VARIANCE
    own = (bias * prior**2 + left * each) / (each + prior) ** 2
    if len(shape) == 2 and plan.n_sweeps > 0:
        search = _Search(each, shape, plan, assumed, rank)
        explained = search.explained()
        if explained is not None:
            rows = _rows(each, shape, plan, left, bias, all_of_it=False)
            return math.sqrt(left + own + rows), math.sqrt(left + own + rows - explained)
    rows = _rows(each, shape, plan, left, bias, all_of_it=plan.by_directions)
    return math.sqrt(left + own + rows), None


def _rows(
    each: float, shape: tuple[int, ...], plan: SlicePlan, left: float, bias: float, all_of_it: bool
) -> float:
    """What is left of the biases of the shared modes."""
    # Rounds add up to one release for all of their budget.
    cost = PrivacyCost.total([plan.releases.cost_of("shared_row_sums")] * plan.n_rounds)
    if all_of_it:
        # Where no components show, biases get the rest.
        rest = plan.releases.cost_of("shared_factor_sums")
        cost = PrivacyCost.total([cost, *[rest] * plan.n_sweeps])
    strength = cost.epsilon if cost.epsilon > 0 else cost.mu
    noise = 0.0 if math.isinf(strength) else (SharedRowSums.farthest / strength) ** 2
    gain = clipped_response(defaults.EFFECT_CLIP)
    found = 0.0
    for mode, n in enumerate(shape):
        if mode != plan.unit_mode and bias > 0:
            # Each unit's entries weigh one over the root of their number.
            weight = shape[plan.unit_mode] * math.sqrt(each) / n
            variance = left * (noise + weight / math.sqrt(each)) / (gain * weight) ** 2
            found += bias * variance / (bias + variance)
    return found


class _Search:
    """How directions will turn from sweep to sweep, if all components are alike.

    `overlap` is the squared cosine of a component and the directions so far.
    """

    def __init__(
        self,
        each: float,
        shape: tuple[int, ...],
        plan: SlicePlan,
        assumed: Assumed,
        rank: int,
    ) -> None:
        n_units, n_rows = shape[plan.unit_mode], shape[1 - plan.unit_mode]
        self._each, self._plan, self._n_units = each, plan, n_units
        self._weight = n_units * math.sqrt(each) / n_rows
        weights = np.full(n_rows, self._weight)
        self._columns = columns_worth(weights, n_units, plan, rank)
        self._by_chance = chance(weights, n_units)
        self._left = assumed.residual(len(shape))
        # As many components as have the variance that directions assume, and as were asked for;
        # columns may hold fewer.
        share = assumed.component_share * assumed.deviation**2 / self._left
        number = max(min(round(share / defaults.COMPONENT_VARIANCE), rank), 1)
        self._number, self._share = min(number, self._columns), share / number
        mu = plan.releases.cost_of("shared_factor_sums").mu
        self._deviation = SharedFactorSums.farthest / mu
        self.overlap = min(self._columns / n_rows, 1.0)

    def explained(self) -> float | None:
        """Variance that components will explain of values; None where they do not show."""
        plan, trial = self._plan, trial_sweeps(self._plan)
        if self._by_chance > MOST_CHANCE:
            return None
        total = variance = weight_of_all = 0.0
        found: list[float] = []
        for step in range(plan.n_sweeps):
            explained = np.array(self._share * self.overlap / defaults.COMPONENT_VARIANCE)
            kept = float(share_kept(explained, plan.n_sweeps)) if step > 0 else 0.0
            total = kept * total + self._signal()
            variance = kept**2 * variance + self._deviation**2
            weight_of_all = kept * weight_of_all + 1
            # Units differ by chance, and are the same in all sweeps.
            by_units = weight_of_all**2 * self._weight / math.sqrt(self._each) / self._columns
            ratio = total**2 / (variance + by_units)
            self.overlap = max(ratio / (1 + ratio), self.overlap if step == 0 else 0.0)
            found.append(self._found() / self._columns)
            if step + 1 == trial and not self._shows(found):
                return None
        seen = self._seen()
        known = self._number * self._share * self.overlap
        return self._left * known * seen / (1 + seen - known)

    def _seen(self) -> float:
        """Squared signal over noise in a unit's weight of one component."""
        return self._each * self._share * self.overlap

    def _signal(self) -> float:
        """Mean of a row's sum in one column, for a component of size one there."""
        seen = self._seen()
        length = math.sqrt(self._columns + self._number * seen)
        response = MEAN_LENGTH * math.sqrt(seen) / length
        return self._weight * math.sqrt(self._share) * response

    def _found(self) -> float:
        """Components that directions explain, each of the variance assumed."""
        return self._number * self._share * self.overlap / defaults.COMPONENT_VARIANCE

    def _shows(self, found: list[float]) -> bool:
        noise = self._deviation * self._columns / (MOMENT_WEIGHT * self._n_units)
        none = 1 / (1 + defaults.COMPONENT_VARIANCE * self._each)
        # As `Directions.shows` has it.
        for last, taken in ((2, 0.0), (max(len(found) // 2, 2), self._by_chance)):
            certain = noise * math.sqrt(1 / last + 1 / self._columns) / (1 - none) ** 2
            if shows(math.fsum(found[-last:]) / last - taken, certain, self._columns):
                return True
        return False
