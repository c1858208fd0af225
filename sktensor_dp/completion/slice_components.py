"""Components of slices: released sweeps over the factors that units share."""

from collections.abc import Sequence

import numpy as np

from sktensor_dp.completion import defaults
from sktensor_dp.completion.effect_rounds import EffectRounds
from sktensor_dp.completion.rows import posterior_rows, unexplained, unit_mean_square
from sktensor_dp.privacy.curators.entries import NoisySharedFactor, SliceCurator
from sktensor_dp.queries.slices import SharedFactorSums
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.row_effects import regressed
from sktensor_dp.tensor.shared_parameters import SharedComponents, clipped_response

# Residuals are clipped at this share of the deviation of values: components are a part of
# what is clipped, so that more of its tails is kept than of a residual's.
CLIP = 1.0
# Largest number in a factor, in deviations of values.
LARGEST = 1e6
# Least eigenvalue of a moment, relative to its trace: below it noise or rounding is seen.
LEAST_MOMENT = 1e-3
# Least variance of what is seen of a row, relative to its prior one: exact sums leave none.
LEAST_VARIANCE = 1e-12


def fit_components(
    curator: SliceCurator,
    components: SharedComponents,
    rounds: Sequence[EffectRounds],
    n_sweeps: int,
    regularization: float,
) -> tuple[SharedComponents, float]:
    """Factors released mode by mode, each given those before, and the variance they leave."""
    level, deviation = rounds[0].level, rounds[0].deviation
    start = deviation * np.sqrt(defaults.COMPONENT_VARIANCE)
    components = components.with_factor(0, components.factors[0] * start)
    effects, noise_variance = tuple(one.effects for one in rounds), deviation**2
    for step in range(n_sweeps * len(rounds)):
        mode = step % len(rounds)
        components = _scale_moved(components, mode)
        query = SharedFactorSums(
            mode, curator.shape, level, effects, components, noise_variance, CLIP * deviation
        )  # fmt: skip
        noisy = curator.shared_factor_sums(query)
        factor = _factor(noisy, rounds[mode], curator.n_units, regularization)
        components = components.with_factor(mode, factor)
        noise_variance = _noise_variance(components, rounds)
    return components, noise_variance


def _scale_moved(components: SharedComponents, mode: int) -> SharedComponents:
    """Columns of unit mean square but for one mode, which carries the scales."""
    if components.full_core or len(components.factors) == 1:
        # Scales of a core's rows cannot be moved; one number for all of them can.
        scales = [float(np.sqrt(np.mean(f**2))) or 1.0 for f in components.factors]
        factors = [f / s for f, s in zip(components.factors, scales, strict=True)]
        factors[mode] = factors[mode] * float(np.prod(scales))
        return SharedComponents(tuple(factors), components.full_core)
    parts = [unit_mean_square(factor) for factor in components.factors]
    factors = [factor for factor, _ in parts]
    factors[mode] = factors[mode] * np.prod([scale for _, scale in parts], axis=0)
    return SharedComponents(tuple(factors), components.full_core)


def _factor(
    noisy: NoisySharedFactor, of: EffectRounds, n_units: int, regularization: float
) -> Floats:
    """Rows that explain the released sums, shrunk by their noise to what features say."""
    # The second moment of slopes is a property of the model whatever its scale: scaling the
    # result by its root (parameter expansion) makes up for what clipping and empty units take
    # from it.
    weights, features, deviation = of.weights, of.features, of.deviation
    values, vectors = np.linalg.eigh(noisy.moment)
    trace = max(float(values.sum()), 1e-6)
    values = np.maximum(values, LEAST_MOMENT * trace)
    moment = (vectors * values) @ vectors.T
    gain = clipped_response(CLIP, deviation) * noisy.slope_scale
    grams = gain * weights[:, None, None] * moment
    # A unit's weight in an entry is one over the root of the number of its entries.
    residual = min(n_units / max(float(weights.sum()), 1.0), 1.0) / gain
    prior, sums, expected = defaults.COMPONENT_VARIANCE * deviation**2, noisy.sums, None
    if features is not None:
        # Along the moment's axes columns are apart from each other.
        slopes = gain * weights[:, None] * values
        along = _expected(
            sums @ vectors, slopes, noisy.sigma**2 + residual * slopes, prior, features
        )
        expected = along @ vectors.T
        sums = sums - np.einsum("iab,ib->ia", grams, expected)
    identity = noisy.sigma**2 * np.eye(len(moment))
    covariances = np.broadcast_to(identity, grams.shape)
    rows = posterior_rows(sums, grams, covariances, residual, prior, regularization)
    found = (rows if expected is None else rows + expected) * np.sqrt(trace)
    # Noise may be of any size; queries refuse numbers that overflow.
    return np.clip(found, -LARGEST * deviation, LARGEST * deviation)


def _expected(
    sums: Floats, slopes: Floats, noise: Floats, prior: float, features: Floats
) -> Floats:
    """What features say of numbers a of which ``slopes a`` was seen, column by column."""
    found = []
    for g, h, variance in zip(sums.T, slopes.T, noise.T, strict=True):
        safe = np.maximum(variance, LEAST_VARIANCE * prior * h**2)
        known = safe > 0
        inverse = np.where(known, 1 / np.where(known, safe, 1.0), 0.0)
        found.append(regressed(h**2 * inverse, h * g * inverse, prior, features).expected)
    return np.stack(found, axis=1)


def _noise_variance(components: SharedComponents, rounds: Sequence[EffectRounds]) -> float:
    """What of the variance about a unit's level neither effects nor components explain."""
    explained = sum(one.explained() for one in rounds)
    parts = [one.shares @ f**2 for one, f in zip(rounds, components.factors, strict=True)]
    if components.full_core:
        explained += float(np.prod([part.sum() for part in parts]))
    else:
        explained += float(np.prod(parts, axis=0).sum())
    return unexplained(rounds[0].deviation, explained)
