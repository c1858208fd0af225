"""Fitted topics, their public attributes, and warnings about them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.display import counted
from sktensor_dp.estimator.forecast import LARGEST_ADVISED
from sktensor_dp.exceptions import DoubtfulParameterWarning, NotEnoughDataWarning
from sktensor_dp.spectral_lda.plan import JOIN_ROWS, TopicPlan
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.concentration import USUAL
from sktensor_dp.topics.measures import are_set_apart
from sktensor_dp.topics.shrinkage import smoothed


@dataclass(frozen=True, eq=False)
class FittedTopics:
    """Topic model that a fit learned; made of released values only."""

    topics: Floats  # (k, n_features): rows are distributions
    weights: Floats  # (k,): share of each topic
    unigram: Floats  # (n_features,): denoised word frequencies, by EM steps too
    unigram_sigma: float  # noise of the released ones
    n_resolved: int  # number of topics that released pairs show, also beyond those asked for
    length: float  # tokens of a document, as released
    # (k, n_features): standard deviations of topics by noise; None for topics of pairs alone.
    topics_std: Floats | None = None
    # (k,): coherence of the leading words of each topic in the released second moment; None if the
    # topics come from later data.
    coherence: Floats | None = None
    # Sum of the Dirichlet prior in use; 0 for one topic per document.
    concentration: float = USUAL
    # (k, k, k): entry [j, i, l] is the covariance of what texts of topic i, and texts of topic l,
    # give topic j too much; None if it was not estimated.
    mixing_covariance: Floats | None = None
    # (k,): 0 for topics that noise may have made, 1 for others; None if no EM steps of several
    # topics were made.
    shown: Floats | None = None


def attributes_of(found: FittedTopics, n_asked: int) -> tuple[dict[str, Any], NDArray[np.bool_]]:
    """Attributes by name, topics by falling share; and the mask (k,) of those that noise hides."""
    prior_total = found.concentration if found.concentration > 0 else 1.0
    order = np.argsort(-found.weights, kind="stable")
    unigram, std = smoothed(found.unigram, found.unigram), found.topics_std
    assert std is not None
    if found.shown is not None:
        # Noise may have made topics that are not shown: it may be all their distance to `unigram`.
        moved = np.abs(found.topics - unigram)
        std = np.where(found.shown[:, None] > 0, std, np.maximum(std, moved))
    topics, std, n_topics = found.topics[order], std[order], len(found.topics)
    hidden = hidden_by_noise(topics, unigram, std)
    mixing = found.mixing_covariance
    attributes = {
        "components_": topics,
        "components_std_": std,
        "mixing_covariance_": None if mixing is None else mixing[np.ix_(order, order, order)],
        "topic_prior_": found.weights[order] * prior_total,
        "doc_topic_prior_": found.concentration / n_topics,
        "coherence_": None if found.coherence is None else found.coherence[order],
        "document_length_": found.length,
        "unigram_": unigram,
        "n_components_": n_topics,
        "n_components_seen_": (
            found.n_resolved if found.n_resolved > n_asked else n_topics - int(hidden.sum())
        ),
        "_n_features_out": n_topics,
    }
    return attributes, hidden


def hidden_by_noise(topics: Floats, unigram: Floats, std: Floats) -> NDArray[np.bool_]:
    """Mask (k,) of topics without a word that is, beyond noise, more likely there than overall.

    Without noise none is hidden.
    """
    return np.asarray(~are_set_apart(topics, unigram, std).any(axis=1) & bool(std.any()))


def warnings_of_noise(
    found: FittedTopics,
    hidden: NDArray[np.bool_],
    plan: TopicPlan,
    *,
    begins_stream: bool,
    has_frequencies: bool = False,
) -> tuple[Warning, ...]:
    """Warning, if any, that noise or chance hides some of the topics asked for.

    `hidden` (k,) masks the fitted topics that noise hides, by falling share.
    """
    # Numbers of topics below the noise; a single topic is the word frequencies.
    numbers = [str(place + 1) for place in np.flatnonzero(hidden)] if len(hidden) > 1 else []
    n_seen = int((~hidden).sum())
    if n_seen >= plan.n_components or plan.n_components == 1:
        return ()
    fitted = f"{len(found.topics)} were fitted"
    is_noisy = math.isfinite(plan.releases.epsilon)
    if len(found.topics) == 1:
        fitted = "released words show no second one, and one topic is the word frequencies"
        if is_noisy and found.shown is None and not begins_stream and plan.n_refinements > 0:
            fitted += ", so the budget has back what EM steps that were not made would have cost"
    at = " at this epsilon" if is_noisy else ""
    said = [
        f"Of {counted(plan.n_components, 'topic')} asked for, the data shows {n_seen}{at}; "
        f"{fitted}. There may be no more, or others are part of those."
    ]
    if numbers:
        which = f"{'topic' if len(numbers) == 1 else 'topics'} {', '.join(numbers)}"
        said.append(
            f"Noise hides {which} of {len(hidden)}, by falling share (hidden()): no word is "
            "known to be more likely there than overall, so none is listed."
        )
    see = ": see forecast()" if is_noisy else ""
    ways = ["more documents"]
    if plan.releases.epsilon < LARGEST_ADVISED:
        ways.append("a larger epsilon")
    # Fewer topics are larger ones, unless more can be seen than were asked for.
    if numbers and found.n_resolved <= plan.n_components:
        ways.append("fewer n_components")
    if is_noisy and not has_frequencies:
        ways.append("public word_frequencies, which cost nothing")
    # Tokens of a document by released frequencies, and two standard errors of their noise.
    most_tokens = found.length * (1 + 2 * found.unigram_sigma * math.sqrt(len(found.unigram)))
    if most_tokens < plan.least_tokens:
        said.append(
            f"Documents of fewer than {plan.least_tokens} tokens show no topic, and many seem so "
            f"short. {JOIN_ROWS}"
        )
    else:
        said.append(f"What would help: {', or '.join(ways)}{see}.")
    if len(found.topics) < plan.n_components and begins_stream:
        said.append("Later batches add no topic: begin a stream with a larger batch.")
    return (NotEnoughDataWarning(" ".join(said)),)


AS_MANY = (
    "As many topics can be seen as were asked for: there may be more, and some of these may hold "
    "two. Another run may ask for one or two more."
)


def warnings_of_more(n_seen: int, n_asked: int) -> tuple[Warning, ...]:
    """Tuple of one warning where pairs show more topics than `n_asked`, else empty."""
    return (DoubtfulParameterWarning(on_more(n_seen, n_asked)),) if n_seen > n_asked else ()


def on_more(n_seen: int, n_asked: int) -> str:
    """Say that there are more topics than `n_asked`, or may be.

    "" if fewer can be seen than were asked for, or the only one asked for is seen.
    """
    if n_seen <= n_asked:
        return AS_MANY * (n_seen == n_asked > 1)
    return (
        f"At least {n_seen} topics can be seen in the released pairs of words, and {n_asked} "
        f"{'was' if n_asked == 1 else 'were'} asked for: some may be merged. "
        "Words that come in bursts count as topics here."
    )
