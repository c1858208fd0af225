"""Errors about data that say its type and shape and show none of its entries."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["data_free_errors"]

# How messages that quote entries begin, and what is said in their place.
QUOTING = {
    "could not convert": "X must hold numbers; it holds values that are none.",
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
    ValueError: X must hold numbers; it holds values that are none.
    """
    try:
        yield
    except ValueError as error:
        for beginning, message in QUOTING.items():
            if str(error).startswith(beginning):
                raise ValueError(message.format(shape=np.shape(X))) from None
        raise
