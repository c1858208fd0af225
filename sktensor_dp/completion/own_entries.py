"""Where values are the units: what of a released model others need to fold in a person's own."""

import numpy as np

from sktensor_dp.completion.inference import SharedModel
from sktensor_dp.completion.plan import RESIDUAL
from sktensor_dp.queries.observed_entries import IndexSet
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.tucker_completion import Model

# Least variances of a value about the model, and of a bias, relative to what values are
# assumed to have: exact data may leave none, and a ridge has to have some.
LEAST_NOISE, LEAST_SCALE = 1e-9, 1e-12


def shared_part(
    model: Model,
    entries: IndexSet,
    width: float,
    known_noise: float,
    of_pairs: tuple[Floats, float] | None = None,
) -> SharedModel:
    """Effects and factors of all modes but the first.

    Of a matrix, columns and what variance they leave may have been found beside the model.
    """
    # Of released arrays and public coordinates alone.
    noise = _residual_variance(model, width, known_noise)
    effects = [_effects(model, entries, m, noise) for m in range(1, entries.n_modes)]
    scale = bias_scale(model, entries, 0)
    if of_pairs is None:
        components = _components(model)
    else:
        columns, noise = of_pairs
        components = SharedComponents((columns,), False) if columns.size else None
    return SharedModel(model.mean, noise, 0, effects, components, scale)


def _residual_variance(model: Model, width: float, known_noise: float) -> float:
    """Of exact values about the model: known noise is taken off where it does not hide it."""
    assumed = (width * RESIDUAL) ** 2
    if known_noise > assumed:
        return assumed
    return max(model.noise_variance - known_noise, LEAST_NOISE * assumed)


def bias_scale(model: Model, entries: IndexSet, mode: int) -> float:
    """Prior variance of the biases of a mode."""
    if isinstance(model, CPCompletion):
        return float(model.bias_scales[mode])
    seen = entries.counts[mode] > 0
    return float(np.mean(model.biases[mode][seen] ** 2)) if seen.any() else 0.0


def _effects(model: Model, entries: IndexSet, mode: int, noise: float) -> SharedEffects:
    counts, scale = entries.counts[mode], bias_scale(model, entries, mode)
    variances = bias_variances(model, entries, mode, noise)
    # Of rows that nobody has an entry in, the least popular seen one tells.
    mean = max(float(counts.mean()), 1e-100)
    popularity = 0.5 * np.log(np.maximum(counts, 1) / mean)
    return SharedEffects(model.biases[mode], variances, popularity, scale)


def bias_variances(model: Model, entries: IndexSet, mode: int, noise: float) -> Floats:
    """Posterior variances of the biases of a mode, where values have so much noise."""
    counts, scale = entries.counts[mode], bias_scale(model, entries, mode)
    if isinstance(model, CPCompletion):
        return np.where(counts > 0, model.bias_variances[mode], scale)
    least = max(scale, LEAST_SCALE * noise)
    return np.asarray(noise / (counts + noise / least), dtype=np.float64)


def _components(model: Model) -> SharedComponents | None:
    """Factors in whose scale a unit's own weights have unit variance."""
    factors = list(model.factors[1:])
    own = np.sqrt(np.mean(model.factors[0] ** 2, axis=0))
    if isinstance(model, CPCompletion):
        found = model.weights > 0
        scales = (model.weights * np.sqrt(model.factor_scales[0]))[found]
        factors = [factor[:, found] for factor in factors]
        factors[0] = factors[0] * scales
        return SharedComponents(tuple(factors), False) if found.any() else None
    unfolded = np.moveaxis(model.core, 0, -1).reshape(-1, len(own))
    found = np.abs(unfolded * own).max(axis=0) > 0
    if not found.any():
        return None
    return SharedComponents(tuple(factors), True, (unfolded * own)[:, found])
