"""Neighbouring tensors on which a completion gives away the most."""

from collections.abc import Sequence

import numpy as np

from sktensor_dp.completion.row_names import Indices, names_at
from sktensor_dp.estimator.base import Neighbours
from sktensor_dp.tensor.row_bounds import Bounds, limits_at


def worst_neighbours(
    bounds: Bounds | None,
    shape: Sequence[int] | None,
    unit_mode: int | None,
    indices: Indices | None = None,
) -> Neighbours:
    """Values at the two bounds: of one entry, or of one unit of a mode."""
    if bounds is None:
        raise ValueError("bounds must be given: values are made of both.")
    if shape is None and indices is not None:
        lengths = [0 if index is None else len(index) for index in indices]
        shape = lengths if unit_mode is None or all(lengths) else None
    if unit_mode is None:
        return _worst_entry(bounds, 2 if shape is None else len(shape), indices)
    return _worst_slice(bounds, shape, unit_mode, indices)


def _worst_entry(bounds: Bounds, n_modes: int, indices: Indices | None) -> Neighbours:
    """One entry, from the lower bound to the upper one."""
    place = np.zeros((1, n_modes), dtype=np.intp)
    ends = [np.full(1, end, dtype=np.float64) for end in limits_at(bounds, place)]
    entry = names_at(place, indices)
    return (entry, ends[0]), (entry, ends[1]), lambda fitted: float(fitted.predict(entry)[0])


def _worst_slice(
    bounds: Bounds,
    shape: Sequence[int] | None,
    unit_mode: int,
    indices: Indices | None,
) -> Neighbours:
    """Units at the middle; one rates two rows as far apart as it may, and the other way round."""
    shared = 0 if unit_mode else 1
    if shape is None or shape[shared] < 2:
        raise ValueError(
            f"shape must be given, with two rows or more in mode {shared}; got {shape!r}."
        )
    number = shape[unit_mode]
    entries = np.zeros((2 * number, len(shape)), dtype=np.intp)
    entries[:, unit_mode] = np.repeat(np.arange(number), 2)
    entries[:, shared] = np.tile(np.arange(2), number)
    named = names_at(entries, indices)
    low, high = (np.broadcast_to(end, len(entries)) for end in limits_at(bounds, entries))
    values = low / 2 + high / 2
    changed = values.copy()
    values[:2], changed[:2] = (high[0], low[1]), (low[0], high[1])
    return (
        (named, values),
        (named, changed),
        lambda fitted: float(fitted.biases_[shared][1] - fitted.biases_[shared][0]),
    )
