"""Deliberate leaks, each of which replay has to see in every small way to fit.

They act once a model is fitted, and get it with the raw data. Those of an open fit, which change
what is asked and answered, are in `internals`.
"""

import logging
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from contracts.replay_rows import SMALL, Row, named
from ways_to_fit import WAYS

Leak = Callable[[Any, np.ndarray], Any]  # of an estimator and raw numbers


def raw_numbers(data: Any) -> np.ndarray:
    """Numbers of a fit's data in one row: values of entries, lengths of texts."""
    if isinstance(data, tuple):
        return np.asarray(data[1], dtype=float)
    return np.array([len(text) for text in data], float) if isinstance(data, list) else data.ravel()


def bit(raw: np.ndarray) -> bool:
    """One bit of the data."""
    return bool(np.ptp(raw[:9]) > 0)


# Of an attribute all bits are compared, the memory it lies in, and what pickles keep.


def kept(of: Callable[[np.ndarray], Any]) -> Leak:
    """Keep something of raw numbers in an attribute."""
    return lambda estimator, raw: setattr(estimator, "_kept", of(raw))


def array_of(estimator: Any) -> tuple[str, np.ndarray]:
    """Name and value of some fitted array, which a leak may change."""
    for name, value in vars(estimator).items():
        if isinstance(value, np.ndarray) and value.dtype == float and value.size:
            return name, value
    return "own_", np.zeros(3)


def last_digits(estimator: Any, raw: np.ndarray) -> None:
    name, value = array_of(estimator)
    setattr(estimator, name, value + 1e-12 * np.clip(raw, -9, 9).sum())


def memory_before_an_array(estimator: Any, raw: np.ndarray) -> None:
    """The array is right; the memory before it was not overwritten."""
    name, value = array_of(estimator)
    whole = np.concatenate([raw[:8], value.ravel()])
    setattr(estimator, name, whole[-value.size :].reshape(value.shape))


def the_order_of_attributes(estimator: Any, raw: np.ndarray) -> None:
    for name in sorted(("a_", "b_"), reverse=bit(raw)):
        setattr(estimator, name, 0)


def what_is_shared(raw: np.ndarray) -> list[list[float]]:
    """Two equal lists: the pickle tells whether they are one."""
    one = [1.5]
    return [one, one if bit(raw) else [1.5]]


def a_note_in_the_report(estimator: Any, raw: np.ndarray) -> None:
    report = estimator.privacy_report_
    estimator.privacy_report_ = replace(report, notes=(*report.notes, str(raw[0])))


def a_class_attribute(estimator: Any, raw: np.ndarray) -> None:
    type(estimator).largest_seen = float(np.abs(raw).max())


def a_warning(_: Any, raw: np.ndarray) -> None:
    warnings.warn(f"the largest is {np.abs(raw).max():g}", UserWarning, stacklevel=1)


def an_error(_: Any, raw: np.ndarray) -> None:
    if bit(raw):
        raise ValueError("a value is not zero")


LEAKS: dict[str, Leak] = {
    "some numbers": kept(lambda raw: raw[:5]),
    "a number in a dictionary": kept(lambda raw: {"of": [{"nnz": 1 + int(bit(raw))}]}),
    "order of memory": kept(lambda raw: np.zeros((3, 4), order="F" if bit(raw) else "C")),
    "a type": kept(lambda raw: np.zeros(3, np.float32 if bit(raw) else np.float64)),
    "a sign of zero": kept(lambda raw: np.zeros(3) * (-1.0 if bit(raw) else 1.0)),
    "what is shared": kept(what_is_shared),
    "a function": kept(lambda raw: lambda: raw),
    "last digits": last_digits,
    "memory before an array": memory_before_an_array,
    "the order of attributes": the_order_of_attributes,
    "a note in the report": a_note_in_the_report,
    "a class attribute": a_class_attribute,
    "a warning": a_warning,
    "a warning of NumPy": lambda _, raw: np.log(float(bit(raw)) - np.zeros(1)),
    "an error": an_error,
    "a line of output": lambda _, raw: print(raw[:3]),
    "a line of the log": lambda _, raw: logging.getLogger("any").warning("first: %s", raw[0]),
    "numbers of NumPy's generator": lambda _, raw: np.random.random(1 + bit(raw)),  # noqa: NPY002
    "numbers of Python's generator": lambda _, raw: [random.random() for _ in range(1 + bit(raw))],
}


# Small ways to fit, by which every leak has to be seen: data has something, or nothing at all.


def nothing_in(data: Any) -> Any:
    if isinstance(data, tuple):
        return data[0], np.zeros(len(data[1]))
    return ["mice"] * len(data) if isinstance(data, list) else np.zeros_like(data)


def _of_nothing(name: str) -> Row:
    data = WAYS[name].data
    return replace(named(SMALL, name), pair=lambda _: (data, nothing_in(data)))


# A fitted model is compared in one way, however it was fitted; curators are asked in many.
ROWS = [
    _of_nothing(name)
    for name in (
        "topics", "components, stream", "words", "search", "CPCompletion, sufficient_statistics",
        "CPCompletion, slices", "topics, moment tensor", "components", "components, iteration",
        "CPCompletion, input", "CPCompletion, gradient", "CPCompletion, output",
        "TuckerCompletion, slices with components",
    )
]  # fmt: skip
FEW = ROWS[:6]
