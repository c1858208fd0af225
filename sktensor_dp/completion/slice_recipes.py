"""Completion where all entries of a unit are private: what units share is released."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sktensor_dp.completion.effect_rounds import EffectRounds
from sktensor_dp.completion.inference import SharedModel, attributes_of_units
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.plan import SlicePlan
from sktensor_dp.completion.slice_components import fit_components
from sktensor_dp.completion.slice_directions import found_components
from sktensor_dp.estimator.base import Fitted
from sktensor_dp.privacy.curators.entries import SliceCurator
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.shared_parameters import SharedComponents
from sktensor_dp.tensor.unit_parameters import LEVEL_VARIANCE

# Least deviation of values about their unit's level, in widths of the bounds.
LEAST_DEVIATION = 1 / 16
# Level and deviation are uniform a priori: squared half width over their variance.
LEVEL_PRIOR = 3


def fit_slices(curator: SliceCurator, plan: SlicePlan, options: ModelOptions) -> Fitted:
    """Release a level, effects of each shared mode given those before, and components."""
    model, n_units = _released(curator, plan, options), curator.n_units
    state = {
        **attributes_of_units(model, n_units, options.ranks), "_model": model,
        "perturbation_": plan.perturbation,
        "n_iter_": 1 if model.components is None else plan.n_sweeps,
    }  # fmt: skip
    return Fitted(state)


def _released(curator: SliceCurator, plan: SlicePlan, options: ModelOptions) -> SharedModel:
    mean, deviation, variance = _levels(curator)
    model = _about_levels(curator, plan, mean, deviation, options)
    # Units' own levels are about one that is known so well.
    return replace(model, level_variance=LEVEL_VARIANCE * model.noise_variance + variance)


def _levels(curator: SliceCurator) -> tuple[float, float, float]:
    """Mean level of units, their deviation, and the variance of the noise of the mean."""
    levels, half = curator.unit_levels(), curator.half
    # Both are shrunk by their known noise, to the middle of what they may be.
    share = half**2 / (half**2 + LEVEL_PRIOR * levels.sigma**2)
    mean = share * float(np.clip(levels.mean, -half, half))
    deviation = half / 2 + share * (levels.deviation - half / 2)
    least = 2 * half * LEAST_DEVIATION
    deviation = float(np.clip(deviation, least, half))
    variance = share * levels.sigma**2
    return mean, deviation, variance


def _about_levels(
    curator: SliceCurator, plan: SlicePlan, mean: float, deviation: float, options: ModelOptions
) -> SharedModel:
    if plan.by_directions:
        return _by_directions(curator, plan, mean, deviation, options)
    rounds = _fit_effects(curator, plan, mean, deviation, options)
    noise_variance = rounds[0].noise_variance() if plan.n_rounds > 1 else deviation**2
    components = None
    if plan.n_sweeps > 0:
        start = _random_components(curator.shape, plan.unit_mode, options)
        components, noise_variance = fit_components(
            curator, start, rounds, plan.n_sweeps, options.regularization
        )
    level = mean + curator.middle
    of = [one.effects for one in rounds]
    return SharedModel(level, noise_variance, plan.unit_mode, of, components)


def _random_components(
    shape: Sequence[int], unit_mode: int, options: ModelOptions
) -> SharedComponents:
    factors = []
    for mode, size in enumerate(zip(shape, options.ranks, strict=True)):
        if mode != unit_mode:
            f = options.random_state.standard_normal(size)
            wide = size[0] < size[1]
            factors.append(f if wide else np.linalg.qr(f)[0] * np.sqrt(len(f)))
    return SharedComponents(tuple(factors), options.full_core)


def _by_directions(
    curator: SliceCurator, plan: SlicePlan, mean: float, deviation: float, options: ModelOptions
) -> SharedModel:
    """Of a matrix: components, where released numbers show some, or better effects."""
    rounds = _fit_effects(curator, plan, mean, deviation, options)[0]
    components, noise_variance = found_components(curator, rounds, plan, options) or (None, 0.0)
    if components is None:
        rounds.again(1, "shared_factor_sums")
        noise_variance = rounds.noise_variance()
    effects = [rounds.effects]
    return SharedModel(mean + curator.middle, noise_variance, plan.unit_mode, effects, components)


def _fit_effects(
    curator: SliceCurator, plan: SlicePlan, mean: float, deviation: float, options: ModelOptions
) -> list[EffectRounds]:
    """Effects of the rows of each shared mode, given those of the modes before."""
    effects: list[Floats | None] = [None] * len(curator.shape)
    found = []
    for mode in range(len(curator.shape)):
        if mode == plan.unit_mode:
            continue
        rounds = EffectRounds(curator, mode, mean, deviation, options)
        rounds.first(effects, last=plan.n_rounds == 1)
        rounds.again(plan.n_rounds - 1)
        effects[mode] = rounds.effects.effects
        found.append(rounds)
    return found
