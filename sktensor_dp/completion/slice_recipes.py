"""Completion where all entries of a unit are private: what units share is released."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.completion.inference import SharedModel
from sktensor_dp.completion.plan import ModelOptions, SlicePlan
from sktensor_dp.completion.slice_components import fit_components, shared_weights
from sktensor_dp.completion.slice_directions import SharedPart, found_components
from sktensor_dp.estimator.base import Fitted
from sktensor_dp.privacy.curators.entries import NoisySharedRows, SliceCurator
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects, clipped_response, shared_effects
from sktensor_dp.tensor.unit_parameters import LEVEL_VARIANCE

__all__ = ["CLIP", "fit_slices"]

Floats = NDArray[np.float64]

# Residuals are clipped at this share of the deviation of values: little is lost of a sign,
# and noise is in proportion.
CLIP = 0.25
# Least deviation of values about their unit's level, in widths of the bounds.
LEAST_DEVIATION = 1 / 16
# Level and deviation are uniform a priori: squared half width over their variance.
LEVEL_PRIOR = 3


def fit_slices(curator: SliceCurator, plan: SlicePlan, options: ModelOptions) -> Fitted:
    """Release a level, effects of each shared mode given those before, and components."""
    model, mode, n_units = _released(curator, plan, options), plan.unit_mode, curator.n_units
    state: dict[str, Any] = {
        "_model": model, "perturbation_": plan.perturbation,
        "n_iter_": 1 if model.components is None else plan.n_sweeps,
        "mean_": model.level, "biases_": [effects.effects for effects in model.effects],
    }  # fmt: skip
    state["biases_"].insert(mode, np.zeros(n_units))
    if model.components is not None:
        state["factors_"] = list(model.components.factors)
        state["factors_"].insert(mode, np.zeros((n_units, options.ranks[mode])))
    return Fitted(state)


def _released(curator: SliceCurator, plan: SlicePlan, options: ModelOptions) -> SharedModel:
    levels = curator.unit_levels()
    half = curator.half
    # Both are shrunk by their known noise, to the middle of what they may be.
    share = half**2 / (half**2 + LEVEL_PRIOR * levels.sigma**2)
    mean = share * float(np.clip(levels.mean, -half, half))
    deviation = half / 2 + share * (levels.deviation - half / 2)
    deviation = float(np.clip(deviation, 2 * half * LEAST_DEVIATION, half))
    if plan.by_directions:
        return _by_directions(curator, plan, mean, deviation, options)
    effects, weights, features = _fit_effects(curator, plan.unit_mode, mean, deviation, options)
    noise_variance, components = deviation**2, None
    if plan.n_sweeps > 0:
        start = _random_components(curator.shape, plan.unit_mode, options)
        components, noise_variance = fit_components(
            curator, start, mean, deviation, effects, weights,
            n_sweeps=plan.n_sweeps, regularization=options.regularization, features=features,
        )  # fmt: skip
    return SharedModel(mean + curator.middle, noise_variance, plan.unit_mode, effects, components)


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
    mode = 1 - plan.unit_mode
    scale = CLIP * deviation
    asked = (mode, mean, scale, 1 / LEVEL_VARIANCE)
    noisy = curator.shared_row_sums(*asked)
    effects, weights, _ = _effects_of(curator, noisy, mode, deviation, options)
    part = SharedPart(mean, deviation, effects, weights)
    found = found_components(curator, part, plan, options)
    if found is None:
        rest = curator.shared_row_sums(*asked, rest_of="shared_factor_sums")
        effects, _, _ = _effects_of(curator, noisy.with_another(rest), mode, deviation, options)
        return SharedModel(mean + curator.middle, deviation**2, plan.unit_mode, [effects], None)
    components, noise_variance = found
    return SharedModel(mean + curator.middle, noise_variance, plan.unit_mode, [effects], components)


def _fit_effects(
    curator: SliceCurator, unit_mode: int, mean: float, deviation: float, options: ModelOptions
) -> tuple[list[SharedEffects], list[Floats], list[Floats | None]]:
    """Effects of the rows of each shared mode, the weights of their entries, and features."""
    scale = CLIP * deviation
    effects: list[Floats | None] = [None] * len(curator.shape)
    fitted, weights, features = [], [], []
    for mode in range(len(curator.shape)):
        if mode == unit_mode:
            continue
        noisy = curator.shared_row_sums(mode, mean, scale, 1 / LEVEL_VARIANCE, effects)
        found, weight, of_rows = _effects_of(curator, noisy, mode, deviation, options)
        effects[mode] = found.effects
        fitted.append(found)
        weights.append(weight)
        features.append(of_rows)
    return fitted, weights, features


def _effects_of(
    curator: SliceCurator,
    noisy: NoisySharedRows,
    mode: int,
    deviation: float,
    options: ModelOptions,
) -> tuple[SharedEffects, Floats, Floats | None]:
    """Effects of the rows of a mode from released sums, weights of entries, and features."""
    gain = clipped_response(CLIP, deviation)
    # Scaled by released weights, as true ones are private.
    features = options.features_of(mode, np.maximum(noisy.counts, 0.0))
    found = shared_effects(
        noisy.sums, noisy.counts, noise_std=noisy.sigma, n_units=curator.n_units, gain=gain,
        effect_variance=LEVEL_VARIANCE * deviation**2, features=features,
    )  # fmt: skip
    return found, shared_weights(found, max(float(noisy.counts.mean()), 1e-9)), features
