"""Neighbouring samples on which a decomposition gives away the most."""

import numbers
from typing import Any

import numpy as np

from sktensor_dp.estimator.hooks import Neighbours
from sktensor_dp.privacy.parts import public_places


def worst_samples(
    data_norm: float | None, shuffled_by: Any, n_units: int | None, neighbours: str
) -> Neighbours:
    """Samples of one direction; one turns round, the last that a stream reads if seeded."""
    if data_norm is None:
        raise ValueError("data_norm must be given: samples are made of that length.")
    n_samples = n_units or 1000
    samples = np.zeros((n_samples, 2))
    samples[:, 0] = data_norm
    if neighbours == "add_remove":
        return (samples,), (samples[1:],), _minus_moment
    changed = samples.copy()
    last = n_samples - 1
    if isinstance(shuffled_by, numbers.Integral):
        # A weight is read off the last batches, and fits deal rows out in this order.
        last = int(public_places(n_samples, shuffled_by).argmax())
    changed[last] *= -1
    return (samples,), (changed,), _minus_moment


def _minus_moment(fitted: Any) -> float:
    """The third moment along the samples' direction, as far as it was found."""
    return -float(np.sum(fitted.weights_ * fitted.components_[:, 0] ** 3))
