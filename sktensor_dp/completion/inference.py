"""What a fitted completion says of coordinates, from released parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["values_at"]

Floats = NDArray[np.float64]


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
