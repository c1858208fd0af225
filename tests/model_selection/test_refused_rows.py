"""Functions of the caller's in a search: each row by itself, a blank one where they fail."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from small_searches import counts
from small_texts import pipeline, search, texts

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.model_selection.steps import RowByRow

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def odd(X):
    """Rows with a 13 in them."""
    return (dense(X) == 13).any(axis=1)


def fail():
    raise ValueError("13")


# What functions do to a table with such a row.
MAKING = {
    "raise": lambda X: fail() if odd(X).any() else X,
    "panic": lambda X: 1 / 0 if odd(X).any() else X,
    "leave it out": lambda X: X[np.flatnonzero(~odd(X))],
    "not a number": lambda X: np.where(odd(X)[:, None], np.nan, dense(X)),
    "wider": lambda X: np.tile(dense(X), (1, 2)) if odd(X).any() else X,
    "twice": lambda X: np.repeat(dense(X), 2, axis=0) if odd(X).any() else X,
    "text": lambda X: ["secret"] * X.shape[0] if odd(X).any() else X,
}
every_way = pytest.mark.parametrize("making", MAKING.values(), ids=MAKING)


@every_way
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix, pd.DataFrame])
def test_a_blank_row_stands_for_one_that_is_refused_and_no_other_row_changes(
    seed, container, making
):
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 12, (9, 4)).astype(float)
    bad, blank = rows.copy(), rows.copy()
    places = rng.choice(9, rng.integers(1, 9), replace=False)
    bad[places, rng.integers(4)], blank[places] = 13, 0
    step = RowByRow(FunctionTransformer(making))
    assert (dense(step.fit_transform(container(rows))) == rows).all()
    assert (dense(step.transform(container(bad))) == blank).all()
    # Also where every row is refused.
    assert not dense(step.fit_transform(container(np.full((3, 4), 13.0)))).any()


def shouted(documents):
    if any("secret" in text for text in documents):
        raise RuntimeError(documents)
    return [text.upper().lower() for text in documents]


@pytest.mark.parametrize("container", [list, np.array, pd.Series])
def test_so_it_is_for_texts(container):
    step = RowByRow(FunctionTransformer(shouted))
    assert step.fit_transform(container(["a b", "my secret", "c d"])) == ["a b", "", "c d"]
    assert step.fit_transform(["c \ud800"]) == ["c ?"]


def test_a_function_that_mixes_rows_is_called_for_each():
    centred = RowByRow(FunctionTransformer(lambda X: X - X.mean(axis=0)))
    assert not centred.fit_transform(np.arange(6.0).reshape(3, 2)).any()
    whole = RowByRow(FunctionTransformer())
    assert whole.fit_transform("anything") == "anything"
    assert clone(centred).transformer.func is centred.transformer.func


def model(step):
    return Pipeline([("step", step), ("topics", PrivateSpectralLDA(1))])


@every_way
@pytest.mark.parametrize("refused", [1, 240, 300])
def test_a_row_that_a_function_fails_on_ends_no_search(refused, making):
    """Wherever it is: training rows and held-out ones are drawn anew by each search."""
    rows = counts()
    rows[:refused, 0] = 13
    one = PrivateSearchCV(
        model(FunctionTransformer(making)), {"topics__n_components": [1]}, n_trials=1.0, epsilon=5.0
    ).fit(rows)
    assert one.privacy_report_.n_units == 300
    assert np.isfinite(one.best_score_)
    assert one.transform(rows).shape == (300, 1)


def test_a_text_that_a_function_fails_on_ends_no_search():
    documents = ["my secret", *texts(200)]
    steps = [("shout", FunctionTransformer(shouted)), *pipeline().steps]
    found = search(Pipeline(steps), n_trials=1.0).fit(documents)
    assert len(found.best_estimator_.named_steps["counts"].vocabulary_) == 12


@pytest.mark.parametrize(
    "fussy",
    [
        lambda X: 1 / 0 if (np.asarray(X) < 2).any() else X,
        lambda X: X[X.sum(axis=1) > 100],
        lambda X: np.log(np.zeros((len(X), 2))),
        lambda X: "text",
    ],
)
def test_a_function_that_refuses_blank_rows_is_refused_before_the_charge(fussy):
    """It would fail where another row is refused, and nowhere else."""
    budget, rows = BudgetAccountant(), np.full((50, 3), 50.0)
    one = PrivateSearchCV(
        model(FunctionTransformer(fussy)), {"topics__n_components": [1]}, accountant=budget
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what numpy says of a row of zeros
        with pytest.raises(ValueError, match="must accept a blank row"):
            one.fit(rows)
        later = Pipeline([("first", Normalizer()), *model(FunctionTransformer(fussy)).steps])
        with pytest.raises(ValueError, match="must accept a blank row"):
            one.set_params(estimator=later).fit(rows)
    assert budget.entries == ()


MIXTURE = PrivateTensorPowerMethod(1, moment="gaussian_mixture", data_norm=2.0)


@pytest.mark.parametrize("step", [Normalizer(), FunctionTransformer()])
def test_data_that_no_step_takes_is_refused_before_the_charge(step):
    """As in a fit of the private estimator alone."""
    rows, budget = counts(), BudgetAccountant()
    rows[7, 2] = np.nan
    one = PrivateSearchCV(
        make_pipeline(step, MIXTURE), {}, score_bounds=(-9.0, 0.0), accountant=budget
    )
    with pytest.raises(ValueError, match="contains NaN"):
        one.fit(rows)
    below = make_pipeline(FunctionTransformer(np.negative), PrivateSpectralLDA(1))
    with pytest.raises(ValueError, match="Negative values"):
        one.set_params(estimator=below).fit(counts())
    assert budget.entries == ()


@pytest.mark.parametrize("hostile", [3, None, b"bytes", ["word"], float("nan")])
def test_what_is_no_text_is_refused_before_the_charge(hostile):
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(n_features=8, norm=None, alternate_sign=False)
    one = PrivateSearchCV(
        make_pipeline(words, PrivateSpectralLDA(1)), {"hashingvectorizer__analyzer": ["char"]},
        epsilon=9.0, n_trials=1.0, accountant=(budget := BudgetAccountant()),
    )  # fmt: skip
    with pytest.raises(ValueError, match="X must hold texts"):
        one.fit([*texts(60), hostile])
    assert budget.entries == ()
    # Half of a surrogate pair has no bytes to hash.
    assert np.isfinite(one.fit([*texts(60), "\ud800"]).best_score_)


def test_a_completion_may_follow_a_function():
    cells = np.argwhere(np.ones((9, 9)))
    pipe = make_pipeline(
        FunctionTransformer(MAKING["raise"]), PrivateCPCompletion(1, bounds=(0, 1))
    )
    found = PrivateSearchCV(pipe, {}, n_trials=1.0).fit(cells, cells.sum(axis=1) / 16)
    assert found.predict(cells).shape == (81,)
