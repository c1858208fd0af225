"""One small fitted model of every kind that can be saved, and data to use it on."""

import copy
import functools
import warnings

import numpy as np
from small_completions import INF, X0, Y0, build

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)

# Words of one of two topics in each row.
COUNTS = np.random.default_rng(0).poisson([[2, 2, 2, 1, 0, 0, 0], [0, 0, 0, 1, 2, 2, 2]] * 100)
SAMPLES = np.random.default_rng(1).standard_normal((200, 5))
DOCUMENTS = ["cats chase mice", "dogs chase cats", "mice nap \ud800 \u00e9t\u00e9"] * 400
DATA = {
    PrivateSpectralLDA: COUNTS,
    PrivateGaussianMixture: SAMPLES,
    PrivateTensorPowerMethod: SAMPLES,
    PrivateCountVectorizer: DOCUMENTS,
    PrivateCPCompletion: X0,
    PrivateTuckerCompletion: X0,
}


def _lda(**parameters):
    return PrivateSpectralLDA(2, random_state=0, **parameters)


def _power(**parameters):
    return PrivateTensorPowerMethod(2, **{"data_norm": 4.0, "random_state": 0, **parameters})


def _completions():
    slices = {"unit_mode": 0, "shape": (9, 8, 6)}
    for model in (PrivateCPCompletion, PrivateTuckerCompletion):
        for way in ("input", "sufficient_statistics"):
            options = {"perturbation": way, "epsilon": 20.0}
            yield f"{model.__name__}-{way}", build(model, **options).fit(X0, Y0)
        yield f"{model.__name__}-slice", build(model, **slices).fit(X0, Y0)
        # Components of what units share.
        options = {"epsilon": float("inf")}
        yield f"{model.__name__}-slice-found", build(model, **slices, **options).fit(X0, Y0)


def fitted():
    """Every kind of model by name: copies of models that a process fits once."""
    yield from copy.deepcopy(_fitted_once())


@functools.cache
def _fitted_once():
    return list(_fitted())


def _fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "topics", _lda(clip_norm={"counts": 9.0}).fit(COUNTS)
        yield "topics-exact", _lda(epsilon=INF, doc_topic_prior=0).fit(COUNTS)
        yield "topics-stream", _lda().partial_fit(COUNTS).partial_fit(COUNTS)
        yield "components", _power().fit(SAMPLES)
        yield "mixture", PrivateGaussianMixture(2, data_norm=4.0, epsilon=9.0).fit(SAMPLES)
        tied = PrivateGaussianMixture(1, covariance_type="tied", data_norm="auto", epsilon=99.0)
        yield "mixture-tied", tied.fit(SAMPLES)
        tensor = np.einsum("i,j,k->ijk", *[np.arange(1.0, 4.0)] * 3)
        yield "components-tensor", _power(max_iter=2).fit_tensor(tensor)
        for n_batches in (1, 3, 8):
            stream = _power(max_iter=2, n_restarts=3)
            for _ in range(n_batches):
                stream.partial_fit(SAMPLES)
            yield f"components-stream-{n_batches}", stream
        yield from _completions()
        options = {"stop_words": ["nap"], "ngram_range": (1, 2), "max_words_per_document": 6}
        yield "vocabulary", PrivateCountVectorizer(**options).fit(DOCUMENTS)
        public = PrivateCountVectorizer(vocabulary={"cats": 1, "mice": 0}, dtype=np.float32)
        yield "vocabulary-public", public.fit(DOCUMENTS)


def fitted_with_tables():
    """Models that hold names of rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from _tables()


def _tables():
    known = {"shape": (9, 8, 6), "row_names": (None, list(range(8)), None)}
    yield "PrivateCPCompletion-names", build(PrivateCPCompletion, **known).fit(X0, Y0)
    model = build(PrivateTuckerCompletion, epsilon=50.0, unit_mode=0, **known)
    yield "PrivateTuckerCompletion-names", model.fit(X0, Y0)


def answers(model):
    """Everything that a fitted model says of data."""
    X = DATA[type(model)]
    X = X[:60] if model.__class__ is not PrivateCountVectorizer else X[:3]
    if type(model) is PrivateTensorPowerMethod and model.n_features_in_ == 3:
        X = X[:, :3]
    found = {"report": model.privacy_report_}
    if hasattr(model, "get_feature_names_out"):
        found["names"] = list(model.get_feature_names_out())
    for name in ("transform", "predict", "predict_proba", "perplexity"):
        if hasattr(model, name):
            result = getattr(model, name)(X)
            found[name] = result.toarray() if hasattr(result, "toarray") else np.asarray(result)
    if hasattr(model, "complete"):
        found["complete"], found["score"] = model.complete(), model.score(X, Y0[: len(X)])
    elif hasattr(model, "score"):
        found["score"] = model.score(X)
    if hasattr(model, "fold_in"):
        found["fold_in"] = model.fold_in(X, Y0[: len(X)]).predict(X)
    return found


def equal(first, second):
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return first == second
