"""State of a stream of topics, and the step of online EM on each later batch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sktensor_dp.estimator.base import FitResult
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.clips import Clip, CountNorm
from sktensor_dp.spectral_lda.clips import count_order
from sktensor_dp.spectral_lda.fitted import FittedTopics, attributes_of
from sktensor_dp.spectral_lda.refinement import m_step, query_of_step, with_deviations
from sktensor_dp.tensor.arrays import Floats


@dataclass(frozen=True, eq=False)
class TopicStream:
    """Released values carried from batch to batch, and nothing of the batches themselves."""

    fitted: FittedTopics  # the model so far
    mean: Floats  # (k, n_features): running mean of released expected counts of a document
    variance: float  # variance of the noise in it
    n_first: int  # number of documents or persons of the first batch, public or as released
    budget: tuple[float, float]  # epsilon and delta of each batch
    ticket: str | None  # proof of payment, for the ledger that was charged, by the next batch
    # Sum of the batches' precisions, and sum of their squares; 0 before the second batch.
    precisions: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of_first_batch(
        cls, found: FittedTopics, n_units: int, budget: tuple[float, float], ticket: str | None
    ) -> "TopicStream":
        """Stream after a whole fit: its topics, with their noise, stand for expected counts."""
        assert found.topics_std is not None
        counts = found.length * found.weights[:, None]
        variance = float(np.mean(np.square(counts * found.topics_std)))
        return cls(found, counts * found.topics, variance, n_units, budget, ticket)


def fit_em_step(
    ask: Session,
    stream: TopicStream,
    limits: Mapping[str, float],
    word_frequencies: Floats | None,
    n_components: int,
) -> FitResult:
    """Make one step of online EM on a new batch, and return the fitted attributes.

    Expected counts are released unscaled, clipped at the first batch's limit on counts.
    """
    fitted, order = stream.fitted, count_order(ask)
    clip = Clip(CountNorm(order), limits["counts"])
    noisy = ask(query_of_step(ask, fitted.topics, fitted.weights, fitted.concentration, clip))
    # Sampling variances of a document's counts add up to its number of tokens, about. The L1 limit
    # bounds that; so does the square of the L2 limit, as counts are whole numbers.
    sampling = limits["counts"] ** order
    rate, precisions = _rate(stream, noisy, sampling)
    mean = (1 - rate) * stream.mean + rate * noisy.value
    variance = (1 - rate) ** 2 * stream.variance + (rate * noisy.sigma) ** 2
    total = max(float(mean.sum()), 1e-9)  # noise may make the sum negative
    counts, sigma = mean / total, variance**0.5 / total
    # Word frequencies are those of the topics so far, by all earlier batches; their noise is taken
    # to be that of the first batch's released ones.
    fitted = m_step(
        fitted, counts, sigma, frequencies=fitted.unigram,
        frequencies_sigma=fitted.unigram_sigma, public_frequencies=word_frequencies,
    )  # fmt: skip
    # The coherence was that of the first batch's topics, from its pairs.
    fitted = with_deviations(replace(fitted, coherence=None), counts, sigma)
    stream = replace(
        stream, fitted=fitted, mean=mean, variance=variance, precisions=precisions,
        ticket=ask.ticket,
    )  # fmt: skip
    attributes, _ = attributes_of(fitted, n_components)
    warned = _warnings_of_first(stream, noisy.n, n_components)
    return FitResult({**attributes, "clip_norm_": limits, "_stream": stream}, warned)


def _warnings_of_first(stream: TopicStream, n: int, n_components: int) -> tuple[Warning, ...]:
    """Warning, if any, that a batch of `n` could show more topics than the first one found."""
    n_found = len(stream.fitted.topics)
    if n_found >= n_components or n <= stream.n_first:
        return ()
    return (
        NotEnoughDataWarning(
            f"No batch adds a topic: the first one, of {stream.n_first:,}, found {n_found} of "
            f"{n_components}. This one, of {n:,}, could show more: a stream that begins with it "
            "costs anew."
        ),
    )


def _rate(stream: TopicStream, noisy: Answer, sampling: float) -> tuple[float, tuple[float, float]]:
    """Weight of a batch in the running mean; and the stream's `precisions` after the batch.

    `sampling` is the sum of the sampling variances of a document's counts.
    """
    # Forgetting rate of online EM (Cappe & Moulines, 2009), between 1/2 and 1.
    forgetting = 0.6

    def precision(variance: float, n: int) -> float:
        """Inverse variance of an expected count of `n` documents; without noise just `n`."""
        if noisy.sigma == 0:
            return float(n)
        return 1 / (variance + sampling / noisy.value.size / n)

    of_batch = precision(noisy.sigma**2, noisy.n)
    total, squares = stream.precisions
    if total == squares == 0:  # before the second batch
        total = precision(stream.variance, stream.n_first)
        squares = total**2
    typical = squares / total  # mean precision of a batch, weighted by precision
    # Number of equally precise batches that all earlier ones are worth.
    n_batches = total / typical
    # A batch as precise as the earlier ones gets the weight (n_batches + 1) ** -forgetting.
    of_mean = typical * ((n_batches + 1) ** forgetting - 1)
    return of_batch / (of_batch + of_mean), (total + of_batch, squares + of_batch**2)
