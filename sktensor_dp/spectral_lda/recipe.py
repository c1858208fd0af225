"""Recipes of a topic model: what a fit leaves behind, and what it warns of."""

import math
from collections.abc import Mapping
from typing import Any

from sktensor_dp.estimator.base import Fitted
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.spectral_lda.stream import TopicStream, continue_stream
from sktensor_dp.spectral_topics.plan import TopicPlan
from sktensor_dp.spectral_topics.released import FittedTopics


def learned(
    found: FittedTopics,
    limits: Mapping[str, float],
    plan: TopicPlan,
    budget: tuple[float, float] | None = None,
) -> Fitted:
    """What topics leave behind: a stream too, if each of its batches may cost a budget."""
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
    """Take one step on one more batch of a stream, clipped as the first one."""
    after = continue_stream(curator, stream, concentration, limits["counts"], word_frequencies)
    return Fitted({**_attributes(after.fitted), "clip_norm_": limits, "_stream": after})


def _attributes(found: FittedTopics) -> dict[str, Any]:
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
    words_alone = plan.asks_gains and len(found.topics) == 1
    enough = found.n_resolved >= plan.n_components and not words_alone
    if enough or math.isinf(plan.releases.epsilon):
        return ()
    fitted_count = f"{len(found.topics)} were fitted"
    if len(found.topics) > found.n_resolved:
        fitted_count += ", and what those beyond that number say may be noise"
    if words_alone:
        fitted_count = (
            "what topics gain over word frequencies is lost in it, so that one topic was fitted, "
            "the word frequencies, on which what was left of the budget was spent"
        )
    return (
        NotEnoughDataWarning(
            f"Of {plan.n_components} topics asked for, the data shows {found.n_resolved} "
            f"at this epsilon; {fitted_count}. More documents, a larger "
            "epsilon or fewer n_components would help: see forecast()."
        ),
    )
