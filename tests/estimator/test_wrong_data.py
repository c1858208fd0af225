"""No message shows a number of rows or a label that is private, or an argument of no fit."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from small_corpora import counts

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateKFold,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    check_inputs,
    make_private_scorer,
)
from sktensor_dp.checks.errors import call_unquoted

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

SECRET = "swordfish"

MODELS: dict[str, Callable[..., Any]] = {
    "topics": partial(PrivateSpectralLDA, 2),
    "samples": partial(PrivateTensorPowerMethod, 2, data_norm=3.0),
    "stream": partial(PrivateTensorPowerMethod, 2, data_norm=3.0, perturbation="stream"),
}


def test_columns_of_one_name_are_called_that():
    """Which versions of scikit-learn refuse them differs; how it is said does not."""
    with pytest.raises(ValueError, match="X must have columns of different names"):
        call_unquoted(lambda: nw.from_native(pd.DataFrame([[1, 2]], columns=["n", "n"])), "X")


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


# Of a person any number may be there; ids and names may be anything.
COORDINATES = {
    **TABLES,
    "fractions": np.full((N, 2), 0.5),
    "one column": np.ones((N, 1)),
    "three columns": np.ones((N, 3)),
}


@pytest.mark.parametrize("names", [None, (None, [0, 1, 2, 3, 4])], ids=["numbers", "names"])
@pytest.mark.parametrize("table", COORDINATES)
def test_errors_about_entries_of_persons_show_no_number_of_them(table, names):
    right, ones = np.zeros((N, 2), int), np.ones(N)
    numbers = [] if names else [(np.full((N, 2), at), ones) for at in (99, -1)]
    wrong = (COORDINATES[table], ones), (right, COORDINATES[table]), (right, ones[1:]), *numbers
    for X, y in wrong:
        model = PrivateCPCompletion(0, bounds=(0, 1), shape=(30, 5), unit_mode=0, row_names=names)
        message = said(lambda model=model, X=X, y=y: model.fit(X, y))
        named = names and table == "objects" and y is ones
        assert message or named or (X is right and y is TABLES["a vector"])
        assert shows_none(message, {*SHOWN, "3422"})


@pytest.mark.parametrize("texts", [["a"] * (N - 1) + [None], "a" * N, 3, [1] * N], ids=str)
@pytest.mark.parametrize("options", [{"neighbours": "add_remove"}, {}])
def test_errors_about_texts_show_no_number_of_texts(texts, options):
    words = PrivateCountVectorizer(max_words_per_document=3, **options)
    message = said(lambda: words.fit(texts, groups=None if options else LABELS))
    assert message
    assert shows_none(message)


TABLE = pd.DataFrame(np.ones((N, 3), int), columns=["a", "b", "c"])
CODES = np.argwhere(np.ones((30, 8)))
SCORED = PrivateSpectralLDA(1, epsilon=np.inf).fit(TABLE)


# Wherever labels are handed in.
DOORS: dict[str, Callable[..., Any]] = {
    "texts": lambda X, labels, **paid: PrivateCountVectorizer(
        max_words_per_document=2, **paid).fit(X["a"].map(lambda _: "cats"), groups=labels),
    "counts": lambda X, labels, **paid: PrivateSpectralLDA(1, **paid).fit(X, groups=labels),
    "batches": lambda X, labels, **paid: PrivateSpectralLDA(1, **paid).partial_fit(
        X, groups=labels),
    "chunks": lambda X, labels, **paid: PrivateSpectralLDA(1, **paid).fit_chunks(
        [(X, labels)], n_samples=37, n_features=3),
    "samples": lambda X, labels, **paid: PrivateGaussianMixture(1, data_norm=2.0, **paid).fit(
        X, groups=labels),
    "stream": lambda X, labels, **paid: PrivateTensorPowerMethod(
        1, data_norm=2.0, perturbation="stream", **paid).fit(X, groups=labels),
    "chunks of a stream": lambda X, labels, **paid: PrivateTensorPowerMethod(
        1, data_norm=2.0, perturbation="stream", **paid).fit_chunks([(X, labels)], n_features=3),
    "batches of a stream": lambda X, labels, **paid: PrivateTensorPowerMethod(
        1, data_norm=2.0, perturbation="stream", **paid).partial_fit(X, groups=labels),
    "search": lambda X, labels, **paid: PrivateSearchCV(
        PrivateSpectralLDA(1), {}, n_trials=1, anyway=True, **paid).fit(X, groups=labels),
    "score": lambda X, labels, **paid: make_private_scorer(
        "log_likelihood_per_token", **paid)(SCORED, X, groups=labels),
    "folds": lambda X, labels, **paid: next(PrivateKFold(2).split(X, groups=labels)),
    "check": lambda X, labels, **paid: check_inputs({"one": X["a"] == 1}, groups=labels, **paid),
}  # fmt: skip
OF_VALUES = {
    "folded in": lambda X, labels, **paid: PrivateCPCompletion(
        0, bounds=(0, 7), shape=(30, 8), unit_mode=0, epsilon=np.inf).fit(
            CODES, CODES[:, 1]).fold_in(X[["a", "b"]], labels / 6),
    "values": lambda X, labels, **paid: PrivateCPCompletion(
        1, bounds=(0, 40), shape=(2, 2), unit_mode=0, **paid).fit(X[["a", "b"]], labels),
    "shares": lambda X, labels, **paid: SHARED.shares_by(X, labels, [*range(37)], **paid),
    "shares by one of two columns": lambda X, labels, **paid: SHARED.shares_by(
        sp.csr_array(X.to_numpy()), labels, [*range(37)], groups=pd.Series(range(N), X.index),
        **paid),
}  # fmt: skip
# Doors that take counts of words, which have the index of their texts.
OF_COUNTS = ("counts", "batches", "chunks", "search", "score", "folds", "shares")
COUNTED = PrivateCountVectorizer(vocabulary=["a", "b", "c"], token_pattern=r"\w").transform(
    pd.Series(["a b"] * (N - 1) + ["c"])
)
KINDS = np.tile([[9, 0, 1], [0, 9, 1]], (N, 1))[:N]
SHARED = PrivateSpectralLDA(2, epsilon=np.inf).fit(TABLE * KINDS)


def wrong_labels() -> dict[str, Any]:
    numbers, words = list(range(N - 1)), [SECRET] * (N - 1)
    masked = np.ma.array([*numbers, 1], mask=[*[False] * (N - 1), True])
    return {
        "None in a list": [*numbers, None], "NaN": [*numbers, float("nan")],
        "None in words": [*words, None], "NaN in words": [*words, np.nan],
        "floats": np.arange(float(N)), "a float": [*numbers, 0.5],
        "bools": np.zeros(N, bool), "a list of bools": [True] * N,
        "a bool": [*numbers, True], "bytes": [b"x"] * N,
        "array of bytes": np.full(N, b"x"),
        "mixed": [*numbers, SECRET], "tuples": [(1, SECRET)] * N,
        "dates": np.zeros(N, "datetime64[D]"), "complex": np.zeros(N, complex),
        "missing Int64": pd.Series([*numbers, None], dtype="Int64"),
        "missing string": pd.Series([*words, None], dtype="string"),
        "missing category": pd.Series([*words, None], dtype="category"), "masked": masked,
        "missing polars": pl.Series([*numbers, None]),
        "masked words": np.ma.array([*words, "x"], mask=masked.mask),
        "NaT": pd.Series([pd.NaT] * N),
        "short": numbers, "long": [*numbers, 1, 2], "words, short": words, "none": [],
        "a number": 3, "a word": SECRET, "matrix": np.zeros((N, 1), int),
        "frame": pd.DataFrame({"a": [*numbers, 1]}), "sparse": sp.csr_array(np.eye(3)),
        "ragged": [[1], [1, 2]], "a set": set(numbers), "a mapping": {SECRET: 1},
        "one": [SECRET] * N,
    }  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_wrong_labels_cost_nothing_and_show_none_and_no_number_of_rows(door):
    with BudgetAccountant(10.0, 1e-3) as payer:
        told = {name: said(partial(DOORS[door], TABLE, of)) for name, of in wrong_labels().items()}
    if door == "folds":
        assert told.pop("one") == ""
    for name, message in told.items():
        assert "groups must hold" in message, name
        assert SECRET not in message
        assert shows_none(message)
    assert not payer.entries


@pytest.mark.filterwarnings("ignore:.*(topics asked for|above 1 in|deviations from)")
@pytest.mark.parametrize("door", {**DOORS, **OF_VALUES})
def test_labels_in_another_order_are_refused_before_the_charge(door):
    call = {**DOORS, **OF_VALUES}[door]
    owners, budget = pd.Series(np.arange(N) % 37, name="owner"), BudgetAccountant(9.0)
    shifted = owners.set_axis(owners.index + 1)  # each row beside the label of its neighbour
    tables = (TABLE, COUNTED) if door in OF_COUNTS else (TABLE,)
    for X, wrong in product(tables, (owners.sort_values(), shifted)):
        with pytest.raises(ValueError, match=r"Pass (groups|y|by).reindex\((X|texts).index\)"):
            call(X, wrong, epsilon=9.0, accountant=budget)
    assert budget.total()[0] == 0
    sessions = pd.MultiIndex.from_arrays([TABLE.index, TABLE.index])  # an index of another kind
    call(TABLE.set_axis(sessions), owners, epsilon=9.0, accountant=budget)


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
