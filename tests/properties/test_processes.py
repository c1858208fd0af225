"""The properties hold in a process that was spawned, in workers of Dask, and for the command."""

import warnings
from multiprocessing import get_context

import dask
import numpy as np
import pytest
from cases import AXES, MODELS, Case, cases, observed
from commands import SMALL, write_posts

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivacyLeakWarning,
    unsafe_recorded_releases,
    unsafe_seeded_noise,
)
from sktensor_dp.cli import main
from sktensor_dp.cli.folder import LEDGER, SCOPE

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def plain(name: str, **values: str) -> Case:
    family = AXES[MODELS[name].family]
    return Case(name, tuple((axis, of[0]) for axis, of in family.items())).with_(**values)


def there(case: Case) -> dict:
    """What a fit in this process shows, and what a refused one and a recording one say."""
    data, model, said = case.draw(), case.build(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with unsafe_seeded_noise(0):
            case.fit(model, data)
        before, paid = model.privacy_report_, len(model.accountant.entries)
        small = BudgetAccountant(1e-3, 1e-9)
        try:
            case.fit(model.set_params(accountant=small), data)
        except BudgetError as error:
            said.append(str(error))
        assert model.privacy_report_ is before
        try:
            with unsafe_recorded_releases():
                pass
        except RuntimeError as error:
            said.append(str(error))
    shown = {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    return {"shown": shown, "said": said, "paid": paid, "unpaid": len(small.entries)}


SPAWNED = [plain("topics", payer="file"), plain("CP, persons", payer="file")]


def _agrees(case: Case, found: dict) -> None:
    known, _ = observed(case, case.draw())
    for name, value in found["shown"].items():
        np.testing.assert_array_equal(value, getattr(known, name))
    assert found["paid"] == len(known.accountant.entries) > 0
    assert found["unpaid"] == 0
    charge, recording = found["said"]
    assert "othing was charged" in charge
    assert "worker process" in recording


def test_spawned_processes():
    with get_context("spawn").Pool(1) as pool:
        for case in SPAWNED:
            _agrees(case, pool.apply(there, (case,)))


@pytest.mark.nightly
@pytest.mark.parametrize("family", ["counts", "samples", "entries", "slices"])
def test_spawned_processes_in_pairs(family):
    with get_context("spawn").Pool(2) as pool:
        for case in cases(family, ("payer",)):
            if case["payer"] == "file" and not case.model.endswith("exact"):
                _agrees(case, pool.apply(there, (case,)))


def test_workers_of_dask():
    """The same releases from partitions that other processes sum, and no exact value there."""
    case = plain("topics", container="dask array")
    data = case.draw()
    X = case.given(data)[0]
    known, expected = observed(case, data)
    with (
        dask.config.set(scheduler="processes", num_workers=1),
        pytest.warns(PrivacyLeakWarning),
        unsafe_recorded_releases() as releases,
        unsafe_seeded_noise(0),
    ):
        found = case.build().fit(X)
    for one, other in zip(releases, expected, strict=True):
        assert np.abs(one.exact - other.exact).max() <= 1e-9 * one.sensitivity
    np.testing.assert_array_equal(found.components_, known.components_)


def test_the_command(tmp_path, monkeypatch, capsys):
    """Inputs stay as they are, the ledger has what was said, and a refused run adds nothing."""
    monkeypatch.chdir(tmp_path)
    posts = write_posts(tmp_path / "posts.csv")
    before = posts.read_bytes()
    given = ["topics", posts, "--text", "post", "--person", "author", "--epsilon", 2,
             "--budget", 2.5, *SMALL]  # fmt: skip
    statuses, spent = [], []
    for _ in range(2):
        statuses.append(main([str(argument) for argument in given]))
        capsys.readouterr()
        ledger = BudgetAccountant(path=tmp_path / "private-topics" / LEDGER, scope=SCOPE)
        spent.append((len(ledger.entries), ledger.total()[0]))
    assert statuses == [0, 2]
    assert spent[0] == spent[1]
    assert spent[0][1] == pytest.approx(2, rel=1e-3)
    assert posts.read_bytes() == before
