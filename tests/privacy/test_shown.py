"""Reports, forecasts and budgets: tables in a terminal, pages in a notebook."""

import html
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from html_tags import Tags
from internals import page_of, table_of
from sklearn.utils import estimator_html_repr

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.checks.display import VARIABLE, Table, TableDisplay, link_to

DOCS = Path(__file__).parents[2] / "docs"
SITE = "https://docs.example/en/"
MIXTURE = {"moment": "gaussian_mixture", "data_norm": 8.0}


ESTIMATORS = (
    PrivateSpectralLDA(), PrivateTensorPowerMethod(), PrivateCPCompletion(),
    PrivateTuckerCompletion(), PrivateCountVectorizer(),
)  # fmt: skip


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
def test_a_terminal_and_a_notebook_show_the_same_table_and_no_markup(shown, monkeypatch):
    monkeypatch.setenv(VARIABLE, SITE)
    for name, item in shown.items():
        table, tags, lines = table_of(item), Tags(), str(item).splitlines()
        assert lines[0] == table.title, name
        assert lines[1].split() == " ".join(table.head).split()
        assert len(lines) == 2 + len(table.rows) + len(table.notes)
        assert name == "budget" or str(item) == repr(item)
        tags.feed(item._repr_html_())
        assert not tags.open
        cells = [table.title, *table.notes, *(cell for row in table.rows for cell in row)]
        assert all(cell in tags.text for cell in cells), name
        assert f'href="{SITE}' in item._repr_html_()
    monkeypatch.setenv(VARIABLE, '"><script>')
    assert not any(f"<{tag}>" in Nasty()._repr_html_() for tag in ("i", "b", "u", "s", "script"))


class Nasty(TableDisplay):
    _page = 'a"b.html'

    def _table(self):
        return Table("<i>", ["<b>"], [["<u>"]], ["<s>"])


def test_links_lead_to_pages_that_there_are(shown, fitted, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert link_to("budget.html") == ""
    assert all("href" not in item._repr_html_() for item in shown.values())
    monkeypatch.setenv(VARIABLE, SITE)
    listed = (DOCS / "reference" / "api.rst").read_text(encoding="utf-8").split()
    for page in {page_of(type(item)) for item in shown.values()}:
        name = page.removesuffix(".html")
        generated = name.removeprefix("reference/generated/sktensor_dp.")
        assert (DOCS / f"{name}.md").exists() or generated in listed, page
    for model in (*ESTIMATORS, fitted):
        name = type(model).__name__
        assert name in listed
        address = f"{SITE}reference/generated/sktensor_dp.{name}.html"
        assert html.escape(address) in estimator_html_repr(model)


def test_a_budget_is_a_line_among_parameters_and_a_table_by_itself():
    budget = BudgetAccountant(2.0).spend(0.5, 0)
    assert "\n" not in repr(budget)
    assert repr(budget) in repr(PrivateSpectralLDA(accountant=budget)).replace("\n", " ")
    said = []
    budget._repr_pretty_(SimpleNamespace(text=said.append), False)
    assert said == [str(budget)]
