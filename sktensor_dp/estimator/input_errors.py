"""Errors about data that say its type and shape and show none of its entries."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from sktensor_dp.estimator.input_kinds import named, refuse_other_kinds
from sktensor_dp.estimator.parameters import Number, shown
from sktensor_dp.statistics.reading import read

__all__ = ["check_sizes", "check_source", "checked_table"]

# How messages that quote entries begin, and what is said in their place.
QUOTING = {
    "could not convert": (
        "X must hold numbers; it holds values that are none. Count the words of texts first, for "
        "example with PrivateCountVectorizer."
    ),
    "Complex data not supported": "Complex data not supported: X must hold counts.",
    "Expected 2D": (
        "Expected 2D array, got X of shape {shape}. Reshape your data: X must have one row per "
        "document and one column per word."
    ),
}


def checked_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Rows and columns of numbers, by scikit-learn's validation on behalf of an estimator."""
    refuse_other_kinds(X, "X")
    kinds = [np.float64, np.float32, np.int64]

    def validate() -> Any:
        return validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=kinds)

    def told(quoting: str) -> str | None:
        for beginning, message in QUOTING.items():
            if quoting.startswith(beginning):
                return message.format(shape=np.shape(X)) if "{" in message else message
        return None

    return read(lambda: named(validate, "X"), "X", told)


def check_source(source: Iterable[Any], n_samples: Any, n_features: Any) -> None:
    """Refuse a source of chunks that can be read once, or has no size.

    Parameters
    ----------
    source : iterable
        Chunks, to be iterated over repeatedly.
    n_samples, n_features : object
        Announced rows in all chunks together, and columns.

    Raises
    ------
    TypeError
        If iterating over `source` uses it up.
    ValueError
        If a number is not an int >= 1.

    Examples
    --------
    >>> check_source([[1]], 1, 1)
    """
    if iter(source) is source:
        raise TypeError(
            f"source must be re-iterable (a list, or an object whose __iter__ starts anew); "
            f"got a {type(source).__name__}, which can be read once."
        )
    check_sizes(n_samples=n_samples, n_features=n_features)


def check_sizes(**sizes: Any) -> None:
    """Refuse numbers of samples or features that are none.

    Parameters
    ----------
    **sizes : object
        By name; public.

    Raises
    ------
    ValueError
        If one is not an int >= 1.

    Examples
    --------
    >>> check_sizes(n_samples=0)
    Traceback (most recent call last):
    ...
    ValueError: n_samples must be an int >= 1, got 0.
    """
    for name, value in sizes.items():
        if not Number(1, math.inf, integer=True).accepts(value):
            raise ValueError(f"{name} must be an int >= 1, got {shown(value)}.")
