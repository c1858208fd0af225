"""Whatever is passed: documented errors alone, before anything is spent, showing no data.

Drawn the same way at every run; ``SKTENSOR_DP_FUZZ`` multiplies the number of examples.
"""

import math
import os
from functools import partial

import numpy as np
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
    parameters,
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
FITTED = [model for name, model in small_models.fitted() if "exact" not in name]


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
    "bounds": [(0, 1e-300), (-1e308, 1e308), (0, 1e-9), (1e49, 1e50)],
    "row_names": [(None, list("abcde")), (list("abcde"),) * 2, (["a", "a"], None)],
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
@given(a=st.sampled_from(WILD + HUGE), b=st.sampled_from(WILD + HUGE))
@examples(20)
def test_forecasts_of_any_size(build, a, b):
    wrong = [(a, 5), (100, b), (a, b)]
    if build in TABLE:
        wrong = [(a, (5, 4)), (100, (b, 4)), (100, (4, 5, b)), (a, b), (100, [a, b])]
    for sizes in wrong:
        attempt(build(), "forecast", *sizes)


def test_the_properties_bite():
    with pytest.raises(AssertionError):
        check_error(_lda(), ValueError(f"could not convert {WORD}"))

    class Careless(PrivateSpectralLDA):
        def fit(self, X, y=None):
            super().fit(np.ones((30, 4)))
            raise ValueError("too late")

    with pytest.raises(AssertionError, match="charged before"):
        attempt(funded(Careless(1)), "fit", None)
