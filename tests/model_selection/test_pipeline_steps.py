"""Steps that learn nothing: columns by ranges."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sktensor_dp import (
    BudgetAccountant,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    scale_by_ranges,
)
from sktensor_dp.checks.frames import column_names, new_frame

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


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
