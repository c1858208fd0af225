"""What a fitted completion says of coordinates, from released arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.completion.inputs import coordinates_or_unknown
from sktensor_dp.statistics.reading import read
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects
from sktensor_dp.tensor.tucker_completion import TuckerCompletion
from sktensor_dp.tensor.unit_parameters import (
    N_PLAIN,
    EntryEffects,
    effects_at_entries,
    fold_in_units,
    predict_units,
)

__all__ = ["SharedModel", "UnitParameters", "attributes_of", "fold_in", "shared_model", "values_at"]

Floats = NDArray[np.float64]


def attributes_of(model: CPCompletion | TuckerCompletion) -> dict[str, Any]:
    """Fitted attributes of an estimator whose model was released."""
    last = "weights" if isinstance(model, CPCompletion) else "core"
    return {f"{name}_": getattr(model, name) for name in ("mean", "biases", "factors", last)}


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
    known[beyond] = mean
    for mode, bias in enumerate(biases):
        rows = beyond & inside[:, mode]
        known[rows] += bias[coordinates[rows, mode]]
    return known


@dataclass(frozen=True, eq=False)
class SharedModel:
    """What was released: a level, and effects and factors of the rows of shared modes.

    Attributes
    ----------
    level : float
        Mean value of a unit.
    noise_variance : float
        Of a value about the model of its unit.
    unit_mode : int
        Mode of the units.
    effects : list of SharedEffects
        One for each other mode.
    components : SharedComponents or None
        Factors of the other modes, if any were found.
    level_variance : float or None
        Prior variance of a unit's own level; None is that of `unit_parameters`.
    """

    level: float
    noise_variance: float
    unit_mode: int
    effects: list[SharedEffects]
    components: SharedComponents | None = None
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


@dataclass(frozen=True, eq=False)
class UnitParameters:
    """Parameters of units, computed by their holder from their own entries.

    They are as private as the entries: nothing of them was released.

    Attributes
    ----------
    units : ndarray of shape (n_units,)
        Indices of the units, in order.
    parameters : ndarray of shape (n_units, 3 + q)
        Level, slope on shared effects, slope on popularity, and weights of components.
    """

    units: NDArray[np.intp]
    parameters: Floats
    _shared: SharedModel
    _bounds: tuple[float, float]

    def predict(self, X: ArrayLike) -> Floats:
        """Values at coordinates; units without entries get what is shared.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates; those below 0 are of rows that nothing is known of.

        Returns
        -------
        ndarray of shape (n,)
            Within the bounds.
        """
        given = read(lambda: np.asarray(X), "X")
        coordinates = coordinates_or_unknown(given)
        if coordinates.shape[1] != len(self._shared.effects) + 1:
            raise ValueError(
                f"X must have {len(self._shared.effects) + 1} columns, got {given.shape[1]}."
            )
        units = coordinates[:, self._shared.unit_mode]
        # A row of zeros stands for units without entries.
        places = np.searchsorted(self.units, units)
        known = np.append(self.units, -1)[places] == units
        own = np.append(self.parameters, np.zeros((1, self._shared.n_parameters)), axis=0)
        values = predict_units(
            own,
            np.where(known, places, len(self.units)),
            self._shared.at_entries(coordinates),
            level=self._shared.level,
        )
        return np.clip(values, *self._bounds)


def shared_model(estimator: Any) -> SharedModel:
    """What a fitted completion says that units share, or AttributeError."""
    check_is_fitted(estimator)
    if isinstance(estimator._model, SharedModel):
        return estimator._model
    shared = getattr(estimator, "_shared", None)
    if shared is None:
        raise AttributeError(
            "The model has no rows of unit_mode to fold in: it was saved by an earlier version, or "
            "unit_mode was no mode of the tensor; fit it again."
        )
    return shared


def fold_in(
    shared: SharedModel, coordinates: NDArray[np.intp], values: Floats, bounds: Sequence[float]
) -> UnitParameters:
    """Fit the parameters of units to their own entries and what was released."""
    units, places = np.unique(coordinates[:, shared.unit_mode], return_inverse=True)
    low, high = bounds
    parameters = fold_in_units(
        places,
        np.clip(values, low, high),
        shared.at_entries(coordinates),
        n_units=len(units),
        level=shared.level,
        noise_variance=shared.noise_variance,
        level_variance=shared.level_variance,
    )
    return UnitParameters(units, parameters, shared, (float(low), float(high)))
