"""What of a completed tensor is saved."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from sktensor_dp.completion.slice_recipes import SharedModel
from sktensor_dp.model_files.fields import (
    Arrays,
    Choice,
    Field,
    Flag,
    Integer,
    ListOf,
    Numbers,
    Optional,
    Real,
    Record,
    require,
)
from sktensor_dp.model_files.saving import INPUT, SavedState
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects
from sktensor_dp.tensor.tucker_completion import TuckerCompletion

__all__ = ["SAVED_CP", "SAVED_TUCKER"]

# Columns of what transform returns; no table of that width would fit into memory.
MOST_COLUMNS = 2**20
MOST_MODES = 32
VECTOR, VARIANCES = Numbers(1), Numbers(1, 0.0)

SHARED_EFFECTS = Record(
    SharedEffects,
    {"effects": VECTOR, "variances": VARIANCES, "popularity": VECTOR, "scale": Real(0)},
)
SHARED_COMPONENTS = Record(
    SharedComponents,
    {"factors": ListOf(Numbers(2), tuple, 1, MOST_MODES), "full_core": Flag()},
)
SHARED = Record(
    SharedModel,
    {
        "level": Real(), "noise_variance": Real(0), "unit_mode": Integer(0, MOST_MODES),
        "effects": ListOf(SHARED_EFFECTS, shortest=1, longest=MOST_MODES),
        "components": Optional(SHARED_COMPONENTS),
    },
)  # fmt: skip
FITTED: dict[str, Field] = {
    "mean": Real(), "biases": ListOf(VECTOR, list, 2, MOST_MODES),
    "factors": ListOf(Numbers(2), list, 2, MOST_MODES),
    "noise_variance": Real(0), "n_iter": Integer(),
}  # fmt: skip
CP = Record(
    CPCompletion,
    {
        **FITTED, "weights": VARIANCES, "bias_variances": ListOf(VARIANCES, list, 2, MOST_MODES),
        "bias_scales": VARIANCES, "factor_scales": Numbers(2, 0.0),
    },
)  # fmt: skip
TUCKER = Record(TuckerCompletion, {**FITTED, "core": Numbers(None)})


class ModelField:
    """What predicts: a completion of entries, or what units share."""

    def __init__(self, entries: Record) -> None:
        self.kinds = {"entries": entries, "units": SHARED}

    def write(self, value: Any, arrays: Arrays, where: str) -> dict[str, Any]:
        """Return its parts, and which of the two it is."""
        kind = "units" if isinstance(value, SharedModel) else "entries"
        return {kind: self.kinds[kind].write(value, arrays, where)}

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        """Return the model."""
        right = isinstance(value, dict) and len(value) == 1 and value.keys() <= self.kinds.keys()
        require(right, f"{where} must be of 'entries' or of 'units'")
        ((kind, parts),) = value.items()
        return self.kinds[kind].read(parts, arrays, where)


def _check(state: SimpleNamespace, estimator: Any) -> None:
    estimator._check_all()
    shape, model = state.shape_, state._model
    require(len(state._ranks) == len(shape) == state.n_features_in_, "modes must be as many")
    require(sum(state._ranks) <= MOST_COLUMNS, f"ranks must add up to at most {MOST_COLUMNS}")
    low, high = state.bounds_
    require(low < high, "bounds_ must be (low, high) with low < high")
    names = getattr(state, "feature_names_in_", None)
    require(names is None or len(names) == len(shape), "each mode must have one name")
    lengths = tuple(len(bias) for bias in state.biases_)
    require(lengths == shape, "there must be one bias for each row")
    parts = [hasattr(state, name) for name in ("factors_", "weights_", "core_")]
    if isinstance(model, SharedModel):
        require(not any(parts[1:]), "units share factors, but no weights")
        _check_shared(model, shape)
        _check_shared_components(model, state)
        return
    require(tuple(map(len, model.biases)) == shape, "there must be one bias for each row")
    require(tuple(map(len, model.factors)) == shape, "factors must have a row for each index")
    require(_same(model.factors, getattr(state, "factors_", [])), "factors must agree")
    if isinstance(model, CPCompletion):
        _check_cp(model, state)
    else:
        _check_tucker(model, state)


def _same(first: Any, second: Any) -> bool:
    return len(first) == len(second) and all(map(np.array_equal, first, second))


def _check_shared(model: SharedModel, shape: tuple[int, ...]) -> None:
    mode = model.unit_mode
    require(mode < len(shape), "unit_mode must be a mode")
    shared = shape[:mode] + shape[mode + 1 :]
    for part in ("effects", "variances", "popularity"):
        lengths = tuple(len(getattr(effects, part)) for effects in model.effects)
        require(lengths == shared, "effects must be as many as rows of the shared modes")
    require(model.noise_variance > 0, "the variance must be positive")


def _check_shared_components(model: SharedModel, state: SimpleNamespace) -> None:
    found = list(getattr(state, "factors_", []))
    require((model.components is None) == (not found), "factors must agree")
    if model.components is None:
        return
    factors, mode = model.components.factors, model.unit_mode
    require(tuple(map(len, found)) == state.shape_, "factors must have a row for each index")
    widths = tuple(factor.shape[1] for factor in found)
    require(widths == state._ranks, "factors must be of the ranks")
    require(_same(factors, found[:mode] + found[mode + 1 :]), "factors must agree")
    shared = [factor.shape[1] for factor in factors]
    if model.components.full_core:
        require(math.prod(shared) <= MOST_COLUMNS, "components must be fewer")
    else:
        require(len(set(shared)) == 1, "ranks of a CP model must be equal")


def _check_cp(model: CPCompletion, state: SimpleNamespace) -> None:
    r, n_modes = len(model.weights), len(state.shape_)
    wide = all(factor.shape[1] == r for factor in model.factors)
    require(wide and r <= min(state._ranks), "each component must have one column of each factor")
    require(len(set(state._ranks)) == 1, "ranks of a CP model must be equal")
    same = _same([model.weights], [getattr(state, "weights_", np.zeros(0))])
    require(same and not hasattr(state, "core_"), "weights must agree")
    lengths = tuple(map(len, model.bias_variances))
    sized = lengths == state.shape_ and model.bias_scales.shape == (n_modes,)
    require(sized and model.factor_scales.shape == (n_modes, r), "variances must fit the model")


def _check_tucker(model: TuckerCompletion, state: SimpleNamespace) -> None:
    widths = tuple(factor.shape[1] for factor in model.factors)
    require(model.core.shape == widths == state._ranks, "the core must fit the factors")
    same = _same([model.core], [getattr(state, "core_", np.zeros(0))])
    require(same and not hasattr(state, "weights_"), "cores must agree")


def _saved(entries: Record) -> SavedState:
    components = {"weights_": VARIANCES} if entries is CP else {"core_": Numbers(None)}
    return SavedState(
        {
            **INPUT, "mean_": Real(), "biases_": ListOf(VECTOR, list, 2, MOST_MODES),
            "factors_": Optional(ListOf(Numbers(2), list, 2, MOST_MODES)),
            **{name: Optional(part) for name, part in components.items()},
            "shape_": ListOf(Integer(1), tuple, 2, MOST_MODES),
            "bounds_": ListOf(Real(), tuple, 2, 2), "n_iter_": Integer(1),
            "_ranks": ListOf(Integer(0, MOST_COLUMNS), tuple, 2, MOST_MODES),
            "perturbation_": Choice("sufficient_statistics", "gradient", "input", "output"),
            "_model": ModelField(entries),
        },
        _check,
        {},
    )  # fmt: skip


SAVED_CP, SAVED_TUCKER = _saved(CP), _saved(TUCKER)
