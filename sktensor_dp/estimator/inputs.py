"""Validation of data in memory, and of groups; errors never quote data."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from sktensor_dp.checks.display import counted
from sktensor_dp.checks.errors import call_unquoted
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
    refuse_other_row_order,
)
from sktensor_dp.data.labels import ONE_GROUP, Labels, are_several, as_labels
from sktensor_dp.data.units import split_chunk
from sktensor_dp.exceptions import PrivacyLeakWarning
from sktensor_dp.privacy.payer import UNIT_MARK, UnitMark
from sktensor_dp.privacy.report import PrivacyReport

TEXT = "count the words of texts first, for example with PrivateCountVectorizer"
CATEGORIES = "encode categories by a column of 0 and 1 for each public one, and leave texts out"
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
    """Raise an error, by type or mask alone, for dates, text, complex, masked and Dask."""
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
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.")
    # A list has no type to judge; its entries are judged when callers make it an array.
    if isinstance(X, list) or (isinstance(X, np.ndarray) and X.dtype.kind in NUMBERS):
        return
    kinds = kinds_of(X, name)
    names = column_names(X) or [""] * len(kinds)
    for kind, type_name in kinds:
        of_kind = [column for column, (other, _) in zip(names, kinds, strict=True) if other == kind]
        where = in_columns([column for column in of_kind if column])
        if kind == "time":
            raise ValueError(
                f"{name} must hold numbers, got type {type_name}{where}; dates and times are none: "
                "number the periods from 0 (for example days since the first), or leave them out."
            )
        if kind == "text":
            # The message must not show the type of a text array, which holds the length of the
            # longest text.
            raise ValueError(f"{name} must hold numbers, got text{where}; {text}.")


def in_columns(names: Sequence[str]) -> str:
    """Text that names some columns of a table, " in column 'a', 'b'"; empty for none."""
    if not names:
        return ""
    most_shown = 5
    more = f" and {len(names) - most_shown} more" if len(names) > most_shown else ""
    return f" in column {', '.join(map(repr, names[:most_shown]))}{more}"


def advice_on_text(estimator: Any) -> str:
    """Advice on text where an estimator takes numbers, by whether these are counts."""
    return TEXT if estimator._input_tags.get("categorical") else CATEGORIES


def _is_numeric(column: NDArray[Any]) -> bool:
    """True if all cells can be read as numbers."""
    with suppress(Exception):
        return np.asarray(column, dtype=np.float64).ndim == 1
    return False


def dense_tensor(T: object, advice: str) -> NDArray[np.float64]:
    """Float64 array from an array or lists; `advice` ends the error for a sparse `T`."""
    if sp.issparse(T):
        raise TypeError(
            f"T must be dense, got a {type(T).__name__}. Where absent entries are zeros pass "
            f"T.toarray(){advice}."
        )
    refuse_other_kinds(T, "T", "encode it first")
    array = call_unquoted(lambda: with_nan(np.asarray(as_numbers(T, "T"))), "T")
    refuse_other_kinds(array, "T", "encode it first")  # lists have a kind only now
    # Replaces numpy's message, which quotes the entry.
    wrong = "T must hold numbers; it holds values that are none."
    return call_unquoted(
        lambda: np.asarray(array, dtype=np.float64),
        "T",
        lambda message: wrong if message.startswith("could not convert") else None,
    )


def with_nan(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The array, with NaN in the place of None and of the NA of pandas."""
    if array.dtype.kind != "O":
        return array
    # Compare names of types, as pandas need not be installed.
    gaps = [item is None or type(item).__name__ == "NAType" for item in array.ravel().tolist()]
    return np.where(np.reshape(gaps, array.shape), np.nan, array)


def checked_table(estimator: Any, X: Any, *, reset: bool, fits: bool, grouped: bool) -> Any:
    """Table as an array or CSR matrix, validated by scikit-learn; errors quote no entry.

    `reset` stores the columns on `estimator`; else they are compared with its own. Its input tags
    say whether an array may hold NaN; a sparse table may not. Where `grouped`, the number of rows
    is private. `X` may have no rows if `fits` is true and neighbours add or remove rows.
    """
    number_is_private = getattr(estimator, "neighbours", None) == "add_remove"
    rows_private = number_is_private or grouped
    may_be_empty = number_is_private and fits  # as units may be removed
    refuse_other_kinds(X, "X", advice_on_text(estimator))
    if may_be_empty:
        refuse_lists(X)
    X = as_arrow_table(X)
    allows_nan = estimator._input_tags.get("allow_nan", False) and not sp.issparse(X)
    compared = estimator if reset or not sp.issparse(X) else without_names(estimator, X)

    def validate() -> Any:
        """Table as scikit-learn checks it."""
        return validate_data(
            compared, X, reset=reset, accept_sparse="csr", dtype=list(KEPT),
            ensure_min_samples=0 if may_be_empty else 1,
            ensure_all_finite="allow-nan" if allows_nan else True,
        )  # fmt: skip

    def reworded(message: str) -> str | None:
        """Text for an error of scikit-learn that quotes data; None for others."""
        texts = QUOTING | (COUNTING if rows_private else {})
        text = next((texts[start] for start in texts if message.startswith(start)), None)
        if text is None:
            return None
        shape = f"{np.ndim(X)} dimension(s)" if rows_private else f"shape {np.shape(X)}"
        columns = named_columns(X, "X") if is_table(X) and "{columns}" in text else ()
        where = in_columns([name for name, column in columns if not _is_numeric(column)])
        return text.format(shape=shape, columns=where, text=advice_on_text(estimator))

    checked = call_unquoted(validate, "X", reworded)
    if reset:
        vars(estimator).update(names_of_words(X))
    return checked


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


def checked_groups(groups: object, X: object, n_rows: int, neighbours: str) -> Labels | None:
    """Label of the group of each row of `X` as given, or None; ValueError for wrong ones."""
    if groups is None:
        return None
    refuse_other_row_order(X, groups)
    labels = as_labels(groups, n_rows)
    # If groups are added or removed, a single group is allowed.
    if neighbours != "add_remove" and not are_several(labels):
        raise ValueError(ONE_GROUP)
    return labels


def refuse_private_number(n_samples: object, neighbours: str) -> None:
    """Raise ValueError if a number of units is given that `neighbours` makes private."""
    if neighbours == "add_remove" and n_samples is not None:
        raise ValueError(
            "n_samples must not be given where neighbours='add_remove': how many there are is "
            "private, and is counted with noise."
        )


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
            given = X if hasattr(X, "shape") else call_unquoted(partial(np.asarray, X), "a chunk")
            refuse_other_kinds(given, "a chunk")
            if not isinstance(given, np.ndarray):
                given = as_numbers(given, "a chunk")
            if len(given.shape) != 2:
                # The shape would show the number of rows, which may be private.
                axes = counted(len(given.shape), "axis")
                raise ValueError(f"a chunk must be two-dimensional, got {axes}.")
            yield given if groups is None else (given, groups)


def check_same_unit(before: PrivacyReport, neighbours: str, *, grouped: bool) -> None:
    """Raise ValueError if a later batch has other units or neighbours than the report `before`."""
    check_same("neighbours", before.neighbours, neighbours)
    if (before.unit == "person") != grouped:
        raise ValueError(
            "All batches of a stream must come with groups, or none: the first one decided what "
            "is protected. fit() starts anew."
        )


def warnings_of_returning_persons(before: PrivacyReport) -> tuple[Warning, ...]:
    """Warning, at the second batch of persons, that nobody can check whose rows it has."""
    # Reports of several batches compose in parallel: the second one has warned.
    if before.unit != "person" or before.composition.kind == "parallel":
        return ()
    return (
        PrivacyLeakWarning(
            "Earlier rows pay for this batch and all later ones, which protects persons who have "
            "rows in one of them alone; no label is kept, so nobody checks it. Where the same "
            "persons come back, fit all of their rows at once, or each batch by fit(), with "
            "remaining(k) of one budget."
        ),
    )


def mark_unit(counts: object, report: PrivacyReport, *, is_whole: bool) -> Any:
    """Mark counts by a fitted vocabulary with the unit and neighbours of its fit, and return them.

    If they are those of all units of that fit (`is_whole`), a public number of these is marked too.
    """
    n_units = report.n_units if is_whole and report.neighbours == "replace_one" else None
    with suppress(AttributeError):
        setattr(counts, UNIT_MARK, UnitMark(report.unit == "person", report.neighbours, n_units))
    return counts


WORDS = "_sktensor_dp_words"  # attribute of counts: the column of each word


def names_of_words(X: object) -> dict[str, NDArray[np.object_]]:
    """``feature_names_in_`` of counts that a vectorizer marked with their words; else empty."""
    columns = getattr(X, WORDS, None)
    if columns is None:
        return {}
    return {"feature_names_in_": np.array(sorted(columns, key=columns.get), dtype=object)}


def without_names(estimator: Any, X: object) -> Any:
    """Estimator to validate counts by: a copy without names, of which scikit-learn would warn.

    ValueError if they count other words than the model was fitted to.
    """
    if (names := vars(estimator).get("feature_names_in_")) is None:
        return estimator
    if not np.array_equal(names_of_words(X).get("feature_names_in_", names), names):
        raise ValueError(
            "X counts other words than this model was fitted to. Count those of the vocabulary "
            "that it was fitted with: a run of the command writes words.model beside "
            "topics.model."
        )
    compared = estimator._validation_copy()
    del compared.feature_names_in_
    return compared


def check_counted_alike(
    X: object, neighbours: str, n_units: int | None = None, *, grouped: bool
) -> None:
    """Raise ValueError if `X` has the mark of a fit with other units or neighbours.

    Also for another public number of units than `n_units`, where that is known.
    """
    mark = getattr(X, UNIT_MARK, UnitMark(grouped, neighbours, n_units=None))
    if mark.persons != grouped:
        raise ValueError(
            "groups must be given to both fits or to none: X was counted by a vocabulary fitted "
            f"{'with' if mark.persons else 'without'} them, and together both protect neither "
            "rows nor persons. If X holds other data, pass X.copy()."
        )
    if mark.neighbours != neighbours:
        raise ValueError(
            f"neighbours must be {mark.neighbours!r}, as in the fit of the vocabulary that X was "
            f"counted by; got {neighbours!r}. If X holds other data, pass X.copy()."
        )
    if n_units is not None and mark.n_units not in (None, n_units):
        raise ValueError(
            "groups must be the same for both fits: X was counted by a vocabulary of "
            f"{counted(mark.n_units, 'group')}, and this fit has {n_units:,}, so that together "
            "they protect neither. If X holds other data, pass X.copy()."
        )


def check_same(name: str, before: object, now: object) -> None:
    """Raise ValueError if parameter `name` was `before` in the first batch and is `now` another."""
    if before != now:
        raise ValueError(
            f"{name} must be as in the first batch, {before!r}, which was charged for; got "
            f"{now!r}. fit() starts anew."
        )
