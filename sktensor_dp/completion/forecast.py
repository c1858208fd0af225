"""What error of a completion to expect, from public numbers only."""

import math
from dataclasses import dataclass

from sktensor_dp.completion.assumed import BIAS, COMPONENT_SHARE, SPREAD, Assumed
from sktensor_dp.completion.entry_forecast import of_entries
from sktensor_dp.completion.plan import CompletionPlan, SlicePlan
from sktensor_dp.completion.slice_forecast import of_slices
from sktensor_dp.privacy.tables import Shown, Table


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
    bias_deviation : float
        Assumed standard deviation of the biases of each mode.
    of_model : float
        Error with components as well, where it is known how they will be found: of
        predictions from released values, and by slices of a matrix, folded in. Elsewhere that
        with mean and biases.
    component_share : float
        Assumed share of components in the variance of values.
    of_fold_in : float
        Error of values of rows of ``unit_mode`` (or of the first mode) whose own entries are
        folded in.
    """

    perturbation: str
    of_mean: float
    of_biases: float
    finds_components: bool
    bias_deviation: float = math.nan
    of_model: float = math.nan
    component_share: float = COMPONENT_SHARE
    of_fold_in: float = math.nan

    _page = "completion.html"

    @property
    def deviation(self) -> float:
        """Standard deviation that values are assumed to have."""
        return self.of_mean

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
        if self.of_model < self.of_biases:
            rows.append(["components too", f"{self.of_model:.3g}"])
        if self.of_fold_in != self.of_model and math.isfinite(self.of_fold_in):
            rows.append(["own entries folded in", f"{self.of_fold_in:.3g}"])
        bias = self.bias_deviation
        if math.isnan(bias):
            bias = self.of_mean / SPREAD * BIAS
        assumed = (
            f"Values are assumed to have a deviation of {self.deviation:.3g}, the biases of each "
            f"mode one of {bias:.3g}, and components {self.component_share:.0%} of "
            "the variance. Say otherwise by arguments of forecast()."
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
    rank: int,
    assumed: Assumed,
) -> CompletionForecast:
    """Forecast what mean and biases explain of values, and whether components follow."""
    finds = plan.seeks_components
    if isinstance(plan, SlicePlan):
        error, found = of_slices(n_observed, shape, plan, assumed, rank)
        if plan.by_directions:
            finds = found is not None
        model = folded = error if found is None else found
    else:
        errors = of_entries(n_observed, shape, plan, assumed, rank)
        error, model, folded = errors.of_biases, errors.of_model, errors.of_fold_in
    return CompletionForecast(
        plan.perturbation, width * assumed.deviation, width * error, finds,
        width * assumed.bias_deviation, width * model, assumed.component_share, width * folded,
    )  # fmt: skip
