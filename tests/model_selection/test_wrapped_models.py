"""What a score protects is what the model inside other estimators was fitted for."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from small_searches import cells, counts

from sktensor_dp import (
    BudgetAccountant,
    PrivateSpectralLDA,
    PrivateTuckerCompletion,
    make_private_scorer,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*topics asked for"),
    pytest.mark.filterwarnings("ignore:.*word frequencies"),
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
]

X = counts(300)
Y = np.arange(300) % 2
OWNERS = np.arange(300) // 3


def topics(**options):
    return PrivateSpectralLDA(1, epsilon=9.0, random_state=0, **options)


class Kept(TransformerMixin, BaseEstimator):
    """Learns nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def grid(model):
    names = {"random_state": [0]} if isinstance(model, PrivateSpectralLDA) else {"memory": [None]}
    return GridSearchCV(model, names, cv=2, scoring=lambda model, X, y=None: 0.0)


def classifier(model):
    return make_pipeline(model, LogisticRegression())


WRAPPED = {
    "grid search": lambda model: grid(model),
    "grid search in a pipeline": lambda model: Pipeline([("kept", Kept()), ("grid", grid(model))]),
    "pipeline in a grid search": lambda model: grid(Pipeline([("kept", Kept()), ("lda", model)])),
    "first step": classifier,
    "calibrated": lambda model: CalibratedClassifierCV(classifier(model), cv=2),
    "regressor of a transformed target": lambda model: TransformedTargetRegressor(
        classifier(model)
    ),
    "union": lambda model: classifier(FeatureUnion([("lda", model), ("kept", Kept())])),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_relation_of_what_is_wrapped(name):
    wrapped = WRAPPED[name](topics(neighbours="add_remove")).fit(X, Y)
    budget = BudgetAccountant(99.0)
    metric = "log_likelihood" if hasattr(wrapped, "score_samples") else "accuracy"
    scorer = make_private_scorer(metric, bounds=(-40, 1), accountant=budget)
    assert math.isfinite(scorer(wrapped, X, Y))
    assert budget.entries[0].release == "unit_count"
    assert {entry.neighbours for entry in budget.entries} == {"add_remove"}
    spent = len(budget.entries)
    other = make_private_scorer(
        metric, bounds=(-40, 1), neighbours="replace_one", accountant=budget
    )
    with pytest.raises(ValueError, match="was fitted with 'add_remove'"):
        other(wrapped, X, Y)
    assert len(budget.entries) == spent


class Holder(ClassifierMixin, BaseEstimator):
    """Fits what it is given, with groups."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.estimator_ = self.model.fit(X, groups=OWNERS)
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: Holder(model).fit(X, Y),
        lambda model: FrozenEstimator(model.fit(X, groups=OWNERS)),
        lambda model: make_pipeline(FrozenEstimator(model.fit(X, groups=OWNERS)), Kept(),
                                    LogisticRegression()).fit(X, Y),
    ],
)  # fmt: skip
def test_the_unit_of_what_is_wrapped(wrap):
    wrapped, budget = wrap(topics()), BudgetAccountant(99.0)
    metric = "log_likelihood" if hasattr(wrapped, "score_samples") else "accuracy"
    scorer = make_private_scorer(metric, bounds=(-40, 1), accountant=budget)
    with pytest.raises(ValueError, match="groups must be given"):
        scorer(wrapped, X, Y)
    assert budget.entries == ()
    scorer(wrapped, X, Y, groups=OWNERS)
    assert {entry.unit for entry in budget.entries} == {"group of documents"}


def test_units_of_several_rows_are_seen_inside():
    users = PrivateTuckerCompletion(1, bounds=(0, 3), unit_mode=0)
    with pytest.raises(ValueError, match="slice"):
        make_private_scorer("neg_mean_squared_error", bounds=(-9, 0))(
            FrozenEstimator(users), *cells()
        )
