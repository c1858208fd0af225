"""Candidates that are wrong together are refused before a search is charged."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.model_selection import steps

COUNTS = np.random.default_rng(0).poisson(1.0, (200, 6)).astype(float)
CELLS = np.argwhere(np.ones((20, 10)))
TOPICS = np.eye(2, 6) + 0.1
TABLE, RANGES = np.ones((10, 2)), np.column_stack([np.zeros(10), np.ones(10)])


def topics() -> Any:
    return PrivateSpectralLDA(3, public_components=TOPICS, n_refinements=1, random_state=0)


def samples() -> Any:
    return PrivateTensorPowerMethod(2, moment="single_topic", data_norm=5.0, random_state=0)


def entries() -> Any:
    return PrivateCPCompletion(1, bounds=(0, 1), random_state=0)


@pytest.mark.parametrize(
    ("estimator", "candidates", "said"),
    [
        (topics(), {"n_components": [3, 2, 1]}, "at most as many as n_components"),
        (topics(), {"public_components": [TOPICS, -TOPICS]}, "finite numbers >= 0"),
        (topics(), {"public_components": [TOPICS[0]]}, "got shape"),
        (topics(), {"public_components": [{"a": [0.0], "b": [0.0]}]}, "finite numbers >= 0"),
        (
            make_pipeline(FunctionTransformer(), topics()),
            [{"privatespectrallda__n_components": [3]}, {"privatespectrallda__n_components": [1]}],
            "at most as many as n_components",
        ),
        (entries(), {"row_features": [None, {1: TABLE * np.nan}]}, "NaN or infinity"),
        (entries(), {"bounds": [{1: RANGES}, {1: RANGES[:, ::-1]}]}, "low < high"),
        (entries(), {"shape": [(20, 10), (20, 11)], "bounds": [{1: RANGES}]}, "11 rows"),
    ],
)
def test_candidates_that_are_wrong_together_cost_nothing(estimator, candidates, said):
    budget = BudgetAccountant(100.0, 0.1)
    search = PrivateSearchCV(estimator, candidates, n_trials=1, epsilon=1.0, accountant=budget)
    data = (COUNTS,) if not isinstance(estimator, PrivateCPCompletion) else (CELLS, np.ones(200))
    with pytest.raises(ValueError, match=said):
        search.fit(*data)
    assert budget.entries == ()


def test_candidates_that_are_right_together_are_tried():
    """As given they would be refused: one component is less than the two public topics."""
    model = topics().set_params(n_components=1)
    words = pd.DataFrame(TOPICS, columns=list("abcdef"))
    lists = {"n_components": [2, 3], "public_components": [TOPICS, words, words.to_dict("list")]}
    steps.check_values([lists, {"n_components": [4]}], model)
    with pytest.raises(ValueError, match="n_components"):
        steps.check_values([lists, {"n_components": [1]}], model)
    # Too many to try, and those that are drawn, are not.
    drawn = {"n_components": stats.randint(1, 5)}
    many = {"n_components": list(range(1, 200)), "doc_topic_prior": [0.1, 0.2]}
    steps.check_values([drawn, many], model)


def with_one(value: Any, of: Any) -> Any:
    changed = of.astype(object if isinstance(value, str) else float)
    changed.flat[7] = value
    return changed


RATINGS = np.linspace(0, 1, 200)
DATA: dict[str, tuple[Any, dict[str, Any], tuple[Any, ...], str]] = {
    "topics of NaN": (topics(), {}, (with_one(np.nan, COUNTS),), "contains NaN"),
    "topics of text": (topics(), {}, (with_one("swordfish", COUNTS),), "must hold numbers"),
    "topics of less than nothing": (topics(), {}, (with_one(-1, COUNTS),), "Negative values"),
    "topics of fractions": (topics(), {}, (with_one(0.5, COUNTS),), "whole numbers"),
    "components of NaN": (samples(), {"moment": ["raw"]}, (with_one(np.nan, COUNTS),), "NaN"),
    "documents below nothing": (samples(), {}, (with_one(-1, COUNTS),), "Negative values"),
    "ratings that are NaN": (entries(), {}, (CELLS, with_one(np.nan, RATINGS)), "y contains NaN"),
    "cells below nothing": (entries(), {}, (CELLS - 1, RATINGS), "coordinates >= 0"),
}


@pytest.mark.parametrize("name", DATA)
def test_data_that_no_fit_takes_costs_nothing(name):
    """As in a fit: one missing value is no reason to pay for a whole search."""
    estimator, candidates, data, said = DATA[name]
    budget = BudgetAccountant(100.0, 0.1)
    search = PrivateSearchCV(estimator, candidates, epsilon=1.0, accountant=budget)
    with pytest.raises(ValueError, match=said) as caught:
        search.fit(*data)
    assert "swordfish" not in str(caught.value)
    assert budget.entries == ()
    assert not hasattr(estimator, "n_features_in_")


@pytest.mark.parametrize("options", [{}, {"cv": 2}])
def test_too_few_groups_to_train_on_cost_nothing(options):
    """Two groups: one is held out, and one alone is all of the training data."""
    budget = BudgetAccountant(100.0, 0.1)
    search = PrivateSearchCV(
        PrivateSpectralLDA(2), {"n_components": [1, 2]}, epsilon=1.0, accountant=budget, **options
    )
    with pytest.raises(ValueError, match="must leave 2 or more groups to train on"):
        search.fit(COUNTS, groups=np.arange(200) % 2)
    assert budget.entries == ()


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_what_a_candidate_takes_is_not_refused():
    """Samples may be below 0 where the moment is searched."""
    search = PrivateSearchCV(
        samples(), {"moment": ["raw"]}, epsilon=1.0, score_bounds=(-9.0, 0.0), random_state=0
    )
    assert search.fit(-COUNTS).best_params_ == {"moment": "raw"}
