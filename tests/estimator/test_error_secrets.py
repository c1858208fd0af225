"""What an error holds: no entry of the data, in it, behind it or beside it, and no charge."""

import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from secret_entries import NUMBER, TEXT, columns, fail, held_by, shows_nothing, tables
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from toy_regressor import constant

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
    make_private_scorer,
)
from sktensor_dp.checks.errors import call_unquoted, call_untrusted
from sktensor_dp.data.texts import TextChunks

pytestmark = [pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")]

CELLS = np.argwhere(np.ones((10, 6)))
VALUES = CELLS.sum(axis=1) / 10.0
SAMPLES = np.random.default_rng(0).uniform(0.5, 3.0, (300, 3))
COUNTS = np.random.default_rng(0).poisson(2.0, (300, 3))
TEXTS = ["cats chase mice", "dogs chase cats"] * 60


lda = partial(PrivateSpectralLDA, 2, random_state=0)
power = partial(
    PrivateTensorPowerMethod, 2, data_norm=4.0, max_iter=2, n_restarts=2, random_state=0
)
mixture = partial(PrivateGaussianMixture, 2, data_norm=4.0, random_state=0)
words = partial(PrivateCountVectorizer, max_words_per_document=3, epsilon=10.0)
COMPLETIONS = [
    partial(kind, 1, bounds=(0, 3), random_state=0, **unit)
    for kind in (PrivateCPCompletion, PrivateTuckerCompletion)
    for unit in ({}, {"unit_mode": 0, "shape": (10, 6)})
]
Call = tuple[str, Any, str, tuple[Any, ...]]


def quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def matrix_calls() -> Iterator[Call]:
    models = [lda(), power(), mixture()]
    fitted = [quietly(partial(clone(model).fit, COUNTS)) for model in models]
    for name, X in tables().items():
        for model in models:
            yield name, model, "fit", (X,)
            yield name, model, "fit_chunks", ([X], 30, 3)
            yield name, clone(model).set_params(n_components=X), "fit", (COUNTS,)
        for model in models[:2]:
            yield name, model, "partial_fit", (X,)
            yield name, model, "forecast", (X, 3)
        yield name, power(), "fit_chunks", ([X],)
        yield name, power(), "fit_tensor", (X,)
        for model, method in product(fitted, ("transform", "score", "score_samples", "perplexity")):
            if hasattr(model, method):
                yield name, model, method, (X,)


def completion_calls() -> Iterator[Call]:
    ones = np.ones(30)
    for build in COMPLETIONS:
        fitted = quietly(partial(build().fit, CELLS, VALUES))
        folds_in = hasattr(fitted, "fold_in")
        for name, X in tables().items():
            yield name, build(), "fit", (X, ones)
            yield name, build(), "fit_tensor", (X,)
            yield name, build(), "forecast", (X, (10, 6))
            yield name, build().set_params(bounds=X), "fit", (CELLS, VALUES)
            yield name, build().set_params(rank=X), "fit", (CELLS, VALUES)
            yield name, fitted, "predict", (X,)
            yield name, fitted, "transform", (X,)
            yield name, fitted, "score", (X, ones)
            if folds_in:
                yield name, fitted, "fold_in", (X, ones)
                yield name, fitted.fold_in(CELLS, VALUES), "predict", (X,)
        for name, y in columns().items():
            yield f"y {name}", build(), "fit", (CELLS, y)
            yield f"y {name}", fitted, "score", (CELLS, y)
            yield f"weights {name}", fitted, "score", (CELLS, VALUES, y)
            if folds_in:
                yield f"y {name}", fitted, "fold_in", (CELLS, y)


class Failing:
    def __init__(self, fails: Any = fail) -> None:
        self._fails = fails

    def __iter__(self) -> Iterator[Any]:
        yield COUNTS[:150]
        yield self._fails()


def text_calls() -> Iterator[Call]:
    wrong: dict[str, Any] = {
        "not decodable": [*TEXTS, b"\xff" + TEXT.encode()],
        "no text": [*TEXTS, NUMBER],
        "one text": TEXT,
        "source": Failing(),
    }
    asked: list[tuple[dict[str, Any], Any]] = [
        ({"encoding": "no-such"}, TEXT.encode()), ({"input": "filename"}, TEXT),
        ({"input": "filename"}, TEXT * 400), ({"input": "file"}, SimpleNamespace(read=fail)),
        ({"preprocessor": fail}, TEXT),
        ({"tokenizer": fail, "token_pattern": None}, TEXT),
        *(({"analyzer": analyzer}, TEXT)
          for analyzer in (fail, json.loads, {}.__getitem__, int, lambda text: {}[text])),
    ]  # fmt: skip
    for method in ("fit", "fit_transform"):
        yield from ((name, words(), method, (texts,)) for name, texts in wrong.items())
        yield from ((str(given), words(**given), method, ([text],)) for given, text in asked)
    for vectorizer in (words().fit(TEXTS), words(vocabulary=["cats"])):
        yield from ((name, vectorizer, "transform", (texts,)) for name, texts in wrong.items())
    yield from (
        (name, words().fit(TEXTS), "inverse_transform", (X,)) for name, X in tables().items()
    )


@pytest.mark.parametrize("calls", [matrix_calls, completion_calls, text_calls])
def test_no_method_shows_an_entry_or_charges_for_it(calls, capfd):
    """Of whatever kind the data is; all kinds that tell something are listed."""
    offenders = []
    for kind, estimator, method, passed in calls():
        budget = BudgetAccountant(1e9, 0.9)
        if hasattr(estimator, "set_params"):
            estimator.set_params(accountant=budget, verbose=1)
        try:
            error = shows_nothing(partial(getattr(estimator, method), *passed), capfd)
            assert error is None or budget.entries == (), "charged for an error"
        except AssertionError as found:
            offenders.append((type(estimator).__name__, method, kind, str(found)[:200]))
    assert offenders == []


class Panic(BaseException):
    """As libraries in Rust raise where they did not expect what they read."""


def panicking(*args: Any) -> Any:
    raise Panic(f"called `unwrap()` on {TEXT} {NUMBER}")


def stopping(*args: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "call",
    [
        lambda read: lda().fit_chunks(Failing(read), n_samples=600, n_features=3),
        lambda read: power().fit_chunks(Failing(read), n_samples=600, n_features=3),
        lambda read: power().fit_chunks(iter(Failing(read))),
        lambda read: words(tokenizer=read, token_pattern=None).fit(TEXTS),
    ],
)
def test_errors_of_what_is_read_are_told_by_type_and_place_and_interrupts_pass(call, capfd):
    error = shows_nothing(lambda: call(panicking), capfd)
    assert isinstance(error, RuntimeError)
    assert "Panic" in str(error)
    error = shows_nothing(lambda: call(fail), capfd)
    assert isinstance(error, ZeroDivisionError)
    assert "ZeroDivisionError (secret_entries.py, line" in str(error)
    with pytest.raises(KeyboardInterrupt):
        call(stopping)


@pytest.mark.parametrize("name", tables())
def test_searches_show_no_entry(name, capfd):
    X = tables()[name]
    options = {"score_bounds": (-20, 0), "n_trials": 1.5, "epsilon": 9.0}
    pipe = make_pipeline(Normalizer(), power())
    one = PrivateSearchCV(pipe, {"privatetensorpowermethod__data_norm": [4.0]}, **options)
    alone = PrivateSearchCV(power(), {"data_norm": [4.0]}, **options)
    two = PrivateSearchCV(PrivateCPCompletion(bounds=(0, 3)), {"rank": [0]}, n_trials=1)
    calls = [partial(alone.fit, X), partial(one.fit, X), partial(two.fit, X, np.ones(30))]
    for call in calls:
        shows_nothing(call, capfd)
    quietly(lambda: (one.fit(SAMPLES), two.fit(CELLS, VALUES)))
    calls = [partial(method, X) for method in (one.transform, one.score_samples, one.score)]
    calls += [partial(call, CELLS, y) for y in columns().values() for call in (two.fit, two.score)]
    for call in (*calls, partial(two.predict, X)):
        shows_nothing(call, capfd)


@pytest.mark.parametrize("name", columns())
def test_scorers_show_no_entry(name, capfd):
    y, X, model = columns()[name], np.zeros((60, 1)), constant()
    budget = BudgetAccountant(1e9, 0.9)
    scorer = make_private_scorer("neg_mean_squared_error", bounds=(-1, 0), accountant=budget)
    error = shows_nothing(lambda: scorer(model, X, y), capfd)
    assert error is None or budget.entries == ()
    for table in tables().values():
        shows_nothing(partial(scorer, model, table, y), capfd)
    if name in ("list", "object", "series", "telling"):
        tool = partial(cross_val_score, DummyRegressor(), X, np.zeros(60), cv=3)
        shows_nothing(lambda: tool(scoring=lambda *_: scorer(model, X, y)), capfd)


# How errors are told anew


def test_errors_of_the_library_itself_stay_as_they_are():
    with pytest.raises(ValueError, match=r"^T must be symmetric") as caught:
        call_untrusted(lambda: power().fit_tensor(np.arange(27.0).reshape(3, 3, 3)), "A call")
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: TextChunks([TEXT], {}.__getitem__), "Key"),
        (lambda: words().fit(map(int, [TEXT])), "Value"),
    ],
)
def test_functions_in_c_that_the_library_calls_are_not_taken_for_it(call, kind):
    """The innermost frame is then the library's own, though it raised nothing."""
    with pytest.raises((LookupError, ValueError), match=f"failed with {kind}Error") as caught:
        call()
    assert TEXT not in held_by(caught.value)


def test_what_led_to_an_error_that_is_passed_on_is_cut_off():
    def inner() -> None:
        try:
            float(TEXT)
        except ValueError as first:
            second = TypeError("float() argument must be a string or a real number, not 'dict'")
            second.add_note(TEXT)
            raise second from first

    with pytest.raises(TypeError, match="not 'dict'") as caught:
        call_unquoted(inner, "X")
    assert TEXT not in held_by(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("saying", ["float() argument must be {}", "must be real number, not {}"])
def test_entries_cannot_speak_in_the_name_of_numpy(saying, capfd):
    class Entry:
        def __float__(self) -> float:
            raise TypeError(saying.format(TEXT))

    table = np.array([[Entry(), 1.0, 2.0]] * 3, dtype=object)
    for call in (lambda: lda().fit(table), lambda: power().fit_tensor([table] * 3)):
        assert shows_nothing(call, capfd) is not None


def test_messages_that_show_none_are_passed_on():
    fitted = quietly(partial(lda().fit, COUNTS))
    for call, message in (
        (lambda: call_unquoted(lambda: float({}), "X"), r"^X must hold numbers: .* not 'dict'.$"),  # type: ignore[arg-type]
        (
            lambda: call_unquoted(lambda: np.array([[1], [2, 3]]), "X"),
            "X must be a table of numbers with r",
        ),
        (lambda: lda().fit(np.zeros((0, 3))), "Found array with 0 sample"),
        (lambda: fitted.transform(np.ones((2, 4))), "4 features, but PrivateSpectralLDA is expect"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: float(TEXT), lambda: json.loads(TEXT), lambda: warnings.warn(TEXT, stacklevel=1),
        fail, lambda: b"\xff SECRET".decode(),
    ],
)  # fmt: skip
def test_the_property_bites(call, capfd):
    with pytest.raises(AssertionError):
        shows_nothing(call, capfd)
