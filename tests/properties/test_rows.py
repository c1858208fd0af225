"""A fit_transform is a fit and a transform, and each row of a transform is of that row alone."""

import warnings
from collections import Counter

import dask.array as da
import numpy as np
from cases import DASK, MODELS, OF_GROUPS, PARTS, READERS, SEARCHES, Case, covered, observed_once

from sktensor_dp import unsafe_seeded_noise

FIRST = 6  # rows that are tried one by one


def dense(found):
    found = found.compute() if hasattr(found, "compute") else found
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


def words_of(model, texts):
    """Counts by a loop over texts and words."""
    analyse, found = model.build_analyzer(), np.zeros((len(texts), len(model.vocabulary_)))
    for row, text in zip(found, texts, strict=True):
        for word, count in Counter(analyse(text)).items():
            if word in model.vocabulary_:
                row[model.vocabulary_[word]] = 1 if model.binary else count
    return found


def excludes_what_is_known(model, data):
    """To each unit all rows are recommended but those of its own entries."""
    own = model.unit_mode or 0
    mode, *third = (one for one in range(data.X.shape[1]) if one != own)
    of = units = np.unique(data.X[:, own])
    if model.unit_mode is not None:
        of = model.fold_in(data.X, data.y)
    context = dict.fromkeys(third, 0)
    found = model.recommend(of, 99, exclude=data.X, mode=mode, context=context).rows
    for unit, rows in zip(units, found, strict=True):
        known = set(data.X[data.X[:, own] == unit, mode].tolist())
        assert {row for row in rows.tolist() if row >= 0} == {*range(model.shape[mode])} - known


def holds(case: Case) -> None:
    data = case.draw()
    X, y, groups = case.given(data)
    model, _ = observed_once(case)
    values, labels = [] if y is None else [y], {} if groups is None else {"groups": groups}
    if case["container"] in DASK:
        labels["n_samples"] = len(data if groups is None else np.unique(data.groups))
    with case.settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both, after = "fit_transform", "transform"
        if not hasattr(model, after):
            both, after = "fit_predict", "predict"
        shown = dense(getattr(model, after)(X))
        with unsafe_seeded_noise(0):
            at_once = getattr(case.build(), both)(X, *values, **labels)
        assert isinstance(at_once, da.Array) == (case["container"] in DASK)
        np.testing.assert_array_equal(dense(at_once), shown)
        if hasattr(model, "fold_in"):
            excludes_what_is_known(model, data)
        if case.of.family == "counts":
            np.testing.assert_allclose(model.components_.sum(axis=1), 1)
        if case.of.family == "texts":
            np.testing.assert_array_equal(shown, words_of(model, data.X))
        # Alone, and among others in another order.
        for method in ("transform", "predict", "score_samples"):
            if not hasattr(model, method):
                continue
            whole = dense(getattr(model, method)(data.X))
            if case["container"] in DASK:
                lazy = getattr(model, method)(X)
                assert isinstance(lazy, da.Array)
                np.testing.assert_allclose(dense(lazy), whole, rtol=1e-9, atol=1e-12)
            rows = [data.X[place : place + 1] for place in range(FIRST)]
            alone = [dense(getattr(model, method)(row)) for row in rows]
            np.testing.assert_allclose(np.concatenate(alone), whole[:FIRST], rtol=1e-9, atol=1e-12)
            turned = dense(getattr(model, method)(data.X[::-1]))
            np.testing.assert_allclose(turned[::-1], whole, rtol=1e-9, atol=1e-12)


def other(row):
    """A transform reads one table; a search is random, and its noise is not that of one fit."""
    return row.get("container") in (*PARTS, "batches", "tensor", "dask frame") or (
        row.get("model") in (*SEARCHES, "components, tensor")
        or (row.get("container") in DASK and "order" in row)
    )


WORDS = tuple(name for name, model in MODELS.items() if model.family == "texts")
test_forms, test_forms_in_triples = covered(holds, ("container",), READERS, other)
test_units, test_units_in_triples = covered(
    holds, (*OF_GROUPS, "settings", "errors"), READERS, other
)
test_texts, test_texts_in_triples = covered(holds, ("container", "groups", "labels"), WORDS, other)
