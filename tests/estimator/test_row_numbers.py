"""No message shows how many rows there are where that is private."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)

# What is fitted first, to be gone on with, is small.
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

N, OTHER = 1711, 1712
LABELS = np.arange(N) // 7
MODELS: dict[str, Callable[..., Any]] = {
    "topics": lambda **options: PrivateSpectralLDA(2, **options),
    "components": lambda **options: PrivateTensorPowerMethod(2, data_norm=1.0, **options),
    "stream": lambda **options: PrivateTensorPowerMethod(
        2, data_norm=1.0, perturbation="stream", **options
    ),
}
SHOWN = {"1711", "1712", "245", "1_711"}
TABLES: dict[str, Any] = {
    "a vector": np.ones(N),
    "a vector of text": np.full(N, "a"),
    "a scalar": np.float64(3.0),
    "three axes": np.ones((N, 2, 2)),
    "no columns": np.ones((N, 0)),
    "sparse without columns": sp.csr_array((N, 0)),
    "ragged": [[1.0]] * (N - 1) + [[1.0, 2.0]],
    "text": [["a"]] * N,
    "objects": np.full((N, 2), "x", object),
    "complex": np.ones((N, 2), complex),
    "NaN": np.where(np.arange(2 * N).reshape(N, 2) == 500, np.nan, 1.0),
    "infinity": np.where(np.arange(2 * N).reshape(N, 2) == 500, np.inf, 1.0),
    "more rows than labels": np.ones((OTHER, 2)),
    "a dict": {"a": [1.0] * N},
    "None": None,
    "dates": np.full((N, 2), "2020-01-01", "datetime64[D]"),
}  # fmt: skip


def said(fit: Callable[[], Any]) -> str:
    try:
        fit()
    except Exception as error:
        chain, found = error, ""
        while chain is not None:
            found += f"{type(chain).__name__}: {chain} {vars(chain)}\n"
            chain = chain.__cause__ or chain.__context__
        return found
    return ""


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("private", ["groups", "add_remove"])
def test_errors_about_tables_show_no_number_of_rows(kind, table, private):
    X, build = TABLES[table], MODELS[kind]
    options = {} if private == "groups" else {"neighbours": "add_remove"}
    passed = {} if private == "add_remove" else {"groups": LABELS}
    calls = [lambda: build(**options).fit(X, **passed)]
    if kind in ("topics", "stream"):
        calls.append(lambda: build(**options).partial_fit(X, **passed))
        good = np.ones((30, 2))
        begun = build(**options).partial_fit(good, **(passed and {"groups": np.arange(30)}))
        calls.append(lambda: begun.partial_fit(X, **passed))
    source = [(X, LABELS) if passed else X]
    sizes = {"n_samples": 245} if private == "groups" else {}
    calls.append(lambda: build(**options).fit_chunks(source, n_features=2, **sizes))
    for call in calls:
        message = said(call)
        fine = {"more rows than labels"} if private == "add_remove" else set()
        assert message or table in fine
        # How many groups were announced is public.
        shown = SHOWN - ({"245"} if sizes else set())
        assert [number for number in shown if number in message] == []


def test_errors_about_tables_show_shapes_where_rows_are_public():
    assert "shape (1711,)" in said(lambda: PrivateSpectralLDA(2).fit(np.ones(N)))
    assert "(1711, 0)" in said(lambda: PrivateSpectralLDA(2).fit(np.ones((N, 0))))


@pytest.mark.parametrize("texts", [["a"] * (N - 1) + [None], "a" * N, 3, [1] * N], ids=str)
def test_errors_about_texts_show_no_number_of_texts(texts):
    for options, passed in (({"neighbours": "add_remove"}, {}), ({}, {"groups": LABELS})):
        words = PrivateCountVectorizer(max_words_per_document=3, **options)
        message = said(lambda words=words, passed=passed: words.fit(texts, **passed))
        assert message
        assert [number for number in SHOWN if number in message] == []


@pytest.mark.parametrize(
    "labels",
    [
        LABELS[1:], np.append(LABELS, 0), LABELS.astype(float), np.full(N, None),
        [*LABELS[:-1].tolist(), "a"], LABELS[:, None], np.zeros(N, int), [float("nan")] * N,
        np.ma.masked_equal(LABELS, 3), LABELS.astype(np.uint64) + np.uint64(2**63),
        [*LABELS[:-1].tolist(), True], LABELS > 3, [b"a"] * N, sp.csr_array(LABELS[:, None]),
        {"a": 1}, "a" * N, [[1]] * N, 7,
    ],
    ids=lambda labels: type(labels).__name__,
)  # fmt: skip
def test_errors_about_labels_show_none_and_no_number_of_rows(labels):
    X = np.ones((N, 2))
    for build in MODELS.values():
        message = said(lambda build=build: build().fit(X, groups=labels))
        assert "groups must hold" in message
        assert [number for number in SHOWN if number in message] == []


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_rows_are_refused_where_there_may_be_none(kind):
    """An empty list has no columns: an error would tell it from one with a row."""
    told = set()
    for rows in ([], [[1.0, 2.0]], [[1.0, 2.0]] * 30):
        for build in MODELS.values():
            model = build(neighbours="add_remove")
            told.add(said(lambda model=model, rows=rows: model.fit(kind(rows))))
        search = PrivateSearchCV(
            PrivateSpectralLDA(1, neighbours="add_remove"), {"n_components": [1]}
        )
        told.add(said(lambda search=search, rows=rows: search.fit(kind(rows))))
    assert len(told) == 1
    assert "must be an array" in told.pop()


@pytest.mark.parametrize("names", [None, (None, ["a", "b"])], ids=["numbers", "names"])
def test_no_entries_in_a_list_are_entries_of_slices_like_others(names):
    some = [[3, "b"]] if names else [[3, 1]]
    for X, y in (([], []), (some, [0.5]), (tuple(some), (0.5,))):
        model = PrivateCPCompletion(0, bounds=(0, 1), shape=(30, 2), unit_mode=0, row_names=names)
        assert model.fit(X, y).privacy_report_.n_units == 30
