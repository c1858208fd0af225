"""Errors about data that say its type and shape and show none of its entries."""

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sktensor_dp.estimator.parameters import Number

__all__ = ["check_sizes", "check_source", "data_free_errors"]

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


@contextlib.contextmanager
def data_free_errors(X: Any) -> Iterator[None]:
    """Replace messages of validation that quote entries of the data.

    Parameters
    ----------
    X : object
        The data that is validated inside the block.

    Raises
    ------
    ValueError
        Where the block raises one, naming no entry.

    Examples
    --------
    >>> with data_free_errors(["secret"]):
    ...     float("secret")
    Traceback (most recent call last):
    ...
    ValueError: X must hold numbers; it holds values that are none. Count the words ...
    """
    try:
        yield
    except ValueError as error:
        for beginning, message in QUOTING.items():
            if str(error).startswith(beginning):
                raise ValueError(message.format(shape=np.shape(X))) from None
        raise


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
            raise ValueError(f"{name} must be an int >= 1, got {value!r}.")
