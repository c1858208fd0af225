"""Validation of data, in memory or lazy, and of groups; errors never quote data."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_untrusted, read
from sktensor_dp.checks.frames import (
    as_arrow_table,
    as_numbers,
    column_names,
    is_dask,
    is_table,
    kinds_of,
    named_columns,
    refuse_lazy,
    refuse_other_columns,
)
from sktensor_dp.checks.parameters import check_sizes
from sktensor_dp.data.labels import ONE_GROUP, are_several, as_labels
from sktensor_dp.data.partitions import DaskPartitions
from sktensor_dp.data.sums import OneThread
from sktensor_dp.data.units import split_chunk
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.tensor.arrays import Floats

# Array, frame or series of Dask, or one delayed partition: Dask has no types.
Lazy = Any


TEXT = "count the words of texts first, for example with PrivateCountVectorizer"
CATEGORIES = (
    "encode categories by a column of 0 and 1 for each public one, or for each that "
    "PrivateOneHotEncoder finds, and leave texts out"
)
# Kinds of numpy's dtypes that hold numbers.
NUMBERS = frozenset("biufc")
# Types of a table that are kept; others are converted to the first.
KEPT = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64))
# Beginnings of messages that quote entries, and texts that replace them.
QUOTING = {
    "could not convert": "X must hold numbers; it holds values that are none{columns}: {text}.",
    "Complex data not supported": "Complex data not supported: X must hold real numbers.",
    "Expected 2D": (
        "Expected 2D array, got X of {shape}. Reshape your data: X must have one row per "
        "document or sample, and one column per word or feature."
    ),
}
# Further messages to replace where the number of rows is private, which they name.
COUNTING = {
    "Found array with 0 sample": "X must have rows; it has none.",
    "Found array with 0 feature": "X must have columns; it has none.",
}


def refuse_other_kinds(X: object, name: str, text: str = TEXT) -> None:
    """Raise an error, by type alone, for dates, text (with advice), masked and Dask arrays."""
    if is_dask(X):
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}, which is not computed yet. Pass "
            f"{name}.compute(); where that does not fit into memory, fit_chunks takes a source "
            "of chunks."
        )
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(
            f"{name} must have no masked entries: what lies behind a mask would be read. Leave "
            "them out, or fill them first."
        )
    if isinstance(X, list) or (isinstance(X, np.ndarray) and X.dtype.kind in NUMBERS):
        return
    kinds = kinds_of(X, name)
    names = column_names(X) or [""] * len(kinds)
    for kind, called in kinds:
        where = in_columns(
            [one for one, (other, _) in zip(names, kinds, strict=True) if other == kind and one]
        )
        if kind == "time":
            raise ValueError(
                f"{name} must hold numbers, got type {called}{where}; dates and times are none: "
                "number the periods from 0 (for example days since the first), or leave them out."
            )
        if kind == "text":
            # The message must not show the type of a text array, which holds the length of the
            # longest text.
            raise ValueError(f"{name} must hold numbers, got text{where}; {text}.")


def in_columns(names: Sequence[str]) -> str:
    """Text that names some columns of a table, " in column 'a', 'b'"; empty for none."""
    most_shown = 5
    more = f" and {len(names) - most_shown} more" * (len(names) > most_shown)
    return f" in column {', '.join(map(repr, names[:most_shown]))}{more}" if names else ""


def advice_on_text(estimator: Any) -> str:
    """Advice on text where an estimator takes numbers, by whether these are counts."""
    return TEXT if estimator._input_tags.get("categorical") else CATEGORIES


def _is_numeric(column: NDArray[Any]) -> bool:
    with suppress(Exception):
        return np.asarray(column, dtype=np.float64).ndim == 1
    return False


def dense_tensor(T: object, method: str) -> NDArray[np.float64]:
    """Float64 array from an array or lists; `method` ends the advice to pass ``T.toarray()``."""
    if sp.issparse(T):
        raise TypeError(
            f"T must be dense, got a {type(T).__name__}. Where absent entries are zeros pass "
            f"T.toarray(){method}."
        )
    refuse_other_kinds(T, "T", "encode it first")
    given = read(lambda: with_nan(np.asarray(as_numbers(T, "T"))), "T")
    refuse_other_kinds(given, "T", "encode it first")
    if given.dtype.kind == "c":
        raise ValueError("Complex data not supported: T must hold real numbers.")
    # Replaces numpy's message, which quotes the entry.
    none = "T must hold numbers; it holds values that are none."
    return read(
        lambda: np.asarray(given, dtype=np.float64),
        "T",
        lambda said: none if said.startswith("could not convert") else None,
    )


def with_nan(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The array, with NaN in the place of None and of the NA of pandas."""
    if array.dtype.kind != "O":
        return array
    # Compare names of types, as pandas need not be installed.
    gaps = [item is None or type(item).__name__ == "NAType" for item in array.ravel().tolist()]
    return np.where(np.reshape(gaps, array.shape), np.nan, array)


def checked_mask(mask: object, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Mask as booleans of a shape, from booleans or from 0 and 1; ValueError for others."""
    given = read(lambda: np.asarray(as_numbers(mask, "mask")), "mask")
    if given.shape != shape:
        raise ValueError(f"mask must have shape {shape}, got {given.shape}.")
    # NaN and any non-empty text would count as True.
    wrong = "mask must hold True or False, or 1 or 0, and nothing else."
    if given.dtype.kind not in "biufO":
        raise ValueError(wrong)
    numbers = read(lambda: np.asarray(given, dtype=np.float64), "mask", lambda _: wrong)
    if not np.isin(numbers, (0.0, 1.0)).all():
        raise ValueError(wrong)
    return numbers == 1


def checked_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    fits: bool = False,
    grouped: bool = False,
) -> Any:
    """Table as an array or CSR matrix, validated by scikit-learn; errors quote no entry.

    `reset` stores the columns on `estimator` (else they are compared). Where `grouped`, the number
    of rows is private. Its input tags say whether NaN is allowed.
    """
    sizes_private = getattr(estimator, "neighbours", None) == "add_remove"
    # If units are added or removed, a fit accepts data without rows.
    least, rows_private = 0 if sizes_private and fits else 1, sizes_private or grouped
    refuse_other_kinds(X, "X", advice_on_text(estimator))
    if least == 0:
        refuse_lists(X)
    X = as_arrow_table(X)
    kinds, missing = list(KEPT), estimator._input_tags.get("allow_nan", False)

    def validate() -> Any:
        return validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=kinds,
            ensure_min_samples=least,
            ensure_all_finite="allow-nan" if missing and not sp.issparse(X) else True,
        )

    def told(quoting: str) -> str | None:
        messages = {**QUOTING, **(COUNTING if rows_private else {})}
        said = next((messages[start] for start in messages if quoting.startswith(start)), None)
        if said is None:
            return None
        axes = f"{np.ndim(X)} dimension(s)" if rows_private else f"shape {np.shape(X)}"
        named = named_columns(X, "X") if is_table(X) and "{columns}" in said else ()
        where = in_columns([name for name, column in named if not _is_numeric(column)])
        return said.format(shape=axes, columns=where, text=advice_on_text(estimator))

    return read(validate, "X", told)


def precision_of(X: object) -> type[np.floating]:
    """Type of the result of a transform: float32 for input of float32, else float64."""
    dtype = None if is_table(X) else getattr(X, "dtype", None)
    return np.float32 if dtype == np.float32 else np.float64


def refuse_lists(X: object) -> None:
    """Raise TypeError for a list or tuple: without rows it has no number of columns."""
    if isinstance(X, list | tuple):
        raise TypeError(
            f"X must be an array, a sparse matrix or a data frame where neighbours='add_remove', "
            f"got a {type(X).__name__}: without rows it would have no columns, and how many rows "
            "there are is private. Pass np.reshape(X, (-1, n_features))."
        )


def checked_groups(groups: object, n_rows: int, neighbours: str = "replace_one") -> Any:
    """Label of the group of each row, or None; ValueError for wrong ones, or a single group."""
    if groups is None:
        return None
    labels = as_labels(groups, n_rows)
    # If groups are added or removed, a single group is allowed.
    if neighbours != "add_remove" and not are_several(labels):
        raise ValueError(ONE_GROUP)
    return labels


def number_is_private(n_samples: object, neighbours: str) -> bool:
    """True where `neighbours` makes the number of units private; ValueError if it is given then."""
    if neighbours == "add_remove" and n_samples is not None:
        raise ValueError(
            "n_samples must not be given where neighbours='add_remove': how many there are is "
            "private, and is counted with noise."
        )
    return neighbours == "add_remove"


class CheckedChunks:
    """Source of chunks, each checked as it is read to be a two-dimensional table of numbers."""

    def __init__(self, source: Iterable[object], columns: list[str] | None = None) -> None:
        self._source, self._columns = source, columns

    def __iter__(self) -> Iterator[Any]:
        columns = self._columns
        for part in self._source:
            X, groups = split_chunk(part)
            refuse_lazy(X, "a chunk")
            refuse_other_columns(X, columns, "a chunk")
            columns = columns or column_names(X)
            given = X if hasattr(X, "shape") else read(partial(np.asarray, X), "a chunk")
            refuse_other_kinds(given, "a chunk")
            if not isinstance(given, np.ndarray):
                given = as_numbers(given, "a chunk")
            if len(given.shape) != 2:
                # The shape would show the number of rows, which may be private.
                axes = counted(len(given.shape), "axis")
                raise ValueError(f"a chunk must be two-dimensional, got {axes}.")
            yield given if groups is None else (given, groups)


def check_same_unit(before: PrivacyReport, grouped: bool, neighbours: str) -> None:
    """Raise ValueError if a later batch has other units or neighbours than the report `before`."""
    check_same("neighbours", before.neighbours, neighbours)
    if (before.unit == "person") != grouped:
        raise ValueError(
            "All batches of a stream must come with groups, or none: the first one decided what "
            "is protected. fit() starts anew."
        )


MARK = "_sktensor_dp_unit"


def mark_unit(counts: object, report: PrivacyReport) -> Any:
    """Mark a result with the unit and neighbours that its fit protects, and return it."""
    with suppress(AttributeError):
        setattr(counts, MARK, (report.unit == "person", report.neighbours))
    return counts


def check_mark(X: object, grouped: bool, neighbours: str) -> None:
    """Raise ValueError if `X` has the mark of a fit with other units or neighbours."""
    persons, relation = getattr(X, MARK, (grouped, neighbours))
    if persons != grouped:
        have = ("with groups", "without groups")
        raise ValueError(
            f"groups must be given to both fits or to none: X was counted by a vocabulary fitted "
            f"{have[not persons]}, and this fit would go {have[not grouped]}, so that together "
            "they protect neither. If X holds other data, pass X.copy(). Nothing was charged."
        )
    if relation != neighbours:
        raise ValueError(
            f"neighbours must be {relation!r}, as in the fit of the vocabulary that X was counted "
            f"by; got {neighbours!r}. If X holds other data, pass X.copy(). Nothing was charged."
        )


def check_same(name: str, before: object, now: object) -> None:
    """Raise ValueError if parameter `name` was `before` in the first batch and is `now` another."""
    if before != now:
        raise ValueError(
            f"{name} must be as in the first batch, {before!r}, which was charged for; got "
            f"{now!r}. fit() starts anew."
        )


# Attributes that workers do not need; some cannot be pickled.
NOT_FOR_WORKERS = ("_stream", "privacy_report_", "feature_names_in_")


def check_columns(estimator: object, X: Lazy, *, reset: bool, text: str | None = "") -> Any:
    """Lazy table with its columns in one chunk, validated by its metadata alone."""
    text = advice_on_text(estimator) if text == "" else text
    if text is not None:  # None: columns may be text
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
    estimator: Any, known: float, groups: object, n_samples: Any, noun: str
) -> int | None:
    """Number of units of lazy data of `known` rows, or NaN; None where it is private."""
    if number_is_private(n_samples, estimator.neighbours):
        return None
    if n_samples is not None:
        check_sizes(n_samples=n_samples)
    if groups is None and not math.isnan(known):
        if n_samples not in (None, known):
            raise ValueError(f"n_samples is {n_samples}, but there are {known} {noun}.")
        if known < 1:
            raise ValueError(f"There must be at least one of the {noun}, got none.")
        return int(known)
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

        items = read(lambda: np.asarray(given), name)
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
    X = check_columns(estimator, X, reset=False)
    dtype = np.float64 if width is None else precision_of(X)
    of_part = partial(getattr(worker_copy(estimator, NOT_FOR_WORKERS), method), **options)
    sizes = [math.nan] * X.npartitions if hasattr(X, "columns") else X.chunks[0]
    shapes = [(size,) if width is None else (size, width) for size in sizes]
    of_rows = partial(_rows_of, of_part, width, dtype, column_names(X))
    return mapped_partitions(of_rows, X, shapes, dtype)


def computed(value: Lazy, doing: str) -> Any:
    """Compute a Dask value, and return any other; errors name the action `doing`, not data."""
    return call_untrusted(value.compute, doing) if is_dask(value) else value
