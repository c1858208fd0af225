"""What of a fitted topic model is saved."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from sktensor_dp.model_files.fields import (
    Integer,
    ListOf,
    Numbers,
    Optional,
    Real,
    Record,
    require,
)
from sktensor_dp.model_files.saving import INPUT, REPORT, SavedState
from sktensor_dp.privacy.curators.documents import CLIPPED_NORMS
from sktensor_dp.spectral_lda.stream import StreamState
from sktensor_dp.spectral_topics.recipe import FittedTopics

__all__ = ["SAVED_TOPICS"]

# Rows are normalised in double precision.
ROUNDING = 1e-6
SHARES, MATRIX = Numbers(1, 0.0), Numbers(2, 0.0, 1.0 + ROUNDING)
LIMITS = Record(dict, {name: Optional(Real(0, finite=False)) for name in CLIPPED_NORMS})

FITTED_TOPICS = Record(
    FittedTopics,
    {
        "topics": MATRIX, "weights": SHARES, "unigram": SHARES, "unigram_sigma": Real(0),
        "n_resolved": Integer(),
    },
)  # fmt: skip
# Released sums and the report of a stream; the ledger that was charged stays where it is.
STREAM = Record(
    StreamState,
    {
        "fitted": FITTED_TOPICS, "mean": Numbers(2), "variance": Real(0), "n_batches": Integer(1),
        "budget": ListOf(Real(0, finite=False), tuple, 2, 2), "report": REPORT,
    },
    derived={"accountant": None},
)  # fmt: skip


def _check(state: SimpleNamespace, estimator: Any) -> None:
    estimator._limits()
    k, d = state.components_.shape
    distributions = [state.components_]
    _check_shapes(state.components_, state.topic_prior_, state.unigram_)
    stream = getattr(state, "_stream", None)
    if stream is not None:
        fitted = stream.fitted
        _check_shapes(fitted.topics, fitted.weights, fitted.unigram)
        require(stream.mean.shape == fitted.topics.shape, "mean must have the shape of topics")
        require(fitted.topics.shape == (k, d), "the stream must be of the same topics")
        distributions.append(fitted.topics)
    for rows in distributions:
        require(np.all(np.abs(rows.sum(axis=1) - 1) <= ROUNDING), "topics must sum to 1")
    require(state.n_features_in_ == d, "n_features_in_ must be the number of words")
    require(state.n_components_ == k >= 1, "n_components_ must be the number of topics")
    names = getattr(state, "feature_names_in_", None)
    require(names is None or len(names) == d, "each feature must have one name")
    limits = state.clip_norm_.values()
    require(not any(math.isnan(limit) for limit in limits), "limits must be numbers")


def _check_shapes(topics: Any, weights: Any, unigram: Any) -> None:
    fits = weights.shape == topics.shape[:1] and unigram.shape == topics.shape[1:]
    require(fits, "weights and frequencies must fit the topics")
    require(weights.sum() > 0, "some topic must have weight")


SAVED_TOPICS = SavedState(
    {
        **INPUT, "components_": MATRIX, "topic_prior_": SHARES, "unigram_": SHARES,
        "n_components_": Integer(1), "clip_norm_": LIMITS, "_stream": Optional(STREAM),
    },
    _check,
    {"_n_features_out": lambda state: state.n_components_},
)  # fmt: skip
