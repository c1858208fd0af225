"""Estimators are audited against their claims on their worst data; sabotage is caught.

Confidence 1 - 5e-7, and as much for chance in what has to be found: a test fails in one run
of a million, whatever the seed. What a few fits can show is little;
``python -m benchmarks audit`` makes hundreds of each.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.privacy.audit import audit, worst_case

pytestmark = pytest.mark.nightly

SURE = 1 - 5e-7


def completion(model: Any, delta: float, **parameters: Any) -> Any:
    options = {"shape": (1, 1), "epsilon": 1.0, "random_state": 0}
    return model(1, bounds=(0, 1), delta=delta, **{**options, **parameters})


def power_method(kind: str, **parameters: Any) -> Any:
    return PrivateTensorPowerMethod(
        1, data_norm=1.0, perturbation=kind, whiten=kind == "whitened_tensor", random_state=0,
        **parameters,
    )  # fmt: skip


ESTIMATORS: dict[str, tuple[Callable[[], Any], int, int | None]] = {
    "LDA": (lambda: PrivateSpectralLDA(1, random_state=0), 8, 100),
    "LDA, one refinement": (
        lambda: PrivateSpectralLDA(1, n_refinements=1, random_state=0), 10, 100
    ),
    "LDA, moment tensor": (
        lambda: PrivateSpectralLDA(1, perturbation="moment_tensor", random_state=0), 10, 100
    ),
    "vocabulary": (lambda: PrivateCountVectorizer(max_words_per_document=2), 50, 200),
    **{
        f"power method, {kind}": (lambda kind=kind: power_method(kind), 10, 100)
        for kind in ("whitened_tensor", "moment_tensor", "iteration")
    },
    "power method, stream": (lambda: power_method("stream", max_iter=1), 10, 40),
    **{
        f"{model.__name__}, {kind}": (
            lambda model=model, kind=kind: completion(model, 0, perturbation=kind), 10, None
        )
        for model in (PrivateCPCompletion, PrivateTuckerCompletion)
        for kind in ("input", "sufficient_statistics", "output")
    },
    "CP, gradient": (
        lambda: completion(PrivateCPCompletion, 1e-6, perturbation="gradient", max_iter=1), 8, None
    ),
    "CP, slices": (
        lambda: completion(PrivateCPCompletion, 1e-6, unit_mode=0, shape=(20, 2)), 10, None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_estimator_exceeds_its_claim(name):
    build, n_runs, n_units = ESTIMATORS[name]
    estimator = build()
    case = worst_case(estimator, n_units)
    result = audit(estimator, case.data, case.neighbour, n_runs=n_runs, statistic=case.statistic,
                   confidence=SURE)  # fmt: skip
    assert result.epsilon_claim == pytest.approx(1.0)
    assert not result.refutes_claim


class Stated(BaseEstimator):
    """An estimator that spends so many times what its report says."""

    def __init__(self, model: Any = None, times: float = 1) -> None:
        self.model, self.times = model, times

    def fit(self, *data: Any) -> "Stated":
        said = self.model.epsilon
        self.fitted_ = clone(self.model).set_params(epsilon=self.times * said).fit(*data)
        self.privacy_report_ = replace(self.fitted_.privacy_report_, epsilon=said)
        return self


@pytest.mark.parametrize(("times", "n_runs"), [(1, 10), (100_000, 30)])
def test_a_fit_that_spends_more_than_it_says_is_caught(times, n_runs):
    """One long document among a hundred; 30 fits tell the two apart without exception.

    Both rates are then off by .398 at most, and log(.602 / .398) = .41.
    """
    one, other = (np.full((100, 2), 5) for _ in range(2))
    one[0], other[0] = (10**9, 0), (0, 10**9)
    limits = {"counts": 10.0, "pairs": 10.0}
    model = PrivateSpectralLDA(1, clip_norm=limits, epsilon=0.3, random_state=0)
    result = audit(
        Stated(model, times), one, other, n_runs=n_runs, confidence=SURE, threshold=0.0,
        statistic=lambda found: float(np.diff(found.fitted_.unigram_)[0]),
    )  # fmt: skip
    assert (result.epsilon_lower > result.epsilon_claim) == (times > 1)


@pytest.mark.parametrize(("halve", "n_runs"), [(False, 100), (True, 350)])
def test_half_the_noise_of_a_fit_is_caught(halve, n_runs, request):
    """A vocabulary of two words, far from the threshold; mu of its release is 2.718.

    With half the noise .0033 of the runs are on the wrong side: all but 5e-7 of the pairs of
    counts of 350 runs show more than it.
    """
    if halve:
        request.getfixturevalue("half_noise")
    model = PrivateCountVectorizer(max_words_per_document=1, epsilon=10.0, delta=0.01)
    case = worst_case(model, 40)
    mu = model.fit(*case.data).privacy_report_.rows[0].mu
    # One document of 21 and 19 changes sides: from -2 to 0.
    result = audit(model, case.data, case.neighbour, n_runs=n_runs, statistic=case.statistic,
                   threshold=-1.0, confidence=SURE)  # fmt: skip
    assert (result.mu_lower > mu) == halve


# Groups: one row of a person in the data, so many in the neighbour.

ROWS = 300


class OfGroups(BaseEstimator):
    """An estimator whose groups are handed on by position, as audits hand on arguments."""

    def __init__(self, model: Any = None) -> None:
        self.model = model

    def fit(self, X: np.ndarray, groups: np.ndarray) -> "OfGroups":
        self.fitted_ = clone(self.model).fit(X, groups=groups)
        self.privacy_report_ = self.fitted_.privacy_report_
        return self


def of_groups(X: np.ndarray, place: int, times: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows as groups of one, but one of them, which has its row so many times; out of order."""
    sizes = np.ones(len(X), dtype=int)
    sizes[place] = times
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(len(X)), sizes))
    return X[groups], groups


MODELS = {
    "topics": PrivateSpectralLDA(1, n_refinements=1, random_state=0),
    "components": power_method("whitened_tensor"),
    "components, every step": power_method("iteration", max_iter=1),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_fit_of_groups_exceeds_its_claim(name):
    model = MODELS[name]
    case = worst_case(model, 100)
    (X,), (Y,) = case.data, case.neighbour
    (place,) = np.flatnonzero((X != Y).any(axis=1))
    one, other = of_groups(X, place, 1), of_groups(Y, place, ROWS)
    result = audit(OfGroups(model), one, other, n_runs=10, confidence=SURE,
                   statistic=lambda found: case.statistic(found.fitted_))  # fmt: skip
    assert result.epsilon_claim == pytest.approx(1.0)
    assert not result.refutes_claim
