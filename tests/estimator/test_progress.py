"""Progress of fits: lines in a log, scikit-learn's callbacks; no data."""

import io
import re
import sys

import numpy as np
import pytest
from sklearn.base import clone

from sktensor_dp import (
    BudgetAccountant,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)

COUNTS = np.random.default_rng(0).poisson(1.0, (500, 6))
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def test_a_log_gets_lines_without_times(capsys):
    PrivateSpectralLDA(2, verbose=1).fit(COUNTS)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 3
    pattern = r"\[PrivateSpectralLDA\] release \d+ of \d+: [a-z_]+"
    assert all(re.fullmatch(pattern, line) for line in lines)


def test_a_log_that_is_closed_costs_no_paid_fit(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert PrivateSpectralLDA(2, verbose=1).fit(COUNTS).privacy_report_.rows


class Follower:
    def __init__(self):
        self.told = []
        self.estimators = []

    def setup(self, estimator, context):
        self.told.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name))
        self.estimators.append(estimator)

    def on_fit_task_end(self, estimator, context):
        self.told.append(("end", context.task_name))
        return True  # asks to stop


class Curious(Follower):
    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        raise AssertionError("it must not be called")


@pytest.fixture
def callback():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    return Follower()


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_callbacks_are_told_of_releases_and_nothing_else_whatever_the_data(callback, neighbours):
    for counts in (COUNTS, COUNTS[::-1] * 3):
        model = PrivateSpectralLDA(2, neighbours=neighbours).set_callbacks(callback).fit(counts)
    told = callback.told[: len(callback.told) // 2]
    assert callback.told == told * 2
    made = [row.name for row in model.privacy_report_.rows for _ in range(row.uses)]
    assert [name for what, name in told if what == "begin"] == ["fit", *made]
    assert [name for what, name in told if what == "end"] == [*made, "fit"]
    assert (told[0], told[-1]) == (("setup", "fit"), ("teardown", "fit"))
    for seen in callback.estimators:
        assert type(seen) is PrivateSpectralLDA
        assert seen is not model
        assert not [name for name in vars(seen) if name.endswith("_")]
        assert not any(isinstance(value, np.ndarray) for value in vars(seen).values())


def test_callbacks_that_ask_for_data_are_refused(callback):
    from sklearn.callback import ScoringMonitor

    model = PrivateSpectralLDA(2)
    for curious, said in (
        (Curious(), r"Curious cannot follow .* asks for X, fitted_estimator\. Raw data"),
        (ScoringMonitor(scoring="r2"), "cannot follow a private fit"),
    ):
        with pytest.raises(TypeError, match=said):
            model.set_callbacks(curious)
        assert not hasattr(model, "_skl_callbacks")


@pytest.mark.parametrize("hook", ["setup", "on_fit_task_begin", "on_fit_task_end", "teardown"])
def test_a_callback_that_fails_costs_no_paid_fit(callback, hook, monkeypatch):
    def failing(self, estimator, context):
        self.told.append((hook, "failed"))
        raise RuntimeError("secret")

    budget = BudgetAccountant(9.0)
    model = PrivateSpectralLDA(2, accountant=budget).set_callbacks(callback)
    monkeypatch.setattr(Follower, hook, failing)
    if hook in ("setup", "on_fit_task_begin"):  # before the charge
        with pytest.raises(RuntimeError, match="secret"):
            model.fit(COUNTS)
    else:
        with pytest.warns(UserWarning, match=r"A callback failed \(RuntimeError\); the fit"):
            model.fit(COUNTS)
    assert hasattr(model, "components_") == (len(budget.entries) > 0)
    assert hasattr(model, "components_") == ("end" in hook or hook == "teardown")
    assert callback.told[-1] == ((hook if hook == "teardown" else "teardown"), callback.told[-1][1])
    assert "_callback_fit_ctx" not in vars(model)


def test_callbacks_are_kept_by_clones_and_by_no_file(callback, tmp_path):
    model = PrivateTensorPowerMethod(2, moment="gaussian_mixture", data_norm=9.0)
    model = clone(model.set_callbacks(callback)).fit(COUNTS)
    assert callback.told
    model.save(tmp_path / "model")
    assert not hasattr(PrivateSearchCV, "set_callbacks")
    assert "_skl_callbacks" not in vars(PrivateTensorPowerMethod.load(tmp_path / "model"))


def test_streams_are_followed_batch_by_batch(callback):
    X = np.random.default_rng(0).standard_normal((400, 4))
    model = PrivateTensorPowerMethod(1, data_norm=3.0, perturbation="stream", max_iter=2)
    model.set_callbacks(callback).fit(X)
    begun = [name for what, name in callback.told if what == "begin"]
    assert begun.count("fit") == model.n_batches_seen_
    assert set(begun) == {"fit", "power_iterations"}
