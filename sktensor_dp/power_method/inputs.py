"""What a tensor power method accepts as data."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sktensor_dp.estimator.inputs import dense_tensor
from sktensor_dp.privacy.secret_parts import secret_parts
from sktensor_dp.statistics.power_iterations import TensorChunk
from sktensor_dp.statistics.row_chunks import RowChoice
from sktensor_dp.statistics.sample_moments import SampleChunks
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
    """Units split at random into so many batches."""
    # A position is one among rows, or among groups in the order of their labels.
    n_units, places = X.shape[0], None
    if groups is not None:
        names, places = np.unique(groups, return_inverse=True)
        n_units = len(names)
    if by_coins:
        # How many batches there are is public, and any of them may be empty.
        of_units = secret_parts(n_units, n_batches)
    else:
        n_batches = min(n_batches, n_units)
        of_units = _even_batches(check_random_state(random_state).permutation(n_units), n_batches)
    of_rows = of_units if places is None else of_units[places]
    ends = np.cumsum(np.bincount(of_rows, minlength=n_batches))
    for rows in np.split(np.argsort(of_rows, kind="stable"), ends[:-1]):
        # As groups of one row would lie: sums have the same digits.
        part = X[rows]
        labels = None if groups is None else groups[rows]
        yield SampleChunks(part, *part.shape, groups=labels, choice=choice)


def _even_batches(order: NDArray[np.intp], n_batches: int) -> NDArray[np.intp]:
    """Batch of each position, all of nearly equal size, in a public order."""
    found = np.empty(len(order), dtype=np.intp)
    for number, positions in enumerate(np.array_split(order, n_batches)):
        found[positions] = number
    return found
