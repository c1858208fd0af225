"""EM steps of topics, each on a release of expected counts."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.clips import Clip
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.spectral_lda import defaults
from sktensor_dp.spectral_lda.clips import count_order
from sktensor_dp.spectral_lda.confirmation import Candidates
from sktensor_dp.spectral_lda.fitted import FittedTopics
from sktensor_dp.spectral_lda.indirect_inference import (
    Concentration,
    Released,
    Step,
    matched_to_counts,
)
from sktensor_dp.spectral_lda.pairs import WhitenedPairs
from sktensor_dp.spectral_lda.plan import TopicOptions, TopicPlan
from sktensor_dp.spectral_lda.sharpening import sharpened
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.concentration import PairsOfTopics
from sktensor_dp.topics.shrinkage import (
    denoise_frequencies,
    denoise_topics,
    shrink_sampled,
    smoothed,
)
from sktensor_dp.topics.start import blurred
from sktensor_dp.topics.uncertainty import std_of_frequencies, std_of_refined

# Mean field steps of a document; without noise, more in the last LAST_STEPS EM steps. At seven
# their bias is below the noise; more in all EM steps would improve the error by 0.0005.
MEAN_FIELD, EXACT_MEAN_FIELD, LAST_STEPS = 7, 13, 2


@dataclass(frozen=True, eq=False)
class StepAverage:
    """Running average of noisy expected counts."""

    scales: Floats | float  # (d,): what counts of each word were divided by
    mean: Floats  # (k, d): of the released counts, divided so
    variance: float  # of its noise
    starts: Floats  # (k, d): the same average of the shares times topics that steps started from
    steps: tuple[Step, ...] = ()

    @property
    def n_steps(self) -> int:
        """Number of releases in the average."""
        return len(self.steps)

    def after(
        self, query: ExpectedCounts, noisy: Answer, fitted: FittedTopics, rate: float
    ) -> "StepAverage":
        """Return the average with the answer of one more `query`, at weight `rate`."""
        start = fitted.weights[:, None] * fitted.topics
        return replace(
            self,
            mean=(1 - rate) * self.mean + rate * noisy.value,
            variance=(1 - rate) ** 2 * self.variance + (rate * noisy.sigma) ** 2,
            starts=(1 - rate) * self.starts + rate * start,
            steps=(*self.steps, Step(query, np.arange(len(start)))),
        )

    def of(self, kept: NDArray[np.bool_]) -> "StepAverage":
        """Return the average of the topics that are `kept`."""
        steps = tuple(Step(query, rows[kept]) for query, rows in self.steps)
        return replace(self, mean=self.mean[kept], starts=self.starts[kept], steps=steps)

    def centres(self) -> Floats:
        """Averaged counts (k, d), over the scales, if each topic used words as all together do."""
        counts = self.scales * self.mean
        # Counts of noise alone may add up to 0; others add up to more than their norm.
        total = max(float(counts.sum()), float(np.linalg.norm(counts)), 1e-300)
        return np.outer(counts.sum(axis=1), counts.sum(axis=0) / total) / self.scales

    def without_echo(self) -> tuple[Floats, float | Floats]:
        """Averaged counts (k, d), less their echo if noisy, and the deviation of their noise."""
        counts: Floats = self.scales * self.mean
        if self.variance == 0:
            return counts, 0.0
        # Of noisy counts the fraction ECHO is taken for a copy of what steps started from.
        echo, rest = defaults.ECHO * float(counts.sum()) * self.starts, 1 - defaults.ECHO
        return (counts - echo) / rest, self.scales * self.variance**0.5 / rest


def release_steps(
    ask: Session, plan: TopicPlan, options: TopicOptions, frequencies: Answer, clip: Clip,
    pairs: WhitenedPairs, start: FittedTopics, *, begins_stream: bool,
) -> FittedTopics:  # fmt: skip
    """Make the planned EM steps from `start`; each releases expected counts.

    `frequencies` are those of words as released, `clip` the limit on counts, of which steps can
    take a part. A single topic, with noise, needs no steps: a fit that asked for one, or begins a
    stream, releases it once at the budget of all steps; other fits give that budget back.
    """
    is_noisy = frequencies.sigma > 0
    # What counts of each word are divided by before clipping; None for nothing.
    scales: Floats | None = None
    if is_noisy and not ask.is_pure:
        scales = scales_of_words(start.unigram)
        if not plan.match_moments:
            limit = defaults.STEP_LIMIT * clip.limit
            if ask.of_persons:
                # Noise may make the length of documents as good as 0.
                limit = min(limit, max(norm_of_average(start, scales), 1e-3 * limit))
            clip = replace(clip, limit=limit)
    # Later batches of a stream are paid by what the first one was charged, as a whole.
    is_final = begins_stream or plan.n_components == 1
    if len(start.topics) == 1 and is_noisy:
        return _fit_one_topic(ask, options, start, clip, scales, frequencies, is_final=is_final)
    zeros = np.zeros_like(start.topics)
    average = StepAverage(1.0 if scales is None else scales, zeros, 0.0, zeros)
    # Topics that start from noisy pairs are tested; others are taken to be there.
    is_tested = is_noisy and plan.triples is None
    candidates = Candidates(min(start.n_resolved, len(zeros)) if is_tested else len(zeros))
    fitted, rng = start, np.random.default_rng(0)
    if is_tested:
        fitted = replace(start, topics=blurred(start.topics, start.weights))
    for step in range(plan.n_refinements):
        concentration = 0.0 if step < plan.n_single else start.concentration
        query = query_of_step(ask, fitted.topics, fitted.weights, concentration, clip, scales)
        noisy = ask(query)
        candidates = candidates.after(query, noisy, fitted, rng)
        # A step weighs at least one in `STEPS`; without noise the last step alone counts.
        rate = max(1 / defaults.STEPS, 1 / (average.n_steps + 1)) if noisy.sigma > 0 else 1.0
        average = average.after(query, noisy, fitted, rate)
        fitted = m_step(
            fitted, *average.without_echo(), frequencies=frequencies.value,
            frequencies_sigma=frequencies.sigma, public_frequencies=options.word_frequencies,
        )  # fmt: skip
    # Topics are left out after the last step, by all steps: the noise of a single step may hide
    # the tokens of a topic that is there, whose words the others would then take.
    kept = beyond_noise_of_tokens(*average.without_echo())
    average, candidates, weights = average.of(kept), candidates.of(kept), fitted.weights[kept]
    fitted = replace(fitted, topics=fitted.topics[kept], weights=weights / weights.sum())
    fitted = _last_estimate(ask, options, pairs, fitted, average)
    return replace(fitted, shown=candidates.shown(average.centres()))


def _last_estimate(
    ask: Session, options: TopicOptions, pairs: WhitenedPairs, fitted: FittedTopics,
    average: StepAverage,
) -> FittedTopics:  # fmt: skip
    """Estimate topics, the concentration and standard deviations from all steps and the pairs."""
    is_noisy = average.variance > 0
    if is_noisy and len(fitted.topics) > 1:
        fitted = sharpened(fitted, average.starts, MEAN_FIELD)
    concentration_by = _concentration_of(ask, options, pairs, fitted)
    unmixed = np.eye(len(fitted.topics))
    fitted = replace(fitted, concentration=concentration_by(fitted.weights, unmixed))
    if is_noisy and len(fitted.topics) > 1:
        released = Released(
            average.steps, average.mean, average.variance, average.scales, ask.n_units,
            ask.of_persons,
        )  # fmt: skip
        fitted = matched_to_counts(fitted, released, concentration_by)
    if not is_noisy:  # sampling is what moves topics
        tokens = ask.n_units * float(average.mean.sum())
        topics = shrink_sampled(fitted.topics, fitted.weights, fitted.unigram, tokens)
        fitted = replace(fitted, topics=smoothed(topics, fitted.unigram))
    return with_deviations(fitted, *average.without_echo())


def _concentration_of(
    ask: Session, options: TopicOptions, pairs: WhitenedPairs, fitted: FittedTopics
) -> Concentration:
    """Function that gives the concentration by which mixtures of the topics explain the pairs.

    Its arguments are shares (k,) and mixtures (k, k) of the fitted topics. Where the concentration
    was given or is 0, or pairs do not tell it, it gives that of `fitted`.
    """
    explained = None
    if options.concentration is None and fitted.concentration > 0:
        released = pairs.for_estimates(fitted.unigram, fitted.length, ask.n_units)
        words = slice(None) if pairs.words is None else pairs.words
        explained = PairsOfTopics.of(fitted.topics[:, words], released)

    def concentration(weights: Floats, mixtures: Floats) -> float:
        found = None if explained is None else explained.concentration(weights, mixtures)
        return fitted.concentration if found is None else found

    return concentration


def beyond_noise_of_tokens(counts: Floats, sigma: float | Floats) -> NDArray[np.bool_]:
    """Mask (k,) of topics that have more tokens than noise gives any of them; one at least."""
    tokens = counts.sum(axis=1)
    noise = float(np.linalg.norm(np.broadcast_to(sigma, counts.shape[1])))
    # The largest of k normal numbers is about (2 log k)^(1/2) deviations.
    most = noise * math.sqrt(2 * math.log(len(tokens)))
    return np.asarray((noise == 0) | (tokens >= min(most, float(tokens.max()))))


def _fit_one_topic(
    ask: Session, options: TopicOptions, start: FittedTopics, clip: Clip, scales: Floats | None,
    frequencies: Answer, *, is_final: bool,
) -> FittedTopics:  # fmt: skip
    """Fit one topic, the word frequencies, by the `frequencies` released before.

    With `is_final` one more release takes all budget that steps have left, and is averaged with the
    first one; else that budget is given back.
    """
    mean: Floats = frequencies.value
    sigma: Floats | float = frequencies.sigma
    if is_final:
        query = query_of_step(ask, start.unigram[None], np.ones(1), 0.0, clip, scales)
        noisy = ask(query, ask.left(ExpectedCounts))
        divisors: Floats | float = 1.0 if scales is None else scales
        total = max(float((divisors * noisy.value[0]).sum()), 1e-9)
        value, own_sigma = divisors * noisy.value[0] / total, divisors * noisy.sigma / total
        # Weigh both releases by their inverse variances.
        weight = sigma**2 / (own_sigma**2 + sigma**2)
        mean, sigma = weight * value + (1 - weight) * mean, weight**0.5 * own_sigma
    else:
        ask.give_back(ExpectedCounts)
    unigram = denoise_frequencies(mean, sigma, expected=options.word_frequencies)
    unigram = unigram / unigram.sum()
    return replace(
        start, topics=smoothed(unigram, unigram)[None], weights=np.ones(1), unigram=unigram,
        topics_std=std_of_frequencies(sigma, (1, unigram.size)),
    )  # fmt: skip


def query_of_step(
    ask: Session, topics: Floats, weights: Floats, concentration: float, clip: Clip,
    scales: Floats | None = None,
) -> ExpectedCounts:  # fmt: skip
    """Query of an EM step's expected counts (k, d), divided by `scales` and clipped."""
    # If a document has only one topic, no iteration is needed.
    single = concentration == 0 or len(topics) == 1
    prior = weights if single else np.full(len(topics), concentration / len(topics))
    near_end = ask.left(ExpectedCounts) <= LAST_STEPS
    n_iter = EXACT_MEAN_FIELD if ask.is_exact and near_end else MEAN_FIELD
    return ExpectedCounts(topics, prior, single, clip.limit, count_order(ask), n_iter, scales)


def m_step(
    fitted: FittedTopics, counts: Floats, sigma: float | Floats, *, frequencies: Floats,
    frequencies_sigma: float, public_frequencies: Floats | None,
) -> FittedTopics:  # fmt: skip
    """Topics, shares and word frequencies that noisy expected counts of an EM step give.

    `frequencies` are another estimate of those of words, with its noise: as released, or of a
    stream so far.
    """
    topics, unigram, weights = denoise_topics(
        counts, sigma, frequencies, frequencies_sigma, expected=public_frequencies
    )
    topics = smoothed(topics, unigram)
    return replace(fitted, topics=topics, weights=weights, unigram=unigram)


def with_deviations(fitted: FittedTopics, counts: Floats, sigma: float | Floats) -> FittedTopics:
    """Add standard deviations of topics, by the noise of their expected counts."""
    std = std_of_refined(counts, sigma, fitted.unigram, fitted.weights, fitted.concentration)
    return replace(fitted, topics_std=std)


def norm_of_average(start: FittedTopics, scales: Floats) -> float:
    """Norm of the expected counts of an average document, divided by `scales`.

    Hardly any person's mean over documents has less, so the limit gives all persons one weight. A
    larger limit would give persons of few documents more, and all more noise.
    """
    starts = blurred(start.topics, start.weights)
    return float(np.linalg.norm(start.length * start.weights[:, None] * starts / scales))


def scales_of_words(unigram: Floats) -> Floats:
    """Scales (d,) that counts are divided by before clipping: rare words get less noise."""
    # Added to each word's frequency, relative to an even share.
    scale_floor = 0.1
    scales = (unigram + scale_floor / unigram.size) ** defaults.SCALE_POWER
    # A token's scaled count has the mean square 1 again, so that the clip can stay the same.
    return scales * float(np.sqrt((unigram / scales**2).sum()))
