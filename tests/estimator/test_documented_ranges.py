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
from internals import constraints_of
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from small_corpora import counts

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.estimator.parameters import Number

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:n_components=.* exceeds:UserWarning"),
]

INF = math.inf
# Counts of steps: a fit takes as long as they are many, and needs no memory for them.
STEPS = {"max_iter", "n_refinements", "n_restarts", "n_trials"}
MANY = 12
CELLS = np.argwhere(np.ones((6, 5, 4), bool))
VALUES = np.random.default_rng(0).random(len(CELLS))
SAMPLES = np.random.default_rng(0).standard_normal((60, 4))
TEXTS = ["cats chase mice", "dogs chase cats"] * 300
SLICE = {"unit_mode": 0, "shape": (6, 5, 4)}


def fit_counts(estimator: Any) -> Any:
    return estimator.fit(counts(60, 4))


def fit_samples(estimator: Any) -> Any:
    return estimator.fit(SAMPLES)


def fit_stream(estimator: Any) -> Any:
    return estimator.partial_fit(SAMPLES[:30]).partial_fit(SAMPLES[30:])


def fit_cube(estimator: Any) -> Any:
    return estimator.fit_tensor(np.eye(3)[:, :, None] * np.eye(3)[:, None, :])


def fit_cells(estimator: Any) -> Any:
    return estimator.fit(CELLS, VALUES)


def fit_texts(estimator: Any) -> Any:
    return estimator.fit(TEXTS)


TOPICS = (PrivateSpectralLDA, {"n_components": 2}, fit_counts)
POWER = {"n_components": 2, "data_norm": 2.0}
COMPLETION = {"rank": 1, "bounds": (0, 1)}
CASES: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "topics": TOPICS,
    "topics, one each": (*TOPICS[:1], {"n_components": 2, "doc_topic_prior": 0}, fit_counts),
    "topics, pure": (*TOPICS[:1], {"n_components": 2, "delta": 0.0}, fit_counts),
    "topics, in word space": (
        PrivateSpectralLDA, {"n_components": 2, "perturbation": "moment_tensor"}, fit_counts,
    ),
    "components": (PrivateTensorPowerMethod, POWER, fit_samples),
    "components, pure": (PrivateTensorPowerMethod, {**POWER, "delta": 0.0}, fit_samples),
    "components, all dimensions": (
        PrivateTensorPowerMethod, {**POWER, "perturbation": "moment_tensor"}, fit_samples,
    ),
    "components, steps": (
        PrivateTensorPowerMethod,
        {**POWER, "perturbation": "iteration", "max_iter": 2},
        fit_samples,
    ),
    "components, stream": (PrivateTensorPowerMethod, {**POWER, "max_iter": 2}, fit_stream),
    "components of a tensor": (PrivateTensorPowerMethod, {**POWER, "max_iter": 2}, fit_cube),
    "mixture": (PrivateTensorPowerMethod, {**POWER, "moment": "gaussian_mixture"}, fit_samples),
    "documents": (
        PrivateTensorPowerMethod, {"n_components": 2, "moment": "single_topic"}, fit_counts,
    ),
    **{
        f"{cls.__name__}, {name}": (cls, {**COMPLETION, **extra}, fit_cells)
        for cls in (PrivateCPCompletion, PrivateTuckerCompletion)
        for name, extra in {
            "input": {"perturbation": "input", "epsilon": 20.0},
            "sums": {"perturbation": "sufficient_statistics"},
            "gradient": {"perturbation": "gradient", "max_iter": 2},
            "output": {"perturbation": "output", "epsilon": 20.0},
            "slices": SLICE,
        }.items()
    },
    "vocabulary": (PrivateCountVectorizer, {"epsilon": 5.0}, fit_texts),
    "search": (
        PrivateSearchCV,
        {
            "estimator": PrivateSpectralLDA(2, n_refinements=0),
            "param_distributions": {"n_components": [1, 2]},
            "n_trials": 2.0,
        },
        fit_counts,
    ),
}  # fmt: skip


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
    """Values beyond the ends of a range."""
    if math.isfinite(one.low):
        yield int(one.low) - 1 if one.integer else math.nextafter(one.low, -INF)
    if math.isfinite(one.high):
        yield int(one.high) + 1 if one.integer else math.nextafter(one.high, INF)
    yield math.nan


# What both completions share is tried with the faster one.
SLOW, OWN = "PrivateTuckerCompletion", ("rank", "epsilon", "max_iter")


def within(case: str) -> Iterator[tuple[str, float]]:
    """Parameters of a case with the ends of their ranges."""
    for name, ranges in numeric(CASES[case][0]):
        if name in OWN or not case.startswith(SLOW):
            yield from ((name, value) for one in ranges for value in ends(name, one))


def beyond(case: str) -> Iterator[tuple[str, float]]:
    """Parameters of a case with numbers that are in none of their ranges."""
    for name, ranges in numeric(CASES[case][0]):
        for value in (value for one in ranges for value in outside(one)):
            if not any(other.accepts(value) for other in ranges):
                yield name, value


def build(case: str, accountant: BudgetAccountant, name: str, value: float) -> tuple[Any, Any]:
    cls, parameters, fit = CASES[case]
    return cls(**{"accountant": accountant, **parameters, name: value}), fit


@pytest.mark.filterwarnings("ignore:.*does not protect:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_numbers_at_the_ends_of_their_ranges_fit_or_cost_nothing(case):
    offenders = [
        (name, value, found)
        for name, value in within(case)
        if (found := fault_within(case, name, value)) is not None
    ]
    assert offenders == []


def fault_within(case: str, name: str, value: float) -> str | None:
    """What is wrong with a fit at the end of a range, if it is neither finite nor free."""
    accountant = BudgetAccountant(INF, 0.9999)
    estimator, fit = build(case, accountant, name, value)
    try:
        fitted = fit(estimator)
    except ValueError as error:
        # That noise left no word is known once it was released, and documented.
        left = str(error).startswith("No word remains")
        return None if left or accountant.entries == () else f"charged for an error: {error}"
    arrays = {k: v for k, v in vars(fitted).items() if isinstance(v, np.ndarray)}
    wrong = [k for k, v in arrays.items() if v.dtype.kind == "f" and not np.isfinite(v).all()]
    return f"{wrong} are not finite" if wrong else None


@pytest.mark.parametrize("case", CASES)
def test_numbers_beyond_the_ends_of_their_ranges_are_refused_by_name(case):
    offenders = [
        (name, value, found)
        for name, value in beyond(case)
        if (found := fault_beyond(case, name, value)) is not None
    ]
    assert offenders == []


def fault_beyond(case: str, name: str, value: float) -> str | None:
    """What is wrong with how a number beyond its range is met, if it is not refused by name."""
    accountant = BudgetAccountant(INF, 0.9999)
    estimator, fit = build(case, accountant, name, value)
    try:
        fit(estimator)
    except ValueError as error:
        if name not in str(error):
            return f"refused without its name: {error}"
        return None if accountant.entries == () else "charged"
    return "accepted"


@pytest.mark.parametrize("end", [1e-9, 1e9])
@pytest.mark.parametrize("epsilon", [1.0, 50.0, INF])
@pytest.mark.parametrize("case", [name for name in CASES if "Completion" in name])
def test_both_ends_of_the_range_of_regularization_fit(case, epsilon, end):
    cls, parameters, fit = CASES[case]
    model = fit(cls(**{**parameters, "epsilon": epsilon, "regularization": end}))
    assert np.isfinite(model.predict(CELLS)).all()


@pytest.mark.parametrize("prefix", ["", "privatespectrallda__"])
@pytest.mark.parametrize(("name", "wrong"), [("n_components", 0), ("doc_topic_prior", 1e300)])
def test_listed_values_of_a_search_are_refused_before_its_charge(name, wrong, prefix):
    accountant = BudgetAccountant(INF, 0.9999)
    topics = PrivateSpectralLDA(2)
    model = make_pipeline(FunctionTransformer(), topics) if prefix else topics
    good = {prefix + "n_refinements": [0]}
    for given in ({**good, prefix + name: [1, wrong]}, [good, {prefix + name: [1, wrong]}]):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of PrivateSpectralLDA"):
            fit_counts(PrivateSearchCV(model, given, accountant=accountant))
    assert accountant.entries == ()


@pytest.mark.parametrize("name", ["topics", "components", "CPCompletion, input", "vocabulary"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-300), (5e-324, 1e-290), (1.0, 5e-324)])
def test_budgets_too_small_for_any_grid_are_refused_uncharged(epsilon, delta, name):
    cls, options, fit = next(case for key, case in CASES.items() if key.endswith(name))
    budget = BudgetAccountant(INF)
    given = {**options, "epsilon": epsilon, "delta": delta, "accountant": budget}
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        fit(cls(**given))
    assert budget.entries == ()
