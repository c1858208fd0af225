"""A stream is reported once, under the guarantee of all that its model learned from."""

import functools
import pickle
import warnings

import numpy as np
import pytest
from internals import stream_of
from ways_to_fit import PARTS, SAMPLES, quiet

from sktensor_dp import (
    BudgetAccountant,
    PrivateSearchCV,
    PrivateTensorPowerMethod,
)


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
    assert stream_of(model).ticket is None
    spent = len(accountant.entries)
    model.set_params(accountant=accountant).partial_fit(PARTS[0])
    assert len(accountant.entries) == spent + 1


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
