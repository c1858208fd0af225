"""Components of the columns of a table for whoever folds in a row's own entries."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sktensor_dp.completion import defaults
from sktensor_dp.completion.assumed import RESIDUAL
from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.own_entries import bias_variances
from sktensor_dp.completion.rows import unexplained
from sktensor_dp.privacy.curators.entries import EntryCurator
from sktensor_dp.queries.observed_entries import IndexSet, RowCells
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.pair_components import components_of_pairs
from sktensor_dp.tensor.shared_parameters import clipped_response
from sktensor_dp.tensor.tucker_completion import Model


def pair_components(
    curator: EntryCurator, model: Model, options: ModelOptions
) -> tuple[Floats, float]:
    """Loadings of the columns, and the variance that they leave of a value."""
    places = curator.index_set
    residual = 2 * curator.half * RESIDUAL
    noisy = curator.entry_pairs(
        RowCells(places, 0), centred_biases(curator, model),
        pair_weights(places.counts[0]), defaults.PAIR_CLIP * residual,
    )  # fmt: skip
    # What is left of a row's bias is a component that its own level stands for.
    known = places.counts[0] / places.n_entries
    left = float(known @ bias_variances(model, places, 0, residual**2))
    response = clipped_response(defaults.PAIR_CLIP, residual) ** 2
    own = _clipped_variance() ** 2 * float(noisy.counts.mean())
    found = components_of_pairs(
        noisy.sums - noisy.counts * (response * left), noisy.counts, response,
        math.hypot(noisy.sigma, math.sqrt(own)), min(options.ranks),
    ) / math.sqrt(options.regularization)  # fmt: skip
    return found, variance_left(found, places, residual)


def centred_biases(curator: EntryCurator, model: Model) -> Floats:
    """Mean and biases at every entry, about the middle that the curator's values are about."""
    return curator.index_set.at_entries(model.biases) + (model.mean - curator.middle)


def variance_left(found: Floats, places: IndexSet, residual: float) -> float:
    """Variance of a value that loadings of the columns leave."""
    shares = places.counts[1] / places.n_entries
    explained = float((shares @ found**2).sum())
    return unexplained(residual, explained)


def pair_weights(counts: NDArray[np.integer]) -> Floats:
    """Of rows by how many entries they have: one value moves the pairs of any of them as far."""
    others = np.maximum(counts - 1.0, 1.0)
    return np.asarray(np.sqrt(float(others.min()) / others))


def with_columns(model: Model, found: Floats) -> Model:
    """The model with the loadings of columns; those of rows are 0."""
    if not isinstance(model, CPCompletion):
        return model
    norms = np.linalg.norm(found, axis=0)
    rows = np.zeros((len(model.biases[0]), len(norms)))
    factors = [rows, found / np.where(norms > 0, norms, 1.0)]
    scales = np.stack([np.mean(factor**2, axis=0) for factor in factors])
    return replace(model, factors=factors, weights=norms, factor_scales=scales)


def _clipped_variance() -> float:
    """Mean square of a normal residual that is clipped, in units of the clip."""
    t = defaults.PAIR_CLIP
    inside = 2 * ndtr(t) - 1
    density = math.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    return float((inside - 2 * t * density) / t**2 + 1 - inside)
