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

# Number of iterations of fixed-point equations.
ITERATIONS = 200


class Errors(NamedTuple):
    """Expected errors in widths of the bounds; fields are as those of `CompletionForecast`."""

    of_biases: float
    of_model: float
    of_predict: float
    of_fold_in: float
    n_found: int  # number of components, if equally strong, that are expected to be found
    # Error variances of an average row's bias (2, n_modes): as expected, and if components are
    # found in any case.
    bias_variances: Floats
    mean_error: float
    mean_error_if_found: float  # where components are found in any case
    entries_to_tell: float = math.nan
    change_variance: float = math.nan


def forecast_entry_errors(
    n_observed: int, shape: tuple[int, ...], plan: EntryPlan, assumed: Assumed, rank: int
) -> Errors:
    """Expected errors of `n_observed` entries, where one value is the unit."""
    residual = assumed.about_biases  # variance
    n_components = min(assumed.n_given or assumed.n_components, rank)
    # Variance of values that one component explains.
    variance = assumed.component_share * assumed.deviation**2 / max(n_components, 1)
    per_row = [n_observed / n for n in shape]  # entries of a row of each mode
    cosines = [0.0] * len(shape)  # squared cosine of true and fitted factors of each mode
    if plan.perturbation == "input":
        noise_variance = piecewise_variance(plan.releases.epsilon, min(assumed.deviation, 0.5))
        cosines = squared_cosines(per_row, variance, noise_variance + residual, n_components)
    # Error variance of a bias of each mode before shrinkage, for an average row.
    if plan.perturbation == "sufficient_statistics":
        spent = plan.releases.cost_of(RowSums.name).epsilon
        noise = bias_variances_by_sums(n_observed, shape, spent, math.sqrt(residual))
    else:  # biases of "gradient" and "output" are taken to err as those of "input"
        epsilon = plan.releases.epsilon
        noise = bias_variances_by_values(n_observed, shape, epsilon, math.sqrt(residual))
    biases = assumed.shrunk(noise)
    # Error variance of the mean: all rows tell of it, and its prior is uniform between the bounds,
    # of variance 1 / 12.
    mean = 1 / (12 + math.fsum(n / v for n, v in zip(shape, noise, strict=True)))
    error = math.sqrt(residual + mean + math.fsum(biases))
    model = math.sqrt(error**2 - n_components * variance * math.prod(cosines))
    # A row of the first mode that is folded in estimates its own bias and weights.
    cosine = math.prod(cosines[1:])
    if plan.with_pairs:
        snr = snr_in_pairs(n_observed, shape, plan.releases.cost_of(EntryPairs.name))
        cosine = _cosine_by_pairs(snr, variance, residual)
    of_row = _fold_in_variance(
        per_row[0], [variance * cosine] * n_components, residual, assumed.bias_deviation**2
    )
    folded = math.sqrt(of_row + math.fsum(biases[1:]))
    # At the threshold of a spiked model iterated cosines fall as 1 / ITERATIONS, below it faster.
    are_seen = math.prod(cosines) > 1 / ITERATIONS
    if plan.with_pairs:
        are_seen = variance * cosine > 0
    n_found = n_components * (plan.seeks_components and are_seen)
    # Error variance of the average of all values, with the rows of the first mode drawn at random.
    of_average = math.fsum(bias / n for n, bias in zip(shape, biases, strict=True))
    of_average += residual / n_observed + assumed.bias_deviation**2 / shape[0]
    return Errors(
        of_biases=error, of_model=model, of_predict=model, of_fold_in=folded, n_found=n_found,
        bias_variances=np.tile(biases, (2, 1)), mean_error=math.sqrt(of_average),
        mean_error_if_found=math.sqrt(of_average),
    )  # fmt: skip


def squared_cosines(
    per_row: list[float], variance: float, noise: float, n_components: int
) -> list[float]:
    """Squared cosine, for each mode, of the true and the fitted factor of a component.

    `per_row` are entries of a row of each mode, `variance` is that of a component, and `noise` that
    of released values about mean and biases, components included.
    """
    # State evolution of a spiked model with normal factors (Lesieur, Krzakala and Zdeborova 2017).
    cosines = [1.0] * len(per_row)
    for _ in range(ITERATIONS):
        residual = noise - n_components * variance * math.prod(cosines)
        for mode, n in enumerate(per_row):
            others = math.prod(cosines[:mode] + cosines[mode + 1 :])
            ratio = n * variance * others / residual
            cosines[mode] = ratio / (1 + ratio)
    return cosines


def _cosine_by_pairs(snr: float, variance: float, residual: float) -> float:
    """Squared cosine of the columns' loadings of a component and their estimate from pairs.

    `snr` is that of `snr_in_pairs`, `variance` that of a component, and `residual` that of values
    about mean and biases.
    """
    # A spiked matrix shows 1 - 1 / d^2 of a component that is d times as strong as the weakest one
    # detectable, which has half the edge. `snr` is for `ASSUMED` variances: scale it to `variance`
    # and `residual`.
    ratio = snr * (variance / ASSUMED.component**2 * ASSUMED.residual**2 / residual)
    return max(1 - 1 / (2 * ratio) ** 2, 0.0) if ratio > 0 else 0.0


def _fold_in_variance(
    n: float, variances: list[float], residual: float, bias_variance: float
) -> float:
    """Error variance of a value after folding in the `n` entries of its row.

    `variances` are those of the known parts of components, `residual` is the variance about biases,
    and `bias_variance` that of the row's bias.
    """
    # The entries tell the fraction r / (1 + r) of a component of variance a, with r = n a / noise.
    # Noise is the variance that all components leave by this: find the fixed point.
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
