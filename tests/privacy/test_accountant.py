"""No sequence of charges, from however many threads, exceeds the budget."""

import itertools
import json
import math
import pickle
import re
import sqlite3
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from internals import table_of

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    NotEnoughDataWarning,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    check_inputs,
)
from sktensor_dp.exceptions import LedgerError
from sktensor_dp.privacy.accountant import charges_by_fit
from sktensor_dp.privacy.calibration import gaussian_epsilon, gaussian_mu
from sktensor_dp.privacy.ledger import Ledger
from sktensor_dp.privacy.ledger_entries import LedgerEntry, charges_of
from sktensor_dp.privacy.plan import FitBudget, PrivacyCost, ReleasePlan

# All pairs of ends, and two between them.
BUDGETS = [*itertools.product((1e-2, 50.0), (1e-9, 1e-3)), (0.5, 1e-6), (2.0, 1e-6)]


def fit(budget: BudgetAccountant, epsilon: float, delta: float, threshold: bool = False) -> None:
    """Charge as a Gaussian fit does, or one that spends half of its delta on a threshold."""
    reserved = {"one": delta / 2} if threshold else {}
    plan = ReleasePlan.split(epsilon, delta, {"one": 0.3, "two": 0.7}, {"two": 3}, reserved)
    budget.charge(charges_of(plan, "fit"))


def spend(budget: BudgetAccountant, kind: str, part: FitBudget) -> None:
    """Charge as a fit of one of the kinds of `split` and `remaining` does."""
    if kind in ("pure", "search"):
        budget.spend(part["epsilon"], part["delta"] if kind == "search" else 0)
    else:
        fit(budget, part["epsilon"], part["delta"], threshold=kind == "vocabulary")


def test_total_entries_and_repr():
    budget = BudgetAccountant(3.0, 1e-6)
    assert budget.total() == (0.0, 0.0)
    fit(budget, 1.0, 1e-6)
    assert budget.total() == (pytest.approx(1.0, rel=1e-9), 1e-6)
    assert [(e.spender, e.release, e.uses) for e in budget.entries] == [
        ("fit", "one", 1),
        ("fit", "two", 3),
    ]
    budget.spend(0.5, 1e-7)
    assert budget.entries[-1] == LedgerEntry("caller", "spend", 1, PrivacyCost(0.0, 0.5, 1e-7))


def test_a_budget_is_a_line_among_parameters_and_a_table_by_itself():
    budget, said = BudgetAccountant(2.0).spend(0.5, 0), []
    assert "\n" not in repr(budget)
    assert repr(budget) in repr(PrivateSpectralLDA(accountant=budget)).replace("\n", " ")
    budget._repr_pretty_(SimpleNamespace(text=said.append), False)
    assert said == [str(budget)]
    table = table_of(budget)
    title, head, *_ = str(budget).splitlines()
    assert (title, head.split()) == (table.title, " ".join(table.head).split())


def test_refused_charge_leaves_the_ledger_untouched():
    budget = BudgetAccountant(1.0, 1e-6)
    fit(budget, 0.6, 1e-6)
    before = budget.entries, budget.total()
    with pytest.raises(BudgetError, match=r"(?s)budget is 1, .*0\.6 is spent.*Nothing more was"):
        fit(budget, 0.9, 1e-6)
    # The first entry would fit in by itself: all of them or none.
    two = [LedgerEntry("fit", "one", 1, PrivacyCost(epsilon=cost)) for cost in (0.01, 0.5)]
    for refused in (
        lambda: budget.charge(two),
        lambda: budget.spend(0.1, 1e-5),
        lambda: budget.check(1.01, 0),
        lambda: budget.check(0.1, 1.01e-6),
    ):
        with pytest.raises(BudgetError):
            refused()
    assert budget.check(0.3, 0)
    assert (budget.entries, budget.total()) == before
    # A fit without noise needs an endless budget, and a Gaussian one a delta.
    for other, wanted in ((BudgetAccountant(1e9, 1e-6), (math.inf, 1e-6)),
                          (BudgetAccountant(100.0, 0.0), (0.01, 1e-9))):  # fmt: skip
        with pytest.raises(BudgetError):
            fit(other, *wanted)
        assert other.entries == ()


def test_sums_are_exact_in_any_order():
    # Floating-point sums of 500 hundredths are off by 5e-15, of 0.1 + 0.2 by 5e-17.
    for times, part, whole in ((500, 0.01, 5.0), (10, 0.1, 1.0)):
        budget = BudgetAccountant(whole, 0.0)
        for _ in range(times):
            budget.spend(part, 0)
        assert (budget.total(), budget.remaining()["epsilon"]) == ((whole, 0.0), 0.0)
        with pytest.raises(BudgetError):
            budget.spend(1e-8, 0)
    parts = [0.1, 0.2, 1e-17, 1e15]
    sums = set()
    for order in itertools.permutations(parts):
        budget = BudgetAccountant()
        for part in order:
            budget.spend(part, 0)
        sums.add(budget.total()[0])
    assert sums == {math.fsum(parts)}


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("n_fits", [3, 7, 49, 500])
def test_equal_gaussian_shares_are_admitted_exactly(epsilon, n_fits):
    """And the total is never above the budget, whatever conversions to mu and back round."""
    budget = BudgetAccountant(epsilon, 1e-6)
    plan = ReleasePlan.split(epsilon, 1e-6, {"one": 1}, {"one": n_fits})
    entry = LedgerEntry("fit", "one", 1, plan.cost_of("one"))
    for _ in range(n_fits):
        budget.charge([entry])
    with pytest.raises(BudgetError):
        budget.charge([entry])
    assert epsilon * (1 - 1e-9) < budget.total()[0] <= epsilon


@pytest.mark.parametrize("kind", ["gaussian", "pure", "vocabulary", "search"])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("k", [1, 3])
def test_remaining_is_what_k_fits_of_a_kind_can_be_given(kind, epsilon, delta, k):
    """Beside a pure charge it is found by bisection, and may be a part in a thousand short."""
    budget = BudgetAccountant(epsilon, delta)
    fit(budget, epsilon / 5, delta)
    budget.spend(epsilon / 10, delta / 10)
    part = budget.remaining(k, kind)
    for _ in range(k):
        spend(budget, kind, part)
    assert epsilon * 0.998 < budget.total()[0] <= epsilon * (1 + 1e-9)
    with pytest.raises(BudgetError):
        fit(budget, epsilon / 5, delta)


@pytest.mark.parametrize("spent", [(1.0, 0.0), (0.5, 5e-7), (0.0, 4e-7), (0.0, 8.93e-7)])
def test_a_lack_of_delta_names_a_guarantee_that_is_left(spent):
    budget = BudgetAccountant(2.0, 1e-6)
    if spent[0]:
        fit(budget, spent[0], 1e-6)
    budget.spend(0.1, spent[1])
    with pytest.raises(BudgetError, match=r"Delta is what is short.*'search'") as refused:
        budget.spend(0.5, 1e-6)
    delta, epsilon = re.findall(
        r"Ask for delta=(.*), with epsilon=(.*) at most", str(refused.value)
    )[0]
    budget.spend(float(epsilon), float(delta))
    assert budget.total()[0] > 1.9


BEYOND = "Epsilon .* bring it to"


@pytest.mark.parametrize(
    ("spent", "asked", "threshold", "short", "told"),
    [
        ((2.0, 0), (0.1, 1e-6), False, BEYOND, "Nothing is left: use a larger"),
        ((2 - 1e-9, 0), (0.1, 1e-6), False, BEYOND, "Nothing is left: use"),
        ((1.99, 0), (0.5, 1e-6), True, BEYOND, "Ask for delta=5e-07, with epsilon=0.0"),
        ((2.0, 1e-6), (0.5, 1e-6), False, "Epsilon .* delta is short, too", "Nothing is left"),
        ((2.0, 1e-6), (0.5, 1e-6), True, "Epsilon .* delta is short, too", "Nothing is left"),
        ((1.4, 1e-6), (1, 1e-6), False, "Epsilon .* too", r"Ask for pure .* epsilon=0\.6 at most"),
        ((1.9, 1e-6), (0.05, 1e-6), False, "Delta", "Ask for pure noise"),
        ((1.0, 8e-7), (0.5, 1e-6), True, "Delta", "Ask for delta=2e-07.*'vocabulary'"),
    ],
)
def test_an_excess_is_named_by_what_is_short(spent, asked, threshold, short, told):
    """Whoever has no epsilon left is not advised to ask for another delta."""
    budget = BudgetAccountant(2.0, 1e-6).spend(*spent)
    with pytest.raises(BudgetError, match=rf"^{short}.* Nothing more was charged. {told}"):
        fit(budget, *asked, threshold=threshold)


def test_remaining_of_special_budgets():
    assert BudgetAccountant().remaining(5) == {"epsilon": math.inf, "delta": 1e-6}
    pure = BudgetAccountant(2.0, 0.0).spend(0.5, 0)
    assert pure.remaining(3) == pure.remaining(np.int64(3)) == {"epsilon": 0.5, "delta": 0.0}
    assert BudgetAccountant(2.0, 1e-6).spend(1.0, 1e-6).remaining()["epsilon"] == 0.0
    assert BudgetAccountant().remaining(2, "pure") == {"epsilon": math.inf, "delta": 1e-6}
    spent = BudgetAccountant(1.0, 1e-6).spend(0.25, 1e-6)
    assert spent.remaining(3, "pure") == {"epsilon": 0.25, "delta": 1e-6}
    spent.charge([LedgerEntry("", "", 1, PrivacyCost(epsilon=0.75))])
    assert spent.remaining(3, "pure") == spent.remaining(3) == {"epsilon": 0.0, "delta": 1e-6}


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize(
    "kinds",
    [
        [],
        ["vocabulary"],
        ["vocabulary"] * 12,
        ["search"],
        ["pure", "vocabulary", "search"],
        ["search"] * 13,
    ],
)
def test_split_is_used_up_exactly(epsilon, delta, kinds):
    """By fits of each kind, in any order."""
    budget = BudgetAccountant(epsilon, delta)
    kinds = [*kinds, *["gaussian"] * (13 - len(kinds))]
    parts = budget.split(np.array([1, 3, 2, *[1] * 10]) / 16, kinds)
    for kind, part in reversed(list(zip(kinds, parts, strict=True))):
        spend(budget, kind, part)
    # Concentrated composition may cost less than the epsilons of searches together.
    assert epsilon * (1 - 1e-9) * (kinds.count("search") < 13) < budget.total()[0]
    assert budget.total()[0] <= epsilon * (1 + 1e-9)
    n_using = kinds.count("vocabulary") + kinds.count("search")
    assert budget.cost.delta == pytest.approx(min(n_using / 10, 0.5) * delta)


@pytest.mark.parametrize("kind", ["gaussian", "pure", "vocabulary", "search"])
@pytest.mark.parametrize("before", [1.0, 3.9, 3.999])
def test_what_is_left_is_named_and_divided_for_fits_of_each_kind(kind, before):
    """Where earlier noise needs nearly all of delta, a smaller one is named."""
    for divided in (False, True):
        budget = BudgetAccountant(4.0, 1e-6)
        fit(budget, before, 1e-6)
        if divided:
            parts = budget.split([0.3, 0.2, 0.5], [kind, "pure", "gaussian"], of="rest")
        else:
            parts = [budget.remaining(2, kind)] * 2
        for part, one in zip(parts, (kind, "pure" if divided else kind, "gaussian"), strict=False):
            assert part["epsilon"] > 0.0005 * (4 - before)
            spend(budget, one, part)
        assert 4 - (4 - before) / 20 < budget.total()[0] <= 4 * (1 + 1e-9)
    with pytest.raises(BudgetError, match=r"Nothing is left to divide.* 4 of 4 is spent"):
        budget.split([0.5, 0.5], of="rest")


def test_split_of_special_budgets():
    rest = BudgetAccountant(2.0, 1e-6).spend(1, 1e-6).split([0.4, 0.6], of="rest")
    assert rest == [{"epsilon": 0.4, "delta": 0.0}, {"epsilon": 0.6, "delta": 0.0}]
    halves = BudgetAccountant(2.0, 1e-6).split([0.2, 0.8])
    squares = [gaussian_mu(part["epsilon"], part["delta"]) ** 2 for part in halves]
    assert squares[1] / squares[0] == pytest.approx(4)
    # Numbers of other types are amounts, too.
    budget = BudgetAccountant(np.float32(2), np.float64(0))
    assert (type(budget.epsilon), type(budget.delta)) == (float, float)
    pure = [{"epsilon": 0.5, "delta": 0.0}, {"epsilon": 1.5, "delta": 0.0}]
    fractions = [0.25, 0.75]
    assert budget.split(np.array(fractions)) == BudgetAccountant(2, 0).split(fractions) == pure
    endless = BudgetAccountant().split(fractions)
    assert endless == [{"epsilon": math.inf, "delta": 1e-6}] * 2


def test_a_part_of_a_split_leaves_what_unspent_ones_need(tmp_path):
    """As where a pipeline is fitted again after its second step failed."""
    path, fractions = tmp_path / "budget.sqlite", [0.01, 0.3, 0.69]
    kinds = ["gaussian", "vocabulary", "gaussian"]
    budget = BudgetAccountant(3.0, 1e-6, path=path)
    check, words, topics = budget.split(fractions, kinds)
    fit(budget, **words, threshold=True)
    again = BudgetAccountant(path=path)  # a program that is run again
    assert again.split(fractions, kinds) == [check, words, topics]
    for one in (budget, again):
        with pytest.raises(
            BudgetError, match=r"epsilon 0\.25, 2\.4.*Nothing.*pipeline\[1:\]\.fit\("
        ):
            fit(one, **words, threshold=True)
    fit(again, **topics)
    fit(budget, **check)  # in any order, by anyone
    assert budget.total()[0] == 3.0
    # Two splits, each of the whole.
    budget = BudgetAccountant(3.0, 1e-6)
    fit(budget, **budget.split([0.01, 0.99])[0])
    words, _ = budget.split([0.3, 0.7], kinds[1:])
    with pytest.raises(BudgetError, match=r"0\.24.* is spent.*of='rest'"):
        fit(budget, **words, threshold=True)
    words, topics = budget.split([0.3, 0.7], kinds[1:], of="rest")
    fit(budget, **words, threshold=True)
    fit(budget, **topics)
    assert budget.total()[0] == 3.0


@pytest.mark.parametrize("kind", ["gaussian", "pure", "vocabulary", "search"])
@pytest.mark.parametrize(
    "fractions", [[0.25] * 4, [0.4, 0.2, 0.2, 0.2], [0.2501, 0.25, 0.2499, 0.25], [1 / 12] * 12]
)
def test_a_part_is_paid_once_by_programs_that_are_run_again(fractions, kind, tmp_path):
    kinds = [kind] * len(fractions)
    for place in range(len(fractions)):
        budget = BudgetAccountant(2.0, 1e-6, path=tmp_path / "budget.sqlite")
        parts = budget.split(fractions, kinds)
        spend(budget, kind, parts[place])
        left = len(fractions) - 1 - place
        for earlier in parts[: place + 1] if left else ():
            with pytest.raises(BudgetError, match=f"{left} part.* twice|is what is short"):
                spend(budget, kind, earlier)
    assert budget.total()[0] <= 2.0 * (1 + 1e-9)


def test_charges_of_a_fit_belong_together_where_others_stand_between():
    """As of a fit that another process overtakes, between its count and the rest."""
    entries = [
        LedgerEntry("fit", name, 1, PrivacyCost(0.1), fit=n)
        for name, n in zip(["a1", "b2", "c1"], [1, 2, 1], strict=True)
    ]
    first, second = charges_by_fit(entries)
    assert [one.release for one in first] == ["a1", "c1"]
    assert second == entries[1:2]


FIT = ReleasePlan.split(1.0, 1e-6, {"a": 0.36, "b": 0.64}, {"b": 4})


def test_what_is_given_back_pays_for_the_same_kind_of_noise_and_lowers_no_total(tmp_path):
    for path in (None, tmp_path / "budget.sqlite"):
        budget = BudgetAccountant(1.0, 1e-6, path=path)
        receipt = budget.charge(charges_of(FIT, "fit", "document"))
        receipt.give_back(replace(FIT.planned[1], uses=3))
        assert budget.total()[0] == pytest.approx(1.0)
        assert budget.remaining(kind="pure")["epsilon"] == 0
        assert budget.remaining(kind="search")["epsilon"] == 0
        epsilon = budget.remaining()["epsilon"]
        assert epsilon == pytest.approx(gaussian_epsilon(FIT.cost.mu * 0.48**0.5, 1e-6))
        halves = [part["epsilon"] for part in budget.split([0.5, 0.5], of="rest")]
        assert halves == pytest.approx([budget.remaining(2)["epsilon"]] * 2, rel=1e-4)
        with pytest.raises(BudgetError, match="Epsilon is what is short"):
            budget.check_charge(charges_of(ReleasePlan.split(1.001 * epsilon, 1e-6, {"a": 1}), "x"))
        for n_given in (2, 1):  # of "b" 4 - 3 are left, and those of "a" cost as much as 2.25
            with pytest.raises(ValueError, match="more would be given back"):
                receipt.give_back(replace(FIT.planned[1], uses=n_given + 3))
        part = budget.split([1.0], of="rest")[0]
        budget.charge(charges_of(ReleasePlan.split(**part, fractions={"a": 1}), "fit", "document"))
        assert budget.total()[0] == pytest.approx(1.0)
        assert budget.remaining()["epsilon"] == pytest.approx(0, abs=1e-4)
        assert [row["uses"] for row in json.loads(budget.to_json())["entries"]] == [1, 4, -3, 1]
        assert "planned uses below 0" in str(budget)
        if path is not None:
            Ledger(path).verify()
            assert BudgetAccountant(path=path).entries == budget.entries
            with pytest.raises(LedgerError, match="fewer charges"):
                older_copy_gives_back(budget, receipt)


def older_copy_gives_back(budget, receipt):
    older = Path(budget.path).read_bytes()
    budget.spend(0, 0)
    Path(budget.path).write_bytes(older)
    receipt.give_back(replace(FIT.planned[1], uses=1))


def test_a_part_that_gave_back_is_spent_and_a_lowered_budget_keeps_what_it_got_back():
    budget = BudgetAccountant(2.0, 1e-6)
    part, _ = budget.split([0.3, 0.7])
    plan = ReleasePlan.split(**part, fractions={"a": 0.36, "b": 0.64})
    charges = charges_of(plan, "fit", "document")
    budget.charge(charges).give_back(plan.planned[1])
    assert budget.earlier_fit(charges) is not None
    with pytest.raises(BudgetError, match="is spent twice"):
        budget.charge(charges)
    budget.change_budget(0.1)
    assert budget.remaining()["epsilon"] == 0
    with pytest.raises(BudgetError, match="Nothing is left to divide"):
        budget.split([0.5, 0.5], of="rest")


def test_what_gave_back_pays_for_no_other_batch_and_what_pays_for_one_gives_nothing_back():
    budget, charges = BudgetAccountant(1.0, 1e-6), charges_of(FIT, "fit", "document")
    first = budget.charge(charges)
    ticket = first.ticket
    assert budget.charge(charges, ticket).fit == 0
    with pytest.raises(ValueError, match="pays for another batch"):
        first.give_back(FIT.planned[1])
    budget = BudgetAccountant(1.0, 1e-6)
    first = budget.charge(charges)
    ticket = first.ticket
    first.give_back(replace(FIT.planned[1], uses=1))
    first.give_back(replace(FIT.planned[1], uses=3))
    assert first.ticket is None
    with pytest.raises(BudgetError, match="do not pay for this one"):
        budget.charge(charges, ticket)


@pytest.mark.parametrize("k", [1, 10, 100, 1000])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_remains_of_pure_noise_given_back_can_be_spent(k, delta):
    budget, plan = BudgetAccountant(1.0, delta), ReleasePlan.split(1.0, 0.0, {"a": 0.1, "b": 0.9})
    budget.charge(charges_of(plan, "fit", "document")).give_back(plan.planned[1])
    epsilon = budget.remaining(k, "pure")["epsilon"]
    assert k * epsilon == pytest.approx(0.9)
    cost = PrivacyCost(epsilon=epsilon)
    budget.charge([LedgerEntry("fit", "c", k, cost, "document")])
    assert budget.total()[0] == pytest.approx(1.0)


def test_equal_fits_share_a_part():
    budget = BudgetAccountant(2.0, 1e-6)
    fits, scores = budget.split([0.9, 0.1], times=[3, 2])
    for part in [fits, scores, fits, scores, fits]:
        spend(budget, "gaussian", part)
    assert budget.total()[0] == pytest.approx(2.0)


def test_a_forecast_warns_of_a_fit_that_the_accountant_would_refuse():
    for model, sizes in (
        (PrivateCountVectorizer(), (3000,)),
        (PrivateSpectralLDA(2), (3000, 300)),
        (PrivateGaussianMixture(2, data_norm=9.0), (3000, 5)),
        (PrivateTensorPowerMethod(2, data_norm=9.0), (3000, 5)),
        (PrivateCPCompletion(1, bounds=(1, 5)), (3000, (60, 60))),
    ):
        budget = BudgetAccountant(1.0, 1e-6).spend(0.5, 0)
        with pytest.warns(UserWarning, match="would refuse this fit now.*is what is short"):
            model.set_params(accountant=budget).forecast(*sizes)
        model.set_params(epsilon=0.1, delta=1e-7).forecast(*sizes)
    # A fit that was just paid for tells nothing of one more.
    paid = PrivateCPCompletion(1, bounds=(1, 5), epsilon=0.1, perturbation="input")
    paid.set_params(accountant=BudgetAccountant(0.1, 1e-6))
    with pytest.warns(NotEnoughDataWarning) as told:
        paid.fit([[0, 0], [1, 1]], [1.0, 5.0])
    assert all(one.category is NotEnoughDataWarning for one in told)


@pytest.mark.parametrize("kind", ["gaussian", "vocabulary", "search"])
def test_a_part_of_a_split_pays_for_fits_of_its_kind_alone(kind):
    """Others would take delta from the other parts, or leave some, which is found later."""
    budget = BudgetAccountant(40.0, 1e-6)
    part, _ = budget.split([0.7, 0.3], [kind, "vocabulary" if kind == "gaussian" else "gaussian"])
    options = {"accountant": budget, **part}
    rows = np.ones((400, 4))
    fits = {
        "gaussian": lambda: PrivateSpectralLDA(1, **options).fit(rows),
        "vocabulary": lambda: PrivateCountVectorizer(**options).fit(["cats dogs"] * 400),
        "search": lambda: PrivateSearchCV(
            PrivateSpectralLDA(), {"n_components": [1]}, anyway=True, **options
        ).fit(rows),
    }
    wrong = rf"kind '{kind}'.* of kind '(?!{kind}).*Nothing was charged.*split\(kinds=\)"
    own = fits.pop(kind)
    for spend_it in fits.values():
        with pytest.raises(BudgetError, match=wrong):
            spend_it()
    assert budget.entries == ()
    own()
    with pytest.raises(BudgetError, match=r"for 1 part of.*If this step was fitted before"):
        own()  # although the rest could not pay for it at all
    assert budget.total()[0] > 0


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_a_larger_delta_than_the_budgets_is_refused_before_its_charge():
    budget, cells = BudgetAccountant(4.0, 1e-6), np.argwhere(np.ones((50, 4)))
    typed: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3, "accountant": budget}
    persons = PrivateCPCompletion(0, bounds=(1, 5), shape=(50, 4), unit_mode=0, **typed)
    for spends in (
        lambda: persons.fit(cells, 1.0 + cells[:, 1]),
        lambda: check_inputs({"all": np.ones(50, dtype=bool)}, **typed),
    ):
        with pytest.raises(BudgetError, match=r"^delta must be 1e-6 .* epsilon=1\.71, not 1\."):
            spends()
    assert budget.entries == ()
    # Pure noise uses no delta, and a record has no limit.
    PrivateCPCompletion(0, bounds=(1, 5), shape=(50, 4), **typed).fit(cells, 1.0 + cells[:, 1])
    persons.set_params(accountant=BudgetAccountant()).fit(cells, 1.0 + cells[:, 1])


NO_NUMBERS = ["1", [1.0], 1j, np.array([1.0])]
NEITHER = [*NO_NUMBERS, True, 10**400, math.nan, -1, -1e-9]
# A negative cost would refill the budget.
WRONG: dict[str, tuple[Any, list[Any]]] = {
    "epsilon must be > 0": (lambda budget, x: BudgetAccountant(x), [0, *NEITHER]),
    "epsilon must be > 0, and": (lambda budget, x: budget.change_budget(x), [0, *NEITHER]),
    "delta must lie": (lambda budget, x: BudgetAccountant(1.0, x), [1, *NEITHER]),
    "units must": (lambda budget, x: BudgetAccountant(units=x), ["", 3, None]),
    "k must": (lambda budget, x: budget.remaining(x), [0, -1, 1.5, True]),
    "kind must": (lambda budget, x: budget.remaining(2, x), ["laplace", None]),
    "fractions must": (
        lambda budget, x: budget.split(x),
        [[], [0.3, 0.9], [0.3, 0.3], [1, 0], [2, -1], [1, math.nan], [1, math.inf], ["1"], 3, {},
         None],
    ),
    r"kinds must be one of \('gaussian', 'pure', 'vocabulary', 'search'\)": (
        lambda budget, x: budget.split([0.5, 0.5], x), [["pure"], ["pure", "laplace"], "ab"],
    ),
    "times must": (
        lambda budget, x: budget.split([0.5, 0.5], times=x), [[1], [0, 1], [1.5, 1], ["a", 1]],
    ),
    "of must": (lambda budget, x: budget.split([1], of=x), ["left", None, 1, ["rest"]]),
    "epsilon must be >= 0": (lambda budget, x: budget.spend(x, 0), [-1.0, math.nan, *NO_NUMBERS]),
    "delta must be >= 0": (lambda budget, x: budget.spend(0.1, x), [-1e-6, math.nan, *NO_NUMBERS]),

}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_refused_by_name_and_shortly(message):
    (call, values), budget = WRONG[message], BudgetAccountant(1.0, 1e-6)
    for wrong in values:
        with pytest.raises(ValueError, match=rf"^{message}.{{,80}}$"):
            call(budget, wrong)
    assert budget.entries == ()


@pytest.mark.parametrize("name", [None, "budget.sqlite"])
def test_eight_threads_never_overspend(name, tmp_path):
    """Ten charges fit in; 8 threads try 96, and change at nearly every instruction."""
    # Without a lock between check and record, two of them see the same room in nearly every run.
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def hammer(budget: BudgetAccountant, start: threading.Barrier) -> None:
        start.wait()
        for _ in range(12):
            with suppress(BudgetError):
                budget.spend(0.1, 0)

    try:
        for _ in range(5 if name is None else 1):
            path, start = name and tmp_path / name, threading.Barrier(8)
            budget = BudgetAccountant(1.0, 0.0, path=path)
            # In a file half of them have an object of their own.
            other = budget if path is None else BudgetAccountant(path=path)
            with ThreadPoolExecutor(8) as pool:
                for one in [budget, other] * 4:
                    pool.submit(hammer, one, start)
            assert (len(budget.entries), budget.total()[0]) == (10, 1.0)
    finally:
        sys.setswitchinterval(before)


def test_pickling_is_refused_and_says_what_to_do():
    says = r"(?s)cannot be pickled.*path=.*n_jobs=None.*accountant=None"
    with pytest.raises(TypeError, match=says):
        pickle.dumps(BudgetAccountant(1.0))


# Units of privacy


def charge(budget, *units):
    cost = PrivacyCost(mu=0.01)
    return budget.charge([LedgerEntry("fit", "release", 1, cost, unit) for unit in units])


@pytest.mark.parametrize(
    ("first", "second"),
    [("person", "document"), ("sample", "person"), ("entry", "person"), ("document", "entry")],
)
def test_another_unit_is_refused_before_any_charge(first, second):
    budget = BudgetAccountant(100.0)
    with pytest.raises(BudgetError, match="Nothing was charged"):
        charge(budget, first, second)
    assert budget.entries == ()
    charge(budget, first)
    spent = budget.total()
    with pytest.raises(BudgetError, match=rf"'{second}', but .* '{first}'.*Nothing was charged"):
        charge(budget, second)
    with pytest.raises(BudgetError, match="units='any'"):
        budget.check_charge([LedgerEntry("f", "r", 1, PrivacyCost(mu=0.01), second)])
    assert budget.total() == spent
    assert len(budget.entries) == 1
    charge(budget, first, "")


def test_groups_of_another_column_are_refused_before_any_charge(tmp_path):
    patients, clinics = (
        pd.Series(np.arange(40) % n, name=name) for n, name in ((9, "patient"), (9, "clinic"))
    )
    X = np.random.default_rng(0).random((40, 2))
    visits = pd.DataFrame({"patient": patients, "ward": np.arange(40) // 9})
    path = tmp_path / "budget.sqlite"
    budget = BudgetAccountant(100.0, path=path)
    mixture = PrivateGaussianMixture(1, data_norm=1.0, accountant=budget)
    ratings = PrivateCPCompletion(1, bounds=(0, 1), shape=(9, 5), accountant=budget, unit_mode=1)
    with warnings.catch_warnings(action="ignore"):
        mixture.fit(X, groups=patients.to_numpy())
        mixture.fit(X, groups=patients)
        spent = budget.total()
        for fit in (
            lambda: mixture.fit(X, groups=clinics),
            lambda: ratings.fit(visits, X[:, 0]),
            # Of so few persons no word could be kept.
            lambda: PrivateCountVectorizer(accountant=budget).fit(40 * ["a text"], groups=clinics),
            lambda: BudgetAccountant(path=path, units="clinic"),
        ):
            with pytest.raises(BudgetError, match=r"'(clinic|ward)' names.*'patient'.*Nothing was"):
                fit()
        assert budget.total() == spent
        ratings.set_params(unit_mode=0).fit(visits, X[:, 0])
        mixture.set_params(accountant=BudgetAccountant(path=path, units="patient"))
        mixture.fit(X, groups=patients)
        for units in ("patient", "one", "person"):  # the file's column holds for whoever opens it
            budget = BudgetAccountant(path=path, units=units)
            for labels in (clinics.to_numpy(), None):
                with pytest.raises(BudgetError, match=r"table\['patient'\].*Nothing was charged"):
                    mixture.set_params(accountant=budget).fit(X, groups=labels)
        check_inputs({"in": X[:, 0] < 2}, groups=patients, epsilon=9, accountant=mixture.accountant)
        assert {one.unit for one in budget.entries} == {"person", "person: patient"}
        assert "one label in all of these fits" in str(budget)
        BudgetAccountant(path=path, units="any").charge(
            [LedgerEntry("f", "r", 1, PrivacyCost(mu=0.01), "person: clinic")]
        )
    Ledger(path).verify()


@pytest.mark.parametrize(
    ("units", "first", "asked", "advice"),
    [
        ("person", None, ("person", "add_remove"), "with units= is for neighbours='replace_one'"),
        ("patient", None, ("person: patient", "add_remove"), "or make one without units="),
        ("person", None, ("sample", "add_remove"), r"charged\. Pass groups=, labels of persons"),
        ("one", ("sample", "replace_one"), ("document", "add_remove"), "all fits the same neighb"),
        ("one", ("sample", "replace_one"), ("person", "replace_one"), "the same groups= .or none"),
    ],
)
def test_refusals_of_other_units_say_which_argument_to_change(units, first, asked, advice):
    budget = BudgetAccountant(4.0, units=units)
    if first is not None:
        budget.charge([LedgerEntry("f", "r", 1, PrivacyCost(mu=0.01), first[0])])
    other = LedgerEntry("f", "r", 1, PrivacyCost(mu=0.01), asked[0], neighbours=asked[1])
    with pytest.raises(BudgetError, match=advice):
        budget.charge([other])


def test_other_objects_of_a_file_see_its_units(tmp_path):
    path = tmp_path / "budget.sqlite"
    one, other = BudgetAccountant(100.0, path=path), BudgetAccountant(path=path)
    charge(one, "document")
    charge(other, "document")
    for budget, unit in ((other, "person"), (one, "entry")):
        with pytest.raises(BudgetError, match="'document'"):
            charge(budget, unit)
    with closing(sqlite3.connect(path)) as file, file:
        assert file.execute("SELECT COUNT(*) FROM charges").fetchone() == (2,)
    # A file for persons refuses all others, also where it is opened without a word.
    persons = tmp_path / "persons.sqlite"
    assert BudgetAccountant(4.0, path=persons, units="person").total() == (0.0, 0.0)
    for units in ("one", "person"):
        with pytest.raises(BudgetError, match=r"'sample', but this budget was made to .*'person'"):
            charge(BudgetAccountant(path=persons, units=units), "sample")
    charge(BudgetAccountant(path=persons), "person")
    Ledger(persons).verify()
    with pytest.raises(BudgetError, match=r"'person'.*'document'"):
        BudgetAccountant(path=path, units="person")
    # A budget in which kinds were mixed goes on to take these, and no others.
    charge(BudgetAccountant(path=path, units="any"), "entry")
    charge(one, "entry", "sample")
    with pytest.raises(BudgetError, match="person"):
        charge(one, "person")
