"""Tables that validation would return as they are do not go through it."""

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.estimator.inputs import checked_table

X = np.arange(12.0).reshape(4, 3)
HOLED = np.where(X == 5, np.nan, X)
TABLES: dict[str, Any] = {
    "floats": X,
    "singles": X.astype(np.float32),
    "integers": X.astype(np.int64),
    "short integers": X.astype(np.int16),
    "rows": sp.csr_matrix(X),
    "rows, an array": sp.csr_array(X),
    "columns": sp.csc_matrix(X),
    "a list": X.tolist(),
    "a frame": pd.DataFrame(X, columns=list("abc")),
    "a hole": HOLED,
    "a hole in rows": sp.csr_matrix(HOLED),
    "an infinity": np.where(X == 5, np.inf, X),
    "a large sum": np.full((2, 3), 1e308),
    "one axis": X[0],
    "three axes": X[None],
    "no columns": X[:, :0],
    "no rows": X[:0],
    "two columns": X[:, :2],
}


def outcome(call: Any) -> tuple[Any, ...]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = call()
        except Exception as error:
            return type(error), str(error).split("\n")[0][:40]
    dense = made.toarray() if sp.issparse(made) else made
    return type(made), made.dtype, dense.tolist(), [str(w.message) for w in caught]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("seen", [None, "array", "frame"])
def test_they_are_what_validation_makes_of_them(name: str, seen: str | None) -> None:
    """Same table, same columns, same warnings; an error where it raises one."""
    table, ours = TABLES[name], PrivateSpectralLDA(2)
    if seen is not None:
        validate_data(ours, TABLES["floats" if seen == "array" else "a frame"], reset=True)
    theirs = copy.copy(ours)
    for reset in (False, True):
        made = outcome(lambda reset=reset: checked_table(ours, table, reset=reset))
        wanted = outcome(
            lambda reset=reset: validate_data(
                theirs,
                table,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32, np.int64],
            )
        )
        assert made[0] == wanted[0]
        if len(wanted) > 2:
            assert made == wanted
        assert {n: np.array(v).tolist() for n, v in vars(ours).items()} == {
            n: np.array(v).tolist() for n, v in vars(theirs).items()
        }
