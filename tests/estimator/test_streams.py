"""A stream is paid for once and reported once: of copies that go on from one place, one is free."""

import copy
import multiprocessing
import pickle
import re
import warnings
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cases import plain, quiet
from internals import answering
from replaying import state

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.exceptions import PrivacyLeakWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:noise is seeded"),
]
COUNTS = np.random.default_rng(0).poisson(1.0, size=(120, 7)).astype(float)
SAMPLES = np.random.default_rng(1).standard_normal((120, 4))
PARTS = np.array_split(SAMPLES, 6)
every_kind = pytest.mark.parametrize("kind", ["topics", "components"])
OF_TWO = np.arange(len(SAMPLES)) // 2


def begun(kind: str, accountant: BudgetAccountant | None, epsilon: float = 1.0) -> Any:
    model: Any = PrivateTensorPowerMethod(2, data_norm=2.0, n_restarts=2, max_iter=1)
    if kind == "topics":
        model = PrivateSpectralLDA(2, n_refinements=1)
    return continue_with(model.set_params(accountant=accountant, epsilon=epsilon), 0)


def continue_with(model: Any, place: int) -> Any:
    batch = COUNTS[20 * place :][:20] if isinstance(model, PrivateSpectralLDA) else PARTS[place]
    with quiet():
        return model.partial_fit(batch)


def through_pickle(model: Any, _: Path) -> Any:
    return pickle.loads(pickle.dumps(model))


def through_a_file(model: Any, folder: Path) -> Any:
    model.save(folder / "model")
    return type(model).load(folder / "model").set_params(accountant=model.accountant)


def n_charged(budget: BudgetAccountant) -> int:
    return len({entry.fit for entry in budget.entries})


def ledger(in_file: bool, folder: Path, epsilon: float = 100.0) -> BudgetAccountant:
    return BudgetAccountant(epsilon, 1e-3, path=folder / "budget.sqlite" if in_file else None)


@every_kind
@pytest.mark.parametrize("in_file", [False, True])
def test_a_stream_is_charged_once_and_copies_of_one_place_cost_a_batch_each(
    kind: str, in_file: bool, tmp_path: Path
) -> None:
    budget = ledger(in_file, tmp_path)
    model = continue_with(begun(kind, budget), 1)
    assert n_charged(budget) == 1
    once = budget.total()[0]
    copies = [copy.deepcopy(model) for _ in range(8)]
    for place in (2, 3):
        for one in copies:
            continue_with(one, place)
        # A place is worth one batch; who paid for its own is a stream of its own.
        assert n_charged(budget) == 8
    # The one that they were copied from is a copy, too.
    continue_with(model, 2)
    assert n_charged(budget) == 9
    assert budget.total()[0] > once


@pytest.mark.parametrize("carried", [through_pickle, through_a_file])
@every_kind
def test_a_checkpoint_that_is_loaded_twice_is_charged_twice(kind, carried, tmp_path):
    budget = ledger(True, tmp_path)
    model = continue_with(begun(kind, budget), 1)
    first, second = carried(model, tmp_path), carried(model, tmp_path)
    continue_with(first, 2)
    # It went on as if it had never been saved, with another object for the same file.
    assert n_charged(budget) == 1
    continue_with(second, 2)
    assert n_charged(budget) == n_charged(BudgetAccountant(path=budget.path)) == 2


@every_kind
def test_a_copy_for_which_too_little_is_left_is_refused(kind: str) -> None:
    budget = ledger(False, Path(), epsilon=0.7)
    model = begun(kind, budget)
    again = copy.deepcopy(model)
    continue_with(model, 1)
    with pytest.raises(BudgetError, match=r"goes on at no cost.*Nothing more was charged"):
        continue_with(again, 1)
    continue_with(model, 2)
    assert n_charged(budget) == 1


@every_kind
def test_batches_off_the_ledger_or_on_another_one_end_what_was_paid_for(kind: str) -> None:
    """A ledger knows only of batches that were read under it."""
    budget, other = ledger(False, Path()), ledger(False, Path())
    model = begun(kind, budget)
    off = BudgetAccountant()
    steps = [(off, 1, 0), (budget, 2, 0), (other, 2, 1), (other, 2, 1), (budget, 3, 1)]
    for place, (payer, n_own, n_other) in enumerate(steps, start=1):
        continue_with(model.set_params(accountant=payer), place)
        assert (n_charged(budget), n_charged(other)) == (n_own, n_other)
    # Of two that began without a ledger, each is charged when it comes to one.
    begun_without = begun(kind, None)
    for one in (begun_without, copy.deepcopy(begun_without)):
        continue_with(continue_with(one.set_params(accountant=other), 1), 2)
    assert n_charged(other) == 3


@every_kind
def test_a_step_that_failed_after_its_noise_is_charged_again(kind: str) -> None:
    """Its release was made, whether or not a model came of it; before, none was."""
    budget = ledger(False, Path())
    model = begun(kind, budget)

    def failing(usual: Any, *of: Any) -> Any:
        usual(*of)
        raise ZeroDivisionError

    with answering(failing), pytest.raises(ZeroDivisionError):
        continue_with(model, 1)
    continue_with(model, 1)
    assert n_charged(budget) == 2
    usual = model.get_params()
    for change in ({"epsilon": 2.0}, {"delta": 1e-7}, {"data_norm": 3.0}):
        if change.keys() <= usual.keys():
            with pytest.raises(ValueError, match="must be as in the first batch"):
                continue_with(model.set_params(**change), 2)
            model.set_params(**usual)
    continue_with(model, 2)
    assert n_charged(budget) == 2


def three_steps(file: Path, gate: Any) -> None:
    model = pickle.loads(file.read_bytes())
    gate.wait(120)
    for _ in range(3):
        continue_with(model, 1)


@pytest.mark.nightly
def test_processes_that_go_on_at_once_are_charged_for_each(tmp_path: Path) -> None:
    """Whichever is first: what one place is worth is taken in one step."""
    budget, spawned = ledger(True, tmp_path), multiprocessing.get_context("spawn")
    gate, file = spawned.Barrier(3), tmp_path / "model.pickle"
    file.write_bytes(pickle.dumps(begun("components", budget)))
    processes = [spawned.Process(target=three_steps, args=(file, gate)) for _ in range(3)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(240)
    assert [one.exitcode for one in processes] == [0, 0, 0]
    assert n_charged(budget) == 3


def test_an_older_copy_of_a_ledger_is_noticed_after_a_batch_that_cost_nothing(tmp_path):
    budget = ledger(True, tmp_path)
    model = begun("components", budget)
    file = Path(str(budget.path))
    older = file.read_bytes()
    continue_with(model, 1)
    file.write_bytes(older)
    with pytest.raises(BudgetError, match="fewer charges"):
        continue_with(model, 2)


def test_a_fit_of_many_batches_is_one_charge_and_goes_on() -> None:
    budget = ledger(False, Path())
    model = begun("components", budget)
    with quiet():
        model.set_params(perturbation="stream").fit(COUNTS[:, :4])
    again = copy.deepcopy(model)
    for one, paid in ((model, 2), (again, 3)):
        assert n_charged(budget) == 2
        continue_with(one, 1)
        assert n_charged(budget) == paid


@every_kind
def test_batches_have_groups_all_or_none(kind):
    case = plain("topics" if kind == "topics" else "components, stream", payer="none")
    build, X, groups = case.build, case.draw().X, np.arange(60) // 2
    for first, second in ((groups, None), (None, groups)):
        estimator = build().partial_fit(X, groups=first)
        before = state(vars(estimator))
        with pytest.raises(ValueError, match="must come with groups, or none"):
            estimator.partial_fit(X, groups=second)
        assert state(vars(estimator)) == before
    if kind == "components":
        with pytest.raises(ValueError, match="must come with groups, or none"):
            build().fit_chunks([(X, groups), X])


TWICE = r"protects persons who have rows in one of them alone; .* each batch by fit\(\)"


@every_kind
def test_the_second_batch_of_persons_says_once_who_is_protected(kind):
    """Whether persons come back cannot be seen, as no label is kept."""
    case = plain("topics" if kind == "topics" else "components, stream", payer="none")
    model, X, groups = case.build(), case.draw().X, np.arange(60) // 2
    for warned in (0, 1, 0):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.partial_fit(X, groups=groups)
        leaks = [str(one.message) for one in told if one.category is PrivacyLeakWarning]
        assert [bool(re.search(TWICE, one)) for one in leaks] == [True] * warned


@every_kind
@pytest.mark.parametrize("units", ["one", "user", "person", "any"])
def test_later_batches_are_of_the_persons_of_the_first(kind, units, tmp_path):
    """As a fresh fit; where costs add up whatever they protect, another column is charged anew."""
    case = plain("topics" if kind == "topics" else "components, stream", payer="none")
    path = tmp_path / "budget.sqlite" if units == "user" else None
    budget = BudgetAccountant(1e6, 1e-6, path=path, units=units)
    X, groups = case.draw().X, pd.Series(np.arange(60) // 2, name="user")
    with quiet():
        model = case.build().set_params(accountant=budget).partial_fit(X, groups=groups)
        paid = n_charged(budget)
        for place, other in enumerate((groups.rename("cookie"), groups.to_numpy()), start=1):
            refused = pytest.raises(BudgetError, match=r"whom column 'cookie'|Labels of persons")
            before = state(vars(model))
            with nullcontext() if units == "any" else refused:
                model.partial_fit(X, groups=other)
            assert n_charged(budget) == paid + place * (units == "any")
            assert (state(vars(model)) == before) == (units != "any")
        if units != "any":
            model.partial_fit(X, groups=groups)
            assert n_charged(budget) == paid


@cache
def _searched(with_ledger: bool = False, grouped: bool = False) -> PrivateSearchCV:
    model = PrivateTensorPowerMethod(
        1, perturbation="stream", data_norm=2.0, n_restarts=2, max_iter=1
    )
    search = PrivateSearchCV(
        model, {"n_restarts": [1, 2]}, score_bounds=(-1.0, 1.0), n_trials=3, anyway=True,
        accountant=BudgetAccountant(10.0, 1e-3) if with_ledger else None,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(SAMPLES, groups=OF_TWO if grouped else None)


@pytest.mark.parametrize("carried", [lambda model, _: model, through_pickle, through_a_file])
def test_a_stream_after_a_search_costs_what_the_search_cost(carried, tmp_path):
    """The batch is disjoint from the search's rows, each of which may have cost all of it."""
    search = through_pickle(_searched(), tmp_path)
    model = carried(search.best_estimator_, tmp_path)
    assert model.epsilon < 0.9
    report = model.partial_fit(PARTS[0]).privacy_report_
    assert report.epsilon == pytest.approx(1.0)
    assert report.n_units == len(SAMPLES) + len(PARTS[0])
    names = [row.name for row in report.rows]
    assert "held_out_scores" in names
    assert names[-1] == "power_iterations"
    # What rests on the search, and what on the batches.
    assert search.privacy_report_.notes[-1] in report.notes
    assert len(set(report.notes)) == len(report.notes)
    assert "disjoint" in str(report)
    assert search.privacy_report_.n_units == len(SAMPLES)


def test_a_stream_after_a_search_pays_a_ledger_that_is_given_to_it():
    """The search was charged as one; the stream has no part of it left to draw on."""
    search = _searched(with_ledger=True)
    accountant, model = search.accountant, search.best_estimator_
    spent = len(accountant.entries)
    model.set_params(accountant=accountant).partial_fit(PARTS[0])
    assert len(accountant.entries) == spent + 1


def test_the_report_of_a_search_of_persons_goes_on_with_persons():
    best = _searched(grouped=True).best_estimator_
    with pytest.raises(ValueError, match="must come with groups, or none"):
        best.partial_fit(SAMPLES)
    with pytest.warns(PrivacyLeakWarning, match=TWICE):
        report = best.partial_fit(SAMPLES, groups=OF_TWO).privacy_report_
    assert (report.unit, report.n_units) == ("person", len(SAMPLES))


def test_a_stream_of_chunks_of_a_frame_keeps_its_names():
    """As scikit-learn checks of fit and partial_fit."""
    frame = pd.DataFrame(SAMPLES, columns=list("abcd"))
    model = PrivateTensorPowerMethod(2, perturbation="stream", data_norm=2.0, max_iter=1)
    model.fit_chunks([frame[:60], frame[60:]])
    assert model.feature_names_in_.tolist() == list("abcd")
    model.fit(SAMPLES)
    assert not hasattr(model, "feature_names_in_")
