"""What error of a completion to expect, from public numbers only."""

import math
from dataclasses import dataclass

from sktensor_dp.completion.plan import (
    BIAS,
    RESIDUAL,
    CompletionPlan,
    SlicePlan,
    noise_of_sums,
    noise_of_values,
)
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.privacy.tables import Shown, Table
from sktensor_dp.statistics.slice_queries import SharedRowSums

__all__ = ["CompletionForecast", "forecast_completion"]

# Deviation of values, in widths of the bounds.
SPREAD = 1 / 4


@dataclass(frozen=True, repr=False)
class CompletionForecast(Shown):
    """Expected root mean square errors, for values of an assumed deviation.

    Attributes
    ----------
    perturbation : str
        What would get noise.
    of_mean : float
        Error of predicting the mean everywhere: the deviation that values are assumed to
        have, a quarter of the width of the bounds. Where public knowledge says that it is s,
        the errors of mean and biases are in proportion, as far as noise is not what limits
        them.
    of_biases : float
        Error with mean and biases; infinite where they are not released.
    finds_components : bool
        Whether components worth finding would stand out of the noise.
    """

    perturbation: str
    of_mean: float
    of_biases: float
    finds_components: bool

    _page = "completion.html"

    @property
    def deviation(self) -> float:
        """Standard deviation that values are assumed to have."""
        return self.of_mean

    @property
    def bias_deviation(self) -> float:
        """That of the biases of each mode: a tenth of the width of the bounds."""
        return self.of_mean / SPREAD * BIAS

    @property
    def mean_is_all(self) -> bool:
        """Whether nothing better than the mean can be expected."""
        return not self.finds_components and self.of_biases > 0.99 * self.of_mean

    def _table(self) -> Table:
        said = "Mean and biases can be found."
        if self.mean_is_all:
            said = "At this epsilon predicting the mean is all there is."
        elif self.finds_components:
            said = "Components can be found on top of mean and biases."
        rows = [
            ["the mean", f"{self.of_mean:.3g}"],
            ["mean and biases", f"{self.of_biases:.3g}"],
        ]
        assumed = (
            f"Values are assumed to have a deviation of {self.deviation:.3g}, a quarter of the "
            f"bounds' width; the biases of each mode one of {self.bias_deviation:.3g}, a tenth."
        )
        return Table(
            said, ("prediction by", "expected RMSE"), rows,
            (assumed, f"Noise: perturbation={self.perturbation!r}."), ("prediction by",),
        )  # fmt: skip


def forecast_completion(
    n_observed: int,
    shape: tuple[int, ...],
    plan: CompletionPlan | SlicePlan,
    width: float,
    epsilon: float,
) -> CompletionForecast:
    """Forecast what mean and biases explain of values, and whether components follow."""
    if isinstance(plan, SlicePlan):
        noise = _slice_noise(n_observed, shape, plan)
    else:
        noise = _entry_noise(n_observed, shape, epsilon, plan.perturbation)
    kept = math.fsum(BIAS**2 * v / (BIAS**2 + v) for v in noise)
    error = math.sqrt(SPREAD**2 - len(noise) * BIAS**2 + kept)
    return CompletionForecast(
        plan.perturbation, width * SPREAD, width * error, plan.seeks_components
    )


def _entry_noise(
    n_observed: int, shape: tuple[int, ...], epsilon: float, perturbation: str
) -> list[float]:
    """Variance of the estimated bias of an average row of each mode, in squared widths."""
    if perturbation != "sufficient_statistics":
        return noise_of_values(n_observed, shape, epsilon)
    return noise_of_sums(n_observed, shape, epsilon)


def _slice_noise(n_observed: int, shape: tuple[int, ...], plan: SlicePlan) -> list[float]:
    cost = plan.releases.cost_of("shared_row_sums")
    if plan.by_evidence:
        # Where no components show, biases get the rest.
        rest = plan.releases.cost_of("shared_factor_sums")
        cost = PrivacyCost.total([cost, *[rest] * plan.n_sweeps])
    strength = cost.epsilon if cost.epsilon > 0 else cost.mu
    n_units = shape[plan.unit_mode]
    each = max(n_observed / n_units, 1.0)
    result = []
    for mode, n in enumerate(shape):
        if mode == plan.unit_mode:
            continue
        # Each unit's entries weigh one over the root of their number.
        weight = n_units * math.sqrt(each) / n
        noise = 0.0 if math.isinf(strength) else (SharedRowSums.farthest / strength) ** 2
        result.append(RESIDUAL**2 * (noise + weight / math.sqrt(each)) / weight**2)
    return result
