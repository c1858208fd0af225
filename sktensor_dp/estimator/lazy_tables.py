"""Tables that Dask has not computed yet: what is known of them, and what becomes of them."""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from sktensor_dp.estimator.inputs import TEXT, number_is_private, precision_of, refuse_other_kinds
from sktensor_dp.estimator.parameters import check_sizes
from sktensor_dp.privacy.execution import DaskPartitions
from sktensor_dp.queries.reading import call_foreign, read
from sktensor_dp.queries.sums import OneThread
from sktensor_dp.queries.units import ONE_GROUP

# Of an estimator, what no worker needs: some of it cannot leave this process.
STAYS = ("_stream", "privacy_report_", "feature_names_in_")
NUMBER_NEEDED = (
    "n_samples must be given: the number of {what}, which is public, and which nothing is computed "
    "to find out."
)


def is_lazy(X: Any) -> bool:
    """Whether something is a Dask array, frame, series, bag or the like."""
    return type(X).__module__.split(".")[0].startswith("dask") and hasattr(X, "to_delayed")


@dataclass(frozen=True, eq=False)
class LazyTable:
    """Rows that lie in partitions."""

    partitions: DaskPartitions  # the data
    n_units: int | None  # number of rows, or of groups; None where it is private
    n_features: int  # number of columns


def lazy_table(estimator: Any, X: Any, groups: Any, n_samples: Any, *, reset: bool) -> LazyTable:
    """Check what is known of a table, on behalf of an estimator; nothing is computed."""
    X = check_columns(estimator, X, reset=reset)
    known = math.nan if hasattr(X, "columns") else X.shape[0]
    n_units = number_of_units(estimator, known, groups, n_samples, "rows")
    rows = row_partitions(X)
    partitions = partitions_by_group(rows, groups, X)
    return LazyTable(partitions, n_units, int(X.shape[1]))


def check_columns(estimator: Any, X: Any, *, reset: bool, text: str = TEXT) -> Any:
    """Hold columns and types against what an estimator takes; rows stay in whole partitions.

    `text` says what to do about columns of text.
    """
    refuse_other_kinds(X._meta, "X", text)
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            f"X must have one row per sample and one column per feature; got a "
            f"{type(X).__name__} with {getattr(X, 'ndim', 'no')} axes."
        )
    if math.isnan(X.shape[1]):
        raise ValueError(
            "X must have a known number of columns; name it where the array is made, or "
            "call X.compute_chunk_sizes(), which computes X."
        )
    meta = X._meta if hasattr(X, "columns") else np.zeros((1, int(X.shape[1])))
    read(lambda: validate_data(estimator, meta, reset=reset, skip_check_array=True), "X")
    if not hasattr(X, "columns") and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return X


def number_of_units(
    estimator: Any, known: float, groups: Any, n_samples: Any, noun: str
) -> int | None:
    """Number of units as it is announced or known; None where it is private.

    `known` is the number of rows; NaN where it is not known.
    """
    if number_is_private(n_samples, estimator.neighbours):
        return None
    if n_samples is not None:
        check_sizes(n_samples=n_samples)
    if groups is not None:
        if n_samples is None:
            raise ValueError(NUMBER_NEEDED.format(what="groups"))
        if n_samples < 2:
            raise ValueError(ONE_GROUP)
        return int(n_samples)
    if math.isnan(known):
        if n_samples is None:
            raise ValueError(NUMBER_NEEDED.format(what=noun))
        return int(n_samples)
    if n_samples not in (None, known):
        raise ValueError(f"n_samples is {n_samples}, but there are {known} {noun}.")
    if known < 1:
        raise ValueError(f"There must be at least one of the {noun}, got none.")
    return int(known)


def row_partitions(X: Any) -> list[Any]:
    """Partitions of rows, delayed."""
    return list(np.ravel(np.asarray(X.to_delayed(), dtype=object)))


def partitions_by_group(rows: Sequence[Any], groups: Any, X: Any) -> DaskPartitions:
    """Partitions of the rows of X, each with all rows of its groups where there are any."""
    if groups is None:
        return DaskPartitions(rows)
    labels = partitions_beside(groups, X, len(rows), "groups", "label")
    return DaskPartitions.shuffled(rows, labels)


def partitions_beside(given: Any, X: Any, n_parts: int, name: str, noun: str) -> Sequence[Any]:
    """Delayed parts of what has one item for each row of X, in the partitions of these."""
    unequal = f"{name} must hold one {noun} for each row of X."
    if not is_lazy(given):
        if not (hasattr(X, "chunks") and not math.isnan(X.shape[0])):
            raise TypeError(
                f"{name} must be a Dask array or series with the partitions of X, whose rows are "
                f"not counted yet; got a {type(given).__name__}."
            )
        import dask.array as da

        items = read(lambda: np.asarray(given), name)
        if items.shape != (X.shape[0],):
            raise ValueError(unequal)
        # By itself Dask would name it by a digest of what it holds.
        given = da.from_array(items, chunks=(X.chunks[0],), name=False)
    elif hasattr(given, "chunks") and hasattr(X, "chunks"):
        if getattr(given, "ndim", 1) != 1:
            raise ValueError(unequal)
        known = not (math.isnan(given.shape[0]) or math.isnan(X.shape[0]))
        if known and given.shape[0] != X.shape[0]:
            raise ValueError(unequal)
        if known and given.chunks[0] != X.chunks[0]:
            given = given.rechunk((X.chunks[0],))
    parts = row_partitions(given)
    if len(parts) != n_parts:
        raise ValueError(
            f"{name} must have the partitions of X, which are {n_parts}; got {len(parts)}."
        )
    return parts


def bare(estimator: Any, stays: Iterable[str]) -> Any:
    """A copy of an estimator, without what no worker needs or may not leave this process."""
    copied = copy.copy(estimator)
    copied.accountant = None
    for name in stays:
        vars(copied).pop(name, None)
    return copied


def _rows_of(method: Callable[[Any], Any], width: int | None, dtype: Any, part: Any) -> Any:
    """Apply a method of a fitted estimator to the rows of a partition."""
    rows = part.to_numpy() if hasattr(part, "to_numpy") else part
    if rows.shape[0] == 0:
        return np.zeros((0,) if width is None else (0, width), dtype=dtype)
    with OneThread():
        return np.asarray(method(rows), dtype=dtype)


def lazy_rows(estimator: Any, X: Any, method: str, width: int | None = None, **options: Any) -> Any:
    """Dask array of what a method makes of each row: a number, or so many of them."""
    import dask
    import dask.array as da

    X = check_columns(estimator, X, reset=False)
    dtype = np.float64 if width is None else precision_of(X)
    of_part = partial(getattr(bare(estimator, STAYS), method), **options)
    rows_of = partial(_rows_of, of_part, width, dtype)
    # One object of the graph: it goes to a worker once, not with every partition.
    of_rows = dask.delayed(rows_of, pure=False, traverse=False)
    framed = hasattr(X, "columns")
    sizes = [math.nan] * X.npartitions if framed else X.chunks[0]
    rest = () if width is None else (width,)
    parts = [
        da.from_delayed(of_rows(part, pure=False), (size, *rest), dtype=dtype)
        for part, size in zip(row_partitions(X), sizes, strict=True)
    ]
    return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)


def computed(value: Any, doing: str) -> Any:
    """Value of what may be lazy; errors of computing it show no data."""
    return call_foreign(value.compute, doing) if hasattr(value, "to_delayed") else value
