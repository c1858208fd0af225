"""Fitted topics, and the state of a stream, in a model file."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import (
    ABSENT,
    ByName,
    Items,
    Maybe,
    Numbers,
    Part,
    Plain,
    Real,
    SavedState,
    Whole,
)
from sktensor_dp.spectral_lda.clips import CLIPPED_NORMS, LIMITS
from sktensor_dp.spectral_lda.fitted import FittedTopics
from sktensor_dp.spectral_lda.stream import TopicStream
from sktensor_dp.tensor.arrays import Floats

# Tolerance for rows that were normalised in double precision.
ROUNDING = 1e-6

STREAM = Part(
    TopicStream,
    fitted=Part(
        FittedTopics, topics=Numbers("kd+"), weights=Numbers("k+"), unigram=Numbers("d+"),
        unigram_sigma=Real("+"), n_resolved=Whole(), length=Real("+"),
        topics_std=Numbers("kd+"), coherence=Maybe(Numbers("k")),
        concentration=Real("+"), mixing_covariance=Maybe(Numbers("kkk")),
        shown=Maybe(Numbers("k+")),
    ),
    mean=Numbers("kd"), variance=Real("+"), n_first=Whole(),
    budget=Items(Real(), 2, tuple), ticket=Maybe(Plain(str)),
    precisions=Items(Real("+"), 2, tuple),
)  # fmt: skip


@dataclass(kw_only=True)
class SavedTopics(SavedState):
    """Serialisation schema: attributes of k topics over d words, and the state of a stream."""

    components_: Annotated[Floats, Numbers("kd+")]
    topic_prior_: Annotated[Floats, Numbers("k+")]
    unigram_: Annotated[Floats, Numbers("d+")]
    doc_topic_prior_: Annotated[float, Real("+")]
    n_components_: Annotated[int, Whole("k")]
    n_components_seen_: Annotated[int, Whole()]
    clip_norm_: Annotated[dict[str, float], ByName(Real("+"))]
    components_std_: Annotated[Floats, Numbers("kd+")]
    mixing_covariance_: Annotated[Floats | None, Maybe(Numbers("kkk"))]
    coherence_: Annotated[Floats | None, Maybe(Numbers("k"))]
    document_length_: Annotated[float, Real("+")]
    _stream: Annotated[TopicStream, STREAM] = ABSENT

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes; ModelFileError if topics or limits are not those of a fit."""
        topics, weights = [self.components_], [self.topic_prior_]
        limits, is_noisy = self.clip_norm_.values(), False
        if (stream := self._stream) is not ABSENT:
            topics.append(stream.fitted.topics)
            weights.append(stream.fitted.weights)
            require(weights[1].max() <= 1 + ROUNDING, "weights must be shares")
            require(stream.n_first > 0, "a stream has batches")
            epsilon, _ = stream.budget
            is_noisy = not math.isinf(epsilon)
        are_normalised = [(np.abs(rows.sum(axis=1) - 1) <= ROUNDING).all() for rows in topics]
        require(all(are_normalised), "topics must sum to 1")
        require(all(one.sum() > 0 for one in weights), "some topic must have weight")
        low, high = LIMITS
        are_known = self.clip_norm_.keys() <= CLIPPED_NORMS.keys()
        are_within = all(low <= limit <= high or math.isinf(limit) for limit in limits)
        require(are_known and are_within, f"limits must be from {low:g} to {high:g}, or infinite")
        require(not is_noisy or all(map(math.isfinite, limits)), "limits of noise must be finite")
        return {**super().attributes(estimator), "_n_features_out": self.n_components_}
