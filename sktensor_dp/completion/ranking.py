"""Which rows may be recommended, and under what names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.completion.named_rows import Indices
from sktensor_dp.estimator.parameters import Number, shown
from sktensor_dp.tensor.arrays import Integers, TopRows
from sktensor_dp.tensor.row_bounds import Bounds, RowBounds


@dataclass(frozen=True)
class Candidates:
    """All rows of one mode, at one row of each mode that is neither this one nor of units.

    Attributes
    ----------
    mode, unit_mode : int
        The mode of the candidates, and that of units.
    n_rows : int
        How many there are.
    others : tuple of n_modes int
        Rows of the other modes.
    """

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
        """Check what was asked for against public lengths and names."""
        free = [m for m in range(len(lengths)) if m != unit_mode]
        chosen = free[0] if mode is None else checked_mode(mode, len(lengths))
        if chosen not in free:
            raise ValueError(f"mode must be one of {free}, those without units; got {mode!r}.")
        rest = [m for m in free if m != chosen]
        given = dict(context or {})
        if set(given) != set(rest):
            raise ValueError(
                f"context must give a row of each further mode, {rest}; it gives {sorted(given)}."
            )
        others = [0] * len(lengths)
        for m in rest:
            others[m] = row_number(given[m], f"context[{m}]", m, indices)
        return cls(chosen, unit_mode, lengths[chosen], tuple(others))

    def rows(self, unit: int) -> Integers:
        """Coordinates of all candidates, of a unit."""
        coordinates = np.tile(np.array(self.others, dtype=np.intp), (self.n_rows, 1))
        coordinates[:, self.mode] = np.arange(self.n_rows)
        coordinates[:, self.unit_mode] = unit
        return coordinates

    def limits(self, bounds: Bounds, units: Integers) -> tuple[Any, Any]:
        """Low and high ends, to be broadcast to (n_units, n_rows)."""
        if not isinstance(bounds, RowBounds):
            return bounds
        if bounds.mode == self.unit_mode:
            low, high = bounds.limits(units)
            return low[:, None], high[:, None]
        if bounds.mode == self.mode:
            return bounds.low, bounds.high
        return bounds.limits(self.others[bounds.mode])

    def limits_of(self, bounds: Bounds, units: Integers, rows: NDArray[Any]) -> tuple[Any, Any]:
        """The same at some rows of each unit, (n_units, n); those below 0 are none."""
        low, high = self.limits(bounds, units)
        if not isinstance(bounds, RowBounds):
            return low, high
        whole = len(rows), self.n_rows
        places = np.maximum(rows, 0)
        lows, highs = (np.broadcast_to(end, whole) for end in (low, high))
        return np.take_along_axis(lows, places, 1), np.take_along_axis(highs, places, 1)

    def excluded(self, places: Integers, coordinates: Integers, n_units: int) -> NDArray[np.bool_]:
        """Which rows entries are in, by the places of their units; other units do not count."""
        found = np.zeros((n_units, self.n_rows), dtype=bool)
        rows = coordinates[:, self.mode]
        inside = (places >= 0) & (places < n_units) & (rows >= 0) & (rows < self.n_rows)
        found[places[inside], rows[inside]] = True
        return found

    def seen_by(self, places: Integers, coordinates: Integers) -> NDArray[np.bool_]:
        """The same for units some of which may be asked for twice."""
        distinct, again = np.unique(places, return_inverse=True)
        units = coordinates[:, self.unit_mode]
        spots = np.searchsorted(distinct, units)
        mine = np.append(distinct, -2)[spots] == units
        return self.excluded(np.where(mine, spots, -1), coordinates, len(distinct))[again]


def checked_mode(mode: Any, n_modes: int) -> int:
    """A mode by its number."""
    if not Number(0, n_modes - 1, integer=True).accepts(mode):
        raise ValueError(f"mode must be an int in [0, {n_modes - 1}], got {shown(mode)}.")
    return int(mode)


def row_number(row: Any, what: str, mode: int, indices: Indices | None) -> int:
    """A row by its number or name; -1 for a name that is no row."""
    if indices is not None and (index := indices[mode]) is not None:
        return int(index.encode([row])[0])
    if not Number(-1, integer=True).accepts(row):
        raise ValueError(f"{what} must be the number of a row, got {shown(row)}.")
    return int(row)


def named_rows(
    found: TopRows, limits: tuple[Any, Any], indices: Indices | None, mode: int
) -> TopRows:
    """Names in the place of numbers, and values within bounds."""
    values = np.clip(found.values, *limits)
    index = None if indices is None else indices[mode]
    return TopRows(found.rows if index is None else index.decode(found.rows), values)
