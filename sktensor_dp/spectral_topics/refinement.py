"""EM steps of topics, each on a release of expected counts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.spectral_topics.first_steps import better_single_steps, single_steps
from sktensor_dp.spectral_topics.plan import N_GAINS, TopicPlan
from sktensor_dp.spectral_topics.public_start import beside_public, public_alone, public_start
from sktensor_dp.spectral_topics.released import FittedTopics, TopicOptions
from sktensor_dp.spectral_topics.told import ECHO, Told
from sktensor_dp.statistics.completion_gains import TopicGain
from sktensor_dp.statistics.norms import Clip, CountNorm
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.concentration import USUAL, PairEvidence, in_steps
from sktensor_dp.topics.denoise import denoise_frequencies, denoise_topics
from sktensor_dp.topics.rehearsal import Limits, Steps
from sktensor_dp.topics.uncertainty import std_of_frequencies, std_of_refined, typical_length

# Of the word frequencies in topics, so that no word is ruled out.
MIX_FINAL = 1e-4
# Documents of fewer tokens on average are taken to have one topic each while noise is added: titles
# complete 1 to 5 % better. Drawn with a concentration of 1 they lose 3 % at most, of .1 gain 5 %.
SHORT = 10.0
# Topics among which short documents mix as is usual, without noise: it grows with their root.
USUAL_TOPICS = 10
# Nats of a document that this has to gain: documents complete themselves better by topics that were
# fitted to them as if they had one each. Drawn as mixtures they gain up to .023, texts .07 to .15.
LEAST_GAIN = 0.04
# It is asked after so many mixed steps, which are lost if documents have one topic each. After two
# the answer is another one, after three that of five.
SURE_MIXED = 3
# A topic weighs at least such a part of all.
LEAST_MASS = 1e-9
# Within this factor of the usual concentration it is not asked: half-way to it gains less.
NEAR_USUAL = 1.2
# Without noise, mixed steps gather momentum, as Nesterov's method does: step i goes farther than it
# leads by i / (i + this) of the way from the topics of the step before.
MOMENTUM = 3
# A probability changes by at most this factor before it is moved on.
LARGEST_FACTOR = 20.0
# Memory of the running mean of expected counts: each step counts at least this, so that those of
# a usual number of steps count alike. They hold the last one back less than their noise would.
LEAST_STEP = 1 / 6
# Of the concentration that is estimated, steps with noise assume such a part: noise blurs topics,
# and documents read by blurred ones look more evenly mixed than they are. Longer texts do not mind.
SHARPER = 0.3
# By how many deviations of its noise the gain of the first topics has to be above 0, before the
# rest of the budget goes to topics.
MARGIN = 2.0
# Such a part of the EM steps is made before it is asked. Topics that steps begin with say little of
# where these lead: of six tokens, and of summaries, they were 20 % worse than words, and 3 % better
# in the end. What steps tell of words is not lost where words take the rest.
SURE_PART = 1 / 3
# The other concentration that is tried: hardly any word of a short document then decides on all
# the others, so that weak topics do no harm.
WIDE = 8.0
# Expected counts of a word are divided by this power of its frequency, a tenth of an even share
# at least, before documents are limited: rare words get less of the noise. Noise against counts
# is best at 1 / 2, and what is not lost in it at 0, where it is large.
SCALE_POWER, SCALE_FLOOR = 0.25, 0.1
# Expected counts are limited to such a part of what counts are: shared among topics, they are
# shorter, and a limit for counts would add noise for documents that there are none of.
STEP_LIMIT = 0.5


class Refinement:
    """EM steps on released expected counts, shrunk towards the unigram."""

    def __init__(
        self,
        curator: DocumentCurator,
        plan: TopicPlan,
        options: TopicOptions,
        frequencies: Noisy,
        count_clip: Clip,
        evidence: PairEvidence,
        length: float,
    ) -> None:
        self._curator, self._plan, self._options = curator, plan, options
        self._frequencies, self._clip, self._evidence = frequencies, count_clip, evidence
        self._step_clip = count_clip
        # Tokens that documents have on average, of what is counted of them.
        self._length = length
        self._scales: Floats | None = None
        self._n_left = N_GAINS  # questions what topics gain

    def run(self, start: FittedTopics) -> FittedTopics:
        """Make the steps of the plan, each of which is a release."""
        asks_gains, n_single = self._plan.asks_gains, self._plan.n_single
        assert isinstance(self._clip.norm, CountNorm)
        if self._frequencies.sigma > 0 and self._clip.norm.order == 2:
            self._scales = scales_of_words(start.unigram)
            if asks_gains:
                self._step_clip = replace(self._clip, limit=STEP_LIMIT * self._clip.limit)
        public = self._public_start(start) if self._plan.asks_public else None
        if public is not None and not asks_gains:
            start = self._public_or(public, start)
        elif public is not None:
            start = beside_public(start, public)
        if asks_gains and public is not None and not self._pays(start):
            gain = self._gains(public)()
            # Noise is no reason to do without what is known from elsewhere.
            if gain.value[0] < -MARGIN * gain.sigma:
                return self._words_alone(start, self._nothing_told(start))
            return self._or_public_alone(self._steps(public), public)
        n_sure = None
        if asks_gains:
            n_sure = None if public is not None else int(self._plan.n_refinements * SURE_PART)
            if self._is_short:
                start, n_single = replace(start, concentration=0.0), self._plan.n_refinements
        fitted = self._steps(start, n_single, n_sure)
        if asks_gains:
            fitted = self._better(fitted)
        if n_single and not asks_gains and not self._is_short:
            fitted = self._or_nearer_usual(fitted)
        if public is not None and (asks_gains or fitted.public is not None):
            fitted = self._or_public_alone(fitted, public)
        return fitted

    def _pays(self, fitted: FittedTopics) -> bool:
        """Whether topics gain something over word frequencies, as far as noise lets it be seen."""
        ask = self._gains(fitted)
        gain = ask()
        self._n_left -= 1
        if gain.value[0] >= MARGIN * gain.sigma:
            return True
        # What would be asked after the EM steps is asked at once.
        again = [ask() for _ in range(self._n_left)]
        self._n_left = 0
        mean = np.mean([asked.value[0] for asked in (gain, *again)])
        return bool(mean >= MARGIN * gain.sigma / N_GAINS**0.5)

    @property
    def _is_short(self) -> bool:
        """Whether released counts say that documents hold too few tokens to see mixtures."""
        return self._options.concentration is None and self._length < SHORT

    def _public_start(self, start: FittedTopics) -> FittedTopics:
        given = self._options.public_topics
        assert given is not None
        return public_start(start, given, self._plan.n_components)

    def _public_or(self, public: FittedTopics, start: FittedTopics) -> FittedTopics:
        """Begin with public topics, unless those learnt clearly complete documents better."""
        gain = self._over(public, start)
        return public if gain.value[0] > -gain.sigma else start

    def _or_public_alone(self, fitted: FittedTopics, public: FittedTopics) -> FittedTopics:
        """Public topics as they are given, where those fitted are clearly worse."""
        assert public.public is not None
        known = fitted
        if fitted.public is None:
            known = replace(fitted, weights=public.weights, public=public.public)
        alone = public_alone(known, public.public)
        gain = self._over(fitted, alone)
        return alone if gain.value[0] < -gain.sigma else fitted

    def _steps(
        self, start: FittedTopics, n_single: int = 0, n_sure: int | None = None
    ) -> FittedTopics:
        """Steps of which the first ones take each document to have one topic.

        After some, which are made in any case, words may take what is left of the budget.
        """
        fitted, n_first = start, 0
        if n_single and self._frequencies.sigma == 0:
            start, fitted = self._first_steps(start, n_single)
            n_first = n_single + (self._plan.n_compared > 0)
        n_steps, n_asked = self._plan.n_refinements, 0
        if 0 < n_single < n_steps and self._is_short:
            n_asked = n_steps
            if self._plan.n_if_short is not None:
                n_steps, n_asked = min(n_steps, self._plan.n_if_short), n_single + SURE_MIXED
        # What moments say is far from what is likely where they do not fit.
        n_whole = n_steps // 2 if self._plan.may_misfit else 0
        frequencies, before = self._frequencies, fitted.topics
        told = self._nothing_told(start)
        # Topics of documents that had one each look as if they still had, and those fitted to
        # documents for long as if these were mixed more evenly than they are, so that the
        # estimate would grow from step to step: what is usual is assumed up to the last one.
        n_usual = n_single and max(n_steps - 1, n_single)
        for step in range(n_first, n_steps):
            if step == n_sure and not self._pays(fitted):
                return self._words_alone(start, told)
            single = step < n_single
            noisy = self._counts(replace(fitted, concentration=0.0) if single else fitted)
            # The mean over steps lowers the noise while topics still move; where they have far
            # to go, it would hold them back.
            rate = max(LEAST_STEP, 1 / (max(step - n_whole, 0) + 1))
            told = told.after(noisy, fitted, 1.0 if noisy.sigma == 0 else rate)
            counts, sigma = told.without_echo()
            topics, unigram, weights = denoise_topics(
                counts, sigma, frequencies.value, frequencies.sigma,
                expected=self._options.word_frequencies, public=start.public,
            )  # fmt: skip
            topics = smoothed(topics, unigram, MIX_FINAL)
            concentration = fitted.concentration
            if self._options.concentration is None and step >= n_usual:
                concentration = self._evidence.concentration(topics, weights)
            fitted = replace(
                start, topics=topics, weights=weights, unigram=unigram, concentration=concentration
            )
            if step == n_asked - 1 and (better := self._single_if_better(start, fitted)):
                return self._with_deviations(better, start, told)
            if noisy.sigma == 0 and n_single <= step < n_steps - 1 and n_single:
                part = (step - n_single) / (step - n_single + MOMENTUM)
                fitted = replace(fitted, topics=_moved_on(topics, before, part))
            before = topics
        return self._with_deviations(fitted, start, told)

    def _first_steps(self, start: FittedTopics, n_steps: int) -> tuple[FittedTopics, FittedTopics]:
        """Topics after steps without noise that take each document to have one topic.

        Beside them, what the first step of mixtures makes of them, if that was asked for.
        """
        if self._plan.n_compared == 0:
            fitted = single_steps(start, n_steps, self._after)
            return fitted, fitted
        return better_single_steps(
            start, n_steps, self._after,
            lambda fitted, other: float(self._over(fitted, other).value[0]),
            check_random_state(self._options.random_state),
        )  # fmt: skip

    def _after(self, fitted: FittedTopics) -> FittedTopics:
        """The same after a step without noise.

        Small topics stay as small as they are, which `denoise_topics` does not let them: which of
        twice as many are put together is decided by how much they weigh.
        """
        counts = self._counts(fitted).value
        least = max(LEAST_MASS * float(counts.sum()), 1e-300)
        weights = np.maximum(counts.sum(axis=1), least)
        # One that no document uses is as good as the word frequencies.
        topics = smoothed(counts / weights[:, None], fitted.unigram, MIX_FINAL)
        topics /= topics.sum(axis=1, keepdims=True)
        return replace(fitted, topics=topics, weights=weights / weights.sum())

    def _with_deviations(
        self, fitted: FittedTopics, start: FittedTopics, told: Told
    ) -> FittedTopics:
        """The same topics with what their noise leaves open."""
        assert isinstance(self._clip.norm, CountNorm)
        topics, weights = fitted.topics, fitted.weights
        length = typical_length(self._clip.limit, topics, weights, self._clip.norm.order)
        limits = Limits(self._step_clip.limit, self._clip.norm.order, scales=self._scales)
        steps = Steps(
            start.topics, told.rates, fitted.concentration, length, limits,
            assumed=self._in_steps(fitted.concentration), echo=ECHO,
            by_pairs=self._plan.triples is None,
        )  # fmt: skip
        std = std_of_refined(*told.without_echo(), fitted.unigram, weights, steps, start.public)
        return replace(fitted, topics_std=std[0], weights_std=std[1])

    def _nothing_told(self, start: FittedTopics) -> Told:
        scales, none = self._scales, np.zeros_like(start.topics)
        return Told(1.0 if scales is None else scales, none, 0.0, none, ())

    def _words_alone(self, start: FittedTopics, told: Told) -> FittedTopics:
        """One topic: the word frequencies, on which all that is left of the budget is spent."""
        fitted = replace(start, topics=start.unigram[None], weights=np.ones(1), public=None)
        ask = self._curator.repeated_counts(start.unigram, self._clip, self._scales)
        steps = [ask() for _ in range(self._plan.n_refinements - len(told.rates))]
        value = told.scales * np.mean([noisy.value[0] for noisy in steps], axis=0)
        sigma = told.scales * np.sqrt(np.mean([noisy.sigma**2 for noisy in steps]) / len(steps))
        total = max(float(value.sum()), 1e-9)
        value, sigma, first = value / total, sigma / total, self._frequencies
        if told.rates:
            # Inverse variances weigh what steps of topics told of the same words.
            seen, seen_sigma = told.words()
            own = seen_sigma**2 / (sigma**2 + seen_sigma**2)
            value, sigma = own * value + (1 - own) * seen, own**0.5 * sigma
        own = first.sigma**2 / (sigma**2 + first.sigma**2)
        unigram = denoise_frequencies(
            own * value + (1 - own) * first.value, own**0.5 * sigma,
            expected=self._options.word_frequencies,
        )  # fmt: skip
        unigram = smoothed(unigram / unigram.sum(), unigram / unigram.sum(), MIX_FINAL)
        std = std_of_frequencies(own**0.5 * sigma, (1, unigram.size))
        return replace(
            fitted, topics=unigram[None], unigram=unigram, topics_std=std, weights_std=np.zeros(1)
        )

    def _better(self, fitted: FittedTopics) -> FittedTopics:
        """The same at the concentration that completes documents best; words, if none does."""
        if self._n_left == 0:
            return fitted
        # What is known from elsewhere stays in doubt.
        doubts = fitted.public is not None
        others = [] if self._options.concentration is not None else [USUAL, WIDE]
        for concentration in others:
            other = replace(fitted, concentration=concentration)
            # Of the same words: few documents differ by more than what one may count for.
            gain = self._over(other, fitted)
            if gain.value[0] > doubts * gain.sigma:
                fitted = other
        ask = self._gains(fitted)
        asked = [ask() for _ in range(self._n_left - len(others))]
        gained = np.mean([float(gain.value[0]) for gain in asked])
        doubt = doubts * asked[0].sigma / len(asked) ** 0.5
        if gained < -doubt:
            unigram = fitted.weights @ fitted.topics
            std = std_of_frequencies(fitted.unigram_sigma, (1, unigram.size))
            return replace(
                fitted, topics=unigram[None], weights=np.ones(1), topics_std=std,
                weights_std=np.zeros(1), public=None,
            )  # fmt: skip
        return fitted

    def _single_if_better(self, single: FittedTopics, mixed: FittedTopics) -> FittedTopics | None:
        """Topics of the steps that took documents to have one topic, if they say more of them."""
        estimated = self._evidence.concentration(mixed.topics, mixed.weights)
        # Documents were read for these topics, and seem to mix fewer of them than others do.
        single = replace(single, concentration=USUAL * (len(single.weights) / USUAL_TOPICS) ** 0.5)
        gain = self._over(single, replace(mixed, concentration=estimated))
        return single if gain.value[0] > LEAST_GAIN else None

    def _or_nearer_usual(self, fitted: FittedTopics) -> FittedTopics:
        """The same at a concentration half-way to the usual one, if it completes documents better.

        Moments of many topics take topics that were fitted to documents for too far apart, and
        documents for more evenly mixed than they are.
        """
        if self._options.concentration is not None or not fitted.concentration:
            return fitted
        if 1 / NEAR_USUAL < fitted.concentration / USUAL < NEAR_USUAL:
            return fitted
        other = replace(fitted, concentration=(fitted.concentration * USUAL) ** 0.5)
        return other if self._over(other, fitted).value[0] > LEAST_GAIN else fitted

    def _over(self, fitted: FittedTopics, other: FittedTopics) -> Noisy:
        """What topics gain over others."""
        against = TopicGain(other.topics, other.weights, other.concentration)
        return self._curator.completion_gain(
            fitted.topics, fitted.weights, fitted.concentration, against
        )

    def _gains(self, fitted: FittedTopics) -> Callable[[], Noisy]:
        """What topics gain over the word frequencies, as often as it is called."""
        return self._curator.repeated_gains(fitted.topics, fitted.weights, fitted.concentration)

    def _counts(self, fitted: FittedTopics) -> Noisy:
        return expected_counts(
            self._curator, fitted.topics, fitted.weights, self._in_steps(fitted.concentration),
            self._step_clip, self._scales,
        )  # fmt: skip

    def _in_steps(self, concentration: float) -> float:
        """What steps assume; whoever gives a prior means it."""
        given = self._options.concentration is not None
        if given:
            return concentration
        blurred = self._step_clip is not self._clip
        return in_steps((SHARPER if blurred else 1.0) * concentration, self._length)


def expected_counts(
    curator: DocumentCurator,
    topics: Floats,
    weights: Floats,
    concentration: float,
    clip: Any,
    scales: Floats | None = None,
) -> Noisy:
    """Ask for the expected counts of an EM step, under an even Dirichlet prior or one topic."""
    # All of a document is of the one topic there is: nothing has to be iterated.
    if concentration == 0 or len(topics) == 1:
        return curator.expected_counts(topics, weights, True, clip, scales)
    prior = np.full(len(topics), concentration / len(topics))
    return curator.expected_counts(topics, prior, False, clip, scales)


def _moved_on(topics: Floats, origin: Floats, part: float) -> Floats:
    """Topics beyond where they came to, by this part of their way, in logarithms."""
    factors = np.clip(topics / origin, 1 / LARGEST_FACTOR, LARGEST_FACTOR)
    moved = topics * factors**part
    return moved / moved.sum(axis=1, keepdims=True)


def scales_of_words(unigram: Floats) -> Floats:
    """What expected counts of words are divided by, from their released frequencies."""
    scales = (unigram + SCALE_FLOOR / unigram.size) ** SCALE_POWER
    # Counts of such words are as long as before, on average: the limit may stay.
    return scales * float(np.sqrt((unigram / scales**2).sum()))


def smoothed(topics: Floats, unigram: Floats, share: float) -> Floats:
    """Mix topics with the unigram, itself mixed with a hundredth of the uniform."""
    background = 0.99 * unigram + 0.01 / unigram.size
    return (1 - share) * topics + share * background
