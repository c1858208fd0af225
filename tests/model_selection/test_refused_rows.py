"""Steps that learn nothing and fail on a training row: a blank row stands for it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from small_searches import counts
from small_texts import pipeline, search, texts

from sktensor_dp import (
    BudgetAccountant,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.model_selection.stateless_steps import RowByRow, asked_row_by_row

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def picky(X):
    """Fails on a row with a 13."""
    rows = X.toarray() if sp.issparse(X) else np.asarray(X)
    if (rows == 13).any():
        raise ValueError("13")
    return X


def shouted(documents):
    if any("secret" in text for text in documents):
        raise RuntimeError(documents)
    return [text.upper().lower() for text in documents]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix, pd.DataFrame])
def test_a_blank_row_stands_for_one_that_is_refused_and_no_other_row_changes(seed, container):
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 12, (9, 4)).astype(float)
    bad, blank = rows.copy(), rows.copy()
    places = rng.choice(9, rng.integers(1, 9), replace=False)
    bad[places, rng.integers(4)], blank[places] = 13, 0
    step = RowByRow(FunctionTransformer(picky))
    whole, found = (step.fit_transform(container(some)) for some in (rows, bad))
    plain = [np.asarray(sp.csr_matrix(some).todense()) for some in (whole, found)]
    assert (plain[0] == rows).all()
    assert (plain[1] == blank).all()
    assert type(found) is type(container(rows))
    # Also where every row is refused.
    every = step.fit_transform(container(np.full((3, 4), 13.0)))
    assert sp.csr_matrix(every).nnz == 0


@pytest.mark.parametrize("container", [list, np.array, pd.Series])
def test_so_it_is_for_texts(container):
    documents = ["a b", "my secret", "c d"]
    step = RowByRow(FunctionTransformer(shouted))
    assert list(step.fit_transform(container(documents))) == ["a b", "", "c d"]


def test_mixed_columns_are_blanked_by_their_type():
    frame = pd.DataFrame({"n": [1, 2], "x": [0.5, 13.0], "t": ["a", "b"], "b": [True, True]})
    frame["day"], frame["kind"] = pd.to_datetime(["2020-01-01"] * 2), pd.Categorical(["u", "v"])
    found = RowByRow(FunctionTransformer(lambda X: (picky(X[["x"]]), X)[1])).fit_transform(frame)
    assert found.iloc[0].equals(frame.iloc[0])
    assert found.iloc[1, :4].tolist() == [0, 0.0, "", False]
    assert found.iloc[1, 4:].isna().all()
    assert (found.dtypes == frame.dtypes).all()


def test_frames_of_polars_are_blanked():
    polars = pytest.importorskip("polars", reason="the extra [frames] is not installed")
    frame = polars.DataFrame({"x": [1.0, 13.0], "n": [1, 2], "t": ["a", "b"]})
    take = FunctionTransformer(lambda X: (picky(X["x"].to_numpy()), X)[1])
    blanked = [(1.0, 1, "a"), (0.0, 0, "")]
    assert RowByRow(take, finite=True).fit_transform(frame).rows() == blanked


def model(step):
    return Pipeline([("step", step), ("topics", PrivateSpectralLDA(1))])


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("refused", [1, 240, 300])
def test_a_row_that_a_step_fails_on_ends_no_search(refused, nested):
    rows = counts()
    rows[:refused, 0] = 13
    step = FunctionTransformer(picky)
    one = PrivateSearchCV(
        model(make_pipeline(step) if nested else step), {"topics__n_components": [1]},
        n_trials=1.0, epsilon=5.0,
    )  # fmt: skip
    kept = one.fit(rows).best_estimator_.named_steps["step"]
    assert isinstance(kept[-1] if nested else kept, FunctionTransformer)
    assert one.privacy_report_.n_units == 300


def test_a_row_that_validation_of_a_step_refuses_ends_no_search():
    rows = counts()
    rows[7, 2] = np.nan
    mixture = PrivateTensorPowerMethod(1, moment="gaussian_mixture", data_norm=2.0)
    PrivateSearchCV(
        make_pipeline(Normalizer(), mixture), {"normalizer__norm": ["l1", "l2"]}, n_trials=1.0,
        epsilon=5.0, score_bounds=(-9.0, 0.0),
    ).fit(rows)  # fmt: skip


def test_a_text_that_a_step_fails_on_ends_no_search():
    documents = ["my secret", *texts(200)]
    steps = [("shout", FunctionTransformer(shouted)), *pipeline().steps]
    found = search(Pipeline(steps), n_trials=1.0).fit(documents)
    assert len(found.best_estimator_.named_steps["counts"].vocabulary_) == 12


def test_a_step_that_refuses_blank_rows_is_refused_before_the_charge():
    """It would fail where another row is refused, and nowhere else."""
    fussy = FunctionTransformer(lambda X: 1 / 0 if (np.asarray(X) < 2).any() else X)
    budget = BudgetAccountant()
    one = PrivateSearchCV(model(fussy), {"topics__n_components": [1]}, accountant=budget)
    with pytest.raises(ValueError, match="must accept a blank row"):
        one.fit(np.full((50, 3), 5.0))
    assert budget.entries == ()
    # A later step is asked once the search has begun, whatever the rows are.
    later = Pipeline([("first", FunctionTransformer()), *model(fussy).steps])
    with pytest.raises(ValueError, match="must accept a blank row"):
        one.set_params(estimator=later).fit(np.full((50, 3), 5.0))


def test_a_step_that_mixes_rows_is_told_so():
    alone = FunctionTransformer(lambda X: X if len(X) == 1 else 1 / 0)
    with pytest.raises(ValueError, match="one by one and not together"):
        RowByRow(alone).fit_transform(np.ones((3, 2)))


def test_what_learns_in_public_is_asked_as_it_is():
    step = FunctionTransformer(picky)
    pipe = model(step)
    with asked_row_by_row(pipe, {"step"}):
        assert pipe.steps[0][1] is step
    with asked_row_by_row(pipe, ()):
        assert pipe.steps[0][1].step is step
        assert isinstance(pipe.steps[1][1], PrivateSpectralLDA)
    assert pipe.steps[0][1] is step


def test_without_refused_rows_nothing_changes():
    rows = texts(20)
    step = HashingVectorizer(n_features=32)
    assert (RowByRow(step).fit_transform(rows) != step.transform(rows)).nnz == 0


def without_long_rows(X):
    """Leaves out rows with a 13."""
    return X[(np.asarray(X) != 13).all(axis=1)]


def unknown_for_some(X):
    """Makes NaN of rows with a 13."""
    return np.where((X == 13).any(axis=1, keepdims=True), np.nan, X)


@pytest.mark.parametrize("making", [without_long_rows, unknown_for_some])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("refused", [1, 150, 300])
def test_a_row_that_a_step_leaves_out_or_makes_nan_of_ends_no_search(refused, nested, making):
    """Wherever it is: training rows and held-out ones are drawn anew by each search."""
    rows = counts()
    rows[:refused, 0] = 13
    step = FunctionTransformer(making)
    found = PrivateSearchCV(
        Pipeline([("before", make_pipeline(step, None) if nested else step),
                  ("nothing", "passthrough"), ("topics", PrivateSpectralLDA(1))]),
        {"topics__n_components": [1]}, n_trials=1.0, epsilon=5.0,
    ).fit(rows)  # fmt: skip
    assert found.privacy_report_.n_units == 300
    assert np.isfinite(found.best_score_)


@pytest.mark.parametrize("making", [without_long_rows, unknown_for_some])
def test_a_blank_row_stands_for_one_that_is_left_out_or_made_nan_of(making):
    rows = np.arange(1.0, 13.0).reshape(4, 3)
    bad = rows.copy()
    bad[2, 1] = 13
    found = RowByRow(FunctionTransformer(making), finite=True).fit_transform(bad)
    rows[2] = 0
    assert (found == rows).all()
    kept = RowByRow(FunctionTransformer(unknown_for_some)).fit_transform(bad)
    assert np.isnan(kept[2]).all()


def test_a_step_that_leaves_out_blank_rows_is_refused_before_the_charge():
    leaving = FunctionTransformer(lambda X: X[X.sum(axis=1) > 100])
    budget = BudgetAccountant()
    one = PrivateSearchCV(model(leaving), {"topics__n_components": [1]}, accountant=budget)
    with pytest.raises(ValueError, match="must accept a blank row"):
        one.fit(np.full((50, 3), 50.0))
    assert budget.entries == ()
