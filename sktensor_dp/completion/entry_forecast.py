"""What error released entries will lead to, from public numbers only."""

import math
from dataclasses import dataclass

from sktensor_dp.completion import defaults
from sktensor_dp.completion.assumed import COMPONENT, RESIDUAL, Assumed
from sktensor_dp.completion.pair_plan import (
    Folding,
    pairs_detectability,
)
from sktensor_dp.completion.plan import CompletionPlan, noise_of_sums, noise_of_values
from sktensor_dp.privacy.mechanisms import piecewise_variance

# As many components as share what is assumed of them, and steps of two equations for them.
COMPONENTS, STEPS = 3, 200


@dataclass(frozen=True)
class EntryErrors:
    """Root mean square errors, in widths of the bounds."""

    of_biases: float  # with mean and biases
    of_model: float  # with what else is released
    of_fold_in: float  # with the entries of a row of the first mode at hand


def of_entries(
    n_observed: int,
    shape: tuple[int, ...],
    plan: CompletionPlan,
    assumed: Assumed,
    rank: int,
) -> EntryErrors:
    """Errors by biases, by the model, and by folding in."""
    left, count = assumed.residual(len(shape)), min(COMPONENTS, rank)
    each = assumed.component_share * assumed.deviation**2 / COMPONENTS
    rows = [n_observed / n for n in shape]
    found = [0.0] * len(shape)
    if plan.perturbation == "input":
        variance = piecewise_variance(plan.releases.epsilon, min(assumed.deviation, 0.5))
        found = turned(rows, each, variance + left, count)
    noise = _noise(n_observed, shape, plan, assumed)
    bias = assumed.bias_deviation**2
    kept = [bias * v / (bias + v) if bias > 0 else 0.0 for v in noise]
    error = math.sqrt(left + math.fsum(kept))
    model = math.sqrt(error**2 - count * each * math.prod(found))
    del kept[0], found[0]
    if plan.with_pairs:
        cosines = [_of_pairs(_spent(n_observed, shape, plan), each, left)] * count
    else:
        cosines = [math.prod(found)] * count
    own = _own(rows[0], [each * seen for seen in cosines], left, bias)
    return EntryErrors(error, model, math.sqrt(own + math.fsum(kept)))


def turned(rows: list[float], each: float, noise: float, count: int) -> list[float]:
    """Squared cosines of one component's factors and those found, one for each mode."""
    # State evolution of a spiked model with normal factors (Lesieur, Krzakala and Zdeborova 2017).
    found = [1.0] * len(rows)
    for _ in range(STEPS):
        left = noise - count * each * math.prod(found)
        for mode, n in enumerate(rows):
            others = math.prod(found[:mode] + found[mode + 1 :])
            ratio = n * each * others / left
            found[mode] = ratio / (1 + ratio)
    return found


def _noise(
    n_observed: int, shape: tuple[int, ...], plan: CompletionPlan, assumed: Assumed
) -> list[float]:
    """Variance of the estimated bias of an average row of each mode."""
    epsilon, residual = plan.releases.epsilon, math.sqrt(assumed.residual(len(shape)))
    if plan.perturbation != "sufficient_statistics":
        return noise_of_values(n_observed, shape, epsilon, residual)
    if plan.with_pairs:
        spent = plan.releases.cost_of("row_sums").epsilon
        return noise_of_sums(n_observed, shape, spent, residual, defaults.PAIR_POWER)
    return noise_of_sums(n_observed, shape, epsilon, residual)


def _spent(n_observed: int, shape: tuple[int, ...], plan: CompletionPlan) -> Folding:
    """Part of the budget that is spent on pairs."""
    sums, found = plan.releases.releases
    delta = plan.releases.delta if found.cost.mu > 0 else 0.0
    return Folding(n_observed, shape, plan.releases.epsilon - sums.cost.epsilon, delta)


def _of_pairs(spent: Folding, each: float, left: float) -> float:
    """Squared cosine of a column's component and the one that pairs show."""
    # Detectability is of components worth finding, and of residuals of the usual size.
    ratio = pairs_detectability(spent) * (each / COMPONENT**2 * RESIDUAL**2 / left)
    return max(1 - 1 / (2 * ratio) ** 2, 0.0) if ratio > 0 else 0.0


def _own(n: float, seen: list[float], left: float, bias: float) -> float:
    """Variance about what a row's n own entries say: of its level, and weights of components."""
    explained = 0.0
    for _ in range(STEPS):
        noise = left - explained
        ratios = [n * one / noise for one in seen]
        explained = math.fsum(a * r / (1 + r) for a, r in zip(seen, ratios, strict=True))
    noise = left - explained
    level = bias * noise / (bias * n + noise) if bias > 0 else 0.0
    return noise + level
