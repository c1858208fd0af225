"""Whatever is passed: documented errors alone, before anything is spent, showing no data.

Drawn the same way at every run; ``SKTENSOR_DP_FUZZ`` multiplies the number of examples.
"""

import math
import os
from functools import partial

import numpy as np
import pandas as pd
import pytest
import small_models
from fuzzing import (
    HUGE,
    WILD,
    WORD,
    arrays,
    attempt,
    check_error,
    data,
    documents,
    funded,
    mostly,
    parameters,
    ranges,
    tables,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)

FACTOR = float(os.environ.get("SKTENSOR_DP_FUZZ", "1"))
INF = math.inf


def examples(count):
    return settings(
        max_examples=max(1, round(FACTOR * count)), derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


_lda = partial(PrivateSpectralLDA, 2, random_state=0)
_power = partial(
    PrivateTensorPowerMethod, 2, data_norm=4.0, max_iter=2, n_restarts=2, random_state=0
)
_mixture = partial(PrivateGaussianMixture, 2, data_norm=4.0, random_state=0)
_cp = partial(PrivateCPCompletion, 1, bounds=(-4, 4), random_state=0)
_tucker = partial(PrivateTuckerCompletion, 1, bounds=(-4, 4), random_state=0)
_vectorizer = partial(PrivateCountVectorizer, max_words_per_document=3)
MATRIX = [_lda, _power, _mixture]
TABLE = [_cp, _tucker]
ESTIMATORS = [*MATRIX, *TABLE, _vectorizer]
# Values in whose range a parameter's interesting ones lie.
OWN = {
    "epsilon": [0.1, 1, INF, 1e-9, 1e9], "delta": [0, 1e-9, 0.5, 1], "random_state": [0, 2**32 - 1],
    "perturbation": ["whitened_tensor", "moment_tensor", "iteration", "stream", "input", "output",
                     "sufficient_statistics", "gradient"],
    "doc_topic_prior": [0, 0.1, 1e300],
    "moment": ["raw", "gaussian_mixture"], "whiten": [True, False],
    "unit_mode": [None, 0, 1], "shape": [(5, 5), (2, 3), (50, 60)],
    "n_components": [1, 3, 100], "vocabulary": [["cats"], {"cats": 0}, {"cats": 5}, ["a", "a"]],
    "covariance_type": ["full", "tied", "diag", "spherical"],
    "analyzer": ["char", "char_wb"], "ngram_range": [(1, 2)], "dtype": [np.float32, "f8", "O"],
    "token_pattern": ["(", "(a)(b)", r"\w+"], "stop_words": ["english", ["cats"]],
    "encoding": ["ascii", "none-such", "zlib"], "input": ["filename", "file", "content"],
}  # fmt: skip


@pytest.mark.parametrize("build", [*MATRIX, *TABLE])
@given(X=data(), y=arrays(ndims=(1, 1, 1, 2, 0)))
@examples(30)
def test_fits_of_any_table(build, X, y):
    if build in MATRIX:
        attempt(funded(build()), "fit", X)
        if build is not _mixture:
            attempt(funded(build()), "partial_fit", X)
        return
    n = len(X) if isinstance(X, np.ndarray) and X.ndim else 1
    for values in (y, np.zeros(n)):
        attempt(funded(build()), "fit", X, values)


@pytest.mark.parametrize("build", [*TABLE, _power])
@given(T=st.one_of(data(), arrays(ndims=(3,))), mask=st.one_of(st.none(), arrays(ndims=(2, 2, 1))))
@examples(15)
def test_fits_of_any_tensor(build, T, mask):
    attempt(funded(build()), "fit_tensor", T, *([] if build is _power else [mask]))


@given(X=documents())
@examples(40)
def test_vocabularies_of_any_documents(X):
    attempt(funded(_vectorizer(), epsilon=INF), "fit", X)
    attempt(funded(_vectorizer()), "fit_transform", X)


@pytest.mark.parametrize("build", ESTIMATORS)
@given(draw=st.data())
@examples(60)
def test_any_parameters(build, draw):
    estimator = build()
    wild = draw.draw(parameters(estimator, OWN))
    estimator = funded(estimator, **wild)
    rng = np.random.default_rng(0)
    if build in MATRIX:
        attempt(estimator, "fit", rng.poisson(1.0, (30, 4)))
    elif build in TABLE:
        attempt(estimator, "fit", np.argwhere(rng.random((5, 5)) < 0.7)[:15], rng.random(15))
    else:
        attempt(estimator, "fit", ["cats chase mice", "dogs chase cats"] * 15)


# Rows of two modes, by number and by name; and wrong ones.
LETTERS, DAYS = list("abcde"), ["mon", "tue", "wed", "thu"]
ROW_NAMES = [
    *[None] * 8, (LETTERS, DAYS), (LETTERS, DAYS), (LETTERS, None), (None, DAYS), (None, None),
    (LETTERS,), (["a", "a"], DAYS), (DAYS, LETTERS),
]  # fmt: skip
CELLS_OF_ROWS = np.argwhere(np.random.default_rng(0).random((5, 4)) < 0.7)


def assert_finite(model):
    for name, value in vars(model).items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if name.endswith("_") and isinstance(part, np.ndarray) and part.dtype.kind == "f":
                assert np.isfinite(part).all(), name


@pytest.mark.parametrize("build", TABLE)
@given(draw=st.data())
@examples(40)
def test_public_names_and_bounds(build, draw):
    pick = draw.draw
    unit_mode = pick(st.sampled_from([None, None, None, 0, 0, 1]))
    bounds = pick(st.one_of(st.just((-4, 4)), mostly(ranges(), data())))
    ways = ["input", "sufficient_statistics", "gradient", "output"]
    model = funded(
        build(), bounds=bounds, unit_mode=unit_mode,
        perturbation=pick(st.sampled_from(ways)) if unit_mode is None else "auto",
        shape=pick(st.sampled_from([(5, 4), None])),
        epsilon=pick(st.sampled_from([0.1, 1.0, 1e6])), delta=pick(st.sampled_from([0, 1e-6])),
        row_names=pick(st.sampled_from(ROW_NAMES)),
    )  # fmt: skip
    X, y = _named(model.row_names), np.linspace(-9, 9, len(CELLS_OF_ROWS))
    if attempt(model, "fit", X, y * pick(st.sampled_from([0, 1, 1e300]))) is None:
        assert_finite(model)
        assert np.isfinite(model.complete()).all()
        assert np.isfinite(model.predict(X)).all()
        attempt(model, "predict", [[-1, 0], [10**6, 3]])
        attempt(model, "fold_in", X, y)


def _named(row_names):
    """Coordinates as a fit with these names takes them, where there are such names."""
    X = CELLS_OF_ROWS.astype(object)
    for mode, names in enumerate(row_names or ()):
        if names is not None and len(names) == (5, 4)[mode]:
            X[:, mode] = np.array(names, dtype=object)[CELLS_OF_ROWS[:, mode]]
    return X


@given(draw=st.data())
@examples(20)
def test_public_topics_of_anything(draw):
    pick = draw.draw
    words = pick(st.sampled_from([None, "abcd", "abyz", "aabc", "wxyz"]))
    by_word = pick(mostly(tables(4, (1, 1, 2, 3), least=0.0), data()))
    topics = by_word
    if np.shape(by_word)[:1] == (4,):
        by_word = np.asarray(by_word, dtype=float)
        forms = [by_word.T] if words is None else [
            pd.DataFrame(by_word.T, columns=list(words)), dict(zip(words, by_word, strict=True))
        ]  # fmt: skip
        topics = pick(st.sampled_from(forms))
    X = np.random.default_rng(0).poisson(1.0, (60, 4))
    model = funded(
        PrivateSpectralLDA(pick(st.sampled_from([1, 3, 3])), random_state=0),
        public_components=topics, epsilon=pick(st.sampled_from([0.1, 10.0, 1e6])),
        delta=pick(st.sampled_from([0, 1e-6])),
        n_refinements=pick(st.sampled_from(["auto", 1, 2, 0])),
        doc_topic_prior=pick(st.sampled_from(["auto", 0, 1e-3, 1e3])),
        neighbours=pick(st.sampled_from(["replace_one", "replace_one", "add_remove"])),
    )  # fmt: skip
    X = X if words is None else pd.DataFrame(X, columns=list("abcd"))
    for method in ("fit", "partial_fit", "partial_fit"):
        if attempt(model, method, X) is None:
            assert_finite(model)
            np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
            assert (model.components_ >= 0).all()


FITTED = [model for name, model in small_models.fitted() if "exact" not in name]


@pytest.mark.parametrize("model", FITTED, ids=lambda model: type(model).__name__)
@given(X=data(), y=arrays(ndims=(1, 1, 2)), texts=documents())
@examples(10)
def test_questions_to_a_fitted_model(model, X, y, texts):
    X = texts if isinstance(model, PrivateCountVectorizer) else X
    for method in ("transform", "predict", "score", "perplexity", "bic"):
        if hasattr(model, method):
            two = method == "score" and hasattr(model, "predict")
            attempt(model, method, X, *([y] if two else []))
    if hasattr(model, "fold_in"):
        attempt(model, "fold_in", X, y)


@pytest.mark.parametrize("build", [*MATRIX, *TABLE])
@given(a=st.sampled_from(WILD + HUGE), b=st.sampled_from(WILD + HUGE), chunk=data())
@examples(20)
def test_forecasts_and_chunks_of_any_size(build, a, b, chunk):
    right, wrong = ((100, 5), [(a, 5), (100, b), (a, b)])
    if build in TABLE:
        right = (100, (5, 4))
        wrong = [(a, (5, 4)), (100, (b, 4)), (100, (4, 5, b)), (a, b), (100, [a, b])]
    for sizes in wrong:
        attempt(build(), "forecast", *sizes)
    assert attempt(build(), "forecast", *right) is None
    for source in ([chunk], [chunk, chunk], chunk) if build in MATRIX else ():
        for n, d in ((a, b), (5, 3), (2, 1)):
            attempt(build(), "fit_chunks", source, n_samples=n, n_features=d)


def test_the_properties_bite():
    with pytest.raises(AssertionError):
        check_error(_lda(), ValueError(f"could not convert {WORD}"))

    class Careless(PrivateSpectralLDA):
        def fit(self, X, y=None):
            super().fit(np.ones((30, 4)))
            raise ValueError("too late")

    with pytest.raises(AssertionError, match="charged before"):
        attempt(funded(Careless(1)), "fit", None)
