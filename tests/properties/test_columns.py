"""Every door where a table comes in knows columns by name, and refuses them in another order."""

import inspect
import warnings

import numpy as np
import pytest
from cases import BATCHED, FRAMES, MODELS, READERS, STREAMED, Case, covered, observed

from sktensor_dp import make_private_scorer

# A new fit or stream learns columns anew, and what comes out of a transform has none of these.
ANEW = (
    "fit",
    "fit_predict",
    "fit_transform",
    "fit_chunks",
    "fit_tensor",
    "partial_fit",
    "inverse_transform",
)
OTHER = r"order|names"
TABLES = tuple(name for name in READERS if MODELS[name].family not in ("texts", "tensors"))


def doors(model):
    """Names of public methods that take a table, and those that go with values."""
    for name in dir(type(model)):
        if name.startswith("_") or not hasattr(model, name) or not callable(getattr(model, name)):
            continue
        taken = list(inspect.signature(getattr(model, name)).parameters)
        if taken[:1] == ["X"] and name not in ANEW:
            yield name, [one for one in taken[1:2] if one == "y"]


def turned(X):
    """The same table with its columns the other way round."""
    if hasattr(X, "iloc"):
        return X[X.columns[::-1]]
    return X.select(X.columns[::-1]) if hasattr(X, "with_columns") else X.select(
        X.column_names[::-1])  # fmt: skip


def holds(case: Case) -> None:
    data = case.draw()
    X, y, groups = case.given(data)
    model, _ = observed(case, data)
    model.set_params(accountant=None)
    found, wrong = list(doors(model)), turned(X)
    assert {"transform", "score"} & {name for name, _ in found}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, needs in found:
            values = [y] if needs and y is not None else []
            with pytest.raises(ValueError, match=OTHER):
                getattr(model, name)(wrong, *values)
        if case.model in BATCHED:
            labels = {} if groups is None else {"groups": groups}
            stream = case.build().partial_fit(X, **labels)
            with pytest.raises(ValueError, match=OTHER):
                stream.partial_fit(wrong, **labels)
        if case.model in STREAMED:
            with pytest.raises(ValueError, match=OTHER):
                case.build().fit_chunks([X, wrong])
        if y is not None:
            kept = model.fold_in(X, y)
            assert np.isfinite(kept.predict(X)).all()
            with pytest.raises(ValueError, match=OTHER):
                kept.predict(wrong)
        elif case.of.family == "counts" and groups is None:
            scorer = make_private_scorer("log_likelihood_per_token", epsilon=9.0)
            with pytest.raises(ValueError, match=OTHER):
                scorer(model, wrong)


def unnamed(row):
    return row.get("container", "pandas") not in FRAMES


test_columns, test_columns_in_triples = covered(holds, ("container", "groups"), TABLES, unnamed)
