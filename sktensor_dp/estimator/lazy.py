"""Tables of Dask: validated by metadata alone, cut into partitions, computed on workers."""

import copy
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from sktensor_dp.checks.errors import call_unquoted, call_untrusted
from sktensor_dp.checks.frames import column_names, is_dask, refuse_other_columns
from sktensor_dp.checks.parameters import check_sizes
from sktensor_dp.data.labels import ONE_GROUP
from sktensor_dp.data.partitions import DaskPartitions
from sktensor_dp.data.sums import OneThread
from sktensor_dp.estimator.inputs import (
    advice_on_text,
    names_of_words,
    precision_of,
    refuse_other_kinds,
    refuse_private_number,
    without_names,
)
from sktensor_dp.tensor.arrays import Floats

# Array, frame or series of Dask, or one delayed partition: Dask has no types.
Lazy = Any

# Attributes that workers do not need; some cannot be pickled.
NOT_FOR_WORKERS = ("_stream", "privacy_report_", "feature_names_in_")


def checked_columns(estimator: object, X: Lazy, *, reset: bool, text: str | None) -> Any:
    """Lazy table with its columns in one chunk, validated by its metadata alone.

    `text` is advice on columns of text, for the error that refuses them; None lets them pass.
    """
    if text is not None:
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
    is_frame = hasattr(X, "columns")
    meta = X._meta if is_frame else np.zeros((1, int(X.shape[1])))
    compared = estimator if reset or is_frame else without_names(estimator, X)
    call_unquoted(lambda: validate_data(compared, meta, reset=reset, skip_check_array=True), "X")
    if reset:
        vars(estimator).update(names_of_words(X))
    if not is_frame and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return X


def number_of_units(
    estimator: Any, n_rows: float, groups: object, n_samples: Any, noun: str
) -> int | None:
    """Number of units of lazy data of `n_rows` (NaN: not known yet); None where it is private.

    ValueError if `n_samples` is missing or contradicts the rows, which errors call `noun`.
    """
    refuse_private_number(n_samples, estimator.neighbours)
    if estimator._number_is_private:
        return None
    if n_samples is not None:
        check_sizes(n_samples=n_samples)
    if groups is None and not math.isnan(n_rows):
        if n_samples not in (None, n_rows):
            raise ValueError(f"n_samples is {n_samples}, but there are {n_rows} {noun}.")
        if n_rows < 1:
            raise ValueError(f"There must be at least one of the {noun}, got none.")
        return int(n_rows)
    if n_samples is None:
        what = noun if groups is None else "groups"
        raise ValueError(
            f"n_samples must be given: the number of {what}, which is public, and which "
            "nothing is computed to find out."
        )
    if groups is not None and n_samples < 2:
        raise ValueError(ONE_GROUP)
    return int(n_samples)


def row_partitions(X: Lazy) -> list[Lazy]:
    """List of the delayed partitions of a Dask array, frame or series along its rows."""
    return list(np.ravel(np.asarray(X.to_delayed(), dtype=object)))


def partitions_by_group(X: object, groups: object) -> DaskPartitions:
    """Partitions of rows; with `groups`, shuffled so that all rows of a group are in one."""
    rows = row_partitions(X)
    if groups is None:
        return DaskPartitions(rows)
    labels = partitions_beside(groups, X, len(rows), "groups", "label")
    return DaskPartitions.shuffled(rows, labels)


def partitions_beside(given: Lazy, X: Lazy, n_parts: int, name: str, noun: str) -> list[Lazy]:
    """Delayed parts of `given`, an item (`noun`) for each row of `X`, in the partitions of X."""
    unequal = ValueError(f"{name} must hold one {noun} for each row of X.")
    is_array = hasattr(type(X), "chunks")  # of Dask, and no frame
    n_rows = X.shape[0] if is_array else math.nan
    if not is_dask(given):
        if math.isnan(n_rows):
            raise TypeError(
                f"{name} must be a Dask array or series with the partitions of X, whose rows are "
                f"not counted yet; got a {type(given).__name__}."
            )
        import dask.array as da

        items = call_unquoted(lambda: np.asarray(given), name)
        if items.shape != (n_rows,):
            raise unequal
        # Without `name=False` Dask would name the array by a digest of the data.
        given = da.from_array(items, chunks=(X.chunks[0],), name=False)
    elif is_array and hasattr(type(given), "chunks"):
        if given.ndim != 1:
            raise unequal
        if not (math.isnan(given.shape[0]) or math.isnan(n_rows)):
            if given.shape[0] != n_rows:
                raise unequal
            given = given.rechunk((X.chunks[0],))
    parts = row_partitions(given)
    if len(parts) != n_parts:
        raise ValueError(
            f"{name} must have the partitions of X, which are {n_parts}; got {len(parts)}."
        )
    return parts


def worker_copy(estimator: Any, stays: Iterable[str]) -> Any:
    """Copy of an estimator for workers, without its accountant and the attributes in `stays`."""
    copied = copy.copy(estimator)
    copied.accountant = None
    for name in stays:
        vars(copied).pop(name, None)
    return copied


def _rows_of(
    method: Callable[[Any], Any],
    width: int | None,
    dtype: type[np.floating],
    columns: list[str] | None,
    part: Any,
) -> Floats:
    """Result of `method` for the rows of a partition, of shape (n_rows,) or (n_rows, width)."""
    refuse_other_columns(part, columns, "a partition of X")
    rows = part.to_numpy() if hasattr(part, "to_numpy") else part
    if rows.shape[0] == 0:
        return np.zeros((0,) if width is None else (0, width), dtype=dtype)
    with OneThread():
        return np.asarray(method(rows), dtype=dtype)


def mapped_partitions(
    call: Callable[[Any], Any], X: Lazy, shapes: Iterable[tuple[float, ...]], dtype: object,
    meta: object = None,
) -> Lazy:  # fmt: skip
    """Dask array of the results of `call`, of these `shapes`, for the partitions of `X`."""
    import dask
    import dask.array as da

    # One object of the graph: it is sent to a worker once, not with every partition.
    once = dask.delayed(call, pure=False, traverse=False)
    blocks = [
        da.from_delayed(once(part, pure=False), shape, dtype=dtype, meta=meta)
        for part, shape in zip(row_partitions(X), shapes, strict=True)
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


def lazy_rows(
    estimator: object, X: Lazy, method: str, width: int | None = None, **options: object
) -> Lazy:
    """Dask array of a method's result for each row: a number, or `width` numbers."""
    X = checked_columns(estimator, X, reset=False, text=advice_on_text(estimator))
    dtype = np.float64 if width is None else precision_of(X)
    of_part = partial(getattr(worker_copy(estimator, NOT_FOR_WORKERS), method), **options)
    sizes = [math.nan] * X.npartitions if hasattr(X, "columns") else X.chunks[0]
    shapes = [(size,) if width is None else (size, width) for size in sizes]
    of_rows = partial(_rows_of, of_part, width, dtype, column_names(X))
    return mapped_partitions(of_rows, X, shapes, dtype)


def computed(value: Lazy, doing: str) -> Any:
    """Compute a Dask value, and return any other; errors name the action `doing`, not data."""
    return call_untrusted(value.compute, doing) if is_dask(value) else value
