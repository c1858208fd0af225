"""Serialisation schema of a fitted topic model."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import ABSENT, SavedState
from sktensor_dp.privacy.curators.documents import CLIPPED_NORMS
from sktensor_dp.spectral_lda.parameters import LIMITS
from sktensor_dp.spectral_lda.stream import TopicStream
from sktensor_dp.tensor.arrays import Floats

# Rows are normalised in double precision.
ROUNDING = 1e-6


@dataclass(kw_only=True)
class SavedTopics(SavedState):
    """Attributes of k topics over d words, and the released sums of a stream."""

    layout = {  # noqa: RUF012
        "n_features_in_": "d", "feature_names_in_": "d", "n_components_": "k",
        "doc_topic_prior_": "+", "components_": "kd+", "components_std_": "kd+",
        "topic_prior_": "k+", "topic_prior_std_": "k+", "unigram_": "d+", "coherence_": "k",
        "spectrum_": "?", "noise_edge_": "+", "clip_norm_": "+",
        # Of the stream.
        "topics": "kd+", "topics_std": "kd+", "weights": "k+", "weights_std": "k+",
        "unigram": "d+", "unigram_sigma": "+", "concentration": "+", "public": "?d+",
        "coherence": "k", "spectrum": "?", "noise_edge": "+", "mean": "kd", "variance": "+",
    }  # fmt: skip

    components_: Floats
    topic_prior_: Floats
    unigram_: Floats
    doc_topic_prior_: float
    n_components_: int
    clip_norm_: dict[str, float]
    components_std_: Floats | None
    topic_prior_std_: Floats | None
    coherence_: Floats | None
    spectrum_: Floats | None
    noise_edge_: float | None
    _stream: TopicStream = ABSENT

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes, where topics are distributions and limits are those of a fit."""
        estimator._limits()
        topics, weights = [self.components_], [self.topic_prior_]
        limits, noisy = self.clip_norm_.values(), False
        if (stream := self._stream) is not ABSENT:
            topics.append(stream.fitted.topics)
            weights.append(stream.fitted.weights)
            require(weights[1].max() <= 1 + ROUNDING, "weights must be shares")
            require(stream.n_batches > 0, "a stream has batches")
            noisy = not math.isinf(stream.budget[0])
            if (public := stream.fitted.public) is not None:
                topics.append(public)
                few = 1 <= len(public) <= self.n_components_
                require(few, "public topics must be among topics")
        sums = all((np.abs(some.sum(axis=1) - 1) <= ROUNDING).all() for some in topics)
        require(sums, "topics must sum to 1")
        require(all(some.sum() > 0 for some in weights), "some topic must have weight")
        low, high = LIMITS
        known = self.clip_norm_.keys() <= CLIPPED_NORMS.keys()
        within = known and all(low <= limit <= high or math.isinf(limit) for limit in limits)
        require(within, f"limits must be numbers from {low:g} to {high:g}, or infinite")
        finite = not (noisy and any(map(math.isinf, limits)))
        require(finite, "limits of noise must be finite")
        return {**super().attributes(estimator), "_n_features_out": self.n_components_}
