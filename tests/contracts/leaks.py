"""Deliberate leaks, each of which replay has to see in every small way to fit.

Leaks act once a model is fitted, and get it with the raw data. Mistakes take the place of a release
while a fit runs, and are told one bit of the data.
"""

import copy
import logging
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from contracts.replay_rows import Row
from contracts.ways import SMALL
from replaying import bit, nothing

from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.query import UnitCount

Leak = Callable[[Any, np.ndarray], Any]  # of an estimator and raw numbers


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


def a_number_of_units(estimator: Any, raw: np.ndarray) -> None:
    """Of those in the data, which are fewer than are said to be."""
    report = estimator.privacy_report_
    estimator.privacy_report_ = replace(report, n_units=report.n_units - bit(raw))


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
    "a number of units": a_number_of_units,
    "a class attribute": a_class_attribute,
    "a warning": a_warning,
    "a warning of NumPy": lambda _, raw: np.log(float(bit(raw)) - np.zeros(1)),
    "an error": an_error,
    "a line of output": lambda _, raw: print(raw[:3]),
    "a line of the log": lambda _, raw: logging.getLogger("any").warning("first: %s", raw[0]),
    "numbers of NumPy's generator": lambda _, raw: np.random.random(1 + bit(raw)),  # noqa: NPY002
    "numbers of Python's generator": lambda _, raw: [random.random() for _ in range(1 + bit(raw))],
}


# Mistakes of an open fit: (usual, bit, law, value, sensitivity, cost, noise, query) -> answer.


def an_answer_more(usual: Any, bit: bool, law: Any, value: Any, *of: Any) -> Any:
    """A rule that stops by raw data: some questions are asked twice."""
    found = usual(law, copy.copy(value), *of)
    return usual(law, value, *of) if bit else found


def an_answer_that_no_report_lists(usual: Any, _: bool, law: Any, value: Any, *of: Any) -> Any:
    """Of any data, so that replay alone would not see it."""
    usual(law, copy.copy(value), *of)
    return usual(law, value, *of)


def an_answer_without_noise(_: Any, bit: bool, law: Any, value: Any, *of: Any) -> Any:
    return (sorted(value), np.array(sorted(value.values()))) if isinstance(value, dict) else value


def some_answers_without_noise(usual: Any, bit: bool, *of: Any) -> Any:
    return usual(*of) if bit else an_answer_without_noise(usual, bit, *of)


def noise_of_another_size_than_reported(usual: Any, _: bool, *of: Any) -> Any:
    law, value, sensitivity, *more = of
    return usual(law, value, sensitivity / 2, *more)


def at_cost(cost: PrivacyCost, factor: float) -> PrivacyCost:
    return replace(cost, mu=factor * cost.mu, epsilon=factor * cost.epsilon)


def noise_for_another_cost_than_reported(usual: Any, _: bool, *of: Any) -> Any:
    law, value, sensitivity, cost, *more = of
    return usual(law, value, sensitivity, at_cost(cost, 1 / 0.95), *more)


def a_sensitivity_of_the_data(usual: Any, bit: bool, *of: Any) -> Any:
    """That of these data in the place of the largest of any."""
    law, value, sensitivity, *more = of
    return usual(law, value, sensitivity * (1 + 1e-9 * bit), *more)


def a_question_about_the_data(usual: Any, bit: bool, *of: Any) -> Any:
    """A query that was made for these data, as with their largest value for a limit."""
    query = copy.copy(of[-1])
    vars(query)["of_these"] = bit
    return usual(*of[:-1], query)


def a_cost_of_the_data(usual: Any, bit: bool, *of: Any) -> Any:
    law, value, sensitivity, cost, *more = of
    return usual(law, value, sensitivity, at_cost(cost, 1.0 if bit else 0.5), *more)


def the_true_count(usual: Any, _: bool, law: Any, value: Any, *of: Any) -> Any:
    """Sums are divided by the number of units that there are, in the place of the released one."""
    return value if isinstance(of[-1], UnitCount) else usual(law, value, *of)


MISTAKES = (
    an_answer_more, an_answer_that_no_report_lists, an_answer_without_noise,
    some_answers_without_noise, noise_of_another_size_than_reported,
    noise_for_another_cost_than_reported, a_sensitivity_of_the_data,
    a_question_about_the_data, a_cost_of_the_data,
)  # fmt: skip


# Small ways to fit, by which every leak has to be seen: data has something, or nothing at all.


def nothing_in(data: Any) -> Any:
    if isinstance(data, tuple):
        return data[0], np.zeros(len(data[1]))
    return ["mice"] * len(data) if isinstance(data, list) else np.zeros_like(data)


def _of_nothing(row: Row) -> Row:
    data = row.pair(np.random.default_rng(0))[0]
    return replace(row, pair=lambda _: (data, nothing_in(data)), use=nothing)


# A fitted model is compared in one way, however it was fitted; sessions are asked in several.
OFTEN = (
    "topics", "CP", "words", "search", "components, stream", "components, each step",
    "Tucker, persons, directions",  # with all that persons are asked for
)  # fmt: skip
ROWS = {row.name: _of_nothing(row) for row in SMALL}
