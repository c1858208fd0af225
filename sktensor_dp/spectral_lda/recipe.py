"""The recipe of a topic model: questions to the session, and computations on the answers.

1. Limits and word frequencies. 2. Pair moments of all or the most frequent words. 3. By
`plan.triples`: triple moments, decomposed in the space that the pairs whiten; by
`plan.match_moments` topics and the concentration are then fitted to all moments jointly. 4.
Without triples: topics start from the rotated eigenvectors of the pairs, the pairs tell the
concentration, and topics are brought in line with all pairs. 5. `plan.n_refinements` EM steps on
fresh releases.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sktensor_dp.estimator.base import FitResult
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.clips import Clip, TripleNorm, WhitenedTripleNorm
from sktensor_dp.queries.count_moments import (
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.queries.query import Query
from sktensor_dp.spectral_lda import defaults
from sktensor_dp.spectral_lda.clips import DIAGONAL_WEIGHT, Clips
from sktensor_dp.spectral_lda.fitted import (
    FittedTopics,
    attributes_of,
    warnings_of_more,
    warnings_of_noise,
)
from sktensor_dp.spectral_lda.pairs import (
    Moment,
    ReleasedPairs,
    WhitenedPairs,
    coherence_of,
    corrected_pairs,
    product_of,
)
from sktensor_dp.spectral_lda.plan import TopicOptions, TopicPlan
from sktensor_dp.spectral_lda.refinement import release_steps
from sktensor_dp.spectral_lda.stream import TopicStream
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.eigenpairs import top_eigenpairs
from sktensor_dp.tensor.power_method import orthogonal_decomposition
from sktensor_dp.tensor.symmetric import multilinear
from sktensor_dp.tensor.whitening import (
    FramedWhitener,
    NoisyWhitener,
    n_eigenvalues_above,
    noisy_whitener,
)
from sktensor_dp.topics.concentration import (
    LEAST_CONCENTRATION,
    USUAL,
    concentration_of_pairs,
    has_one_topic,
)
from sktensor_dp.topics.moments import (
    PriorCorrection,
    ReleasedMoments,
    match_with_concentration,
    mean_square_of_pairs,
    topics_from_components,
)
from sktensor_dp.topics.noise_edge import PairErrors, sampling_of_pairs
from sktensor_dp.topics.shrinkage import denoise_frequencies, smoothed
from sktensor_dp.topics.start import topics_of_pairs, varimax
from sktensor_dp.topics.uncertainty import (
    mixing_of_matched,
    std_of_decomposed,
    std_of_frequencies,
    std_of_matched,
)

# Least released frequency, relative to an even share, in a joint fit of moments.
LEAST_FREQUENCY = 0.01
# Largest number of products with blocks of vectors in the search for eigenvectors; the second where
# each product reads all documents.
MANY_PRODUCTS, FEW_PRODUCTS = 60, 16
# Tolerance of the search for eigenvectors.
EIGEN_TOL = 1e-5

# Rows of a whitener shorter than this fraction of the longest are rounding errors.
LEAST_ROW = 1e-12

# Notes of a report on the concentration that was taken, and on short documents.
ASSUMED = (
    "The concentration of topics in documents was assumed to be {:g}: what was released does not "
    "tell."
)
SHORT = (
    "Documents are short, so each was taken to have one topic: where they mix topics, own words of "
    "a topic are likelier than said, mostly beyond their intervals; intervals of shares by group "
    "allow for that."
)


def fit_topics(
    ask: Session, plan: TopicPlan, options: TopicOptions, *, begins_stream: bool
) -> FitResult:
    """Make the planned releases and fit topics.

    Where it `begins_stream` the result has the state for later batches, at the same budget.
    """
    clips = Clips(ask, plan.limits)
    recipe = _SpectralFit(ask, clips, plan, options)
    topics = recipe.fit(begins_stream=begins_stream)
    attributes, hidden = attributes_of(topics, plan.n_components)
    attributes["clip_norm_"] = clips.limits
    if begins_stream:
        budget = plan.releases.epsilon, plan.releases.delta
        stream = TopicStream.of_first_batch(topics, ask.n_units, budget, ask.ticket)
        attributes["_stream"] = stream
    warned = warnings_of_noise(
        topics, hidden, plan, begins_stream=begins_stream,
        has_frequencies=options.word_frequencies is not None,
    )  # fmt: skip
    more = warnings_of_more(topics.n_resolved, plan.n_components)
    notes = [str(one) for one in more]
    if recipe.takes_one_topic_each and len(topics.topics) > 1:
        notes.insert(0, SHORT)
    elif recipe.assumes_concentration:
        notes.insert(0, ASSUMED.format(topics.concentration))
    return FitResult(attributes, (*warned, *more), tuple(notes))


class _Decomposition(NamedTuple):
    """Topics found in a third moment, and how."""

    topics: Floats
    weights: Floats
    white: FramedWhitener  # of moments in the basis of the release
    vectors: Floats  # eigenvectors of the whitened moment, as rows


class _SpectralFit:
    """One fit of topics: releases by the session, each followed by post-processing."""

    assumes_concentration = False  # True where no release tells it
    takes_one_topic_each = False  # True where documents are too short to show more

    def __init__(self, ask: Session, clips: Clips, plan: TopicPlan, options: TopicOptions) -> None:
        self._ask, self._clips = ask, clips
        self._plan, self._options = plan, options
        self._random_state = check_random_state(options.random_state)
        # Word frequencies as released, with noise; denoised; and the mean number of tokens.
        self._frequencies: Answer
        self._unigram: Floats
        self._length: float

    def fit(self, *, begins_stream: bool) -> FittedTopics:
        """Make the releases and return the topics that they give."""
        plan, options = self._plan, self._options
        count_clip = self._clips.release_for_counts(plan.clip_quantile)
        query = WordFrequencies(count_clip)
        if plan.all_words:  # both clips apply to both moments: a document has one weight
            pair_clip = self._release_pair_clip(words=None, count_clip=count_clip)
            query = WordFrequencies(count_clip, (pair_clip,), plan.least_tokens)
        noisy = self._ask(query)
        self._length = max(float(noisy.value.sum()), 1e-9)  # noise may make the sum negative
        self._frequencies = noisy.over(self._length)
        self._unigram = _normalised(denoise_frequencies(
            self._frequencies.value, self._frequencies.sigma, expected=options.word_frequencies
        ))  # fmt: skip
        if plan.all_words:
            pairs = self._release_pairs(words=None, pair_clip=pair_clip, count_clip=count_clip)
        else:
            words = np.sort(np.argsort(-self._unigram, kind="stable")[: plan.n_words])
            pair_clip = self._release_pair_clip(words, count_clip)
            pairs = self._release_pairs(words, pair_clip, count_clip=None)
        if plan.triples is None:
            fitted = self._fit_by_pairs(pairs)
        elif plan.match_moments:
            fitted = self._fit_by_all_moments(pairs)
        else:
            fitted = self._fit_by_third_moment(pairs)
        if plan.n_refinements > 0:
            by_moments = fitted.concentration
            fitted = release_steps(
                self._ask, plan, options, self._frequencies, count_clip, pairs, fitted,
                begins_stream=begins_stream,
            )  # fmt: skip
            # Steps may have found the concentration that pairs did not tell.
            self.assumes_concentration &= fitted.concentration == by_moments
        return replace(fitted, coherence=coherence_of(pairs, fitted.topics))

    def _release_pair_clip(self, words: NDArray[np.intp] | None, count_clip: Clip) -> Clip:
        """Release a clip on units' pairs; with pure noise, the clip on counts serves."""
        if self._ask.is_pure:
            return count_clip
        return self._clips.release_for_pairs(self._plan.clip_quantile, words)

    def _release_pairs(
        self, words: NDArray[np.intp] | None, pair_clip: Clip, count_clip: Clip | None
    ) -> WhitenedPairs:
        """Release pair moments of `words`, or all, corrected and whitened above their noise."""
        other_clips = () if count_clip is None else (count_clip,)
        query = PairMoments(pair_clip, DIAGONAL_WEIGHT, other_clips, words, self._plan.least_tokens)
        answer = None if self._plan.multiplies_pairs else self._ask(query)
        product = self._ask.exact_product(query) if answer is None else answer.value.__matmul__
        frequencies, sigma, total = self._frequencies_and_total(words, product)
        if answer is None:
            released = ReleasedPairs(
                matrix=None, product=lambda V: product(V) / total, sigma=0.0, diagonal_sigma=0.0
            )
        else:
            E2 = answer.over(total)
            # Noise is of masses: twice the entry for two words, DIAGONAL_WEIGHT times it for a
            # word with itself.
            released = ReleasedPairs(
                E2.value, E2.value.__matmul__, E2.sigma / 2, E2.sigma / DIAGONAL_WEIGHT
            )
        given = self._options.concentration
        correction = PriorCorrection(USUAL if given is None else given, frequencies, sigma)
        corrected = corrected_pairs(released, correction)
        white = self._whitener(released, corrected, correction)
        return WhitenedPairs(
            words=words, pair_clip=pair_clip, count_clip=count_clip, total=total,
            correction=correction, released=released, corrected=corrected, white=white,
        )  # fmt: skip

    def _frequencies_and_total(
        self, words: NDArray[np.intp] | None, product: Callable[[Floats], Floats]
    ) -> tuple[Floats, float, float]:
        """Frequencies of words, their sigma, and the `total` that divides released pairs to E2."""
        if words is None:
            return self._frequencies.value, self._frequencies.sigma, self._length
        frequencies = self._unigram[words]  # denoised: no noise variance to subtract
        # In these pairs documents have other weights. Entries of E2 sum to the square of the
        # fraction of tokens that are these words.
        sum_of_pairs = float(product(np.ones((len(words), 1))).sum())
        total = max(sum_of_pairs, 1e-12) / float(frequencies.sum()) ** 2  # noise may be negative
        return frequencies, 0.0, total

    def _whitener(
        self, released: ReleasedPairs, corrected: Moment, correction: PriorCorrection
    ) -> NoisyWhitener:
        """Whitener of the `corrected` second moment, by the errors of noise and sampling."""
        n_words, ask = len(correction.frequencies), self._ask
        errors = PairErrors(
            released.sigma, released.diagonal_sigma,
            sampling_of_pairs(self._length, ask.n_units, n_words), correction.frequencies,
            pure=ask.is_pure,
        )  # fmt: skip
        n_asked = min(self._plan.n_components, n_words)
        search: dict[str, Any] = {
            "dim": n_words, "tol": EIGEN_TOL, "random_state": self._random_state,
            "n_iter": FEW_PRODUCTS if self._plan.multiplies_pairs else MANY_PRODUCTS,
        }  # fmt: skip
        # Largest eigenvalue of M2 that noise and sampling give: expected, and at most.
        edge, most_by_chance = map(correction.edge, errors.edges())
        # Eigenvalues up to the edge may be of topics that noise hides: if two or more stand out,
        # the whitener also keeps those above `hidden_above`. A joint fit finds out how many topics
        # there are, so it keeps all.
        hidden_above = -math.inf if self._plan.match_moments else edge
        if self._plan.triples is None:  # EM steps confirm topics: keep what sampling cannot explain
            by_sampling = replace(errors, sigma=0.0, diagonal_sigma=0.0).edges()
            hidden_above = correction.edge(by_sampling.expected)
        white = noisy_whitener(
            corrected, n_asked, edge=edge, most_by_chance=most_by_chance, hidden_above=hidden_above,
            **search,
        )  # fmt: skip
        if white.n_resolved >= n_asked:  # further topics are counted only by a matrix of pairs
            n_seen = n_asked if callable(corrected) else self._n_seen(corrected, correction, errors)
            return replace(white, n_resolved=n_seen)
        return self._with_topics_of_rare_words(white, corrected, correction, errors, search)

    def _with_topics_of_rare_words(
        self, white: NoisyWhitener, corrected: Moment, correction: PriorCorrection,
        errors: PairErrors, search: Mapping[str, Any],
    ) -> NoisyWhitener:  # fmt: skip
        """Whitener with more topics where words weighted to have equal errors show more."""
        # Where sampling exceeds noise, errors of frequent words hide topics of rare ones.
        weights, weighted_most = errors.weighted_edge(self._ask.n_units)

        def weighted(V: Floats) -> Floats:
            """Product of the weighted second moment with `V`."""
            return weights[:, None] * product_of(corrected, weights[:, None] * V)

        n_asked = min(self._plan.n_components, len(weights))
        values, _ = top_eigenpairs(weighted, n_asked, **search)
        n_weighted = int((values > correction.edge(weighted_most, weights)).sum())
        # One eigenvalue is always above chance: that of the word frequencies.
        if n_weighted <= max(white.n_resolved, 1):
            return white
        # Weighted words tell how many topics there are; the whitener is of words as they are.
        n_kept = max(n_weighted, white.n_components)
        white = noisy_whitener(corrected, n_kept, edge=0.0, **search)
        return replace(white, n_resolved=min(n_weighted, white.n_resolved))

    def _n_seen(self, corrected: Floats, correction: PriorCorrection, errors: PairErrors) -> int:
        """Number of topics that stand out of noise and sampling; at least as many as asked for."""
        n_asked = min(self._plan.n_components, len(corrected))

        def n_above(most: float, weights: Floats) -> int:
            """Number of eigenvalues of weighted M2 above its errors, those of E2 being `most`."""
            edge = correction.edge(most, weights)
            return n_eigenvalues_above(weights[:, None] * corrected * weights, edge)

        def n_seen_beside(n_topics: int) -> int:
            """Number of topics seen, words weighted or not, in the noise that `n_topics` leave."""
            weights, weighted_most = errors.weighted_edge(self._ask.n_units, n_topics)
            unweighted, most = np.ones_like(weights), errors.edges(n_topics).most
            return max(n_asked, n_above(most, unweighted), n_above(weighted_most, weights))

        # The last topic seen has to stand out of the noise beside all others: where these are more
        # than asked for, count again.
        n_seen = n_seen_beside(n_asked)
        return n_seen_beside(n_seen - 1) if n_seen - 1 > n_asked else n_seen

    def _fit_by_pairs(self, pairs: WhitenedPairs) -> FittedTopics:
        """Rotate the eigenvectors of the pairs, find the concentration, and fit to all pairs."""
        topics, weights = varimax_topics(pairs.white)
        concentration = self._concentration(topics, weights, pairs)
        if self._options.concentration is None:
            one_each = has_one_topic(concentration, self._length, self._plan.n_components)
            self.takes_one_topic_each = one_each
            concentration = 0.0 if one_each else max(concentration, LEAST_CONCENTRATION)
        pairs = pairs.with_concentration(concentration)
        topics = topics_of_pairs(
            topics, weights, pairs.corrected_product, pairs.of_words(self._unigram),
            pairs.released.sigma * pairs.correction.pair_scale,
        )  # fmt: skip
        return self._on_all_words(pairs, topics, weights, concentration)

    def _concentration(self, topics: Floats, weights: Floats, pairs: WhitenedPairs) -> float:
        """Concentration given, or estimated from the pairs; else `USUAL` is assumed."""
        if self._options.concentration is not None:
            return self._options.concentration
        estimate = None
        # Without a matrix of pairs there is no estimate; fits with EM steps always have one.
        if pairs.released.matrix is not None:
            released = pairs.for_estimates(self._unigram, self._length, self._ask.n_units)
            estimate = concentration_of_pairs(topics, weights, released)
        self.assumes_concentration = estimate is None
        return USUAL if estimate is None else estimate

    def _fit_by_third_moment(self, pairs: WhitenedPairs) -> FittedTopics:
        """Release the third moment, and decompose it in the whitened space."""
        concentration = self._concentration(*varimax_topics(pairs.white), pairs)
        # Pairs were whitened at the usual concentration: whiten them anew at the one estimated.
        if self._options.concentration is None and pairs.released.matrix is not None:
            pairs = pairs.with_concentration(concentration)
            found = self._whitener(pairs.released, pairs.corrected, pairs.correction)
            pairs = replace(pairs, white=found)
        basis, triples = self._release_triples(pairs)
        topics, weights, white, vectors = self._decomposition(basis, triples, pairs)
        # Factor by which the transform of all three modes enlarges the deviation of noise, finite.
        growth = min(float(np.mean(np.linalg.norm(white.transform, axis=0) ** 2)), 1e60) ** 1.5
        std = std_of_decomposed(
            white.unwhiten(vectors), vectors @ white.matrix.T, weights,
            pairs.released.sigma * pairs.correction.pair_scale,
            triples.sigma * pairs.correction.triple_scale * growth,
        )  # fmt: skip
        return self._on_all_words(pairs, topics, weights, concentration, std)

    def _release_triples(self, pairs: WhitenedPairs) -> tuple[Floats, Answer]:
        """Return a basis (n_words, k) made of released values, and the third moment released in it.

        The moment is divided by `pairs.total`, as E2 is.
        """
        quantile, words = 1 - defaults.CLIPPED, pairs.words
        query: Query
        if self._plan.triples == "triple_moments":
            basis = pairs.white.basis
            if self._ask.is_pure:  # this clip is on counts, and bounds triples too
                clip = pairs.pair_clip
            else:
                clip = self._clips.release_for_triples(quantile, TripleNorm())
            query = TripleMoments(basis, clip, pairs.clips, words)
        else:
            norms = np.linalg.norm(pairs.white.matrix, axis=1)
            norms = np.maximum(norms, LEAST_ROW * float(norms.max()))
            # The largest contribution of a document is least with rows of equal length.
            basis = pairs.white.matrix / norms[:, None]
            norm = WhitenedTripleNorm(basis, words)
            clip = self._clips.release_for_triples(quantile, norm, pairs.clips)
            query = WhitenedTripleMoments(basis, clip, pairs.clips, words)
        return basis, self._ask(query).over(pairs.total)

    def _decomposition(
        self, basis: Floats, triples: Answer, pairs: WhitenedPairs
    ) -> _Decomposition:
        """Decompose the third moment that was released in a `basis`."""
        E2_in_basis = basis.T @ pairs.released.product(basis)
        M3 = pairs.correction.triples(triples.value, E2_in_basis, basis)
        white, k = pairs.white.in_frame(basis), pairs.white.n_components
        eigenvalues, vectors = orthogonal_decomposition(
            multilinear(M3, white.transform), k, random_state=self._random_state
        )
        # The eigenvalue of a topic of share w is w^(-1/2), so at least 1.
        weights = np.maximum(eigenvalues, 1.0) ** -2.0
        topics = topics_from_components(white.unwhiten(vectors))
        return _Decomposition(topics, weights / weights.sum(), white, vectors)

    def _fit_by_all_moments(self, pairs: WhitenedPairs) -> FittedTopics:
        """Release the third moment; fit topics, shares and concentration to all moments jointly."""
        released, noisy = pairs.released, self._frequencies
        assert released.matrix is not None
        basis, triples = self._release_triples(pairs)
        # Start from each number of topics that noise leaves possible.
        starts, white = [], pairs.white
        least = min(max(white.n_resolved, 1), white.n_components)
        for k in range(least, white.n_components + 1):
            leading_pairs = replace(pairs, white=white.leading(k))
            start = self._decomposition(basis, triples, leading_pairs)
            starts.append((start.topics, start.weights))
        unigram = _normalised(np.maximum(noisy.value, LEAST_FREQUENCY / len(noisy.value)))
        moments = ReleasedMoments(
            frequencies=noisy.value, frequencies_sigma=noisy.sigma,
            pairs=released.matrix, pairs_sigma=released.sigma,
            diagonal_sigma=released.diagonal_sigma, basis=basis,
            triples=triples.value, triples_sigma=triples.sigma,
            n_documents=self._ask.n_units,
            pairs_square=mean_square_of_pairs(self._length, float(unigram @ unigram)),
            second=np.outer(unigram, unigram),
        )  # fmt: skip
        given = self._options.concentration
        found, moments, self.assumes_concentration = match_with_concentration(
            starts, moments, given
        )
        # Without noise, frequencies show which words no document has.
        may_occur = (noisy.value > 0) | (noisy.sigma > 0)
        topics = _normalised(found.topics * may_occur)
        is_noisy = released.sigma > 0
        std = std_of_matched(found, moments) if is_noisy else np.zeros(topics.shape)
        fitted = self._on_all_words(pairs, topics, found.weights, found.concentration, std)
        if is_noisy and len(topics) > 1 and self._plan.n_refinements == 0:
            return replace(fitted, mixing_covariance=mixing_of_matched(found, moments))
        return fitted

    def _on_all_words(
        self,
        pairs: WhitenedPairs,
        topics: Floats,
        weights: Floats,
        concentration: float,
        topics_std: Floats | None = None,
    ) -> FittedTopics:
        """Extend topics of words whose `pairs` were released to all words, by word frequencies."""
        if (words := pairs.words) is not None:
            fraction = self._unigram[words].sum()  # of tokens
            of_words = topics
            std_of_words = topics_std
            topics = np.tile(self._unigram, (len(of_words), 1))
            topics[:, words] = of_words * fraction
            if std_of_words is not None:
                topics_std = std_of_frequencies(self._frequencies.sigma, topics.shape)
                topics_std[:, words] = std_of_words * fraction
        return FittedTopics(
            topics=smoothed(topics, self._unigram), weights=weights, unigram=self._unigram,
            unigram_sigma=self._frequencies.sigma, n_resolved=pairs.white.n_resolved,
            length=self._length, topics_std=topics_std, concentration=concentration,
        )  # fmt: skip


def varimax_topics(white: NoisyWhitener) -> tuple[Floats, Floats]:
    """Topics (k, d) that share few words, by varimax of the eigenvectors, and even shares."""
    # Rotated together, topics that noise hides would blur the others.
    parts = np.split(white.unwhitening, [max(white.n_resolved, 1)], axis=1)
    loadings = np.hstack([varimax(part) for part in parts if part.size])
    topics = _normalised(np.maximum(loadings, 0.0).T + 1e-300)
    return topics, np.full(len(topics), 1 / len(topics))


def _normalised(values: Floats) -> Floats:
    """Scale the last axis to sum 1; uniform where the sum is not positive."""
    sums = values.sum(axis=-1, keepdims=True)
    uniform = 1 / values.shape[-1]
    return np.where(sums > 0, values / np.maximum(sums, 1e-300), uniform)
