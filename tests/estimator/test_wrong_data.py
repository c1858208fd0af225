"""Data of a wrong kind costs nothing; messages say what to do, and show no private number."""

import datetime
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any

import dask
import dask.array as da
import narwhals as nw
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from small_corpora import counts
from toy_regressor import constant

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateKFold,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    make_private_scorer,
)
from sktensor_dp.checks.errors import call_unquoted

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

SECRET = "swordfish"
DAYS = pd.date_range("2026-01-01", periods=30)
FRAME = pd.DataFrame({"n": np.arange(30), "text": [SECRET] * 30, "day": DAYS})
HALVES = np.full((4, 3), 0.5)


def _computed() -> Any:
    raise AssertionError("it was computed")


LAZY = da.from_delayed(dask.delayed(_computed)(), (30, 2), float)

MODELS: dict[str, Callable[..., Any]] = {
    "topics": partial(PrivateSpectralLDA, 2),
    "samples": partial(PrivateTensorPowerMethod, 2, data_norm=3.0),
    "stream": partial(PrivateTensorPowerMethod, 2, data_norm=3.0, perturbation="stream"),
    "CP": partial(PrivateCPCompletion, 2, bounds=(0, 1)),
    "Tucker": partial(PrivateTuckerCompletion, 2, bounds=(0, 1)),
    "words": PrivateCountVectorizer,
}
OF_ROWS, OF_ENTRIES = ("topics", "samples"), ("CP", "Tucker")


def refused(name, call, message):
    accountant = BudgetAccountant(100.0, 1e-4)
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call(MODELS[name](accountant=accountant))
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.__context__)
    assert accountant.entries == ()


MATRICES = {
    "a frame with dates": (FRAME[["n", "day"]], "X must hold numbers.*dates and times are none"),
    "periods": (
        FRAME[["day"]].apply(lambda c: c.dt.to_period("M")),
        "numbers.*dates and times are",
    ),
    "an array of dates": (FRAME[["day"]].to_numpy(), "X must hold numbers.*number the periods"),
    "durations": (np.ones((30, 2), "timedelta64[s]"), "X must hold numbers.*dates and times"),
    "datetime objects": (
        np.array([[datetime.date(2026, 1, 1)] * 2] * 9),
        "hold numbers|integer co",
    ),
    "a frame of text": (FRAME[["text", "text"]].set_axis(["a", "b"], axis=1), "([Cc]ount|encode) "),
    "lists of several lengths": ([[1, 2], [3]], "X must be a table of numbers|inhomogeneous"),
    "integers beyond floats": (np.full((30, 2), 10**400), "X must hold numbers within"),
    "masked": (np.ma.masked_equal(np.arange(60).reshape(30, 2), 7), "X must have no masked entr"),
}
# Samples are no counts of words: what is said holds for both.
ROWS = {
    "complex": (np.ones((30, 2)) * 1j, "X must hold real numbers"),
    "gaps": (np.diag([np.nan] * 30), r"NaN\. Put a public constant(?!.*imputer transformer)"),
    "a vector": (np.ones(30), "row per document or sample, and one column per word or feature"),
    "beyond floats": (np.full((30, 2), 10**400), "X must hold numbers within those of double prec"),
}
TENSORS = {
    "sparse": (sp.csr_array(np.eye(3)), "T must be dense, got a csr_array.*toarray"),
    "text": ([[[SECRET]]], "T must hold numbers, got text"),
    "objects": (np.full((2, 2, 2), SECRET, object), "T must hold numbers"),
    "dates": (np.zeros((3, 3, 3), "datetime64[s]"), "T must hold numbers.*dates"),
    "complex": (np.ones((3, 3, 3)) * 1j, "Complex data not supported: T"),
    "ragged": ([[1, 2], [3]], "T must be a table"),
    "masked": (np.ma.masked_equal(np.eye(3), 1), "T must have no masked entries"),
    "dask": (LAZY, "T is a dask.*Array, which is not computed"),
}
VALUES = {
    "dates": (DAYS, "y must hold numbers.*dates"),
    "date objects": (DAYS.astype(object), "y must hold numbers"),
    "complex": (np.ones(30) * 1j, "y must hold real numbers"),
    "integers beyond floats": ([10**400] * 30, "y must hold numbers within those of double"),
    "sparse": (sp.csr_matrix(np.ones(30)), "y must be dense"),
    "masked": (np.ma.masked_equal(np.arange(30.0), 7), "y must have no masked entries"),
    "beyond doubles": (np.full(30, np.longdouble("1e4000")), "y contains NaN or infinity"),
}
DOCUMENTS = {
    "a numeric column": (FRAME["n"], "item 0 is of type .* Pass the column that holds the texts"),
    "dates": (FRAME["day"], "type Timestamp. Pass the column that holds the texts"),
}
CHUNKS = {
    "dates": (FRAME[["n", "day"]], "a chunk must hold numbers.*dates"),
    "text": ([[SECRET] * 2] * 30, "a chunk must hold numbers, got text; count the words"),
    "three axes": (np.ones((30, 2, 2)), "a chunk must be two-dimensional, got 3 axes"),
    "masked": (np.ma.masked_equal(counts(30, 2), 1), "a chunk must have no masked entries"),
    "dask": (LAZY, "a chunk is a dask.*Array, which is not computed"),
    "infinite": (np.full((30, 2), np.inf), "NaN|infinity"),
    "too few": (np.ones((29, 2)), "n_samples is 60"),
    "too wide": (np.ones((30, 3)), "n_features is 2"),
}
CHUNKS_OF_COUNTS = {
    "fractions": (np.ones((30, 2)) * 1.5, "it holds fractions"),
    "negative": (-np.ones((30, 2)), "Negative values"),
}
SOURCES = {
    "a generator": (iter([counts(30, 2)]), "source must be re-iterable"),
    "no source": (3, "source must be an iterable of chunks, got a int"),
}
CELLS = np.column_stack([np.arange(30), np.arange(30) % 4])
CELLS_OF_COMPLETIONS = {
    "below 0": (np.array([[0, -1], [1, 0]]), "X must have coordinates >= 0 to fit. Leave out"),
    "a matrix of values": (sp.coo_matrix(np.eye(30)), r"M\.tocoo"),
}
WIDE = {
    "sparse": (sp.csr_matrix(np.ones((4, 3))), r"C = M.tocoo\(\)"),
    "dense": (np.ones((4, 3)), r"wide table .* goes to fit_tensor\(T\)"),
}


def zeros(X: Any) -> Any:
    return np.zeros(2 if isinstance(X, list) else np.shape(X)[0])


def in_chunks(model: Any, part: Any) -> Any:
    return model.fit_chunks([counts(30, 2), part], n_samples=60, n_features=2)


WRONG = [
    *((m, MATRICES, lambda model, X: model.fit(X, zeros(X))) for m in OF_ENTRIES),
    *((m, {**MATRICES, **ROWS}, lambda model, X: model.fit(X)) for m in OF_ROWS),
    *((m, TENSORS, lambda model, T: model.fit_tensor(T)) for m in (*OF_ENTRIES, "samples")),
    *(
        (m, CELLS_OF_COMPLETIONS, lambda model, X: model.fit(X, np.zeros(X.shape[0])))
        for m in OF_ENTRIES
    ),
    ("CP", VALUES, lambda model, y: model.fit(CELLS, y)),
    ("CP", WIDE, lambda model, X: model.fit(X)),
    ("words", DOCUMENTS, lambda model, texts: model.fit(texts)),
    *((m, CHUNKS, in_chunks) for m in ("topics", "samples")),
    ("topics", CHUNKS_OF_COUNTS, in_chunks),
    ("topics", SOURCES, lambda model, source: model.fit_chunks(source, n_samples=30, n_features=2)),
]


@pytest.mark.parametrize(
    ("name", "case", "data", "call", "message"),
    [(m, case, of[case][0], call, of[case][1]) for m, of, call in WRONG for case in of],
    ids=lambda value: value if isinstance(value, str) and len(value) < 30 else "",
)
def test_what_is_of_a_wrong_kind_is_refused_for_nothing(name, case, data, call, message):
    refused(name, lambda model: call(model, data), message)


def test_columns_of_one_name_are_called_that():
    """Which versions of scikit-learn refuse them differs; how it is said does not."""
    with pytest.raises(ValueError, match="X must have columns of different names"):
        call_unquoted(lambda: nw.from_native(FRAME[["n", "n"]]), "X")


@pytest.mark.parametrize(
    "source", [sp.csr_matrix(HALVES), HALVES, [sp.csr_matrix(HALVES)], HALVES[None]]
)
def test_a_matrix_as_a_source_is_checked_as_any_other(source):
    """It is an iterable of its rows, or of its matrices, not rows that were checked before."""
    sizes = {"n_samples": 4, "n_features": 3}
    refused("topics", lambda model: model.fit_chunks(source, **sizes), r"whole|two-dimensional")


class Source:
    def __init__(self, *parts):
        self.parts, self.reads = parts, 0

    def __iter__(self):
        self.reads += 1
        yield from self.parts


@pytest.mark.parametrize("name", ["topics", "samples"])
def test_chunks_are_read_once_before_the_charge_if_they_can_be_paid(name):
    accountant, source = BudgetAccountant(0.5, 1e-5), Source(counts()[:50], counts()[51:])
    model = MODELS[name](accountant=accountant)
    with pytest.raises(BudgetError):
        model.fit_chunks(source, n_samples=200, n_features=7)
    assert source.reads == 0
    with pytest.raises(ValueError, match="n_samples is 200"):
        model.set_params(epsilon=0.4).fit_chunks(source, n_samples=200, n_features=7)
    assert source.reads == 1
    assert accountant.entries == ()


# No message shows how many rows there are where that is private

N, OTHER = 1711, 1712
LABELS = np.arange(N) // 7
SHOWN = {"1711", "1712", "1710", "245", "1_711"}
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
    chain, found = None, ""
    try:
        fit()
    except Exception as error:
        chain = error
    while chain is not None:
        found += f"{type(chain).__name__}: {chain} {vars(chain)}\n"
        chain = chain.__cause__ or chain.__context__
    return found


def shows_none(message: str, hidden: set[str] = SHOWN) -> bool:
    return not any(number in message for number in hidden)


@pytest.mark.parametrize("kind", ["topics", "samples", "stream", "search"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("private", ["groups", "add_remove"])
def test_errors_about_tables_show_no_number_of_rows(kind, table, private):
    X, build = TABLES[table], partial(MODELS.get(kind, PrivateSpectralLDA))
    passed, few, sizes = {}, {}, {}
    if private == "groups":
        # How many groups are announced is public.
        passed, few, sizes = {"groups": LABELS}, {"groups": np.arange(30)}, {"n_samples": 245}
    else:
        build = partial(build, neighbours="add_remove")
    calls = [lambda: build().fit(X, **passed)]
    if kind == "search":
        search = PrivateSearchCV(build(), {}, n_trials=1, score_bounds=(-9, 0))
        calls = [lambda: search.fit(X, **passed), lambda: search.fit(X, np.ones(N - 1), **passed)]
    else:
        source = [(X, LABELS) if passed else X]
        calls.append(lambda: build().fit_chunks(source, n_features=2, **sizes))
    if kind in ("topics", "stream"):
        calls.append(lambda: build().partial_fit(X, **passed))
        begun = build().partial_fit(np.ones((30, 2)), **few)
        calls.append(lambda: begun.partial_fit(X, **passed))
    for call in calls:
        message = said(call)
        assert message or (table, private) == ("more rows than labels", "add_remove")
        assert shows_none(message, SHOWN - ({"245"} if sizes else set()))


def test_errors_about_tables_show_shapes_where_rows_are_public():
    assert "shape (1711,)" in said(lambda: PrivateSpectralLDA(2).fit(np.ones(N)))
    assert "(1711, 0)" in said(lambda: PrivateSpectralLDA(2).fit(np.ones((N, 0))))


@pytest.mark.parametrize("texts", [["a"] * (N - 1) + [None], "a" * N, 3, [1] * N], ids=str)
@pytest.mark.parametrize("options", [{"neighbours": "add_remove"}, {}])
def test_errors_about_texts_show_no_number_of_texts(texts, options):
    words = PrivateCountVectorizer(max_words_per_document=3, **options)
    message = said(lambda: words.fit(texts, groups=None if options else LABELS))
    assert message
    assert shows_none(message)


SEARCH = PrivateSearchCV(PrivateSpectralLDA(2), {"n_components": [1]})
SCORER, FITTED = make_private_scorer("neg_mean_absolute_error", bounds=(-1, 0)), constant()


def folds_of(X: Any, labels: Any) -> None:
    one_label = np.ndim(labels) == 1 and len(set(np.asarray(labels, object).tolist())) == 1
    next(PrivateKFold().split(X, groups=LABELS > 3 if one_label else labels))


def fit_of(name: str, method: str) -> Callable[..., Any]:
    def call(X: Any, labels: Any) -> None:
        sizes = {"n_samples": N, "n_features": 2} if method == "fit_chunks" else {}
        rows = ["a text"] * N if name == "words" else X
        data, named = ([(rows, labels)], sizes) if sizes else (rows, {"groups": labels})
        getattr(MODELS[name](), method)(data, **named)

    return call


OF_GROUPS = {
    "search": lambda X, labels: SEARCH.fit(X, groups=labels),
    "score": lambda X, labels: SCORER(FITTED, X, np.zeros(N), groups=labels),
    "folds": folds_of,
    **{
        f"{name}, {method}": fit_of(name, method)
        for name in ("topics", "samples", "stream", "words")
        for method in ("fit", "partial_fit", "fit_chunks")
        if hasattr(MODELS[name](), method)
    },
}


WRONG_LABELS = [
    LABELS[1:], np.append(LABELS, 0), LABELS.astype(float), np.full(N, None),
    [*LABELS[:-1].tolist(), "a"], LABELS[:, None], np.zeros(N, int), [float("nan")] * N,
    np.ma.masked_equal(LABELS, 3), [f"{label} " for label in LABELS],
    [*LABELS[:-1].tolist(), True], LABELS > 3, [b"a"] * N, sp.csr_array(LABELS[:, None]),
    {"a": 1}, "a" * N, [[1]] * N, 7, [SECRET] * N, [*range(N - 1), SECRET],
    [*range(N - 1), None],
]  # fmt: skip


@pytest.mark.parametrize("way", OF_GROUPS)
def test_wrong_labels_cost_nothing_and_show_none_and_no_number_of_rows(way):
    with BudgetAccountant(10.0, 1e-3) as payer:
        told = [said(lambda of=of: OF_GROUPS[way](np.ones((N, 2)), of)) for of in WRONG_LABELS]
    for message, labels in zip(told, WRONG_LABELS, strict=True):
        assert "groups must hold" in message, type(labels)
        assert SECRET not in message
        assert shows_none(message)
    assert not payer.entries


@pytest.mark.parametrize("name", [*OF_ROWS, "words"])
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("sample_weight", ": .*read from the data"),
        ("colour", r"\. It takes (X|raw_documents), y, groups"), ("group", "; did you mean groups"),
        ("epsilon", ": it is a parameter of Private"),
    ],
)  # fmt: skip
def test_arguments_that_no_fit_takes_are_refused_with_the_reason(name, given, why):
    X, other = np.ones((4, 3)), "partial_fit"
    if name == "words":
        X, other = ["a text"] * 4, "fit_transform"
    for method in ("fit", other):
        call = methodcaller(method, X, **{given: np.ones(4)})
        refused(name, call, f"takes no {given}{why}")


@pytest.mark.parametrize(
    ("estimator", "wrong", "nearest"),
    [
        (PrivateSpectralLDA, "n_topics", "n_components"),
        (PrivateTensorPowerMethod, "n_clusters", "n_components"),
        (PrivateCPCompletion, "n_components", "rank"),
        (PrivateCPCompletion, "bound", "bounds"),
        (PrivateSearchCV, "seed", "random_state"),
    ],
)
def test_parameters_that_do_not_exist_name_the_nearest(estimator, wrong, nearest):
    said = f"{estimator.__name__} takes no {wrong}; did you mean {nearest}\\?"
    with pytest.raises(TypeError, match=said):
        estimator(**{wrong: 3})
    with pytest.raises(TypeError, match=r"It takes .*epsilon"):
        estimator(zzz=3)


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_rows_are_refused_where_there_may_be_none(kind):
    """An empty list has no columns: an error would tell it from one with a row."""
    models = [MODELS[name](neighbours="add_remove") for name in ("topics", "samples", "stream")]
    models.append(PrivateSearchCV(models[0], {"n_components": [1]}))
    rows = [[], [[1.0, 2.0]], [[1.0, 2.0]] * 30]
    for model in models:
        (told,) = {said(partial(model.fit, kind(one))) for one in rows}
        assert "must be an array" in told


@pytest.mark.parametrize("names", [None, (None, ["a", "b"])], ids=["numbers", "names"])
def test_no_entries_in_a_list_are_entries_of_slices_like_others(names):
    some = [[3, "b"]] if names else [[3, 1]]
    for X, y in (([], []), (some, [0.5]), (tuple(some), (0.5,))):
        model = PrivateCPCompletion(0, bounds=(0, 1), shape=(30, 2), unit_mode=0, row_names=names)
        assert model.fit(X, y).privacy_report_.n_units == 30
