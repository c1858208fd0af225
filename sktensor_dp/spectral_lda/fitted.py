"""Fitted attributes of a topic model: from a fit, to warnings, in a model file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktensor_dp.estimator.base import Fitted
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.fields import ABSENT, SavedState
from sktensor_dp.privacy.curators.documents import CLIPPED_NORMS, DocumentCurator
from sktensor_dp.spectral_lda.stream import TopicStream, continue_stream
from sktensor_dp.spectral_topics.plan import TopicPlan
from sktensor_dp.spectral_topics.released import FittedTopics
from sktensor_dp.tensor.arrays import Floats


def learned(
    found: FittedTopics,
    limits: Mapping[str, float],
    plan: TopicPlan,
    budget: tuple[float, float] | None = None,
) -> Fitted:
    """Fitted attributes and warnings of a topic model; with a `budget` (epsilon, delta) for further
    batches, the state of a stream too.
    """
    state = {**_attributes(found), "clip_norm_": dict(limits)}
    if budget is not None:
        # Topics of the first batch stand for its expected counts.
        mean = found.weights[:, None] * found.topics
        state["_stream"] = TopicStream(found, mean, found.unigram_sigma**2, 1, budget)
    return Fitted(state, _warnings_of_noise(found, plan))


def learn_batch(
    curator: DocumentCurator,
    stream: TopicStream,
    concentration: float,
    limits: Mapping[str, float],
    word_frequencies: Any,
) -> Fitted:
    """Make one EM step on a further batch of a stream; return the fitted attributes."""
    after = continue_stream(curator, stream, concentration, limits["counts"], word_frequencies)
    return Fitted({**_attributes(after.fitted), "clip_norm_": limits, "_stream": after})


def _attributes(found: FittedTopics) -> dict[str, Any]:
    """Public attributes of fitted topics, by name."""
    scale = found.concentration if found.concentration > 0 else 1.0
    return {
        "components_": found.topics,
        "components_std_": found.topics_std,
        "topic_prior_": found.weights * scale,
        "topic_prior_std_": None if found.weights_std is None else found.weights_std * scale,
        "doc_topic_prior_": found.concentration / len(found.topics),
        "coherence_": found.coherence,
        "spectrum_": found.spectrum,
        "noise_edge_": found.noise_edge,
        "unigram_": found.unigram,
        "n_components_": len(found.topics),
        "_n_features_out": len(found.topics),
    }


def _warnings_of_noise(found: FittedTopics, plan: TopicPlan) -> tuple[Warning, ...]:
    """Warning, if any, that noise hides some of the topics asked for."""
    words_alone = plan.asks_gains and len(found.topics) == 1
    enough = found.n_resolved >= plan.n_components and not words_alone
    if enough or math.isinf(plan.releases.epsilon):
        return ()
    fitted_count = f"{len(found.topics)} were fitted"
    if len(found.topics) > found.n_resolved:
        fitted_count += ", and topics beyond that number may be noise"
    if words_alone:
        fitted_count = (
            "their held-out gain over word frequencies does not exceed its noise, so that one "
            "topic was fitted, the word frequencies, with the rest of the budget"
        )
    return (
        NotEnoughDataWarning(
            f"Of {plan.n_components} topics asked for, the data shows {found.n_resolved} "
            f"at this epsilon; {fitted_count}. More documents, a larger "
            "epsilon or fewer n_components would help: see forecast()."
        ),
    )


# Products of three numbers in the scale of a limit neither overflow nor vanish.
LIMITS = (1e-40, 1e40)
# Rows are normalised in double precision.
ROUNDING = 1e-6


@dataclass(kw_only=True)
class SavedTopics(SavedState):
    """Serialisation schema: attributes of k topics over d words, and the state of a stream."""

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
        """Fitted attributes by name; ModelFileError if topics are no distributions or limits not a
        fit's.
        """
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
