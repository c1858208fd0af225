"""Expected errors of completions where one value is the unit, from public numbers alone."""

import math
from typing import NamedTuple

import numpy as np

from sktensor_dp.completion.plan import (
    ASSUMED,
    Assumed,
    EntryPlan,
    bias_variances_by_sums,
    bias_variances_by_values,
    snr_in_pairs,
)
from sktensor_dp.privacy.mechanisms import piecewise_variance
from sktensor_dp.queries.entries import EntryPairs, RowSums
from sktensor_dp.tensor.arrays import Floats

# Number of iterations of the equations for components.
ITERATIONS = 200


class Errors(NamedTuple):
    """Expected errors in widths of the bounds, as in `CompletionForecast`."""

    of_biases: float
    of_model: float
    of_predict: float  # where units are persons, without own entries
    of_fold_in: float
    finds: bool  # whether components are expected to be found
    # Error variances of an average row's bias (2, n_modes): as expected, and if components are
    # found in any case.
    bias_variances: Floats
    mean_error: float  # standard error of the mean
    entries_to_tell: float = math.nan  # where units are persons: how many tell a row's bias


def entry_errors(
    n_observed: int, shape: tuple[int, ...], plan: EntryPlan, assumed: Assumed, rank: int
) -> Errors:
    """Expected errors where one value is the unit."""
    residual = assumed.about_biases  # variance
    count = min(ASSUMED.n_components, rank)
    variance = assumed.component_share * assumed.deviation**2 / max(count, 1)  # of one component
    per_row = [n_observed / n for n in shape]  # entries of a row of each mode
    cosines = [0.0] * len(shape)  # squared, by mode
    if plan.perturbation == "input":
        noise_variance = piecewise_variance(plan.releases.epsilon, min(assumed.deviation, 0.5))
        cosines = squared_cosines(per_row, variance, noise_variance + residual, count)
    # Error variance of a bias of each mode before shrinkage, for an average row.
    if plan.perturbation == "sufficient_statistics":
        spent = plan.releases.cost_of(RowSums.name).epsilon
        noise = bias_variances_by_sums(n_observed, shape, spent, math.sqrt(residual))
    else:  # steps of descent, and the last factor, count as values do
        epsilon = plan.releases.epsilon
        noise = bias_variances_by_values(n_observed, shape, epsilon, math.sqrt(residual))
    biases = assumed.shrunk(noise)
    # All rows tell of the mean, which before lies anywhere between the bounds: variance 1 / 12.
    mean = 1 / (12 + math.fsum(n / v for n, v in zip(shape, noise, strict=True)))
    error = math.sqrt(residual + mean + math.fsum(biases))
    model = math.sqrt(error**2 - count * variance * math.prod(cosines))
    # A row of the first mode that is folded in estimates its own bias and weights.
    cosine = math.prod(cosines[1:])
    if plan.with_pairs:
        snr = snr_in_pairs(n_observed, shape, plan.releases.cost_of(EntryPairs.name))
        cosine = _cosine_by_pairs(snr, variance, residual)
    of_row = _fold_in_variance(
        per_row[0], [variance * cosine] * count, residual, assumed.bias_deviation**2
    )
    folded = math.sqrt(of_row + math.fsum(biases[1:]))
    # Below the threshold of a spiked model cosines fall to 0, at it as one over the steps.
    are_seen = math.prod(cosines) > 1 / ITERATIONS
    if plan.with_pairs:
        are_seen = variance * cosine > 0
    finds = plan.seeks_components and count > 0 and are_seen
    # Of an average of all values, with the rows of the first mode drawn at random.
    of_average = math.fsum(bias / n for n, bias in zip(shape, biases, strict=True))
    of_average += residual / n_observed + assumed.bias_deviation**2 / shape[0]
    return Errors(
        error, model, model, folded, finds, np.tile(biases, (2, 1)), math.sqrt(of_average)
    )


def squared_cosines(per_row: list[float], variance: float, noise: float, count: int) -> list[float]:
    """Squared cosine of each mode's true and fitted factor of a component, one per mode.

    `per_row` are entries of a row of each mode, `variance` is that of a component, `noise` that of
    values with all components in it, and `count` the number of components.
    """
    # State evolution of a spiked model with normal factors (Lesieur, Krzakala and Zdeborova 2017).
    cosines = [1.0] * len(per_row)
    for _ in range(ITERATIONS):
        residual = noise - count * variance * math.prod(cosines)
        for mode, n in enumerate(per_row):
            others = math.prod(cosines[:mode] + cosines[mode + 1 :])
            ratio = n * variance * others / residual
            cosines[mode] = ratio / (1 + ratio)
    return cosines


def _cosine_by_pairs(snr: float, variance: float, residual: float) -> float:
    """Squared cosine between a column's component and the estimate from pairs.

    `snr` is the signal-to-noise ratio in pairs, `variance` that of a component, and `residual` that
    of values about mean and biases.
    """
    # A spiked matrix shows 1 - 1 / d^2 of a component that is d times as strong as the weakest one
    # detectable, which has half the edge. The ratio is stated for a component of the assumed size
    # and residuals of the usual size.
    ratio = snr * (variance / ASSUMED.component**2 * ASSUMED.residual**2 / residual)
    return max(1 - 1 / (2 * ratio) ** 2, 0.0) if ratio > 0 else 0.0


def _fold_in_variance(
    n: float, variances: list[float], residual: float, bias_variance: float
) -> float:
    """Error variance of a value after folding in the row's own `n` entries.

    `variances` are those of the components that are known, `residual` is the variance about biases,
    and `bias_variance` that of the row's bias, which may be 0.
    """
    # Of a component of variance a entries tell the fraction r / (1 + r), r = n a / noise; the noise
    # is all that is left of values: a fixed point.
    explained = 0.0
    for _ in range(ITERATIONS):
        noise = residual - explained
        ratios = [n * variance / noise for variance in variances]
        explained = math.fsum(a * r / (1 + r) for a, r in zip(variances, ratios, strict=True))
    noise = residual - explained
    # n entries about a bias of variance b leave b noise / (b n + noise) of it.
    if bias_variance == 0:
        return noise
    return noise + bias_variance * noise / (bias_variance * n + noise)
