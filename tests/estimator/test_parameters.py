"""Validation of constructor parameters: what is accepted, and what errors say."""

import math
import warnings

import numpy as np
import pytest

from sktensor_dp import (
    PrivacyLeakWarning,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    check_inputs,
)
from sktensor_dp.checks.parameters import InstanceOf, Number, OneOf
from sktensor_dp.model_selection.pipeline_steps import check_fractions
from sktensor_dp.privacy.accountant import BudgetAccountant

NO_NUMBERS = [math.nan, np.nan, True, np.True_, "1", None, 1j, [1.0], np.ones(1), np.array(1.0)]
BUDGET, STATE = BudgetAccountant(), np.random.RandomState(0)
CONSTRAINTS = [
    (Number(0, 2), [0.5, 1, np.float64(0.5), np.float32(0.5), np.int64(1)], NO_NUMBERS,
     "a number in [0, 2]"),
    (Number(), [0, -1e300], NO_NUMBERS, "a number in (-inf, inf]"),
    (Number(0, math.inf, integer=True), [1, np.int32(1)], [1.0, np.float64(1), True, "1", math.inf],
     "an int in [0, inf]"),
    (Number(0, 1), [0.0, 0.5, 1.0], [-0.01, 1.01], "a number in [0, 1]"),
    (Number(0, 1, closed="left"), [0.0, 0.5], [-0.01, 1.0], "a number in [0, 1)"),
    (Number(0, 1, closed="right"), [0.5, 1.0], [0.0, 1.01], "a number in (0, 1]"),
    (Number(0, 1, closed="neither"), [0.5], [0.0, 1.0], "a number in (0, 1)"),
    (Number(0, math.inf, closed="right"), [math.inf], [0.0], "a number in (0, inf]"),
    (Number(1, 9, integer=True), [1, 9], [0, 10, 10**400], "an int in [1, 9]"),
    (Number(math.inf, math.inf), [math.inf], [1e308], "inf"),
    (OneOf("auto", None), ["auto", "".join(["au", "to"]), None],
     ["AUTO", "", 0, False, np.array(["auto"])], "'auto' or None"),
    (InstanceOf(BudgetAccountant, np.random.RandomState), [BUDGET, STATE],
     [BudgetAccountant, None], "an instance of BudgetAccountant or RandomState"),
]  # fmt: skip


COUNTS = np.random.default_rng(0).poisson(1.0, (200, 4))
OF_DELTA = {
    "public": (lambda delta, **options: topics(delta, **options).fit(COUNTS), 200),
    "groups": (
        lambda delta, **options: topics(delta, **options).fit(COUNTS, groups=np.arange(200) // 2),
        100,
    ),
    "counted": (
        lambda delta, **options: topics(delta, neighbours="add_remove", **options).fit(COUNTS), 200,
    ),
    "counted stream": (
        lambda delta, **options: PrivateTensorPowerMethod(
            1, data_norm=9.0, perturbation="stream", max_iter=1, epsilon=99.0, delta=delta,
            neighbours="add_remove", **options,
        ).fit_chunks([COUNTS] * 3), 200,
    ),
    "search": (
        lambda delta, **options: PrivateSearchCV(
            topics(1e-9), {}, n_trials=1, epsilon=99.0, delta=delta, **options
        ).fit(COUNTS), 200,
    ),
    "ratings": (
        lambda delta, **options: PrivateCPCompletion(
            1, bounds=(0, 1), delta=delta, **options
        ).fit(np.argwhere(np.ones((10, 20))), np.ones(200)), 200,
    ),
}  # fmt: skip


def topics(delta, **options):
    return PrivateSpectralLDA(1, epsilon=99.0, delta=delta, **options)


@pytest.mark.parametrize("way", OF_DELTA)
def test_a_delta_above_one_in_n_warns(way):
    fit, n = OF_DELTA[way]
    budget = BudgetAccountant(1e3, 0.9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(0.5 / n)
        assert [one for one in caught if "is above 1 in" in str(one.message)] == []
        fit(2 / n)
    told = [str(one.message) for one in caught if "is above 1 in" in str(one.message)]
    assert len(told) == 1
    if "counted" not in way:
        assert f"above 1 in {n}:" in told[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", PrivacyLeakWarning)
        with pytest.raises(PrivacyLeakWarning, match="above 1 in"):
            fit(2 / n, accountant=budget)
    assert (budget.entries == ()) == ("counted" not in way)  # a released count is paid for


@pytest.mark.parametrize(("constraint", "right", "wrong", "said"), CONSTRAINTS)
def test_a_constraint_accepts_and_describes(constraint, right, wrong, said):
    assert [value for value in right if not constraint.accepts(value)] == []
    assert [value for value in wrong if constraint.accepts(value)] == []
    assert str(constraint) == said


COMPLETION = PrivateCPCompletion(0, bounds=(0, 1), epsilon=math.inf, shape=(3, 3, 3))
ROWS = np.argwhere(np.ones((3, 3, 3)))
WRONG_ITEMS = {
    "split": (lambda: BudgetAccountant().split({"a": 0.5}), r"such as \[0.3, .*got {'a': 0.5}"),
    "context": (
        lambda: COMPLETION.fit(ROWS, np.full(27, 0.5)).predict_rows(0, 1, context=[1]),
        r"context must map each further mode to a row, as {2: 0}; got \[1\]",
    ),
    "shape": (lambda: COMPLETION.forecast(10, 3), "shape must be a number of rows for each mode"),
    "matches": (lambda: check_inputs({"a": [True], "b": [1]}), "that of 'b' is none"),
    "fractions": (lambda: check_fractions({"a": -1}, {"": 0}), "must be None; got {'a': -1}"),
}


@pytest.mark.parametrize("name", WRONG_ITEMS)
def test_the_wrong_item_of_a_dict_or_list_is_named(name):
    call, message = WRONG_ITEMS[name]
    with pytest.raises(ValueError, match=message):
        call()
