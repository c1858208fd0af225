"""Data with entries that no error may hold, and a look at all that an error holds."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

TEXT, NUMBER = "SECRET-4711", 987654321.125
# Parts of them, in whatever way they are written.
SHOWN = ("SECRET", "4711", "9876543", "9.87654", "9.88e+08", "SE'", "S3CR")


class Confiding:
    """An entry that tells itself when it is read."""

    def __float__(self) -> float:
        raise ValueError(f"no number: {TEXT}")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        error = RuntimeError(TEXT)
        error.add_note(TEXT)
        raise error from ValueError(TEXT)


def fail(*args: Any, **kwargs: Any) -> Any:
    try:
        raise KeyError(TEXT)
    except KeyError:
        raise ZeroDivisionError(f"cannot divide {TEXT}") from None


def tables() -> dict[str, Any]:
    """Tables of 30 rows of which one holds a secret that is no entry of a table."""
    plain = np.ones((30, 3))
    mixed = plain.astype(object)
    mixed[7, 1] = TEXT
    told = plain.astype(object)
    told[7, 1] = Confiding()
    stored = sp.csr_array(np.eye(3))
    stored.data = np.array([1, TEXT, 2], dtype=object)
    ragged = [[1.0, 2.0, 3.0], [NUMBER, 2.0]]
    return {
        "object": mixed,
        "sparse": stored,
        "list": mixed.tolist(),
        "texts": mixed.astype(str),
        "bytes": mixed.astype("S"),
        "frame": pd.DataFrame(mixed, columns=list("abc")),
        "telling": told,
        "telling whole": Confiding(),
        "ragged": ragged,
        "scalar": np.array(NUMBER),
        "row": np.full(3, NUMBER),
        "complex": np.full((30, 3), 1j * NUMBER),
        "series": pd.Series([NUMBER] * 4),
        "cube": np.full((3, 3, 3), NUMBER),
        "dates": np.full((30, 3), np.datetime64(4711, "D")).astype(object),
    }


def columns() -> dict[str, Any]:
    """Targets of 60 rows."""
    mixed = [*range(59), TEXT]
    return {
        "list": mixed,
        "object": np.array(mixed, dtype=object),
        "texts": np.array(mixed, dtype=str),
        "series": pd.Series(mixed),
        "telling": [*range(59), Confiding()],
        "wide": np.full((60, 2), NUMBER),
        "scalar": NUMBER,
        "none": [NUMBER],
    }


def held_by(error: BaseException | None) -> str:
    """All that an error and those behind it hold, except the frames that they passed."""
    told, seen = [], set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            told += [str(one), repr(one), repr(one.args), repr(vars(one))]
            told += [repr(getattr(one, name, "")) for name in ("object", "doc", "filename", "name")]
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return "\n".join(told)


def shows_nothing(call: Callable[[], Any], capfd: Any) -> BaseException | None:
    """Make a call, assert that neither its error nor anything it says holds a secret."""
    error: BaseException | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as raised:
            error = raised
    told = [str(one.message) + repr(one.message) for one in caught] + list(capfd.readouterr())
    told.append(held_by(error))
    assert not [part for part in SHOWN if part in "\n".join(told)], f"{error!r}\n{told}"
    if error is not None:
        # Whatever is behind an error has frames of its own, with the data as others read it.
        assert error.__context__ is None
        assert error.__cause__ is None
    return error
