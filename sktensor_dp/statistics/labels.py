"""Labels of rows: whose they are, validated without showing any."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.statistics.frames import as_numbers
from sktensor_dp.statistics.reading import read

EXPECTED = (
    "groups must hold one label per row, all of them integers or all of them strings and none "
    "missing"
)
ONE_GROUP = (
    "groups must hold at least two different labels: one group alone is all of the data, and "
    "nothing could be learnt that protects it."
)


def as_labels(groups: Any, n_rows: int) -> NDArray[Any]:
    """Validated labels of rows; messages show none, nor how many rows there are."""
    # The number of rows of a unit is private.
    # Of a list numpy would make text, and 'nan' of a label that is missing.
    if not isinstance(groups, np.ndarray):
        groups = as_numbers(groups, "groups")
    known: Any = None if hasattr(groups, "dtype") else object
    if np.ma.is_masked(groups):
        raise ValueError(f"{EXPECTED}.")  # an array would hold what lies behind the mask
    labels = read(lambda: np.asarray(groups, known), "groups", lambda message: f"{EXPECTED}.")
    if labels.ndim != 1:
        raise ValueError(f"{EXPECTED}; got an array of {labels.ndim} dimensions.")
    if len(labels) != n_rows:
        raise ValueError(f"{EXPECTED}; its length is not the number of rows.")
    if not len(labels):
        return np.zeros(0, np.int64)  # a chunk without rows: no label is of a wrong kind
    if labels.dtype.kind in "OT":
        labels = _of_one_kind(labels.astype(object))
    if labels.dtype.kind in "iu":
        if labels.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{EXPECTED}; integers must be less than 2**63.")
        return labels.astype(np.int64, copy=False)
    # The width of a text would tell how long the longest label is.
    if labels.dtype.kind != "U":
        kind = "" if labels.dtype.kind in "OS" else f"; got type {labels.dtype}"
        raise ValueError(f"{EXPECTED}{kind}.")
    return labels


def are_several(labels: NDArray[Any]) -> bool:
    """Whether rows are of two groups or more: the number of groups is public."""
    return bool((labels[1:] != labels[:-1]).any())


def _of_one_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """Objects as integers or as text, if they are of one kind; otherwise as they are."""
    kinds = set(map(type, labels.tolist()))
    if kinds and all(issubclass(kind, str) for kind in kinds):
        return labels.astype(str)
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        wide = f"{EXPECTED}; integers must be less than 2**63."
        return read(lambda: labels.astype(np.int64), "groups", lambda message: wide)
    return labels
