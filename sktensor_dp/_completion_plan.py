"""What a completion will release, from public numbers only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.piecewise import piecewise_deviation
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan

__all__ = ["CompletionPlan", "detectability", "plan_completion", "plan_slices"]

# What values are taken to be like, in widths of the bounds: the deviation of one component
# worth finding, and of a value about the model.
COMPONENT, RESIDUAL = 1 / 20, 1 / 5
# Sweeps of alternating least squares on released sums, and steps of gradient descent.
SWEEPS, STEPS = 3, 30
# Share of a budget for mean and biases where factors are released beside them; of the level
# of units; and of the values from which the other factors of an output are computed.
BIAS_SHARE, LEVEL_SHARE, INPUT_SHARE = 0.4, 0.03, 0.5


@dataclass(frozen=True)
class CompletionPlan:
    """Decisions that may depend on public numbers only.

    Attributes
    ----------
    perturbation : {"input", "sufficient_statistics", "gradient", "output"}
        What gets noise.
    n_steps : int
        Sweeps or steps that are releases of their own.
    releases : ReleasePlan
        The budget.
    """

    perturbation: str
    n_steps: int
    releases: ReleasePlan


def detectability(n_observed: int, shape: Sequence[int], epsilon: float) -> float:
    """Eigenvalue of a component worth finding over the edge of the noise.

    In the Gram matrix of the best unfolding of the values themselves, released with a
    noise of pure epsilon: above 1 components can be found in them.
    """
    if math.isinf(epsilon):
        return math.inf
    noise = piecewise_deviation(epsilon) ** 2 + RESIDUAL**2
    cells = math.prod(shape)
    edges = [2 * noise * math.sqrt(n * min(n_observed, max(cells // n, 1))) for n in shape]
    return COMPONENT**2 * n_observed / min(edges)


def plan_completion(
    n_observed: int,
    shape: Sequence[int],
    rank: int = 1,
    *,
    epsilon: float,
    delta: float,
    perturbation: str,
    max_iter: int | None,
) -> CompletionPlan:
    """Choose releases and split the budget, where the unit is a value.

    Parameters
    ----------
    n_observed : int
        Number of values; public.
    shape : sequence of n_modes int
        Of the tensor; public.
    rank : int, default=1
        Of the model; without components mean and biases are all that is sought.
    epsilon, delta : float
        Budget. Noise of pure epsilon is used wherever it is the smaller one.
    perturbation : str
        As asked for; ``"auto"`` chooses.
    max_iter : int or None
        Sweeps or steps; None chooses.

    Returns
    -------
    CompletionPlan
    """
    piecewise_deviation(epsilon)  # refuses an epsilon too small for the law
    found = detectability(n_observed, shape, epsilon) >= 1
    if perturbation == "auto":
        perturbation = "input" if found else "sufficient_statistics"
    n_steps = 0
    if perturbation == "sufficient_statistics":
        n_steps = (SWEEPS if found else 0) if max_iter is None else max_iter
        n_steps *= rank > 0
    elif perturbation == "gradient":
        n_steps = STEPS if max_iter is None else max_iter
    return CompletionPlan(
        perturbation, n_steps, _releases(perturbation, n_steps, len(shape), epsilon, delta)
    )


def _releases(
    perturbation: str, n_steps: int, n_modes: int, epsilon: float, delta: float
) -> ReleasePlan:
    if perturbation == "gradient":
        return ReleasePlan.split(
            epsilon, delta, {"entry_gradients": 1.0}, {"entry_gradients": n_steps}
        )
    if perturbation == "output":
        # An epsilon too small for the law is refused now, before anything is charged.
        piecewise_deviation(INPUT_SHARE * epsilon)
        second = (1 - INPUT_SHARE) * epsilon
        of_output = PrivacyCost(epsilon=second)
        if delta > 0:
            of_output = PrivacyCost(mu=gaussian_mu(second, delta))
        releases = (
            PlannedRelease("entries", PrivacyCost(epsilon=INPUT_SHARE * epsilon)),
            PlannedRelease("ridge_block", of_output),
        )
        return ReleasePlan(epsilon, delta, releases)
    if n_steps == 0:
        name = "entries" if perturbation == "input" else "row_sums"
        return ReleasePlan(epsilon, delta, (PlannedRelease(name, PrivacyCost(epsilon=epsilon)),))
    shares = {"row_sums": BIAS_SHARE, "factor_sums": 1 - BIAS_SHARE}
    return ReleasePlan.split(epsilon, delta, shares, {"factor_sums": n_steps * n_modes})


def plan_slices(n_modes: int, epsilon: float, delta: float) -> ReleasePlan:
    """Split the budget where the unit is a slice.

    Parameters
    ----------
    n_modes : int
        Of the tensor; all but the units' are shared.
    epsilon, delta : float
        Budget.

    Returns
    -------
    ReleasePlan
    """
    shares = {"unit_levels": LEVEL_SHARE, "shared_row_sums": 1 - LEVEL_SHARE}
    return ReleasePlan.split(epsilon, delta, shares, {"shared_row_sums": n_modes - 1})
