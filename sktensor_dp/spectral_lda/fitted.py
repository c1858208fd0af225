"""Fitted attributes of a topic model: from a fit or a stream of batches, and in a model file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sktensor_dp.checks.display import counted
from sktensor_dp.estimator.base import Fitted
from sktensor_dp.exceptions import NotEnoughDataWarning
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
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.counts import Clip
from sktensor_dp.spectral_lda.clips import CLIPPED_NORMS, count_norm
from sktensor_dp.spectral_lda.plan import TopicPlan
from sktensor_dp.spectral_lda.recipe import ReleasedTopics
from sktensor_dp.spectral_lda.refinement import expected_counts, updated, with_deviations
from sktensor_dp.spectral_lda.released import FittedTopics
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.uncertainty import Limits


@dataclass(frozen=True, eq=False)
class TopicStream:
    """Released values carried from batch to batch, and nothing of the batches themselves."""

    fitted: FittedTopics  # the model so far
    mean: Floats  # (k, n_features): running mean of released expected counts of a document
    variance: float  # variance of the noise in it
    n_first: int  # documents or persons of the first batch, public or as released
    budget: tuple[float, float]  # epsilon and delta that every batch may cost
    # Sum of the batches' precisions, and sum of their squares; 0 before the second batch.
    precisions: tuple[float, float] = (0.0, 0.0)
    ticket: str | None = None  # what the next batch shows to the ledger that was charged


def fitted_attributes(
    released: ReleasedTopics,
    plan: TopicPlan,
    n_units: int,
    budget: tuple[float, float] | None = None,
) -> Fitted:
    """Fitted attributes and warnings of a fit; a stream's first batch has a `budget` for others."""
    found = released.topics
    state = {**_attributes(found), "clip_norm_": dict(released.limits)}
    if budget is not None:
        # Topics of the first batch, with their noise, replace its expected counts.
        assert found.topics_std is not None
        counts = found.length * found.weights[:, None]
        variance = float(np.mean(np.square(counts * found.topics_std)))
        state["_stream"] = TopicStream(found, counts * found.topics, variance, n_units, budget)
    return Fitted(state, _warnings_of_noise(found, plan, budget is not None), released.notes)


def continue_stream(
    ask: Session,
    stream: TopicStream,
    concentration: float,
    limits: Mapping[str, float],
    word_frequencies: Floats | None,
    n_components: int,
) -> Fitted:
    """Make one step of online EM on a new batch, clipped as the first was: release expected counts
    and update the topics; return the fitted attributes.
    """
    fitted, clip = stream.fitted, Clip(count_norm(ask), limits["counts"])
    noisy = expected_counts(ask, fitted.topics, fitted.weights, concentration, clip)
    squares = limits["counts"] ** (1 if ask.is_pure else 2)
    rate, precisions = _rate(stream, noisy, squares)
    mean = (1 - rate) * stream.mean + rate * noisy.value
    variance = (1 - rate) ** 2 * stream.variance + (rate * noisy.sigma) ** 2
    total = max(float(mean.sum()), 1e-9)
    counts, sigma = mean / total, variance**0.5 / total
    known = fitted.unigram, fitted.unigram_sigma
    fitted = updated(fitted, counts, sigma, *known, word_frequencies)
    # The coherence is that of the first batch's topics, from its pairs.
    fitted = with_deviations(
        replace(fitted, coherence=None, concentration=concentration), counts, sigma,
        Limits(limits["counts"], 1 if ask.is_pure else 2),
    )  # fmt: skip
    stream = replace(stream, fitted=fitted, mean=mean, variance=variance, precisions=precisions)
    told: tuple[Warning, ...] = ()
    if len(fitted.topics) < n_components and noisy.n > stream.n_first:
        told = (
            NotEnoughDataWarning(
                f"No batch adds a topic: the first one, of {stream.n_first:,}, showed "
                f"{len(fitted.topics)} of {n_components}. This one, of {noisy.n:,}, could show "
                "more: a stream that begins with it costs anew."
            ),
        )
    return Fitted({**_attributes(fitted), "clip_norm_": limits, "_stream": stream}, told)


def _rate(stream: TopicStream, noisy: Answer, squares: float) -> tuple[float, tuple[float, float]]:
    """Weight of a batch in the running mean, by its noisy counts; and updated sums of precisions.

    `squares` is the sum of squares that one document's counts are clipped to.
    """
    # Forgetting rate of online EM (Cappe & Moulines, 2009), between 1/2 and 1.
    forgetting = 0.6

    def precision(n: int) -> float:
        """Inverse variance of an expected count, by noise and by sampling `n` documents."""
        sigma = noisy.sigma * noisy.n / n
        return 1 / (sigma**2 + squares / noisy.value.size / n) if sigma > 0 else float(n)

    own, first = precision(noisy.n), precision(stream.n_first)
    total, of_squares = stream.precisions if any(stream.precisions) else (first, first**2)
    # Number of equally precise batches that all earlier ones are worth.
    typical = of_squares / total
    n_batches = total / typical
    kept = typical * ((n_batches + 1) ** forgetting - 1)
    return own / (own + kept), (total + own, of_squares + own**2)


def _attributes(found: FittedTopics) -> dict[str, Any]:
    """Public attributes of fitted topics by name, those of the largest share first."""
    scale = found.concentration if found.concentration > 0 else 1.0
    order = np.argsort(-found.weights, kind="stable")

    def in_order(values: Floats | None) -> Floats | None:
        return None if values is None else values[order]

    return {
        "components_": found.topics[order],
        "components_std_": in_order(found.topics_std),
        "topic_prior_": found.weights[order] * scale,
        "topic_prior_std_": None if found.weights_std is None else found.weights_std[order] * scale,
        "doc_topic_prior_": found.concentration / len(found.topics),
        "coherence_": in_order(found.coherence),
        "spectrum_": found.spectrum,
        "noise_edge_": found.noise_edge,
        "unigram_": found.unigram,
        "n_components_": len(found.topics),
        "_n_features_out": len(found.topics),
    }


def _warnings_of_noise(found: FittedTopics, plan: TopicPlan, begins: bool) -> tuple[Warning, ...]:
    """Warning, if any, that noise or chance hides some of the topics asked for."""
    if found.n_resolved >= plan.n_components:
        return ()
    fitted = f"{len(found.topics)} were fitted"
    if len(found.topics) == 1:
        fitted = "one topic was fitted, the word frequencies"
    elif len(found.topics) > found.n_resolved:
        fitted += ", and topics beyond that number may be noise"
    at, larger, see = " at this epsilon", ", a larger epsilon", ": see forecast()"
    if math.isinf(plan.releases.epsilon):
        at = larger = see = ""
    return (
        NotEnoughDataWarning(
            f"Of {counted(plan.n_components, 'topic')} asked for, the data shows {found.n_resolved}"
            f"{at}; {fitted}. More documents{larger} or fewer n_components would help{see}."
            + " Later batches add no topic: begin a stream with a larger batch."
            * begins
        ),
    )


# In this range products of three numbers of the size of a limit neither overflow nor underflow.
LIMITS = (1e-40, 1e40)
# Tolerance for rows that were normalised in double precision.
ROUNDING = 1e-6


@dataclass(kw_only=True)
class SavedTopics(SavedState):
    """Serialisation schema: attributes of k topics over d words, and the state of a stream."""

    forms = {  # noqa: RUF012
        **SavedState.forms,
        "components_": Numbers("kd+"), "topic_prior_": Numbers("k+"), "unigram_": Numbers("d+"),
        "doc_topic_prior_": Real("+"), "n_components_": Whole("k"),
        "clip_norm_": ByName(Real("+")), "components_std_": Maybe(Numbers("kd+")),
        "topic_prior_std_": Maybe(Numbers("k+")), "coherence_": Maybe(Numbers("k")),
        "spectrum_": Maybe(Numbers("?")), "noise_edge_": Maybe(Real("+")),
        "_stream": Part(
            TopicStream,
            fitted=Part(
                FittedTopics, topics=Numbers("kd+"), weights=Numbers("k+"), unigram=Numbers("d+"),
                unigram_sigma=Real("+"), n_resolved=Whole(), length=Real("+"),
                topics_std=Maybe(Numbers("kd+")),
                weights_std=Maybe(Numbers("k+")), coherence=Maybe(Numbers("k")),
                spectrum=Maybe(Numbers("?")), noise_edge=Maybe(Real("+")),
                concentration=Real("+"), public=Maybe(Numbers("?d+")),
            ),
            mean=Numbers("kd"), variance=Real("+"), n_first=Whole(),
            budget=Items(Real(), 2, tuple), precisions=Items(Real("+"), 2, tuple),
            ticket=Maybe(Plain(str)),
        ),
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
        """Fitted attributes; ModelFileError if topics or limits are not those of a fit."""
        estimator._limits()
        topics, weights = [self.components_], [self.topic_prior_]
        limits, noisy = self.clip_norm_.values(), False
        if (stream := self._stream) is not ABSENT:
            topics.append(stream.fitted.topics)
            weights.append(stream.fitted.weights)
            require(weights[1].max() <= 1 + ROUNDING, "weights must be shares")
            require(stream.n_first > 0, "a stream has batches")
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
