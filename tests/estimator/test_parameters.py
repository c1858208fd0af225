"""Validation of constructor parameters: what is accepted, and what errors say."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from internals import check_own_parameters

from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.estimator.parameters import InstanceOf, Number, OneOf, check_parameters
from sktensor_dp.privacy.accountant import BudgetAccountant


@pytest.mark.parametrize("value", [0.5, 1, np.float64(0.5), np.float32(0.5), np.int64(1)])
def test_numbers_of_any_kind_are_accepted(value: object) -> None:
    assert Number(0, 2).accepts(value)


@pytest.mark.parametrize(
    "value",
    [math.nan, np.nan, True, np.True_, "1", None, 1j, [1.0], np.array([1.0]), np.array(1.0)],
)
def test_what_is_no_number_is_refused(value: object) -> None:
    assert not Number().accepts(value)


@pytest.mark.parametrize("value", [1.0, np.float64(1.0), True, "1", math.inf])
def test_integers_have_to_be_integers(value: object) -> None:
    constraint = Number(0, math.inf, integer=True)
    assert not constraint.accepts(value)
    assert constraint.accepts(1)
    assert constraint.accepts(np.int32(1))


@pytest.mark.parametrize(
    ("closed", "low", "high"),
    [
        ("both", True, True),
        ("left", True, False),
        ("right", False, True),
        ("neither", False, False),
    ],
)
def test_ends_of_intervals(closed: str, low: bool, high: bool) -> None:
    constraint = Number(0, 1, closed=closed)
    assert constraint.accepts(0.0) is low
    assert constraint.accepts(1.0) is high
    assert constraint.accepts(0.5)
    assert not constraint.accepts(-0.01)
    assert not constraint.accepts(1.01)
    shown = str(constraint)
    assert shown == f"a number in {'[' if low else '('}0, 1{']' if high else ')'}"


def test_intervals_say_what_would_be_right() -> None:
    assert str(Number(0, math.inf, closed="right")) == "a number in (0, inf]"
    assert str(Number(1, 9, integer=True)) == "an int in [1, 9]"
    assert str(Number(math.inf, math.inf)) == "inf"


def test_one_of() -> None:
    constraint = OneOf("auto", None)
    assert constraint.accepts("auto")
    assert constraint.accepts("".join(["au", "to"]))
    assert constraint.accepts(None)
    for wrong in ("AUTO", "", 0, False, np.array(["auto"])):
        assert not constraint.accepts(wrong)
    assert str(constraint) == "'auto' or None"


def test_instance_of() -> None:
    constraint = InstanceOf(BudgetAccountant, np.random.RandomState)
    assert constraint.accepts(BudgetAccountant())
    assert not constraint.accepts(BudgetAccountant)
    assert not constraint.accepts(None)
    assert str(constraint) == "an instance of BudgetAccountant or RandomState"


def test_alternatives_and_the_error() -> None:
    constraints = {"rank": [Number(1, 5, integer=True), OneOf("auto")], "other": [OneOf(None)]}
    for value in (1, 5, "auto"):
        check_parameters(SimpleNamespace(rank=value, other=None), constraints)
    with pytest.raises(
        ValueError,
        match=r"The 'rank' parameter of SimpleNamespace must be an int in \[1, 5\] or .auto.\. Got",
    ):
        check_parameters(SimpleNamespace(rank=0, other=None), constraints)
    with pytest.raises(ValueError, match="'other'"):
        check_parameters(SimpleNamespace(rank=1, other=1), constraints)


class Estimator(PrivateEstimatorMixin):
    """An estimator with nothing but the parameters all of them share."""

    def __init__(self, **changes: object) -> None:
        self.epsilon: object = 1.0
        self.delta: object = 1e-6
        self.accountant: object = None
        self.random_state: object = None
        self.verbose: object = 0
        vars(self).update(changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epsilon": math.inf},
        {"epsilon": 1},
        {"delta": 0},
        {"accountant": BudgetAccountant()},
        {"random_state": 0},
        {"random_state": np.random.RandomState(0)},
        {"verbose": True},
        {"verbose": 3},
    ],
)
def test_shared_parameters_accept(changes: dict[str, object]) -> None:
    check_own_parameters(Estimator(**changes))
