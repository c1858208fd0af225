"""A clone knows nothing; a pickle, a copy and a file keep every public answer."""

import copy
import pickle
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from cases import EXACT, Case, covered, observed_once
from replaying import state
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sktensor_dp import BudgetAccountant, BudgetError

METHODS = ("transform", "predict", "score_samples", "score", "perplexity", "complete")
NAMES = ("get_feature_names_out", "components_interval", "hidden")


def answers(model, case: Case, data) -> dict:
    """All that a model says of data and of itself."""
    X = case.with_(container="array").given(data)[0] if case.of.family != "texts" else data.X
    given = {"score": [X] if data.y is None else [X, data.y], "complete": []}
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in METHODS if case.of.family != "tensors" else ():
            if hasattr(model, name):
                shown = getattr(model, name)(*given.get(name, [X]))
                found[name] = shown.toarray() if hasattr(shown, "toarray") else np.asarray(shown)
        for name in NAMES:
            if hasattr(model, name):
                found[name] = getattr(model, name)()
    public = {key: value for key, value in vars(model).items()
              if key.endswith("_") and not key.startswith("_")}  # fmt: skip
    return state([found, sorted(public.items()), str(model.privacy_report_)], whole=False)


def parameters_of(model):
    return state({**model.get_params(deep=False), "accountant": None}, whole=False)


def in_a_file(model):
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "first", Path(folder) / "second"
        model.save(first)
        found = type(model).load(first)
        found.save(second)
        assert first.read_bytes() == second.read_bytes()
        return found


COPIES = {
    "copy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "file": in_a_file,
}


def holds(case: Case) -> None:
    data = case.draw()
    model, _ = observed_once(case)
    known = answers(model, case, data)
    for name, copied in COPIES.items():
        if name == "file" and not hasattr(model, "save"):
            continue
        if case["payer"] == "memory" and name != "file":
            model.set_params(accountant=None)
        found = copied(model)
        assert answers(found, case, data) == known, name
        assert parameters_of(found) == parameters_of(model)
    fresh = clone(model)
    if case.of.options.get("vocabulary") is None:
        # Elsewhere, and cloned there, it is not forgotten who was to pay.
        with BudgetAccountant(9.0):
            sent = pickle.dumps(clone(model).set_params(accountant=None))
        for one in (pickle.loads(sent), clone(pickle.loads(sent))):
            with pytest.raises(BudgetError, match="pickled"):
                case.fit(one, data)
    assert [name for name in vars(fresh) if name.endswith("_")] == []
    if hasattr(fresh, "transform") and case.of.family not in ("tensors", "texts"):
        with pytest.raises(NotFittedError):
            fresh.transform(data.X)
    assert parameters_of(fresh) == parameters_of(model)


test_copies, test_copies_in_triples = covered(
    holds, ("neighbours", "names"), leave_out=lambda row: row.get("model") in EXACT
)
