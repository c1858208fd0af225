"""Parameters of units, computed by the holder of their entries.

A unit is a row of the unit mode; where one value is the unit of privacy, a row of the first mode.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.callers import level_of_caller
from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import refuse_other_columns, refuse_other_row_order, taken
from sktensor_dp.completion.inputs import (
    MUST_BE_NUMBERS,
    as_coordinates,
    checked_values,
    encoded_columns,
    plain_numbers,
    read_coordinates,
    refuse_beyond,
    with_index_of_units,
)
from sktensor_dp.completion.model import SharedModel
from sktensor_dp.completion.row_names import Indices, names_of
from sktensor_dp.data.entries import as_entries
from sktensor_dp.estimator.base import column_attributes
from sktensor_dp.estimator.scoring import warn_of_score
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.tensor.unit_parameters import fold_in_units, predict_units

BEYOND = (
    "Some values are outside of the bounds of the fit, {:g} to {:g}, and were clamped to them: is "
    "it the right column, in the same units?"
)
UNKNOWN = (
    "No entry has names of rows of the fit, so that each unit gets a level alone: are the names "
    "written as in row_names?"
)
NOBODY = (
    "No row of X is of a unit that was folded in, so that all are predicted as for an unknown "
    "unit: are the ids of units written as in fold_in?"
)


@dataclass(frozen=True, eq=False, repr=False)
class UnitParameters:
    """Parameters of units, computed by their holder from their own entries.

    Made by ``fold_in`` of a fitted completion. They are as private as the entries: nothing
    of them was released.

    Attributes
    ----------
    units : ndarray of shape (n_units,)
        Coordinates of the units in increasing order; their ids where rows have names.
    parameters : ndarray of shape (n_units, 3 + q)
        Level, slope on shared effects and slope on popularity, each as a difference from the
        shared model, and weights of its q components.

    Notes
    -----
    **Privacy.** They hold what a person's own ratings say, and ids of persons where rows have
    names. Keep the ratings and fold in again rather than parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateCPCompletion
    >>> X = np.argwhere(np.ones((300, 4)))
    >>> y = 3.0 - X[:, 1] / 2
    >>> model = PrivateCPCompletion(0, bounds=(1, 5), shape=(300, 4), unit_mode=0)
    >>> own = model.set_params(epsilon=8.0).fit(X, y).fold_in([[0, 3], [0, 1]], [1.5, 2.5])
    >>> model.recommend(own, 2, exclude=[[0, 3], [0, 1]]).rows.tolist()
    [[0, 2]]
    """

    units: NDArray[Any]
    parameters: Floats
    _shared: SharedModel
    _bounds: tuple[float, float]
    _indices: Indices | None = None
    _columns: tuple[str, ...] | None = None  # names of the columns of X in fit
    _given_shape: tuple[int, ...] | None = None  # parameter `shape` of the fit

    def __repr__(self) -> str:
        """Return the number of units only: ids and parameters are private."""
        return f"<parameters of {counted(len(self.units), 'unit')}>"

    def predict(self, X: ArrayLike) -> Floats:
        """Predict values at coordinates; units without entries get the shared model's.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates, or names where the model was fitted on names. Rows below 0 are
            unknown and contribute nothing; those beyond a ``shape`` that was given raise.

        Returns
        -------
        ndarray of shape (n,)
            Within the bounds.
        """
        return self._predict(X, warn=True)

    def _predict(self, X: ArrayLike, *, warn: bool) -> Floats:
        """Predicted values (n,); `warn` allows a warning if no row of X is of these units."""
        coordinates, numbers = self._coordinates(X), self._numbers()
        units = coordinates[:, self._shared.unit_mode]
        # The warning tells of private entries, but to their holder alone.
        if warn and len(units) and not np.isin(units, numbers).any():
            warnings.warn(NOBODY, stacklevel=level_of_caller())
        places = np.searchsorted(numbers, units)
        # Units that were not folded in get the appended row of zeros.
        places[np.append(numbers, -1)[places] != units] = len(numbers)
        zeros = np.zeros((1, self._shared.n_parameters))
        parameters = np.append(self.parameters, zeros, axis=0)
        at = self._shared.at_entries(coordinates)
        values = predict_units(parameters, places, at, level=self._shared.level)
        return np.clip(values, *self._bounds)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Coefficient of determination of the predictions; for entries that were not folded in.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates, as for :meth:`predict`.
        y : array-like of shape (n,)
            Values.

        Returns
        -------
        float
            1 at best. Nothing protects it.
        """
        warn_of_score(self)
        predicted = self.predict(X)
        return float(call_unquoted(lambda: r2_score(y, predicted), "y"))  # whose errors may quote y

    def _values(self, rows: Integers, part: slice) -> Floats:
        """Predictions (n_units, n_rows), not clamped, for a `part` of the units.

        Each of `rows`, (n_rows, n_modes), holds coordinates in the other modes.
        """
        shared = self._shared.at_entries(rows)
        of_rows = self._shared.level + shared.effects
        return np.asarray(self.parameters[part] @ shared.design() + of_rows, dtype=np.float64)

    def _coordinates(self, X: ArrayLike) -> NDArray[np.intp]:
        """Coordinates (n, n_modes) as integers, -1 for unknown rows, from numbers or names."""
        refuse_other_columns(X, self._columns)
        if self._indices is None:
            given = plain_numbers(call_unquoted(lambda: np.asarray(X), "X"), "X", MUST_BE_NUMBERS)
        else:
            given = encoded_columns(X, self._indices)
        coordinates = as_coordinates(given)
        if coordinates.shape[1] != len(self._shared.effects) + 1:
            raise ValueError(
                f"X must have {len(self._shared.effects) + 1} columns, got {given.shape[1]}."
            )
        refuse_beyond(coordinates, self._given_shape, "X", but=self._shared.unit_mode)
        return coordinates

    def _numbers(self) -> NDArray[np.intp]:
        """Coordinates of the units in the unit mode, of shape (n_units,)."""
        index = None if self._indices is None else self._indices[self._shared.unit_mode]
        return self.units if index is None else index.encode(self.units)


class FoldInMixin:
    """Mixin with `fold_in`, which fits units' parameters to their own entries."""

    shape: Sequence[int] | None
    unit_mode: int | None
    predict: Callable[[ArrayLike], Floats]
    _coordinates: Callable[[ArrayLike], NDArray[np.intp]]
    shape_: tuple[int, ...]
    bounds_: tuple[float, float]
    _indices: Indices | None = None  # `row_names` of the fit
    _shared: SharedModel  # model that `fold_in` starts from

    def fold_in(self, X: ArrayLike, y: ArrayLike) -> UnitParameters:
        """Fit the parameters of units to their own entries, where the entries are held.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates of the units' entries, or names by ``row_names``; the units may be new
            ones. Rows of other modes below 0, and names that are no row of theirs, are unknown:
            such entries tell the level of their unit alone. Numbers beyond a ``shape`` that was
            given raise an error.
        y : array-like of shape (n,)
            Values; those outside of the bounds are clamped to them, with a warning.

        Returns
        -------
        UnitParameters
            It predicts, and can be passed to :meth:`recommend` and :meth:`predict_rows`. As
            private as the entries; the estimator keeps nothing of it.

        Raises
        ------
        ValueError
            If entries are not of the right kind.
        """
        return self._fold_in(X, y, warn=True)

    def _fold_in(self, X: Any, y: Any, *, warn: bool) -> UnitParameters:
        """Parameters of the units that entries have; `warn` allows warnings of names and values."""
        check_is_fitted(self)
        shared, indices = self._shared, self._indices
        # Refuse before ids are read from a wrong column.
        refuse_other_columns(X, self._columns)
        refuse_other_row_order(X, y, "y")
        if indices is not None:
            indices = with_index_of_units(indices, shared.unit_mode, X)
            if indices[shared.unit_mode] is None:
                raise ValueError("X and y hold no entries; there is no unit to fold in.")
        given = read_coordinates(self, X, indices)
        values = checked_values(self, y)
        # Entries of unknown rows are kept: they show a unit's own level.
        coordinates = as_coordinates(given)
        _, values, _ = as_entries(np.maximum(coordinates, 0), values)  # for its checks
        if (coordinates[:, shared.unit_mode] < 0).any():
            raise ValueError(
                f"X must have coordinates >= 0 of units, in column {shared.unit_mode}; some are "
                "negative."
            )
        refuse_beyond(coordinates, self._given_shape, "X", but=shared.unit_mode)
        units, places = np.unique(coordinates[:, shared.unit_mode], return_inverse=True)
        clamped = np.clip(values, *self.bounds_)
        # Both warnings tell of private entries, but to their holder alone.
        if warn and not np.array_equal(clamped, values):
            warnings.warn(BEYOND.format(*self.bounds_), stacklevel=level_of_caller())
        known = (np.delete(coordinates, shared.unit_mode, axis=1) >= 0).all(axis=1)
        if warn and indices is not None and not known.any():
            warnings.warn(UNKNOWN, stacklevel=level_of_caller())
        parameters = fold_in_units(
            places, clamped, shared.at_entries(coordinates),
            n_units=len(units), level=shared.level, noise_variance=shared.noise_variance,
            level_variance=shared.level_variance,
        )  # fmt: skip
        ids = names_of(units, indices, shared.unit_mode)
        return UnitParameters(
            ids, parameters, shared, self.bounds_, indices, self._columns, self._given_shape
        )

    def _predict_by_others(self, X: Any, y: Any) -> Floats:
        """Predict each value (n,) from its unit's values in the other four fifths of cells.

        A private score predicts so, as values must not predict themselves.
        """
        cells = np.delete(self._coordinates(X), self.unit_mode or 0, axis=1).astype(np.uint64)
        values = checked_values(self, y)
        # The fifth of a cell is public: a hash of its coordinates (Knuth, multiplicative), whose
        # high bits mix best.
        hashes = np.zeros(len(cells), dtype=np.uint64)
        for column in cells.T:
            hashes = (hashes + column + np.uint64(1)) * np.uint64(2654435761)
        fifths = (hashes >> np.uint64(16)) % np.uint64(5)
        predicted = np.empty(len(cells))
        for fifth in np.unique(fifths):
            hidden, given = np.flatnonzero(fifths == fifth), np.flatnonzero(fifths != fifth)
            held_out = taken(X, hidden)
            # Whoever computes a private score need not hold the entries: no warning may tell of
            # them.
            if len(given):
                own = self._fold_in(taken(X, given), values[given], warn=False)
                predicted[hidden] = own._predict(held_out, warn=False)
            else:
                predicted[hidden] = self.predict(held_out)
        return predicted

    @property
    def _columns(self) -> tuple[str, ...] | None:
        """Names of the columns of coordinates in the fit; None if they had none."""
        names = column_attributes(self).get("feature_names_in_")
        return None if names is None else tuple(names)

    @property
    def _given_shape(self) -> tuple[int, ...] | None:
        """``shape_``; None if the parameter ``shape`` is None."""
        return None if self.shape is None else self.shape_
