"""A fit of groups is audited on its worst neighbours: one group's rows are replaced by others.

Confidence as in the audits of estimators: a test fails in one run of a million.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from sktensor_dp import PrivateSpectralLDA, PrivateTensorPowerMethod
from sktensor_dp.privacy.audit import audit, worst_case

pytestmark = pytest.mark.nightly

SURE = 1 - 5e-7
# Rows of the group that is replaced: one in the data, so many in the neighbour.
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
    order = np.random.default_rng(0).permutation(sizes.sum())
    groups = np.repeat(np.arange(len(X)), sizes)[order]
    return X[groups], groups


def worst_groups(model: Any, n: int) -> tuple[Any, Any, Callable[[Any], float]]:
    """Neighbours of an estimator, the one that differs with one row here and many there."""
    case = worst_case(model, n)
    (X,), (Y,) = case.data, case.neighbour
    (place,) = np.flatnonzero((X != Y).any(axis=1))
    return of_groups(X, place, 1), of_groups(Y, place, ROWS), lambda f: case.statistic(f.fitted_)


MODELS = {
    "topics": lambda: PrivateSpectralLDA(1, n_refinements=1, random_state=0),
    "components": lambda: PrivateTensorPowerMethod(1, data_norm=1.0, random_state=0),
    "components, every step": lambda: PrivateTensorPowerMethod(
        1, data_norm=1.0, perturbation="iteration", max_iter=1, random_state=0
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_fit_of_groups_exceeds_its_claim(name):
    model = MODELS[name]()
    one, other, statistic = worst_groups(model, 100)
    result = audit(OfGroups(model), one, other, n_runs=10, statistic=statistic, confidence=SURE)
    assert result.epsilon_claim == pytest.approx(1.0)
    assert not result.refutes_claim
