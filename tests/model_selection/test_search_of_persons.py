"""Searches with groups: whole persons are held out, fitted, scored and protected."""

import math

import numpy as np
import pytest
import sklearn
from internals import parts_of_trials
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline
from small_searches import counts, topics

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateSearchCV,
    PrivateSpectralLDA,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:noise is seeded"),
    pytest.mark.filterwarnings("ignore:.*topics asked for"),
    pytest.mark.filterwarnings("ignore:.*word frequencies"),
]

INF = math.inf
N = 90


def persons(seed=0):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(N), rng.integers(1, 5, size=N))
    rng.shuffle(owners)
    return counts(len(owners), seed), owners


@pytest.fixture
def one_trial(n_trials_are):
    """One trial, whose coins are told."""
    n_trials_are(1)


@pytest.fixture
def parts():
    """Whose rows were fitted and whose were scored, in the order in which they were."""
    with parts_of_trials() as seen:
        yield seen


@pytest.mark.usefixtures("one_trial")
@pytest.mark.parametrize("cv", [None, 3])
def test_whole_groups_are_held_out_however_many_rows_they_have(cv, parts):
    X, owners = persons()
    busy = np.concatenate([np.repeat(X[:1], 500, axis=0), X])
    for data, groups in ((X, owners), (busy, np.concatenate([np.full(500, owners[0]), owners]))):
        search = topics(cv=cv, epsilon=INF, random_state=0).fit(data, groups=groups)
        assert search.privacy_report_.n_units == N
        assert search.privacy_report_.unit == "person"
    half = len(parts) // 2
    for own in (parts[:half], parts[half:]):
        for (_, train), (_, test) in zip(own[0::2], own[1::2], strict=False):
            assert not set(train) & set(test)
            assert sorted([*train, *test]) == list(range(N))
    if cv is None:
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


def test_the_ledger_knows_what_a_search_protects():
    X, owners = persons()
    search = topics(epsilon=1e3, accountant=BudgetAccountant(1e5, 1e-4)).fit(X, groups=owners)
    assert {entry.unit for entry in search.accountant.entries} == {"person"}
    with pytest.raises(BudgetError, match=r"'document', but .* 'person'"):
        search.fit(X)
