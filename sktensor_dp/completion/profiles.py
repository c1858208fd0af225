"""Rows of a mode by what components say of them, as vectors of length 1."""

import math
from typing import Any

import numpy as np

from sktensor_dp.completion.inference import SharedModel
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion


def profiles(estimator: Any, mode: int) -> Floats:
    """One row for each of the mode; NaN for rows of which components say nothing.

    Inner products are cosines between slices of the components' tensor, of which no entry is
    formed; where weights of units are not known they are taken for independent.
    """
    model, shared = estimator._model, getattr(estimator, "_shared", None)
    if shared is not None and shared.components is not None and mode != shared.unit_mode:
        # Where nothing of the units' own weights was released, the model has none of these.
        core = model.weights if isinstance(model, CPCompletion) else model.core
        if not model.factors[shared.unit_mode].any() or not core.any():
            model = shared
    if isinstance(model, SharedModel):
        factor, gram = _of_shared(model, mode)
    elif isinstance(model, CPCompletion):
        others = [f.T @ f for m, f in enumerate(model.factors) if m != mode]
        factor = model.factors[mode]
        gram = math.prod(others, start=np.outer(model.weights, model.weights))
    else:
        unfolded = np.moveaxis(model.core, mode, 0).reshape(model.core.shape[mode], -1)
        factor, gram = model.factors[mode], unfolded @ unfolded.T
    values, vectors = np.linalg.eigh(gram) if gram.size else (np.zeros(0), gram)
    whole = factor @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    norms = np.sqrt(np.square(whole).sum(axis=1, keepdims=True))
    if not (norms > 0).any():
        raise ValueError(
            "No components were found, so that no rows are alike: noise hides them at this "
            "epsilon, or rank is 0. forecast() says so beforehand."
        )
    return np.divide(whole, norms, out=np.full_like(whole, np.nan), where=norms > 0)


def _of_shared(model: SharedModel, mode: int) -> tuple[Floats, Floats]:
    if mode == model.unit_mode:
        raise ValueError(
            f"mode must be another than {mode}, that of units: nothing of a unit was released."
        )
    if model.components is None:
        return np.zeros((1, 1)), np.zeros((1, 1))
    place = mode - (mode > model.unit_mode)
    factors = model.components.factors
    columns = factors[place].shape[1]
    if model.components.full_core:
        # Weights of all combinations of columns are a unit's own.
        return factors[place], np.eye(columns)
    others = [np.square(f).sum(axis=0) for m, f in enumerate(factors) if m != place]
    return factors[place], np.diag(math.prod(others, start=np.ones(columns)))
