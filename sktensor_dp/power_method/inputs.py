"""What a tensor power method accepts as data."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.estimator.inputs import dense_tensor
from sktensor_dp.privacy.parts import (
    even_parts,
    even_places,
    own_parts,
    public_places,
    secret_coins,
)
from sktensor_dp.queries.samples import SampleChunks, TensorChunk
from sktensor_dp.queries.units import RowChoice
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.oracle import tensor_oracle

# Relative asymmetry that sums in another order leave.
LARGEST_ASYMMETRY = 1e-8
NOT_AT_RANDOM = (
    "perturbation='stream' splits rows at random, which lie in partitions here. Pass parts of them "
    "that stand for all to partial_fit."
)
TOO_WIDE = (
    "Chunks with so many features can be batches of a stream alone, each of which stands for all "
    "and has units of its own. Where that is so, pass perturbation='stream'."
)


def symmetric_tensor(T: ArrayLike, bound: float) -> Floats:
    """Tensor of shape (d, d, d), clipped far beyond the largest change of an entry."""
    tensor = dense_tensor(T, "; fit() takes samples")
    if tensor.ndim != 3:
        raise ValueError(f"T must have shape (d, d, d), got shape {tensor.shape}.")
    tensor_oracle(tensor)  # refuses what is not a finite cube
    largest = TensorChunk.largest_ratio * bound
    tensor = np.clip(tensor, -largest, largest)
    # Whether a caller's np.seterr makes rounding warn or raise may depend on one entry.
    with np.errstate(all="ignore"):
        asymmetry = _asymmetry(tensor)
    if asymmetry > LARGEST_ASYMMETRY:
        raise ValueError(
            "T must be symmetric, up to rounding. "
            "sktensor_dp.tensor.symmetrize averages a tensor over its modes."
        )
    return tensor


def _asymmetry(tensor: Floats) -> float:
    """Largest relative change when two neighbouring modes are exchanged."""
    norm, first, last = float(np.linalg.norm(tensor)), 0.0, 0.0
    # Slice by slice: a transposed tensor is read against the grain, and would be copied.
    for i, rows in enumerate(tensor):
        last += float(np.square(rows - rows.T).sum())
        first += float(np.square(rows - tensor[:, i]).sum())
    return math.sqrt(max(first, last)) / max(norm, 1e-300)


def random_batches(
    X: Any,
    n_batches: int,
    random_state: Any,
    *,
    groups: Any = None,
    choice: RowChoice | None = None,
    by_coins: bool = False,
) -> Iterator[SampleChunks]:
    """Deal units into so many batches at random; `random_state` decides for rows alone."""
    n_units, names, units = X.shape[0], None, None
    if groups is not None:
        names, units = np.unique(groups, return_inverse=True)
        n_units = len(names)
    if by_coins:
        # How many batches there are is public, and any of them may be empty.
        of_units = own_parts(secret_coins(n_units, names), n_batches)
    else:
        n_batches = min(n_batches, n_units)
        places = (
            public_places(n_units, random_state)
            if names is None
            else even_places(secret_coins(n_units, names))
        )
        of_units = even_parts(places, n_batches)
    of_rows = of_units if units is None else of_units[units]
    ends = np.cumsum(np.bincount(of_rows, minlength=n_batches))
    for rows in np.split(np.argsort(of_rows, kind="stable"), ends[:-1]):
        # As groups of one row would lie: sums have the same digits.
        part = X[rows]
        labels = None if groups is None else groups[rows]
        yield SampleChunks(part, *part.shape, groups=labels, choice=choice)
