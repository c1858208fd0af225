"""A budget in a file: shared by threads, processes and sessions, charged for every fit."""

import contextlib
import copy
import gc
import json
import math
import multiprocessing
import os
import pickle
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from internals import answering
from ledger_processes import run_script
from sklearn.base import clone
from small_completions import X0, Y0, build

import sktensor_dp
from sktensor_dp import BudgetAccountant, BudgetError
from sktensor_dp.exceptions import LedgerError
from sktensor_dp.privacy.ledger import Ledger
from sktensor_dp.privacy.ledger_entries import UNIT, LedgerEntry, Spending
from sktensor_dp.privacy.plan import PrivacyCost

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "budget.sqlite")


def fast(**parameters: Any) -> Any:
    """An estimator that fits in milliseconds; two releases."""
    options = {"perturbation": "gradient", "max_iter": 2, "epsilon": 1.0}
    return build(**{**options, **parameters})


def n_fits(budget: BudgetAccountant) -> int:
    return len({entry.fit for entry in budget.entries})


# One file


def test_infinite_costs_are_refused_by_a_limit_and_else_kept(path):
    one = BudgetAccountant(1.0, 0.0, path=path).spend(1.0, 0)
    two = BudgetAccountant(math.inf, 1e-6, path=f"{path}2")
    fast(accountant=two, epsilon=math.inf).fit(X0, Y0)
    for epsilon in (0.1, math.inf):
        with pytest.raises(BudgetError, match="Nothing more was charged"):
            fast(accountant=one, epsilon=epsilon).fit(X0, Y0)
    again = BudgetAccountant(path=two.path)
    assert (one.total(), again.total()) == ((1.0, 0.0), (math.inf, 1e-6))
    assert (len(one.entries), again.entries) == (1, two.entries)


def test_a_file_has_one_budget_which_stands(path):
    """A forgotten or misspelt scope takes it or is refused, with and without an epsilon."""
    with pytest.raises(BudgetError, match="does not exist"):
        BudgetAccountant(path=path)
    with pytest.raises(ValueError, match="epsilon"):
        BudgetAccountant(-1.0, path=path)
    assert not Path(path).exists()
    BudgetAccountant(2.0, 1e-7, path=path, scope="ratings").spend(0.5, 0)
    for again in ({}, {"epsilon": 2.0}, {"scope": "ratings"}):
        stored = BudgetAccountant(**again, path=path)
        assert (stored.scope, stored.epsilon, stored.delta) == ("ratings", 2.0, 1e-7)
        assert stored.total()[0] == 0.5
    for wrong, message in (
        ({"epsilon": 3.0}, "epsilon is 3.*epsilon=2"),
        ({"epsilon": 2.0, "delta": 1e-6}, "delta is .*delta=1e-07"),
        ({"scope": "rating"}, "scope is 'rating'.*scope='ratings'"),
        ({"epsilon": 2.0, "scope": "default"}, "scope is 'default'.*scope='ratings'"),
    ):
        with pytest.raises(ValueError, match=message):
            BudgetAccountant(**wrong, path=path)
    for odd in ({"scope": "\ud800", "path": path}, {"path": f"{path}\ud800"}):
        with pytest.raises(ValueError, match=r"^(scope|path) must be text"):
            BudgetAccountant(1.0, **odd)
    with pytest.raises(TypeError, match="scope must be a str, got int"):
        BudgetAccountant(1.0, path=path, scope=1)  # type: ignore[arg-type]


def test_a_change_of_the_budget_is_on_record_and_holds_for_every_object(path):
    first, kept = BudgetAccountant(10.0, path=path), Ledger(path)
    first.spend(4.0, 0).change_budget(1.0)
    with pytest.raises(BudgetError, match="the budget is 1, of which 4 is spent"):
        first.spend(0.01, 0)
    for budget in (first, BudgetAccountant(1.0, path=path)):
        assert (budget.epsilon, budget.total(), len(budget.entries)) == (1.0, (4.0, 1e-6), 1)
        assert [(change.old, change.new) for change in budget.changes] == [(10.0, 1.0)]
        assert "epsilon 4 of 1 is spent" in str(budget)
        assert "the budget became 1; it was 10" in str(budget)
        assert json.loads(budget.to_json())["changes"][0]["old"] == 10.0
        assert json.loads(budget.to_json())["entries"][0]["fraction"] == 4.0
        for kind in ("gaussian", "vocabulary", "pure"):
            assert budget.remaining(2, kind)["epsilon"] == 0
    with pytest.raises(BudgetError, match="has become 1"):
        kept.change_budget(10.0, 20.0)
    kept.verify()


def test_the_path_is_that_of_the_first_moment(tmp_path):
    file, elsewhere = tmp_path / "budget.sqlite", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with contextlib.chdir(tmp_path):
        budget = BudgetAccountant(1.0, path="budget.sqlite")
    with contextlib.chdir(elsewhere):
        pickle.loads(pickle.dumps(budget)).spend(0.5, 0)
    budget.spend(0.25, 0)
    # What is shown of it finds it from any folder.
    assert budget.path == json.loads(budget.to_json())["path"] == str(file)
    assert f"path={budget.path!r}" in repr(budget)
    assert list(elsewhere.iterdir()) == []
    assert BudgetAccountant(path=file).total() == (0.75, 1e-6)


@pytest.mark.parametrize("name", ["a b?mode=memory#%41.sqlite", ":memory:", "naïve'\"; --.db"])
def test_names_of_files_are_taken_literally(name, tmp_path):
    BudgetAccountant(1.0, path=tmp_path / name).spend(0.5, 0)
    assert (tmp_path / name).is_file()
    assert BudgetAccountant(path=tmp_path / name).total()[0] == 0.5


# What was released, and when


def test_every_release_of_a_fit_is_in_the_ledger(path):
    budget = BudgetAccountant(5.0, 1e-6, path=path)
    report = fast(accountant=budget, epsilon=2.0).fit(X0, Y0).privacy_report_
    for entry in budget.entries:
        rows = [row for row in report.rows if row.name == entry.release]
        largest = max(rows, key=lambda row: row.sensitivity)
        assert (entry.sensitivity, entry.sigma) == (largest.sensitivity, largest.sigma)
        assert entry.uses == sum(row.uses for row in rows)
        assert entry.cost.mu == largest.mu == pytest.approx(entry.sensitivity / entry.sigma)
        assert (entry.spender, entry.unit) == ("PrivateCPCompletion", "entry")
        assert entry.when is not None
        assert entry.when.utcoffset().total_seconds() == 0  # type: ignore[union-attr]
    assert {entry.release for entry in budget.entries} == {row.name for row in report.rows}


def test_charge_and_release_are_on_record_before_noise_is_drawn(path):
    seen = []

    def watched(usual: Any, *of: Any) -> Any:
        cost = of[3]
        # A new connection sees what is committed, and that alone.
        seen.append([e.sigma for e in BudgetAccountant(path=path).entries if e.cost == cost])
        return usual(*of)

    with answering(watched):
        fast(accountant=BudgetAccountant(5.0, 1e-6, path=path)).fit(X0, Y0)
    assert len(seen) >= 2
    assert all(sigmas and None not in sigmas for sigmas in seen)


def test_exports(path):
    budget = BudgetAccountant(3.0, 1e-6, path=path, scope="<b>survey</b>")
    budget.charge([LedgerEntry("<script>", "a&b", 2, PrivacyCost(mu=0.1), "<u>")])
    budget.spend(0.5, 0)
    content = json.loads(budget.to_json())
    assert [row["estimator"] for row in content["entries"]] == ["<script>", "caller"]
    assert content["spent"] == budget.total()[0]
    assert [row["uses"] for row in content["entries"]] == [2, 1]
    assert json.loads(BudgetAccountant().to_json())["epsilon"] == "inf"
    assert f"path={path!r}, scope='<b>survey</b>'): spent epsilon" in repr(budget)


# Many at a time


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork processes")


@pytest.mark.nightly
@forks
@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_eight_processes_spend_exactly_the_budget(kind, path):
    answer = run_script("charge", path, "--kind", kind, "--charges", "20", "--admitted", "50")
    assert (sum(answer["succeeded"]), sum(answer["refused"])) == (50, 8 * 20 - 50)
    budget = BudgetAccountant(path=path)
    spenders = [entry.spender for entry in budget.entries]
    assert [spenders.count(f"process {n}") for n in range(8)] == answer["succeeded"]
    assert budget.total()[0] == pytest.approx(5.0, rel=1e-9)


# Run where no threads are left over.
FORKING = """
import os, sys, threading
from sktensor_dp import BudgetAccountant
budget = BudgetAccountant(1000.0, 0.0, path=sys.argv[1])
work = lambda: [budget.spend(1.0, 0) for _ in range(12)]
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        budget.spend(1.0, 0); os._exit(0)
    children.append(child)
[t.join() for t in threads]
assert [os.waitpid(c, 0)[1] for c in children] == [0] * 4
"""


@forks
def test_a_fork_waits_for_the_connections_of_other_threads(path):
    """A connection copied by a fork would share its locks."""
    command = [sys.executable, "-W", "ignore", "-c", FORKING, path]
    environment = {**os.environ, "PYTHONPATH": str(Path(sktensor_dp.__file__).parents[1])}
    subprocess.run(command, check=True, timeout=120, env=environment)
    assert BudgetAccountant(path=path).total()[0] == 28.0


# Scikit-learn


def test_copies_and_clones_charge_the_same_ledger(path):
    budget = BudgetAccountant(5.0, 1e-6, path=path)
    assert clone(budget) is copy.copy(budget) is copy.deepcopy(budget) is budget
    estimator = clone(fast(accountant=budget))
    assert estimator.accountant is budget
    pickle.loads(pickle.dumps(estimator.fit(X0, Y0))).fit(X0, Y0)
    with budget:
        fast().fit(X0, Y0)
    assert n_fits(budget) == 3


# Exact sums


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.float32])
def test_a_file_keeps_numpys_numbers_as_numbers(kind, path):
    memory, file = BudgetAccountant(9.0, 1e-6), BudgetAccountant(9.0, 1e-6, path=path)
    uses = 3 if kind is np.float32 else kind(3)
    for budget in (memory, file):
        for cost, times in ((PrivacyCost(mu=0.1), 2), (PrivacyCost(epsilon=kind(1)), uses)):
            budget.charge([LedgerEntry("a", "b", times, cost)])
    # 3 from the pure uses alone, and less than a third of it from the others.
    assert 3 < file.total()[0] < 4
    assert (file.total(), file.entries) == (memory.total(), memory.entries)
    assert type(file.entries[1].uses) is int


@pytest.mark.parametrize("value", [1 / 3, 0.1, 1e-9, 7.7, 1e-25])
def test_every_charge_is_rounded_up_by_less_than_a_unit(value):
    sums = Spending().plus([LedgerEntry("a", "g", 1, PrivacyCost(value, value, value))] * 3)
    # Epsilon and delta as people write them: a tenth is one.
    square, written = Fraction(value) ** 2, Fraction(repr(value))
    for units, one in zip(sums.amounts, (square, written, written), strict=False):
        assert 3 * one * UNIT <= units < 3 * (one * UNIT + 1)
    with pytest.raises(ValueError, match="uses must be >= 0"):
        LedgerEntry("a", "p", -1, PrivacyCost(epsilon=value))


def _spend(budget, answers):
    try:
        budget.spend(0.9, 0)
        answers.put("spent")
    except LedgerError:
        answers.put("refused")


def test_a_ledger_in_memory_is_closed_with_its_accountant(monkeypatch):
    opened, connect = [], sqlite3.connect

    def kept(*args, **options):
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", kept)
    budget = BudgetAccountant(1.0)
    del budget
    gc.collect()
    (connection,) = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_copy_of_a_ledger_in_memory_is_refused():
    context = multiprocessing.get_context("fork")
    budget, answers = BudgetAccountant(1.0, 0.0), context.Queue()
    child = context.Process(target=_spend, args=(budget, answers))
    child.start()
    assert answers.get(timeout=60) == "refused"
    child.join()
    budget.spend(0.9, 0)
