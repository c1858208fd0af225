"""Topics from a stream of disjoint batches."""

from dataclasses import dataclass, replace

from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.spectral_topics.refinement import MIX_FINAL, expected_counts, smoothed
from sktensor_dp.spectral_topics.released import FittedTopics
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.shrinkage import denoise_topics
from sktensor_dp.topics.uncertainty import std_of_refined

# Forgetting rate of online EM (Cappe & Moulines, 2009): between 1/2 and 1.
FORGETTING = 0.6


@dataclass(frozen=True, eq=False)
class TopicStream:
    """Released values carried from batch to batch, and nothing of the batches themselves."""

    fitted: FittedTopics  # the model so far
    mean: Floats  # (k, n_features): running mean of released expected counts; they sum to about 1
    variance: float  # variance of the noise in it
    n_batches: int  # batches read
    budget: tuple[float, float]  # epsilon and delta that every batch may cost
    ticket: str | None = None  # what the next batch shows to the ledger that was charged


def continue_stream(
    curator: DocumentCurator,
    state: TopicStream,
    concentration: float,
    limit: float,
    word_frequencies: Floats | None,
) -> TopicStream:
    """Make one step of online EM: release expected counts of a new batch, clipped at `limit` as the
    first was, and update the topics.
    """
    fitted, clip = state.fitted, curator.given_count_clip(limit)
    noisy = expected_counts(curator, fitted.topics, fitted.weights, concentration, clip)
    total = max(float(noisy.value.sum()), 1e-9)
    rate = (state.n_batches + 1) ** -FORGETTING
    mean = (1 - rate) * state.mean + rate * noisy.value / total
    variance = (1 - rate) ** 2 * state.variance + (rate * noisy.sigma / total) ** 2
    topics, unigram, weights = denoise_topics(
        mean, variance**0.5, fitted.unigram, fitted.unigram_sigma, expected=word_frequencies,
        public=fitted.public,
    )  # fmt: skip
    topics_std, weights_std = std_of_refined(
        mean, variance**0.5, unigram, weights, None, fitted.public
    )
    # The pairs of the first batch say how coherent the first topics were.
    updated = replace(
        fitted, topics=smoothed(topics, unigram, MIX_FINAL), weights=weights, unigram=unigram,
        topics_std=topics_std, weights_std=weights_std, coherence=None,
        concentration=concentration,
    )  # fmt: skip
    return replace(
        state,
        fitted=updated,
        mean=mean,
        variance=variance,
        n_batches=state.n_batches + 1,
    )
