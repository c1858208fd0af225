"""Reports, forecasts and budgets: tables in a terminal and in a notebook."""

from types import SimpleNamespace

import numpy as np
import pytest
from internals import table_of

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)

MIXTURE = {"moment": "gaussian_mixture", "data_norm": 8.0}


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(3000, 3)) + np.repeat([[3, 0, 0], [0, 3, 0]], 1500, 0)
    search = PrivateSearchCV(
        PrivateTensorPowerMethod(2, **MIXTURE), {"data_norm": [8.0, 9.0]}, score_bounds=(-20, 0),
        n_trials=2, epsilon=20.0,
    )  # fmt: skip
    return search.fit(X)


@pytest.fixture
def shown(fitted):
    completion = PrivateCPCompletion(2, bounds=(1, 5))
    return {
        "report": fitted.privacy_report_,
        "budget": BudgetAccountant(2.0).spend(0.5, 0),
        "forecast of components": PrivateTensorPowerMethod(2, data_norm=9.0).forecast(1000, 5),
        "forecast of topics": PrivateSpectralLDA(3, neighbours="add_remove").forecast(1000, 50),
        "forecast of a completion": completion.forecast(5000, (50, 20)),
    }


@pytest.mark.filterwarnings("ignore")
def test_a_terminal_shows_the_table(shown):
    for name, item in shown.items():
        table, lines = table_of(item), str(item).splitlines()
        assert lines[0] == table.title, name
        assert lines[1].split() == " ".join(table.head).split()
        assert len(lines) == 2 + len(table.rows) + len(table.notes)
        assert name == "budget" or str(item) == repr(item)


def test_a_budget_is_a_line_among_parameters_and_a_table_by_itself():
    budget = BudgetAccountant(2.0).spend(0.5, 0)
    assert "\n" not in repr(budget)
    assert repr(budget) in repr(PrivateSpectralLDA(accountant=budget)).replace("\n", " ")
    said = []
    budget._repr_pretty_(SimpleNamespace(text=said.append), False)
    assert said == [str(budget)]
