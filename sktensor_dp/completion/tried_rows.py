"""Whether components pay: what values of some rows show, before the others are asked."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.completion.entry_forecast import COMPONENTS, turned
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.pair_plan import Folding, folding_share, releases_for_folding
from sktensor_dp.completion.plan import (
    RESIDUAL,
    CompletionPlan,
    loss_by_pairs,
    noise_of_sums,
    noise_of_values,
)
from sktensor_dp.privacy.curators.entries import NoisyRowSums
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost
from sktensor_dp.statistics.observed_entries import IndexSet
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion, complete_cp
from sktensor_dp.tensor.row_effects import fit_row_sums
from sktensor_dp.tensor.row_features import incidence_features
from sktensor_dp.tensor.sorted_entries import distinct

# One of so many values is held out of those that components are found in, and sweeps for them:
# for few, as more of them than the part shows start in each other's way.
HELD_OUT, SWEEPS = 5, 60
# Halvings of the range in which components just pay.
HALVINGS = 30
# Deviations of what components gain there that are granted to them.
GRANTED = 2.0


def rows_first(places: IndexSet, every: int) -> NDArray[np.bool_]:
    """Entries of the rows that are asked first: one of so many of the longest mode."""
    return np.asarray(places.rows(int(np.argmax(places.shape))) % every == 0)


def plan_of_sums(
    n_observed: int, shape: tuple[int, ...], whole: CompletionPlan, options: ModelOptions
) -> CompletionPlan:
    """What the rest is asked where components do not pay: sums, and pairs, by pure laws."""
    # Another kind of noise than that of values would have to be charged beside it.
    epsilon = whole.releases.epsilon
    folding = Folding(n_observed, shape, options.unit_mode, epsilon, 0.0)
    share, _ = folding_share(
        folding, options.rank, partial(loss_by_pairs, n_observed, shape, epsilon)
    )
    releases = replace(
        whole.releases, releases=(PlannedRelease("row_sums", PrivacyCost(epsilon=epsilon)),)
    )
    if share > 0:
        of_both = releases_for_folding(epsilon, 0.0, share, 0)
        releases = replace(releases, releases=of_both.releases)
    return CompletionPlan("sufficient_statistics", 0, releases, share > 0)


def components_pay(
    first: IndexSet, values: Floats, variance: float, whole: IndexSet, half: float,
    epsilon: float, options: ModelOptions,
) -> bool:  # fmt: skip
    """Whether components explain more than noise of values costs biases, by values with noise.

    Of released numbers and public ones alone. `variance` is that of the noise of `values`.
    """
    held = np.arange(len(values)) % HELD_OUT == HELD_OUT - 1
    model = complete_cp(
        IndexSet(first.coordinates[~held], first.shape), values[~held],
        min(options.rank, COMPONENTS),
        noise_variance=variance, regularization=options.regularization, max_iter=SWEEPS,
        random_state=0,
    )  # fmt: skip
    places = IndexSet(first.coordinates[held], first.shape)
    biases = model.mean + places.at_entries(model.biases)
    found = model.predict(first.coordinates[held]) - biases
    # What squared errors fall by, of which the noise of the values is the same part.
    gains = 2 * (values[held] - biases) * found - found**2
    gain = float(gains.mean()) + GRANTED * float(gains.std()) / np.sqrt(max(len(gains), 1))
    cost = _cost(model, whole, half, epsilon) / (2 * half) ** 2
    if cost <= 0:
        return True
    noise = variance / (2 * half) ** 2 + RESIDUAL**2
    rows = [len(distinct(first.rows(mode))) for mode in range(first.n_modes)]
    part = [float(np.sum(~held)) / n for n in rows]
    every = [whole.n_entries / n for n in whole.shape]
    return gain / (2 * half) ** 2 >= _least_shown(cost, part, every, noise)


def _least_shown(cost: float, part: list[float], whole: list[float], noise: float) -> float:
    """What components explain of a part that explain as much of the whole as they cost there.

    Of parts, which have so many entries to a row, they explain less: factors are known less well.
    """

    def explained(each: float, rows: list[float]) -> float:
        return COMPONENTS * each * math.prod(turned(rows, each, noise, COMPONENTS))

    low, high = 0.0, RESIDUAL**2 / COMPONENTS
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if explained(middle, whole) < cost else (low, middle)
    return explained(high, part)


def _cost(model: CPCompletion, places: IndexSet, half: float, epsilon: float) -> float:
    """By how much more noise of values moves biases of the size found than noise of sums does."""
    kept, width = [], 2 * half
    for noise in (noise_of_values, noise_of_sums):
        variances = width**2 * np.array(noise(places.n_entries, places.shape, epsilon))
        kept.append(float((model.bias_scales * variances / (model.bias_scales + variances)).sum()))
    return kept[0] - kept[1]


def biases_of_both(
    places: IndexSet, first: NDArray[np.bool_], values: Floats, variance: float,
    rest: NoisyRowSums, half: float, middle: float, options: ModelOptions,
) -> CPCompletion:  # fmt: skip
    """Mean and biases, of values with noise in the rows asked first, and of sums of the rest."""
    longest = int(np.argmax(places.shape))
    weights = np.zeros((places.n_entries, places.n_modes))
    weights[~first] = rest.weights
    # Each of these rows has its own values alone, and other modes have far better sums.
    weights[first, longest] = 1.0
    shown = np.zeros(places.n_entries)
    shown[first] = values - middle
    counts = np.bincount(places.rows(longest)[first], minlength=places.shape[longest])
    sums = [one.copy() for one in rest.sums]
    noise = [np.full(n, rest.sigma**2) for n in places.shape]
    here = counts > 0
    sums[longest][here] = places.sums(longest, shown)[here]
    noise[longest][here] = variance * counts[here]
    return fit_row_sums(
        places, sums, list(weights.T), noise, (2 * half * RESIDUAL) ** 2, center=middle,
        features=incidence_features(places), given=options.features_at(places),
    )  # fmt: skip
