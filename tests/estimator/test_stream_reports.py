"""A stream is reported once, under the guarantee of all that its model learned from."""

import functools
import json
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from small_models import COUNTS as FORMER_COUNTS
from small_models import SAMPLES as FORMER_SAMPLES
from ways_to_fit import COUNTS, PARTS, SAMPLES, quiet

from sktensor_dp import (
    BudgetAccountant,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)

FORMER_FILES = Path(__file__).parents[1] / "model_files" / "files" / "v1"


@functools.cache
def _searched(with_ledger):
    accountant = BudgetAccountant(10.0, 1e-3) if with_ledger else None
    model = PrivateTensorPowerMethod(
        1, perturbation="stream", data_norm=2.0, n_restarts=2, max_iter=1
    )
    search = PrivateSearchCV(
        model, {"n_restarts": [1, 2]}, score_bounds=(-1.0, 1.0), n_trials=3, epsilon=1.0,
        accountant=accountant,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(SAMPLES)


def searched():
    """A search whose model a test may change."""
    return pickle.loads(pickle.dumps(_searched(False)))


def through_pickle(model, _):
    return pickle.loads(pickle.dumps(model))


def through_a_file(model, path):
    model.save(path / "model")
    return type(model).load(path / "model")


@pytest.mark.parametrize("carried", [lambda model, _: model, through_pickle, through_a_file])
def test_a_stream_after_a_search_costs_what_the_search_cost(carried, tmp_path):
    """The batch is disjoint from the search's rows, each of which may have cost all of it."""
    search = searched()
    model = carried(search.best_estimator_, tmp_path)
    assert model.epsilon < 0.9
    model.partial_fit(PARTS[0])
    report = model.privacy_report_
    assert report.epsilon == pytest.approx(1.0)
    assert report.n_units == len(SAMPLES) + len(PARTS[0])
    names = [row.name for row in report.rows]
    assert "held_out_scores" in names
    assert names[-1] == "power_iterations"
    # What rests on the search, and what on the batches.
    assert search.privacy_report_.notes[-1] in report.notes
    assert len(set(report.notes)) == len(report.notes)
    assert "disjoint" in str(report)
    # The search's own report is about the search.
    assert search.privacy_report_.n_units == len(SAMPLES)


def test_a_stream_after_a_search_pays_a_ledger_that_is_given_to_it():
    """The search was charged as one; the stream has no share of it left to draw on."""
    search = _searched(True)
    accountant, model = search.accountant, search.best_estimator_
    assert model._stream.accountant is None
    spent = len(accountant.entries)
    model.set_params(accountant=accountant).partial_fit(PARTS[0])
    assert len(accountant.entries) == spent + 1


@pytest.mark.parametrize("name", ["topics-stream", "components-stream-1"])
def test_files_that_hold_a_report_of_the_stream_go_on(name):
    """As versions before wrote them; the report of the model counts."""
    path = FORMER_FILES / f"{name}.model"
    with zipfile.ZipFile(path) as archive:
        assert "report" in json.loads(archive.read("model.json"))["state"]["_stream"]
    topics = name.startswith("topics")
    model = (PrivateSpectralLDA if topics else PrivateTensorPowerMethod).load(path)
    assert not hasattr(model._stream, "report")
    seen, batch = model.privacy_report_.n_units, FORMER_COUNTS if topics else FORMER_SAMPLES
    with quiet():
        model.partial_fit(batch)
    assert model.privacy_report_.n_units == seen + len(batch)
    assert model.privacy_report_.epsilon == pytest.approx(model.epsilon)


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_pickles_that_hold_a_report_of_the_stream_go_on(kind):
    """As versions before wrote them."""
    if kind == "topics":
        model, batch = PrivateSpectralLDA(2, random_state=0), COUNTS
    else:
        model, batch = PrivateTensorPowerMethod(2, data_norm=2.0, max_iter=1), PARTS[0]
    with quiet():
        model.partial_fit(batch)
        vars(model._stream)["report"] = "of versions before"
        loaded = pickle.loads(pickle.dumps(model))
        loaded.partial_fit(batch)
    assert loaded.privacy_report_.n_units == 2 * len(batch)
    assert not hasattr(loaded._stream, "report")


NAMES = [f"column {place}" for place in range(SAMPLES.shape[1])]
WAYS_TO_STREAM = {
    "fit": lambda model, frame: model.fit(frame),
    "partial_fit": lambda model, frame: model.partial_fit(frame).partial_fit(frame),
    "fit_chunks": lambda model, frame: model.fit_chunks([frame[:60], frame[60:]]),
}


@pytest.mark.parametrize("way", WAYS_TO_STREAM)
def test_a_stream_of_a_frame_keeps_its_names(way):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SAMPLES, columns=NAMES)
    model = PrivateTensorPowerMethod(2, perturbation="stream", data_norm=2.0, max_iter=1)
    with quiet():
        WAYS_TO_STREAM[way](model, frame)
    assert model.feature_names_in_.tolist() == NAMES
    with quiet():
        warnings.simplefilter("error")  # about names that are missing, or others
        model.transform(frame)
        with pytest.raises(ValueError, match="feature names"):
            model.transform(frame.rename(columns={NAMES[0]: "another"}))
        # Names of another data set do not stay.
        warnings.simplefilter("ignore")
        WAYS_TO_STREAM[way](model.set_params(data_norm=2.0), frame)
        model.fit(np.asarray(frame))
    assert not hasattr(model, "feature_names_in_")
