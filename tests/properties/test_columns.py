"""Every door where a table comes in knows columns by name, and refuses them in another order."""

import inspect
import warnings
from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cases import (
    AXES,
    BATCHED,
    FRAMES,
    MODELS,
    READERS,
    SEARCHES,
    STREAMED,
    Case,
    covered,
    observed_once,
)

from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA, make_private_scorer

# A new fit or stream learns columns anew, and what comes out of a transform has none of these.
ANEW = (
    "fit",
    "fit_predict",
    "fit_transform",
    "fit_chunks",
    "fit_tensor",
    "partial_fit",
    "inverse_transform",
    "shares_by",  # needs groups of rows, too: see its own tests
)
OTHER = r"order|names|must have the columns"
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
    model, _ = observed_once(case)
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
        if hasattr(model, "fit_chunks") and groups is None:
            sizes = {"n_samples": 2 * len(data), "n_features": data.X.shape[1]}
            with pytest.raises(ValueError, match=OTHER):
                case.build().fit_chunks([X, wrong], **sizes)
        if case["container"] == "pandas" and "dask frame" in AXES[case.of.family]["container"]:
            lazy = dd.from_map(lambda place: (X, wrong)[place], [0, 1], meta=X[:0])
            calls = [model.predict if hasattr(model, "predict") else model.transform]
            if case.model not in STREAMED | SEARCHES and groups is None:
                calls.append(partial(case.build().fit, n_samples=2 * len(data)))
            for call in calls:
                with pytest.raises(ValueError, match=OTHER):
                    np.asarray(call(lazy))
        if case["container"] == "pandas":
            ids = X.set_axis(range(1, X.shape[1] + 1), axis=1)
            for name, needs in [*found, ("fit", ["y"])]:
                values = [y] if needs and y is not None else []
                with pytest.raises(ValueError, match="must be named by text"):
                    getattr(model, name)(ids, *values)
        names = model.get_feature_names_out() if hasattr(model, "inverse_transform") else []
        if len(names) > 1:
            back = pd.DataFrame(np.ones((2, len(names))), columns=names[::-1])
            with pytest.raises(ValueError, match=OTHER):
                model.inverse_transform(back)
        if y is not None:
            kept = model.fold_in(X, y)
            first = [mode for mode in range(data.X.shape[1]) if mode != (model.unit_mode or 0)]
            context = dict.fromkeys(first[1:], 0)
            assert np.isfinite(kept.predict(X)).all()
            with pytest.raises(ValueError, match=OTHER):
                kept.predict(wrong)
            with pytest.raises(ValueError, match=OTHER):
                model.recommend(kept, exclude=wrong, context=context)
        elif case.of.family == "counts" and groups is None:
            scorer = make_private_scorer("log_likelihood_per_token", epsilon=9.0)
            with pytest.raises(ValueError, match=OTHER):
                scorer(model, wrong)


def unnamed(row):
    return row.get("container", "pandas") not in FRAMES


test_columns, test_columns_in_triples = covered(
    holds, ("container", "groups", "labels"), TABLES, unnamed
)


OF_COUNTS = ("transform", "score", "score_samples", "perplexity", "recommend")


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.filterwarnings("ignore::sktensor_dp.UnprotectedScoreWarning")
@pytest.mark.parametrize("lazy", [False, True], ids=["in memory", "dask"])
def test_counts_of_other_words_are_refused_by_every_door(lazy):
    """Of as many words: a vectorizer marks its counts, and a fit keeps the mark."""
    texts = ["aa bb cc dd ee", "bb cc ff gg aa"] * 600
    own, other = (
        PrivateCountVectorizer(vocabulary=words).fit(texts)
        for words in (["aa", "bb"], ["bb", "aa"])
    )
    given = dd.from_pandas(pd.Series(texts), npartitions=2) if lazy else texts
    counts, others = own.transform(given), other.transform(given)
    sizes = {"n_samples": len(texts)} if lazy else {}
    model = PrivateSpectralLDA(2, epsilon=8.0)
    for fit in (model.fit, model.partial_fit):
        fit(counts, **sizes)
        assert list(model.feature_names_in_) == ["aa", "bb"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.transform(counts)
        for name in OF_COUNTS if not lazy else ("transform", "score_samples"):
            with pytest.raises(ValueError, match="counts other words"):
                getattr(model, name)(others)
    with pytest.raises(ValueError, match="counts other words"):
        model.partial_fit(others, **sizes)
    if not lazy:  # a part of the rows has no mark
        assert model.transform(others[:2]).shape == (2, 1)
