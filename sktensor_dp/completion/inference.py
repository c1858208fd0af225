"""What a fitted completion says of coordinates, from released arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects
from sktensor_dp.tensor.tucker_completion import Model
from sktensor_dp.tensor.unit_parameters import N_PLAIN, EntryEffects, effects_at_entries


def attributes_of(model: Model) -> dict[str, Any]:
    """Fitted attributes of an estimator whose model was released."""
    last = "weights" if isinstance(model, CPCompletion) else "core"
    return {f"{name}_": getattr(model, name) for name in ("mean", "biases", "factors", last)}


def attributes_of_units(model: "SharedModel", n_units: int, ranks: Sequence[int]) -> dict[str, Any]:
    """Fitted attributes where units share a model; nothing of a unit was released."""
    mode, biases = model.unit_mode, [effects.effects for effects in model.effects]
    biases.insert(mode, np.zeros(n_units))
    found = {"mean_": model.level, "biases_": biases}
    if model.components is None:
        return found
    factors = list(model.components.factors)
    factors.insert(mode, np.zeros((n_units, ranks[mode])))
    return {**found, "factors_": factors}


def values_at(
    model: Any,
    coordinates: NDArray[np.intp],
    shape: Sequence[int],
    mean: float,
    biases: Sequence[Floats],
) -> Floats:
    """Values of a model; of rows it does not know, what the other modes' biases say."""
    inside = (coordinates >= 0) & (coordinates < np.array(shape))
    known: Floats = model.predict(np.where(inside, coordinates, 0))
    if inside.all():
        return known
    beyond = ~inside.all(axis=1)
    # In the order of `SharedModel`, which knows the same: to the last bit.
    effects = np.zeros(len(known))
    for mode, bias in enumerate(biases):
        rows = beyond & inside[:, mode]
        effects[rows] += bias[coordinates[rows, mode]]
    known[beyond] = mean + effects[beyond]
    return known


@dataclass(frozen=True, eq=False)
class SharedModel:
    """What was released: a level, and effects and factors of the rows of shared modes."""

    level: float  # mean value of a unit
    noise_variance: float  # of a value about the model of its unit
    unit_mode: int  # mode of the units
    effects: list[SharedEffects]  # one for each other mode
    components: SharedComponents | None = None  # factors of the other modes, if any were found
    # Prior variance of a unit's own level; None is that of `unit_parameters`.
    level_variance: float | None = None

    @property
    def n_parameters(self) -> int:
        """Number of a unit's own parameters."""
        return N_PLAIN + (0 if self.components is None else self.components.n_components)

    def at_entries(self, coordinates: NDArray[np.intp]) -> EntryEffects:
        """Shared effects of the rows of entries."""
        shared = np.delete(coordinates, self.unit_mode, axis=1)
        extended = [_with_unknown_row(effects) for effects in self.effects]
        unknown = [len(effects.effects) for effects in self.effects]
        known = np.where(shared < 0, unknown, np.minimum(shared, unknown))
        if self.components is None:
            return effects_at_entries(extended, known)
        factors = [np.vstack([f, np.zeros(f.shape[1])]) for f in self.components.factors]
        components = replace(self.components, factors=tuple(factors))
        return effects_at_entries(extended, known, components.rows(known))

    def predict(self, coordinates: NDArray[np.intp]) -> Floats:
        """Values of a unit of which nothing is known."""
        return self.level + self.at_entries(coordinates).effects


def _with_unknown_row(of: SharedEffects) -> SharedEffects:
    """Appended for rows beyond the shape: of them the prior is all that is known."""
    return SharedEffects(
        np.append(of.effects, 0.0),
        np.append(of.variances, of.scale),
        np.append(of.popularity, 0.0),
        of.scale,
    )


def shared_model(estimator: Any) -> SharedModel:
    """What a fitted completion says that units share."""
    check_is_fitted(estimator)
    model = estimator._model
    return model if isinstance(model, SharedModel) else estimator._shared
