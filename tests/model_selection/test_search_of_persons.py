"""Searches with groups: whole persons are held out, fitted, scored and protected."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from internals import parts_of_trials
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline
from small_searches import INF, counts, raters, topics

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    DoubtfulParameterWarning,
    PrivateSearchCV,
    PrivateSpectralLDA,
    RowIndex,
    UnprotectedScoreWarning,
    check_inputs,
)
from sktensor_dp.estimator import scoring
from sktensor_dp.model_selection.scores import RowScores

pytestmark = [
    pytest.mark.filterwarnings("ignore:noise is seeded"),
    pytest.mark.filterwarnings("ignore:.*topics asked for"),
    pytest.mark.filterwarnings("ignore:.*word frequencies"),
]

N = 90


def persons(seed=0):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(N), rng.integers(1, 5, size=N))
    rng.shuffle(owners)
    return counts(len(owners), seed), owners


@pytest.fixture
def one_trial(n_trials_are):
    n_trials_are(1)


@pytest.fixture
def parts():
    """Whose rows were fitted and whose were scored, in the order in which they were."""
    with parts_of_trials() as seen:
        yield seen


@pytest.mark.usefixtures("one_trial")
def test_whole_groups_are_held_out_however_many_rows_they_have(parts):
    X, owners = persons()
    busy = np.concatenate([np.repeat(X[:1], 500, axis=0), X])
    for data, groups in ((X, owners), (busy, np.concatenate([np.full(500, owners[0]), owners]))):
        search = topics(epsilon=INF, random_state=0).fit(data, groups=groups)
        assert search.privacy_report_.n_units == N
        assert search.privacy_report_.unit == "person"
    half = len(parts) // 2
    for own in (parts[:half], parts[half:]):
        for (_, train), (_, test) in zip(own[0::2], own[1::2], strict=False):
            assert not set(train) & set(test)
            assert sorted([*train, *test]) == list(range(N))
    assert [len(one) for _, one in parts[:half]] == [len(one) for _, one in parts[half:]]


@pytest.mark.usefixtures("one_trial")
@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_private_step_of_a_pipeline(routing):
    """Around a search they are routed, where it asks for them; within one no request is needed."""
    texts = ["cats chase mice", "dogs chase cats", "mice eat cheese"] * 60
    owners = np.repeat(np.arange(90), 2)
    words = HashingVectorizer(n_features=8, norm=None, alternate_sign=False)
    pipeline = Pipeline([("words", words), ("topics", PrivateSpectralLDA(1))])
    search = PrivateSearchCV(
        pipeline, {"topics__n_components": [1]}, epsilon=INF, score_bounds=(-20.0, 0.0)
    )
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            Pipeline([("search", search.set_fit_request(groups=True))]).fit(texts, groups=owners)
        else:
            search.fit(texts, groups=owners)
    assert search.privacy_report_.n_units == 90
    assert search.best_estimator_["topics"].privacy_report_.unit == "person"


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_one_check_of_inputs_before_a_search_serves_all_of_its_trials():
    X, y = ratings(0, N)
    table = pd.DataFrame(X, columns=["user", "film"])
    budget = BudgetAccountant(1e3, 1e-4, units="user")
    check, part = budget.split([0.05, 0.95], ["gaussian", "search"])
    listed = {"film is listed": table["film"] < 15}
    found = check_inputs(listed, groups=table["user"], unit="entry", accountant=budget, **check)
    assert found.failing == {}
    raters(N, accountant=budget, n_trials=5.0, **part).fit(table, y)
    paid = [one for one in budget.entries if any(one.cost.amounts)]
    assert [one.spender for one in paid] == ["check_inputs", "PrivateSearchCV"]
    assert budget.total()[0] == pytest.approx(1e3)


@pytest.mark.filterwarnings("ignore:No components can be seen")  # by chance
def test_the_ledger_knows_what_a_search_protects():
    X, owners = persons()
    search = topics(epsilon=1e3, accountant=BudgetAccountant(1e5, 1e-4)).fit(X, groups=owners)
    assert {entry.unit for entry in search.accountant.entries} == {"person"}
    with pytest.raises(BudgetError, match=r"'document', but .* 'person'"):
        search.fit(X)
    # A table's column says whose row it is, as in a fit of the completion alone.
    budget = BudgetAccountant(units="user")
    X, y = ratings(0, N)
    raters(N, epsilon=INF, accountant=budget).fit(pd.DataFrame(X, columns=["user", "film"]), y)
    assert budget.entries[-1].unit == "person: user"
    # The best model takes all units again; its own parts are not those of the search.
    search = raters(N, epsilon=INF).fit(X, y)
    assert search.best_estimator_.shape == search.estimator.shape
    assert search.best_estimator_.shape_[0] < N
    scoring.warn_once.cache_clear()
    with pytest.warns(UnprotectedScoreWarning, match="newcomer") as told:
        search.score(X, y)
    assert len(told) == 1
    assert search.best_estimator_.fit(X, y).shape_ == search.estimator.shape
    with pytest.raises(AttributeError, match=r"call best_estimator_\.save"):
        _ = search.save
    assert not hasattr(search, "transform_nothing")
    with pytest.raises(ValueError, match=f"n_units must be {N}, the units of shape; got 60"):
        raters(N).forecast(60)


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.filterwarnings("ignore:The score lies at an end of its bounds")
def test_what_the_winner_released_of_parameters_that_may_not_be_meant_is_told():
    X, y = ratings(0, 60)
    search = raters(60, epsilon=INF, param_distributions={"rank": [0]})
    with pytest.warns(DoubtfulParameterWarning, match="lies at the edge"):
        search.fit(X, y + 1e9)


def ratings(seed, people, n=60):
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((n, 15)) < 0.7)
    taste = rng.standard_normal((n, 2))[X[:, 0]] * rng.standard_normal((15, 2))[X[:, 1]]
    X[:, 0] = rng.permutation(people)[:n][X[:, 0]]
    return X, np.clip(1.5 + 0.5 * taste.sum(axis=1) + 0.1 * rng.standard_normal(len(X)), 0, 3)


@pytest.mark.usefixtures("one_trial")
@pytest.mark.parametrize("named", ["", "array", "list"])
def test_persons_of_ratings_are_held_out_whole(named, parts):
    """Their number is that of the shape, though some have no ratings."""
    X, y = ratings(0, N)
    search = raters(N, param_distributions={"rank": [0]}, epsilon=INF, random_state=0)
    if named:
        films = RowIndex.from_public([f"film {i}" for i in range(15)])
        search.estimator.set_params(row_names=(None, films))
        X = np.column_stack([X[:, 0].astype("U9").astype(object), films.decode(X[:, 1])])
    search.fit(X.tolist() if named == "list" else X, y)
    report = search.privacy_report_
    assert (report.n_units, report.unit) == (N, "person")
    for (_, train), (_, test) in zip(parts[0::2], parts[1::2], strict=False):
        assert sorted([*train, *test]) == list(range(N))
    assert search.best_estimator_.shape_ == (N - len(parts[1][1]), 15)
    # Those without ratings, who are dealt last, count as the middle of what scores can be.
    silent = np.mean([np.mean(np.array(test) >= 60) for _, test in parts[1::2]])
    assert -4.5 * silent - 0.5 < search.best_score_ < -4.5 * silent


def test_a_person_is_scored_by_their_own_ratings_alone(seed):
    """Each is predicted from the person's ratings in the other fifths of films."""
    X, y = ratings(seed, 60)
    model = raters(60, epsilon=INF).estimator.set_params(epsilon=INF, random_state=0).fit(X, y)
    score = RowScores("neg_mean_absolute_error", model)
    whole, mine = score(X, y), X[:, 0] == X[0, 0]
    np.testing.assert_allclose(score(X[mine], y[mine]), whole[mine], rtol=1e-9, atol=1e-12)
    assert -whole.mean() < np.abs(model.predict(X) - y).mean()
    # A value's own prediction does not see it.
    other = y.copy()
    other[0] = 3.0 - y[0]
    assert model._predict_by_others(X, y)[0] == model._predict_by_others(X, other)[0]
    # No error tells of a value that is none, nor does it move scores of others.
    other[0] = np.nan
    np.testing.assert_allclose(score(X, other)[~mine], whole[~mine], rtol=1e-9, atol=1e-12)
    assert np.isnan(score(X, other)[mine]).all()
