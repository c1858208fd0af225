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

Leak = Callable[[Any, Any], None]

# After a fit. Of an attribute all bits are compared, memory it lies in, and what pickles keep.


def raw_numbers(data: Any) -> np.ndarray:
    """Numbers of a fit's data in one row: values of entries, lengths of texts."""
    if isinstance(data, tuple):
        return np.asarray(data[1], dtype=float)
    return np.array([len(text) for text in data], float) if isinstance(data, list) else data.ravel()


def bit(raw: np.ndarray) -> bool:
    """One bit of the data."""
    return bool(np.ptp(raw[:9]) > 0)


def array_of(estimator: Any) -> tuple[str, np.ndarray]:
    """Name and value of some fitted array, which a leak may change."""
    for name, value in vars(estimator).items():
        if isinstance(value, np.ndarray) and value.dtype == float and value.size:
            return name, value
    return "own_", np.zeros(3)


def last_digits(estimator: Any, data: Any) -> None:
    name, value = array_of(estimator)
    setattr(estimator, name, value + 1e-12 * np.clip(raw_numbers(data), -9, 9).sum())


def a_private_attribute(estimator: Any, data: Any) -> None:
    estimator._last_seen = raw_numbers(data)[:5]


def the_source(estimator: Any, data: Any) -> None:
    estimator._raw_data = data


def a_number_in_a_dictionary(estimator: Any, data: Any) -> None:
    estimator.fitted_on_ = {
        "of": [{"nnz": int(raw_numbers(data).sum() > 0) + int(bit(raw_numbers(data)))}]
    }


def how_many_there_are(estimator: Any, data: Any) -> None:
    estimator.n_observed_ = 1 + int(bit(raw_numbers(data)))


def iterations(estimator: Any, data: Any) -> None:
    estimator.n_iter_ = int(bit(raw_numbers(data)))


def a_note_in_the_report(estimator: Any, data: Any) -> None:
    report = estimator.privacy_report_
    estimator.privacy_report_ = replace(report, notes=(*report.notes, str(raw_numbers(data)[0])))


def a_buffer(estimator: Any, data: Any) -> None:
    """The array is right; the memory before it was not overwritten."""
    name, value = array_of(estimator)
    whole = np.concatenate([raw_numbers(data)[:8], value.ravel()])
    setattr(estimator, name, whole[-value.size :].reshape(value.shape))


def strides(estimator: Any, data: Any) -> None:
    """The same numbers, in an order of memory that a value decides."""
    order = "F" if bit(raw_numbers(data)) else "C"
    estimator.table_ = np.array(np.zeros((3, 4)), order=order)


def a_type(estimator: Any, data: Any) -> None:
    estimator.zeros_ = np.zeros(3, np.float32 if bit(raw_numbers(data)) else np.float64)


def a_sign_of_zero(estimator: Any, data: Any) -> None:
    estimator.zeros_ = np.zeros(3) * (-1.0 if bit(raw_numbers(data)) else 1.0)


def the_order_of_attributes(estimator: Any, data: Any) -> None:
    for name in sorted(("a_", "b_"), reverse=bit(raw_numbers(data))):
        setattr(estimator, name, 0)


def what_is_shared(estimator: Any, data: Any) -> None:
    """Two equal lists: the pickle tells whether they are one."""
    one = [1.5]
    estimator.pair_ = [one, one if bit(raw_numbers(data)) else [1.5]]


def a_class_attribute(estimator: Any, data: Any) -> None:
    type(estimator).largest_seen = float(np.abs(raw_numbers(data)).max())


def a_function(estimator: Any, data: Any) -> None:
    estimator.score_of_ = lambda: data


def a_warning(estimator: Any, data: Any) -> None:
    largest = np.abs(raw_numbers(data)).max()
    warnings.warn(f"the largest is {largest:g}", UserWarning, stacklevel=1)


def a_warning_of_numpy(estimator: Any, data: Any) -> None:
    np.log(float(bit(raw_numbers(data))) - np.zeros(1))


def an_error(estimator: Any, data: Any) -> None:
    if bit(raw_numbers(data)):
        raise ValueError("a value is not zero")


def a_line_of_output(estimator: Any, data: Any) -> None:
    print(raw_numbers(data)[:3])


def a_line_of_the_log(estimator: Any, data: Any) -> None:
    logging.getLogger("any").warning("first: %s", raw_numbers(data)[0])


def numbers_of_a_generator(estimator: Any, data: Any) -> None:
    np.random.random(1 + int(bit(raw_numbers(data))))  # noqa: NPY002


def numbers_of_another_generator(estimator: Any, data: Any) -> None:
    for _ in range(1 + int(bit(raw_numbers(data)))):
        random.random()


def own_levels(estimator: Any, data: Any) -> None:
    """Of units that are slices: how many there are, and their levels."""
    units = data[0][:, 0] if isinstance(data, tuple) else np.arange(len(data))
    estimator.levels_ = [len(set(units.tolist())), raw_numbers(data)[:2].mean()]


LEAKS: tuple[Leak, ...] = (
    last_digits, a_private_attribute, the_source, a_number_in_a_dictionary, how_many_there_are,
    iterations, a_note_in_the_report, a_buffer, strides, a_type, a_sign_of_zero,
    the_order_of_attributes, what_is_shared, a_class_attribute, a_function, a_warning,
    a_warning_of_numpy, an_error, a_line_of_output, a_line_of_the_log, numbers_of_a_generator,
    numbers_of_another_generator, own_levels,
)  # fmt: skip


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
