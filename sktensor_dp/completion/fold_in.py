"""Own parameters of units, computed by the holder of their entries, and recommendations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sktensor_dp.completion.coordinates import columns_to_numbers, coordinates_or_unknown
from sktensor_dp.completion.model import SharedModel
from sktensor_dp.completion.row_names import Indices
from sktensor_dp.estimator.parameters import Number, check_sizes, shown
from sktensor_dp.queries.error_sanitising import read
from sktensor_dp.tensor.arrays import Floats, Integers, TopRows, top_rows_by_parts
from sktensor_dp.tensor.unit_parameters import predict_units

# Values that are ranked at a time.
BLOCK = 2**20


@dataclass(frozen=True)
class Candidates:
    """Rows of one mode to be ranked for a unit, with the rows of further modes fixed."""

    mode: int
    unit_mode: int
    n_rows: int
    others: tuple[int, ...]
    bounds: tuple[float, float]
    indices: Indices | None

    @classmethod
    def of(
        cls,
        lengths: Sequence[int],
        unit_mode: int,
        mode: int | None,
        context: Mapping[int, Any] | None,
        bounds: tuple[float, float],
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
        return cls(chosen, unit_mode, lengths[chosen], tuple(others), bounds, indices)

    def coordinates(self, unit: int, rows: Any) -> Integers:
        """Coordinates of candidates for a unit, of shape (n, n_modes)."""
        found = np.tile(np.array(self.others, dtype=np.intp), (len(rows), 1))
        found[:, self.mode], found[:, self.unit_mode] = rows, unit
        return found

    def excluded(
        self, exclude: Any, units: Integers, read_entries: Callable[[Any], Integers]
    ) -> Integers | None:
        """Coordinates of the entries to exclude: entries, or rows of the only one of `units`."""
        if exclude is None or np.ndim(exclude) != 1:
            return None if exclude is None else read_entries(exclude)
        if len(units) != 1:
            raise ValueError(
                "exclude is a list of rows, which is for one unit; for several units pass entries "
                "of shape (n_entries, n_modes), such as X of fold_in."
            )
        listed = [row_number(row, "exclude", self.mode, self.indices) for row in exclude]
        return self.coordinates(units[0], listed)

    def best(
        self, n: int, units: Integers, values: Callable[[slice], Floats], entries: Integers | None
    ) -> TopRows:
        """Rank the candidates of each unit, without those in `entries`; rows by name.
        `values` are predictions for some of `units`, of shape (n_units, n_rows).
        """
        found = top_rows_by_parts(
            len(units), self.n_rows, n, values,
            lambda part: None if entries is None else self._seen_by(units[part], entries),
            block=BLOCK,
        )  # fmt: skip
        names = names_of(found.rows, self.indices, self.mode)
        return TopRows(names, np.clip(found.values, *self.bounds))

    def _seen_by(self, units: Integers, entries: Integers) -> NDArray[np.bool_]:
        """Mask (n_units, n_rows) of the candidates that entries contain; a unit may come twice."""
        distinct, again = np.unique(units, return_inverse=True)
        rows, places = entries[:, self.mode], np.searchsorted(distinct, entries[:, self.unit_mode])
        known = np.append(distinct, -2)[places] == entries[:, self.unit_mode]
        known &= (rows >= 0) & (rows < self.n_rows)
        found = np.zeros((len(distinct), self.n_rows), dtype=bool)
        found[places[known], rows[known]] = True
        return found[again]


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


def names_of(rows: NDArray[Any], indices: Indices | None, mode: int) -> NDArray[Any]:
    """Names of rows of a mode, or their numbers where they have none."""
    index = None if indices is None else indices[mode]
    return rows if index is None else index.decode(rows)


@dataclass(frozen=True, eq=False, repr=False)
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
    >>> own.recommend(2, exclude=[[0, 3], [0, 1]]).rows.tolist()
    [[0, 2]]
    """

    units: NDArray[Any]
    parameters: Floats
    _shared: SharedModel
    _bounds: tuple[float, float]
    _indices: Indices | None = None

    def __repr__(self) -> str:
        """Return their number alone: ids and parameters are private."""
        return f"<parameters of {len(self.units):,} units>"

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
        # A row of zeros stands for units without entries.
        own = np.append(self.parameters, np.zeros((1, self._shared.n_parameters)), axis=0)
        values = predict_units(
            own,
            self._places(coordinates),
            self._shared.at_entries(coordinates),
            level=self._shared.level,
        )
        return np.clip(values, *self._bounds)

    def predict_rows(
        self, mode: int | None = None, *, context: Mapping[int, Any] | None = None
    ) -> Floats:
        """Predict the values of all rows of a mode, for every unit.

        Parameters
        ----------
        mode : int, optional
            Mode of the rows; by default the first that is not of units.
        context : mapping of int to row, optional
            The row of each further mode, such as a week; needed where there are any.

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
        return np.clip(self._values(candidates, slice(None)), *self._bounds)

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
        n, exclude, mode, context
            As for :meth:`~sktensor_dp.PrivateCPCompletion.recommend`.

        Returns
        -------
        TopRows
            ``rows`` and ``values``, each of shape (n_units, n), as there.

        Raises
        ------
        ValueError
            As :meth:`predict_rows`, or if `n` is no int >= 1.
        """
        check_sizes(n=n)
        candidates, units = self._candidates(mode, context), self._numbers()
        entries = candidates.excluded(exclude, units, self._coordinates)
        return candidates.best(int(n), units, lambda part: self._values(candidates, part), entries)

    def _candidates(self, mode: int | None, context: Mapping[int, Any] | None) -> Candidates:
        """Candidates of the arguments of `recommend`."""
        return Candidates.of(
            _lengths(self._shared), self._shared.unit_mode, mode, context, self._bounds,
            self._indices,
        )  # fmt: skip

    def _values(self, candidates: Candidates, part: slice) -> Floats:
        """Predictions, not clamped, for all candidates of some units: shape (n_units, n_rows)."""
        # What units share at a row does not depend on the unit: a product does for all.
        rows = candidates.coordinates(0, np.arange(candidates.n_rows))
        shared = self._shared.at_entries(rows)
        plain = self._shared.level + shared.effects
        return np.asarray(self.parameters[part] @ shared.design() + plain, dtype=np.float64)

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


def _lengths(shared: SharedModel) -> list[int]:
    """Lengths of all modes, with 0 for the mode of units."""
    lengths = [len(effects.effects) for effects in shared.effects]
    lengths.insert(shared.unit_mode, 0)
    return lengths
