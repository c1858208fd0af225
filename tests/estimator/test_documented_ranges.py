"""What the documentation calls a range is what is accepted, to both ends.

A number at an end of its range either makes a whole fit or, where it is wrong only together
with public numbers of the data, is refused before anything is charged. A number just outside is
refused by its name. Nothing is charged for an error.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cases import Case, plain
from internals import constraints_of

from sktensor_dp import BudgetAccountant
from sktensor_dp.checks.parameters import Number

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:n_components=.* exceeds:UserWarning"),
]

INF = math.inf
# Counts of steps: a fit takes as long as they are many, and needs no memory for them.
STEPS = {"max_iter", "n_refinements", "n_restarts", "n_trials"}
MANY = 12
# One model for each range, and for each perturbation of completions.
CASES: dict[str, tuple[Case, dict[str, Any]]] = {
    name: (plain(name, payer="none"), {})
    for name in (
        *("topics", "topics, pure", "topics, word space", "topics, one a document", "components"),
        *("components, pure", "components, all dimensions", "components, each step"),
        *("components, stream", "components, tensor", "mixtures"),
        *("words", "search", "CP", "CP, values", "CP, gradients", "CP, output", "CP, persons"),
        *("Tucker, values", "Tucker, output"),
    )
}
for _name in ("CP, values", "CP, output", "Tucker, values"):
    CASES[f"{_name}, without noise"] = (plain(_name, payer="none"), {"epsilon": INF})


def numeric(cls: Any) -> Iterator[tuple[str, list[Number]]]:
    """Parameters that are numbers, with the ranges of which each may be in one."""
    for name, alternatives in constraints_of(cls).items():
        ranges = [one for one in alternatives if isinstance(one, Number)]
        if ranges:
            yield name, ranges


def ends(name: str, one: Number) -> Iterator[float]:
    """Values at the ends of a range; of an open end the one closest to it."""
    low, high = one.low, one.high
    if math.isfinite(low):
        step = 1 if one.integer else math.ulp(low)
        yield int(low) if one.integer else low + step * (one.closed not in ("both", "left"))
    if name in STEPS:
        yield MANY
    elif math.isfinite(high):
        closed = one.closed in ("both", "right")
        yield int(high) if one.integer else (float(high) if closed else math.nextafter(high, -INF))
    elif one.integer:
        yield 10**9
    else:
        yield from (1.7e308, *([INF] if one.closed in ("both", "right") else []))


def outside(one: Number) -> Iterator[float]:
    if math.isfinite(one.low):
        yield int(one.low) - 1 if one.integer else math.nextafter(one.low, -INF)
    if math.isfinite(one.high):
        yield int(one.high) + 1 if one.integer else math.nextafter(one.high, INF)
    yield math.nan


# What all completions share is tried with the fastest one.
SLOW, OWN = ("Tucker", "CP, "), ("rank", "epsilon", "delta", "max_iter")


def within(case: str) -> Iterator[tuple[str, float]]:
    for name, ranges in numeric(CASES[case][0].of.kind):
        if name in OWN or not case.startswith(SLOW):
            yield from ((name, value) for one in ranges for value in ends(name, one))


def beyond(case: str) -> Iterator[tuple[str, float]]:
    for name, ranges in numeric(CASES[case][0].of.kind):
        for value in (value for one in ranges for value in outside(one)):
            if not any(other.accepts(value) for other in ranges):
                yield name, value


def fit(name: str, **parameters: Any) -> Any:
    case, options = CASES[name]
    return case.fit(case.build(**{**options, **parameters}), case.draw())


@pytest.mark.filterwarnings("ignore:.*does not protect:UserWarning")
@pytest.mark.filterwarnings("ignore:delta .* is above 1 in:sktensor_dp.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "case",
    [pytest.param(one, marks=[pytest.mark.nightly] * (one == "CP, persons")) for one in CASES],
)
def test_numbers_at_the_ends_of_their_ranges_fit_or_cost_nothing(case):
    assert [(*at, found) for at in within(case) if (found := fault_within(case, *at))] == []


def fault_within(case: str, name: str, value: float) -> str | None:
    """What is wrong with a fit at the end of a range, if it is neither finite nor free."""
    accountant = BudgetAccountant(INF, 0.9999)
    try:
        fitted = fit(case, **{"accountant": accountant, name: value})
    except ValueError as error:
        # That noise left no word is known once it was released, and documented.
        left = str(error).startswith("No word remains")
        return None if left or accountant.entries == () else f"charged for an error: {error}"
    arrays = {k: v for k, v in vars(fitted).items() if isinstance(v, np.ndarray)}
    wrong = [k for k, v in arrays.items() if v.dtype.kind == "f" and not np.isfinite(v).all()]
    return f"{wrong} are not finite" if wrong else None


@pytest.mark.parametrize("case", CASES)
def test_numbers_beyond_the_ends_of_their_ranges_are_refused_by_name(case):
    assert [(*at, found) for at in beyond(case) if (found := fault_beyond(case, *at))] == []


def fault_beyond(case: str, name: str, value: float) -> str | None:
    """What is wrong with how a number beyond its range is met, if it is not refused by name."""
    accountant = BudgetAccountant(INF, 0.9999)
    try:
        fit(case, **{"accountant": accountant, name: value})
    except ValueError as error:
        if name not in str(error):
            return f"refused without its name: {error}"
        return None if accountant.entries == () else "charged"
    return "accepted"


@pytest.mark.parametrize("name", ["topics", "components", "CP, values", "words"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-300), (5e-324, 1e-290), (1.0, 5e-324)])
def test_budgets_too_small_for_any_grid_are_refused_uncharged(epsilon, delta, name):
    budget = BudgetAccountant(INF)
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        fit(name, epsilon=epsilon, delta=delta, accountant=budget)
    assert budget.entries == ()
