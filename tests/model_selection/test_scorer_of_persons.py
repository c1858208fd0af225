"""Private scorers with groups, alone and in scikit-learn's own tools by metadata routing."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from small_searches import counts
from toy_regressor import constant

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateCountVectorizer,
    PrivateKFold,
    PrivateSpectralLDA,
    make_private_scorer,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*topics asked for"),
    pytest.mark.filterwarnings("ignore:.*word frequencies"),
]

INF = math.inf
METRIC = "log_likelihood_per_token"
OWNERS = np.repeat(np.arange(60), np.arange(60) % 4 + 1)
X = counts(len(OWNERS))
TARGETS = np.array([0.0, 1.0, 1.0, 1.0, 3.0])
WHOSE = ["b", "a", "a", "a", "b"]


def absolute(**options):
    return make_private_scorer(
        "neg_mean_absolute_error", **{"bounds": (-2.0, 0.0), "epsilon": INF, **options}
    )


def test_a_score_is_the_mean_over_groups_of_means_over_rows():
    rows = np.zeros((5, 1))
    zero = constant(0.0)
    # a: -1, -1, -1; b: 0 and -2, to which -3 is clipped.
    assert absolute()(zero, rows, TARGETS, groups=WHOSE) == pytest.approx(-1.0, abs=1e-15)
    assert absolute()(zero, rows, TARGETS) == pytest.approx(-1.0, abs=1e-15)
    three = absolute()(zero, rows, [0.0, 1, 1, 1, 1], groups=WHOSE)
    assert three == pytest.approx((-1 - 0.5) / 2, abs=1e-15)
    coo = sp.coo_matrix(rows)
    assert absolute()(zero, coo, [0.0, 1, 1, 1, 1], groups=WHOSE) == three


def test_noise_is_in_proportion_to_the_number_of_groups():
    rows = np.zeros((4000, 1))
    model = constant(0.0)
    budget = BudgetAccountant()
    absolute(epsilon=1.0, accountant=budget)(model, rows, rows[:, 0], groups=np.arange(4000) // 40)
    absolute(epsilon=1.0, accountant=budget)(model, rows[:100], rows[:100, 0], groups=range(100))
    one, other = budget.entries
    assert one.sigma == other.sigma
    assert one.unit == "group of samples"


def test_a_model_of_groups_is_scored_with_groups_alone():
    budget = BudgetAccountant(100.0, 1e-6)
    model = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget).fit(X, groups=OWNERS)
    scorer = make_private_scorer(METRIC, epsilon=9.0, accountant=budget)
    spent = len(budget.entries)
    with pytest.raises(ValueError, match="groups must be given"):
        scorer(model, X)
    assert len(budget.entries) == spent
    assert math.isfinite(scorer(model, X, groups=OWNERS))
    assert {entry.unit for entry in budget.entries} == {"group of documents"}
    rows = PrivateSpectralLDA(1, epsilon=9.0).fit(X)
    with pytest.raises(BudgetError, match="'document'"):
        scorer(rows, X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": WHOSE[1:]}, "length is not the number of rows"),
        ({"groups": ["b"] * 5}, "at least two different labels"),
        ({"groups": [1.0, 2.0, 2.0, 2.0, 1.0]}, "all of them integers"),
        ({"groups": ["b", "a", "a", "a", None]}, "none missing"),
        ({"y": TARGETS[1:], "groups": WHOSE}, "with equally many rows"),
        ({"y": None, "groups": WHOSE}, "needs y"),
    ],
)
def test_wrong_groups_are_refused_unspent_and_unseen(arguments, message):
    rows, budget = np.zeros((5, 1)), BudgetAccountant(100.0, 1e-6)
    model = constant(0.0)
    with pytest.raises(ValueError, match=message) as error:
        absolute(epsilon=1.0, accountant=budget)(model, rows, **{"y": TARGETS, **arguments})
    assert budget.entries == ()
    assert "5" not in str(error.value).replace("float64", "")


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_cross_validation_passes_groups_on():
    budget = BudgetAccountant(1e4, 1e-6)
    model = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget).set_fit_request(groups=True)
    scorer = make_private_scorer(METRIC, epsilon=9.0, accountant=budget)
    scorer = scorer.set_score_request(groups=True)
    scores = cross_val_score(
        model, X, cv=PrivateKFold(3), scoring=scorer, params={"groups": OWNERS}, error_score="raise"
    )
    assert scores.shape == (3,)
    assert {entry.unit for entry in budget.entries} == {"group of documents"}
    assert sum(entry.release == "held_out_scores" for entry in budget.entries) == 3


@pytest.mark.usefixtures("routing")
def test_grid_search_passes_groups_on_under_a_name_of_ones_own():
    budget = BudgetAccountant(1e4, 1e-6)
    model = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget)
    model = model.set_fit_request(groups="person")
    scorer = make_private_scorer(METRIC, epsilon=9.0, accountant=budget)
    scorer = scorer.set_score_request(groups="person")
    search = GridSearchCV(
        model, {"random_state": [0, 1]}, cv=2, scoring=scorer, error_score="raise"
    ).fit(X, person=OWNERS)
    assert search.best_estimator_.privacy_report_.n_units == 60
    assert {entry.unit for entry in budget.entries} == {"group of documents"}
    assert sum(entry.release == "held_out_scores" for entry in budget.entries) == 4


@pytest.mark.usefixtures("routing")
def test_groups_without_a_request_are_an_error():
    model = PrivateSpectralLDA(1, epsilon=INF).set_fit_request(groups=True)
    scorer = make_private_scorer(METRIC, epsilon=INF)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="groups"):
        cross_val_score(model, X, cv=2, scoring=scorer, params={"groups": OWNERS})


def test_requests_need_routing():
    with pytest.raises(RuntimeError, match="enable_metadata_routing"):
        absolute().set_score_request(groups=True)


TEXTS = ["cats chase mice", "dogs chase cats", "mice eat cheese"] * 80
PERSONS = np.arange(240) // 2


def pipeline():
    counts_step = PrivateCountVectorizer(max_words_per_document=6, epsilon=20.0)
    return Pipeline([("counts", counts_step), ("topics", PrivateSpectralLDA(1, epsilon=20.0))])


def test_a_pipeline_hands_groups_to_its_steps_by_name():
    fitted = pipeline().fit(TEXTS, counts__groups=PERSONS, topics__groups=PERSONS)
    for step in ("counts", "topics"):
        assert fitted[step].privacy_report_.n_units == 120
        assert fitted[step].privacy_report_.unit == "group of documents"


@pytest.mark.usefixtures("routing")
def test_a_pipeline_hands_groups_to_steps_that_ask_for_them():
    whole = pipeline()
    for step in ("counts", "topics"):
        whole[step].set_fit_request(groups=True)
    fitted = clone(whole).fit(TEXTS, groups=PERSONS)
    for step in ("counts", "topics"):
        assert fitted[step].privacy_report_.n_units == 120
    transformed = clone(whole).fit_transform(TEXTS, groups=PERSONS)
    assert transformed.shape == (240, 1)


@pytest.mark.usefixtures("routing")
def test_a_grid_search_over_a_pipeline_of_persons():
    whole = pipeline()
    for step in ("counts", "topics"):
        whole[step].set_fit_request(groups=True)
    scorer = make_private_scorer(METRIC, epsilon=INF).set_score_request(groups=True)
    search = GridSearchCV(
        whole, {"topics__random_state": [0, 1]}, cv=PrivateKFold(2), scoring=scorer,
        error_score="raise",
    ).fit(TEXTS, groups=PERSONS)  # fmt: skip
    assert search.best_estimator_["topics"].privacy_report_.n_units == 120
