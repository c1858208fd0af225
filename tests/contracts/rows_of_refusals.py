"""Wrong input and parameters: which estimator refuses what, and what its message names."""

import datetime
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import scipy.sparse as sp

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.queries.clips import Clip, CountNorm, PairNorm, TripleNorm, WhitenedTripleNorm
from sktensor_dp.queries.count_moments import (
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.queries.samples import LiftedBall, ThirdMoments
from sktensor_dp.queries.texts import N_BUCKETS, WordVotes

INF, NAN = math.inf, math.nan
# Stand in data wherever its values may be anything, and in no message.
SECRET, NUMBER = "swordfish", 987654
Call = Callable[[Any], Any]
Wrong = list[tuple[dict[str, Any], str]]  # parameters, and what the message says of them


@dataclass(frozen=True)
class Row:
    """What is refused: an estimator of these parameters, called in one of these ways."""

    name: str
    model: Callable[..., Any]
    parameters: dict[str, Any]
    calls: tuple[Call, ...]
    message: str
    error: type[Exception] | tuple[type[Exception], ...] = (ValueError, TypeError)

    def refused(self) -> Iterator[tuple[str, Any, BudgetAccountant]]:
        """All that the error of each call says, its new estimator, and its own budget."""
        for call in self.calls:
            budget, said = BudgetAccountant(100.0, 1e-3), []
            model = self.model(**{"accountant": budget, **self.parameters})
            try:
                call(model)
            except self.error as error:
                link: BaseException | None = error
                while link is not None:
                    said.append(str(link))
                    link = link.__cause__ or link.__context__
            yield "\n".join(said), model, budget


def fit(*data: Any, **options: Any) -> tuple[Call, ...]:
    return (lambda model: model.fit(*data, **options),)


def table(noun: str, model: Any, calls: tuple[Call, ...], wrong: Wrong) -> list[Row]:
    """Rows of wrong parameters, on data that is right."""
    return [Row(f"{noun}: {parameters}"[:90], model, parameters, calls, message)
            for parameters, message in wrong]  # fmt: skip


def each(name: str, values: list[Any], message: str) -> Wrong:
    return [({name: value}, message) for value in values]


def data_table(
    noun: str, model: Any, methods: tuple[str, ...], wrong: dict[str, tuple[Any, str]]
) -> list[Row]:
    """Rows of wrong data, which is one argument or a tuple of several."""
    return [
        Row(f"{noun}: {name}", model, {},
            tuple(partial(called, method=method, data=data) for method in methods), message)
        for name, (data, message) in wrong.items()
    ]  # fmt: skip


def called(model: Any, method: str, data: Any) -> Any:
    return getattr(model, method)(*(data if isinstance(data, tuple) else (data,)))


def replaced(array: Any, value: Any, dtype: Any = float) -> Any:
    result = np.array(array, dtype)
    result.flat[4] = value
    return result


# Topics

COUNTS = np.random.default_rng(0).poisson(1.0, size=(200, 7))
topics = partial(PrivateSpectralLDA, n_components=2)
WRONG_COUNTS = {
    "negative": (COUNTS - NUMBER, "Negative values in data passed as X"),
    "negative sparse": (sp.csr_matrix(COUNTS - NUMBER), "Negative values"),
    "fractions": (np.where(COUNTS > 2, 0.5, NUMBER), "whole numbers; it holds fractions"),
    "sparse fractions": (sp.csr_matrix(COUNTS * 1.05), "CountVectorizer in the place of Tfidf"),
    "infinite": (np.where(COUNTS > 2, INF, NUMBER), "infinity"),
    "text": ([SECRET], "X must hold numbers"),
    "scalar": (NUMBER, "Expected 2D array"),
    "three-dimensional": (np.full((2, 2, 2), NUMBER), "dim 3"),
    "no documents": (np.zeros((0, 5)), "0 sample"),
    "no words": (np.zeros((5, 0)), "0 feature"),
}
TOPIC_CALLS: tuple[Call, ...] = (
    lambda model: model.fit(COUNTS),
    lambda model: model.partial_fit(COUNTS),
    lambda model: model.fit_chunks([COUNTS], n_samples=200, n_features=7),
    lambda model: model.forecast(200, 7),
)
WRONG_OF_TOPICS: dict[str, list[Any]] = {
    "epsilon": [0, -1.0, NAN, "1", None, True],
    "delta": [1, 1.5, -1e-9, NAN, "0", None],
    "n_components": [0, -3, 1.5, True, "2", None],
    # Infinite in single precision, the least of those; then those of which squares overflow.
    "doc_topic_prior": [-0.1, NAN, INF, "all", 1.1e10, 3.4e38, 1e39, 1e300, 10**300, 10**400],
    "perturbation": ["whitener", None, 0],
    "n_refinements": [-1, 0.5, "many", None],
    "clip_norm": ["none", 3.0, None, {"counts": 0}, {"words": 1.0},
                  *({"pairs": value} for value in (-1, NAN, INF, "1", True)),
                  *({"triples": value} for value in (5e-324, 1e-320, 0.9e-40, 1.1e40, 1.7e308))],
    "accountant": [1.0, "budget", object(), BudgetAccountant],
    "random_state": [-1, 0.5, "0", np.random.default_rng(0)],
    "verbose": ["yes", -1],
}  # fmt: skip
TOPICS = [
    *data_table("counts", topics, ("fit", "partial_fit"), WRONG_COUNTS),
    *(row for name, values in WRONG_OF_TOPICS.items()
      for row in table("topics", topics, TOPIC_CALLS, each(
          name, values, f"'{name}' parameter of PrivateSpectralLDA must be"))),
]  # fmt: skip

WORDS = 7
NAMED_COUNTS = pd.DataFrame({"a": [1, 2], "b": [3, 1]})


def public(name: str, *wrong: tuple[Any, str]) -> Wrong:
    own = [(value, f"The '{name}' parameter") for value in ("often", 3.0)]
    return [({name: given}, message) for given, message in (*wrong, *own)]


PUBLIC = [
    *public(
        "word_frequencies",
        ({"w0": 1.0}, "no names of columns"),
        (np.ones(WORDS - 1), r"array of shape \(7,\); got shape \(6,\)"),
        (np.ones((WORDS, 1)), "got shape"),
        (np.zeros(WORDS), "at least one of them positive"),
        *((np.r_[value, np.ones(WORDS - 1)], "finite numbers >= 0") for value in (-1.0, NAN, INF)),
        (["often"] * WORDS, "word_frequencies"),
    )
]
NAMED_PUBLIC: Wrong = [({"word_frequencies": {"c": 1.0}}, "at least one of them positive")]
TOPICS += [
    *table("public", topics, TOPIC_CALLS[:3], PUBLIC),
    *table("public, named", topics, fit(NAMED_COUNTS), NAMED_PUBLIC),
    # Parameters are refused before data is looked at.
    *table("public, of wrong data", topics, (
        lambda model: model.fit(COUNTS - NUMBER), lambda model: model.partial_fit(COUNTS - NUMBER),
        TOPIC_CALLS[3],
    ), [
        ({"clip_norm": {"pairs": -1}}, "'clip_norm' parameter"),
    ]),
]  # fmt: skip


# Components

SAMPLES = np.random.default_rng(0).standard_normal((50, 3))
components = partial(PrivateTensorPowerMethod, n_components=2, data_norm=2.0)
CROOKED = replaced(np.eye(4)[:, :, None] * np.eye(4)[:, None], NUMBER)
COMPONENTS = [
    *table("components", components, fit(SAMPLES), [
        *each("data_norm", [None, INF], "data_norm"),
        ({"perturbation": "none"}, "perturbation"),
    ]),
    *data_table("tensors", components, ("fit_tensor",), {
        "not a cube": (np.zeros((3, 3, 4)), "shape"),
        "a matrix": (np.zeros((3, 3)), "shape"),
        "not symmetric": (CROOKED, "must be symmetric, up to rounding"),
        "not finite": (np.full((3, 3, 3), NAN), "NaN"),
    }),
    # A tensor has no samples to protect.
    *table("a tensor", components, (lambda model: model.fit_tensor(np.zeros((4, 4, 4))),), [
        *each("perturbation", ["whitened_tensor", "moment_tensor", "stream"], "fit_tensor"),
        ({"neighbours": "add_remove"}, r"needs neighbours='replace_one'"),
    ]),
    *data_table("samples", components, ("fit",), {
        "none": (np.zeros((0, 3)), "0 sample"),
    }),
    # Where no norm can be chosen.
    *table("no norm", components, (
        lambda model: model.partial_fit(SAMPLES), lambda model: model.fit_chunks(iter([SAMPLES])),
        lambda model: model.fit_tensor(np.ones((3, 3, 3))),
    ), [({"data_norm": "auto"}, "'auto'")]),
    *table("no norm", components, fit(SAMPLES), [
        ({"data_norm": "auto", "perturbation": "stream"}, "'auto'")]),
]  # fmt: skip
mixtures = partial(PrivateGaussianMixture, n_components=2, data_norm=2.0)
COMPONENTS += [
    *table("mixtures", mixtures, fit(SAMPLES), [
        *each("data_norm", [None, INF, 0, "chosen"], "data_norm"),
        *each("covariance_type", ["round", None], "covariance_type"),
        ({"n_components": 10**9}, "GB of memory"),
    ]),
    # NaN is a missing cell.
    *data_table("samples of mixtures", mixtures, ("fit", "fit_predict"), {
        "infinite": (np.where(SAMPLES > 1, INF, SAMPLES), "infinity"),
        "missing and sparse": (sp.csr_matrix(np.where(SAMPLES > 1, NAN, SAMPLES)), "NaN"),
        "none": (np.zeros((0, 3)), "0 sample"),
    }),
]  # fmt: skip


# Completions

SHAPE = (9, 8, 6)
X0 = np.argwhere(np.ones(SHAPE))
Y0 = np.random.default_rng(0).uniform(-4, 4, len(X0))
T0 = Y0.reshape(SHAPE)
SLICE = {"unit_mode": 0, "shape": SHAPE}
WRONG_OF_COMPLETIONS: Wrong = [
    *each("bounds", [None, (0, NAN), (-INF, 1), (0, 1, 2), ("0", "1"), np.array(3.0),
                     (-1e200, 1e200), {1: [[0, 1]] * 8}], "bounds"),
    *each("bounds", [(2, 1), (2, 2)], "low < high"),
    ({"bounds": (0, 1e-200)}, "apart"),
    *each("shape", [(9, 8), (9.0, 8, 6), (9, 8, 0)], "shape"),
    ({"shape": (9, 8, 5)}, "beyond shape"),
    ({"perturbation": "none"}, "perturbation"),
    ({"unit_mode": "user"}, "unit_mode"),
    ({"unit_mode": 0}, "shape"),
    ({**SLICE, "unit_mode": 3}, "unit_mode"),
    ({**SLICE, "unit_mode": -1}, "unit_mode"),
    *(({**SLICE, "perturbation": way}, "unit_mode") for way in ("gradient", "input", "output")),
    ({**SLICE, "max_iter": 3}, "max_iter"),
    # Beyond numbers, and too small for the law, of a half too.
    *each("epsilon", [0, 1e300, 1e-10], "epsilon"),
    ({"epsilon": 1.5e-9, "perturbation": "output"}, "at least 2e-09 .* got 1.5e-09"),
    ({"epsilon": 1.5e-9, "bounds": "auto"}, "at least 2e-09 .* got 1.5e-09"),
]  # fmt: skip
WRONG_ENTRIES = {
    "fractional": ((replaced(X0, 1.5), Y0), "integer"),
    "negative": ((replaced(X0, -1), Y0), "Negative values"),
    "nan coordinate": ((replaced(X0, NAN), Y0), "NaN"),
    "infinite coordinate": ((replaced(X0, INF), Y0), "infinite"),
    "enormous coordinate": ((replaced(X0, 1e30), Y0), "too large"),
    "strings": ((X0.astype(str), Y0), "row_names="),
    "a secret string": ((replaced(X0, SECRET, object), Y0), "row_names="),
    "complex": ((X0 * 1j, Y0), "Complex"),
    "one mode": ((X0[:, :1], Y0), "minimum of 2"),
    "no table": ((X0[:, 0], Y0), "2D"),
    "nan value": ((X0, replaced(Y0, NAN)), "y contains NaN"),
    "no values": ((X0, None), "y"),
    "nothing": ((X0[:0], Y0[:0]), "no entries"),
    "repeated": ((np.append(X0, X0[-1:], axis=0), np.append(Y0, 1.0)), "different coordinates"),
}
WRONG_TENSORS = {"a vector": ((T0[0, 0],), ""), "no values": ((T0 * NAN,), "no entries")}
COMPLETIONS = [
    row
    for kind in (PrivateCPCompletion, PrivateTuckerCompletion)
    for model in (partial(kind, rank=2, bounds=(-4, 4)),)
    for row in (
        *table(kind.__name__, model, fit(X0, Y0), WRONG_OF_COMPLETIONS),
        *data_table(f"entries, {kind.__name__}", model, ("fit",), WRONG_ENTRIES),
        *data_table(f"whole, {kind.__name__}", model, ("fit_tensor",), WRONG_TENSORS),
        *table(f"whole, {kind.__name__}", model, (lambda model: model.fit_tensor(T0),),
               [({"shape": (9, 8, 7)}, "T must have shape")]),
    )
]  # fmt: skip
COMPLETIONS += table("a rank beyond memory", partial(PrivateCPCompletion, bounds=(-4, 4)),
                     fit(X0, Y0), [({"rank": 10**6, "perturbation": "input"},
                                    "GB of memory.* smaller rank, or for 0")])  # fmt: skip
COMPLETIONS += table("ranks of modes", partial(PrivateTuckerCompletion, bounds=(-4, 4)),
                     fit(X0, Y0), each("rank", [0, (2, 2), (2, 2, 0), (2, 2, 7), (2, 2, 1.5), "2",
                                                None, np.ones((3, 1))], "rank"))  # fmt: skip


# Texts

vectorizer = partial(PrivateCountVectorizer, max_words_per_document=6)
DOCUMENTS = [f"{word} text" for word in "abcde"] * 300
TEXTS = [
    *data_table("texts", vectorizer, ("fit",), {
        "one text": (SECRET, "got an object of type str"),
        "bytes": (b"one text", "type bytes"),
        "a number": (NUMBER, "type int"),
        "a dict": ({SECRET: "b"}, "type dict"),
        "a table": (np.array([["a"], [SECRET]]), r"shape \(2, 1\)"),
        "none": ([], "at least one document, got none"),
        "an empty iterator": (iter([]), "at least one document, got none"),
        "None": (["a", None, 3], "item 1 is of type NoneType"),
        "nan": (["a", NAN], "item 1 is of type float"),
        "words": ([[SECRET, "b"]], "item 0 is of type list"),
        "another encoding": ([b"swordfish\xe9"], "not in encoding='utf-8'"),
    }),
    *table("vectorizer", vectorizer, fit(DOCUMENTS), [
        ({"epsilon": 0.01}, "about .* documents to be kept if .*, but there are 1,500"),
        ({"delta": 0}, "delta > 0, or pass a public vocabulary"),
        ({"ngram_range": (2, 1)}, "min_n <= max_n"),
        ({"ngram_range": [1, 2]}, "ngram_range"),
        *each("max_df", [0, 1.5], "max_df"),
        ({"min_df": 0.5, "max_df": 0.2}, "min_df=0.5 asks for more documents"),
        ({"input": "url"}, "input"),
        ({"analyzer": "sentence"}, "analyzer"),
        ({"stop_words": "klingon"}, "stop_words"),
        *each("token_pattern", ["(", "x{99999999999}"], "token_pattern.*regular expression"),
    ]),
    Row("a file that is not there", vectorizer, {"input": "filename"}, fit(DOCUMENTS),
        "items must be paths of files", FileNotFoundError),
]  # fmt: skip


# Data of another kind


def _computed() -> Any:
    raise AssertionError("it was computed")


LAZY = da.from_delayed(dask.delayed(_computed)(), (30, 2), float)
DAYS = pd.date_range("2026-01-01", periods=30)
FRAME = pd.DataFrame({"n": np.arange(30), "text": [SECRET] * 30, "day": DAYS})
HALVES = np.full((4, 3), 0.5)
OF_30 = COUNTS[:30, :2]
CUBE = np.ones((3, 3, 3))
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
OF_ROWS = {
    **MATRICES,
    "complex": (np.ones((30, 2)) * 1j, "X must hold real numbers"),
    "gaps": (np.diag([NAN] * 30), r"NaN\. Put a public constant(?!.*imputer transformer)"),
    "a vector": (np.ones(30), "row per document or sample, and one column per word or feature"),
}
OF_TENSORS = {
    "sparse": (sp.csr_array(np.eye(3)), "T must be dense, got a csr_array.*toarray"),
    "text": ([[[SECRET]]], "T must hold numbers, got text"),
    "objects": (np.full((2, 2, 2), SECRET, object), "T must hold numbers"),
    "dates": (CUBE.astype("datetime64[s]"), "T must hold numbers.*dates"),
    "complex": (CUBE * 1j, "Complex data not supported: T"),
    "ragged": ([[1, 2], [3]], "T must be a table"),
    "masked": (np.ma.masked_equal(np.eye(3), 1), "T must have no masked entries"),
    "dask": (LAZY, "T is a dask.*Array, which is not computed"),
}
CODES = np.column_stack([np.arange(30), np.arange(30) % 4])
VALUES = {
    "dates": ((CODES, DAYS), "y must hold numbers.*dates"),
    "date objects": ((CODES, DAYS.astype(object)), "y must hold numbers"),
    "complex": ((CODES, np.ones(30) * 1j), "y must hold real numbers"),
    "integers beyond floats": ((CODES, [10**400] * 30), "y must hold numbers within those of"),
    "sparse": ((CODES, sp.csr_matrix(np.ones(30))), "y must be dense"),
    "masked": ((CODES, np.ma.masked_equal(np.arange(30.0), 7)), "y must have no masked entries"),
    "beyond doubles": ((CODES, np.full(30, np.longdouble("1e4000"))), "y contains NaN or infinity"),
    "below 0": ((np.array([[0, -1], [1, 0]]), np.ones(2)), "coordinates >= 0 to fit. Leave out"),
    "a matrix of values": ((sp.coo_matrix(np.eye(30)), np.ones(30)), r"M\.tocoo"),
    "a sparse table": (sp.csr_matrix(np.ones((4, 3))), r"C = M.tocoo\(\)"),
    "a wide table": (np.ones((4, 3)), r"wide table .* goes to fit_tensor\(T\)"),
}
OF_DOCUMENTS = {
    "a numeric column": (FRAME["n"], "item 0 is of type .* Pass the column that holds the texts"),
    "dates": (FRAME["day"], "type Timestamp. Pass the column that holds the texts"),
}
CHUNKS = {
    "dates": (FRAME[["n", "day"]], "a chunk must hold numbers.*dates"),
    "text": ([[SECRET] * 2] * 30, "a chunk must hold numbers, got text; count the words"),
    "three axes": (np.ones((30, 2, 2)), "a chunk must be two-dimensional, got 3 axes"),
    "masked": (np.ma.masked_equal(OF_30, 1), "a chunk must have no masked entries"),
    "dask": (LAZY, "a chunk is a dask.*Array, which is not computed"),
    "infinite": (np.full((30, 2), INF), "NaN|infinity"),
    "too few": (np.ones((29, 2)), "n_samples is 60"),
    "too wide": (np.ones((30, 3)), "n_features is 2"),
}
CHUNKS_OF_COUNTS = {
    "fractions": (np.ones((30, 2)) * 1.5, "it holds fractions"),
    "negative": (-np.ones((30, 2)), "Negative values"),
}
# A matrix is an iterable of its rows, or of its matrices, not rows that were checked before.
SOURCES = {
    "a generator": (iter([OF_30]), "source must be re-iterable"),
    "no source": (3, "source must be an iterable of chunks, got a int"),
    "sparse": (sp.csr_matrix(HALVES), "whole|two-dimensional"),
    "dense": (HALVES, "whole|two-dimensional"),
    "a list": ([sp.csr_matrix(HALVES)], "whole|two-dimensional"),
    "a cube": (HALVES[None], "whole|two-dimensional"),
}


def chunked(
    noun: str, model: Any, wrong: dict[str, tuple[Any, str]], before: list[Any], n: int, width: int
) -> list[Row]:
    """Rows of wrong sources, or of wrong chunks `before` which there are right ones."""
    return [
        Row(f"{noun}: {name}", model, {},
            (methodcaller("fit_chunks", [*before, data] if before else data, n_samples=n,
                          n_features=width),), message)
        for name, (data, message) in wrong.items()
    ]  # fmt: skip


KINDS = [
    *(
        row
        for kind in (PrivateCPCompletion, PrivateTuckerCompletion)
        for model in (partial(kind, rank=2, bounds=(0, 1)),)
        for row in (
            *data_table(f"kinds, {kind.__name__}", model, ("fit",), {
                name: ((X, np.zeros(len(X))), message) for name, (X, message) in MATRICES.items()
            }),
            *data_table(f"kinds, {kind.__name__}", model, ("fit",), VALUES),
            *data_table(f"tensors, {kind.__name__}", model, ("fit_tensor",), OF_TENSORS),
        )
    ),
    *data_table("kinds of tensors", components, ("fit_tensor",), OF_TENSORS),
    *(
        row
        for noun, model in (("topics", topics), ("components", components))
        for row in (
            *data_table(f"kinds, {noun}", model, ("fit",), OF_ROWS),
            *chunked(f"chunks, {noun}", model, CHUNKS, [OF_30], 60, 2),
        )
    ),
    *chunked("chunks", topics, CHUNKS_OF_COUNTS, [OF_30], 60, 2),
    *chunked("sources", topics, SOURCES, [], 4, 3),
    *data_table("kinds of texts", vectorizer, ("fit",), OF_DOCUMENTS),
]  # fmt: skip


# Arguments that would break a bound, and others that no fit takes

CELLS, LABELS = np.argwhere(np.ones((6, 6))), np.repeat([f"{SECRET}{i}" for i in range(6)], 6)
ARGUMENTS = [
    Row(f"{kind.__name__}, {unit_mode}: {name}, {method}", kind,
        {"rank": 1, "bounds": (0, 1), "shape": (6, 6), "unit_mode": unit_mode},
        (lambda model, m=method, d=data, o=options: getattr(model, m)(*d, **o),),
        message.format(method), TypeError)
    for kind in (PrivateCPCompletion, PrivateTuckerCompletion)
    for unit_mode in (None, 0)
    for method, data in (("fit", (CELLS, np.zeros(36))), ("fit_tensor", (np.zeros((6, 6)),)))
    for name, options, message in (
        ("groups", {"groups": LABELS}, "{} takes no groups: .*unit_mode=0"),
        ("weights", {"sample_weight": np.ones(36)}, "{} takes no sample_weight: how much"),
    )
]  # fmt: skip
ARGUMENTS.append(Row(
    "groups of a tensor", partial(PrivateTensorPowerMethod, n_components=1), {},
    (lambda model: model.fit_tensor(np.zeros((3, 3, 3)), groups=[0, 1, 2]),),
    "fit_tensor takes no groups: it does not protect groups of rows", TypeError,
))  # fmt: skip
ARGUMENTS += [
    Row(f"weights of {noun}", model, {}, fit(X, sample_weight=np.ones(8)),
        "takes no sample_weight: how much a row weighs", TypeError)
    for noun, model, X in (
        ("samples of mixtures", mixtures, np.ones((8, 4))),
        ("a search", partial(PrivateSearchCV, PrivateSpectralLDA(), {"n_components": [2]}),
         np.ones((8, 4))),
    )
]  # fmt: skip

ARGUMENTS += [
    Row(f"{given} of {noun}, {method}", model, {},
        (methodcaller(method, right, **{given: np.ones(4)}),),
        rf"\.{method} takes no {given}{why}", TypeError)
    for noun, model, methods, right in (
        ("topics", topics, ("fit", "partial_fit"), np.ones((4, 3))),
        ("components", components, ("fit", "partial_fit"), np.ones((4, 3))),
        ("words", vectorizer, ("fit", "fit_transform"), ["a text"] * 4),
    )
    for method in methods
    for given, why in (
        ("sample_weight", ": .*read from the data"),
        ("colour", r"\. It takes (X|raw_documents), y, groups"), ("group", "; did you mean groups"),
        ("epsilon", ": it is a parameter of Private"),
    )
]  # fmt: skip

# Queries whose bound would be that of something else

QUERIES: list[tuple[Callable[[], Any], str]] = [
    (lambda: WordFrequencies(Clip(PairNorm(1.0), 1.0)), "clip must be of a"),
    (lambda: PairMoments(Clip(PairNorm(1.0), 1.0), 1.5), "must be of a PairNorm on"),
    (lambda: PairMoments(Clip(PairNorm(1.0, np.arange(2)), 1.0), 1.0), "must be of a PairNorm on"),
    (lambda: PairMoments(Clip(CountNorm(2), 1.0), 1.0), "clip must be of a"),
    (lambda: PairMoments(Clip(CountNorm(1), 1.0), 1.1), "clip must be of a"),
    (lambda: PairMoments(Clip(TripleNorm(), 1.0), 1.0), "clip must be of a"),
    (lambda: WhitenedTripleMoments(np.eye(2), Clip(WhitenedTripleNorm(np.eye(2)), 1.0)),
     "must be of a WhitenedTripleNorm whose whitener is the basis"),
    (lambda: WhitenedTripleMoments(np.eye(2), Clip(TripleNorm(), 1.0)), "clip must be of a"),
    (lambda: TripleMoments(np.eye(2), Clip(CountNorm(2), 1.0)), "clip must be of a"),
    (lambda: TripleMoments(2 * np.eye(2), Clip(TripleNorm(), 1.0)), "orthonormal"),
    (lambda: ThirdMoments(np.eye(5)[:, :3] * (1 + 1e-6), 1.0), "orthonormal"),
    (lambda: ThirdMoments(np.eye(5), 1.0, limit=1.0), "the only limit"),
    # Else no two samples would be orthogonal, and other bounds would be the sharp ones.
    (lambda: LiftedBall(1.0, 1.01), "offset must be a number from 0 to 1,"),
    *((lambda largest=largest: WordVotes(4, largest, np.ones(N_BUCKETS)),
       "largest must be from 1 to 2") for largest in (0.5, 2.1, NAN, INF)),
    *((lambda weights=weights: WordVotes(4, 1.0, weights), "numbers from 0 to 1")
      for weights in (np.ones(3), np.full(N_BUCKETS, 1.1), np.full(N_BUCKETS, -1.0))),
]  # fmt: skip

ROWS = [*TOPICS, *COMPONENTS, *COMPLETIONS, *TEXTS, *KINDS, *ARGUMENTS]
