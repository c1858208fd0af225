"""Serialisation schema of a completed tensor."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from sktensor_dp.completion.inference import SharedModel, attributes_of_units
from sktensor_dp.completion.row_names import indices_of
from sktensor_dp.completion.row_tables import features_by_mode
from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import ABSENT, SavedState
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.row_bounds import RowBounds
from sktensor_dp.tensor.tucker_completion import Model, TuckerCompletion

# Columns of what transform returns; no table of that width would fit into memory.
MOST_COLUMNS = 2**20
MOST_MODES = 32
# Of what units share: S rows of each shared mode.
SHARED_LAYOUT = {
    "noise_variance": "+", "level_variance": "+", "effects": "S",
    "variances": "S+", "popularity": "S", "scale": "+", "factors": "S?", "mixing": "??",
    "low": "?", "high": "?",
}  # fmt: skip


@dataclass(kw_only=True)
class SavedCompletion(SavedState):
    """Attributes of a tensor of d modes of N rows; of units what they share."""

    layout = {  # noqa: RUF012
        **SHARED_LAYOUT, "n_features_in_": "d", "feature_names_in_": "d", "shape_": "d:N",
        "_ranks": "d:?", "biases_": "d:N", "factors_": "d:N?", "weights_": "r+",
    }  # fmt: skip

    shape_: tuple[int, ...]
    bounds_: tuple[float, float] | RowBounds
    n_iter_: int
    perturbation_: Literal["sufficient_statistics", "gradient", "input", "output"]
    _ranks: tuple[int, ...]
    units: SharedModel | None
    # Of a model of entries; of units they follow from what these share.
    mean_: float = ABSENT
    biases_: list[Floats] = ABSENT
    factors_: list[Floats] = ABSENT
    weights_: Floats = ABSENT
    core_: Floats = ABSENT

    @classmethod
    def of(cls, estimator: Any, **rebuilt: Any) -> Self:
        """State of a fitted completion."""
        model, shared = (vars(estimator).get(name) for name in ("_model", "_shared"))
        of_units = isinstance(model, SharedModel)
        state = super().of(estimator, units=model if of_units else shared)
        absent = dict.fromkeys(("mean_", "biases_", "factors_"), ABSENT)
        return replace(state, **absent) if of_units else state

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes, where their shapes agree."""
        estimator._check_all()
        features_by_mode(estimator, self.shape_)
        found, shape, ranks = super().attributes(estimator), self.shape_, self._ranks
        right = 2 <= len(shape) <= MOST_MODES and min(shape) > 0 and self.n_iter_ > 0
        require(right, "shape_ must be that of a tensor, fitted in a step or more")
        require(sum(ranks) <= MOST_COLUMNS, f"ranks must add up to at most {MOST_COLUMNS}")
        check_bounds(self.bounds_, shape)
        if estimator.row_names is not None:
            indices = found["_indices"] = indices_of(estimator.row_names) or ()
            named = [None if index is None else len(index) for index in indices]
            fits = len(named) == len(shape) and all(
                n is None or n == length for n, length in zip(named, shape, strict=True)
            )
            require(fits, "names must be as many as rows")
        units = found.pop("units")
        if units is not None:
            check_shared(units, shape)
        if self.mean_ is ABSENT:
            require(units is not None, "there must be a model")
            only = found.keys().isdisjoint(("biases_", "factors_", "weights_", "core_"))
            if units.components is not None:
                columns = [factor.shape[1] for factor in units.components.factors]
                only = only and columns == [*np.delete(ranks, units.unit_mode)]
            require(only, "factors must be of the ranks, and only what units share")
            of_units = attributes_of_units(units, shape[units.unit_mode], ranks)
            return {**found, **of_units, "_model": units}
        require("factors_" in found and "biases_" in found, "there must be factors and biases")
        columns = [factor.shape[1] for factor in self.factors_]
        if self.core_ is ABSENT:
            require(self.weights_ is not ABSENT, "components must have weights")
            n = len(self.weights_)
            right = columns == [n] * len(shape) and n <= min(ranks) and len(set(ranks)) == 1
            none: Any = np.zeros(0)
            model: Model = CPCompletion(
                self.mean_, self.biases_, self.factors_, self.weights_, 0.0, self.n_iter_, [], none,
                none,
            )  # fmt: skip
        else:
            right = self.weights_ is ABSENT and self.core_.shape == ranks == (*columns,)
            model = TuckerCompletion(
                self.mean_, self.biases_, self.factors_, self.core_, 0.0, self.n_iter_
            )
        require(right, "factors must be of the ranks")
        wanted = "core_" if estimator._full_core else "weights_"
        require(wanted in found, f"the model must have {wanted}")
        return {**found, "_model": model, "_shared": units}


def check_bounds(bounds: tuple[float, float] | RowBounds, shape: tuple[int, ...]) -> None:
    """Refuse bounds that are not those of a tensor."""
    if isinstance(bounds, RowBounds):
        bounds.check_shape(shape)
    else:
        require(-np.inf < bounds[0] < bounds[1] < np.inf, "bounds must be (low, high), low < high")


def check_shared(model: SharedModel, shape: tuple[int, ...]) -> None:
    """Refuse what units of a tensor cannot share."""
    mode = model.unit_mode
    require(mode < len(shape), "unit_mode must be a mode")
    others = [*np.delete(shape, mode)]
    lengths = [len(effects.effects) for effects in model.effects]
    require(lengths == others, "effects must be as many as rows of the shared modes")
    require(model.noise_variance > 0, "the variance must be positive")
    if model.components is not None:
        factors = model.components.factors
        require([len(factor) for factor in factors] == others, "factors must be of the shape")
        columns = {factor.shape[1] for factor in factors}
        alike = model.components.full_core or len(columns) == 1
        require(alike and model.n_parameters <= MOST_COLUMNS, "components must be fewer")
