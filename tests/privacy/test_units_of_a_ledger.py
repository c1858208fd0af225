"""A ledger adds up costs of one unit of privacy, unless it is told otherwise."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSpectralLDA,
)
from sktensor_dp.privacy.accountant import LedgerEntry
from sktensor_dp.privacy.plan import PrivacyCost

CELLS = np.argwhere(np.ones((6, 6)))
TEXTS = ["cats chase mice", "dogs chase cats"] * 50
PERSONS = np.repeat(np.arange(50), 2)


def charge(budget, *units):
    return budget.charge(
        [LedgerEntry("fit", "release", 1, PrivacyCost(mu=0.01), unit) for unit in units]
    )


@pytest.fixture
def ledger():
    return lambda **options: BudgetAccountant(100.0, 1e-6, **options)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("person", "document"),
        ("sample", "person"),
        ("entry", "slice"),
        ("document", "entry"),
        ("row", "person"),
    ],
)
def test_another_unit_is_refused_before_any_charge(ledger, first, second):
    budget = ledger()
    charge(budget, first)
    spent = budget.total()
    with pytest.raises(BudgetError, match=rf"'{second}', but .* '{first}'.*Nothing was charged"):
        charge(budget, second)
    with pytest.raises(BudgetError, match="units='any'"):
        budget.check_charge([LedgerEntry("f", "r", 1, PrivacyCost(mu=0.01), second)])
    assert budget.total() == spent
    assert len(budget.entries) == 1
    charge(budget, first, "")


def test_two_units_in_one_charge_are_refused(ledger):
    budget = ledger()
    with pytest.raises(BudgetError, match="Nothing was charged"):
        charge(budget, "document", "person")
    assert budget.entries == ()


@pytest.mark.parametrize(
    "units",
    [
        ("document", "sample", "row"),
        ("entry", "row"),
        ("person", "person"),
        ("slice", "slice"),
        ("", "entry", ""),
    ],
)
def test_names_of_one_kind_go_together(ledger, units):
    budget = ledger()
    for unit in units:
        charge(budget, unit)
    budget.spend(0.1, 0)
    assert len(budget.entries) == len(units) + 1


def test_any_unit_is_taken_where_that_was_asked_for(ledger):
    budget = ledger(units="any")
    for unit in ("document", "person", "entry", "slice"):
        charge(budget, unit)
    assert len(budget.entries) == 4
    with pytest.raises(ValueError, match="units must be 'one' or 'any'"):
        ledger(units="several")


def test_a_file_in_which_units_are_mixed_goes_on_to_take_them(tmp_path):
    path = tmp_path / "budget.sqlite"
    charge(BudgetAccountant(100.0, path=path, units="any"), "document", "slice")
    budget = BudgetAccountant(path=path)
    charge(budget, "slice")
    charge(budget, "sample")
    with pytest.raises(BudgetError, match="person"):
        charge(budget, "person")


def test_other_objects_of_a_file_see_its_units(tmp_path):
    path = tmp_path / "budget.sqlite"
    one, other = BudgetAccountant(100.0, path=path), BudgetAccountant(path=path)
    elsewhere = BudgetAccountant(100.0, path=path, scope="other data")
    charge(one, "document")
    with pytest.raises(BudgetError, match="'document'"):
        charge(other, "person")
    charge(elsewhere, "person")
    charge(other, "document")
    with pytest.raises(BudgetError, match="'document'"):
        charge(one, "entry")
    with closing(sqlite3.connect(path)) as file, file:
        assert file.execute("SELECT COUNT(*) FROM charges").fetchone() == (3,)


# Fifty persons are few: noise may hide the one topic.
@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_a_vocabulary_by_person_and_topics_by_document_do_not_go_together(ledger):
    budget = ledger()
    words = PrivateCountVectorizer(epsilon=9.0, max_words_per_document=4, accountant=budget)
    counts = words.fit_transform(TEXTS, groups=PERSONS)
    spent = len(budget.entries)
    topics = PrivateSpectralLDA(1, epsilon=9.0, accountant=budget)
    with pytest.raises(BudgetError, match=r"'document', but .* 'person'"):
        topics.fit(counts)
    assert len(budget.entries) == spent
    topics.fit(counts, groups=PERSONS)
    assert {entry.unit for entry in budget.entries} == {"person"}


def test_users_and_entries_do_not_go_together(ledger):
    budget = ledger()
    options = {"bounds": (0, 1), "shape": (6, 6), "accountant": budget, "epsilon": 5.0}
    PrivateCPCompletion(0, **options).fit(CELLS, np.zeros(36))
    with pytest.raises(BudgetError, match=r"'slice', but .* 'entry'"):
        PrivateCPCompletion(0, unit_mode=0, **options).fit(CELLS, np.zeros(36))
