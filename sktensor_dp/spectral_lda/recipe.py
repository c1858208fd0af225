"""The recipe of a topic model: questions to the session, and computations on the answers.

1. Limits and word frequencies. 2. Pair moments of all or the most frequent words. 3. By
`plan.triples`: triple moments, decomposed in the space that the pairs whiten; by
`plan.match_moments` topics and the concentration are then fitted to all moments jointly. 4.
Without triples: topics start from the rotated eigenvectors of the pairs, are brought in line with
all pairs, and the pairs tell the concentration. 5. `plan.n_refinements` EM steps on fresh releases.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.count_moments import PairMoments, TripleMoments, WhitenedTripleMoments
from sktensor_dp.queries.counts import MIN_TOKENS, Clip, WordFrequencies
from sktensor_dp.queries.query import Query
from sktensor_dp.spectral_lda.clips import DIAGONAL_WEIGHT, Clips
from sktensor_dp.spectral_lda.plan import TopicPlan
from sktensor_dp.spectral_lda.refinement import MIX_FINAL, Refinement, smoothed, with_public
from sktensor_dp.spectral_lda.released import (
    FittedTopics,
    Moment,
    ReleasedPairs,
    TopicOptions,
    WhitenedPairs,
    corrected_pairs,
    diagnostics,
    product_of,
)
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.power_method import orthogonal_decomposition
from sktensor_dp.tensor.symmetric import multilinear
from sktensor_dp.tensor.whitening import NoisyWhitener, noisy_whitener, top_eigenpairs
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
    spread_of_pairs,
    topics_from_components,
)
from sktensor_dp.topics.noise_edge import noise_edges, sampling_of_pairs, scaled_edges
from sktensor_dp.topics.shrinkage import denoise_frequencies
from sktensor_dp.topics.start import topics_of_pairs, varimax
from sktensor_dp.topics.uncertainty import (
    Limits,
    clip_drift,
    std_of_decomposed,
    std_of_frequencies,
    std_of_matched,
)

# Least released frequency, relative to an even share, to which public topics are adapted.
LEAST_FREQUENCY = 0.01
# Largest number of products with blocks of vectors in the search for eigenvectors; the second where
# each product reads all documents.
MANY_PRODUCTS, FEW_PRODUCTS = 60, 16
# Tolerance of the search for eigenvectors.
EIGEN_TOL = 1e-5

# Rows of a whitener shorter than this fraction of the longest are rounding errors.
LEAST_ROW = 1e-12


ASSUMED = (
    f"The concentration of topics in documents was assumed to be {USUAL:g}: what was released does "
    "not tell."
)


@dataclass(frozen=True, eq=False)
class _TopicsOfPairs:
    """Topics of the words whose pairs were released, their shares, and deviations of both."""

    topics: Floats
    weights: Floats
    topics_std: Floats
    weights_std: Floats
    concentration: float


@dataclass(frozen=True, eq=False)
class ReleasedTopics:
    """Topics made of released values, with the limits in force and notes for the report."""

    topics: FittedTopics
    limits: Mapping[str, float]
    notes: tuple[str, ...]


def fit_topics(
    ask: Session,
    known: Mapping[str, float],
    plan: TopicPlan,
    options: TopicOptions,
) -> ReleasedTopics:
    """Make the planned releases and fit topics; `known` are public limits."""
    clips = Clips(ask, known)
    fit = _SpectralFit(ask, clips, plan, options)
    topics = fit.run()
    return ReleasedTopics(topics, clips.limits, (ASSUMED,) if fit.assumed else ())


class _SpectralFit:
    """One fit of topics: releases by the session, each followed by post-processing."""

    def __init__(self, ask: Session, clips: Clips, plan: TopicPlan, options: TopicOptions) -> None:
        self._ask, self._clips = ask, clips
        self._plan, self._options = plan, options
        self._random_state = check_random_state(options.random_state)
        self._in_word_space = plan.triples == "triple_moments"
        self.assumed = False  # whether releases left the concentration open
        # Released first: noisy word frequencies; then denoised ones, and the mean number of tokens.
        self._frequencies: Answer
        self._unigram: Floats
        self._length: float

    def run(self) -> FittedTopics:
        """Make all releases and return the topics that they give."""
        plan, options = self._plan, self._options
        count_clip = self._clips.of_counts(plan.clip_quantile)
        # If pairs of all words follow, a document has one weight in all moments.
        pair_clip = self._pair_clip(None, count_clip) if plan.all_words else None
        others = () if pair_clip is None else (pair_clip,)
        noisy = self._ask(WordFrequencies(count_clip, others, MIN_TOKENS if plan.all_words else 0))
        self._length = length = max(float(noisy.value.sum()), 1e-9)
        self._frequencies = known = noisy.over(length)
        self._unigram = _normalised(
            denoise_frequencies(known.value, known.sigma, expected=options.word_frequencies)
        )
        pairs = self._pairs(count_clip, pair_clip)
        found = self._start(pairs) if plan.triples is None else self._of_triples(pairs)
        topics, topics_std = found.topics, found.topics_std
        if pairs.words is not None:
            topics, topics_std = self._on_all_words(found, pairs.words)
        fitted = FittedTopics(
            smoothed(topics, self._unigram, MIX_FINAL), found.weights, self._unigram,
            known.sigma, pairs.white.n_resolved, length, topics_std, found.weights_std,
            concentration=found.concentration,
        )  # fmt: skip
        if plan.n_refinements > 0:
            steps = Refinement(self._ask, plan, options, known, count_clip, self._unigram, pairs)
            fitted = steps.run(fitted)
            self.assumed &= fitted.concentration == found.concentration
        return replace(fitted, **diagnostics(pairs, fitted.topics))

    def _pair_clip(self, words: NDArray[np.intp] | None, count_clip: Clip) -> Clip:
        """Release a clip on documents' pairs; with pure noise, the clip on counts serves."""
        if self._ask.is_pure:
            return count_clip
        return self._clips.of_pairs(self._plan.clip_quantile, words)

    def _pairs(self, count_clip: Clip, pair_clip: Clip | None) -> WhitenedPairs:
        """Release pair moments, correct them for the prior, and whiten them above their noise."""
        words, total = None, self._length
        own, sigma = self._frequencies.value, self._frequencies.sigma
        clips: tuple[Clip, ...]
        if pair_clip is not None:
            clips = count_clip, pair_clip
        else:
            words = np.sort(np.argsort(-self._unigram, kind="stable")[: self._plan.n_words])
            own, sigma = self._unigram[words], 0.0
            pair_clip = self._pair_clip(words, count_clip)
            clips = (pair_clip,)
        least = MIN_TOKENS if words is None else 2
        released = self._released_pairs(
            PairMoments(pair_clip, DIAGONAL_WEIGHT, clips[:-1], words, least)
        )
        if words is not None:
            # These documents were clipped anew, so their total weight is taken from the pairs.
            total = max(_mass(released, len(own)), 1e-12) / float(own.sum()) ** 2
        given = self._options.concentration
        correction = PriorCorrection(USUAL if given is None else given, own, sigma)
        corrected = corrected_pairs(released, correction, total)
        scale = correction.pair_scale / total
        white, edge = self._white(released, corrected, correction, total)
        return WhitenedPairs(
            words, clips, total, correction, released, corrected, scale, white, edge
        )

    def _white(
        self, released: ReleasedPairs, corrected: Moment, correction: PriorCorrection, total: float
    ) -> tuple[NoisyWhitener, float]:
        """Whitener of the `corrected` second moment by what noise and sampling do not explain, and
        the edge of these.
        """
        scale, shift = correction.pair_scale, correction.pair_shift
        known, pure, keep_all = correction.frequencies, self._ask.is_pure, self._plan.match_moments
        sampling = sampling_of_pairs(self._length, self._ask.n_units, len(known))
        deviations = released.sigma / total, released.diagonal_sigma / total, sampling
        wanted = min(self._plan.n_components, len(known))
        search: dict[str, Any] = {
            "dim": len(known), "tol": EIGEN_TOL, "random_state": self._random_state,
            "n_iter": FEW_PRODUCTS if self._plan.multiplies_pairs else MANY_PRODUCTS,
        }  # fmt: skip
        edge, apart = (scale * x + shift for x in noise_edges(*deviations, known, pure=pure))
        white = noisy_whitener(
            corrected, wanted, edge=edge, apart=apart, keep_all=keep_all, **search
        )
        if white.n_resolved >= wanted:
            return white, edge
        # If sampling is most of what varies, frequent words hide topics of rare ones: search again
        # with words weighted so that all entries vary about alike.
        weights, *edges = scaled_edges(*deviations, known, self._ask.n_units, pure=pure)
        low, high = (scale * x + shift * float(weights.max()) ** 2 for x in edges)

        def weighted(V: Floats) -> Floats:
            return weights[:, None] * product_of(corrected, weights[:, None] * V)

        values, _ = top_eigenpairs(weighted, wanted, **search)
        shown = int((values > low).sum())
        # One eigenvalue is always above chance: that of the word frequencies.
        if shown <= max(white.n_resolved, 1) or values[1] <= high:
            return white, edge
        n = wanted if keep_all else shown
        white = noisy_whitener(corrected, n, edge=0.0, keep_all=keep_all, **search)
        return replace(white, n_resolved=min(shown, white.n_resolved)), edge

    def _start(self, pairs: WhitenedPairs) -> _TopicsOfPairs:
        """Topics from which EM starts: rotated eigenvectors, refined to explain all pairs."""
        k, known = pairs.white.n_components, pairs.of_words(self._unigram)
        topics, weights = rotated(pairs.white)
        concentration = self._concentration(topics, weights, pairs)
        if self._options.concentration is None:
            one_each = has_one_topic(concentration, self._length, self._plan.n_components)
            concentration = 0.0 if one_each else max(concentration, LEAST_CONCENTRATION)
        pairs = pairs.with_concentration(concentration)
        topics = topics_of_pairs(
            topics, weights, pairs.product, known, pairs.released.sigma * pairs.scale
        )
        return _TopicsOfPairs(topics, weights, np.ones(topics.shape), np.ones(k), concentration)

    def _concentration(self, topics: Floats, weights: Floats, pairs: WhitenedPairs) -> float:
        """Concentration given, or estimated from the pairs; else `USUAL`, with `assumed` set."""
        if self._options.concentration is not None:
            return self._options.concentration
        seen = pairs.against_chance(self._unigram, self._length, self._ask.n_units)
        found = concentration_of_pairs(topics, weights, *seen)
        self.assumed = found is None
        return USUAL if found is None else found

    def _of_triples(self, pairs: WhitenedPairs) -> _TopicsOfPairs:
        """Release the third moment; decompose it, or fit topics to all moments jointly."""
        concentration = self._options.concentration
        if concentration is None and pairs.released.matrix is None:
            # Products of pairs do not determine the concentration; fits with EM steps do not have
            # products only.
            self.assumed, concentration = True, USUAL
        elif concentration is None and not self._plan.match_moments:
            topics, weights = rotated(pairs.white)
            concentration = self._concentration(topics, weights, pairs)
            pairs = pairs.with_concentration(concentration)
            white, _ = self._white(pairs.released, pairs.corrected, pairs.correction, pairs.total)
            pairs = replace(pairs, white=white)
        basis = self._basis(pairs.white)
        noisy = self._triples(basis, pairs)
        mean_pairs = basis.T @ pairs.released.product(basis) / pairs.total
        triples = pairs.correction.triples(noisy.value, mean_pairs, basis)
        framed, k = pairs.white.in_frame(basis), pairs.white.n_components
        eigenvalues, vectors = orthogonal_decomposition(
            multilinear(triples, framed.transform), k, random_state=self._random_state
        )
        topics = topics_from_components(framed.unwhiten(vectors))
        weights = np.clip(np.maximum(eigenvalues, 1e-9) ** -2.0, 0.2 / k, 5 / k)
        weights /= weights.sum()
        if self._plan.match_moments:
            return self._matched(topics, weights, pairs, basis, noisy)
        assert concentration is not None
        sigma = noisy.sigma * pairs.correction.triple_scale
        std = std_of_decomposed(
            framed.unwhiten(vectors), vectors @ framed.matrix.T, weights,
            pairs.released.sigma * pairs.scale, sigma * _volume(framed.transform),
        )  # fmt: skip
        return _TopicsOfPairs(topics, weights, *std, concentration)

    def _released_pairs(self, query: PairMoments) -> ReleasedPairs:
        """Release the second moment of words; without noise its products serve for many words."""
        if self._plan.multiplies_pairs:
            return ReleasedPairs(None, self._ask.exact_product(query), 0.0, 0.0)
        noisy = self._ask(query)
        product = noisy.value.__matmul__
        return ReleasedPairs(noisy.value, product, noisy.sigma / 2, noisy.sigma / DIAGONAL_WEIGHT)

    def _basis(self, white: NoisyWhitener) -> Floats:
        """Matrix (d, m), made of released values, in whose columns the third moment is released."""
        if self._in_word_space:
            return white.basis
        whitener = white.matrix
        norms = np.linalg.norm(whitener, axis=1)
        norms = np.maximum(norms, LEAST_ROW * float(norms.max()))
        if self._plan.match_moments:
            # With rows of equal length the largest contribution of a document is least.
            return whitener / norms[:, None]
        return whitener * np.minimum(1, np.quantile(norms, 0.9) / norms)[:, None]

    def _triples(self, basis: Floats, pairs: WhitenedPairs) -> Answer:
        """Release the third moment in a `basis`, in units of one document of mean weight."""
        quantile, words, clips = self._plan.triple_quantile, pairs.words, pairs.clips
        query: Query
        if not self._in_word_space:
            clip = self._clips.of_whitened_triples(quantile, basis, words, clips)
            query = WhitenedTripleMoments(basis, (clip, *clips), words)
        else:
            clip = clips[0] if self._ask.is_pure else self._clips.of_triples(quantile)
            query = TripleMoments(basis, (clip, *clips), words)
        return self._ask(query).over(pairs.total)

    def _matched(
        self,
        topics: Floats,
        weights: Floats,
        pairs: WhitenedPairs,
        basis: Floats,
        triples: Answer,
    ) -> _TopicsOfPairs:
        """Fit topics, shares and, unless given, the concentration to all moments jointly."""
        released, seen = pairs.released, self._frequencies
        assert released.matrix is not None
        unigram = _normalised(np.maximum(seen.value, LEAST_FREQUENCY / topics.shape[1]))
        moments = ReleasedMoments(
            frequencies=seen.value, frequencies_sigma=seen.sigma,
            pairs=released.matrix / pairs.total, pairs_sigma=released.sigma / pairs.total,
            diagonal_sigma=released.diagonal_sigma / pairs.total, basis=basis,
            triples=triples.value, triples_sigma=triples.sigma,
            n_documents=self._ask.n_units,
            spread=spread_of_pairs(self._length, float(unigram @ unigram)),
            second=np.outer(unigram, unigram),
        )  # fmt: skip
        given = self._options.concentration
        found, moments, self.assumed = match_with_concentration(topics, weights, moments, given)
        if self._options.public_topics is not None:
            learnt = FittedTopics(
                found.topics, found.weights, unigram, moments.frequencies_sigma, 0, self._length
            )
            public = with_public(learnt, self._options.public_topics, keep_learnt=False)
            other = match_with_concentration(public.topics, public.weights, moments, given)
            if other[0].misfit < found.misfit:
                found, moments, self.assumed = other
        std: tuple[Floats, Floats] = np.zeros(topics.shape), np.zeros(len(topics))
        if released.sigma > 0:
            known, order = self._clips.limits, 1 if self._ask.is_pure else 2
            limits = Limits(known["counts"], order, known.get("pairs", np.inf))
            fit = found.topics, found.weights, found.concentration
            std = std_of_matched(found, moments, clip_drift(*fit, limits, self._length))
        return _TopicsOfPairs(found.topics, found.weights, *std, found.concentration)

    def _on_all_words(
        self, found: _TopicsOfPairs, words: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Extend topics and their deviations: other words keep their unigram frequency."""
        share = self._unigram[words].sum()
        topics = np.tile(self._unigram, (len(found.topics), 1))
        std = std_of_frequencies(self._frequencies.sigma, topics.shape)
        topics[:, words], std[:, words] = found.topics * share, found.topics_std * share
        return topics, std


def rotated(white: NoisyWhitener) -> tuple[Floats, Floats]:
    """Topics (k, d) that share few words, by varimax of the eigenvectors, and even shares."""
    topics = _normalised(np.maximum(varimax(white.unwhitening), 0.0).T + 1e-300)
    return topics, np.full(len(topics), 1 / len(topics))


def _volume(transform: Floats) -> float:
    """Factor by which `transform` of all three modes enlarges the deviation of noise."""
    return min(float(np.mean(np.linalg.norm(transform, axis=0) ** 2)), 1e60) ** 1.5


def _mass(released: ReleasedPairs, n_words: int) -> float:
    """Sum of all entries of a released second moment of `n_words` words."""
    if released.matrix is not None:
        return float(released.matrix.sum())
    return float(released.product(np.ones((n_words, 1))).sum())


def _normalised(values: Floats) -> Floats:
    """Scale the last axis to sum 1; uniform where the sum is not positive."""
    sums = values.sum(axis=-1, keepdims=True)
    uniform = 1 / values.shape[-1]
    return np.where(sums > 0, values / np.maximum(sums, 1e-300), uniform)
