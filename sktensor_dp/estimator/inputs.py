"""Data as it is passed: refused by its kind, converted, and never quoted by an error."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from sktensor_dp.estimator.parameters import check_sizes
from sktensor_dp.privacy.parts import row_keys
from sktensor_dp.queries.reading import as_numbers, in_chunks, kinds_of, read, refuse_lazy
from sktensor_dp.queries.units import ONE_GROUP, RowChoice, are_several, as_labels, split_chunk

Rows = TypeVar("Rows")

TEXT = "count the words of texts first, for example with PrivateCountVectorizer"
# Kinds of numpy that hold numbers.
NUMBERS = frozenset("biufc")
# Kinds of a table that are kept; others become the first.
KEPT = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64))
# How messages that quote entries begin, and what is said in their place.
QUOTING = {
    "could not convert": (
        "X must hold numbers; it holds values that are none. Count the words of texts first, for "
        "example with PrivateCountVectorizer."
    ),
    "Complex data not supported": "Complex data not supported: X must hold real numbers.",
    "Expected 2D": (
        "Expected 2D array, got X of {shape}. Reshape your data: X must have one row per "
        "document or sample, and one column per word or feature."
    ),
}
# The same of messages that name the number of rows, where that is private.
COUNTING = {
    "Found array with 0 sample": "X must have rows; it has none.",
    "Found array with 0 feature": "X must have columns; it has none.",
}


def refuse_other_kinds(X: Any, name: str, text: str = TEXT) -> None:
    """Refuse dates, durations, text and arrays that are not computed yet, by their type."""
    if hasattr(X, "__dask_graph__"):
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
    if isinstance(X, list) or getattr(getattr(X, "dtype", None), "kind", "") in NUMBERS:
        return
    for kind, called in kinds_of(X, name):
        if kind == "time":
            raise ValueError(
                f"{name} must hold numbers, got type {called}; dates and times are none: number "
                "the periods from 0 (for example days since the first), or leave them out."
            )
        if kind == "text":
            # The type itself would tell how long the longest text is.
            raise ValueError(f"{name} must hold numbers, got text; {text}.")


def dense_tensor(T: Any, method: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Floats of a tensor passed as an array or as lists."""
    if sp.issparse(T):
        raise TypeError(
            f"T must be dense, got a {type(T).__name__}. Where absent entries are zeros pass "
            f"T.toarray(){method}."
        )
    refuse_other_kinds(T, "T", "encode it first")
    given = read(lambda: np.asarray(T), "T")
    refuse_other_kinds(given, "T", "encode it first")
    if given.dtype.kind == "c":
        raise ValueError("Complex data not supported: T must hold real numbers.")
    # numpy's own message quotes the entry.
    none = "T must hold numbers; it holds values that are none."
    return read(
        lambda: np.asarray(given, dtype=np.float64),
        "T",
        lambda said: none if said.startswith("could not convert") else None,
    )


def checked_table(
    estimator: Any, X: Any, *, reset: bool, fits: bool = False, grouped: bool = False
) -> Any:
    """Rows and columns of numbers, by scikit-learn's validation on behalf of an estimator."""
    counted = getattr(estimator, "neighbours", None) == "add_remove"
    # Where units come and go, a fit takes data without any.
    least, rows_private = 0 if counted and fits else 1, counted or grouped
    refuse_other_kinds(X, "X")
    if least == 0:
        refuse_lists(X)
    if _as_it_is(estimator, X, reset, least):
        return X
    X = in_chunks(X)
    kinds = list(KEPT)

    def validate() -> Any:
        return validate_data(
            estimator, X, reset=reset, accept_sparse="csr", dtype=kinds, ensure_min_samples=least
        )

    def told(quoting: str) -> str | None:
        for beginning, message in {**QUOTING, **(COUNTING if rows_private else {})}.items():
            if quoting.startswith(beginning):
                return (
                    message.format(shape=_shape_of(X, rows_private)) if "{" in message else message
                )
        return None

    return read(validate, "X", told)


def as_validated(convert: Callable[[Any], Rows], X: Any) -> Rows:
    """Validated rows as queries take them; where memory lacks, how many there are is not told."""
    try:
        return convert(X)
    except MemoryError:
        pass
    # Not in the handler, which would leave the error in the context of this one.
    raise MemoryError("there is too little memory for X.")


def precision_of(X: Any) -> type[np.floating[Any]]:
    """Precision of what transforms make of an array, as scikit-learn preserves it."""
    return np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64


def _as_it_is(estimator: Any, X: Any, reset: bool, least: int) -> bool:
    """Whether validation would return an array unchanged, and then what it writes is written."""
    # It asks all installed packages whether an object is a data frame of theirs, once in a process:
    # a fifth of the first fit of a small table. Whatever is refused, is refused by it.
    if type(X) not in (np.ndarray, sp.csr_matrix, sp.csr_array) or X.ndim != 2:
        return False
    n_features = X.shape[1]
    if X.dtype not in KEPT or X.shape[0] < least or n_features == 0:
        return False
    with np.errstate(all="ignore"):
        values = X.data if sp.issparse(X) else X
        if X.dtype.kind == "f" and not math.isfinite(values.sum()):
            return False
    return has_columns(estimator, n_features, reset)


def has_columns(estimator: Any, n_features: int, reset: bool) -> bool:
    """Whether columns without names are those of an estimator, whose they become by `reset`."""
    named = hasattr(estimator, "feature_names_in_")
    if not reset:
        return not named and getattr(estimator, "n_features_in_", n_features) == n_features
    if named:
        del estimator.feature_names_in_
    estimator.n_features_in_ = n_features
    return True


def refuse_lists(X: Any) -> None:
    """Refuse rows in a list where none is data like any other: an empty one has no columns."""
    if isinstance(X, list | tuple):
        raise TypeError(
            f"X must be an array, a sparse matrix or a data frame where neighbours='add_remove', "
            f"got a {type(X).__name__}: without rows it would have no columns, and how many rows "
            "there are is private. Pass np.reshape(X, (-1, n_features))."
        )


def _shape_of(X: Any, hidden: bool) -> str:
    """The shape of what is no table, or only of how many dimensions it is."""
    return f"{np.ndim(X)} dimension(s)" if hidden else f"shape {np.shape(X)}"


def checked_groups(groups: Any, n_rows: int, neighbours: str = "replace_one") -> Any:
    """Validated labels of rows, or None."""
    if groups is None:
        return None
    labels = as_labels(groups, n_rows)
    # Where groups come and go, one alone is data like any other.
    if neighbours != "add_remove" and not are_several(labels):
        raise ValueError(ONE_GROUP)
    return labels


def checked_grouping(groups: Any, n_rows: int, estimator: Any) -> dict[str, Any]:
    """Validated labels of rows, and how many of one label an estimator's fit reads."""
    if groups is None:
        return {}
    labels = checked_groups(groups, n_rows, estimator.neighbours)
    return {"groups": labels, "choice": row_choice(estimator.max_rows_per_group)}


def row_choice(most: int | None) -> RowChoice | None:
    """How many rows of a group are read, and the secret keys that they are chosen by."""
    return None if most is None else (int(most), row_keys)


def check_source(
    source: Iterable[Any], n_samples: Any, n_features: Any, neighbours: str = "replace_one"
) -> None:
    """Refuse a source of chunks that can be read once, or whose sizes are not as they must be."""
    if not any(hasattr(source, name) for name in ("sum", "__iter__", "__getitem__")):
        raise TypeError(f"source must be an iterable of chunks, got a {type(source).__name__}.")
    if not hasattr(source, "sum") and iter(source) is source:
        raise TypeError(
            f"source must be re-iterable (a list, or an object whose __iter__ starts anew); "
            f"got a {type(source).__name__}, which can be read once."
        )
    if not number_is_private(n_samples, neighbours):
        check_sizes(n_samples=n_samples)
    check_sizes(n_features=n_features)


def number_is_private(n_samples: Any, neighbours: str) -> bool:
    """Whether a noisy count stands for the number of units, which then must not be given."""
    if neighbours == "add_remove" and n_samples is not None:
        raise ValueError(
            "n_samples must not be given where neighbours='add_remove': how many there are is "
            "private, and is counted with noise."
        )
    return neighbours == "add_remove"


class Numeric:
    """A source of chunks of which each is refused by its kind when it is read."""

    def __init__(self, source: Iterable[Any]) -> None:
        self._source = source

    def __iter__(self) -> Iterator[Any]:
        for part in self._source:
            X, groups = split_chunk(part)
            refuse_lazy(X, "a chunk")
            given = X if hasattr(X, "shape") else _array_of(X)
            refuse_other_kinds(given, "a chunk")
            if not isinstance(given, np.ndarray):
                given = as_numbers(given, "a chunk")
            if len(given.shape) != 2:
                # Its shape would tell how many rows it has, which may be private.
                raise ValueError(f"a chunk must be two-dimensional, got {len(given.shape)} axes.")
            yield given if groups is None else (given, groups)


def unchecked(source: Any) -> Any:
    """A source that nothing takes for rows that were checked: an array of chunks is one."""
    whole = sp.issparse(source) or isinstance(source, np.ndarray)
    return Numeric(source) if whole else source


def _array_of(part: Any) -> np.ndarray[Any, Any]:
    return read(lambda: np.asarray(part), "a chunk")
