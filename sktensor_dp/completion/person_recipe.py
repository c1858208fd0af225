"""Fits with a unit_mode: their releases, and the model that units share.

A unit is the protected person: a row of the unit mode, with all of its entries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from sktensor_dp.completion.chains import on_alone, on_kept, on_noise
from sktensor_dp.completion.component_search import DirectionSearch, columns_worth
from sktensor_dp.completion.effect_release import LEAST_WEIGHT
from sktensor_dp.completion.model import AT_EDGE, SharedModel, attributes_of_units
from sktensor_dp.completion.plan import ConcurrencePayment, ModelOptions, PersonPlan, trial_sweeps
from sktensor_dp.completion.shared_biases import (
    LEAST_SEVERAL,
    PersonValues,
    SharedBiases,
    add_errors_of_deviation,
    cell_weights,
    entries_each,
    fit_all,
    fit_by_corrected_deviation,
    order_of,
    residual_variance,
    shortest_first,
)
from sktensor_dp.estimator.base import FitResult
from sktensor_dp.exceptions import DoubtfulParameterWarning
from sktensor_dp.privacy.answer import LITTLE_NOISE, Answer, is_at_end
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.person_entries import (
    ReleasedEffects,
    RowConcurrences,
    SharedFactorSums,
    UnitLevels,
)
from sktensor_dp.queries.query import Query
from sktensor_dp.tensor import defaults as kernel_defaults
from sktensor_dp.tensor.shared_parameters import SharedComponents, components_of_cells

# Least standard deviation of values about their unit's mean, in widths of the bounds.
LEAST_DEVIATION = 1 / 16
# Least share of units that have values, to avoid a division by 0.
LEAST_SHARE = 1e-9
UNLISTED = (
    "Hardly any value is of a row that counts: is each name written in the public lists as it is "
    "in the data, and is each column at its place?"
)

WIDE = (
    "Values of one person differ by less than {:.0%} of the range between bounds: are the bounds "
    "far wider than values can be, which adds noise, or do most have a single value, which may "
    "draw averages of rows together?"
)


@dataclass(frozen=True)
class Levels:
    """Released facts on the levels of units, and estimates from these."""

    mean: float  # mean level, shrunk by its noise, less the middle of the bounds
    share: float  # estimated share of units that have values
    variance_of_mean: float  # by noise
    answer: Answer  # of `UnitLevels`
    half: float  # half of the width of the range of values, or of values less effects

    @classmethod
    def release(
        cls, ask: Session, about: ReleasedEffects | None = None,
        pooled: int = 1, paid_by: type[Query] = UnitLevels,
    ) -> "Levels":  # fmt: skip
        """Release levels of units' values, less effects of rows if they are given in `about`.

        `pooled` planned uses of the query `paid_by` pay for the release.
        """
        of_bounds = half = ask.public("half")
        shift = 0.0  # of the middle of the range
        if about is not None:
            # Values less effects have a wider range; effects are centred to keep it narrow.
            half += sum(float(np.ptp(of_mode.means)) / 2 for of_mode in about.effects)
            about, middle = _centred(about)
            shift = -middle
        answer = ask(UnitLevels(half, about, order_of(ask)), pooled, paid_by)
        found_mean, _, found_half = answer.value[:3].tolist()
        # Each unit with values adds `half` to the third sum; others add 0 to all sums. The share of
        # units with values is shrunk to 1, by the variance 1 / 12 of a uniform prior.
        noise = answer.sigma / half
        trust = 1 / (1 + 12 * noise**2)
        share = 1 - trust * (1 - float(np.clip(found_half / half, 0.0, 1.0)))
        share = min(max(share, noise, LEAST_SHARE), 1.0)
        found_mean = float(np.clip(found_mean / share, -half, half))
        sigma = answer.sigma / share * math.hypot(1.0, trust * found_mean / half)
        # Shrink the mean by its noise to the middle of the bounds: a uniform prior between them has
        # the variance half**2 / 3.
        found_mean = float(np.clip(found_mean + shift, -of_bounds, of_bounds))
        shrinkage = of_bounds**2 / (of_bounds**2 + 3 * sigma**2)
        return cls(shrinkage * found_mean, share, shrinkage * sigma**2, answer, half)

    def deviation_and_share(self, several: float = 1.0, at: float = 0.0) -> tuple[float, float]:
        """Root mean variance of values about their unit's mean, and the share of units that vary.

        Both are for units with several values, a fraction `several` of those with any: a share of
        them varies, all alike, and the others do not. `at` is the number of standard errors that
        are added to the root and taken from the root of the share. At 0 the root is a posterior
        mean, and the share is shrunk to 1.
        """
        # In units of half the range. Order 1 releases no mean deviation: the share is then 1.
        share, sigma = self.share * several, self.answer.sigma / (self.share * several * self.half)
        means = self.answer.value / (share * self.half)
        mean_deviation = means[3] if len(means) > 3 else None
        mean, error = _posterior_root(float(means[1]), mean_deviation, sigma)
        root = float(np.clip(mean + at * error, 2 * LEAST_DEVIATION, 1.0))
        if mean_deviation is None:
            return self.half * root, 1.0
        # If a share s varies, the mean deviation is the part sqrt(s) of the root.
        part = float(np.clip(mean_deviation / mean, 0.0, 1.0))
        variance = (sigma**2 + (part * error) ** 2) / mean**2
        part = float(np.clip(part - at * math.sqrt(variance), 0.0, 1.0))
        if at:
            return self.half * root, max(part**2, LEAST_SEVERAL)
        # Shrink the share of the others by the variance of a square (James & Stein 1961).
        others = max(1 - part**2, LEAST_WEIGHT)
        shrunk = max(others - (4 * part**2 + 2 * variance) * variance / others, 0.0)
        return self.half * root, max(1 - shrunk, LEAST_SEVERAL)

    def level_variance(self, noise_variance: float, measured_part: float) -> float:
        """Posterior median of the variance of units' levels.

        `noise_variance` is the variance of values about their unit's level; about the mean of their
        unit's values it is `measured_part` times as large.
        """
        usual = kernel_defaults.LEVEL_VARIANCE * noise_variance
        if len(self.answer.value) < 5:  # squares of means were not released
            return usual
        # The ratio v to the usual variance has the prior by which v^2 / (1 + v^2) is uniform.
        parts = np.linspace(0.0, 1.0, 1000, endpoint=False)
        mean, square = self.answer.value[[0, 4]] / self.share
        sigma = self.answer.sigma / self.share
        by_entries = noise_variance * (1 - measured_part)  # by which means of units err
        seen = (2 * self.half * square - mean**2 + sigma**2 - by_entries) / usual
        error = 2 * sigma * math.hypot(self.half, mean) / usual
        ratios = np.sqrt(parts / (1 - parts))
        squares = (ratios - seen) ** 2
        totals = np.cumsum(np.exp((squares.min() - squares) / (2 * error**2 + LEAST_WEIGHT)))
        return float(usual * ratios[np.searchsorted(totals, totals[-1] / 2)])


def _centred(about: ReleasedEffects) -> tuple[ReleasedEffects, float]:
    """Effects less the middle of the range that they have in their mode, and the sum of middles."""
    middles = [float(of_mode.means.max() + of_mode.means.min()) / 2 for of_mode in about.effects]
    centred = tuple(
        replace(of_mode, means=of_mode.means - middle)
        for of_mode, middle in zip(about.effects, middles, strict=True)
    )
    return replace(about, effects=centred), sum(middles)


def _posterior_root(
    square: float, mean_deviation: float | None, sigma: float
) -> tuple[float, float]:
    """Posterior mean and deviation of the root of the mean variance of units' values.

    In units of half the range: `square` is the released mean variance, and `mean_deviation` the
    mean of deviations, if it is released; both have noise of deviation `sigma`.
    """
    # The root has a uniform prior between these ends.
    least = 2 * LEAST_DEVIATION
    nearest = float(np.clip(square, least**2, 1.0))
    ends = max(nearest - 6 * sigma, least**2), min(nearest + 6 * sigma, 1.0)
    grid = np.linspace(math.sqrt(ends[0]), math.sqrt(ends[1]), 201)
    logs = -((grid**2 - square) ** 2) / (2 * sigma**2 + LEAST_WEIGHT)
    if mean_deviation is not None:  # it is any part of the root, from none to all
        scale = max(sigma, math.sqrt(LEAST_WEIGHT))
        none, whole = log_ndtr(-mean_deviation / scale), log_ndtr((grid - mean_deviation) / scale)
        logs += whole + np.log(np.maximum(-np.expm1(none - whole), LEAST_WEIGHT) / grid)
    weights = np.exp(logs - logs.max())
    mean = float(np.average(grid, weights=weights))
    return mean, math.sqrt(np.average((grid - mean) ** 2, weights=weights))


def fit_persons(ask: Session, plan: PersonPlan, options: ModelOptions) -> tuple[FitResult, int]:
    """Release levels, biases of each shared mode and components, and fit the shared model.

    Also returns an estimate of the number of entries, from released sums.
    """
    of_values = Levels.release(ask)
    n_with_values = max(round(of_values.share * ask.n_units), 1)
    values = PersonValues(n_with_values, of_values.mean, *of_values.deviation_and_share())
    biases = [
        SharedBiases(ask, mode, values)
        for mode in range(len(ask.public("shape"))) if mode != plan.unit_mode
    ]  # fmt: skip
    plan, last_budgets = release_rounds(biases, plan, of_values)
    # Units have entries in rows of different biases: release levels of values less biases.
    level = release_level(ask, biases, plan.n_level_uses - 1)
    search = FoundComponents(n_sweeps=0)
    if plan.n_sweeps:
        search = release_components(ask, biases, plan, options)
    if search.n_sweeps < plan.n_sweeps:
        release_rest(biases, plan, last_budgets)
        level = release_level(ask, biases, 1, SharedFactorSums)
    residual = residual_variance(biases)
    add_errors_of_deviation(biases, of_values.deviation_and_share)
    for bias in biases:
        bias.fit_hidden(biases)
    level_variance = level.level_variance(residual, values.measured_part)
    # Variance of units' means. Order 1 releases no squares of means: take that of a unit's values.
    of_means = values.deviation**2
    if order_of(ask) == 2:
        of_means = level_variance + residual * (1 - values.measured_part)
    model = SharedModel(
        level=level.mean + ask.public("middle"), unit_mode=plan.unit_mode,
        noise_variance=residual if search.components is None else search.noise_variance,
        effects=[bias.effects for bias in biases], components=search.components,
        # The prior of a unit's level is about the released mean: count the error of that mean.
        level_variance=level_variance + level.variance_of_mean,
        # By noise, and by sampling of units.
        level_error=math.sqrt(level.variance_of_mean + of_means / n_with_values),
    )  # fmt: skip
    state = {
        **attributes_of_units(model, ask.n_units, options.ranks),
        "_model": model, "_shared": model,
        "perturbation_": plan.perturbation,
        "n_iter_": max(search.n_sweeps, 1),
    }  # fmt: skip
    n_entries = round(entries_each(biases) * n_with_values)
    notes = on_kept([bias.mode for bias in biases if bias.is_kept_to], len(biases))
    alone = {bias.mode: bias.share_alone for bias in biases if bias.share_alone > 0}
    hidden = [
        bias.mode for bias, planned, in_doubt
        in zip(biases, plan.with_concurrences, plan.in_doubt, strict=True)
        if planned and not (bias.is_known or bias.mode in alone or in_doubt)
    ]  # fmt: skip
    notes += on_noise(hidden, len(biases)) + on_alone(alone, len(biases))
    return FitResult(state, _doubts(of_values, values.measured_part), notes), n_entries


def release_rounds(
    biases: Sequence[SharedBiases], plan: PersonPlan, of_values: Levels
) -> tuple[PersonPlan, list[float]]:
    """Release all rounds of biases, and concurrences of modes where they would tell something.

    Returns the plan for the sweeps that are left, and the budget (mu squared) of the last release
    of each mode, over that of one round.
    """
    n_sweeps = plan.n_sweeps
    more = [0.0] * len(biases)  # budgets of concurrences that these do not use
    for n_left in reversed(range(plan.n_rounds)):
        for place in shortest_first(biases):
            of_mode = biases[place]
            is_first = n_left == plan.n_rounds - 1
            of_mode.release(biases, n_left + more[place], plan.uses_by_mode[place])
            if is_first and plan.with_concurrences[place]:
                weight, rows_each = of_mode.weight_and_rows_each()
                payment = plan.payment_for_concurrences(
                    place, len(of_mode.shares), weight, rows_each
                )
                n_sweeps -= release_concurrences_if_paid(of_mode, plan, payment)
                if not payment.by_own:
                    more[place] = plan.round_by_concurrences(place)
            fit_all(biases)
        fit_by_corrected_deviation(biases, of_values.deviation_and_share)
    for of_mode, budget in zip(biases, more, strict=True):
        if budget > 0:
            of_mode.release(biases, paid_by=RowConcurrences, precision=budget)
            fit_all(biases)
    if any(more):
        fit_by_corrected_deviation(biases, of_values.deviation_and_share)
    return replace(plan, n_sweeps=n_sweeps), [budget or 1.0 for budget in more]


def release_concurrences_if_paid(
    bias: SharedBiases, plan: PersonPlan, payment: ConcurrencePayment
) -> int:
    """Release concurrences of a mode, if anything pays for them; return how many sweeps pay.

    If their own budget shows that units keep to few rows, sweeps pay for a second, better release.
    """
    if payment.by_own:
        bias.release_concurrences()
    if bias.is_kept_to:
        payment = plan.payment_if_kept(payment)
    if payment.n_sweeps > 0:
        bias.release_concurrences(payment.n_sweeps, SharedFactorSums)
    return payment.n_sweeps


def release_rest(biases: Sequence[SharedBiases], plan: PersonPlan, last: Sequence[float]) -> None:
    """Release better biases by what a search that found nothing leaves.

    `last` has the budget of each mode's last release, over that of a round.
    """
    of_modes = zip(biases, plan.sweeps_for_biases(), plan.rest_over_rounds(), last, strict=True)
    for bias, n_sweeps, budget, of_last in of_modes:
        if n_sweeps > 0:
            precision = plan.n_rounds * budget / of_last
            bias.release(biases, pooled=n_sweeps, paid_by=SharedFactorSums, precision=precision)
            fit_all(biases)


def release_level(
    ask: Session, biases: Sequence[SharedBiases], pooled: int, paid_by: type[Query] = UnitLevels
) -> Levels:
    """Release levels of values less biases; later releases of biases are about the mean level."""
    about = ReleasedEffects(tuple(bias.effects for bias in biases), 0.0, residual_variance(biases))
    level = Levels.release(ask, about, pooled, paid_by)
    biases[0].values.level = level.mean  # all modes share one `values`
    return level


def _doubts(levels: Levels, measured_part: float) -> tuple[Warning, ...]:
    """Warning, if any, by released `levels`: no values are read, or bounds seem wrong.

    `measured_part` is the mean variance of a unit's values, over the variance of values about their
    unit's level.
    """
    sigma, share, half = levels.answer.sigma, levels.share, levels.half
    if sigma >= LITTLE_NOISE * half:  # noise could explain whatever is seen
        return ()
    mean, variance, with_values, *deviations = levels.answer.value.tolist()
    if with_values <= 3 * sigma:
        return (DoubtfulParameterWarning(UNLISTED),)
    # Rare answers have a mean at the end, too, but vary within persons.
    if is_at_end(mean / share, sigma / share, half) and variance <= 3 * sigma:
        return (DoubtfulParameterWarning(AT_EDGE),)
    # In units of half the range. Mean deviations stand out of noise earlier than variances, but are
    # small also if most are 0: where they are released they decide, unless the variance is large.
    least = 2 * LEAST_DEVIATION
    largest = half * least**2 * share * measured_part
    is_wide = variance + 3 * sigma < largest
    if deviations:
        has_small = deviations[0] + 3 * sigma < half * least * share * measured_part
        is_wide = has_small and variance - 3 * sigma < largest
    return (DoubtfulParameterWarning(WIDE.format(LEAST_DEVIATION)),) if is_wide else ()


class FoundComponents(NamedTuple):
    """Outcome of a search for components."""

    n_sweeps: int  # that were released; 0 without a search
    # None if all could be noise or chance, or the trial ended the search.
    components: SharedComponents | None = None
    noise_variance: float = math.nan  # of values about the model with components


def release_components(
    ask: Session, biases: Sequence[SharedBiases], plan: PersonPlan, options: ModelOptions
) -> FoundComponents:
    """Search for components; end it at the trial if biases would gain more by the rest of it."""
    ranks = [options.ranks[bias.mode] for bias in biases]
    weights = cell_weights(biases)
    rank = math.prod(ranks) if options.full_core else ranks[0]
    n_columns = columns_worth(weights, biases[0].values.n_with_values, plan, rank)
    start = options.random_state.standard_normal((len(weights), min(rank, len(weights))))
    n_trial = trial_sweeps(plan.n_sweeps)
    search = DirectionSearch(ask, biases, start[:, :n_columns], n_trial)
    for step in range(plan.n_sweeps):
        search.release_sweep()
        if step + 1 == n_trial:
            budgets = plan.rest_over_rounds()
            more_of_biases = [bias.gain_of(b) for bias, b in zip(biases, budgets, strict=True)]
            if not search.is_worth(math.fsum(more_of_biases)):
                return FoundComponents(n_trial)
    factor, errors = search.factor()
    if not factor.any():
        return FoundComponents(plan.n_sweeps)
    shape = [len(bias.shares) for bias in biases]
    components = components_of_cells(
        factor, errors, shape, ranks, full_core=options.full_core,
        random_state=options.random_state,
    )  # fmt: skip
    return FoundComponents(plan.n_sweeps, components, search.noise_variance(factor))
