"""Steps that learn nothing: functions of the caller's row by row, and columns by ranges."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from small_searches import counts
from small_texts import pipeline, texts

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    scale_by_ranges,
)
from sktensor_dp.checks.frames import column_names, new_frame
from sktensor_dp.model_selection.pipeline_steps import RowByRow

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def odd(X):
    return (dense(X) == 13).any(axis=1)


# What functions do to a table with such a row.
MAKING = {
    "raise": lambda X: 1 / 0 if odd(X).any() else X,
    "leave it out": lambda X: X[np.flatnonzero(~odd(X))],
    "not a number": lambda X: np.where(odd(X)[:, None], np.nan, dense(X)),
    "wider": lambda X: np.tile(dense(X), (1, 2)) if odd(X).any() else X,
    "twice": lambda X: np.repeat(dense(X), 2, axis=0) if odd(X).any() else X,
    "text": lambda X: ["secret"] * X.shape[0] if odd(X).any() else X,
}


@pytest.mark.parametrize("making", MAKING.values(), ids=MAKING)
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


CELLS = np.argwhere(np.ones((9, 9)))
COMPLETION = PrivateCPCompletion(1, bounds=(0, 1))
WORDS = HashingVectorizer(n_features=8, norm=None, alternate_sign=False)


def topics_after(step):
    return make_pipeline(step, PrivateSpectralLDA(1))


def counts_with(n_refused):
    rows = counts()
    rows[:n_refused, 0] = 13
    return (rows,)


SEARCHES = [
    # Wherever it is: training rows and held-out ones are drawn anew by each search.
    *((topics_after(FunctionTransformer(making)), counts_with(n_refused))
      for making in MAKING.values() for n_refused in (1, 240, 300)),
    (Pipeline([("shout", FunctionTransformer(shouted)), *pipeline().steps]),
     (["my secret", *texts(200)],)),
    (topics_after(WORDS), ([*texts(60), "\ud800"],)),  # it has no bytes to hash
    (make_pipeline(FunctionTransformer(MAKING["raise"]), COMPLETION),
     (CELLS, CELLS.sum(axis=1) / 16)),
]  # fmt: skip


@pytest.mark.parametrize(("model", "data"), SEARCHES, ids=lambda _: "")
def test_a_row_that_a_function_fails_on_ends_no_search(model, data):
    one = PrivateSearchCV(model, {}, n_trials=1.0, epsilon=20.0, anyway=True).fit(*data)
    assert one.privacy_report_.n_units == len(data[0])
    assert np.isfinite(one.best_score_)


# Columns scaled by public ranges; missing cells stay missing

RANGES = {"age": (0.0, 120.0), "height": (1.0, 2.0)}
COLUMNS = {
    "name": ["a", "b", "c", "d"],
    "height": [1.5, 9.0, np.nan, 1.0],
    "age": [30.0, -5.0, 60.0, np.inf],
}
SCALED = [[-0.5, 0.0], [-1.0, 1.0], [0.0, np.nan], [1.0, -1.0]]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_columns_of_frames_are_found_by_name(backend):
    pytest.importorskip(backend)
    step = scale_by_ranges(RANGES)
    table = new_frame(COLUMNS, backend)
    found = step.fit_transform(table)
    np.testing.assert_array_equal(np.column_stack([found["age"], found["height"]]), SCALED)
    assert column_names(found) == ["age", "height"]
    assert type(found) is type(table)
    assert step.get_feature_names_out().tolist() == ["age", "height"]
    assert clone(step).ranges == RANGES


def test_columns_of_arrays_are_found_by_number():
    X = np.column_stack([np.arange(4), COLUMNS["height"], COLUMNS["age"]])
    step = scale_by_ranges({2: RANGES["age"], 1: RANGES["height"]})
    found = step.transform(X)
    np.testing.assert_array_equal(found, SCALED)
    np.testing.assert_array_equal(step.transform(X.tolist()), SCALED)
    rows = np.concatenate([step.transform(row) for row in np.split(X, 4)])
    np.testing.assert_array_equal(rows, found)
    np.testing.assert_array_equal(step.inverse_transform(found[1]), [0.0, 2.0])


def test_missing_cells_reach_the_step_that_takes_them_and_are_refused_by_others():
    X = np.random.default_rng(0).uniform(0, 9, (600, 2))
    X[::3, 1] = np.nan
    scale, budget = scale_by_ranges({0: (0, 9), 1: (0, 9)}), BudgetAccountant(9.0)
    for model in (PrivateTensorPowerMethod(1, data_norm=2.0), PrivateSpectralLDA(2)):
        with pytest.raises(ValueError, match="contains NaN"):
            make_pipeline(scale, model.set_params(accountant=budget)).fit(X)
    assert not budget.entries
    model = PrivateGaussianMixture(2, data_norm=2.0, epsilon=np.inf, random_state=0)
    found = make_pipeline(scale, model).fit(X).predict_proba(X)
    scaled = np.where(np.isnan(X), np.nan, X / 4.5 - 1)
    np.testing.assert_allclose(found, model.fit(scaled).predict_proba(scaled), rtol=1e-6)


@pytest.mark.parametrize(
    "ranges", [None, {}, {0: (1.0, 1.0)}, {0: (2.0, 1.0)}, {0: (0.0, np.inf)}, {0: 3.0}, [(0, 1)]]
)
def test_wrong_ranges_are_refused(ranges):
    wrong = r"ranges(\[0\] must be| must map one column or more to) \(low, high\)"
    with pytest.raises(ValueError, match=wrong):
        scale_by_ranges(ranges)


def test_a_wrong_range_is_shown_with_its_column():
    with pytest.raises(ValueError, match=r"ranges\['age'\] must be .*; got \(100, 0\)"):
        scale_by_ranges({"height": (1, 2), "age": (100, 0)})


@pytest.mark.parametrize(
    ("column", "X"),
    [
        ("age", {"height": [1.0, 2.0], "age": ["secret", "2"]}),
        ("weight", {"height": [1.0, 2.0]}),
        (1, [[1.0, "secret"], [2.0, "2"]]),
        (3, [[1.0, 2.0]]),
    ],
)
def test_errors_name_the_column_and_quote_no_cell(column, X):
    step = scale_by_ranges({"height" if isinstance(X, dict) else 0: (1, 2), column: (0, 1)})
    with pytest.raises(ValueError, match=f"^column {column!r} of X must be there, and") as caught:
        step.transform(new_frame(X) if isinstance(X, dict) else X)
    assert "secret" not in str(caught.value)
