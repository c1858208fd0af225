"""Searches and private scores take rows one by one, which Dask has not computed."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from sktensor_dp import (
    BudgetAccountant,
    PrivateSearchCV,
    PrivateSpectralLDA,
    make_private_scorer,
)


@pytest.mark.parametrize("of", ["array", "frame"])
def test_searches_and_scores_ask_for_rows_in_memory_before_the_charge(of: str) -> None:
    X = np.random.default_rng(0).poisson(1.0, (700, 6))
    table = pd.DataFrame(X, columns=list("abcdef"))
    data = da.from_array(X, chunks=(100, 6)) if of == "array" else dd.from_pandas(table, 3)
    budget = BudgetAccountant(epsilon=5.0, delta=1e-5)
    model = PrivateSpectralLDA(2, epsilon=float("inf"), n_refinements=0)
    search = PrivateSearchCV(model, {"n_components": [1, 2]}, n_trials=2, accountant=budget)
    scorer = make_private_scorer("log_likelihood_per_token", epsilon=1.0, accountant=budget)
    fitted = PrivateSpectralLDA(2, epsilon=float("inf"), n_refinements=0).fit(table)
    for ask in (lambda: search.fit(data), lambda: scorer(fitted, data)):
        with pytest.raises(TypeError, match="X must lie in memory"):
            ask()
    assert budget.total()[0] == 0.0
