"""Columns scaled by public ranges: row by row, finite whatever a row holds."""

import numpy as np
import pytest
from sklearn.base import clone

from sktensor_dp import scale_by_ranges
from sktensor_dp.queries.frames import new_frame

RANGES = {"age": (0.0, 120.0), "height": (1.0, 2.0)}
COLUMNS = {
    "name": ["a", "b", "c", "d"],
    "height": [1.5, 9.0, np.nan, 1.0],
    "age": [30.0, -5.0, 60.0, np.inf],
}
SCALED = [[-0.5, 0.0], [-1.0, 1.0], [0.0, 0.0], [1.0, -1.0]]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_columns_of_frames_are_found_by_name(backend):
    pytest.importorskip(backend)
    step = scale_by_ranges(RANGES)
    np.testing.assert_array_equal(step.fit_transform(new_frame(COLUMNS, backend)), SCALED)
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


@pytest.mark.parametrize(
    "ranges", [None, {}, {0: (1.0, 1.0)}, {0: (2.0, 1.0)}, {0: (0.0, np.inf)}, {0: 3.0}, [(0, 1)]]
)
def test_wrong_ranges_are_refused(ranges):
    with pytest.raises(ValueError, match="ranges must map one column or more"):
        scale_by_ranges(ranges)


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
