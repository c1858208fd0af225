"""Own parameters of units, computed by the holder of their entries, and recommendations."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.completion.coordinates import columns_to_numbers, coordinates_or_unknown
from sktensor_dp.completion.model import SHARED_LAYOUT, SharedModel, check_bounds, check_shared
from sktensor_dp.completion.row_names import Indices, RowIndex
from sktensor_dp.estimator.parameters import Number, check_sizes, shown
from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import made
from sktensor_dp.model_files.saving import load_record, save_record
from sktensor_dp.queries.error_sanitising import read
from sktensor_dp.tensor.arrays import Floats, Integers, TopRows, top_rows
from sktensor_dp.tensor.row_bounds import Bounds, RowBounds, in_scale, in_units, limits_at
from sktensor_dp.tensor.unit_parameters import fold_in_units, predict_units


@dataclass(frozen=True)
class Candidates:
    """Rows of one mode to be ranked for a unit, with the rows of further modes fixed."""

    mode: int
    unit_mode: int
    n_rows: int
    others: tuple[int, ...]

    @classmethod
    def of(
        cls,
        lengths: Sequence[int],
        unit_mode: int,
        mode: int | None,
        context: Mapping[int, Any] | None,
        indices: Indices | None,
    ) -> Self:
        """Candidates in `mode` (None: the first without units), after checking the arguments.

        `lengths` are those of the modes; `context` gives the row of each further mode, by `indices`
        if rows have names.
        """
        free = [m for m in range(len(lengths)) if m != unit_mode]
        chosen = free[0] if mode is None else checked_mode(mode, len(lengths))
        if chosen not in free:
            raise ValueError(f"mode must be one of {free}, those without units; got {mode!r}.")
        rest = [m for m in free if m != chosen]
        given = dict(context or {})
        if set(given) != set(rest):
            raise ValueError(
                f"context must give a row of each further mode, {rest}; it gives {list(given)}."
            )
        others = [0] * len(lengths)
        for m in rest:
            others[m] = row_number(given[m], f"context[{m}]", m, indices)
        return cls(chosen, unit_mode, lengths[chosen], tuple(others))

    def rows(self, unit: int) -> Integers:
        """Coordinates of all candidates for a unit, of shape (n_rows, n_modes)."""
        coordinates = np.tile(np.array(self.others, dtype=np.intp), (self.n_rows, 1))
        coordinates[:, self.mode] = np.arange(self.n_rows)
        coordinates[:, self.unit_mode] = unit
        return coordinates

    def limits(self, bounds: Bounds, units: Integers) -> tuple[Any, Any]:
        """Low and high bounds of all candidates, to be broadcast to (n_units, n_rows)."""
        if not isinstance(bounds, RowBounds):
            return bounds
        if bounds.mode == self.unit_mode:
            low, high = bounds.limits(units)
            return low[:, None], high[:, None]
        if bounds.mode == self.mode:
            return bounds.low, bounds.high
        return bounds.limits(self.others[bounds.mode])

    def limits_of(self, bounds: Bounds, units: Integers, rows: NDArray[Any]) -> tuple[Any, Any]:
        """Low and high bounds at some candidates of each unit, `rows` of shape (n_units, n).
        Rows below 0 fill up; their bounds do not matter.
        """
        low, high = self.limits(bounds, units)
        if not isinstance(bounds, RowBounds):
            return low, high
        whole = len(rows), self.n_rows
        places = np.maximum(rows, 0)
        lows, highs = (np.broadcast_to(end, whole) for end in (low, high))
        return np.take_along_axis(lows, places, 1), np.take_along_axis(highs, places, 1)

    def entries(self, rows: Any, units: Integers, indices: Indices | None) -> Integers:
        """Coordinates (n_rows, n_modes) of rows by number or name, for the only one of `units`."""
        if len(units) != 1:
            raise ValueError(
                "exclude is a list of rows, which is for one unit; for several units pass entries "
                "of shape (n_entries, n_modes), such as X of fold_in."
            )
        listed = [row_number(row, "exclude", self.mode, indices) for row in rows]
        coordinates = np.tile(self.rows(units[0])[:1], (len(listed), 1))
        coordinates[:, self.mode] = listed
        return coordinates

    def excluded(self, places: Integers, coordinates: Integers, n_units: int) -> NDArray[np.bool_]:
        """Mask (n_units, n_rows) of the candidates that entries contain, by unit.

        `places` has the index in 0 to n_units - 1 of each entry's unit; entries of others are
        ignored.
        """
        found = np.zeros((n_units, self.n_rows), dtype=bool)
        rows = coordinates[:, self.mode]
        inside = (places >= 0) & (places < n_units) & (rows >= 0) & (rows < self.n_rows)
        found[places[inside], rows[inside]] = True
        return found

    def seen_by(self, places: Integers, coordinates: Integers) -> NDArray[np.bool_]:
        """Mask (n_asked, n_rows) of the candidates that entries contain, for the units `places`.
        A unit may be asked for twice.
        """
        distinct, again = np.unique(places, return_inverse=True)
        units = coordinates[:, self.unit_mode]
        spots = np.searchsorted(distinct, units)
        mine = np.append(distinct, -2)[spots] == units
        return self.excluded(np.where(mine, spots, -1), coordinates, len(distinct))[again]


def checked_mode(mode: Any, n_modes: int) -> int:
    """Mode as an int; ValueError unless it is one of `n_modes`."""
    if not Number(0, n_modes - 1, integer=True).accepts(mode):
        raise ValueError(f"mode must be an int in [0, {n_modes - 1}], got {shown(mode)}.")
    return int(mode)


def row_number(row: Any, what: str, mode: int, indices: Indices | None) -> int:
    """Index of a row given by number or name; -1 for a name that is no row.
    `what` names the argument in errors.
    """
    if indices is not None and (index := indices[mode]) is not None:
        return int(index.encode([row])[0])
    if not Number(-1, integer=True).accepts(row):
        raise ValueError(f"{what} must be the number of a row, got {shown(row)}.")
    return int(row)


def named_rows(
    found: TopRows, limits: tuple[Any, Any], indices: Indices | None, mode: int
) -> TopRows:
    """Copy of ranked rows of `mode` with their names in `indices` for their numbers (kept if None),
    and with values clamped to `limits`.
    """
    values = np.clip(found.values, *limits)
    index = None if indices is None else indices[mode]
    return TopRows(found.rows if index is None else index.decode(found.rows), values)


@dataclass(frozen=True, eq=False)
class UnitParameters:
    """Parameters of units, computed by their holder from their own entries.

    Made by ``fold_in`` of a fitted completion. They are as private as the entries: nothing
    of them was released.

    Attributes
    ----------
    units : ndarray of shape (n_units,)
        Indices of the units, in order; their ids where rows have names.
    parameters : ndarray of shape (n_units, 3 + q)
        Level, slope on shared effects, slope on popularity, and weights of components.

    Notes
    -----
    **Privacy.** Files written by :meth:`save` are as private as the entries, too: they hold
    what a person's own ratings say, and ids of persons where rows have names.

    Examples
    --------
    >>> import numpy as np
    >>> from sktensor_dp import PrivateCPCompletion
    >>> X = np.argwhere(np.ones((300, 4)))
    >>> y = 3.0 - X[:, 1] / 2
    >>> model = PrivateCPCompletion(0, bounds=(1, 5), shape=(300, 4), unit_mode=0)
    >>> own = model.set_params(epsilon=8.0).fit(X, y).fold_in([[0, 3], [0, 1]], [1.5, 2.5])
    >>> own.recommend(2, exclude=[[0, 3], [0, 1]]).rows.tolist()
    [[0, 2]]
    """

    units: NDArray[Any]
    parameters: Floats
    _shared: SharedModel
    _bounds: Bounds
    _indices: Indices | None = None

    def predict(self, X: ArrayLike) -> Floats:
        """Predict values at coordinates; units without entries get the shared model's.

        Parameters
        ----------
        X : array-like of int of shape (n, n_modes)
            Coordinates, or names where the model was fitted on names. Rows below 0 are
            unknown and contribute nothing.

        Returns
        -------
        ndarray of shape (n,)
            Within the bounds.
        """
        coordinates = self._coordinates(X)
        limits = limits_at(self._bounds, coordinates)
        # A row of zeros stands for units without entries.
        own = np.append(self.parameters, np.zeros((1, self._shared.n_parameters)), axis=0)
        values = predict_units(
            own,
            self._places(coordinates),
            self._shared.at_entries(coordinates),
            level=self._shared.level,
        )
        return np.clip(in_units(self._bounds, values, limits), *limits)

    def predict_rows(
        self, mode: int | None = None, *, context: Mapping[int, Any] | None = None
    ) -> Floats:
        """Predict the values of all rows of a mode, for every unit.

        Parameters
        ----------
        mode : int, optional
            Mode of the rows; by default the first that is not of units.
        context : mapping of int to row, optional
            The row of each further mode, such as a day; needed where there are any.

        Returns
        -------
        ndarray of shape (n_units, n_rows)
            Within the bounds, units in the order of ``units``.

        Raises
        ------
        ValueError
            If `mode` does not exist or is that of units, or `context` lacks a mode.
        """
        candidates = self._candidates(mode, context)
        return np.clip(self._values(candidates), *candidates.limits(self._bounds, self._numbers()))

    def recommend(
        self,
        n: int = 10,
        *,
        exclude: ArrayLike | None = None,
        mode: int | None = None,
        context: Mapping[int, Any] | None = None,
    ) -> TopRows:
        """Find the rows with the largest predicted values, for every unit.

        Parameters
        ----------
        n : int, default=10
            Number of rows for each unit.
        exclude : array-like of shape (n_entries, n_modes) or (n_rows,), optional
            Entries whose rows are not recommended to their unit, as a rule those that were
            folded in: ``X`` of ``fold_in`` itself. For one unit, a list of rows by number or
            name will do.
        mode, context
            As for :meth:`predict_rows`.

        Returns
        -------
        TopRows
            ``rows`` and ``values``, each of shape (n_units, n), best first; n counts no more
            than all rows. Rows are ranked by values before clamping to the bounds,
            equal ones by number. -1 (or None) and NaN stand at the end where fewer are left.

        Raises
        ------
        ValueError
            As :meth:`predict_rows`, or if `n` is no int >= 1.
        """
        check_sizes(n=n)
        candidates = self._candidates(mode, context)
        values = self._values(candidates)
        excluded = None
        if exclude is not None:
            listed = np.ndim(exclude) == 1
            given = (
                candidates.entries(exclude, self._numbers(), self._indices)
                if listed
                else self._coordinates(exclude)
            )
            excluded = candidates.excluded(self._places(given), given, len(self.units))
        found = top_rows(values, int(n), excluded)
        limits = candidates.limits_of(self._bounds, self._numbers(), found.rows)
        return named_rows(found, limits, self._indices, candidates.mode)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters to a file, together with the released shared model.

        Parameters
        ----------
        path : str or path-like
            Where to write; in the safetensors format, without code.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        units = self._numbers().astype(np.int64)
        state = SavedUnits(units, self.parameters, self._shared, self._bounds, self._indices)
        save_record(path, type(self).__name__, state)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "UnitParameters":
        """Read parameters that :meth:`save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        UnitParameters
            The parameters; they predict and recommend without the estimator.

        Raises
        ------
        ModelFileError
            If the file is damaged or holds something else.
        OSError
            If it cannot be read.
        """
        return load_record(path, cls.__name__, SavedUnits).as_parameters()

    def _candidates(self, mode: int | None, context: Mapping[int, Any] | None) -> Candidates:
        """Candidates of the arguments of `recommend`."""
        unit_mode = self._shared.unit_mode
        return Candidates.of(_lengths(self._shared), unit_mode, mode, context, self._indices)

    def _values(self, candidates: Candidates) -> Floats:
        """Predictions, not clamped, for all candidates of all units: shape (n_units, n_rows)."""
        # What units share at a row does not depend on the unit: a product does for all.
        shared = self._shared.at_entries(candidates.rows(0))
        plain = self._shared.level + shared.effects
        found = np.asarray(self.parameters @ shared.design() + plain, dtype=np.float64)
        return in_units(self._bounds, found, candidates.limits(self._bounds, self._numbers()))

    def _coordinates(self, X: ArrayLike) -> NDArray[np.intp]:
        """Coordinates as integers, with -1 for unknown rows, from numbers or names."""
        if self._indices is None:
            given = read(lambda: np.asarray(X), "X")
        else:
            given = columns_to_numbers(X, self._indices)
        coordinates = coordinates_or_unknown(given)
        if coordinates.shape[1] != len(self._shared.effects) + 1:
            raise ValueError(
                f"X must have {len(self._shared.effects) + 1} columns, got {given.shape[1]}."
            )
        return coordinates

    def _numbers(self) -> NDArray[np.intp]:
        """Coordinates of the units in the unit mode, of shape (n_units,)."""
        index = None if self._indices is None else self._indices[self._shared.unit_mode]
        return self.units if index is None else index.encode(self.units)

    def _places(self, coordinates: NDArray[np.intp]) -> NDArray[np.intp]:
        """Index in `units` of each entry's unit; n_units for units without parameters."""
        units, numbers = coordinates[:, self._shared.unit_mode], self._numbers()
        places = np.searchsorted(numbers, units)
        known = np.append(numbers, -1)[places] == units
        return np.where(known, places, len(numbers)).astype(np.intp)


def fold_in(
    shared: SharedModel,
    coordinates: NDArray[np.intp],
    values: Floats,
    bounds: Bounds,
    indices: Indices | None = None,
) -> UnitParameters:
    """Fit the parameters of the units in `coordinates` to their entries and the released model."""
    units, places = np.unique(coordinates[:, shared.unit_mode], return_inverse=True)
    parameters = fold_in_units(
        places,
        in_scale(bounds, values, coordinates),
        shared.at_entries(coordinates),
        n_units=len(units),
        level=shared.level,
        noise_variance=shared.noise_variance,
        level_variance=shared.level_variance,
    )
    ids: NDArray[Any] = units
    if indices is not None and (index := indices[shared.unit_mode]) is not None:
        ids = index.decode(units)
    return UnitParameters(ids, parameters, shared, bounds, indices)


def _lengths(shared: SharedModel) -> list[int]:
    """Lengths of all modes, with 0 for the mode of units."""
    lengths = [len(effects.effects) for effects in shared.effects]
    lengths.insert(shared.unit_mode, 0)
    return lengths


@dataclass
class SavedUnits:
    """Content of a file of unit parameters; units are coordinates, not names."""

    layout: ClassVar[Mapping[str, str]] = {**SHARED_LAYOUT, "units": "u+", "parameters": "u?"}

    units: NDArray[np.int64]
    parameters: Floats
    shared: SharedModel
    bounds: tuple[float, float] | RowBounds
    indices: tuple[RowIndex | None, ...] | None

    def as_parameters(self) -> UnitParameters:
        """Parameters of units, after checking that the file's parts agree; else ModelFileError."""
        units, shape, mode = self.units, _lengths(self.shared), self.shared.unit_mode
        require(mode < len(shape), "unit_mode must be a mode")
        # How many units there are is known where they have bounds or names alone.
        shape[mode] = max([*units.tolist(), 0]) + 1
        check_shared(self.shared, tuple(shape))
        index = None
        if self.indices is not None:
            require(len(self.indices) == len(shape), "there must be names for each mode")
            index = self.indices[mode]
            for place, (names, length) in enumerate(zip(self.indices, shape, strict=True)):
                fits = names is None or len(names) == length or place == mode
                require(fits, "names must be as many as rows")
        if isinstance(self.bounds, RowBounds) and self.bounds.mode == mode:
            require(len(self.bounds.low) >= shape[mode], "bounds must be as many as rows")
            shape[mode] = len(self.bounds.low)
        made(lambda: check_bounds(self.bounds, tuple(shape)), "bounds")
        fits = self.parameters.shape[1] == self.shared.n_parameters
        require(fits, "parameters must be those of the shared model")
        order = (np.diff(units) > 0).all() and (index is None or (units < len(index)).all())
        require(order, "units must be in order")
        ids: NDArray[Any] = units if index is None else index.decode(units)
        return UnitParameters(ids, self.parameters, self.shared, self.bounds, self.indices)
