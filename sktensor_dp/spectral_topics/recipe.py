"""The recipe of a topic model: ask the curator, work on what came back.

1. Clips and word frequencies. 2. Pair moments, whose leading eigenvectors are the
whitener. 3. Triple moments in the whitened space, decomposed into topics, which are brought in
line with all of the pairs, not with their leading eigenvectors alone. 4. Either topics are
fitted to all moments jointly, or refined by EM steps on fresh releases; the latter too where
the moments turn out not to be those of a topic model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sktensor_dp.estimator.base import Fitted
from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.privacy.curators.documents import DocumentCurator, NoisyPairs
from sktensor_dp.spectral_topics.pairs import WhitenedPairs, seen_in
from sktensor_dp.spectral_topics.plan import TopicPlan
from sktensor_dp.spectral_topics.public_start import public_start
from sktensor_dp.spectral_topics.refinement import MIX_FINAL, Refinement, smoothed
from sktensor_dp.spectral_topics.released import FittedTopics, TopicOptions
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.tensor.noisy_whitening import NoisyWhitener, noisy_whitener
from sktensor_dp.tensor.power_method import orthogonal_decomposition
from sktensor_dp.tensor.symmetric import multilinear
from sktensor_dp.topics.concentration import USUAL, PairEvidence
from sktensor_dp.topics.denoise import denoise_frequencies
from sktensor_dp.topics.moment_matching import ReleasedMoments, match_moments, unexplained
from sktensor_dp.topics.moments import PriorCorrection, topics_from_components
from sktensor_dp.topics.pair_steps import topics_of_pairs
from sktensor_dp.topics.rehearsal import Limits
from sktensor_dp.topics.rotation import varimax
from sktensor_dp.topics.uncertainty import (
    clip_drift,
    std_of_decomposed,
    std_of_frequencies,
    std_of_matched,
)

# Of the released frequencies in the start of EM, so that no word is ruled out:
# little where topics come from the third moment, more where they are a guess.
MIX_TRIPLES, MIX_ROTATION = 0.01, 0.1
# From so much unexplained, moments are better not fitted. Pages that visitors of a site see leave
# half; documents of one topic nothing. Where documents mix topics more or less evenly than is
# assumed, topics matched and refined are equally good at about this much (200,000 synthetic
# documents of 10 words, 30 words, 5 topics).
MISFIT = 0.2
# A released frequency is at least this part of an even share where public topics are adapted to it.
LEAST_FREQUENCY = 0.01
# Most products with blocks of vectors in the search for eigenvectors. Where rows are formed again
# for each, fewer: what is above the noise is found, and what is within it is not looked for.
MANY_PRODUCTS, FEW_PRODUCTS = 60, 16
# Without noise, many steps follow: of fifty topics, eigenvectors of this tolerance lead where
# closer ones do, others to a completion up to 2 % worse. Components are as good as the steps have
# need of, from so many frames that all of them together have this many columns.
EIGEN_TOL, START_EIGEN_TOL = 1e-5, 1e-4
START_TOL, FRAME_COLUMNS = 1e-3, 50
# Geometry of the pair masses for isotropic noise, and for the histogram.
DIAGONAL_WEIGHTS = {"isotropic": np.sqrt(2.0), "histogram": 1.0}


@dataclass(frozen=True, eq=False)
class _TopicsOfPairs:
    """Topics on the words of the pairs, their shares, and the deviations of both."""

    topics: Floats
    weights: Floats
    topics_std: Floats
    weights_std: Floats
    matched: bool = False


def fit_topics(
    curator: DocumentCurator,
    plan: TopicPlan,
    options: TopicOptions,
    leave: Callable[[FittedTopics, Mapping[str, float]], Fitted],
) -> Fitted:
    """Make all releases of the plan; what they `leave` depends on topics and limits."""
    return leave(_SpectralFit(curator, plan, options).run(), curator.limits)


class _SpectralFit:
    def __init__(self, curator: DocumentCurator, plan: TopicPlan, options: TopicOptions) -> None:
        self._curator, self._plan, self._options = curator, plan, options
        self._random_state = check_random_state(options.random_state)
        self._in_word_space = plan.triples == "triple_moments"
        self._refines = plan.n_refinements > 0

    def run(self) -> FittedTopics:
        found, evidence, count_clip, frequencies, pairs, length = self._start()
        if self._refines:
            if self._plan.may_misfit:
                # They are of documents that have triples, and steps of all: no prior for them.
                frequencies = Noisy(frequencies.value, 1.0)
            told = self._curator, self._plan, self._options
            found = Refinement(*told, frequencies, count_clip, evidence, length).run(found)
        return replace(found, **seen_in(pairs, found.topics))

    def _start(self) -> tuple[FittedTopics, PairEvidence, Any, Noisy, WhitenedPairs, float]:
        plan, curator = self._plan, self._curator
        count_clip = curator.count_clip(plan.clip_quantile)
        clips = [count_clip]
        if plan.all_words:
            clips.append(self._pair_clip(None, count_clip))
        noisy = curator.word_frequencies(count_clip, clips[1:], 3 if plan.all_words else 0)
        total = max(float(noisy.value.sum()), 1e-9)
        frequencies = Noisy(noisy.value / total, noisy.sigma / total)
        unigram = denoise_frequencies(
            frequencies.value, frequencies.sigma, expected=self._options.word_frequencies
        )
        unigram = _normalised(unigram)
        pairs = self._pairs(frequencies, unigram, total, clips)
        found = self._topics(pairs, frequencies)
        if self._plan.may_misfit:
            # Paid for, and not made, where the moments say all that they can.
            self._refines = not found.matched
        if self._refines and not self._plan.match_moments and pairs.released.sigma > 0:
            found = replace(found, topics=self._explained(found, pairs, unigram))
        std = _std_on_all_words(found.topics_std, pairs.words, unigram, frequencies.sigma)
        topics = self._on_all_words(found.topics, pairs.words, unigram)
        evidence = PairEvidence(
            pairs.words, pairs.correction.frequencies, pairs.correction.variance,
            lambda V: pairs.released.product(V) / pairs.total, pairs.released.sigma / pairs.total,
        )  # fmt: skip
        concentration = self._options.concentration
        if concentration is None:
            # What topics make of the moment they were read off says little of the documents.
            concentration = USUAL
            if not self._refines and not self._plan.match_moments:
                concentration = evidence.concentration(topics, found.weights)
        fitted = FittedTopics(
            topics, found.weights, unigram, frequencies.sigma, pairs.white.n_resolved, std,
            found.weights_std, concentration=concentration,
        )  # fmt: skip
        return fitted, evidence, count_clip, frequencies, pairs, total

    def _pair_clip(self, words: NDArray[np.intp] | None, count_clip: Any) -> Any:
        if self._curator.pure:
            return count_clip
        return self._curator.pair_clip(self._plan.clip_quantile, words, **self._diagonal())

    def _diagonal(self) -> dict[str, float]:
        if not self._in_word_space:
            return {}
        weight = 1.0 if self._curator.pure else DIAGONAL_WEIGHTS[self._options.geometry]
        return {"diagonal_weight": weight}

    def _pairs(
        self, frequencies: Noisy, unigram: Floats, total: float, clips: list[Any]
    ) -> WhitenedPairs:
        """Release pair moments and keep the eigenpairs above their noise."""
        words, own, sigma = None, frequencies.value, frequencies.sigma
        if not self._plan.all_words:
            words = np.sort(np.argsort(-unigram, kind="stable")[: self._plan.n_words])
            own, sigma = unigram[words], 0.0
            clips = [self._pair_clip(words, clips[0])]
        released = self._curator.pair_moments(
            clips[-1], clips[:-1], 3 if words is None else 2, words, **self._diagonal(),
            by_rows=self._plan.pairs_by_rows,
        )  # fmt: skip
        if words is not None:
            # The documents' weights differ from those of the frequencies.
            total = max(_mass(released, len(own)), 1e-12) / float(own.sum()) ** 2
        assumed = self._options.concentration
        correction = PriorCorrection(USUAL if assumed is None else assumed, own, sigma)
        scale = correction.pair_scale / total
        if released.matrix is not None:
            corrected: Any = correction.pair_matrix(released.matrix, total)
        else:
            corrected = correction.pairs(lambda V: released.product(V) / total)
        edge = _noise_edge(released.sigma * scale, correction)
        white = noisy_whitener(
            corrected, min(self._plan.n_components, len(own)), edge=edge,
            keep_all=self._plan.match_moments, dim=len(own),
            tol=START_EIGEN_TOL if self._plan.n_single else EIGEN_TOL,
            n_iter=FEW_PRODUCTS if self._plan.pairs_by_rows else MANY_PRODUCTS,
            random_state=self._random_state,
        )  # fmt: skip
        return WhitenedPairs(
            words, tuple(clips), total, correction, released, corrected, scale, white, edge
        )

    def _topics(self, pairs: WhitenedPairs, frequencies: Noisy) -> _TopicsOfPairs:
        white = pairs.white
        k = white.n_components
        if self._plan.triples is None:
            loadings = np.maximum(varimax(white.unwhitening), 0.0)
            topics = _normalised(loadings.T + 1e-300)
            # A guess, which only starts the steps that follow.
            return _TopicsOfPairs(topics, np.full(k, 1 / k), np.ones(topics.shape), np.ones(k))
        basis = self._basis(white)
        noisy = self._triples(basis, pairs)
        mean_pairs = basis.T @ pairs.released.product(basis) / pairs.total
        triples = pairs.correction.triples(noisy.value, mean_pairs, basis)
        framed = white.in_frame(basis)
        eigenvalues, vectors = self._decomposed(multilinear(triples, framed.transform))
        topics = topics_from_components(framed.unwhiten(vectors))
        weights = np.clip(np.maximum(eigenvalues, 1e-9) ** -2.0, 0.2 / k, 5 / k)
        weights /= weights.sum()
        sigma = noisy.sigma * pairs.correction.triple_scale
        if not self._plan.match_moments:
            std = std_of_decomposed(
                framed.unwhiten(vectors), vectors @ framed.matrix.T, weights,
                pairs.released.sigma * pairs.scale, sigma * _volume(framed.transform),
            )  # fmt: skip
            return _TopicsOfPairs(topics, weights, *std)
        return self._matched(topics, weights, pairs, frequencies, basis, triples, sigma)

    def _decomposed(self, tensor: Floats) -> tuple[Floats, Floats]:
        """Components of a third moment; where steps move them far, what the search costs counts."""
        k, options = len(tensor), self._options
        search: dict[str, Any] = {"n_restarts": options.n_restarts}
        if self._plan.n_single:
            n_frames = min(options.n_restarts, max(FRAME_COLUMNS // k, 1))
            search = {"method": "simultaneous", "n_restarts": n_frames, "tol": START_TOL}
        return orthogonal_decomposition(
            tensor, k, max_iter=options.max_iter, random_state=self._random_state, **search
        )

    def _explained(self, found: _TopicsOfPairs, pairs: WhitenedPairs, unigram: Floats) -> Floats:
        """Topics that explain the pairs better, to start the steps that follow."""
        known = unigram if pairs.words is None else unigram[pairs.words]
        corrected = pairs.corrected
        product = corrected if pairs.released.matrix is None else corrected.__matmul__
        return topics_of_pairs(
            found.topics, found.weights, product, known, pairs.released.sigma * pairs.scale
        )

    def _basis(self, white: NoisyWhitener) -> Floats:
        """Public matrix in which the third moment is released."""
        if self._in_word_space:
            return white.basis
        whitener = white.matrix
        norms = np.maximum(np.linalg.norm(whitener, axis=1), 1e-100)
        if self._plan.match_moments:
            # Every word equally long: the most that one document can add is least.
            return whitener / norms[:, None]
        return whitener * np.minimum(1, np.quantile(norms, 0.9) / norms)[:, None]

    def _triples(self, basis: Floats, pairs: WhitenedPairs) -> Noisy:
        curator, quantile = self._curator, self._plan.triple_quantile
        if not self._in_word_space:
            clip = curator.whitened_triple_clip(quantile, basis, pairs.words, pairs.clips)
            noisy = curator.whitened_triples(basis, clip, pairs.clips, pairs.words)
        else:
            clip = pairs.clips[0]
            if not curator.pure:
                clip = curator.triple_clip(quantile, self._options.geometry == "histogram")
            noisy = curator.triples(basis, clip, pairs.clips, pairs.words)
        return Noisy(noisy.value / pairs.total, noisy.sigma / pairs.total)

    def _matched(
        self,
        topics: Floats,
        weights: Floats,
        pairs: WhitenedPairs,
        frequencies: Noisy,
        basis: Floats,
        triples: Floats,
        triples_sigma: float,
    ) -> _TopicsOfPairs:
        limit = self._curator.limits.get("pairs", self._curator.limits["counts"])
        moments = ReleasedMoments(
            frequencies=frequencies.value,
            frequencies_sigma=frequencies.sigma,
            pairs=pairs.corrected,
            pairs_sigma=pairs.released.sigma * pairs.scale,
            diagonal_sigma=pairs.released.diagonal_sigma * pairs.scale,
            basis=basis,
            triples=triples,
            triples_sigma=triples_sigma,
            n_documents=self._curator.n_units,
            spread=(limit / pairs.total) ** 2,
        )
        matched, shares = match_moments(topics, weights, moments)
        if self._options.public_topics is not None:
            matched, shares = self._better_matched(matched, shares, moments)
        std = std_of_matched(matched, shares, moments, self._drift(matched, shares, pairs.total))
        if self._plan.may_misfit and unexplained(matched, shares, moments) > MISFIT:
            # EM begins where it does without noise.
            return _TopicsOfPairs(topics, weights, *std)
        return _TopicsOfPairs(matched, shares, *std, matched=True)

    def _drift(self, topics: Floats, weights: Floats, total: float) -> Floats:
        """How far the limits on what a document counts move shares."""
        known, order = self._curator.limits, 1 if self._curator.pure else 2
        limits = Limits(known["counts"], order, known.get("pairs", np.inf))
        concentration = self._options.concentration
        return clip_drift(
            topics, weights, USUAL if concentration is None else concentration, limits, total
        )

    def _better_matched(
        self, topics: Floats, weights: Floats, moments: ReleasedMoments
    ) -> tuple[Floats, Floats]:
        """The same from public topics, if moments are explained better by what that leads to."""
        assert self._options.public_topics is not None
        unigram = _normalised(np.maximum(moments.frequencies, LEAST_FREQUENCY / topics.shape[1]))
        learnt = FittedTopics(topics, weights, unigram, moments.frequencies_sigma, 0)
        start = public_start(learnt, self._options.public_topics, len(topics))
        public = match_moments(start.topics, start.weights, moments)
        better = unexplained(*public, moments) < unexplained(topics, weights, moments)
        return public if better else (topics, weights)

    def _on_all_words(
        self, topics: Floats, words: NDArray[np.intp] | None, unigram: Floats
    ) -> Floats:
        """Words without released pairs keep their unigram frequency in every topic."""
        if words is not None:
            whole = np.tile(unigram, (len(topics), 1))
            whole[:, words] = topics * unigram[words].sum()
            topics = whole
        mix = MIX_FINAL
        if self._refines:
            mix = MIX_ROTATION if self._plan.triples is None else MIX_TRIPLES
        return smoothed(topics, unigram, mix)


def _volume(transform: Floats) -> float:
    """How much a transform of all three modes enlarges isotropic noise."""
    return min(float(np.mean(np.linalg.norm(transform, axis=0) ** 2)), 1e60) ** 1.5


def _std_on_all_words(
    std: Floats, words: NDArray[np.intp] | None, unigram: Floats, unigram_sigma: float
) -> Floats:
    """Words without released pairs have the deviation of their frequency."""
    if words is None:
        return std
    whole = std_of_frequencies(unigram_sigma, (len(std), unigram.size))
    whole[:, words] = std * unigram[words].sum()
    return whole


def _mass(released: NoisyPairs, n_words: int) -> float:
    """Sum of a released second moment."""
    if released.matrix is not None:
        return float(released.matrix.sum())
    return float(released.product(np.ones((n_words, 1))).sum())


def _noise_edge(sigma: float, correction: PriorCorrection) -> float:
    """What noise alone may lift an eigenvalue of the corrected second moment to."""
    return 2 * sigma * float(np.sqrt(len(correction.frequencies))) + correction.pair_shift


def _normalised(values: Floats) -> Floats:
    """Distributions along the last axis; uniform where there is nothing."""
    sums = values.sum(axis=-1, keepdims=True)
    uniform = 1 / values.shape[-1]
    return np.where(sums > 0, values / np.maximum(sums, 1e-300), uniform)
