"""A stream is paid for once: of copies that go on from one place, all but one are charged."""

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from internals import answering
from joblib import Parallel, delayed
from ways_to_fit import COUNTS, PARTS, quiet

import sktensor_dp
from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)

KINDS = ("topics", "components")
every_kind = pytest.mark.parametrize("kind", KINDS)
every_ledger = pytest.mark.parametrize("in_file", [False, True])


def begun(kind: str, accountant: BudgetAccountant | None, epsilon: float = 1.0) -> Any:
    """A stream of which the first batch has been read."""
    model: Any = PrivateTensorPowerMethod(2, data_norm=2.0, n_restarts=2, max_iter=1)
    if kind == "topics":
        model = PrivateSpectralLDA(2, n_refinements=1)
    model.set_params(accountant=accountant, epsilon=epsilon)
    return go_on(model, 0)


def go_on(model: Any, place: int) -> Any:
    batch = COUNTS[20 * place :][:20] if isinstance(model, PrivateSpectralLDA) else PARTS[place]
    with quiet():
        return model.partial_fit(batch)


def n_charged(budget: BudgetAccountant) -> int:
    return len({entry.fit for entry in budget.entries})


def ledger(in_file: bool, folder: Path, epsilon: float = 100.0) -> BudgetAccountant:
    return BudgetAccountant(epsilon, 1e-3, path=folder / "budget.sqlite" if in_file else None)


@every_ledger
@every_kind
def test_a_stream_is_charged_once(kind: str, in_file: bool, tmp_path: Path) -> None:
    budget = ledger(in_file, tmp_path)
    model = begun(kind, budget)
    for place in range(1, 5):
        go_on(model, place)
    assert n_charged(budget) == 1


@every_ledger
@every_kind
def test_eight_copies_of_one_place_cost_eight_batches(
    kind: str, in_file: bool, tmp_path: Path
) -> None:
    budget = ledger(in_file, tmp_path)
    model = begun(kind, budget)
    copies = [copy.deepcopy(model) for _ in range(8)]
    for one in copies:
        go_on(one, 1)
    # A place is worth one batch; who paid for its own is a stream of its own.
    assert n_charged(budget) == 8
    for one in copies:
        go_on(one, 2)
    assert n_charged(budget) == 8
    # The one that they were copied from is a copy, too.
    go_on(model, 1)
    assert n_charged(budget) == 9
    whole = BudgetAccountant(100.0, 1e-3)
    for entries in ([e for e in budget.entries if e.fit == 1],) * 2:
        whole.charge(entries)
    assert budget.total()[0] > whole.total()[0]


def through_pickle(model: Any, _: Path) -> Any:
    return pickle.loads(pickle.dumps(model))


def through_a_file(model: Any, folder: Path) -> Any:
    model.save(folder / "model")
    return type(model).load(folder / "model").set_params(accountant=model.accountant)


@pytest.mark.parametrize("carried", [through_pickle, through_a_file])
@every_kind
def test_a_checkpoint_that_is_loaded_twice_is_charged_twice(
    kind: str, carried: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    budget = ledger(True, tmp_path)
    model = go_on(begun(kind, budget), 1)
    first, second = carried(model, tmp_path), carried(model, tmp_path)
    go_on(first, 2)
    # It went on as if it had never been saved, with another object for the same file.
    assert n_charged(budget) == 1
    go_on(second, 2)
    assert n_charged(budget) == 2
    assert n_charged(BudgetAccountant(path=budget.path)) == 2


@every_kind
def test_a_copy_for_which_too_little_is_left_is_refused(kind: str) -> None:
    budget = ledger(False, Path(), epsilon=0.7)
    model = begun(kind, budget)
    again = copy.deepcopy(model)
    go_on(model, 1)
    with pytest.raises(BudgetError, match="Nothing was charged"):
        go_on(again, 1)
    go_on(model, 2)
    assert n_charged(budget) == 1


@every_kind
def test_batches_off_the_ledger_or_on_another_one_end_what_was_paid_for(kind: str) -> None:
    """A ledger knows only of batches that were read under it."""
    budget, other = ledger(False, Path()), ledger(False, Path())
    model = begun(kind, budget)
    go_on(model.set_params(accountant=None), 1)
    go_on(model.set_params(accountant=budget), 2)
    assert n_charged(budget) == 2
    go_on(model.set_params(accountant=other), 3)
    assert (n_charged(budget), n_charged(other)) == (2, 1)
    go_on(model, 4)
    assert n_charged(other) == 1
    go_on(model.set_params(accountant=budget), 5)
    assert n_charged(budget) == 3
    # Of two that began without a ledger, each is charged when it comes to one.
    begun_without = begun(kind, None)
    for one in (begun_without, copy.deepcopy(begun_without)):
        go_on(go_on(one.set_params(accountant=other), 1), 2)
    assert n_charged(other) == 3


@every_kind
def test_a_step_that_failed_after_its_noise_is_charged_again(kind: str) -> None:
    """Its release was made, whether or not a model came of it."""
    budget = ledger(False, Path())
    model = begun(kind, budget)

    def failing(usual: Any, *of: Any) -> Any:
        usual(*of)
        raise ZeroDivisionError

    with answering(failing), pytest.raises(ZeroDivisionError):
        go_on(model, 1)
    go_on(model, 1)
    assert n_charged(budget) == 2
    # One that was refused before has made none.
    with pytest.raises(ValueError, match="must be as in the first batch"):
        go_on(model.set_params(epsilon=2.0), 2)
    go_on(model.set_params(epsilon=1.0), 2)
    assert n_charged(budget) == 2


@pytest.mark.nightly
def test_workers_that_go_on_from_one_place_are_charged(tmp_path: Path) -> None:
    budget = ledger(True, tmp_path)
    model = begun("components", budget)
    Parallel(n_jobs=2)(delayed(go_on)(model, 1) for _ in range(4))
    assert n_charged(budget) == 4


SCRIPT = """
import json, pickle, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
folder, batch = Path(sys.argv[1]), json.loads(sys.argv[2])
model = pickle.loads((folder / "model.pickle").read_bytes())
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    model.partial_fit(batch)
"""


@pytest.mark.nightly
def test_two_processes_that_go_on_at_once_are_charged_for_two(tmp_path: Path) -> None:
    """Whichever is first: what one place is worth is taken in one step."""
    budget = ledger(True, tmp_path)
    model = begun("components", budget)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    batch = json.dumps(PARTS[1].tolist())
    roots = [str(Path(sktensor_dp.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path), batch],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for one in processes:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in processes:
        one.communicate("\n", timeout=120)
    assert [one.returncode for one in processes] == [0, 0, 0]
    assert n_charged(budget) == 3


def test_an_older_copy_of_a_ledger_is_noticed_after_a_batch_that_cost_nothing(
    tmp_path: Path,
) -> None:
    budget = ledger(True, tmp_path)
    model = begun("components", budget)
    file = Path(str(budget.path))
    older = file.read_bytes()
    go_on(model, 1)
    file.write_bytes(older)
    with pytest.raises(BudgetError, match="fewer charges"):
        go_on(model, 2)


def test_a_fit_of_many_batches_is_one_charge_and_goes_on(tmp_path: Path) -> None:
    budget = ledger(True, tmp_path)
    model = begun("components", budget)
    with quiet():
        model.set_params(perturbation="stream").fit(COUNTS[:, :4])
    assert n_charged(budget) == 2
    again = copy.deepcopy(model)
    go_on(model, 1)
    assert n_charged(budget) == 2
    go_on(again, 1)
    assert n_charged(budget) == 3
