"""What of a fitted topic model is saved."""

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from sktensor_dp.model_files.fields import (
    Integer,
    ListOf,
    Numbers,
    Optional,
    OrNone,
    Real,
    Record,
    Text,
    require,
)
from sktensor_dp.model_files.saving import INPUT, SavedState
from sktensor_dp.privacy.curators.documents import CLIPPED_NORMS
from sktensor_dp.spectral_lda.parameters import LIMITS
from sktensor_dp.spectral_lda.stream import TopicStream
from sktensor_dp.spectral_topics.released import FittedTopics

# Rows are normalised in double precision.
ROUNDING = 1e-6
# Lengths: k topics, d words.
WEIGHTS, UNIGRAM = Numbers("k", 0.0), Numbers("d", 0.0)
TOPICS = Numbers("kd", 0.0, 1.0 + ROUNDING)
CLIP_NORM = Record(dict, {name: Optional(Real(0, finite=False)) for name in CLIPPED_NORMS})

# None where the fit does not know them.
SHOWN = {
    "topics_std": OrNone(TOPICS), "weights_std": OrNone(WEIGHTS),
    "coherence": OrNone(Numbers("k")), "spectrum": OrNone(Numbers("?")),
    "noise_edge": OrNone(Real(0)),
}  # fmt: skip
FITTED_TOPICS = Record(
    FittedTopics,
    {
        "topics": TOPICS, "weights": WEIGHTS, "unigram": UNIGRAM, "unigram_sigma": Real(0),
        "n_resolved": Integer(), "concentration": Real(0),
        "public": OrNone(Numbers("?d", 0.0, 1.0 + ROUNDING)), **SHOWN,
    },
)  # fmt: skip
# Released sums of a stream; the ledger that was charged stays where it is.
STREAM = Record(
    TopicStream,
    {
        "fitted": FITTED_TOPICS, "mean": Numbers("kd"), "variance": Real(0),
        "n_batches": Integer(1),
        "budget": ListOf(Real(0, finite=False), tuple, 2, 2),
        "max_batches": Integer(1), "ticket": OrNone(Text()),
    },
)  # fmt: skip


def _check(state: SimpleNamespace, estimator: Any) -> None:
    estimator._limits()
    stream = getattr(state, "_stream", None)
    found = [(state.components_, state.topic_prior_)]
    if stream is not None:
        found.append((stream.fitted.topics, stream.fitted.weights))
        require(stream.fitted.weights.max() <= 1 + ROUNDING, "weights must be shares")
        public = stream.fitted.public
        if public is not None:
            require(1 <= len(public) <= state.n_components_, "public topics must be among topics")
            require(np.all(np.abs(public.sum(axis=1) - 1) <= ROUNDING), "topics must sum to 1")
    for topics, weights in found:
        require(np.all(np.abs(topics.sum(axis=1) - 1) <= ROUNDING), "topics must sum to 1")
        require(weights.sum() > 0, "some topic must have weight")
    _check_limits(state.clip_norm_.values(), stream)


def _check_limits(limits: Iterable[float], stream: Any) -> None:
    """Limits that a fit can have had; a stream clips further batches to one of them."""
    low, high = LIMITS
    within = all(low <= limit <= high or math.isinf(limit) for limit in limits)
    require(within, f"limits must be numbers from {low:g} to {high:g}, or infinite")
    noiseless = stream is None or math.isinf(stream.budget[0])
    require(noiseless or not any(map(math.isinf, limits)), "limits of noise must be finite")


SAVED_TOPICS = SavedState(
    {
        **INPUT, "components_": TOPICS, "topic_prior_": WEIGHTS, "unigram_": UNIGRAM,
        "doc_topic_prior_": Real(0),
        "n_components_": Integer(1, letter="k"), "clip_norm_": CLIP_NORM,
        "_stream": Optional(STREAM), "components_std_": SHOWN["topics_std"],
        "topic_prior_std_": SHOWN["weights_std"], "coherence_": SHOWN["coherence"],
        "spectrum_": SHOWN["spectrum"], "noise_edge_": SHOWN["noise_edge"],
    },
    _check,
    {"_n_features_out": lambda state: state.n_components_},
)  # fmt: skip
