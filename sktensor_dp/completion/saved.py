"""What of a completed tensor is saved."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from sktensor_dp.completion.inference import SharedModel
from sktensor_dp.completion.public_features import features_by_mode
from sktensor_dp.completion.row_index import RowIndex
from sktensor_dp.model_files.fields import (
    Arrays,
    Field,
    Flag,
    Integer,
    ListOf,
    Numbers,
    Optional,
    OrNone,
    Real,
    Record,
    Text,
    Words,
    require,
)
from sktensor_dp.model_files.saving import INPUT, SavedState
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.row_bounds import RowBounds
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.tucker_completion import TuckerCompletion

# Columns of what transform returns; no table of that width would fit into memory.
MOST_COLUMNS = 2**20
MOST_MODES = 32
# Lengths: d modes, N rows and R columns of each, r components of a CP model.
WEIGHTS = Numbers("r", 0.0)


def _by_mode(item: Field, build: Callable[[Any], Any] = list) -> ListOf:
    return ListOf(item, build, 2, MOST_MODES, "d")


BIASES, VARIANCES = _by_mode(Numbers("N")), _by_mode(Numbers("N", 0.0))

SHARED_EFFECTS = Record(
    SharedEffects,
    {
        "effects": Numbers("S"), "variances": Numbers("S", 0.0), "popularity": Numbers("S"),
        "scale": Real(0),
    },
)  # fmt: skip
SHARED_COMPONENTS = Record(
    SharedComponents,
    {
        "factors": ListOf(Numbers("S?"), tuple, 1, MOST_MODES),
        "full_core": Flag(),
        "mixing": OrNone(Numbers("??")),
    },
)
SHARED = Record(
    SharedModel,
    {
        "level": Real(), "noise_variance": Real(0), "unit_mode": Integer(0, MOST_MODES),
        "effects": ListOf(SHARED_EFFECTS, shortest=1, longest=MOST_MODES),
        "components": OrNone(SHARED_COMPONENTS), "level_variance": OrNone(Real(0)),
        "slope_variance": OrNone(Real(0)),
    },
)  # fmt: skip


def _parts_of_index(index: RowIndex) -> dict[str, Any]:
    plain = index._plain_parameter()
    if isinstance(plain, dict):
        return plain
    return {"names" if isinstance(plain[0], str) else "numbers": plain}


def _index(
    names: Any = None, numbers: Any = None, start: Any = None, n_periods: Any = None, days: Any = 1
) -> RowIndex:
    if start is not None:
        return RowIndex.from_calendar(start, n_periods, days=days)
    return RowIndex.from_public(numbers.tolist() if names is None else names)


INDICES = _by_mode(
    Optional(
        Record(
            _index,
            {
                "names": Optional(Words(list)),
                "numbers": Optional(Numbers("?", -(2**62), 2**62, "int64")),
                "start": Optional(Text()), "n_periods": Optional(Integer(1)),
                "days": Optional(Integer(1)),
            },
            take=_parts_of_index,
        )
    ),
    tuple,
)  # fmt: skip
FITTED: dict[str, Field] = {
    "mean": Real(), "biases": BIASES, "noise_variance": Real(0), "n_iter": Integer(),
    "converged": Flag(),
}  # fmt: skip
CP = Record(
    CPCompletion,
    {
        **FITTED, "factors": _by_mode(Numbers("Nr")), "weights": WEIGHTS,
        "bias_variances": VARIANCES, "bias_scales": Numbers("d", 0.0),
        "factor_scales": Numbers("dr", 0.0),
    },
)  # fmt: skip
TUCKER = Record(
    TuckerCompletion,
    {**FITTED, "factors": _by_mode(Numbers("NR")), "core": Numbers(None)},
)


class ModelField(Field):
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


class BoundsField(Field):
    """Two numbers, or two for each row of a mode."""

    of_all = ListOf(Real(), tuple, 2, 2)
    of_rows = Record(
        RowBounds,
        {"mode": Integer(0, MOST_MODES), "low": Numbers("?"), "high": Numbers("?")},
    )

    def write(self, value: Any, arrays: Arrays, where: str) -> Any:
        """Return the numbers, or the parts."""
        of = self.of_rows if isinstance(value, RowBounds) else self.of_all
        return of.write(value, arrays, where)

    def read(self, value: Any, arrays: Arrays, where: str) -> Any:
        """Return a pair, or bounds of rows."""
        of = self.of_rows if isinstance(value, dict) else self.of_all
        return of.read(value, arrays, where)


def _check(state: SimpleNamespace, estimator: Any) -> None:
    estimator._check_all()
    features_by_mode(estimator, state.shape_)
    model, ranks = state._model, state._ranks
    indices = getattr(state, "_indices", None)
    if indices is not None:
        pairs = zip(indices, state.shape_, strict=True)
        named = all(index is None or len(index) == n for index, n in pairs)
        require(named, "names must be as many as rows")
    require(sum(ranks) <= MOST_COLUMNS, f"ranks must add up to at most {MOST_COLUMNS}")
    if isinstance(state.bounds_, RowBounds):
        state.bounds_.check_shape(state.shape_)
    else:
        low, high = state.bounds_
        require(low < high, "bounds_ must be (low, high) with low < high")
    factors = getattr(state, "factors_", [])
    weights = getattr(state, "weights_", getattr(state, "core_", None))
    if isinstance(model, SharedModel):
        require(weights is None, "units share factors, but no weights")
        _check_shared(model, state.shape_, estimator._own_mode)
        _check_shared_components(model, factors, ranks)
        return
    if isinstance(model, CPCompletion):
        fewer = len(model.weights) <= min(ranks) and len(set(ranks)) == 1
        require(fewer, "components must be at most as many as the ranks, which are equal")
        found = model.weights
    else:
        require(model.core.shape == ranks, "the core must be of the ranks")
        found = model.core
    require(_same([found, *model.factors], [weights, *factors]), "factors must agree")
    require(hasattr(state, "_shared"), "parts for folding in are missing")
    shared: SharedModel = state._shared
    _check_shared(shared, state.shape_, estimator._own_mode)
    rows = shared.components.factors if shared.components is not None else ()
    lengths = tuple(len(factor) for factor in rows)
    require(lengths in ((), _others(shared, state.shape_)), "factors must be of the shape")
    require(shared.n_parameters <= MOST_COLUMNS, "components must be fewer")


def _same(first: Any, second: Any) -> bool:
    return len(first) == len(second) and all(map(np.array_equal, first, second))


def _check_shared(model: SharedModel, shape: tuple[int, ...], unit_mode: int) -> None:
    require(model.unit_mode == unit_mode < len(shape), "unit_mode must be a mode")
    lengths = tuple(len(effects.effects) for effects in model.effects)
    rows = lengths == _others(model, shape)
    require(rows, "effects must be as many as rows of the shared modes")
    require(model.noise_variance > 0, "the variance must be positive")


def _others(model: SharedModel, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[: model.unit_mode] + shape[model.unit_mode + 1 :]


def _check_shared_components(model: SharedModel, found: Any, ranks: tuple[int, ...]) -> None:
    require((model.components is None) == (len(found) == 0), "factors must agree")
    if model.components is None:
        return
    factors, mode = model.components.factors, model.unit_mode
    require(tuple(factor.shape[1] for factor in found) == ranks, "factors must be of the ranks")
    require(_same(factors, found[:mode] + found[mode + 1 :]), "factors must agree")
    shared = [factor.shape[1] for factor in factors]
    if model.components.full_core:
        require(math.prod(shared) <= MOST_COLUMNS, "components must be fewer")
    else:
        require(len(set(shared)) == 1, "ranks of a CP model must be equal")


def _saved(entries: Record) -> SavedState:
    components = {"weights_": WEIGHTS} if entries is CP else {"core_": Numbers(None)}
    return SavedState(
        {
            **INPUT, "mean_": Real(), "biases_": BIASES,
            "factors_": Optional(_by_mode(Numbers("N?"))),
            **{name: Optional(part) for name, part in components.items()},
            "shape_": _by_mode(Integer(1, letter="N"), tuple),
            "bounds_": BoundsField(), "n_iter_": Integer(1),
            "_ranks": _by_mode(Integer(0, MOST_COLUMNS, "R"), tuple),
            "perturbation_": Text(("sufficient_statistics", "gradient", "input", "output")),
            "_model": ModelField(entries), "_shared": Optional(SHARED),
            "_indices": Optional(INDICES),
        },
        _check,
        {},
    )  # fmt: skip


SAVED_CP, SAVED_TUCKER = _saved(CP), _saved(TUCKER)
