"""Neighbouring entries that an audit of a completion tells apart."""

from typing import Any

import numpy as np

from sktensor_dp.completion.row_names import indices_of, names_at
from sktensor_dp.estimator.facts import Neighbours


def worst_entries(completion: Any, n_units: int | None) -> Neighbours:
    """Two neighbouring data sets (X, y), and a statistic of a fit that differs most between them.

    With a ``unit_mode`` they have as many units as the shape says; `n_units` is not read.
    """
    # The neighbours differ in values at the two bounds: of one entry, or in two rows of one unit.
    bounds, shape, unit_mode = completion.bounds, completion.shape, completion.unit_mode
    if bounds is None:
        raise ValueError("bounds must be given: values are made of both.")
    low, high = (-1.0, 1.0) if isinstance(bounds, str) else map(float, bounds)
    indices = indices_of(completion.row_names)
    if shape is None and indices is not None:
        lengths = [0 if index is None else len(index) for index in indices]
        shape = lengths if unit_mode is None or all(lengths) else None
    if unit_mode is None:
        place = np.zeros((1, 2 if shape is None else len(shape)), dtype=np.intp)
        entry = names_at(place, indices)
        at_low, at_high = np.array([low]), np.array([high])
        return (entry, at_low), (entry, at_high), lambda fitted: float(fitted.predict(entry)[0])
    # One unit swaps its values in two rows; all other values are in the middle.
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
    values = np.full(2 * number, low / 2 + high / 2)
    changed = values.copy()
    values[:2], changed[:2] = (high, low), (low, high)
    return (
        (named, values),
        (named, changed),
        lambda fitted: float(fitted.biases_[shared][1] - fitted.biases_[shared][0]),
    )
